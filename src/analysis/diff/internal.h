/* What the parts of a comparison of two dumps share. */
#ifndef GBX_ANALYSIS_DIFF_INTERNAL_H
#define GBX_ANALYSIS_DIFF_INTERNAL_H

#include "analysis/diff/diff.h"

/* --- diff_tasks.c: the tasks of two dumps, matched, in graph order --- */

/* Numbers (task_seq) of a task in both dumps; GBX_DIFF_NONE if a dump has no record of it. */
typedef struct gbx_diff_task {
    uint64_t a;
    uint64_t b;
    uint64_t place; /* in graph order */
} gbx_diff_task;

typedef struct gbx_diff_tasks {
    gbx_diff_task *items;
    uint64_t count;
    gbx_diff_matching matching;
    uint64_t bad_edges;
} gbx_diff_tasks;

/* Graph order follows A's edges or, if A has none, B's. Freed by gbx_diff_tasks_free. */
GBX_MUST_USE gbx_status gbx_diff_tasks_match(gbx_entries *a, gbx_entries *b,
                                             gbx_diff_tasks *out_tasks);
void gbx_diff_tasks_free(gbx_diff_tasks *tasks);

/* Whether a task, given by an entry of each dump, can be the same: its kernels have the same names,
 * in any order, or a dump does not name them. */
bool gbx_diff_kernels_match(const gbx_reader *reader_a, const gbx_entry *a,
                            const gbx_reader *reader_b, const gbx_entry *b);

/* --- diff_pair.c: compares one record of each dump --- */

enum { GBX_DIFF_PIECE_BYTES = 128 * 1024 }; /* read at a time: both stay in the cache */

typedef struct gbx_diff_pair {
    const gbx_entry *a;
    const gbx_entry *b;
    const gbx_reader *reader_a;
    const gbx_reader *reader_b;
    const gbx_diff_options *options;
    unsigned char *pieces;                          /* two of GBX_DIFF_PIECE_BYTES */
    void (*on_read)(void *context, uint64_t bytes); /* more bytes of each; may be NULL */
    void *context;
    uint64_t read_bytes; /* out: of each */
} gbx_diff_pair;

/* Sets only verdict, reason, truncation, is_hashed and metrics of the record. */
GBX_MUST_USE gbx_status gbx_diff_pair_compare(gbx_diff_pair *pair, gbx_diff_record *record);

#endif
