/*
 * Sixteen lanes at a time, by the vector extensions of gcc and clang: the compiler splits them
 * where the registers of the machine are shorter. Nothing here depends on the state of the
 * processor beyond round to nearest: no result of a conversion is a float32 subnormal. Built with
 * -Wno-psabi: vectors go by value between functions that are all inlined.
 */
#ifndef PAGED_ATTENTION_VECTORS_H
#define PAGED_ATTENTION_VECTORS_H

#include <glassbox/kernel.h>

enum { LANES = 16 };

/*
 * Lanes of one register of this machine, and how many such accumulators a loop keeps in registers;
 * both divide LANES.
 */
#if defined(__AVX512F__)
enum { REGISTER_LANES = 16, ACCUMULATORS = 16 };
#elif defined(__AVX__)
enum { REGISTER_LANES = 8, ACCUMULATORS = 8 };
#else
enum { REGISTER_LANES = 4, ACCUMULATORS = 8 };
#endif

typedef float f32xr __attribute__((vector_size(REGISTER_LANES * sizeof(float))));
typedef float f32x16 __attribute__((vector_size(64)));
typedef int32_t i32x16 __attribute__((vector_size(64)));
typedef uint32_t u32x16 __attribute__((vector_size(64)));
typedef uint16_t u16x16 __attribute__((vector_size(32)));

#define VECTOR_INLINE static inline __attribute__((always_inline))

VECTOR_INLINE f32x16 splat(float value) {
    return value - (f32x16){0};
}

VECTOR_INLINE f32x16 load_f32x16(const float *from) {
    f32x16 value;
    memcpy(&value, from, sizeof value);
    return value;
}

VECTOR_INLINE void store_f32x16(float *to, f32x16 value) {
    memcpy(to, &value, sizeof value);
}

VECTOR_INLINE f32xr load_register(const float *from) {
    f32xr value;
    memcpy(&value, from, sizeof value);
    return value;
}

VECTOR_INLINE void store_register(float *to, f32xr value) {
    memcpy(to, &value, sizeof value);
}

VECTOR_INLINE u16x16 load_u16x16(const uint16_t *from) {
    u16x16 value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Lanes of `yes` where the mask is all ones, of `no` where it is zero. */
VECTOR_INLINE f32x16 choose(i32x16 mask, f32x16 yes, f32x16 no) {
    return (f32x16)((mask & (i32x16)yes) | (~mask & (i32x16)no));
}

VECTOR_INLINE f32x16 larger(f32x16 a, f32x16 b) {
    return choose(a > b, a, b);
}

/* --- float16 and bfloat16 --- */

VECTOR_INLINE f32x16 widen_bf16(u16x16 bits) {
    return (f32x16)(__builtin_convertvector(bits, u32x16) << 16);
}

VECTOR_INLINE f32x16 widen_f16(u16x16 bits) {
    u32x16 wide = __builtin_convertvector(bits, u32x16);
    u32x16 sign = (wide & 0x8000u) << 16;
    u32x16 rest = wide & 0x7fffu;
    u32x16 is_special = (u32x16)((i32x16)rest >= 0x7c00); /* infinity or NaN: the exponent of one */
    u32x16 normal = (rest << 13) + 0x38000000u + (is_special & 0x38000000u);
    f32x16 subnormal = (f32x16)(rest + 0x3f000000u) - 0.5f; /* a multiple of 2^-24, exactly */
    f32x16 value = choose((i32x16)rest < 0x400, subnormal, (f32x16)normal);
    return (f32x16)((u32x16)value | sign);
}

VECTOR_INLINE f32x16 widen(u16x16 bits, uint32_t dtype) {
    return dtype == GBX_BFLOAT16 ? widen_bf16(bits) : widen_f16(bits);
}

/* To nearest, ties to even, of values from 0 to 1. */
VECTOR_INLINE u16x16 narrow_f16_of_unit(f32x16 value) {
    u32x16 bits = (u32x16)value;
    u32x16 subnormal = (u32x16)(value + 0.5f) - 0x3f000000u; /* rounds to multiples of 2^-24 */
    u32x16 normal = (bits + 0xfffu + (bits >> 13 & 1u) - 0x38000000u) >> 13;
    f32x16 half = choose((i32x16)bits < 0x38800000, (f32x16)subnormal, (f32x16)normal);
    return __builtin_convertvector((u32x16)half, u16x16);
}

/* --- across lanes --- */

VECTOR_INLINE float lane_max(f32x16 value) {
    float result = value[0];
    for (int i = 1; i < LANES; ++i)
        result = value[i] > result ? value[i] : result;
    return result;
}

/* Always in the same order: halves onto each other. */
VECTOR_INLINE float lane_sum(f32x16 value) {
    float lanes[LANES];
    store_f32x16(lanes, value);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; ++i)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

/* Four times a perfect shuffle of 16 rows with 16 lanes is their transpose. */
VECTOR_INLINE void transpose_16x16(f32x16 rows[LANES]) {
    for (int pass = 0; pass < 4; ++pass) {
        f32x16 next[LANES];
        for (int i = 0; i < LANES / 2; ++i) {
            f32x16 a = rows[i], b = rows[i + LANES / 2];
            next[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6,
                                                  22, 7, 23);
            next[2 * i + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28,
                                                      13, 29, 14, 30, 15, 31);
        }
        for (int i = 0; i < LANES; ++i)
            rows[i] = next[i];
    }
}

#endif
