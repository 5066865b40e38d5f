#include "analysis/selection.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>

#include <glassbox/orchestration.h>

#include "base/memory.h"
#include "text/names.h"

/* A selection, with what is the same for a kernel or a task computed once. */
typedef struct matcher {
    const gbx_selection *selection;
    const gbx_run_info *run;
    bool *kernels;  /* whether the names match, for each kernel of the run */
    bool has_task;  /* a task was seen: */
    uint64_t task;  /* its number */
    bool is_chosen; /* whether it matches */
} matcher;

static bool is_in(const gbx_selection_ranges *ranges, uint64_t value) {
    for (size_t i = 0; i < ranges->count; ++i)
        if (value >= ranges->items[i].first && value <= ranges->items[i].last)
            return true;
    return false;
}

static bool is_named(const gbx_selection_names *names, const char *name) {
    for (size_t i = 0; i < names->count; ++i)
        if (fnmatch(names->items[i], name, 0) == 0)
            return true;
    return false;
}

bool gbx_selection_is_given(const gbx_selection *s) {
    size_t values = s->kernels.count + s->funcs.count + s->task_numbers.count + s->task_ids.count +
                    s->args.count + s->arg_names.count;
    return values > 0 || s->roles || s->stages || s->kinds || s->dtypes;
}

/* --- tasks --- */

/* One kernel has to be both: of a name and of a func_id that were given. */
static bool matches_kernel(const matcher *m, uint32_t func_id) {
    const gbx_selection *selection = m->selection;
    const gbx_run_kernel *kernel = gbx_run_info_kernel(m->run, func_id);
    if (selection->funcs.count && !is_in(&selection->funcs, func_id))
        return false;
    return selection->kernels.count == 0 || (kernel && m->kernels[kernel - m->run->kernels]);
}

static bool matches_any_kernel(const matcher *m, const gbx_record_task *task) {
    if (m->selection->kernels.count == 0 && m->selection->funcs.count == 0)
        return true;
    for (size_t i = 0; task && i < GBX_SUBTASK_COUNT; ++i)
        if (task->func_ids[i] != GBX_NO_KERNEL && matches_kernel(m, task->func_ids[i]))
            return true;
    return false;
}

static bool matches_task(const matcher *m, uint64_t number, const gbx_record_task *task) {
    const gbx_selection *selection = m->selection;
    bool is_wanted = selection->task_numbers.count == 0 && selection->task_ids.count == 0;
    is_wanted = is_wanted || is_in(&selection->task_numbers, number) ||
                (task && is_in(&selection->task_ids, task->task_id));
    return is_wanted && matches_any_kernel(m, task);
}

/* --- arguments --- */

static bool has_bit(uint32_t bits, uint32_t number) {
    return bits == 0 || (bits >> number & 1u);
}

static bool matches_arg(const gbx_selection *selection, const gbx_entry *entry) {
    if (selection->args.count == 0 && selection->arg_names.count == 0)
        return true;
    return is_in(&selection->args, entry->head->arg_index) ||
           (entry->arg_name && is_named(&selection->arg_names, entry->arg_name));
}

static bool matches(matcher *m, const gbx_entry *entry) {
    const gbx_selection *selection = m->selection;
    if (!m->has_task || m->task != entry->head->task) {
        m->has_task = true;
        m->task = entry->head->task;
        m->is_chosen = matches_task(m, m->task, entry->task);
    }
    return m->is_chosen && has_bit(selection->roles, entry->head->role) &&
           has_bit(selection->stages, entry->head->stage) &&
           has_bit(selection->kinds, entry->tensor ? GBX_KIND_TENSOR : GBX_KIND_SCALAR) &&
           has_bit(selection->dtypes, entry->dtype) && matches_arg(selection, entry);
}

/* --- all --- */

gbx_selection_lack gbx_selection_find_lack(const gbx_selection *selection,
                                           const gbx_run_info *run) {
    if (run->kernel_count > 0)
        return GBX_SELECTION_LACKS_NOTHING;
    if (selection->kernels.count > 0)
        return GBX_SELECTION_LACKS_KERNEL_NAMES;
    return selection->arg_names.count > 0 ? GBX_SELECTION_LACKS_ARG_NAMES
                                          : GBX_SELECTION_LACKS_NOTHING;
}

/* From the first task that is asked for to the last: entries are in the order of their tasks. */
static void bound(const gbx_selection *selection, const gbx_entries *entries, uint64_t *out_begin,
                  uint64_t *out_end) {
    const gbx_selection_ranges *numbers = &selection->task_numbers;
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
    *out_begin = 0;
    *out_end = gbx_entries_count(entries);
    if (numbers->count == 0 || selection->task_ids.count > 0)
        return;
    for (size_t i = 0; i < numbers->count; ++i) {
        first = numbers->items[i].first < first ? numbers->items[i].first : first;
        last = numbers->items[i].last > last ? numbers->items[i].last : last;
    }
    *out_begin = gbx_entries_find(entries, first);
    if (last < UINT64_MAX)
        *out_end = gbx_entries_find(entries, last + 1);
}

static gbx_status collect(matcher *m, gbx_entries *entries, gbx_selected *selected) {
    uint64_t begin, end;
    bound(m->selection, entries, &begin, &end);
    for (uint64_t i = begin; i < end; ++i) {
        gbx_entry entry;
        GBX_TRY(gbx_entries_at(entries, i, &entry));
        if (matches(m, &entry))
            selected->indices[selected->count++] = i;
    }
    return NULL;
}

static gbx_status collect_matching(const gbx_selection *selection, gbx_entries *entries,
                                   gbx_selected *selected) {
    matcher m = {.selection = selection, .run = gbx_reader_run(gbx_entries_reader(entries))};
    m.kernels = calloc(m.run->kernel_count + 1, sizeof *m.kernels);
    if (!m.kernels)
        return gbx_fail_memory("selecting entries");
    for (size_t i = 0; i < m.run->kernel_count; ++i)
        m.kernels[i] = is_named(&selection->kernels, m.run->kernels[i].name);
    gbx_status status = collect(&m, entries, selected);
    free(m.kernels);
    return status;
}

gbx_status gbx_selection_apply(const gbx_selection *selection, gbx_entries *entries,
                               gbx_selected *out_selected) {
    uint64_t count = gbx_entries_count(entries);
    *out_selected = (gbx_selected){0};
    out_selected->indices = malloc((count + 1) * sizeof *out_selected->indices);
    if (!out_selected->indices)
        return gbx_fail_memory("selecting from %" PRIu64 " entries", count);
    if (!gbx_selection_is_given(selection)) {
        for (; out_selected->count < count; ++out_selected->count)
            out_selected->indices[out_selected->count] = out_selected->count;
        return NULL;
    }
    gbx_status status = collect_matching(selection, entries, out_selected);
    if (status) {
        free(out_selected->indices);
        *out_selected = (gbx_selected){0};
    }
    return status;
}
