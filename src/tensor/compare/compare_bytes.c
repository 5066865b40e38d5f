/*
 * The kernels of integers of at most 8 bits and of bool. They sum integers, which is exact: in any
 * order the sums equal those of the lanes of doubles. Quotients of max_rel are compared as
 * products; only the quotient left in each lane is divided, at the end.
 */
#if defined(__x86_64__)

#    include <float.h>
#    include <immintrin.h>
#    include <math.h>
#    include <stdlib.h>

#    include "tensor/compare/compare_kernels.h"
#    include "tensor/dtype_table.h"

#    define FEATURES "avx2"
#    define VECTOR_INLINE static inline __attribute__((always_inline, target(FEATURES)))

/* Elements of a step, 16 bits each. */
enum { STEP = 16 };

/* What elements are; a constant in every kernel. */
typedef struct form {
    bool is_packed;
    gbx_dtype_class class;
} form;

typedef struct totals {
    __m256i square_got; /* sums of two elements each, of 32 bits, like the next two */
    __m256i square_want;
    __m256i product;
    __m256i equal;      /* counts, of 16 bits */
    __m256i mismatches; /* likewise */
    __m256i most;       /* |got - want| */
    __m256i above;      /* of the greatest |got - want| / |want| */
    __m256i below;
} totals;

/* Of 16 in 8 bytes, the first in the low half. */
VECTOR_INLINE __m256i words_of_pairs(const unsigned char *elements, bool is_signed) {
    __m128i pairs = _mm_loadl_epi64((const void *)elements), half = _mm_set1_epi8(0xf);
    __m128i high = _mm_and_si128(_mm_srli_epi16(pairs, 4), half);
    __m128i codes = _mm_unpacklo_epi8(_mm_and_si128(pairs, half), high);
    __m128i sign = _mm_set1_epi8(is_signed ? 8 : 0);
    return _mm256_cvtepi8_epi16(_mm_sub_epi8(_mm_xor_si128(codes, sign), sign));
}

VECTOR_INLINE __m256i words_at(const unsigned char *block, size_t index, form f) {
    if (f.is_packed)
        return words_of_pairs(block + index / 2, f.class == GBX_CLASS_SIGNED);
    __m128i x = _mm_loadu_si128((const void *)(block + index));
    if (f.class == GBX_CLASS_BOOL)
        x = _mm_min_epu8(x, _mm_set1_epi8(1));
    return f.class == GBX_CLASS_SIGNED ? _mm256_cvtepi8_epi16(x) : _mm256_cvtepu8_epi16(x);
}

VECTOR_INLINE void take_quotients(totals *t, __m256i d, __m256i want) {
    __m256i zero = _mm256_setzero_si256();
    __m256i w = _mm256_abs_epi16(want);
    __m256i above = _mm256_andnot_si256(_mm256_cmpeq_epi16(w, zero), d);
    __m256i excess =
        _mm256_subs_epu16(_mm256_mullo_epi16(above, t->below), _mm256_mullo_epi16(t->above, w));
    __m256i is_not_more = _mm256_cmpeq_epi16(excess, zero);
    t->above = _mm256_blendv_epi8(above, t->above, is_not_more);
    t->below = _mm256_blendv_epi8(w, t->below, is_not_more);
}

VECTOR_INLINE void take_step(totals *t, __m256i g, __m256i w, __m256i limit) {
    __m256i d = _mm256_abs_epi16(_mm256_sub_epi16(g, w));
    t->square_got = _mm256_add_epi32(t->square_got, _mm256_madd_epi16(g, g));
    t->square_want = _mm256_add_epi32(t->square_want, _mm256_madd_epi16(w, w));
    t->product = _mm256_add_epi32(t->product, _mm256_madd_epi16(g, w));
    t->equal = _mm256_sub_epi16(t->equal, _mm256_cmpeq_epi16(g, w));
    t->mismatches = _mm256_sub_epi16(t->mismatches, _mm256_cmpgt_epi16(d, limit));
    t->most = _mm256_max_epi16(t->most, d);
    take_quotients(t, d, w);
}

VECTOR_INLINE int64_t sum_32(__m256i x) {
    int32_t lanes[STEP / 2];
    int64_t sum = 0;
    _mm256_storeu_si256((void *)lanes, x);
    for (int i = 0; i < STEP / 2; ++i)
        sum += lanes[i];
    return sum;
}

VECTOR_INLINE uint64_t sum_16(__m256i x) {
    return (uint64_t)sum_32(_mm256_madd_epi16(x, _mm256_set1_epi16(1)));
}

VECTOR_INLINE int most_16(__m256i x) {
    int16_t lanes[STEP];
    int most = 0;
    _mm256_storeu_si256((void *)lanes, x);
    for (int i = 0; i < STEP; ++i)
        most = lanes[i] > most ? lanes[i] : most;
    return most;
}

VECTOR_INLINE double greatest_quotient(const totals *t) {
    uint16_t above[STEP], below[STEP];
    double most = 0.0;
    _mm256_storeu_si256((void *)above, t->above);
    _mm256_storeu_si256((void *)below, t->below);
    for (int i = 0; i < STEP; ++i)
        most = fmax(most, (double)above[i] / (double)below[i]);
    return most;
}

static int value_at(const unsigned char *block, size_t i, uint32_t dtype) {
    uint64_t bits = gbx_dtype_is_packed(dtype) ? (uint64_t)block[i / 2] >> (i % 2 * 4) : block[i];
    return (int)gbx_dtype_to_f64(dtype, bits);
}

static size_t find_difference(const unsigned char *got, const unsigned char *want, size_t from,
                              int least, uint32_t dtype) {
    while (abs(value_at(got, from, dtype) - value_at(want, from, dtype)) < least)
        ++from;
    return from;
}

/* A mismatch is a difference greater than this. */
static int limit_of(const gbx_compare_rule *rule) {
    double near = rule->is_exact ? 0.0 : floor(fmin(rule->atol, UINT8_MAX));
    double steps = rule->ulp < UINT8_MAX ? (double)rule->ulp : UINT8_MAX;
    return (int)fmax(near, steps);
}

static void note_bad(const gbx_compare_rule *rule, const unsigned char *got,
                     const unsigned char *want, size_t from, int most, int limit,
                     gbx_compare_block *block) {
    double excess = most / rule->atol;
    if (block->worst_excess < 0.0) /* the first mismatch of all */
        block->first_bad = find_difference(got, want, from, limit + 1, rule->dtype);
    if (excess > block->worst_excess)
        gbx_compare_take_worst(block, fmin(excess, DBL_MAX),
                               find_difference(got, want, from, most, rule->dtype));
}

VECTOR_INLINE void end_totals(const totals *t, uint64_t count, gbx_compare_block *block) {
    int64_t got = sum_32(t->square_got), want = sum_32(t->square_want);
    int64_t product = sum_32(t->product);
    double most = most_16(t->most);
    block->sums[GBX_SUM_SQUARE_DIFFERENCE][0] += (double)(got + want - 2 * product);
    block->sums[GBX_SUM_SQUARE_GOT][0] += (double)got;
    block->sums[GBX_SUM_SQUARE_WANT][0] += (double)want;
    block->sums[GBX_SUM_PRODUCT][0] += (double)product;
    block->unequal += count - sum_16(t->equal);
    block->mismatches += sum_16(t->mismatches);
    block->max_abs = fmax(block->max_abs, most);
    block->max_rel = fmax(block->max_rel, greatest_quotient(t));
    block->max_ulp = most > (double)block->max_ulp ? (uint64_t)most : block->max_ulp;
}

VECTOR_INLINE void take_bytes(const gbx_compare_rule *rule, const unsigned char *got,
                              const unsigned char *want, size_t from, size_t end,
                              gbx_compare_block *block, form f) {
    if (rule->rtol > 0.0) { /* differences do not suffice to find what is bad */
        gbx_compare_plain(rule, got, want, from, end, block);
        return;
    }
    const int limit = limit_of(rule);
    totals t = {.below = _mm256_set1_epi16(1)};
    for (size_t at = from; at < end; at += STEP)
        take_step(&t, words_at(got, at, f), words_at(want, at, f),
                  _mm256_set1_epi16((int16_t)limit));
    end_totals(&t, end - from, block);
    if (most_16(t.most) > limit)
        note_bad(rule, got, want, from, most_16(t.most), limit, block);
}

__attribute__((target(FEATURES))) void gbx_compare_bytes(const gbx_compare_rule *rule,
                                                         const unsigned char *got,
                                                         const unsigned char *want, size_t from,
                                                         size_t end, gbx_compare_block *block) {
    const form f = {gbx_dtype_is_packed(rule->dtype), gbx_dtype_info_of(rule->dtype)->class};
#    define TAKE(...) take_bytes(rule, got, want, from, end, block, (form){__VA_ARGS__})
    if (f.class == GBX_CLASS_BOOL)
        TAKE(false, GBX_CLASS_BOOL);
    else if (f.is_packed && f.class == GBX_CLASS_SIGNED)
        TAKE(true, GBX_CLASS_SIGNED);
    else if (f.is_packed)
        TAKE(true, GBX_CLASS_UNSIGNED);
    else if (f.class == GBX_CLASS_SIGNED)
        TAKE(false, GBX_CLASS_SIGNED);
    else
        TAKE(false, GBX_CLASS_UNSIGNED);
}

#endif
