#include "store/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glassbox/kernel.h>

#include "base/checked.h"
#include "base/io.h"
#include "base/memory.h"
#include "store/journal/journal_writer.h"
#include "store/manifest/manifest.h"
#include "store/payload/dedup.h"
#include "store/payload/payload.h"

#define FOLDER "tensor_dump"

struct gbx_store {
    char *directory; /* of the dump */
    char *folder;    /* tensor_dump/ in it */
    int folder_fd;
    bool has_tensors;
    bool has_args;
    bool is_finished;
    gbx_record_sums sums;
    gbx_payload payload;
    gbx_journal_writer journal;
    gbx_dedup dedup;
    uint64_t announced;         /* dtypes, a bit each */
    gbx_status failure;         /* the first */
    gbx_status journal_failure; /* what is reported of a journal that goes on with a last block */
};

/* --- making it --- */

static gbx_status make_directory(const char *path) {
    if (mkdir(path, 0777) == 0)
        return NULL;
    int error = errno;
    struct stat found;
    if (stat(path, &found) == 0 && S_ISDIR(found.st_mode))
        return NULL;
    return gbx_fail(GBX_IO, "creating the directory %s: %s; choose another directory", path,
                    error == EEXIST ? "a file has that name" : strerror(error));
}

/* `path` is modified during the call. */
static gbx_status make_directories(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        gbx_status status = make_directory(path);
        *slash = '/';
        GBX_TRY(status);
    }
    return make_directory(path);
}

/* Our files, and those of other tools that use the same names. */
static gbx_status check_is_free(const gbx_store *store) {
    static const char *const names[] = {GBX_JOURNAL_FILE, "tensor_dump.json", GBX_PAYLOAD_FILE,
                                        "args_dump.json", "kernel_args_dump.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        struct stat found;
        if (fstatat(store->folder_fd, names[i], &found, AT_SYMLINK_NOFOLLOW) == 0)
            return gbx_fail(
                GBX_INVALID_ARGUMENT,
                "creating a dump: %s/%s exists, so %s already holds a dump; choose another "
                "directory",
                store->folder, names[i], store->directory);
    }
    return NULL;
}

static gbx_status open_folder(gbx_store *store, const char *directory) {
    if (!directory || directory[0] == '\0')
        return gbx_fail(GBX_INVALID_ARGUMENT, "creating a dump: no directory is given");
    store->directory = strdup(directory);
    if (!store->directory || asprintf(&store->folder, "%s/" FOLDER, directory) < 0) {
        store->folder = NULL;
        return gbx_fail_memory("creating a dump");
    }
    GBX_TRY(make_directories(store->folder));
    store->folder_fd =
        gbx_above_standard_streams(open(store->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (store->folder_fd < 0)
        return gbx_fail(GBX_IO, "opening the directory %s: %s; choose another directory",
                        store->folder, strerror(errno));
    return check_is_free(store);
}

static uint32_t words_with_text(size_t fixed_bytes, size_t text_bytes) {
    return (uint32_t)((fixed_bytes + text_bytes + 7) / 8);
}

/* In its own block, at once, so that the dump of a run killed early can be identified. */
static gbx_status append_run(gbx_store *store, const char *json) {
    size_t bytes = json ? strlen(json) : 0;
    if (bytes > GBX_BLOCK_MAX_BYTES - sizeof(gbx_record_run))
        return gbx_fail(
            GBX_INVALID_ARGUMENT,
            "creating a dump: the description of the run has %zu bytes, but the journal takes at "
            "most %zu; shorten the names and signatures of kernels",
            bytes, GBX_BLOCK_MAX_BYTES - sizeof(gbx_record_run));
    gbx_record_run *run =
        gbx_store_append(store, GBX_RECORD_RUN, words_with_text(sizeof *run, bytes));
    if (run) {
        run->head.stage = GBX_STAGE_NONE;
        run->head.arg_index = GBX_ARG_NONE;
        run->bytes = bytes;
        if (bytes)
            memcpy(run + 1, json, bytes);
    }
    gbx_status status = gbx_store_flush(store);
    if (!status)
        return NULL;
    gbx_status refused = gbx_fail(GBX_IO, "%s", gbx_status_message(status));
    gbx_status_free(status);
    return refused;
}

static void remove_files(const gbx_store *store) {
    if (store->payload.fd >= 0)
        unlinkat(store->folder_fd, GBX_PAYLOAD_FILE, 0);
    unlinkat(store->folder_fd, GBX_JOURNAL_FILE, 0);
    rmdir(store->folder); /* if it is empty */
}

/* Removes what was created before a failure. */
static gbx_status open_files(gbx_store *store, const gbx_store_config *config) {
    gbx_status status = gbx_journal_writer_open(&store->journal, store->folder_fd, store->folder);
    if (status)
        return status;
    status = append_run(store, config->run_json);
    if (!status && config->has_tensors)
        status = gbx_payload_open(&store->payload, store->folder_fd, store->folder);
    if (!status && config->has_tensors && config->is_deduplicated)
        status = gbx_dedup_open(&store->dedup);
    if (status)
        remove_files(store);
    return status;
}

gbx_status gbx_store_create(const gbx_store_config *config, gbx_store **out_store) {
    *out_store = NULL;
    gbx_store *store = calloc(1, sizeof *store);
    if (!store)
        return gbx_fail_memory("creating a dump");
    store->folder_fd = -1;
    store->has_tensors = config->has_tensors;
    store->has_args = config->has_args;
    gbx_payload_init(&store->payload);
    gbx_journal_writer_init(&store->journal);
    gbx_status status = open_folder(store, config->directory);
    if (!status)
        status = open_files(store, config);
    if (status)
        gbx_store_destroy(store);
    else
        *out_store = store;
    return status;
}

void gbx_store_discard(gbx_store *store) {
    remove_files(store);
    gbx_store_destroy(store);
}

void gbx_store_destroy(gbx_store *store) {
    if (!store)
        return;
    gbx_payload_close(&store->payload);
    gbx_journal_writer_close(&store->journal);
    gbx_dedup_close(&store->dedup);
    if (store->folder_fd >= 0)
        close(store->folder_fd);
    gbx_status_free(store->failure);
    gbx_status_free(store->journal_failure);
    free(store->folder);
    free(store->directory);
    free(store);
}

/* --- failures --- */

/* Keeps a copy if it is the first. */
static void keep_failure(gbx_store *store, gbx_status failure) {
    if (failure && !store->failure)
        store->failure = gbx_fail(gbx_status_code(failure), "%s", gbx_status_message(failure));
}

gbx_status gbx_store_failure(const gbx_store *store) {
    return store->failure;
}

/* --- payload --- */

uint64_t gbx_store_reserve(gbx_store *store, uint64_t bytes) {
    return gbx_payload_reserve(&store->payload, bytes);
}

gbx_status gbx_store_write(gbx_store *store, uint64_t offset, const void *pages, uint64_t bytes) {
    gbx_status status;
    uint64_t bits = offset | bytes | (uint64_t)(uintptr_t)pages;
    if (store->payload.fd >= 0 && bits % GBX_STORE_PAGE_BYTES == 0 &&
        gbx_range_is_inside(offset, bytes, store->payload.reserved_bytes))
        status = gbx_payload_write(&store->payload, offset, pages, bytes);
    else
        status = gbx_fail(GBX_INTERNAL,
                          "writing payload, %" PRIu64 " bytes at offset %" PRIu64 " from %p: "
                          "not complete pages of a reserved range of %s; report this",
                          bytes, offset, pages, store->folder);
    keep_failure(store, status);
    return status;
}

bool gbx_store_find(gbx_store *store, gbx_hash128 hash, uint64_t bytes, uint64_t *out_offset) {
    return gbx_dedup_find(&store->dedup, hash, bytes, out_offset);
}

void gbx_store_remember(gbx_store *store, gbx_hash128 hash, uint64_t bytes, uint64_t offset) {
    gbx_dedup_remember(&store->dedup, hash, bytes, offset);
}

/* --- journal --- */

void *gbx_store_append(gbx_store *store, gbx_record_type type, uint32_t words) {
    void *record = gbx_journal_writer_append(&store->journal, type, words);
    if (!record)
        keep_failure(store, store->journal.failure);
    return record;
}

void gbx_store_announce_dtype(gbx_store *store, uint32_t dtype) {
    if (dtype < GBX_RECORD_FIRST_DTYPE || dtype >= GBX_DTYPE_COUNT || store->announced >> dtype & 1)
        return;
    store->announced |= UINT64_C(1) << dtype;
    gbx_store_append(store, (gbx_record_type)GBX_RECORD_OF_DTYPE(dtype), sizeof(gbx_record) / 8);
}

gbx_status gbx_store_flush(gbx_store *store) {
    gbx_status status = gbx_journal_writer_flush(&store->journal);
    keep_failure(store, status);
    return status;
}

uint32_t gbx_store_block_count(const gbx_store *store) {
    return store->journal.sequence;
}

int gbx_store_disk_error(const gbx_store *store) {
    return store->payload.error ? store->payload.error : store->journal.error;
}

void gbx_store_begin_last(gbx_store *store) {
    store->journal_failure =
        gbx_status_first(store->journal_failure, gbx_journal_writer_begin_last(&store->journal));
}

/* --- the end --- */

/* If it fails, the sync of the journal reports it. */
static void append_end(gbx_store *store, const gbx_record_end *end, const char *text,
                       const gbx_record_outcome *outcome, bool is_durable) {
    const gbx_record_sums *sums = &store->sums;
    const size_t tail_bytes = outcome ? sizeof *outcome + sizeof *sums : 0;
    size_t bytes = text ? strlen(text) : 0;
    if (bytes > GBX_BLOCK_MAX_BYTES - sizeof *end - tail_bytes)
        bytes = GBX_BLOCK_MAX_BYTES - sizeof *end - tail_bytes;
    uint32_t text_end = words_with_text(sizeof *end, bytes);
    uint32_t words = text_end + (uint32_t)(tail_bytes / 8);
    gbx_record_end *record = gbx_store_append(store, GBX_RECORD_END, words);
    if (!record)
        return;
    *record = *end;
    record->head.type = GBX_RECORD_END;
    record->head.words = words;
    if (!is_durable)
        record->head.flags &= (uint16_t)~GBX_FLAG_COMPLETE;
    record->bytes = bytes;
    if (bytes)
        memcpy(record + 1, text, bytes);
    if (outcome)
        memcpy((uint64_t *)(void *)record + text_end, outcome, sizeof *outcome);
    if (outcome)
        memcpy((uint64_t *)(void *)record + text_end + sizeof *outcome / 8, sums, sizeof *sums);
}

/* Ignores a directory that cannot be opened or synced on this file system. */
static gbx_status sync_directory(const gbx_store *store, const char *relative) {
    int fd = openat(store->folder_fd, relative, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    int error = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    if (error == 0 || error == EINVAL || error == EROFS || error == EOPNOTSUPP)
        return NULL;
    return gbx_fail(GBX_LOST, "flushing the directory %s/%s to disk: %s; %s", store->folder,
                    relative, strerror(error), gbx_disk_advice(error));
}

/* Frees the dedup table first, because the manifests need memory. */
static gbx_status write_manifests(gbx_store *store) {
    gbx_dedup_close(&store->dedup);
    gbx_status status = gbx_manifest_write(store->directory, store->has_tensors, store->has_args);
    if (!status)
        return NULL;
    gbx_code code = gbx_status_code(status);
    gbx_status lasting = gbx_fail(code == GBX_IO ? GBX_LOST : code,
                                  "%s; the records are kept in %s/" GBX_JOURNAL_FILE
                                  ": run glassbox recover %s when that is fixed",
                                  gbx_status_message(status), store->folder, store->directory);
    gbx_status_free(status);
    return lasting;
}

void gbx_store_set_sums(gbx_store *store, const gbx_record_sums *sums) {
    store->sums = *sums;
}

gbx_status gbx_store_finish(gbx_store *store, const gbx_record_end *end, const char *status_text,
                            const gbx_record_outcome *outcome) {
    if (store->is_finished)
        return gbx_fail(GBX_INTERNAL, "finishing the dump %s: it is already finished; report this",
                        store->directory);
    store->is_finished = true;
    gbx_status status = gbx_payload_sync(&store->payload);
    gbx_status flushed = gbx_journal_writer_flush(&store->journal);
    if (flushed)
        gbx_store_begin_last(store); /* END says that the dump is not complete */
    status = gbx_status_first(status, flushed);
    append_end(store, end, status_text, outcome, status == NULL);
    status = gbx_status_first(status, gbx_journal_writer_sync(&store->journal));
    status = gbx_status_first(store->journal_failure, status);
    store->journal_failure = NULL;
    /* The folder, the dump's directory and its entry in the parent: all three may be new. */
    status = gbx_status_first(status, sync_directory(store, "."));
    status = gbx_status_first(status, sync_directory(store, ".."));
    status = gbx_status_first(status, sync_directory(store, "../.."));
    status = gbx_status_first(status, write_manifests(store));
    status = gbx_status_first(status, sync_directory(store, "."));
    keep_failure(store, status);
    return status;
}
