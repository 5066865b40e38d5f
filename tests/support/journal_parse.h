/*
 * Reads a journal as docs/format.md describes it, without src/store: offsets of fields are numbers,
 * checksums come from libxxhash.
 */
#ifndef GBX_TESTS_JOURNAL_PARSE_H
#define GBX_TESTS_JOURNAL_PARSE_H

#include "checks.h"

#include <stddef.h>
#include <stdint.h>

typedef struct parsed_block {
    size_t offset; /* of its head, in the file */
    size_t record_bytes;
    size_t record_count; /* without RANGE */
    bool has_range;
} parsed_block;

typedef struct parsed_journal {
    unsigned char *file;
    size_t file_bytes;
    size_t good_bytes; /* the end of the last complete block */
    parsed_block *blocks;
    size_t block_count;
    const unsigned char **records; /* in `file`; without RANGE */
    size_t record_count;
} parsed_journal;

/* Up to the last complete block. Fails the test if the header is invalid, if the records of a
 * complete block do not fill it or do not match its count, or if its RANGE is not true. */
void journal_parse(const char *path, parsed_journal *out_journal);
void journal_parse_free(parsed_journal *journal);

uint32_t journal_u32(const unsigned char *at);
uint64_t journal_u64(const unsigned char *at);

/* Of a record. */
unsigned journal_record_type(const unsigned char *record);
size_t journal_record_bytes(const unsigned char *record);

#endif
