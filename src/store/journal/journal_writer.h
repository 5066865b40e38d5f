/*
 * Writing tensor_dump.rec: records gather in a buffer and are written as blocks, one call each. One
 * thread.
 *
 * A block has at most GBX_JOURNAL_BLOCK_BYTES of records; a longer record gets its own block, up to
 * GBX_BLOCK_MAX_BYTES. Before them comes a RANGE, except in the first block, which begins with RUN,
 * and in one that would become too long. Disk space is allocated ahead of the blocks, so that the
 * journal can still record losses when payload has filled the disk, and how the run ended when the
 * journal has, too. The file is locked as journal_file.h says.
 */
#ifndef GBX_STORE_JOURNAL_JOURNAL_WRITER_H
#define GBX_STORE_JOURNAL_JOURNAL_WRITER_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/status.h"
#include "store/journal/format.h"

#define GBX_JOURNAL_FILE "tensor_dump.rec"

enum {
    GBX_JOURNAL_BLOCK_BYTES = 256 << 10,
    GBX_JOURNAL_RECORDS_AT = sizeof(gbx_block_header) + sizeof(gbx_record_range) /* in the buffer */
};
static_assert(GBX_JOURNAL_BLOCK_BYTES + sizeof(gbx_record_range) <= GBX_BLOCK_MAX_BYTES,
              "readers take no larger blocks");

/* Fills the header of a journal, and that of a block of `record_count` finished records. */
void gbx_journal_header_fill(gbx_journal_header *out_header);
void gbx_block_header_fill(gbx_block_header *out_header, const void *records, uint32_t record_bytes,
                           uint32_t record_count, uint32_t sequence);

/* Private to the functions. */
typedef struct gbx_journal_writer {
    int fd;                 /* -1 when there is no file */
    uint32_t sequence;      /* of the next block */
    uint32_t record_count;  /* in the buffer, without RANGE */
    uint32_t used_bytes;    /* of them */
    char *buffer;           /* room for a block header and RANGE, then records */
    uint64_t file_bytes;    /* of complete blocks */
    uint64_t taken_bytes;   /* allocated on disk, as far as known */
    uint64_t started_bytes; /* whose writeback was started */
    const char *folder;     /* tensor_dump/, for messages; borrowed */
    bool is_last;           /* only the room taken ahead is used */
    int error;              /* errno of the first block that could not be written; 0 */
    gbx_status failure;     /* the first; nothing is written after it */
} gbx_journal_writer;

/* Without a file; may be closed. */
void gbx_journal_writer_init(gbx_journal_writer *journal);

/*
 * Creates the file with its header. `folder` is the name of `folder_fd` and outlives the journal.
 * Fails with GBX_INVALID_ARGUMENT when the file exists, GBX_IO when the system refuses.
 */
GBX_MUST_USE gbx_status gbx_journal_writer_open(gbx_journal_writer *journal, int folder_fd,
                                                const char *folder);
/* Records that were not flushed are lost. */
void gbx_journal_writer_close(gbx_journal_writer *journal);

/* Writes the current block; false, with `failure` set, when that fails or the record is too
 * long. */
GBX_MUST_USE bool gbx_journal_writer_make_room(gbx_journal_writer *journal, uint32_t words);

/* Room for a record, zero except for its type and words; NULL when the journal has failed. */
static inline void *gbx_journal_writer_append(gbx_journal_writer *journal, gbx_record_type type,
                                              uint32_t words) {
    if ((uint64_t)journal->used_bytes + (uint64_t)words * 8 > GBX_JOURNAL_BLOCK_BYTES ||
        journal->failure) {
        if (!gbx_journal_writer_make_room(journal, words))
            return NULL;
    }
    char *record = journal->buffer + GBX_JOURNAL_RECORDS_AT + journal->used_bytes;
    memset(record, 0, (size_t)words * 8);
    gbx_record *head = (gbx_record *)(void *)record;
    head->type = (uint8_t)type;
    head->words = words;
    journal->used_bytes += words * 8;
    journal->record_count += 1;
    return record;
}

/* Hands all records to the system. A failure is the journal's first one, GBX_LOST. */
GBX_MUST_USE gbx_status gbx_journal_writer_flush(gbx_journal_writer *journal);

/* After a failure, which the caller now owns: drops the records that were not written, so that one
 * more block, of a few KiB, can be tried in the room that was taken for it ahead. */
GBX_MUST_USE gbx_status gbx_journal_writer_begin_last(gbx_journal_writer *journal);

/*
 * Flushes, releases disk space allocated ahead, makes everything durable, and lets readers lock it.
 * Tries all of it even if a step fails; then GBX_LOST.
 */
GBX_MUST_USE gbx_status gbx_journal_writer_sync(gbx_journal_writer *journal);

#endif
