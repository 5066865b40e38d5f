#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "store/manifest/internal.h"

enum { CHUNK_BYTES = 2 << 20, CHUNK_COUNT = 3, BLOCK_BYTES = 4096, TEXT_BYTES = 64 << 10 };

struct gbx_manifest_writer {
    int fd;
    char path[PATH_MAX];
    char temporary_path[PATH_MAX];
    char directory[PATH_MAX];
    bool is_stream;          /* chunks go to `write` in order, */
    gbx_manifest_sink write; /* or stay in memory when it is NULL: the first chunk grows */
    void *context;
    gbx_status failure; /* of a stream */
    size_t chunk_bytes;
    bool is_direct; /* used by the writing thread, or by the filling one while there is none */
    char *chunks[CHUNK_COUNT];
    uint64_t filled; /* chunks handed over; used by the filling thread */
    bool has_thread;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    uint64_t submitted;
    uint64_t written;
    bool is_ending;
    int error; /* errno of the first write that failed */
};

/* --- writing --- */

/* When the file system refuses direct I/O, this and all later writes go through the page cache. */
static bool leave_direct(gbx_manifest_writer *writer) {
    int flags = fcntl(writer->fd, F_GETFL);
    if (!writer->is_direct || flags < 0 || fcntl(writer->fd, F_SETFL, flags & ~O_DIRECT) != 0)
        return false;
    writer->is_direct = false;
    return true;
}

/* Returns errno. */
static int write_all(gbx_manifest_writer *writer, const char *bytes, size_t size, uint64_t offset) {
    size_t written = 0;
    int error = gbx_pwrite_all(writer->fd, bytes, size, offset, &written);
    if (error != EINVAL || !leave_direct(writer))
        return error;
    bytes += written;
    offset += written;
    return gbx_pwrite_all(writer->fd, bytes, size - written, offset, &written);
}

static char *chunk_of(const gbx_manifest_writer *writer, uint64_t number) {
    return writer->chunks[number % CHUNK_COUNT];
}

static void *write_chunks(void *context) {
    gbx_manifest_writer *writer = context;
    pthread_mutex_lock(&writer->lock);
    while (!writer->is_ending || writer->written < writer->submitted) {
        if (writer->written == writer->submitted) {
            pthread_cond_wait(&writer->changed, &writer->lock);
            continue;
        }
        uint64_t number = writer->written;
        bool is_failed = writer->error != 0;
        pthread_mutex_unlock(&writer->lock);
        int error = is_failed ? 0
                              : write_all(writer, chunk_of(writer, number), CHUNK_BYTES,
                                          number * CHUNK_BYTES);
        pthread_mutex_lock(&writer->lock);
        if (error)
            writer->error = error;
        writer->written++;
        pthread_cond_signal(&writer->changed);
    }
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}

/* Signals stay with the program's threads. Without a thread chunks are written at once; so are
 * those of a stream, because its reader may go away, and SIGPIPE belongs to the program. */
static void start_thread(gbx_manifest_writer *writer) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    writer->has_thread = pthread_create(&writer->thread, NULL, write_chunks, writer) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void end_thread(gbx_manifest_writer *writer) {
    if (!writer->has_thread)
        return;
    pthread_mutex_lock(&writer->lock);
    writer->is_ending = true;
    pthread_cond_signal(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
    pthread_join(writer->thread, NULL);
    writer->has_thread = false;
}

static void write_stream(gbx_manifest_writer *writer, const char *bytes, size_t size) {
    if (!writer->failure && size > 0)
        writer->failure = writer->write(writer->context, bytes, size);
}

/* Chunk number `filled` is full. Returns when the one after it is free. */
static void submit(gbx_manifest_writer *writer) {
    if (writer->filled == 0 && !writer->is_stream)
        start_thread(writer);
    uint64_t number = writer->filled++;
    if (writer->is_stream) {
        write_stream(writer, chunk_of(writer, number), CHUNK_BYTES);
        return;
    }
    if (!writer->has_thread) {
        if (!writer->error)
            writer->error =
                write_all(writer, chunk_of(writer, number), CHUNK_BYTES, number * CHUNK_BYTES);
        return;
    }
    pthread_mutex_lock(&writer->lock);
    writer->submitted = writer->filled;
    pthread_cond_signal(&writer->changed);
    while (writer->filled - writer->written >= CHUNK_COUNT)
        pthread_cond_wait(&writer->changed, &writer->lock);
    pthread_mutex_unlock(&writer->lock);
}

static void begin_chunk(gbx_manifest_file *file, char *chunk) {
    file->at = file->start = chunk;
    file->limit = chunk + file->writer->chunk_bytes;
}

static void grow_text(gbx_manifest_file *file) {
    gbx_manifest_writer *writer = file->writer;
    size_t used = (size_t)(file->at - file->start);
    size_t bytes = 2 * writer->chunk_bytes;
    char *text = realloc(writer->chunks[0], bytes + 2 * GBX_MANIFEST_ROOM_BYTES);
    if (text) {
        writer->chunks[0] = text;
        writer->chunk_bytes = bytes;
    } else {
        file->has_failed = true; /* what was put so far is dropped to make room */
        used = 0;
    }
    begin_chunk(file, writer->chunks[0]);
    file->at += used;
}

void gbx_manifest_file_turn(gbx_manifest_file *file) {
    gbx_manifest_writer *writer = file->writer;
    if (writer->is_stream && !writer->write) {
        grow_text(file);
        return;
    }
    const char *excess = file->limit;
    size_t excess_bytes = (size_t)(file->at - file->limit);
    submit(writer);
    file->has_failed = writer->failure != NULL;
    begin_chunk(file, chunk_of(writer, writer->filled));
    memcpy(file->at, excess, excess_bytes);
    file->at += excess_bytes;
}

void gbx_manifest_file_put(gbx_manifest_file *file, const char *text, size_t size) {
    while (size > 0) {
        gbx_manifest_file_room(file);
        size_t part = size < GBX_MANIFEST_ROOM_BYTES ? size : GBX_MANIFEST_ROOM_BYTES;
        memcpy(file->at, text, part);
        file->at += part;
        text += part;
        size -= part;
    }
    gbx_manifest_file_room(file);
}

/* --- beginning and end --- */

static void destroy(gbx_manifest_writer *writer) {
    end_thread(writer);
    if (writer->fd >= 0)
        close(writer->fd);
    for (size_t i = 0; i < CHUNK_COUNT; ++i)
        free(writer->chunks[i]);
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->lock);
    free(writer);
}

static gbx_status fail_io(const char *doing, const char *path, int error) {
    return gbx_fail(GBX_IO, "cannot %s %s: %s", doing, path, strerror(error));
}

static int open_temporary(const char *path, bool *out_is_direct) {
    int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
    int fd = open(path, flags | O_DIRECT, 0666);
    *out_is_direct = fd >= 0;
    return fd < 0 && errno == EINVAL ? open(path, flags, 0666) : fd;
}

static gbx_status allocate_chunks(gbx_manifest_writer *writer) {
    for (size_t i = 0; i < CHUNK_COUNT; ++i) {
        writer->chunks[i] = aligned_alloc(BLOCK_BYTES, CHUNK_BYTES + 2 * GBX_MANIFEST_ROOM_BYTES);
        if (!writer->chunks[i])
            return gbx_fail_memory("writing %s", writer->path);
    }
    return NULL;
}

static gbx_status prepare_file(gbx_manifest_writer *writer, const char *directory,
                               const char *name) {
    int length = snprintf(writer->temporary_path, PATH_MAX, "%s/%s.tmp", directory, name);
    if (length < 0 || length >= PATH_MAX)
        return gbx_fail(GBX_INVALID_ARGUMENT, "the path of the dump %.64s... is too long",
                        directory);
    snprintf(writer->path, PATH_MAX, "%s/%s", directory, name);
    snprintf(writer->directory, PATH_MAX, "%s", directory);
    GBX_TRY(allocate_chunks(writer));
    writer->fd = open_temporary(writer->temporary_path, &writer->is_direct);
    return writer->fd >= 0 ? NULL : fail_io("create", writer->temporary_path, errno);
}

static gbx_status prepare_stream(gbx_manifest_writer *writer, const char *name) {
    snprintf(writer->path, PATH_MAX, "%s", name);
    writer->is_stream = true;
    if (writer->write)
        return allocate_chunks(writer);
    writer->chunk_bytes = TEXT_BYTES;
    writer->chunks[0] = malloc(TEXT_BYTES + 2 * GBX_MANIFEST_ROOM_BYTES);
    return writer->chunks[0] ? NULL : gbx_fail_memory("writing %s", name);
}

static gbx_manifest_writer *make_writer(void) {
    gbx_manifest_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return NULL;
    writer->fd = -1;
    writer->chunk_bytes = CHUNK_BYTES;
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->changed, NULL);
    return writer;
}

/* `status` is the result of preparing the writer. */
static gbx_status begin(gbx_manifest_writer *writer, gbx_status status,
                        gbx_manifest_file *out_file) {
    if (status) {
        destroy(writer);
        return status;
    }
    *out_file = (gbx_manifest_file){.writer = writer};
    begin_chunk(out_file, writer->chunks[0]);
    return NULL;
}

gbx_status gbx_manifest_file_create(const char *directory, const char *name,
                                    gbx_manifest_file *out_file) {
    gbx_manifest_writer *writer = make_writer();
    if (!writer)
        return gbx_fail_memory("writing %s", name);
    return begin(writer, prepare_file(writer, directory, name), out_file);
}

gbx_status gbx_manifest_file_stream(gbx_manifest_sink write, void *context, const char *name,
                                    gbx_manifest_file *out_file) {
    gbx_manifest_writer *writer = make_writer();
    if (!writer)
        return gbx_fail_memory("writing %s", name);
    writer->write = write;
    writer->context = context;
    return begin(writer, prepare_stream(writer, name), out_file);
}

gbx_status gbx_manifest_file_take(gbx_manifest_file *file, const char **out_text,
                                  size_t *out_size) {
    *out_text = file->start;
    *out_size = (size_t)(file->at - file->start);
    file->at = file->start;
    return file->has_failed ? gbx_fail_memory("writing %s", file->writer->path) : NULL;
}

static gbx_status write_stream_rest(gbx_manifest_file *file) {
    gbx_manifest_writer *writer = file->writer;
    if (writer->write) {
        gbx_manifest_file_room(file);
        write_stream(writer, file->start, (size_t)(file->at - file->start));
    }
    return writer->failure;
}

static gbx_status write_rest(gbx_manifest_file *file) {
    gbx_manifest_writer *writer = file->writer;
    gbx_manifest_file_room(file);
    end_thread(writer);
    char *chunk = chunk_of(writer, writer->filled);
    size_t rest = (size_t)(file->at - chunk);
    uint64_t size = writer->filled * CHUNK_BYTES + rest;
    size_t whole = (rest + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    memset(file->at, 0, whole - rest);
    if (!writer->error)
        writer->error = write_all(writer, chunk, whole, writer->filled * CHUNK_BYTES);
    if (!writer->error && ftruncate(writer->fd, (off_t)size) != 0)
        writer->error = errno;
    if (writer->error)
        return fail_io("write", writer->temporary_path, writer->error);
    return fsync(writer->fd) == 0 ? NULL : fail_io("sync", writer->temporary_path, errno);
}

static gbx_status sync_directory(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail_io("open", path, errno);
    /* A file system that cannot sync directories does not need it. */
    bool is_good = fsync(fd) == 0 || errno == EINVAL;
    gbx_status status = is_good ? NULL : fail_io("sync", path, errno);
    close(fd);
    return status;
}

static gbx_status publish(gbx_manifest_file *file) {
    gbx_manifest_writer *writer = file->writer;
    GBX_TRY(write_rest(file));
    if (rename(writer->temporary_path, writer->path) != 0)
        return fail_io("rename to", writer->path, errno);
    return sync_directory(writer->directory);
}

gbx_status gbx_manifest_file_finish(gbx_manifest_file *file, gbx_status status) {
    gbx_manifest_writer *writer = file->writer;
    if (writer->is_stream)
        status = gbx_status_first(status, status ? writer->failure : write_stream_rest(file));
    else if (!status)
        status = publish(file);
    if (status && !writer->is_stream)
        unlink(writer->temporary_path);
    destroy(writer);
    return status;
}
