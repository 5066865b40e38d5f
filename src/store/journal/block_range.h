/*
 * RANGE, the record that says what its block holds: making one, and what it tells a reader that
 * wants the records of some tasks.
 */
#ifndef GBX_STORE_JOURNAL_BLOCK_RANGE_H
#define GBX_STORE_JOURNAL_BLOCK_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "store/journal/format.h"

/* Sets of types, as in gbx_record_range.types. */
#define GBX_TYPE_BIT(type) (UINT64_C(1) << ((type) < 64 ? (type) : 0))

/* The types that are about one task, which their head names. */
#define GBX_TASK_TYPES                                                                             \
    (GBX_TYPE_BIT(GBX_RECORD_TASK) | GBX_TYPE_BIT(GBX_RECORD_EDGES) |                              \
     GBX_TYPE_BIT(GBX_RECORD_DONE) | GBX_TYPE_BIT(GBX_RECORD_SCALAR) |                             \
     GBX_TYPE_BIT(GBX_RECORD_TENSOR) | GBX_TYPE_BIT(GBX_RECORD_DISPATCH) |                         \
     GBX_TYPE_BIT(GBX_RECORD_EXECUTION))

/* The RANGE of `bytes` of complete records, its check included. Their lengths must be valid. */
void gbx_block_range_make(const void *records, uint64_t bytes, gbx_record_range *out_range);

/* What its check must be. */
uint64_t gbx_block_range_checksum(const gbx_record_range *range);

/* Whether the first bytes of a block are a RANGE as it was written. It may still be false: only
 * gbx_dump_verify compares it with its block. */
bool gbx_block_range_is_intact(const gbx_record_range *range);

/* Tasks from `first` to `last`. */
typedef struct gbx_task_range {
    uint64_t first;
    uint64_t last;
} gbx_task_range;

/* Whether a block may hold a record of these tasks, or one that is neither about a task nor of the
 * types in `ignored`. */
bool gbx_block_range_may_hold(const gbx_record_range *range, gbx_task_range tasks,
                              uint64_t ignored);

#endif
