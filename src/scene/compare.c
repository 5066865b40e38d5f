#include "scene/compare.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 1024 };

/* A run of elements that lie without gaps: all of them, or a row of int4. */
typedef struct stretch {
    uint32_t dtype;
    const unsigned char *got;
    const unsigned char *want;
    uint64_t first;
    size_t count;
} stretch;

typedef struct block {
    double got[BLOCK];
    double want[BLOCK];
    double difference[BLOCK];
} block;

static uint64_t element_bits(uint32_t dtype, const unsigned char *elements, size_t index) {
    uint64_t bits = 0;
    if (dtype == GBX_INT4)
        return elements[index / 2] >> (index % 2 * 4) & 0xf;
    const size_t width = gbx_dtype_bits(dtype) / 8;
    memcpy(&bits, elements + index * width, width);
    return bits;
}

/* The two dtypes that large outputs have, in loops of constant length. */
static void decode(uint32_t dtype, const unsigned char *elements, size_t count, double *out) {
    if (count == BLOCK && dtype == GBX_FLOAT32) {
        float floats[BLOCK];
        memcpy(floats, elements, sizeof floats);
        for (size_t i = 0; i < BLOCK; ++i)
            out[i] = (double)floats[i];
    } else if (count == BLOCK && dtype == GBX_BFLOAT16) {
        uint16_t codes[BLOCK];
        memcpy(codes, elements, sizeof codes);
        for (size_t i = 0; i < BLOCK; ++i)
            out[i] = (double)gbx_bf16_to_f32(codes[i]);
    } else {
        gbx_dtype_array_to_f64(dtype, elements, count, out);
    }
}

static double integer_difference(uint32_t dtype, uint64_t got, uint64_t want) {
    bool is_less = dtype == GBX_INT64 ? (int64_t)got < (int64_t)want : got < want;
    return (double)(is_less ? want - got : got - want);
}

static void subtract(const stretch *part, block *b) {
    bool is_wide = part->dtype == GBX_INT64 || part->dtype == GBX_UINT64;
    for (size_t i = 0; is_wide && i < part->count; ++i)
        b->difference[i] = integer_difference(part->dtype, element_bits(part->dtype, part->got, i),
                                              element_bits(part->dtype, part->want, i));
    for (size_t i = 0; !is_wide && i < part->count; ++i)
        b->difference[i] = fabs(b->got[i] - b->want[i]);
}

/* Infinities and NaN: equal, or infinitely far apart. Finite numbers too far apart stay infinite.
 */
static double settle(double got, double want) {
    return got == want || (isnan(got) && isnan(want)) ? 0.0 : INFINITY;
}

static void note_mismatch(const stretch *part, size_t index, gbx_comparison *result) {
    if (result->mismatches++ > 0)
        return;
    result->first_bad = part->first + index;
    result->got_bits = element_bits(part->dtype, part->got, index);
    result->want_bits = element_bits(part->dtype, part->want, index);
}

static double relative_to(double difference, double want) {
    if (difference == 0.0 || want == 0.0)
        return 0.0;
    return want < INFINITY ? difference / want : INFINITY;
}

static void judge(const stretch *part, block *b, double rtol, double atol, gbx_comparison *result) {
    for (size_t i = 0; i < part->count; ++i) {
        double difference = b->difference[i];
        double want = fabs(b->want[i]);
        if (!(difference < INFINITY))
            difference = settle(b->got[i], b->want[i]);
        double relative = relative_to(difference, want);
        result->max_abs = difference > result->max_abs ? difference : result->max_abs;
        result->max_rel = relative > result->max_rel ? relative : result->max_rel;
        if (difference > 0.0 && !(difference < INFINITY && difference <= atol + rtol * want))
            note_mismatch(part, i, result);
    }
}

static bool is_outside(double difference, double want, double rtol, double atol) {
    return !(difference <= atol + rtol * want && want < INFINITY);
}

/* Most blocks differ a little and nowhere too much: they need no branches. */
static bool judge_close(block *b, double rtol, double atol, gbx_comparison *result) {
    unsigned outside = 0;
    for (size_t i = 0; i < BLOCK; ++i)
        outside |= is_outside(b->difference[i], fabs(b->want[i]), rtol, atol);
    if (outside)
        return false;
    double max_abs = result->max_abs;
    double max_rel = result->max_rel;
    for (size_t i = 0; i < BLOCK; ++i) {
        double want = fabs(b->want[i]);
        double relative = b->difference[i] / (want > 0.0 ? want : INFINITY);
        max_abs = b->difference[i] > max_abs ? b->difference[i] : max_abs;
        max_rel = relative > max_rel ? relative : max_rel;
    }
    result->max_abs = max_abs;
    result->max_rel = max_rel;
    return true;
}

static void compare_block(const stretch *part, double rtol, double atol, gbx_comparison *result) {
    block b;
    if (memcmp(part->got, part->want, part->count * gbx_dtype_bits(part->dtype) / 8) == 0 &&
        part->dtype != GBX_INT4)
        return;
    decode(part->dtype, part->got, part->count, b.got);
    decode(part->dtype, part->want, part->count, b.want);
    subtract(part, &b);
    if (part->count < BLOCK || !judge_close(&b, rtol, atol, result))
        judge(part, &b, rtol, atol, result);
}

gbx_comparison gbx_compare(const gbx_tensor *tensor, const void *got, const void *want, double rtol,
                           double atol) {
    const uint64_t elements = (uint64_t)gbx_tensor_numel(tensor);
    const unsigned bits = gbx_dtype_bits(tensor->dtype);
    gbx_comparison result = {.elements = elements};
    /* Rows of int4 start at a byte; all else is one long row. */
    const uint64_t row = tensor->dtype == GBX_INT4 && tensor->ndims
                             ? (uint64_t)tensor->shape[tensor->ndims - 1]
                             : elements;
    uint64_t offset = 0;
    uint64_t left = row; /* of the row */
    for (uint64_t done = 0; done < elements;) {
        size_t count = left < BLOCK ? (size_t)left : BLOCK;
        stretch part = {tensor->dtype, (const unsigned char *)got + offset,
                        (const unsigned char *)want + offset, done, count};
        compare_block(&part, rtol, atol, &result);
        offset += (count * bits + 7) / 8;
        done += count;
        left = left > count ? left - count : row;
    }
    return result;
}

void gbx_compare_index(const gbx_tensor *tensor, uint64_t number, int64_t out_index[GBX_MAX_DIMS]) {
    for (uint32_t d = tensor->ndims; d-- > 0;) {
        out_index[d] = (int64_t)(number % (uint64_t)tensor->shape[d]);
        number /= (uint64_t)tensor->shape[d];
    }
}
