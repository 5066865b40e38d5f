/*
 * Statistics of elements, taken in pieces, so that each is hashed (base/hash.h) while it is in the
 * cache: one pass over memory. Device code: nothing is allocated. The results depend neither on the
 * processor nor on the pieces: the same elements give the same bits.
 */
#ifndef GBX_TENSOR_STATISTICS_STATISTICS_H
#define GBX_TENSOR_STATISTICS_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

#include <glassbox/kernel.h>

/*
 * min and max: the bits of a double for floats, of an int64_t for signed integers, of a uint64_t
 * for unsigned ones and bool. -0.0 is a zero, and less than 0.0. NaNs count only in `nan_count`;
 * infinities in min, max and inf_count, not in the mean. Where no element counts, min, max and mean
 * are NaN (floats) or 0. Every NaN here is the one with bits 0x7ff8000000000000.
 *
 * The mean of integers and of floats of at most 8 bits, but for float8_e8m0, is their exact sum,
 * rounded to a double, divided by their number. Other floats are summed in 32 lanes of double: the
 * element at position i in lane i modulo 32, in ascending order; then, for w = 16, 8, 4, 2, 1, lane
 * i + w is added to each lane i below w. As with any such sum, float64 values near the largest may
 * add up to an infinity.
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

/* Sums of floats are kept in this many lanes. */
#define GBX_STATISTICS_LANES 32

/*
 * Collects over the pieces of one tensor. Only the functions below use the fields. A key orders as
 * its element does and has no sign: the sign bit of signed integers is flipped; of floats all bits
 * if the sign is set, else only the sign.
 */
typedef struct gbx_statistics_state {
    uint32_t dtype;
    uint32_t reserved;
    uint64_t bytes;   /* so far */
    uint64_t count;   /* of elements so far */
    uint64_t min_key; /* above max_key while there are no elements */
    uint64_t max_key;
    uint64_t nan_count;
    uint64_t inf_count;
    uint64_t zero_count;
    uint64_t subnormal_count;
    int64_t part_low; /* of one call of a kernel: the sum is part_low + part_high * 2^32 */
    int64_t part_high;
    uint64_t sum_low; /* of keys (integers) or of units (float8), a number of 128 bits */
    uint64_t sum_high;
    double sums[GBX_STATISTICS_LANES];
} gbx_statistics_state;

/* All pieces but the last are multiples of this many bytes. */
enum { GBX_STATISTICS_STEP_BYTES = 4096 };

void gbx_statistics_begin(gbx_statistics_state *state, uint32_t dtype);
/* `elements` are at any address and packed as in a row-major payload. 4 bits: `row_elements` is the
 * last dimension, so that the padding of odd rows is not counted; others ignore it. */
void gbx_statistics_update(gbx_statistics_state *state, const void *elements, size_t bytes,
                           uint64_t row_elements);
void gbx_statistics_end(const gbx_statistics_state *state, gbx_statistics *out_statistics);

#endif
