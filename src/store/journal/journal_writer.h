/*
 * tensor_dump.rec while it is written: records gather in a buffer and go out as blocks, each with
 * one call. One thread.
 *
 * Blocks are of GBX_JOURNAL_BLOCK_BYTES of records at most; a record that is longer is a block of
 * its own, up to GBX_BLOCK_MAX_BYTES. Room on the disk is taken ahead of the blocks, so that a disk
 * that payload has filled still takes what says so. The file is locked as journal_file.h says.
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

enum { GBX_JOURNAL_BLOCK_BYTES = 256 << 10 };
static_assert(GBX_JOURNAL_BLOCK_BYTES <= GBX_BLOCK_MAX_BYTES, "readers take no larger blocks");

/* The head of a journal, and that of a block of `record_count` records that are done. */
void gbx_journal_header_fill(gbx_journal_header *out_header);
void gbx_block_header_fill(gbx_block_header *out_header, const void *records, uint32_t record_bytes,
                           uint32_t record_count, uint32_t sequence);

/* The fields are the functions'. */
typedef struct gbx_journal_writer {
    int fd;                 /* -1 when there is no file */
    uint32_t sequence;      /* of the next block */
    uint32_t record_count;  /* in the buffer */
    uint32_t used_bytes;    /* likewise */
    char *buffer;           /* a block header, then records */
    uint64_t file_bytes;    /* of whole blocks */
    uint64_t taken_bytes;   /* room on the disk, as far as it is known */
    uint64_t started_bytes; /* that the system was asked to bring to the disk */
    const char *folder;     /* tensor_dump/, for messages; borrowed */
    gbx_status failure;     /* the first; nothing is written after it */
} gbx_journal_writer;

/* No file: it can be closed. */
void gbx_journal_writer_init(gbx_journal_writer *journal);

/*
 * Makes the file in a folder that does not hold it, with its header. `folder` is the name of
 * `folder_fd` and outlives the journal. Fails with GBX_INVALID_ARGUMENT when it is there, GBX_IO
 * when the system refuses.
 */
GBX_MUST_USE gbx_status gbx_journal_writer_open(gbx_journal_writer *journal, int folder_fd,
                                                const char *folder);
/* Records that were not flushed are gone. */
void gbx_journal_writer_close(gbx_journal_writer *journal);

/* Writes a full block; false, with `failure` set, when that fails or a record is too long. */
GBX_MUST_USE bool gbx_journal_writer_make_room(gbx_journal_writer *journal, uint32_t words);

/* Room for a record, zero but for its type and words; NULL when the journal has failed. */
static inline void *gbx_journal_writer_append(gbx_journal_writer *journal, gbx_record_type type,
                                              uint32_t words) {
    if ((uint64_t)journal->used_bytes + (uint64_t)words * 8 > GBX_JOURNAL_BLOCK_BYTES ||
        journal->failure) {
        if (!gbx_journal_writer_make_room(journal, words))
            return NULL;
    }
    char *record = journal->buffer + sizeof(gbx_block_header) + journal->used_bytes;
    memset(record, 0, (size_t)words * 8);
    gbx_record *head = (gbx_record *)(void *)record;
    head->type = (uint8_t)type;
    head->words = words;
    journal->used_bytes += words * 8;
    journal->record_count += 1;
    return record;
}

/* Hands all records to the system. A failure is the first one of the journal, GBX_LOST. */
GBX_MUST_USE gbx_status gbx_journal_writer_flush(gbx_journal_writer *journal);

/*
 * The end: flushes, gives back room that was taken ahead, makes all of it durable, and lets readers
 * lock it. All of it is tried whatever fails; GBX_LOST then.
 */
GBX_MUST_USE gbx_status gbx_journal_writer_sync(gbx_journal_writer *journal);

#endif
