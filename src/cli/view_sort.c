#include "cli/view_sort.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "base/float_bits.h"
#include "cli/option_values.h"

enum { PROGRESS_EVERY = 1024 };

typedef struct sort_item {
    double value; /* NaN for none */
    uint64_t index;
} sort_item;

/* Places of the kernels in the order of their names, by their places in the run. */
typedef struct kernel_ranks {
    const gbx_run_info *run;
    size_t *ranks;
} kernel_ranks;

gbx_view_order gbx_view_order_parse(struct argp_state *state, const char *text) {
    static const char *const keys[] = {
        [GBX_VIEW_SORT_INDEX] = "index",       [GBX_VIEW_SORT_TASK] = "task",
        [GBX_VIEW_SORT_KERNEL] = "kernel",     [GBX_VIEW_SORT_ARG] = "arg",
        [GBX_VIEW_SORT_DTYPE] = "dtype",       [GBX_VIEW_SORT_BYTES] = "bytes",
        [GBX_VIEW_SORT_ELEMENTS] = "elements", [GBX_VIEW_SORT_TIME] = "time",
        [GBX_VIEW_SORT_MIN] = "min",           [GBX_VIEW_SORT_MAX] = "max",
        [GBX_VIEW_SORT_MEAN] = "mean",         [GBX_VIEW_SORT_NAN] = "nan",
        [GBX_VIEW_SORT_INF] = "inf",           NULL};
    bool is_descending = text[0] == '-';
    size_t key = gbx_option_choice(state, "--sort", text + is_descending, keys);
    return (gbx_view_order){(gbx_view_sort_key)key, is_descending};
}

/* --- values to sort by --- */

typedef struct named_kernel {
    const char *name;
    size_t place; /* in the run */
} named_kernel;

static int compare_names(const void *a, const void *b) {
    const named_kernel *left = a;
    const named_kernel *right = b;
    return strcmp(left->name, right->name);
}

static gbx_status rank_kernels(kernel_ranks *ranks) {
    size_t count = ranks->run->kernel_count;
    named_kernel *sorted = malloc((count + 1) * sizeof *sorted);
    ranks->ranks = malloc((count + 1) * sizeof *ranks->ranks);
    if (!sorted || !ranks->ranks) {
        free(sorted);
        return gbx_fail(GBX_EXHAUSTED, "sorting: no memory for the names of %zu kernels", count);
    }
    for (size_t i = 0; i < count; ++i)
        sorted[i] = (named_kernel){ranks->run->kernels[i].name, i};
    qsort(sorted, count, sizeof *sorted, compare_names);
    for (size_t i = 0, rank = 0; i < count; ++i) {
        rank += i > 0 && strcmp(sorted[i - 1].name, sorted[i].name) != 0;
        ranks->ranks[sorted[i].place] = rank;
    }
    free(sorted);
    return NULL;
}

/* By the name of a task's first kernel; without names, by its func_id, after those with. */
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

static double statistic_value(gbx_view_sort_key key, uint32_t dtype, const gbx_statistics *s) {
    switch (key) {
    case GBX_VIEW_SORT_MIN:
        return extreme_value(dtype, s->min_bits);
    case GBX_VIEW_SORT_MAX:
        return extreme_value(dtype, s->max_bits);
    case GBX_VIEW_SORT_MEAN:
        return s->mean;
    case GBX_VIEW_SORT_NAN:
        return (double)s->nan_count;
    default:
        return (double)s->inf_count;
    }
}

static double plain_value(gbx_view_sort_key key, const kernel_ranks *ranks,
                          const gbx_entry *entry) {
    switch (key) {
    case GBX_VIEW_SORT_TASK:
        return (double)entry->head->task;
    case GBX_VIEW_SORT_KERNEL:
        return kernel_value(ranks, entry->task);
    case GBX_VIEW_SORT_ARG:
        return (double)entry->head->arg_index;
    case GBX_VIEW_SORT_DTYPE:
        return (double)entry->dtype;
    case GBX_VIEW_SORT_BYTES:
        return (double)gbx_entry_stored_bytes(entry);
    case GBX_VIEW_SORT_ELEMENTS:
        return (double)gbx_entry_numel(entry);
    case GBX_VIEW_SORT_TIME:
        return (double)entry->head->time_ns;
    default:
        return (double)entry->index;
    }
}

static gbx_status value_of(gbx_view_sort_key key, const kernel_ranks *ranks,
                           const gbx_reader *reader, const gbx_entry *entry, double *out_value) {
    if (key < GBX_VIEW_SORT_MIN) {
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

/* Every item has an index of its own, so that none are equal. */
static int compare_ascending(const void *a, const void *b) {
    const sort_item *left = a;
    const sort_item *right = b;
    if (isnan(left->value) != isnan(right->value))
        return isnan(left->value) ? 1 : -1;
    if (left->value < right->value || left->value > right->value)
        return left->value < right->value ? -1 : 1;
    return left->index < right->index ? -1 : 1;
}

static int compare_descending(const void *a, const void *b) {
    const sort_item *left = a;
    const sort_item *right = b;
    if (left->value < right->value || left->value > right->value)
        return left->value > right->value ? -1 : 1;
    return compare_ascending(a, b);
}

static void show_progress(gbx_progress *progress, uint64_t done, uint64_t count) {
    char text[96];
    if (done % PROGRESS_EVERY != 0)
        return;
    snprintf(text, sizeof text, "sorting, %" PRIu64 " of %" PRIu64 " entries", done, count);
    gbx_progress_phase(progress, NULL, text);
}

static gbx_status fill_items(gbx_view_sort_key key, const kernel_ranks *ranks, gbx_entries *entries,
                             const uint64_t *indices, uint64_t count, sort_item *items,
                             gbx_progress *progress) {
    for (uint64_t i = 0; i < count; ++i) {
        gbx_entry entry;
        show_progress(progress, i, count);
        items[i].index = indices[i];
        GBX_TRY(gbx_entries_at(entries, indices[i], &entry));
        GBX_TRY(value_of(key, ranks, gbx_entries_reader(entries), &entry, &items[i].value));
    }
    return NULL;
}

static gbx_status sort_items(gbx_view_order order, gbx_entries *entries, uint64_t *indices,
                             uint64_t count, sort_item *items, gbx_progress *progress) {
    kernel_ranks ranks = {.run = gbx_reader_run(gbx_entries_reader(entries))};
    gbx_status status = order.key == GBX_VIEW_SORT_KERNEL ? rank_kernels(&ranks) : NULL;
    if (!status)
        status = fill_items(order.key, &ranks, entries, indices, count, items, progress);
    free(ranks.ranks);
    GBX_TRY(status);
    qsort(items, count, sizeof *items,
          order.is_descending ? compare_descending : compare_ascending);
    for (uint64_t i = 0; i < count; ++i)
        indices[i] = items[i].index;
    return NULL;
}

gbx_status gbx_view_sort(gbx_view_order order, gbx_entries *entries, uint64_t *indices,
                         uint64_t count, gbx_progress *progress) {
    if (order.key == GBX_VIEW_SORT_INDEX && !order.is_descending)
        return NULL;
    sort_item *items = malloc((count + 1) * sizeof *items);
    if (!items)
        return gbx_fail(GBX_EXHAUSTED, "sorting: no memory for %" PRIu64 " entries", count);
    gbx_status status = sort_items(order, entries, indices, count, items, progress);
    free(items);
    return status;
}
