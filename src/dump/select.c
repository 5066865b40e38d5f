#include "dump/select.h"

static bool has_bit(uint64_t bits, uint32_t index) {
    return index < 64 && (bits >> index & 1) != 0;
}

bool gbx_dump_filter_matches_task(const gbx_dump_filter *filter, uint64_t task,
                                  const uint32_t *func_ids) {
    bool has_func = !(filter->keys & GBX_FILTER_FUNC);
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT && !has_func; ++s)
        has_func = func_ids[s] < GBX_MAX_KERNELS &&
                   has_bit(filter->funcs[func_ids[s] / 64], func_ids[s] % 64);
    bool has_number = !(filter->keys & GBX_FILTER_TASK);
    /* The count comes through global memory. */
    uint32_t count =
        filter->range_count < GBX_FILTER_RANGES ? filter->range_count : GBX_FILTER_RANGES;
    for (uint32_t i = 0; i < count && has_func && !has_number; ++i)
        has_number = task >= filter->tasks[i].first && task <= filter->tasks[i].last;
    return has_func && has_number;
}

bool gbx_dump_filter_matches_argument(const gbx_dump_filter *filter,
                                      const gbx_dump_candidate *candidate) {
    uint32_t keys = filter->keys;
    return (!(keys & GBX_FILTER_ARG) || has_bit(filter->args, candidate->arg_index)) &&
           (!(keys & GBX_FILTER_ROLE) || has_bit(filter->roles, candidate->role)) &&
           (!(keys & GBX_FILTER_STAGE) || has_bit(filter->stages, candidate->stage)) &&
           (!(keys & GBX_FILTER_KIND) || has_bit(filter->kinds, candidate->kind)) &&
           (!(keys & GBX_FILTER_DTYPE) || has_bit(filter->dtypes, candidate->dtype));
}
