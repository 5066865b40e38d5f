#include "store/journal/journal_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/io.h"
#include "base/log.h"
#include "base/memory.h"
#include "store/payload/payload.h"

enum {
    CREATE_FLAGS = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
    FILE_MODE = 0666,
    BUFFER_BYTES = (int)(sizeof(gbx_block_header) + GBX_BLOCK_MAX_BYTES),
    HEADROOM_BYTES = 1 << 20, /* on disk, for the blocks that record a full disk */
    HEADROOM_STEP_BYTES = 1 << 20,
    START_STEP_BYTES = 1 << 20,
    PAGE_BYTES = 4096
};

void gbx_journal_header_fill(gbx_journal_header *out_header) {
    *out_header =
        (gbx_journal_header){.version = GBX_JOURNAL_VERSION, .header_bytes = sizeof *out_header};
    memcpy(out_header->magic, GBX_JOURNAL_MAGIC, sizeof out_header->magic);
}

void gbx_block_header_fill(gbx_block_header *out_header, const void *records, uint32_t record_bytes,
                           uint32_t record_count, uint32_t sequence) {
    *out_header = (gbx_block_header){.magic = GBX_BLOCK_MAGIC,
                                     .record_bytes = record_bytes,
                                     .record_count = record_count,
                                     .sequence = sequence,
                                     .checksum = XXH3_64bits(records, record_bytes)};
    out_header->head_check = XXH3_64bits(out_header, offsetof(gbx_block_header, head_check));
}

void gbx_journal_writer_init(gbx_journal_writer *journal) {
    *journal = (gbx_journal_writer){.fd = -1};
}

/* See journal_file.h. Best effort: some file systems have no locks. */
static void lock(int fd, int operation) {
    if (flock(fd, operation | LOCK_NB) != 0)
        gbx_log_debug("locking " GBX_JOURNAL_FILE ": %s", strerror(errno));
}

static gbx_status create_file(gbx_journal_writer *journal, int folder_fd) {
    gbx_journal_header header;
    size_t written;
    journal->fd =
        gbx_above_standard_streams(openat(folder_fd, GBX_JOURNAL_FILE, CREATE_FLAGS, FILE_MODE));
    if (journal->fd < 0 && errno == EEXIST)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "creating %s/" GBX_JOURNAL_FILE
                        ": the directory already holds a dump; choose another directory",
                        journal->folder);
    if (journal->fd < 0)
        return gbx_fail(GBX_IO, "creating %s/" GBX_JOURNAL_FILE ": %s; %s", journal->folder,
                        strerror(errno), gbx_disk_advice(errno));
    lock(journal->fd, LOCK_EX);
    gbx_journal_header_fill(&header);
    int error = gbx_pwrite_all(journal->fd, &header, sizeof header, 0, &written);
    if (error)
        return gbx_fail(GBX_IO, "writing the header of %s/" GBX_JOURNAL_FILE ": %s; %s",
                        journal->folder, strerror(error), gbx_disk_advice(error));
    journal->file_bytes = sizeof header;
    return NULL;
}

gbx_status gbx_journal_writer_open(gbx_journal_writer *journal, int folder_fd, const char *folder) {
    gbx_journal_writer_init(journal);
    journal->folder = folder;
    journal->buffer = malloc(BUFFER_BYTES);
    if (!journal->buffer)
        return gbx_fail_memory("creating %s/" GBX_JOURNAL_FILE, folder);
    gbx_status status = create_file(journal, folder_fd);
    if (status && journal->fd >= 0) /* it would look like a dump */
        unlinkat(folder_fd, GBX_JOURNAL_FILE, 0);
    if (status)
        gbx_journal_writer_close(journal);
    return status;
}

void gbx_journal_writer_close(gbx_journal_writer *journal) {
    if (journal->fd >= 0)
        close(journal->fd);
    free(journal->buffer);
    gbx_status_free(journal->failure);
    gbx_journal_writer_init(journal);
}

/* Removes the partial block: the journal ends with a complete one. */
static void fail_block(gbx_journal_writer *journal, int error) {
    journal->failure =
        gbx_fail(GBX_LOST,
                 "writing block %" PRIu32 ", %" PRIu32 " records at offset %" PRIu64
                 " of %s/" GBX_JOURNAL_FILE ": %s; the records before it are kept; %s",
                 journal->sequence, journal->record_count, journal->file_bytes, journal->folder,
                 strerror(error), gbx_disk_advice(error));
    if (ftruncate(journal->fd, (off_t)journal->file_bytes) != 0)
        return; /* readers detect a cut block, too */
}

static bool write_block(gbx_journal_writer *journal) {
    size_t written;
    size_t bytes = sizeof(gbx_block_header) + journal->used_bytes;
    gbx_block_header_fill((gbx_block_header *)(void *)journal->buffer,
                          journal->buffer + sizeof(gbx_block_header), journal->used_bytes,
                          journal->record_count, journal->sequence);
    int error = gbx_pwrite_all(journal->fd, journal->buffer, bytes, journal->file_bytes, &written);
    if (error) {
        fail_block(journal, error);
        return false;
    }
    journal->file_bytes += bytes;
    journal->sequence += 1;
    journal->record_count = 0;
    journal->used_bytes = 0;
    /* Allocates ahead. Best effort: without room, the writes fail. */
    uint64_t wanted = journal->file_bytes + HEADROOM_BYTES;
    if (wanted > journal->taken_bytes &&
        fallocate(journal->fd, FALLOC_FL_KEEP_SIZE, (off_t)journal->file_bytes,
                  HEADROOM_BYTES + HEADROOM_STEP_BYTES) == 0)
        journal->taken_bytes = wanted + HEADROOM_STEP_BYTES;
    /* Starts writeback during the run, so that the end need not wait for it. Leaves out the last
     * page, because the next block continues in it. */
    uint64_t end = journal->file_bytes & ~(uint64_t)(PAGE_BYTES - 1);
    if (end >= journal->started_bytes + START_STEP_BYTES) {
        sync_file_range(journal->fd, (off_t)journal->started_bytes,
                        (off_t)(end - journal->started_bytes), SYNC_FILE_RANGE_WRITE);
        journal->started_bytes = end;
    }
    return true;
}

bool gbx_journal_writer_make_room(gbx_journal_writer *journal, uint32_t words) {
    if (journal->failure)
        return false;
    if (words > GBX_BLOCK_MAX_BYTES / 8) {
        journal->failure = gbx_fail(GBX_INTERNAL,
                                    "appending to %s/" GBX_JOURNAL_FILE ": a record of %" PRIu32
                                    " words is longer than a block of %u bytes; report this",
                                    journal->folder, words, GBX_BLOCK_MAX_BYTES);
        return false;
    }
    return journal->used_bytes == 0 || write_block(journal);
}

gbx_status gbx_journal_writer_flush(gbx_journal_writer *journal) {
    if (!journal->failure && (journal->used_bytes == 0 || write_block(journal)))
        return NULL;
    return gbx_fail(gbx_status_code(journal->failure), "%s", gbx_status_message(journal->failure));
}

gbx_status gbx_journal_writer_sync(gbx_journal_writer *journal) {
    gbx_status status = gbx_journal_writer_flush(journal);
    int error = ftruncate(journal->fd, (off_t)journal->file_bytes) == 0 ? 0 : errno;
    journal->taken_bytes = 0;
    if (!error)
        error = gbx_sync_data(journal->fd);
    lock(journal->fd, LOCK_SH);
    if (!error)
        return status;
    return gbx_status_first(status,
                            gbx_fail(GBX_LOST, "flushing %s/" GBX_JOURNAL_FILE " to disk: %s; %s",
                                     journal->folder, strerror(error), gbx_disk_advice(error)));
}
