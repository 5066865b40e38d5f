/*
 * Shared by the files of the statistics: one set of kernels for each level of the processor. All
 * leave the same bits in the state. Device code.
 */
#ifndef GBX_TENSOR_STATISTICS_STATISTICS_KERNELS_H
#define GBX_TENSOR_STATISTICS_STATISTICS_KERNELS_H

#include <string.h>

#include "tensor/copy/strided_copy.h"
#include "tensor/dtype_table.h"
#include "tensor/statistics/statistics.h"

/* All kernels but the plain ones take multiples of this many elements. */
#define GBX_STATISTICS_GROUP 128

/* Kernels take at most this many bytes at once: their counters do not overflow. */
#define GBX_STATISTICS_CALL_BYTES ((size_t)256 << 10)

/*
 * Adds elements to a state; the first is at a multiple of GBX_STATISTICS_LANES. Changes all fields
 * but `count`. Of packed elements, `count` is a number of bytes, each with two of them.
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

#define GBX_UNITS_LEADING(f, low) ((1 << (f)) + ((low) & ((1 << (f)) - 1)))
#define GBX_UNITS_OTHER(f, low) (unsigned char)(GBX_UNITS_LEADING(f, low) << ((low) >> (f)))
#define GBX_UNITS_SMALL(f, low)                                                                    \
    (unsigned char)((low) >> (f) ? GBX_UNITS_LEADING(f, low) << ((low) >> (f)) : (low) << 1)
#define GBX_UNITS(of, f)                                                                           \
    {                                                                                              \
        of(f, 0), of(f, 1), of(f, 2), of(f, 3), of(f, 4), of(f, 5), of(f, 6), of(f, 7), of(f, 8),  \
            of(f, 9), of(f, 10), of(f, 11), of(f, 12), of(f, 13), of(f, 14), of(f, 15)             \
    }

/* With a constant dtype, constants. */
static inline __attribute__((always_inline)) gbx_float8_units gbx_float8_units_of(uint32_t dtype) {
    const gbx_float_format format = gbx_dtype_table[dtype].format;
    const unsigned f = format.fraction_bits;
    return (gbx_float8_units){GBX_UNITS(GBX_UNITS_SMALL, f), GBX_UNITS(GBX_UNITS_OTHER, f),
                              16u >> f, -(int)(format.bias + f)};
}

/*
 * Factors by the upper half of a byte, for sums in parts: part `part` takes the upper halves whose
 * shift is from 8 * part to 8 * part + 7, in units of 2^(8 * part), and 0 for the others.
 */
#define GBX_FLOAT8_PARTS_MAX 4

static inline __attribute__((always_inline)) int gbx_float8_parts(unsigned step) {
    return (int)(7 * step / 8 + 1);
}

static inline void gbx_float8_factors(unsigned step, unsigned part, signed char out_factors[16]) {
    for (unsigned upper = 0; upper < 16; ++upper) {
        unsigned shift = (upper & 7) * step;
        int factor = shift / 8 == part ? 1 << shift % 8 : 0;
        out_factors[upper] = (signed char)(upper & 8 ? -factor : factor);
    }
}

/* Turns an integer into its key and back: the sign bit. */
static inline __attribute__((always_inline)) uint64_t gbx_integer_flip_of(uint32_t dtype) {
    const gbx_dtype_info *info = &gbx_dtype_table[dtype];
    return info->class == GBX_CLASS_SIGNED ? UINT64_C(1) << (info->bits - 1) : 0;
}

static inline void gbx_statistics_take_range(gbx_statistics_state *state, uint64_t min_key,
                                             uint64_t max_key) {
    if (min_key < state->min_key)
        state->min_key = min_key;
    if (max_key > state->max_key)
        state->max_key = max_key;
}

/* The low half of a byte of packed elements: the other one fills up the row. */
void gbx_statistics_take_half(gbx_statistics_state *state, unsigned char byte);

/* bool: everything follows from the number of zeros. */
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
