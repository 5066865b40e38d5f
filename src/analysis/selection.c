#include "analysis/selection.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "analysis/entry_order.h"
#include "base/float_bits.h"
#include "base/memory.h"
#include "text/names.h"

/* A selection, with results that are the same for a kernel or a task computed once. */
typedef struct matcher {
    const gbx_selection *selection;
    const gbx_run_info *run;
    bool *kernels;  /* for each kernel of the run, whether its name matches */
    bool has_task;  /* a task was seen: */
    uint64_t task;  /* the last one */
    bool is_chosen; /* whether that task matches */
} matcher;

bool gbx_selection_has_number(const gbx_selection_ranges *ranges, uint64_t value) {
    for (size_t i = 0; i < ranges->count; ++i)
        if (value >= ranges->items[i].first && value <= ranges->items[i].last)
            return true;
    return false;
}

bool gbx_selection_has_name(const gbx_selection_names *names, const char *name) {
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

/* The same kernel must match both the names and the func_ids. */
static bool matches_kernel(const matcher *m, uint32_t func_id) {
    const gbx_selection *selection = m->selection;
    const gbx_run_kernel *kernel = gbx_run_info_kernel(m->run, func_id);
    if (selection->funcs.count && !gbx_selection_has_number(&selection->funcs, func_id))
        return false;
    return selection->kernels.count == 0 || (kernel && m->kernels[kernel - m->run->kernels]);
}

static bool matches_number(const gbx_selection *selection, uint64_t task, const uint64_t *task_id) {
    if (selection->task_numbers.count == 0 && selection->task_ids.count == 0)
        return true;
    return gbx_selection_has_number(&selection->task_numbers, task) ||
           (task_id && gbx_selection_has_number(&selection->task_ids, *task_id));
}

static bool matches_any_kernel(const matcher *m, const gbx_record_task *task) {
    if (m->selection->kernels.count == 0 && m->selection->funcs.count == 0)
        return true;
    for (size_t i = 0; task && i < GBX_SUBTASK_COUNT; ++i)
        if (task->func_ids[i] != GBX_NO_KERNEL && matches_kernel(m, task->func_ids[i]))
            return true;
    return false;
}

/* --- arguments --- */

static bool has_bit(uint32_t bits, uint32_t number) {
    return bits == 0 || (bits >> number & 1u);
}

static bool matches_arg(const gbx_selection *selection, uint32_t arg_index, const char *name) {
    if (selection->args.count == 0 && selection->arg_names.count == 0)
        return true;
    return gbx_selection_has_number(&selection->args, arg_index) ||
           (name && gbx_selection_has_name(&selection->arg_names, name));
}

static bool matches(matcher *m, const gbx_entry *entry) {
    const gbx_selection *selection = m->selection;
    if (!m->has_task || m->task != entry->head->task) {
        m->has_task = true;
        m->task = entry->head->task;
        m->is_chosen =
            matches_number(selection, m->task, entry->task ? &entry->task->task_id : NULL) &&
            matches_any_kernel(m, entry->task);
    }
    return m->is_chosen && has_bit(selection->roles, entry->head->role) &&
           has_bit(selection->stages, entry->head->stage) &&
           has_bit(selection->kinds, entry->tensor ? GBX_KIND_TENSOR : GBX_KIND_SCALAR) &&
           has_bit(selection->dtypes, entry->dtype) &&
           matches_arg(selection, entry->head->arg_index, entry->arg_name);
}

/* --- entries --- */

gbx_selection_lack gbx_selection_find_lack(const gbx_selection *selection,
                                           const gbx_run_info *run) {
    if (run->kernel_count > 0)
        return GBX_SELECTION_LACKS_NOTHING;
    if (selection->kernels.count > 0)
        return GBX_SELECTION_LACKS_KERNEL_NAMES;
    return selection->arg_names.count > 0 ? GBX_SELECTION_LACKS_ARG_NAMES
                                          : GBX_SELECTION_LACKS_NOTHING;
}

/* The range of entries from the first selected task to the last; entries are sorted by task. */
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

/* The caller frees `kernels`. */
static gbx_status begin_matching(const gbx_selection *selection, const gbx_reader *reader,
                                 matcher *out_matcher) {
    const gbx_run_info *run = gbx_reader_run(reader);
    *out_matcher = (matcher){.selection = selection, .run = run};
    out_matcher->kernels = calloc(run->kernel_count + 1, sizeof *out_matcher->kernels);
    if (!out_matcher->kernels)
        return gbx_fail_memory("selecting entries");
    for (size_t i = 0; i < run->kernel_count; ++i)
        out_matcher->kernels[i] = gbx_selection_has_name(&selection->kernels, run->kernels[i].name);
    return NULL;
}

static gbx_status collect_matching(const gbx_selection *selection, gbx_entries *entries,
                                   gbx_selected *selected) {
    matcher m;
    GBX_TRY(begin_matching(selection, gbx_entries_reader(entries), &m));
    uint64_t begin, end;
    gbx_status status = NULL;
    bound(selection, entries, &begin, &end);
    for (uint64_t i = begin; !status && i < end; ++i) {
        gbx_entry entry;
        status = gbx_entries_at(entries, i, &entry);
        if (!status && matches(&m, &entry))
            selected->indices[selected->count++] = i;
    }
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

/* --- dispatches --- */

gbx_status gbx_dispatches_list(gbx_reader *reader, gbx_dispatches *out_dispatches) {
    uint64_t count = gbx_reader_get_totals(reader)->dispatches;
    uint64_t record_count = gbx_reader_count(reader);
    *out_dispatches = (gbx_dispatches){.reader = reader};
    out_dispatches->positions = malloc((count + 1) * sizeof *out_dispatches->positions);
    if (!out_dispatches->positions)
        return gbx_fail_memory("listing %" PRIu64 " dispatches", count);
    for (uint64_t i = 0; i < record_count && out_dispatches->count < count; ++i)
        if (gbx_reader_kind(reader, i) == GBX_INDEX_DISPATCHES)
            out_dispatches->positions[out_dispatches->count++] = i;
    return NULL;
}

void gbx_dispatches_free(gbx_dispatches *dispatches) {
    free(dispatches->positions);
    *dispatches = (gbx_dispatches){0};
}

gbx_status gbx_dispatches_at(const gbx_dispatches *dispatches, uint64_t index,
                             const gbx_record_dispatch **out_record) {
    const gbx_record *record = NULL;
    GBX_TRY(gbx_reader_at(dispatches->reader, dispatches->positions[index], &record));
    *out_record = (const gbx_record_dispatch *)record;
    return NULL;
}

const char *gbx_dispatch_arg_name(const gbx_run_info *run, const gbx_record_dispatch *dispatch,
                                  uint32_t arg_index) {
    const uint32_t func_ids[GBX_SUBTASK_COUNT] = {dispatch->func_id, GBX_NO_KERNEL, GBX_NO_KERNEL};
    return gbx_run_info_slot_name(run, func_ids, arg_index);
}

/* What a word is used for is unknown: it has no role. */
static bool matches_slot(const matcher *m, const gbx_record_dispatch *dispatch,
                         const gbx_record_slot *slot) {
    const gbx_selection *selection = m->selection;
    return (selection->roles == 0 || (!slot->is_word && has_bit(selection->roles, slot->role))) &&
           has_bit(selection->kinds, gbx_record_slot_kind(slot)) &&
           has_bit(selection->dtypes, slot->dtype) &&
           matches_arg(selection, slot->arg_index,
                       gbx_dispatch_arg_name(m->run, dispatch, slot->arg_index));
}

static bool matches_dispatch(const matcher *m, const gbx_record_dispatch *dispatch) {
    const gbx_selection *s = m->selection;
    bool is_by_task =
        s->args.count == 0 && s->arg_names.count == 0 && !s->roles && !s->kinds && !s->dtypes;
    if (!matches_number(s, dispatch->head.task, &dispatch->task_id) ||
        !matches_kernel(m, dispatch->func_id))
        return false;
    const void *at = dispatch + 1;
    bool is_match = is_by_task;
    for (uint32_t i = 0; i < dispatch->slot_count && !is_match; ++i) {
        gbx_slot_view view;
        at = gbx_record_next_slot(at, &view);
        is_match = matches_slot(m, dispatch, view.slot);
    }
    return is_match;
}

gbx_status gbx_selection_apply_dispatches(const gbx_selection *selection,
                                          const gbx_dispatches *dispatches,
                                          gbx_selected *out_selected) {
    matcher m;
    gbx_status status = NULL;
    *out_selected = (gbx_selected){0};
    GBX_TRY(begin_matching(selection, dispatches->reader, &m));
    out_selected->indices = malloc((dispatches->count + 1) * sizeof *out_selected->indices);
    if (!out_selected->indices)
        status = gbx_fail_memory("selecting from %" PRIu64 " dispatches", dispatches->count);
    for (uint64_t i = 0; i < dispatches->count && !status; ++i) {
        const gbx_record_dispatch *dispatch;
        status = gbx_dispatches_at(dispatches, i, &dispatch);
        if (!status && matches_dispatch(&m, dispatch))
            out_selected->indices[out_selected->count++] = i;
    }
    free(m.kernels);
    if (status) {
        free(out_selected->indices);
        *out_selected = (gbx_selected){0};
    }
    return status;
}

/* --- the order of entries --- */

enum { PROGRESS_EVERY = 1024 };

typedef struct sort_item {
    double value; /* NaN for none */
    uint64_t index;
} sort_item;

typedef struct kernel_ranks {
    const gbx_run_info *run;
    size_t *ranks; /* for each kernel of the run, its place in the order of names */
} kernel_ranks;

/* --- values to sort by --- */

static int compare_names(const void *a, const void *b) {
    return strcmp((*(const gbx_run_kernel *const *)a)->name,
                  (*(const gbx_run_kernel *const *)b)->name);
}

static gbx_status rank_kernels(kernel_ranks *ranks) {
    size_t count = ranks->run->kernel_count;
    const gbx_run_kernel **sorted = malloc((count + 1) * sizeof(void *));
    ranks->ranks = malloc((count + 1) * sizeof *ranks->ranks);
    if (!sorted || !ranks->ranks) {
        free(sorted);
        return gbx_fail_memory("sorting by the names of %zu kernels", count);
    }
    for (size_t i = 0; i < count; ++i)
        sorted[i] = &ranks->run->kernels[i];
    qsort(sorted, count, sizeof(void *), compare_names);
    for (size_t i = 0, rank = 0; i < count; ++i) {
        rank += i > 0 && strcmp(sorted[i - 1]->name, sorted[i]->name) != 0;
        ranks->ranks[sorted[i] - ranks->run->kernels] = rank;
    }
    free(sorted);
    return NULL;
}

/* By the name of the task's first kernel; kernels without name come last, by func_id. */
static double kernel_value(const kernel_ranks *ranks, const gbx_record_task *task) {
    for (size_t i = 0; task && i < GBX_SUBTASK_COUNT; ++i) {
        if (task->func_ids[i] == GBX_NO_KERNEL)
            continue;
        const gbx_run_kernel *kernel = gbx_run_info_kernel(ranks->run, task->func_ids[i]);
        return kernel ? (double)ranks->ranks[kernel - ranks->run->kernels]
                      : (double)ranks->run->kernel_count + task->func_ids[i];
    }
    return (double)NAN;
}

static double extreme_value(uint32_t dtype, uint64_t bits) {
    if (gbx_dtype_is_float(dtype))
        return gbx_f64_of_bits(bits);
    return gbx_dtype_is_signed(dtype) ? (double)(int64_t)bits : (double)bits;
}

static double statistic_value(gbx_order_key key, uint32_t dtype, const gbx_statistics *s) {
    const double values[] = {[GBX_ORDER_MIN] = extreme_value(dtype, s->min_bits),
                             [GBX_ORDER_MAX] = extreme_value(dtype, s->max_bits),
                             [GBX_ORDER_MEAN] = s->mean,
                             [GBX_ORDER_NAN] = (double)s->nan_count,
                             [GBX_ORDER_INF] = (double)s->inf_count};
    return values[key];
}

static double plain_value(gbx_order_key key, const kernel_ranks *ranks, const gbx_entry *entry) {
    if (key == GBX_ORDER_KERNEL)
        return kernel_value(ranks, entry->task);
    const uint64_t values[] = {[GBX_ORDER_INDEX] = entry->index,
                               [GBX_ORDER_TASK] = entry->head->task,
                               [GBX_ORDER_ARG] = entry->head->arg_index,
                               [GBX_ORDER_DTYPE] = entry->dtype,
                               [GBX_ORDER_BYTES] = gbx_entry_stored_bytes(entry),
                               [GBX_ORDER_ELEMENTS] = gbx_entry_numel(entry),
                               [GBX_ORDER_TIME] = entry->head->time_ns};
    return (double)values[key];
}

static gbx_status value_of(gbx_order_key key, const kernel_ranks *ranks, const gbx_reader *reader,
                           const gbx_entry *entry, double *out_value) {
    if (key < GBX_ORDER_MIN) {
        *out_value = plain_value(key, ranks, entry);
        return NULL;
    }
    gbx_statistics statistics;
    bool is_there = false;
    GBX_TRY(gbx_entry_statistics(entry, reader, &statistics, &is_there));
    *out_value = is_there ? statistic_value(key, entry->dtype, &statistics) : (double)NAN;
    return NULL;
}

/* --- sorting --- */

/* Every item has a different index: none are equal. */
static int compare_items(const void *a, const void *b, void *context) {
    const gbx_entry_order *order = context;
    const sort_item *left = a;
    const sort_item *right = b;
    if (isnan(left->value) != isnan(right->value))
        return isnan(left->value) ? 1 : -1;
    if (left->value < right->value || left->value > right->value)
        return (left->value < right->value) != order->is_descending ? -1 : 1;
    return left->index < right->index ? -1 : 1;
}

gbx_status gbx_entries_sort(gbx_entry_order order, gbx_entries *entries, uint64_t *indices,
                            uint64_t count, gbx_order_progress progress, void *context) {
    kernel_ranks ranks = {.run = gbx_reader_run(gbx_entries_reader(entries))};
    if (order.key == GBX_ORDER_INDEX && !order.is_descending)
        return NULL;
    sort_item *items = malloc((count + 1) * sizeof *items);
    gbx_status status = items ? NULL : gbx_fail_memory("sorting %" PRIu64 " entries", count);
    if (!status && order.key == GBX_ORDER_KERNEL)
        status = rank_kernels(&ranks);
    for (uint64_t i = 0; !status && i < count; ++i) {
        gbx_entry entry;
        if (progress && i % PROGRESS_EVERY == 0)
            progress(context, i, count);
        items[i].index = indices[i];
        status = gbx_entries_at(entries, indices[i], &entry);
        if (!status)
            status =
                value_of(order.key, &ranks, gbx_entries_reader(entries), &entry, &items[i].value);
    }
    if (!status) {
        qsort_r(items, count, sizeof *items, compare_items, &order);
        for (uint64_t i = 0; i < count; ++i)
            indices[i] = items[i].index;
    }
    free(ranks.ranks);
    free(items);
    return status;
}
