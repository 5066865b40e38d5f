/* The tasks of two dumps, matched, in graph order. */
#ifndef GBX_ANALYSIS_DIFF_DIFF_TASKS_H
#define GBX_ANALYSIS_DIFF_DIFF_TASKS_H

#include "analysis/diff/diff.h"

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

#endif
