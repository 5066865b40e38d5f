/* The kernels in plain C: the tails of every level, and all of it on other processors. */
#include <math.h>
#include <stdbool.h>

#include <glassbox/tensor.h>

#include "base/float_bits.h"
#include "tensor/statistics/statistics_kernels.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* `bytes` is a constant wherever this is inlined. */
static ALWAYS_INLINE uint64_t load(const unsigned char *element, size_t bytes) {
    uint64_t bits = 0;
    memcpy(&bits, element, bytes);
    return bits;
}

/* --- floats of more than a byte --- */

static ALWAYS_INLINE double value_of(uint64_t bits, gbx_statistics_kind kind) {
    switch (kind) {
    case GBX_STATISTICS_FLOAT32:
        return gbx_f32_of_bits((uint32_t)bits);
    case GBX_STATISTICS_FLOAT16:
        return gbx_f16_to_f32((uint16_t)bits);
    case GBX_STATISTICS_BFLOAT16:
        return gbx_bf16_to_f32((uint16_t)bits);
    case GBX_STATISTICS_FLOAT64:
        return gbx_f64_of_bits(bits);
    case GBX_STATISTICS_FLOAT8: /* at most a byte: not here */
    case GBX_STATISTICS_INTEGERS:
    case GBX_STATISTICS_BOOLS:
    case GBX_STATISTICS_CODES:
        break;
    }
    __builtin_unreachable();
}

static ALWAYS_INLINE void take_floats(gbx_statistics_state *state, const unsigned char *elements,
                                      size_t count, uint32_t dtype) {
    const gbx_float_codes codes = gbx_float_codes_of(dtype);
    const gbx_statistics_kind kind = gbx_dtype_table[dtype].statistics;
    const size_t bytes = gbx_dtype_table[dtype].bits / 8;
    const uint64_t sign = codes.sign, all = sign | (sign - 1);
    uint64_t min_key = UINT64_MAX, max_key = 0;
    for (size_t i = 0; i < count; ++i) {
        uint64_t bits = load(elements + bytes * i, bytes);
        uint64_t magnitude = bits & (sign - 1);
        state->zero_count += magnitude == 0;
        state->subnormal_count += magnitude - 1 < codes.first_normal - 1;
        if (magnitude > codes.infinity) {
            ++state->nan_count;
            continue;
        }
        uint64_t key = bits ^ (bits & sign ? all : sign);
        min_key = key < min_key ? key : min_key;
        max_key = key > max_key ? key : max_key;
        if (magnitude > codes.last_finite)
            ++state->inf_count;
        else
            state->sums[i % GBX_STATISTICS_LANES] += value_of(bits, kind);
    }
    if (min_key <= max_key)
        gbx_statistics_take_range(state, min_key, max_key);
}

/* --- integers of more than a byte --- */

static ALWAYS_INLINE void take_integers(gbx_statistics_state *state, const unsigned char *elements,
                                        size_t count, uint32_t dtype, size_t bytes) {
    const uint64_t flip = gbx_integer_flip_of(dtype);
    uint64_t min_key = UINT64_MAX, max_key = 0, zeros = 0, low = 0, high = 0;
    for (size_t i = 0; i < count; ++i) {
        uint64_t key = load(elements + bytes * i, bytes) ^ flip;
        min_key = key < min_key ? key : min_key;
        max_key = key > max_key ? key : max_key;
        zeros += key == flip;
        low += key & UINT32_MAX;
        high += key >> 32;
    }
    state->zero_count += zeros;
    state->part_low += (int64_t)low;
    state->part_high += (int64_t)high;
    if (min_key <= max_key)
        gbx_statistics_take_range(state, min_key, max_key);
}

/* --- codes of at most 8 bits: how often is each there? --- */

/* A float, but for its sum. False where it has none: NaN and infinity. */
static ALWAYS_INLINE bool count_float(gbx_statistics_state *state, unsigned code, uint64_t times,
                                      uint32_t dtype) {
    const gbx_float_codes codes = gbx_float_codes_of(dtype);
    const uint64_t magnitude = code & ~codes.sign;
    const uint64_t key = code ^ (code & codes.sign ? codes.sign | (codes.sign - 1) : codes.sign);
    if (magnitude > codes.infinity) {
        state->nan_count += times;
        return false;
    }
    gbx_statistics_take_range(state, key, key);
    if (magnitude > codes.last_finite) {
        state->inf_count += times;
        return false;
    }
    if (magnitude < codes.first_normal)
        *(magnitude == 0 ? &state->zero_count : &state->subnormal_count) += times;
    return true;
}

static ALWAYS_INLINE void add_units(gbx_statistics_state *state, unsigned code, uint64_t times,
                                    uint32_t dtype) {
    const gbx_float8_units units = gbx_float8_units_of(dtype);
    const unsigned upper = code >> 4 & 7;
    uint64_t low = (upper == 0 ? units.small : units.other)[code & 15];
    int64_t sum = (int64_t)(times * (low << upper * units.step));
    state->part_low += code & 0x80 ? -sum : sum;
}

static ALWAYS_INLINE void take_small_integer(gbx_statistics_state *state, unsigned code,
                                             uint64_t times, uint32_t dtype) {
    uint64_t key = code ^ gbx_integer_flip_of(dtype);
    gbx_statistics_take_range(state, key, key);
    state->zero_count += code == 0 ? times : 0;
    state->part_low += (int64_t)(key * times);
}

/* Sums of 4-bit floats are exact in any lane; those of 8 bits are taken in order, by take_sums. */
static ALWAYS_INLINE void take_code(gbx_statistics_state *state, unsigned code, uint64_t times,
                                    uint32_t dtype) {
    switch ((gbx_statistics_kind)gbx_dtype_table[dtype].statistics) {
    case GBX_STATISTICS_FLOAT8:
        if (count_float(state, code, times, dtype))
            add_units(state, code, times, dtype);
        break;
    case GBX_STATISTICS_INTEGERS:
        take_small_integer(state, code, times, dtype);
        break;
    case GBX_STATISTICS_BOOLS:
        take_small_integer(state, code != 0, times, dtype);
        break;
    case GBX_STATISTICS_CODES:
        if (count_float(state, code, times, dtype) && gbx_dtype_table[dtype].bits < 8)
            state->sums[0] += (double)times * gbx_dtype_to_f64(dtype, code);
        break;
    case GBX_STATISTICS_FLOAT32: /* more than a byte */
    case GBX_STATISTICS_FLOAT16:
    case GBX_STATISTICS_BFLOAT16:
    case GBX_STATISTICS_FLOAT64:
        break;
    }
}

static ALWAYS_INLINE void take_byte(gbx_statistics_state *state, unsigned byte, uint64_t times,
                                    uint32_t dtype) {
    if (gbx_dtype_table[dtype].bits == 8) {
        take_code(state, byte, times, dtype);
        return;
    }
    take_code(state, byte & 15, times, dtype);
    take_code(state, byte >> 4, times, dtype);
}

/* Four counters of each byte, so that one does not wait for the other. */
static ALWAYS_INLINE void take_many_bytes(gbx_statistics_state *state,
                                          const unsigned char *elements, size_t count,
                                          uint32_t dtype) {
    uint32_t times[4][256] = {{0}};
    for (size_t i = 0; i < count; ++i)
        ++times[i % 4][elements[i]];
    for (unsigned byte = 0; byte < 256; ++byte) {
        uint32_t sum = times[0][byte] + times[1][byte] + times[2][byte] + times[3][byte];
        if (sum > 0)
            take_byte(state, byte, sum, dtype);
    }
}

static ALWAYS_INLINE void take_bytes(gbx_statistics_state *state, const unsigned char *elements,
                                     size_t count, uint32_t dtype) {
    if (count >= GBX_STATISTICS_GROUP)
        take_many_bytes(state, elements, count, dtype);
    else
        for (size_t i = 0; i < count; ++i)
            take_byte(state, elements[i], 1, dtype);
}

void gbx_statistics_take_half(gbx_statistics_state *state, unsigned char byte) {
    take_code(state, byte & 15, 1, state->dtype);
}

/* Of 8-bit floats whose range is too wide for an exact sum, in lanes. */
static void take_sums(gbx_statistics_state *state, const unsigned char *elements, size_t count) {
    double values[256];
    bool is_known[256] = {false};
    for (size_t i = 0; i < count; ++i) {
        const unsigned code = elements[i];
        if (!is_known[code]) {
            const double value = gbx_dtype_to_f64(state->dtype, code);
            values[code] = isfinite(value) ? value : 0.0;
            is_known[code] = true;
        }
        state->sums[i % GBX_STATISTICS_LANES] += values[code];
    }
}

/* --- one function for each dtype, for which it is a constant --- */

static ALWAYS_INLINE void take_elements(gbx_statistics_state *state, const unsigned char *elements,
                                        size_t count, uint32_t dtype) {
    const unsigned bits = gbx_dtype_table[dtype].bits;
    if (bits <= 8)
        take_bytes(state, elements, count, dtype);
    if (bits == 8 && gbx_dtype_table[dtype].statistics == GBX_STATISTICS_CODES)
        take_sums(state, elements, count);
    if (bits <= 8)
        return;
    if (gbx_dtype_table[dtype].class == GBX_CLASS_FLOAT)
        take_floats(state, elements, count, dtype);
    else
        take_integers(state, elements, count, dtype, bits / 8);
}

#define KERNEL(dtype, ...)                                                                         \
    static void take_##dtype(gbx_statistics_state *state, const unsigned char *elements,           \
                             size_t count) {                                                       \
        take_elements(state, elements, count, GBX_##dtype);                                        \
    }
GBX_DTYPES(KERNEL)

#define KERNEL_OF(dtype, ...) [GBX_##dtype] = take_##dtype,
gbx_statistics_kernel *const gbx_statistics_plain[GBX_DTYPE_COUNT] = {GBX_DTYPES(KERNEL_OF)};
