/* The kernels in plain C: the tails of every level, and the whole of it on other processors. */
#include "tensor/statistics/statistics_kernels.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* `bytes` is a constant wherever this is inlined. */
static ALWAYS_INLINE uint64_t load(const unsigned char *element, size_t bytes) {
    uint64_t bits = 0;
    memcpy(&bits, element, bytes);
    return bits;
}

/* --- floats of more than a byte --- */

static ALWAYS_INLINE uint64_t load_float(const unsigned char *elements, size_t i, uint32_t dtype) {
    switch (dtype) {
    case GBX_FLOAT32:
        return load(elements + 4 * i, 4);
    case GBX_FLOAT64:
        return load(elements + 8 * i, 8);
    default:
        return load(elements + 2 * i, 2);
    }
}

static ALWAYS_INLINE double value_of(uint64_t bits, uint32_t dtype) {
    if (dtype == GBX_FLOAT32)
        return gbx_f32_of_bits((uint32_t)bits);
    if (dtype == GBX_BFLOAT16)
        return gbx_bf16_to_f32((uint16_t)bits);
    if (dtype != GBX_FLOAT64)
        return gbx_f16_to_f32((uint16_t)bits);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static ALWAYS_INLINE void take_floats(gbx_statistics_state *state, const unsigned char *elements,
                                      size_t count, uint32_t dtype) {
    const gbx_float_codes codes = gbx_float_codes_of(dtype);
    const unsigned width = dtype == GBX_FLOAT64 ? 64 : dtype == GBX_FLOAT32 ? 32 : 16;
    const uint64_t sign = UINT64_C(1) << (width - 1), all = sign | (sign - 1);
    uint64_t min_key = UINT64_MAX, max_key = 0;
    for (size_t i = 0; i < count; ++i) {
        uint64_t bits = load_float(elements, i, dtype);
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
            state->sums[i % GBX_STATISTICS_LANES] += value_of(bits, dtype);
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

/* --- bytes: how often is each there? --- */

static void take_float8(gbx_statistics_state *state, uint32_t dtype, unsigned code,
                        uint64_t times) {
    const gbx_float_codes codes = gbx_float_codes_of(dtype);
    const gbx_float8_units units = gbx_float8_units_of(dtype);
    unsigned magnitude = code & 0x7f, upper = magnitude >> 4,
             key = code ^ (code & 0x80 ? 0xff : 0x80);
    if (magnitude > codes.infinity) {
        state->nan_count += times;
        return;
    }
    gbx_statistics_take_range(state, key, key);
    if (magnitude > codes.last_finite) {
        state->inf_count += times;
        return;
    }
    state->zero_count += magnitude == 0 ? times : 0;
    state->subnormal_count += magnitude > 0 && magnitude < codes.first_normal ? times : 0;
    uint64_t low = (upper == 0 ? units.small : units.other)[code & 15];
    int64_t sum = (int64_t)(times * (low << upper * units.step));
    state->part_low += code & 0x80 ? -sum : sum;
}

static void take_small_integer(gbx_statistics_state *state, uint32_t dtype, unsigned code,
                               uint64_t times) {
    const uint64_t flip = gbx_integer_flip_of(dtype);
    uint64_t key = code ^ flip;
    gbx_statistics_take_range(state, key, key);
    state->zero_count += code == 0 ? times : 0;
    state->part_low += (int64_t)(key * times);
}

static void take_byte(gbx_statistics_state *state, unsigned byte, uint64_t times) {
    uint32_t dtype = state->dtype;
    if (dtype == GBX_FLOAT8_E4M3 || dtype == GBX_FLOAT8_E5M2) {
        take_float8(state, dtype, byte, times);
    } else if (dtype == GBX_INT4) {
        take_small_integer(state, dtype, byte & 15, times);
        take_small_integer(state, dtype, byte >> 4, times);
    } else {
        take_small_integer(state, dtype, dtype == GBX_BOOL ? byte != 0 : byte, times);
    }
}

/* Four counters of each byte, so that one does not wait for the other. */
static void take_many_bytes(gbx_statistics_state *state, const unsigned char *elements,
                            size_t count) {
    uint32_t times[4][256] = {{0}};
    for (size_t i = 0; i < count; ++i)
        ++times[i % 4][elements[i]];
    for (unsigned byte = 0; byte < 256; ++byte) {
        uint32_t sum = times[0][byte] + times[1][byte] + times[2][byte] + times[3][byte];
        if (sum > 0)
            take_byte(state, byte, sum);
    }
}

static void take_bytes(gbx_statistics_state *state, const unsigned char *elements, size_t count) {
    if (count >= GBX_STATISTICS_GROUP)
        take_many_bytes(state, elements, count);
    else
        for (size_t i = 0; i < count; ++i)
            take_byte(state, elements[i], 1);
}

/* --- one function for each dtype, for which it is a constant --- */

#define FLOATS(name, dtype)                                                                        \
    static void name(gbx_statistics_state *state, const unsigned char *elements, size_t count) {   \
        take_floats(state, elements, count, dtype);                                                \
    }
#define INTEGERS(name, dtype, bytes)                                                               \
    static void name(gbx_statistics_state *state, const unsigned char *elements, size_t count) {   \
        take_integers(state, elements, count, dtype, bytes);                                       \
    }

FLOATS(take_float32, GBX_FLOAT32)
FLOATS(take_float16, GBX_FLOAT16)
FLOATS(take_bfloat16, GBX_BFLOAT16)
FLOATS(take_float64, GBX_FLOAT64)
INTEGERS(take_int16, GBX_INT16, 2)
INTEGERS(take_uint16, GBX_UINT16, 2)
INTEGERS(take_int32, GBX_INT32, 4)
INTEGERS(take_uint32, GBX_UINT32, 4)
INTEGERS(take_int64, GBX_INT64, 8)
INTEGERS(take_uint64, GBX_UINT64, 8)

gbx_statistics_kernel *const gbx_statistics_plain[GBX_DTYPE_COUNT] = {
    [GBX_FLOAT32] = take_float32, [GBX_FLOAT16] = take_float16,   [GBX_BFLOAT16] = take_bfloat16,
    [GBX_FLOAT64] = take_float64, [GBX_INT8] = take_bytes,        [GBX_UINT8] = take_bytes,
    [GBX_INT16] = take_int16,     [GBX_UINT16] = take_uint16,     [GBX_INT32] = take_int32,
    [GBX_UINT32] = take_uint32,   [GBX_INT64] = take_int64,       [GBX_UINT64] = take_uint64,
    [GBX_BOOL] = take_bytes,      [GBX_FLOAT8_E4M3] = take_bytes, [GBX_FLOAT8_E5M2] = take_bytes,
    [GBX_INT4] = take_bytes,
};
