/* Which tasks read what some tasks left, directly or through what others made of it; and whose
 * outputs a task has read, in the same way. */
#ifndef GBX_ANALYSIS_DOWNSTREAM_H
#define GBX_ANALYSIS_DOWNSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/entries.h"
#include "analysis/graph.h"

/*
 * Follows memory from the outputs of `tasks` (task_seq) through the graph: a task that reads a byte
 * of it is downstream, and so are its outputs; what another task writes over it is not. *out_tasks
 * are task_seq in graph order, without `tasks`, freed by the caller. *out_is_complete is false if
 * views in too many pieces were left out, or the dump has no addresses.
 *
 * The reader must be open with ARGUMENTS. Only what the dump has records of can be followed.
 */
GBX_MUST_USE gbx_status gbx_downstream_find(gbx_entries *entries, const gbx_task_graph *graph,
                                            const uint64_t *tasks, size_t count,
                                            uint64_t **out_tasks, size_t *out_count,
                                            bool *out_is_complete);

typedef struct gbx_upstream {
    uint64_t task;  /* task_seq */
    uint64_t entry; /* its first output of which a byte was read */
} gbx_upstream;

/* The other way round: tasks of which `task` is downstream, the last in graph order first. */
GBX_MUST_USE gbx_status gbx_upstream_find(gbx_entries *entries, const gbx_task_graph *graph,
                                          uint64_t task, gbx_upstream **out_tasks,
                                          size_t *out_count, bool *out_is_complete);

#endif
