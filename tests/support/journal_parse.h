/*
 * A journal as docs/format.md describes it, read with nothing of src/store: places of fields are
 * numbers here, checksums come from libxxhash.
 */
#ifndef GBX_TESTS_JOURNAL_PARSE_H
#define GBX_TESTS_JOURNAL_PARSE_H

#include "checks.h"

#include <stddef.h>
#include <stdint.h>

typedef struct parsed_block {
    size_t offset; /* of its head, in the file */
    size_t record_bytes;
    size_t record_count;
} parsed_block;

typedef struct parsed_journal {
    unsigned char *file;
    size_t file_bytes;
    size_t good_bytes; /* the end of the last whole block */
    parsed_block *blocks;
    size_t block_count;
    const unsigned char **records; /* in `file` */
    size_t record_count;
} parsed_journal;

/* Up to the last whole block. A file without a good header, a whole block whose records do not fill
 * it or are not as many as it says fails the test. */
void journal_parse(const char *path, parsed_journal *out_journal);
void journal_parse_free(parsed_journal *journal);

uint32_t journal_u32(const unsigned char *at);
uint64_t journal_u64(const unsigned char *at);

/* Of a record. */
unsigned journal_record_type(const unsigned char *record);
size_t journal_record_bytes(const unsigned char *record);

#endif
