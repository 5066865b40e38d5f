/*
 * Statistics of elements, and their hash, in one pass over memory. Device code: nothing is
 * allocated. The results do not depend on the processor: the same elements give the same bits.
 */
#ifndef GBX_TENSOR_STATISTICS_H
#define GBX_TENSOR_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

#include <glassbox/kernel.h>

#include "base/hash.h"

/*
 * min and max: the bits of a double for floats, of an int64_t for signed integers, of a uint64_t
 * for unsigned ones and bool. NaNs count in `nan_count` alone; infinities in min, max and
 * inf_count, not in the mean. Where no element counts, min, max and mean are NaN (floats) or 0.
 */
typedef struct gbx_statistics {
    uint64_t min_bits;
    uint64_t max_bits;
    double mean;
    uint64_t nan_count;
    uint64_t inf_count;
    uint64_t zero_count;
    uint64_t subnormal_count;
} gbx_statistics;

/* Gathers over pieces of one tensor. The fields are the function's. */
typedef struct gbx_statistics_state {
    uint32_t dtype;
    uint32_t has_values;
    uint64_t count;
    uint64_t min_bits;
    uint64_t max_bits;
    uint64_t nan_count;
    uint64_t inf_count;
    uint64_t zero_count;
    uint64_t subnormal_count;
    double sums[64];
} gbx_statistics_state;

/* Pieces are multiples of this many bytes, but for the last. */
enum { GBX_STATISTICS_STEP_BYTES = 4096 };

void gbx_statistics_begin(gbx_statistics_state *state, uint32_t dtype);
/* `elements` are packed as in a row-major payload. int4: `row_elements` is the last dimension, so
 * that the padding of odd rows is not counted; others ignore it. */
void gbx_statistics_update(gbx_statistics_state *state, const void *elements, size_t bytes,
                           uint64_t row_elements);
void gbx_statistics_end(const gbx_statistics_state *state, gbx_statistics *out_statistics);

/* The instruction set in use: "avx512", "avx2" or "plain". */
const char *gbx_statistics_variant(void);

#endif
