#include "store/journal/journal_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/io.h"
#include "base/log.h"
#include "base/memory.h"
#include "store/journal/block_range.h"
#include "store/payload/payload.h"

enum {
    CREATE_FLAGS = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
    FILE_MODE = 0666,
    BUFFER_BYTES = GBX_JOURNAL_RECORDS_AT + (int)GBX_BLOCK_MAX_BYTES,
    HEADROOM_BYTES = 1 << 20, /* on disk, for the blocks that record a full disk */
    HEADROOM_STEP_BYTES = 1 << 20,
    LAST_BYTES = 16 << 10, /* ...and for a last block, where not even those have room */
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

/* A part of the block may be in the file: gbx_journal_writer_sync removes it, and readers detect
 * it.
 */
static void fail_block(gbx_journal_writer *journal, int error) {
    journal->failure =
        gbx_fail(GBX_LOST,
                 "writing block %" PRIu32 ", %" PRIu32 " records at offset %" PRIu64
                 " of %s/" GBX_JOURNAL_FILE ": %s; the records before it are kept; %s",
                 journal->sequence, journal->record_count, journal->file_bytes, journal->folder,
                 strerror(error), gbx_disk_advice(error));
    journal->error = error;
}

/* False where the disk has no room for `bytes` at the end of the file. Other failures, such as a
 * file system that cannot do it, are no reason not to write. */
static bool take_room(gbx_journal_writer *journal, uint64_t bytes, int *out_error) {
    *out_error = 0;
    if (fallocate(journal->fd, FALLOC_FL_KEEP_SIZE, (off_t)journal->file_bytes, (off_t)bytes) == 0)
        journal->taken_bytes = journal->file_bytes + bytes;
    else if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)
        *out_error = errno;
    return *out_error == 0;
}

/*
 * Allocates ahead: `bytes` for the block that is written next, headroom after it (on a disk that is
 * nearly full up to a third of the rest), and at least room for a last block. Returns an errno if
 * there is not even that: the room for the last block, taken before, stays.
 */
static int prepare_block(gbx_journal_writer *journal, uint64_t bytes) {
    int error;
    if (journal->is_last || journal->file_bytes + bytes + HEADROOM_BYTES <= journal->taken_bytes)
        return 0;
    struct statvfs disk;
    uint64_t free_bytes =
        fstatvfs(journal->fd, &disk) == 0 ? (uint64_t)disk.f_bavail * disk.f_frsize : UINT64_MAX;
    for (uint64_t more = HEADROOM_BYTES + HEADROOM_STEP_BYTES; more > LAST_BYTES; more /= 2)
        if (more <= free_bytes / 3 && take_room(journal, bytes + more, &error))
            return 0;
    return take_room(journal, bytes + LAST_BYTES, &error) ? 0 : error;
}

/* Puts RANGE, where a block has one, and the header right before the records. Returns the header
 * and the size of all. */
static const char *frame_block(gbx_journal_writer *journal, size_t *out_bytes) {
    char *begin = journal->buffer + GBX_JOURNAL_RECORDS_AT;
    uint32_t bytes = journal->used_bytes;
    bool has_range =
        journal->sequence > 0 && bytes <= GBX_BLOCK_MAX_BYTES - sizeof(gbx_record_range);
    if (has_range) {
        begin -= sizeof(gbx_record_range);
        gbx_block_range_make(begin + sizeof(gbx_record_range), bytes,
                             (gbx_record_range *)(void *)begin);
        bytes += (uint32_t)sizeof(gbx_record_range);
    }
    gbx_block_header *header = (gbx_block_header *)(void *)begin - 1;
    gbx_block_header_fill(header, begin, bytes, journal->record_count + has_range,
                          journal->sequence);
    *out_bytes = sizeof *header + bytes;
    return (const char *)header;
}

static bool write_block(gbx_journal_writer *journal) {
    size_t written, bytes;
    const char *block = frame_block(journal, &bytes);
    int error = prepare_block(journal, bytes);
    if (!error)
        error = gbx_pwrite_all(journal->fd, block, bytes, journal->file_bytes, &written);
    if (error) {
        fail_block(journal, error);
        return false;
    }
    journal->file_bytes += bytes;
    journal->sequence += 1;
    journal->record_count = 0;
    journal->used_bytes = 0;
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

gbx_status gbx_journal_writer_begin_last(gbx_journal_writer *journal) {
    gbx_status failure = journal->failure;
    journal->failure = NULL;
    journal->is_last = true;
    journal->used_bytes = journal->record_count = 0;
    return failure;
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
