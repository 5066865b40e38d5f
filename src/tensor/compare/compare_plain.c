/* Elements of any dtype, one after the other. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "tensor/compare/compare_kernels.h"

#if defined(__clang__)
#    pragma STDC FP_CONTRACT OFF /* the same bits as on machines without fused multiply-add */
#endif

#define INLINE static inline __attribute__((always_inline))

enum { CHUNK = 128 };

typedef struct chunk {
    size_t from; /* in the block */
    size_t count;
    double got[CHUNK];
    double want[CHUNK];
    uint64_t got_bits[CHUNK];
    uint64_t want_bits[CHUNK];
} chunk;

/* Two elements and all that follows from them and the dtype. */
typedef struct pair {
    double got;
    double want;
    double difference; /* infinite if they are not equal and one is not finite */
    uint64_t ulp;
    bool is_equal;
    bool is_finite; /* both */
} pair;

/* Numbers that order as the values do; both zeros are 0. */
INLINE int64_t key_of(uint64_t bits, uint64_t sign) {
    int64_t magnitude = (int64_t)(bits & (sign - 1));
    return bits & sign ? -magnitude : magnitude;
}

/* Signed or not: wraps round to the right number. */
INLINE uint64_t distance(int64_t a, int64_t b) {
    return a < b ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b;
}

static void settle_not_finite(const gbx_compare_rule *rule, pair *p) {
    bool has_nan = isnan(p->got) || isnan(p->want);
    p->is_equal = p->got == p->want || (isnan(p->got) && isnan(p->want) && !rule->is_strict_nan);
    p->difference = p->is_equal ? 0.0 : INFINITY;
    if (p->is_equal)
        p->ulp = 0;
    else if (has_nan)
        p->ulp = UINT64_MAX;
}

INLINE void weigh_floats(const gbx_compare_rule *rule, uint64_t got_bits, uint64_t want_bits,
                         pair *p) {
    const uint64_t sign = rule->sign_bit;
    p->is_finite = isfinite(p->got) && isfinite(p->want);
    p->ulp = distance(key_of(got_bits, sign), key_of(want_bits, sign));
    p->is_equal = p->got == p->want;
    p->difference = fabs(p->got - p->want);
    if (!p->is_finite)
        settle_not_finite(rule, p);
}

/* 64-bit integers may not be exact as doubles: their bits are subtracted. */
INLINE void weigh_integers(const gbx_compare_rule *rule, uint64_t got_bits, uint64_t want_bits,
                           pair *p) {
    p->is_finite = true;
    if (rule->dtype == GBX_INT64)
        p->ulp = distance((int64_t)got_bits, (int64_t)want_bits);
    else if (rule->dtype == GBX_UINT64)
        p->ulp = got_bits < want_bits ? want_bits - got_bits : got_bits - want_bits;
    else
        p->ulp = (uint64_t)fabs(p->got - p->want);
    p->is_equal = p->ulp == 0;
    p->difference = (double)p->ulp;
}

INLINE double relative_of(const pair *p) {
    double want = fabs(p->want);
    if (p->difference == 0.0 || want == 0.0)
        return 0.0;
    return want < INFINITY ? p->difference / want : INFINITY;
}

/* Never NaN, though a difference beyond the range may be divided by a tolerance beyond it. */
INLINE double excess_of(const pair *p, double tolerance) {
    if (!p->is_finite)
        return INFINITY;
    double excess = p->difference / tolerance;
    return excess < DBL_MAX ? excess : DBL_MAX;
}

INLINE void take_unequal(const gbx_compare_rule *rule, const pair *p, uint64_t index,
                         gbx_compare_block *block) {
    const double relative = relative_of(p);
    const double tolerance = rule->atol + rule->rtol * fabs(p->want);
    const bool is_within =
        !rule->is_exact && p->difference <= tolerance && p->difference < INFINITY;
    block->unequal += 1;
    block->max_abs = p->difference > block->max_abs ? p->difference : block->max_abs;
    block->max_rel = relative > block->max_rel ? relative : block->max_rel;
    block->max_ulp = p->ulp > block->max_ulp ? p->ulp : block->max_ulp;
    if (p->is_finite && (is_within || p->ulp <= rule->ulp))
        return;
    block->mismatches += 1;
    block->first_bad = index < block->first_bad ? index : block->first_bad;
    gbx_compare_take_worst(block, excess_of(p, tolerance), index);
}

INLINE void take_sums(const pair *p, uint64_t index, gbx_compare_block *block) {
    const size_t lane = index % GBX_COMPARE_LANES;
    block->sums[GBX_SUM_SQUARE_DIFFERENCE][lane] += p->difference * p->difference;
    block->sums[GBX_SUM_SQUARE_GOT][lane] += p->got * p->got;
    block->sums[GBX_SUM_SQUARE_WANT][lane] += p->want * p->want;
    block->sums[GBX_SUM_PRODUCT][lane] += p->got * p->want;
}

/* `is_float` is a constant. */
INLINE void take_pairs(const gbx_compare_rule *rule, const chunk *c, bool is_float,
                       gbx_compare_block *out_block) {
    gbx_compare_block kept = *out_block, *block = &kept;
    for (size_t i = 0; i < c->count; ++i) {
        pair p = {.got = c->got[i], .want = c->want[i]};
        if (is_float)
            weigh_floats(rule, c->got_bits[i], c->want_bits[i], &p);
        else
            weigh_integers(rule, c->got_bits[i], c->want_bits[i], &p);
        if (!p.is_equal)
            take_unequal(rule, &p, c->from + i, block);
        if (p.is_finite)
            take_sums(&p, c->from + i, block);
        else
            block->not_finite += 1;
    }
    *out_block = kept;
}

/* Finite numbers that are all equal only add to the sums. */
static bool take_same(const chunk *c, gbx_compare_block *block) {
    bool is_finite = true;
    for (size_t i = 0; i < c->count; ++i)
        is_finite &= fabs(c->got[i]) <= DBL_MAX;
    for (size_t i = 0; is_finite && i < c->count; ++i) {
        pair p = {.got = c->got[i], .want = c->got[i]};
        take_sums(&p, c->from + i, block);
    }
    return is_finite;
}

/* `bytes` is a constant. */
INLINE void load_words(const unsigned char *elements, size_t bytes, size_t count, uint64_t *out) {
    for (size_t i = 0; i < count; ++i) {
        uint64_t word = 0;
        memcpy(&word, elements + i * bytes, bytes);
        out[i] = word;
    }
}

static void load_pairs(const unsigned char *elements, size_t count, uint64_t *out) {
    for (size_t i = 0; i < count; ++i)
        out[i] = elements[i / 2] >> (i % 2 * 4) & 0xf;
}

static void load_bits(uint32_t bits, const unsigned char *elements, size_t count, uint64_t *out) {
    switch (bits) {
    case 64:
        load_words(elements, 8, count, out);
        break;
    case 32:
        load_words(elements, 4, count, out);
        break;
    case 16:
        load_words(elements, 2, count, out);
        break;
    case 8:
        load_words(elements, 1, count, out);
        break;
    default:
        load_pairs(elements, count, out);
    }
}

static void take_chunk(const gbx_compare_rule *rule, const unsigned char *got,
                       const unsigned char *want, chunk *c, gbx_compare_block *block) {
    const uint32_t bits = gbx_dtype_bits(rule->dtype);
    gbx_dtype_array_to_f64(rule->dtype, got, c->count, c->got);
    if (memcmp(got, want, (c->count * bits + 7) / 8) == 0 && take_same(c, block))
        return;
    gbx_dtype_array_to_f64(rule->dtype, want, c->count, c->want);
    load_bits(bits, got, c->count, c->got_bits);
    load_bits(bits, want, c->count, c->want_bits);
    if (gbx_dtype_is_float(rule->dtype))
        take_pairs(rule, c, true, block);
    else
        take_pairs(rule, c, false, block);
}

void gbx_compare_plain(const gbx_compare_rule *rule, const unsigned char *got,
                       const unsigned char *want, size_t from, size_t end,
                       gbx_compare_block *block) {
    for (size_t at = from; at < end; at += CHUNK) {
        const size_t bytes = at * gbx_dtype_bits(rule->dtype) / 8;
        chunk c;
        c.from = at;
        c.count = end - at < CHUNK ? end - at : CHUNK;
        take_chunk(rule, got + bytes, want + bytes, &c, block);
    }
}
