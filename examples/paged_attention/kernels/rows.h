/*
 * Float32 rows with any stride, 16 elements at a time, and e to the power of them.
 */
#ifndef PAGED_ATTENTION_ROWS_H
#define PAGED_ATTENTION_ROWS_H

#include "vectors.h"

/* The elements from `index` on of a row of `count`, with `filler` behind the last. */
VECTOR_INLINE f32x16 load_row(const float *row, int64_t stride, int64_t index, int64_t count,
                              float filler) {
    if (stride == 1 && index + LANES <= count)
        return load_f32x16(row + index);
    f32x16 value = splat(filler);
    for (int64_t i = 0; i < LANES && index + i < count; ++i)
        value[i] = row[(index + i) * stride];
    return value;
}

VECTOR_INLINE void store_row(float *row, int64_t stride, int64_t index, int64_t count,
                             f32x16 value) {
    if (stride == 1 && index + LANES <= count) {
        store_f32x16(row + index, value);
        return;
    }
    for (int64_t i = 0; i < LANES && index + i < count; ++i)
        row[(index + i) * stride] = value[i];
}

/*
 * e^x for x <= 0, within about one unit in the last place; all x below -87, even minus infinity,
 * give e^-87, about 1.6e-38. With x = n ln 2 + r, the result is 2^n times the first terms of the
 * series of e^r, |r| < 0.35; ln 2 is in two parts, so that n times the first is exact.
 */
VECTOR_INLINE f32x16 exp_of_nonpositive(f32x16 x) {
    const float round_to_integer = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    x = larger(x, splat(-87.0f));
    f32x16 shifted = x * 1.44269504f + round_to_integer;
    f32x16 n = shifted - round_to_integer;
    f32x16 r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    f32x16 sum = r * (1.0f / 5040) + 1.0f / 720;
    sum = sum * r + 1.0f / 120;
    sum = sum * r + 1.0f / 24;
    sum = sum * r + 1.0f / 6;
    sum = sum * r + 0.5f;
    sum = sum * r * r + r;
    sum = sum + 1.0f;
    return (f32x16)((u32x16)sum + ((u32x16)shifted << 23)); /* n is in the low bits of shifted */
}

#endif
