/* The blocks of a journal, one after the other, each checked whole before its records are used. */
#ifndef GBX_STORE_JOURNAL_JOURNAL_BLOCKS_H
#define GBX_STORE_JOURNAL_JOURNAL_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/reader.h"

typedef struct gbx_journal_block {
    uint64_t offset;       /* of its header in the file */
    uint64_t record_bytes; /* of `records` */
    uint32_t record_count;
    uint64_t *records; /* room for GBX_BLOCK_MAX_BYTES, or for the file; the caller's */
} gbx_journal_block;

/* Why a block cannot be read; the text is set for all but GBX_STOP_END. */
typedef struct gbx_block_problem {
    gbx_reader_stop stop;
    uint64_t offset;
    char text[GBX_STOP_TEXT_BYTES];
} gbx_block_problem;

/* Checks a journal's header; blocks begin at *out_header_bytes. GBX_BAD_FORMAT when it is not that
 * of a journal, GBX_UNSUPPORTED when it is that of a newer version. */
GBX_MUST_USE gbx_status gbx_journal_check_header(int fd, const char *path,
                                                 uint64_t *out_header_bytes);

/*
 * Reads the block at `offset` of a file of `file_bytes`, as number `sequence`. *out_is_whole tells
 * whether it is there and every record in it makes sense; `out_problem` why not. Fails when the
 * system refuses to read.
 */
GBX_MUST_USE gbx_status gbx_journal_read_block(int fd, const char *path, uint64_t offset,
                                               uint64_t file_bytes, uint32_t sequence,
                                               gbx_journal_block *block, bool *out_is_whole,
                                               gbx_block_problem *out_problem);

#endif
