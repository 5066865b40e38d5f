/* What the parts of a comparison of two dumps share. */
#ifndef GBX_ANALYSIS_DIFF_INTERNAL_H
#define GBX_ANALYSIS_DIFF_INTERNAL_H

#include "analysis/diff/diff.h"

/* --- diff_tasks.c: the tasks of two dumps, matched, in graph order --- */

/* Numbers (task_seq) of the task in both dumps; GBX_DIFF_NONE where one has no record of it. */
typedef struct gbx_diff_task {
    uint64_t a;
    uint64_t b;
    uint64_t place; /* what they are sorted by */
} gbx_diff_task;

typedef struct gbx_diff_tasks {
    gbx_diff_task *items;
    uint64_t count;
    gbx_diff_matching matching;
    uint64_t bad_edges;
} gbx_diff_tasks;

/* Graph order is that of A's edges or, where it has none, B's. Freed by gbx_diff_tasks_free. */
GBX_MUST_USE gbx_status gbx_diff_tasks_match(gbx_entries *a, gbx_entries *b,
                                             gbx_diff_tasks *out_tasks);
void gbx_diff_tasks_free(gbx_diff_tasks *tasks);

/* Whether the task can be the same in both: the names of its kernels, in any order, where both
 * tell them. The entries are of the task. */
bool gbx_diff_kernels_match(const gbx_reader *reader_a, const gbx_entry *a,
                            const gbx_reader *reader_b, const gbx_entry *b);

/* --- diff_pair.c: one record of each dump against the other --- */

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
