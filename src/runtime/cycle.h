/* Why explicit graphs get stuck. Device code. */
#ifndef GBX_RUNTIME_CYCLE_H
#define GBX_RUNTIME_CYCLE_H

#include <stdint.h>

#include "runtime/graph_error.h"

/*
 * Follows tasks to one of those they wait for, until one comes a second time or waits for nobody.
 * `waits_for[task]` is a task that has not completed, or GBX_WAITS_FOR_NOBODY. True with a cycle:
 * the error gets its least task, the one that it waits for and the length; else *out_last is the
 * task that waits for nobody. `stuck` is any task that has not completed, of `task_count`.
 */
#define GBX_WAITS_FOR_NOBODY UINT32_MAX
int gbx_find_cycle(const uint32_t *waits_for, uint32_t task_count, uint32_t stuck,
                   gbx_graph_error *error, uint32_t *out_last);

#endif
