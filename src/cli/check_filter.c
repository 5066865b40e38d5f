#include "cli/check_filter.h"

#include <fnmatch.h>

#include <glassbox/orchestration.h>

#include "text/filter_values.h"

void gbx_check_filter_add_kernel(gbx_check_filter *filter, struct argp_state *state,
                                 const char *text) {
    gbx_selection_names *names = &filter->kernels;
    if (names->count == GBX_SELECTION_VALUES_MAX)
        argp_error(state, "--kernel: more than %d values; take a glob such as 'soft*'",
                   GBX_SELECTION_VALUES_MAX);
    else
        names->items[names->count++] = text;
}

/* "0x..." is an id, anything else the number. */
void gbx_check_filter_add_task(gbx_check_filter *filter, struct argp_state *state,
                               const char *text) {
    bool is_id = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    gbx_selection_ranges *ranges = is_id ? &filter->task_ids : &filter->task_numbers;
    gbx_selection_range range;
    if (!gbx_filter_read_range(text, UINT64_MAX, &range.first, &range.last))
        argp_error(state,
                   "--task: \"%s\" is not expected; a number such as 17, a range such as 10..20, "
                   "or an id such as 0x11 is",
                   text);
    else if (ranges->count == GBX_SELECTION_VALUES_MAX)
        argp_error(state, "--task: more than %d values; take a range", GBX_SELECTION_VALUES_MAX);
    else
        ranges->items[ranges->count++] = range;
}

gbx_status gbx_check_filter_check(const gbx_check_filter *filter, const gbx_reader *reader) {
    bool is_told = gbx_reader_get_origin(reader)->told & GBX_TOLD_TASK_SEQ;
    if (filter->task_numbers.count == 0 || is_told)
        return NULL;
    return gbx_fail(GBX_INVALID_ARGUMENT,
                    "--task: this dump does not tell the numbers of its tasks; take an id such as "
                    "0x11");
}

static bool is_in(const gbx_selection_ranges *ranges, uint64_t value) {
    for (size_t i = 0; i < ranges->count; ++i)
        if (value >= ranges->items[i].first && value <= ranges->items[i].last)
            return true;
    return false;
}

static bool is_named(const gbx_selection_names *names, const gbx_run_info *run, uint32_t func_id) {
    const gbx_run_kernel *kernel =
        func_id == GBX_NO_KERNEL ? NULL : gbx_run_info_kernel(run, func_id);
    for (size_t i = 0; kernel && i < names->count; ++i)
        if (fnmatch(names->items[i], kernel->name, 0) == 0)
            return true;
    return false;
}

gbx_status gbx_check_filter_matches(const gbx_check_filter *filter, gbx_reader *reader,
                                    uint64_t task, bool *out_is_chosen) {
    gbx_record_task record;
    bool is_found = false;
    bool is_any = filter->task_numbers.count == 0 && filter->task_ids.count == 0;
    bool is_named_so = filter->kernels.count == 0;
    *out_is_chosen = is_any && is_named_so;
    if (*out_is_chosen)
        return NULL;
    GBX_TRY(gbx_reader_find_task(reader, task, &record, &is_found));
    for (size_t i = 0; is_found && i < GBX_SUBTASK_COUNT && !is_named_so; ++i)
        is_named_so = is_named(&filter->kernels, gbx_reader_run(reader), record.func_ids[i]);
    *out_is_chosen = is_named_so && (is_any || is_in(&filter->task_numbers, task) ||
                                     (is_found && is_in(&filter->task_ids, record.task_id)));
    return NULL;
}
