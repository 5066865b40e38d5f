#include "runtime/cycle.h"

int gbx_find_cycle(const uint32_t *waits_for, uint32_t task_count, uint32_t stuck,
                   gbx_graph_error *error, uint32_t *out_last) {
    uint32_t at = stuck;
    /* After task_count steps the walk can only be inside a cycle. */
    for (uint32_t steps = 0; steps < task_count; ++steps) {
        *out_last = at;
        at = waits_for[at];
        if (at == GBX_WAITS_FOR_NONE)
            return 0;
    }
    uint32_t least = at;
    int64_t length = 0;
    uint32_t walker = at;
    do {
        if (walker < least)
            least = walker;
        ++length;
        walker = waits_for[walker];
    } while (walker != at);
    *error = (gbx_graph_error){.kind = GBX_GRAPH_CYCLE,
                               .func_id = GBX_NO_KERNEL,
                               .task = least,
                               .values = {waits_for[least], length}};
    return 1;
}
