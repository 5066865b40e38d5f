/* Records of a journal in memory: whether one makes sense, and its parts of variable length. */
#ifndef GBX_STORE_JOURNAL_RECORD_H
#define GBX_STORE_JOURNAL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/kernel.h>

#include "store/journal/format.h"

#define GBX_RECORD_TASK_END (UINT64_C(1) << 44) /* task numbers of a journal are below it */
#define GBX_RECORD_BLOCK_END 65536u             /* likewise block_idx */

/*
 * Whether the record at `record`, of which `words_left` words can be read, makes sense: NULL, or
 * what is wrong with it, as in "its shape has 9 dimensions". Never reads beyond words_left. Aligned
 * to words.
 */
const char *gbx_record_check(const void *record, uint64_t words_left);

/* --- the parts that follow the fixed one; the record has been checked --- */

static inline const int64_t *gbx_record_shape(const gbx_record_tensor *record) {
    return (const int64_t *)(const void *)(record + 1);
}

static inline const int64_t *gbx_record_strides(const gbx_record_tensor *record) {
    return gbx_record_shape(record) + record->head.ndims;
}

/* NULL where there are none. */
static inline const gbx_record_stats *gbx_record_statistics(const gbx_record_tensor *record) {
    if (!(record->head.flags & GBX_FLAG_HAS_STATS))
        return NULL;
    return (const gbx_record_stats *)(const void *)(gbx_record_strides(record) +
                                                    record->head.ndims);
}

/* The view that a tensor's record describes; buffer_bytes is 0, for it is not known. */
void gbx_record_view(const gbx_record_tensor *record, gbx_tensor *out_view);

static inline const int64_t *gbx_record_run_arg_shape(const gbx_record_run_arg *record) {
    return (const int64_t *)(const void *)(record + 1);
}

/* The JSON of RUN, the status of END: not zero terminated. */
static inline const char *gbx_record_run_text(const gbx_record_run *record) {
    return (const char *)(record + 1);
}

static inline const char *gbx_record_end_text(const gbx_record_end *record) {
    return (const char *)(record + 1);
}

static inline const uint64_t *gbx_record_edges(const gbx_record *record, uint64_t *out_count) {
    *out_count = record->words - sizeof *record / 8;
    return (const uint64_t *)(const void *)(record + 1);
}

/* One slot of a dispatch. Pointers lead into the record; NULL and 0 for scalars. */
typedef struct gbx_slot_view {
    const gbx_record_slot *slot;
    uint64_t data;
    int64_t start_offset;
    const int64_t *shape;
    const int64_t *strides;
} gbx_slot_view;

/* Slots one after the other: `at` starts as the record + 1; called slot_count times. Returns where
 * the next one starts. */
const void *gbx_record_next_slot(const void *at, gbx_slot_view *out_view);

/* The dtype of a scalar: undeclared ones are uint64. */
static inline uint8_t gbx_record_scalar_dtype(uint8_t dtype) {
    return dtype == GBX_DTYPE_NONE ? (uint8_t)GBX_UINT64 : dtype;
}

#endif
