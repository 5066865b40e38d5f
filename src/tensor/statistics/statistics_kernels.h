/*
 * Between the files of the statistics: one set of kernels for each level of the processor. All
 * leave the same bits in the state. Device code.
 */
#ifndef GBX_TENSOR_STATISTICS_STATISTICS_KERNELS_H
#define GBX_TENSOR_STATISTICS_STATISTICS_KERNELS_H

#include <string.h>

#include "tensor/copy/strided_copy.h"
#include "tensor/statistics/statistics.h"

/* Kernels but the plain ones take multiples of this many elements. */
#define GBX_STATISTICS_GROUP 128

/* Kernels take at most this many bytes at once: their counters do not overflow. */
#define GBX_STATISTICS_CALL_BYTES ((size_t)256 << 10)

/*
 * Adds elements to a state, the first of which is at a multiple of GBX_STATISTICS_LANES. Counts
 * them in all but `count`. int4: `count` is a number of bytes, of which both halves are elements.
 */
typedef void gbx_statistics_kernel(gbx_statistics_state *state, const unsigned char *elements,
                                   size_t count);

/* By dtype. */
extern gbx_statistics_kernel *const gbx_statistics_plain[GBX_DTYPE_COUNT];
extern gbx_statistics_kernel *const gbx_statistics_avx2[GBX_DTYPE_COUNT];
extern gbx_statistics_kernel *const gbx_statistics_avx512[GBX_DTYPE_COUNT];

/* The highest level whose kernels this processor runs. */
gbx_cpu_level gbx_statistics_level_detect(void);

/* gbx_statistics_update with the instructions of one level. */
void gbx_statistics_update_at(gbx_cpu_level level, gbx_statistics_state *state,
                              const void *elements, size_t bytes, uint64_t row_elements);

/* Where the special values of a float lie, its sign taken away. */
typedef struct gbx_float_codes {
    uint64_t first_normal;
    uint64_t last_finite;
    uint64_t infinity; /* last_finite where there is none; NaNs are above */
} gbx_float_codes;

/* With a constant dtype, constants. */
static inline gbx_float_codes gbx_float_codes_of(uint32_t dtype) {
    switch (dtype) {
    case GBX_FLOAT32:
        return (gbx_float_codes){0x00800000, 0x7f7fffff, 0x7f800000};
    case GBX_BFLOAT16:
        return (gbx_float_codes){0x0080, 0x7f7f, 0x7f80};
    case GBX_FLOAT64:
        return (gbx_float_codes){UINT64_C(1) << 52, (UINT64_C(0x7ff) << 52) - 1,
                                 UINT64_C(0x7ff) << 52};
    case GBX_FLOAT8_E4M3:
        return (gbx_float_codes){0x08, 0x7e, 0x7e};
    case GBX_FLOAT8_E5M2:
        return (gbx_float_codes){0x04, 0x7b, 0x7c};
    default: /* float16 */
        return (gbx_float_codes){0x0400, 0x7bff, 0x7c00};
    }
}

/*
 * A finite float8 is a number of units: low << high, where `low` comes from the lower half of its
 * byte and `high` from the upper one. Each table has entries for the lower half, with an upper half
 * of 0 (subnormals) and of another; the bits of an upper half, less the sign, count by `step`.
 */
typedef struct gbx_float8_units {
    unsigned char small[16];
    unsigned char other[16];
    unsigned step;
    int exponent; /* a unit is 2 to this power */
} gbx_float8_units;

static inline gbx_float8_units gbx_float8_units_of(uint32_t dtype) {
    if (dtype == GBX_FLOAT8_E4M3)
        return (gbx_float8_units){{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30},
                                  {8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 26, 28, 30},
                                  2,
                                  -10};
    return (gbx_float8_units){{0, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56},
                              {4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56},
                              4,
                              -17};
}

/*
 * Factors by the upper half of a byte, for sums in parts: part `part` takes the upper halves whose
 * shift is from 8 * part to 8 * part + 7, in units of 2^(8 * part), and 0 for the others. Parts of
 * float8_e4m3: 2, of float8_e5m2: 4.
 */
static inline void gbx_float8_factors(unsigned step, unsigned part, signed char out_factors[16]) {
    for (unsigned upper = 0; upper < 16; ++upper) {
        unsigned shift = (upper & 7) * step;
        int factor = shift / 8 == part ? 1 << shift % 8 : 0;
        out_factors[upper] = (signed char)(upper & 8 ? -factor : factor);
    }
}

/* What makes a key of an integer, and the other way round. */
static inline uint64_t gbx_integer_flip_of(uint32_t dtype) {
    switch (dtype) {
    case GBX_INT4:
        return 8;
    case GBX_INT8:
        return 0x80;
    case GBX_INT16:
        return 0x8000;
    case GBX_INT32:
        return UINT64_C(1) << 31;
    case GBX_INT64:
        return UINT64_C(1) << 63;
    default:
        return 0;
    }
}

static inline void gbx_statistics_take_range(gbx_statistics_state *state, uint64_t min_key,
                                             uint64_t max_key) {
    if (min_key < state->min_key)
        state->min_key = min_key;
    if (max_key > state->max_key)
        state->max_key = max_key;
}

/* bool: all follows from the number of zeros. */
static inline void gbx_statistics_take_bools(gbx_statistics_state *state, size_t count,
                                             uint64_t zeros) {
    state->zero_count += zeros;
    state->part_low += (int64_t)(count - zeros);
    if (count > 0)
        gbx_statistics_take_range(state, zeros == 0, zeros < count);
}

/* The least and the greatest of 16 bytes of keys each, from which `flip` was taken. */
static inline void gbx_statistics_take_vectors(gbx_statistics_state *state, const void *least,
                                               const void *greatest, size_t key_bytes,
                                               uint64_t flip) {
    for (size_t at = 0; at < 16; at += key_bytes) {
        uint64_t min_key = 0, max_key = 0;
        memcpy(&min_key, (const unsigned char *)least + at, key_bytes);
        memcpy(&max_key, (const unsigned char *)greatest + at, key_bytes);
        min_key ^= flip;
        max_key ^= flip;
        if (min_key <= max_key)
            gbx_statistics_take_range(state, min_key, max_key);
    }
}

#endif
