#include "store/payload/payload.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/io.h"
#include "base/log.h"
#include "store/writer.h"

enum { CREATE_FLAGS = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE = 0666 };

const char *gbx_disk_advice(int error) {
    switch (error) {
    case ENOSPC:
        return "free some space on the disk, or choose a directory on another disk";
    case EDQUOT:
        return "free some of the disk quota, or choose a directory on another disk";
    case EFBIG:
        return "raise the file size limit (ulimit -f), or choose a directory on a file system "
               "that allows larger files";
    case EIO:
        return "the disk is failing: see the system log, and choose a directory on "
               "another disk";
    default:
        return "choose another directory";
    }
}

void gbx_payload_init(gbx_payload *payload) {
    *payload = (gbx_payload){.fd = -1};
}

static void say_not_direct(const gbx_payload *payload) {
    gbx_log_info("writing %s/" GBX_PAYLOAD_FILE
                 ": the file system refuses direct writes; using the page cache",
                 payload->folder);
}

gbx_status gbx_payload_open(gbx_payload *payload, int folder_fd, const char *folder) {
    gbx_payload_init(payload);
    payload->folder = folder;
    payload->is_direct = true;
    payload->fd = openat(folder_fd, GBX_PAYLOAD_FILE, CREATE_FLAGS | O_DIRECT, FILE_MODE);
    if (payload->fd < 0 && errno == EINVAL) {
        payload->is_direct = false;
        /* A file system that refuses O_DIRECT may have created the file first. */
        unlinkat(folder_fd, GBX_PAYLOAD_FILE, 0);
        payload->fd = openat(folder_fd, GBX_PAYLOAD_FILE, CREATE_FLAGS, FILE_MODE);
        say_not_direct(payload);
    }
    payload->fd = gbx_above_standard_streams(payload->fd);
    if (payload->fd >= 0)
        return NULL;
    if (errno == EEXIST)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "creating %s/" GBX_PAYLOAD_FILE
                        ": the directory already holds a dump; choose another directory",
                        folder);
    return gbx_fail(GBX_IO, "creating %s/" GBX_PAYLOAD_FILE ": %s; %s", folder, strerror(errno),
                    gbx_disk_advice(errno));
}

void gbx_payload_close(gbx_payload *payload) {
    if (payload->fd >= 0)
        close(payload->fd);
    gbx_payload_init(payload);
}

uint64_t gbx_payload_reserve(gbx_payload *payload, uint64_t bytes) {
    uint64_t offset = payload->reserved_bytes;
    uint64_t rounded, end;
    /* A range that no file can hold is refused by the write. */
    if (!gbx_checked_align_up(bytes, GBX_STORE_PAGE_BYTES, &rounded) ||
        !gbx_checked_add_u64(offset, rounded, &end) || end > INT64_MAX)
        return UINT64_MAX - GBX_STORE_PAGE_BYTES + 1;
    payload->reserved_bytes = end;
    return offset;
}

/* Once refused, direct writes are not tried again. */
static bool turn_buffered(gbx_payload *payload) {
    int flags = fcntl(payload->fd, F_GETFL);
    if (flags < 0 || fcntl(payload->fd, F_SETFL, flags & ~O_DIRECT) != 0)
        return false;
    payload->is_direct = false;
    say_not_direct(payload);
    return true;
}

gbx_status gbx_payload_write(gbx_payload *payload, uint64_t offset, const void *pages,
                             uint64_t bytes) {
    size_t written;
    int error = gbx_pwrite_all(payload->fd, pages, bytes, offset, &written);
    /* Some file systems accept O_DIRECT and refuse the first write. */
    if (error == EINVAL && payload->is_direct && turn_buffered(payload)) {
        size_t rest;
        error = gbx_pwrite_all(payload->fd, (const char *)pages + written, bytes - written,
                               offset + written, &rest);
        written += rest;
    }
    if (error == 0)
        return NULL;
    payload->error = payload->error ? payload->error : error;
    return gbx_fail(GBX_LOST,
                    "writing payload, %" PRIu64 " bytes at offset %" PRIu64
                    " of %s/" GBX_PAYLOAD_FILE ": %s after %zu bytes; %s",
                    bytes, offset, payload->folder, strerror(error), written,
                    gbx_disk_advice(error));
}

gbx_status gbx_payload_sync(gbx_payload *payload) {
    int error = payload->fd < 0 ? 0 : gbx_sync_data(payload->fd);
    if (error == 0)
        return NULL;
    return gbx_fail(GBX_LOST, "flushing %s/" GBX_PAYLOAD_FILE " to disk: %s; %s", payload->folder,
                    strerror(error), gbx_disk_advice(error));
}

/* --- reading --- */

gbx_status gbx_payload_file_open(gbx_payload_file *file, const char *path) {
    file->path = path;
    /* Not blocking: a pipe without a writer is refused, not waited for. */
    file->fd = gbx_above_standard_streams(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file->fd < 0)
        return gbx_fail(errno == ENOENT || errno == ENOTDIR ? GBX_NOT_FOUND : GBX_IO,
                        "cannot open the payload %s: %s", path, strerror(errno));
    struct stat about;
    gbx_status status = NULL;
    if (fstat(file->fd, &about) != 0)
        status = gbx_fail(GBX_IO, "cannot read %s: %s", path, strerror(errno));
    else if (!S_ISREG(about.st_mode))
        status = gbx_fail(GBX_IO, "cannot read %s: it is not a regular file", path);
    if (status)
        gbx_payload_file_close(file);
    else
        file->bytes = (uint64_t)about.st_size;
    return status;
}

void gbx_payload_file_close(gbx_payload_file *file) {
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

gbx_status gbx_payload_file_read(const gbx_payload_file *file, uint64_t offset, void *bytes,
                                 size_t size) {
    size_t done = 0;
    int error =
        offset > INT64_MAX - size ? EOVERFLOW : gbx_pread_all(file->fd, bytes, size, offset, &done);
    if (!error && done == size)
        return NULL;
    return gbx_fail(GBX_IO, "cannot read %zu bytes at offset %" PRIu64 " of %s: %s", size - done,
                    offset + done, file->path,
                    error ? strerror(error) : "the file became shorter after it was opened");
}

bool gbx_payload_file_map(const gbx_payload_file *file, uint64_t offset, size_t size,
                          gbx_payload_map *out_map) {
    size_t before = offset % GBX_STORE_PAGE_BYTES;
    if (!gbx_range_is_inside(offset, size, file->bytes))
        return false;
    void *pages =
        mmap(NULL, before + size, PROT_READ, MAP_SHARED, file->fd, (off_t)(offset - before));
    if (pages == MAP_FAILED)
        return false;
    *out_map = (gbx_payload_map){(const unsigned char *)pages + before, pages, before + size};
    return true;
}

void gbx_payload_map_release(const gbx_payload_map *map) {
    munmap(map->pages, map->page_bytes);
}
