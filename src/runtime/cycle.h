/* Why graphs with explicit edges get stuck. Device code. */
#ifndef GBX_RUNTIME_CYCLE_H
#define GBX_RUNTIME_CYCLE_H

#include <stdint.h>

#include "runtime/graph_error.h"

/*
 * Walks from `stuck`, a task that has not completed, along `waits_for`: for each of `task_count`
 * tasks a task that it waits for and that has not completed, or GBX_WAITS_FOR_NONE. Returns 1
 * when the walk ends in a cycle: the error gets the lowest task of it, the task that this one waits
 * for, and the length. Else returns 0, and *out_last is the task that waits for none.
 */
#define GBX_WAITS_FOR_NONE UINT32_MAX
int gbx_find_cycle(const uint32_t *waits_for, uint32_t task_count, uint32_t stuck,
                   gbx_graph_error *error, uint32_t *out_last);

#endif
