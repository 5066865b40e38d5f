/* The kernels with 64-byte vectors, for floats of more than a byte. */
#if defined(__x86_64__)

#    include "tensor/compare_kernels.h"

#    include <float.h>
#    include <immintrin.h>
#    include <limits.h>
#    include <string.h>

#    define FEATURES "avx512f,avx512bw,avx512vl,avx512dq,f16c,popcnt"
#    define AVX512 __attribute__((target(FEATURES)))
#    define AVX512_INLINE static inline __attribute__((always_inline, target(FEATURES)))

/* Rare: what they do is not to weigh on the loops that call them. */
#    define AVX512_COLD static __attribute__((noinline, cold, target(FEATURES)))

/* Elements of a step, and of the vectors of doubles that they become. */
#    define STEP 16
#    define LANES 8

/* Somewhat less than half of the distance to the next double. */
#    define HALF_STEP (0.5 - 0x1p-30)

/* How far ahead of the loads elements are fetched. */
#    define AHEAD_BYTES 1024

AVX512_INLINE unsigned ones(unsigned mask) {
    return (unsigned)_mm_popcnt_u32(mask);
}

/* --- elements of 16 and of 32 bits --- */

AVX512_INLINE size_t width_of(uint32_t dtype) {
    return dtype == GBX_FLOAT32 ? 4 : 2;
}

/* 16 elements as integers with their sign. */
AVX512_INLINE __m512i codes_at(const unsigned char *elements, uint32_t dtype) {
    if (dtype == GBX_FLOAT32)
        return _mm512_loadu_si512(elements);
    return _mm512_cvtepi16_epi32(_mm256_loadu_si256((const void *)elements));
}

/* The same 16 as floats, which all of them are. */
AVX512_INLINE __m512 floats_of(__m512i codes, const unsigned char *elements, uint32_t dtype) {
    if (dtype == GBX_FLOAT16)
        return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)elements));
    return _mm512_castsi512_ps(dtype == GBX_FLOAT32 ? codes : _mm512_slli_epi32(codes, 16));
}

/* 8 floats. */
AVX512_INLINE __m512d doubles_at(const unsigned char *floats) {
    return _mm512_cvtps_pd(_mm256_loadu_ps((const void *)floats));
}

/* NaN of both kinds, infinity of both signs. */
AVX512_INLINE __mmask16 not_finite(__m512 x) {
    return _mm512_fpclass_ps_mask(x, 0x99);
}

/* Values of the dtype from one to the other: where the signs differ, the way is across zero, and
 * the magnitudes add up to the codes and what the sign is worth. */
AVX512_INLINE __m512i distances_32(__m512i a, __m512i b, uint32_t dtype) {
    __m512i sign = _mm512_set1_epi32(dtype == GBX_FLOAT32 ? INT32_MIN : INT16_MAX + 1);
    __mmask16 is_across_zero = _mm512_movepi32_mask(_mm512_xor_si512(a, b));
    __m512i beside = _mm512_abs_epi32(_mm512_sub_epi32(a, b));
    return _mm512_mask_add_epi32(beside, is_across_zero, a, _mm512_add_epi32(b, sign));
}

/* --- extremes, which a division would tell --- */

/*
 * By lane. A quotient d / w is above the greatest one so far, q, when it rounds to more than q:
 * when q * w - d, which takes one rounding, is below minus w times half of the distance from q to
 * the next double. Only then is it computed. Limits are such q, or what is below.
 */
typedef struct limit {
    __m512d quotient;
    __m512d half_step;
} limit;

typedef struct extremes {
    __m512d relative;
    __m512d worst; /* excess; negative where there is none */
    __m512i worst_index;
    limit relative_limit;
    limit excess_limit;
    __m512 relative_floor; /* of the filter */
} extremes;

AVX512_INLINE __m512d half_steps(__m512d x) {
    __m512d next =
        _mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(x), _mm512_set1_epi64(1)));
    return _mm512_mul_pd(_mm512_sub_pd(next, x), _mm512_set1_pd(HALF_STEP));
}

/* Never infinite: that times a zero is NaN. */
AVX512_INLINE limit limit_of(__m512d quotient) {
    quotient = _mm512_min_pd(quotient, _mm512_set1_pd(0x1p1000));
    return (limit){quotient, half_steps(quotient)};
}

/* A float that is so far below a number that no rounding makes up for it. */
AVX512_INLINE float floor_of(double number) {
    double below = number < 0x1p100 ? number * (1.0 - 0x1p-20) : 0x1p100;
    return below < FLT_MIN ? 0.0F : (float)below;
}

/* Before there is a worst one, what any mismatch is above. */
AVX512_INLINE void set_limits(extremes *x, const gbx_compare_rule *rule) {
    __m512d least = _mm512_set1_pd(rule->is_exact ? 0.0 : 1.0 - DBL_EPSILON);
    __mmask8 has_worst = _mm512_cmp_pd_mask(x->worst, _mm512_setzero_pd(), _CMP_GE_OQ);
    x->relative_limit = limit_of(x->relative);
    x->excess_limit = limit_of(_mm512_mask_mov_pd(least, has_worst, x->worst));
    x->relative_floor = _mm512_set1_ps(floor_of(_mm512_cvtsd_f64(x->relative)));
}

/* The sign is set where d / w is above a limit. */
AVX512_INLINE __m512i exceeds(const limit *l, __m512d d, __m512d w) {
    __m512d rest = _mm512_fmsub_pd(l->quotient, w, d);
    return _mm512_castpd_si512(_mm512_fmadd_pd(l->half_step, w, rest));
}

AVX512_INLINE void begin_extremes(extremes *x, const gbx_compare_rule *rule,
                                  const gbx_compare_block *block) {
    x->relative = _mm512_set1_pd(block->max_rel);
    x->worst = _mm512_set1_pd(block->worst_excess);
    x->worst_index = _mm512_set1_epi64(-1);
    set_limits(x, rule);
}

/* The worst of 8 elements by lane, those in `mask` alone. */
AVX512_INLINE void take_worst(extremes *x, __m512d excess, __mmask8 mask, size_t index) {
    __m512i indices = _mm512_add_epi64(_mm512_set1_epi64((int64_t)index),
                                       _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
    __mmask8 is_worse = _mm512_mask_cmp_pd_mask(mask, excess, x->worst, _CMP_GT_OQ);
    x->worst = _mm512_mask_mov_pd(x->worst, is_worse, excess);
    x->worst_index = _mm512_mask_mov_epi64(x->worst_index, is_worse, indices);
}

AVX512_INLINE __m512d excess_of(__m512d difference, __m512d tolerance) {
    __m512d excess = _mm512_div_pd(difference, tolerance);
    return _mm512_min_pd(excess, _mm512_set1_pd(DBL_MAX)); /* DBL_MAX for NaN */
}

AVX512_INLINE __m512d relative_of(__m512d difference, __m512d want) {
    __mmask8 is_not_zero = _mm512_cmp_pd_mask(want, _mm512_setzero_pd(), _CMP_NEQ_OQ);
    return _mm512_maskz_div_pd(is_not_zero, difference, want);
}

AVX512_INLINE __m512d tolerances(const gbx_compare_rule *rule, __m512d want) {
    return _mm512_add_pd(_mm512_set1_pd(rule->atol),
                         _mm512_mul_pd(_mm512_set1_pd(rule->rtol), want));
}

/* 16 floats. */
AVX512_COLD void raise_extremes(extremes *x, const gbx_compare_rule *rule, const unsigned char *got,
                                const unsigned char *want, size_t index, unsigned mismatches) {
    for (size_t i = 0; i < STEP; i += LANES) {
        __m512d w = doubles_at(want + i * sizeof(float));
        __m512d d = _mm512_abs_pd(_mm512_sub_pd(doubles_at(got + i * sizeof(float)), w));
        w = _mm512_abs_pd(w);
        x->relative = _mm512_max_pd(x->relative, relative_of(d, w));
        take_worst(x, excess_of(d, tolerances(rule, w)), (__mmask8)(mismatches >> i), index + i);
    }
    x->relative = _mm512_set1_pd(_mm512_reduce_max_pd(x->relative));
    set_limits(x, rule);
}

AVX512_INLINE void end_extremes(const extremes *x, gbx_compare_block *block) {
    double relative[LANES], worst[LANES];
    uint64_t indices[LANES];
    _mm512_storeu_pd(relative, x->relative);
    _mm512_storeu_pd(worst, x->worst);
    _mm512_storeu_si512(indices, x->worst_index);
    for (size_t i = 0; i < LANES; ++i) {
        block->max_rel = relative[i] > block->max_rel ? relative[i] : block->max_rel;
        if (indices[i] != GBX_COMPARE_NONE)
            gbx_compare_take_worst(block, worst[i], indices[i]);
    }
}

/* --- what is not finite --- */

/* A copy of some elements with zeros in place of pairs that are not finite. */
typedef struct patch {
    _Alignas(64) unsigned char got[128];
    _Alignas(64) unsigned char want[128];
} patch;

/* They are counted here. Equal ones, of which there may be many, need no more. */
AVX512_COLD void take_not_finite(const gbx_compare_rule *rule, const unsigned char *got,
                                 const unsigned char *want, size_t index, unsigned mask,
                                 gbx_compare_block *block, patch *out_patch) {
    const size_t width = gbx_dtype_bits(rule->dtype) / 8;
    const size_t count = rule->dtype == GBX_FLOAT64 ? LANES : STEP;
    memcpy(out_patch->got, got + index * width, count * width);
    memcpy(out_patch->want, want + index * width, count * width);
    for (; mask != 0; mask &= mask - 1) {
        size_t i = (size_t)__builtin_ctz(mask);
        gbx_compare_plain(rule, got, want, index + i, index + i + 1, block);
        memset(out_patch->got + i * width, 0, width);
        memset(out_patch->want + i * width, 0, width);
    }
}

/* --- the loops --- */

/* What every step changes. */
typedef struct totals {
    __m512d sums[GBX_COMPARE_SUMS];
    __m512d max_abs;
    __m512i max_ulp;
    uint64_t unequal;
    uint64_t mismatches;
    uint64_t first_bad;
    unsigned awaited; /* of a mask: all bits before the first mismatch, then none */
} totals;

AVX512_INLINE void begin_totals(totals *t, const gbx_compare_block *block) {
    *t = (totals){.max_abs = _mm512_set1_pd(block->max_abs),
                  .first_bad = GBX_COMPARE_NONE,
                  .awaited = UINT_MAX};
    GBX_UNROLL
    for (int i = 0; i < GBX_COMPARE_SUMS; ++i)
        t->sums[i] = _mm512_loadu_pd(block->sums[i]);
}

AVX512_INLINE void end_totals(const totals *t, gbx_compare_block *block, uint64_t max_ulp) {
    double max_abs = _mm512_reduce_max_pd(t->max_abs);
    GBX_UNROLL
    for (int i = 0; i < GBX_COMPARE_SUMS; ++i)
        _mm512_storeu_pd(block->sums[i], t->sums[i]);
    block->max_abs = max_abs > block->max_abs ? max_abs : block->max_abs;
    block->max_ulp = max_ulp > block->max_ulp ? max_ulp : block->max_ulp;
    block->unequal += t->unequal;
    block->mismatches += t->mismatches;
    block->first_bad = t->first_bad < block->first_bad ? t->first_bad : block->first_bad;
}

AVX512_INLINE void count_mismatches(totals *t, unsigned mask, size_t index) {
    t->mismatches += ones(mask);
    if (__builtin_expect((mask & t->awaited) != 0, 0)) {
        t->first_bad = index + (size_t)__builtin_ctz(mask);
        t->awaited = 0;
    }
}

/* Fused where the product needs no rounding: of numbers of 24 bits. */
AVX512_INLINE void add_products(totals *t, __m512d got, __m512d want, __m512d difference) {
    t->sums[GBX_SUM_SQUARE_DIFFERENCE] =
        _mm512_add_pd(t->sums[GBX_SUM_SQUARE_DIFFERENCE], _mm512_mul_pd(difference, difference));
    t->sums[GBX_SUM_SQUARE_GOT] = _mm512_fmadd_pd(got, got, t->sums[GBX_SUM_SQUARE_GOT]);
    t->sums[GBX_SUM_SQUARE_WANT] = _mm512_fmadd_pd(want, want, t->sums[GBX_SUM_SQUARE_WANT]);
    t->sums[GBX_SUM_PRODUCT] = _mm512_fmadd_pd(got, want, t->sums[GBX_SUM_PRODUCT]);
}

/* 16 elements. */
typedef struct elements {
    const unsigned char *got; /* as floats */
    const unsigned char *want;
    __m512 magnitude; /* of those of want, rounded to floats, like the next */
    __m512 difference;
    __m512i distances;
} elements;

/* Floats, where elements are not, go to memory: to take eight from there is least work. */
typedef struct floats {
    _Alignas(64) unsigned char got[STEP * sizeof(float)];
    _Alignas(64) unsigned char want[STEP * sizeof(float)];
} floats;

AVX512_INLINE elements elements_at(const unsigned char *got, const unsigned char *want,
                                   uint32_t dtype, floats *room) {
    __m512i codes[2] = {codes_at(got, dtype), codes_at(want, dtype)};
    __m512 g = floats_of(codes[0], got, dtype), w = floats_of(codes[1], want, dtype);
    if (dtype != GBX_FLOAT32) {
        _mm512_store_ps((void *)room->got, g);
        _mm512_store_ps((void *)room->want, w);
    }
    return (elements){.got = dtype == GBX_FLOAT32 ? got : room->got,
                      .want = dtype == GBX_FLOAT32 ? want : room->want,
                      .magnitude = _mm512_abs_ps(w),
                      .difference = _mm512_abs_ps(_mm512_sub_ps(g, w)),
                      .distances = distances_32(codes[0], codes[1], dtype)};
}

/*
 * What floats are enough to tell: a difference that is below its limit is within its tolerance and
 * is no new extreme. The numbers are less than those of the rule, by more than floats are off.
 * Differences below FLT_MIN are exact, and limits there rounded to the same multiples: those that
 * are not below stay so.
 */
typedef struct filter {
    __m512 rtol;
    __m512 atol;
} filter;

AVX512_INLINE filter filter_of(const gbx_compare_rule *rule, bool is_exact) {
    return (filter){_mm512_set1_ps(floor_of(rule->rtol)),
                    _mm512_set1_ps(is_exact ? 0.0F : floor_of(rule->atol))};
}

AVX512_INLINE __mmask16 held_back(const filter *f, const extremes *x, const elements *e,
                                  __mmask16 is_unequal) {
    __m512 bound = _mm512_min_ps(_mm512_mul_ps(x->relative_floor, e->magnitude),
                                 _mm512_fmadd_ps(f->rtol, e->magnitude, f->atol));
    return _mm512_mask_cmp_ps_mask(is_unequal, e->difference, bound, _CMP_NLT_UQ);
}

/* 8 elements, of which those in `apart` are further from each other than `ulp`. Returns those that
 * are beyond their tolerance. *out_raised has the sign set where an extreme may be exceeded.
 * `is_exact` as in the rule, a constant. */
AVX512_INLINE unsigned judge_8(const extremes *x, const gbx_compare_rule *rule, __m512d g,
                               __m512d w, unsigned apart, bool is_exact, __m512i *out_raised) {
    __mmask8 has_relative = _mm512_cmp_pd_mask(w, _mm512_setzero_pd(), _CMP_NEQ_OQ);
    __m512d d = _mm512_abs_pd(_mm512_sub_pd(g, w));
    __m512d magnitude = _mm512_abs_pd(w);
    __m512i raised = exceeds(&x->relative_limit, _mm512_maskz_mov_pd(has_relative, d), magnitude);
    if (is_exact) {
        __m512d far = _mm512_maskz_mov_pd((__mmask8)apart, d);
        __m512i is_worse = exceeds(&x->excess_limit, far, _mm512_set1_pd(1.0));
        *out_raised = _mm512_or_si512(raised, is_worse);
        return (1u << LANES) - 1;
    }
    __m512d tolerance = tolerances(rule, magnitude);
    *out_raised = _mm512_or_si512(raised, exceeds(&x->excess_limit, d, tolerance));
    return _mm512_cmp_pd_mask(d, tolerance, _CMP_GT_OQ);
}

/* Elements that the filter does not let pass. */
AVX512_INLINE void judge_16(totals *t, extremes *x, const gbx_compare_rule *rule, const elements *e,
                            size_t index, bool is_exact) {
    const size_t half = LANES * sizeof(float);
    const int near = rule->ulp < UINT32_MAX ? (int)(uint32_t)rule->ulp : -1;
    unsigned apart = _mm512_cmpgt_epu32_mask(e->distances, _mm512_set1_epi32(near));
    __m512i raised[2];
    unsigned low =
        judge_8(x, rule, doubles_at(e->got), doubles_at(e->want), apart, is_exact, &raised[0]);
    unsigned high = judge_8(x, rule, doubles_at(e->got + half), doubles_at(e->want + half),
                            apart >> LANES, is_exact, &raised[1]);
    unsigned mismatches = apart & (low | high << LANES);
    count_mismatches(t, mismatches, index);
    unsigned is_raised = _mm512_movepi64_mask(_mm512_or_si512(raised[0], raised[1]));
    if (__builtin_expect(is_raised != 0, 0))
        raise_extremes(x, rule, e->got, e->want, index, mismatches);
}

AVX512_INLINE void take_8(totals *t, __m512d g, __m512d w) {
    __m512d d = _mm512_sub_pd(g, w);
    add_products(t, g, w, d);
    t->max_abs = _mm512_range_pd(d, t->max_abs, 0xb); /* the greater magnitude */
}

AVX512_INLINE void take_16(totals *t, extremes *x, const gbx_compare_rule *rule, const filter *f,
                           const elements *e, size_t index, bool is_exact) {
    const size_t half = LANES * sizeof(float);
    __mmask16 is_unequal = _mm512_test_epi32_mask(e->distances, e->distances);
    t->max_ulp = _mm512_max_epu32(t->max_ulp, e->distances);
    t->unequal += ones(is_unequal);
    take_8(t, doubles_at(e->got), doubles_at(e->want));
    take_8(t, doubles_at(e->got + half), doubles_at(e->want + half));
    if (held_back(f, x, e, is_unequal) != 0)
        judge_16(t, x, rule, e, index, is_exact);
}

AVX512_INLINE void take_floats(const gbx_compare_rule *rule, const unsigned char *got,
                               const unsigned char *want, size_t from, size_t end,
                               gbx_compare_block *block, uint32_t dtype, bool is_exact) {
    const gbx_compare_rule kept = *rule;
    const filter f = filter_of(rule, is_exact);
    extremes x;
    totals t;
    floats room;
    begin_extremes(&x, &kept, block);
    begin_totals(&t, block);
    for (size_t at = from; at < end; at += STEP) {
        const unsigned char *g = got + at * width_of(dtype);
        const unsigned char *w = want + at * width_of(dtype);
        elements e = elements_at(g, w, dtype, &room);
        patch patched;
        _mm_prefetch((const char *)g + AHEAD_BYTES, _MM_HINT_T0);
        _mm_prefetch((const char *)w + AHEAD_BYTES, _MM_HINT_T0);
        /* Infinite, too, where finite ones are further apart than floats reach. */
        if (__builtin_expect(not_finite(e.difference) != 0, 0)) {
            unsigned rest = not_finite(_mm512_loadu_ps((const void *)e.got)) |
                            not_finite(_mm512_loadu_ps((const void *)e.want));
            take_not_finite(rule, got, want, at, rest, block, &patched);
            e = elements_at(patched.got, patched.want, dtype, &room);
        }
        take_16(&t, &x, &kept, &f, &e, at, is_exact);
    }
    end_extremes(&x, block);
    end_totals(&t, block, _mm512_reduce_max_epu32(t.max_ulp));
}

/* --- float64 --- */

AVX512_INLINE __m512i distances_64(__m512d got, __m512d want) {
    __m512i keys[2] = {_mm512_castpd_si512(got), _mm512_castpd_si512(want)};
    __m512i bits = _mm512_set1_epi64(INT64_MAX);
    GBX_UNROLL
    for (int i = 0; i < 2; ++i) {
        __m512i sign = _mm512_srai_epi64(keys[i], 63);
        keys[i] = _mm512_sub_epi64(_mm512_ternarylogic_epi64(keys[i], sign, bits, 0x78), sign);
    }
    return _mm512_sub_epi64(_mm512_max_epi64(keys[0], keys[1]), _mm512_min_epi64(keys[0], keys[1]));
}

/* Products are rounded before they are added. */
AVX512_INLINE void add_rounded(totals *t, __m512d got, __m512d want, __m512d difference) {
    __m512d products[GBX_COMPARE_SUMS] = {[GBX_SUM_SQUARE_DIFFERENCE] =
                                              _mm512_mul_pd(difference, difference),
                                          [GBX_SUM_SQUARE_GOT] = _mm512_mul_pd(got, got),
                                          [GBX_SUM_SQUARE_WANT] = _mm512_mul_pd(want, want),
                                          [GBX_SUM_PRODUCT] = _mm512_mul_pd(got, want)};
    GBX_UNROLL
    for (int i = 0; i < GBX_COMPARE_SUMS; ++i)
        t->sums[i] = _mm512_add_pd(t->sums[i], products[i]);
}

/* A difference of finite numbers that is beyond the range is a mismatch, whatever the tolerance. */
AVX512_INLINE void take_64(totals *t, extremes *x, const gbx_compare_rule *rule, __m512d g,
                           __m512d w, size_t index) {
    const __m512d infinity = _mm512_set1_pd(__builtin_inf());
    __m512i distances = distances_64(g, w);
    __m512d d = _mm512_abs_pd(_mm512_sub_pd(g, w));
    __m512d magnitude = _mm512_abs_pd(w);
    __m512d tolerance = tolerances(rule, magnitude);
    __mmask8 beyond = _mm512_cmpgt_epu64_mask(distances, _mm512_set1_epi64((int64_t)rule->ulp));
    __mmask8 mismatches = beyond;
    if (!rule->is_exact)
        mismatches = _mm512_mask_cmp_pd_mask(beyond, d, tolerance, _CMP_NLE_UQ) |
                     _mm512_mask_cmp_pd_mask(beyond, d, infinity, _CMP_EQ_OQ);
    t->max_ulp = _mm512_max_epu64(t->max_ulp, distances);
    t->unequal += ones(_mm512_test_epi64_mask(distances, distances));
    t->max_abs = _mm512_max_pd(t->max_abs, d);
    add_rounded(t, g, w, d);
    count_mismatches(t, mismatches, index);
    x->relative = _mm512_max_pd(x->relative, relative_of(d, magnitude));
    take_worst(x, excess_of(d, tolerance), mismatches, index);
}

AVX512_INLINE __mmask8 not_finite_64(__m512d x) {
    return _mm512_fpclass_pd_mask(x, 0x99);
}

AVX512 static void take_float64(const gbx_compare_rule *rule, const unsigned char *got,
                                const unsigned char *want, size_t from, size_t end,
                                gbx_compare_block *block) {
    const gbx_compare_rule kept = *rule;
    extremes x;
    totals t;
    begin_extremes(&x, &kept, block);
    begin_totals(&t, block);
    for (size_t at = from; at < end; at += LANES) {
        __m512d g = _mm512_loadu_pd((const void *)(got + at * sizeof(double)));
        __m512d w = _mm512_loadu_pd((const void *)(want + at * sizeof(double)));
        unsigned rest = not_finite_64(g) | not_finite_64(w);
        patch patched;
        if (__builtin_expect(rest != 0, 0)) {
            take_not_finite(rule, got, want, at, rest, block, &patched);
            g = _mm512_load_pd((const void *)patched.got);
            w = _mm512_load_pd((const void *)patched.want);
        }
        take_64(&t, &x, &kept, g, w, at);
    }
    end_extremes(&x, block);
    end_totals(&t, block, _mm512_reduce_max_epu64(t.max_ulp));
}

/* --- one function for each dtype, for which it is a constant --- */

#    define KERNEL(name, dtype)                                                                    \
        AVX512 static void name(const gbx_compare_rule *rule, const unsigned char *got,            \
                                const unsigned char *want, size_t from, size_t end,                \
                                gbx_compare_block *block) {                                        \
            if (rule->is_exact)                                                                    \
                take_floats(rule, got, want, from, end, block, dtype, true);                       \
            else                                                                                   \
                take_floats(rule, got, want, from, end, block, dtype, false);                      \
        }

KERNEL(take_float32, GBX_FLOAT32)
KERNEL(take_float16, GBX_FLOAT16)
KERNEL(take_bfloat16, GBX_BFLOAT16)

gbx_compare_kernel *const gbx_compare_avx512[GBX_DTYPE_COUNT] = {
    [GBX_FLOAT32] = take_float32,
    [GBX_FLOAT16] = take_float16,
    [GBX_BFLOAT16] = take_bfloat16,
    [GBX_FLOAT64] = take_float64,
};

#endif
