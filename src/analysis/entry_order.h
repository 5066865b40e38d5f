/* Sorting lists of entries. */
#ifndef GBX_ANALYSIS_ENTRY_ORDER_H
#define GBX_ANALYSIS_ENTRY_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/entries.h"
#include "base/status.h"

typedef enum gbx_order_key {
    GBX_ORDER_INDEX = 0,
    GBX_ORDER_TASK,
    GBX_ORDER_KERNEL,
    GBX_ORDER_ARG,
    GBX_ORDER_DTYPE,
    GBX_ORDER_BYTES,
    GBX_ORDER_ELEMENTS,
    GBX_ORDER_TIME,
    GBX_ORDER_MIN, /* from here on by statistics */
    GBX_ORDER_MAX,
    GBX_ORDER_MEAN,
    GBX_ORDER_NAN,
    GBX_ORDER_INF
} gbx_order_key;

typedef struct gbx_entry_order {
    gbx_order_key key;
    bool is_descending;
} gbx_entry_order;

/* `done` of `all` entries were read. */
typedef void (*gbx_order_progress)(void *context, uint64_t done, uint64_t all);

/*
 * Sorts ascending indices by the key. Equal entries keep their order; entries without a value (no
 * payload, NaN) come last in either direction. `progress` may be NULL.
 */
GBX_MUST_USE gbx_status gbx_entries_sort(gbx_entry_order order, gbx_entries *entries,
                                         uint64_t *indices, uint64_t count,
                                         gbx_order_progress progress, void *context);

#endif
