/* One record of each dump against the other. */
#ifndef GBX_ANALYSIS_DIFF_DIFF_PAIR_H
#define GBX_ANALYSIS_DIFF_DIFF_PAIR_H

#include "analysis/diff/diff.h"

enum { GBX_DIFF_PIECE_BYTES = 128 * 1024 }; /* of what is read: both stay in the cache */

typedef struct gbx_diff_pair {
    const gbx_entry *a;
    const gbx_entry *b;
    const gbx_reader *reader_a;
    const gbx_reader *reader_b;
    const gbx_diff_options *options;
    unsigned char *pieces;                          /* two of GBX_DIFF_PIECE_BYTES */
    void (*on_read)(void *context, uint64_t bytes); /* so many more of each; may be NULL */
    void *context;
    bool is_hashed;      /* out: equal by their hashes */
    uint64_t read_bytes; /* out: of each */
} gbx_diff_pair;

/* Fills verdict, reason, truncation and metrics; the rest of the record is left alone. */
GBX_MUST_USE gbx_status gbx_diff_pair_compare(gbx_diff_pair *pair, gbx_diff_record *record);

#endif
