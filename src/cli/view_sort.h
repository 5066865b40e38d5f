/* The order of a list of entries. */
#ifndef GBX_CLI_VIEW_SORT_H
#define GBX_CLI_VIEW_SORT_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "analysis/entries.h"
#include "base/status.h"
#include "cli/progress.h"

typedef enum gbx_view_sort_key {
    GBX_VIEW_SORT_INDEX = 0,
    GBX_VIEW_SORT_TASK,
    GBX_VIEW_SORT_KERNEL,
    GBX_VIEW_SORT_ARG,
    GBX_VIEW_SORT_DTYPE,
    GBX_VIEW_SORT_BYTES,
    GBX_VIEW_SORT_ELEMENTS,
    GBX_VIEW_SORT_TIME,
    GBX_VIEW_SORT_MIN, /* from here on by statistics */
    GBX_VIEW_SORT_MAX,
    GBX_VIEW_SORT_MEAN,
    GBX_VIEW_SORT_NAN,
    GBX_VIEW_SORT_INF
} gbx_view_sort_key;

typedef struct gbx_view_order {
    gbx_view_sort_key key;
    bool is_descending;
} gbx_view_order;

#define GBX_VIEW_SORT_KEYS                                                                         \
    "index, task, kernel, arg, dtype, bytes, elements, time, min, max, mean, nan, inf"

/* A key, with a minus before it for the largest first. */
gbx_view_order gbx_view_order_parse(struct argp_state *state, const char *text);

/*
 * Sorts indices that are ascending; what is equal stays in order, and what has no such value (no
 * payload, NaN) comes last either way.
 */
GBX_MUST_USE gbx_status gbx_view_sort(gbx_view_order order, gbx_entries *entries, uint64_t *indices,
                                      uint64_t count, gbx_progress *progress);

#endif
