/*
 * The kernels of floats, and of integers of 16 bits and more, made of the vectors of an instruction
 * set. The file that includes this one has the vectors: LANES doubles, twice as many floats,
 * integers of 32 or 64 bits, and what is done with them; FEATURES, VECTOR_INLINE, and KERNELS, the
 * name of the table.
 *
 * Elements of narrow dtypes are compared as floats, those of wide ones as doubles, integers of 64
 * bits also by their bits.
 */
#ifndef GBX_TENSOR_COMPARE_COMPARE_VECTORS_H
#define GBX_TENSOR_COMPARE_COMPARE_VECTORS_H

#include <limits.h>
#include <math.h>
#include <string.h>

#include "tensor/dtype_table.h"

#if defined(__clang__)
#    pragma STDC FP_CONTRACT OFF /* fused where it says so, and nowhere else */
#endif

/* Rarely called: kept out of line so that they do not slow the loops that call them. */
#define VECTOR_COLD static __attribute__((noinline, cold, target(FEATURES)))

/* Elements of a step over narrow ones, whose sums go to PARTS vectors. */
#define STEP (2 * LANES)
#define PARTS (GBX_COMPARE_LANES / LANES)

/* Elements that are compared at once for equality, and how far ahead of the loads they are fetched.
 */
#define CHUNK 128
#define AHEAD_BYTES 1024

VECTOR_INLINE unsigned ones(unsigned lanes) {
    return (unsigned)_mm_popcnt_u32(lanes);
}

VECTOR_INLINE bool is_any(unsigned lanes) {
    return __builtin_expect(lanes != 0, 0);
}

/* Bytes; a constant where the dtype is. */
VECTOR_INLINE size_t width_of(uint32_t dtype) {
    return gbx_dtype_table[dtype].bits / 8;
}

VECTOR_INLINE bool is_signed_of(uint32_t dtype) {
    return gbx_dtype_table[dtype].class == GBX_CLASS_SIGNED;
}

VECTOR_INLINE doubles tolerances(const gbx_compare_rule *rule, doubles want) {
    return all_doubles(rule->atol) + all_doubles(rule->rtol) * want;
}

/* --- what every step changes --- */

typedef struct totals {
    doubles sums[PARTS][GBX_COMPARE_SUMS];
    doubles max_abs;
    doubles max_rel; /* of wide ones */
    integers max_ulp;
    uint64_t unequal;
    uint64_t mismatches;
    uint64_t first_bad;
    unsigned awaited; /* of lanes: all before the first mismatch, then zero */
} totals;

VECTOR_INLINE void begin_totals(totals *t, const gbx_compare_block *block) {
    *t = (totals){.max_abs = all_doubles(block->max_abs),
                  .max_rel = all_doubles(block->max_rel),
                  .first_bad = GBX_COMPARE_NONE,
                  .awaited = UINT_MAX};
    GBX_UNROLL
    for (int i = 0; i < PARTS * GBX_COMPARE_SUMS; ++i)
        t->sums[i % PARTS][i / PARTS] =
            load_doubles(block->sums[i / PARTS] + (size_t)(i % PARTS) * LANES);
}

VECTOR_INLINE void end_totals(const totals *t, gbx_compare_block *block) {
    block->max_abs = fmax(block->max_abs, largest(t->max_abs));
    block->max_rel = fmax(block->max_rel, largest(t->max_rel));
    block->unequal += t->unequal;
    block->mismatches += t->mismatches;
    block->first_bad = t->first_bad < block->first_bad ? t->first_bad : block->first_bad;
    GBX_UNROLL
    for (int i = 0; i < PARTS * GBX_COMPARE_SUMS; ++i)
        store_doubles(block->sums[i / PARTS] + (size_t)(i % PARTS) * LANES,
                      t->sums[i % PARTS][i / PARTS]);
}

VECTOR_INLINE void end_max_ulp(const totals *t, gbx_compare_block *block, bool is_wide) {
    uint32_t words[STEP];
    uint64_t longs[LANES];
    store_integers(words, t->max_ulp);
    store_integers(longs, t->max_ulp);
    for (size_t i = 0; i < (is_wide ? LANES : STEP); ++i) {
        uint64_t ulp = is_wide ? longs[i] : words[i];
        block->max_ulp = ulp > block->max_ulp ? ulp : block->max_ulp;
    }
}

VECTOR_INLINE void count_mismatches(totals *t, unsigned lanes, size_t index) {
    t->mismatches += ones(lanes);
    if (is_any(lanes & t->awaited)) {
        t->first_bad = index + (size_t)__builtin_ctz(lanes);
        t->awaited = 0;
    }
}

/* Products of narrow elements need no rounding: they may be fused. */
VECTOR_INLINE doubles add_product(doubles sum, doubles a, doubles b, bool is_wide) {
    if (is_wide)
        return sum + a * b;
    return fused(a, b, sum);
}

VECTOR_INLINE void add_products(totals *t, int part, doubles got, doubles want, doubles difference,
                                bool is_wide) {
    doubles *sums = t->sums[part % PARTS];
    sums[GBX_SUM_SQUARE_DIFFERENCE] += difference * difference;
    sums[GBX_SUM_SQUARE_GOT] = add_product(sums[GBX_SUM_SQUARE_GOT], got, got, is_wide);
    sums[GBX_SUM_SQUARE_WANT] = add_product(sums[GBX_SUM_SQUARE_WANT], want, want, is_wide);
    sums[GBX_SUM_PRODUCT] = add_product(sums[GBX_SUM_PRODUCT], got, want, is_wide);
}

/* Of elements that are the same in both. */
VECTOR_INLINE void add_squares(totals *t, int part, doubles x, bool is_wide) {
    doubles *sums = t->sums[part % PARTS];
    GBX_UNROLL
    for (int i = GBX_SUM_SQUARE_GOT; i < GBX_COMPARE_SUMS; ++i)
        sums[i] = add_product(sums[i], x, x, is_wide);
}

/* --- what is not finite --- */

/* A copy of some elements with zeros in place of pairs that are not finite. */
typedef struct patch {
    unsigned char got[STEP * sizeof(float)];
    unsigned char want[STEP * sizeof(float)];
} patch;

/* Counts pairs that are not finite. Equal ones, of which there may be many, need no more work. */
VECTOR_COLD void take_not_finite(const gbx_compare_rule *rule, const unsigned char *got,
                                 const unsigned char *want, size_t index, unsigned lanes,
                                 gbx_compare_block *block, patch *out_patch) {
    const size_t width = width_of(rule->dtype);
    const size_t count = rule->dtype == GBX_FLOAT64 ? LANES : STEP;
    memcpy(out_patch->got, got + index * width, count * width);
    memcpy(out_patch->want, want + index * width, count * width);
    for (; lanes != 0; lanes &= lanes - 1) {
        size_t i = (size_t)__builtin_ctz(lanes);
        gbx_compare_plain(rule, got, want, index + i, index + i + 1, block);
        memset(out_patch->got + i * width, 0, width);
        memset(out_patch->want + i * width, 0, width);
    }
}

/* --- what is the same --- */

/* A chunk. A call of memcmp would force all sums out of their registers. */
VECTOR_INLINE bool is_same_chunk(const unsigned char *got, const unsigned char *want,
                                 size_t width) {
    for (size_t i = 0; i < CHUNK * width; i += sizeof(integers))
        if (is_not_same(load_integers(got + i), load_integers(want + i)))
            return false;
    return true;
}

#include "tensor/compare/compare_narrow.h"
#include "tensor/compare/compare_wide.h"

/* --- one function for each dtype, for which it is a constant --- */

VECTOR_INLINE void take_elements(const gbx_compare_rule *rule, const unsigned char *got,
                                 const unsigned char *want, size_t from, size_t end,
                                 gbx_compare_block *block, uint32_t dtype) {
    switch ((gbx_compare_kind)gbx_dtype_table[dtype].compare) {
    case GBX_COMPARE_FLOAT32:
    case GBX_COMPARE_FLOAT16:
    case GBX_COMPARE_BFLOAT16:
    case GBX_COMPARE_FLOAT8_E4M3:
    case GBX_COMPARE_FLOAT8_E5M2:
    case GBX_COMPARE_INTEGER16:
        take_narrow(rule, got, want, from, end, block, dtype);
        break;
    case GBX_COMPARE_WIDE:
        take_wide_all(rule, got, want, from, end, block, dtype);
        break;
    case GBX_COMPARE_BYTES:
        gbx_compare_bytes(rule, got, want, from, end, block);
        break;
    case GBX_COMPARE_PLAIN:
        gbx_compare_plain(rule, got, want, from, end, block);
        break;
    }
}

#define KERNEL(dtype, ...)                                                                         \
    __attribute__((target(FEATURES))) static void take_##dtype(                                    \
        const gbx_compare_rule *rule, const unsigned char *got, const unsigned char *want,         \
        size_t from, size_t end, gbx_compare_block *block) {                                       \
        take_elements(rule, got, want, from, end, block, GBX_##dtype);                             \
    }
GBX_DTYPES(KERNEL)

#define KERNEL_OF(dtype, ...) [GBX_##dtype] = take_##dtype,
gbx_compare_kernel *const KERNELS[GBX_DTYPE_COUNT] = {GBX_DTYPES(KERNEL_OF)};

#endif
