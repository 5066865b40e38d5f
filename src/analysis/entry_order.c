#include "analysis/entry_order.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "base/float_bits.h"
#include "base/memory.h"

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
        return gbx_fail_memory("sorting by the names of %zu kernels", count);
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

static double statistic_value(gbx_order_key key, uint32_t dtype, const gbx_statistics *s) {
    switch (key) {
    case GBX_ORDER_MIN:
        return extreme_value(dtype, s->min_bits);
    case GBX_ORDER_MAX:
        return extreme_value(dtype, s->max_bits);
    case GBX_ORDER_MEAN:
        return s->mean;
    case GBX_ORDER_NAN:
        return (double)s->nan_count;
    default:
        return (double)s->inf_count;
    }
}

static double plain_value(gbx_order_key key, const kernel_ranks *ranks, const gbx_entry *entry) {
    switch (key) {
    case GBX_ORDER_TASK:
        return (double)entry->head->task;
    case GBX_ORDER_KERNEL:
        return kernel_value(ranks, entry->task);
    case GBX_ORDER_ARG:
        return (double)entry->head->arg_index;
    case GBX_ORDER_DTYPE:
        return (double)entry->dtype;
    case GBX_ORDER_BYTES:
        return (double)gbx_entry_stored_bytes(entry);
    case GBX_ORDER_ELEMENTS:
        return (double)gbx_entry_numel(entry);
    case GBX_ORDER_TIME:
        return (double)entry->head->time_ns;
    default:
        return (double)entry->index;
    }
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
        qsort(items, count, sizeof *items,
              order.is_descending ? compare_descending : compare_ascending);
        for (uint64_t i = 0; i < count; ++i)
            indices[i] = items[i].index;
    }
    free(ranks.ranks);
    free(items);
    return status;
}
