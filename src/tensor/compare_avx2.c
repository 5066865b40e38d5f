/* The kernels with 32-byte vectors, for floats of more than a byte. */
#if defined(__x86_64__)

#    include "tensor/compare_kernels.h"

#    include <float.h>
#    include <immintrin.h>
#    include <limits.h>
#    include <string.h>

#    define FEATURES "avx2,fma,f16c,popcnt"
#    define AVX2 __attribute__((target(FEATURES)))
#    define AVX2_INLINE static inline __attribute__((always_inline, target(FEATURES)))

/* Rare: what they do is not to weigh on the loops that call them. */
#    define AVX2_COLD static __attribute__((noinline, cold, target(FEATURES)))

/* Elements of a step, and of the vectors of doubles that they become, and how many those are. */
#    define STEP 8
#    define LANES 4
#    define HALVES 2

/* Somewhat less than half of the distance to the next double. */
#    define HALF_STEP (0.5 - 0x1p-30)

/* How far ahead of the loads elements are fetched. */
#    define AHEAD_BYTES 1024

AVX2_INLINE unsigned ones(unsigned mask) {
    return (unsigned)_mm_popcnt_u32(mask);
}

/* --- elements of 16 and of 32 bits --- */

AVX2_INLINE size_t width_of(uint32_t dtype) {
    return dtype == GBX_FLOAT32 ? 4 : 2;
}

AVX2_INLINE __m256d absolute(__m256d x) {
    return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
}

/* 8 elements as integers with their sign. */
AVX2_INLINE __m256i codes_at(const unsigned char *elements, uint32_t dtype) {
    if (dtype == GBX_FLOAT32)
        return _mm256_loadu_si256((const void *)elements);
    return _mm256_cvtepi16_epi32(_mm_loadu_si128((const void *)elements));
}

/* 4 elements. */
AVX2_INLINE __m256d doubles_at(const unsigned char *elements, uint32_t dtype) {
    if (dtype == GBX_FLOAT32)
        return _mm256_cvtps_pd(_mm_loadu_ps((const void *)elements));
    __m128i codes = _mm_loadl_epi64((const void *)elements);
    if (dtype == GBX_FLOAT16)
        return _mm256_cvtps_pd(_mm_cvtph_ps(codes));
    __m128i widened = _mm_unpacklo_epi16(_mm_setzero_si128(), codes);
    return _mm256_cvtps_pd(_mm_castsi128_ps(widened));
}

AVX2_INLINE int magnitude_bits(uint32_t dtype) {
    return dtype == GBX_FLOAT32 ? INT32_MAX : INT16_MAX;
}

AVX2_INLINE int infinity_code(uint32_t dtype) {
    return dtype == GBX_FLOAT32 ? 0x7f800000 : dtype == GBX_BFLOAT16 ? 0x7f80 : 0x7c00;
}

AVX2_INLINE __m256i not_finite(__m256i codes, uint32_t dtype) {
    __m256i magnitude = _mm256_and_si256(codes, _mm256_set1_epi32(magnitude_bits(dtype)));
    return _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(infinity_code(dtype) - 1));
}

AVX2_INLINE unsigned mask_32(__m256i x) {
    return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(x));
}

AVX2_INLINE unsigned mask_64(__m256d x) {
    return (unsigned)_mm256_movemask_pd(x);
}

/* The lanes of a mask, all bits of each. */
AVX2_INLINE __m256d lanes_of(unsigned mask) {
    __m256i bits = _mm256_set_epi64x(8, 4, 2, 1);
    __m256i found = _mm256_and_si256(_mm256_set1_epi64x((int64_t)mask), bits);
    return _mm256_castsi256_pd(_mm256_cmpeq_epi64(found, bits));
}

/* Values of the dtype from one to the other: where the signs differ, the way is across zero. */
AVX2_INLINE __m256i distances_32(__m256i a, __m256i b, uint32_t dtype) {
    __m256i bits = _mm256_set1_epi32(magnitude_bits(dtype));
    __m256 signs = _mm256_castsi256_ps(_mm256_xor_si256(a, b));
    a = _mm256_and_si256(a, bits);
    b = _mm256_and_si256(b, bits);
    __m256 beside = _mm256_castsi256_ps(_mm256_abs_epi32(_mm256_sub_epi32(a, b)));
    __m256 across = _mm256_castsi256_ps(_mm256_add_epi32(a, b));
    return _mm256_castps_si256(_mm256_blendv_ps(beside, across, signs));
}

/* --- extremes, which a division would tell --- */

/*
 * By lane. A quotient d / w is above the greatest one so far, q, when it rounds to more than q:
 * when q * w - d, which takes one rounding, is below minus w times half of the distance from q to
 * the next double. Only then is it computed. Limits are such q, or what is below.
 */
typedef struct limit {
    __m256d quotient;
    __m256d half_step;
} limit;

typedef struct extremes {
    __m256d relative;
    __m256d worst; /* excess; negative where there is none */
    __m256i worst_index;
    limit relative_limit;
    limit excess_limit;
} extremes;

AVX2_INLINE __m256d half_steps(__m256d x) {
    __m256d next =
        _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(x), _mm256_set1_epi64x(1)));
    return _mm256_mul_pd(_mm256_sub_pd(next, x), _mm256_set1_pd(HALF_STEP));
}

/* Never infinite: that times a zero is NaN. */
AVX2_INLINE limit limit_of(__m256d quotient) {
    quotient = _mm256_min_pd(quotient, _mm256_set1_pd(0x1p1000));
    return (limit){quotient, half_steps(quotient)};
}

/* Before there is a worst one, what any mismatch is above. */
AVX2_INLINE void set_limits(extremes *x, const gbx_compare_rule *rule) {
    __m256d least = _mm256_set1_pd(rule->is_exact ? 0.0 : 1.0 - DBL_EPSILON);
    x->relative_limit = limit_of(x->relative);
    x->excess_limit = limit_of(_mm256_blendv_pd(x->worst, least, x->worst)); /* by the sign */
}

/* The sign is set where d / w is above a limit. */
AVX2_INLINE __m256d exceeds(const limit *l, __m256d d, __m256d w) {
    __m256d rest = _mm256_fmsub_pd(l->quotient, w, d);
    return _mm256_fmadd_pd(l->half_step, w, rest);
}

AVX2_INLINE void begin_extremes(extremes *x, const gbx_compare_rule *rule,
                                const gbx_compare_block *block) {
    x->relative = _mm256_set1_pd(block->max_rel);
    x->worst = _mm256_set1_pd(block->worst_excess);
    x->worst_index = _mm256_set1_epi64x(-1);
    set_limits(x, rule);
}

/* The worst of 4 elements by lane, those in `mask` alone. */
AVX2_INLINE void take_worst(extremes *x, __m256d excess, __m256d mask, size_t index) {
    __m256i indices =
        _mm256_add_epi64(_mm256_set1_epi64x((int64_t)index), _mm256_set_epi64x(3, 2, 1, 0));
    __m256d is_worse = _mm256_and_pd(mask, _mm256_cmp_pd(excess, x->worst, _CMP_GT_OQ));
    x->worst = _mm256_blendv_pd(x->worst, excess, is_worse);
    x->worst_index = _mm256_blendv_epi8(x->worst_index, indices, _mm256_castpd_si256(is_worse));
}

AVX2_INLINE __m256d excess_of(__m256d difference, __m256d tolerance) {
    __m256d excess = _mm256_div_pd(difference, tolerance);
    return _mm256_min_pd(excess, _mm256_set1_pd(DBL_MAX)); /* DBL_MAX for NaN */
}

AVX2_INLINE __m256d relative_of(__m256d difference, __m256d want) {
    __m256d is_zero = _mm256_cmp_pd(want, _mm256_setzero_pd(), _CMP_EQ_OQ);
    return _mm256_andnot_pd(is_zero, _mm256_div_pd(difference, want));
}

AVX2_INLINE __m256d tolerances(const gbx_compare_rule *rule, __m256d want) {
    return _mm256_add_pd(_mm256_set1_pd(rule->atol),
                         _mm256_mul_pd(_mm256_set1_pd(rule->rtol), want));
}

AVX2_COLD void raise_extremes(extremes *x, const gbx_compare_rule *rule, const unsigned char *got,
                              const unsigned char *want, size_t index, unsigned mismatches) {
    const size_t width = width_of(rule->dtype);
    for (size_t i = 0; i < STEP; i += LANES) {
        __m256d w = doubles_at(want + i * width, rule->dtype);
        __m256d d = absolute(_mm256_sub_pd(doubles_at(got + i * width, rule->dtype), w));
        w = absolute(w);
        x->relative = _mm256_max_pd(x->relative, relative_of(d, w));
        take_worst(x, excess_of(d, tolerances(rule, w)), lanes_of(mismatches >> i), index + i);
    }
    set_limits(x, rule);
}

AVX2_INLINE void end_extremes(const extremes *x, gbx_compare_block *block) {
    double relative[LANES], worst[LANES];
    uint64_t indices[LANES];
    _mm256_storeu_pd(relative, x->relative);
    _mm256_storeu_pd(worst, x->worst);
    _mm256_storeu_si256((void *)indices, x->worst_index);
    for (size_t i = 0; i < LANES; ++i) {
        block->max_rel = relative[i] > block->max_rel ? relative[i] : block->max_rel;
        if (indices[i] != GBX_COMPARE_NONE)
            gbx_compare_take_worst(block, worst[i], indices[i]);
    }
}

/* --- what is not finite --- */

/* A copy of some elements with zeros in place of pairs that are not finite. */
typedef struct patch {
    _Alignas(32) unsigned char got[32];
    _Alignas(32) unsigned char want[32];
} patch;

/* They are counted here. Equal ones, of which there may be many, need no more. */
AVX2_COLD void take_not_finite(const gbx_compare_rule *rule, const unsigned char *got,
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
    __m256d sums[HALVES][GBX_COMPARE_SUMS];
    __m256d max_abs;
    __m256i max_ulp;
    uint64_t unequal;
    uint64_t mismatches;
    uint64_t first_bad;
    unsigned awaited; /* of a mask: all bits before the first mismatch, then none */
} totals;

AVX2_INLINE void begin_totals(totals *t, const gbx_compare_block *block) {
    *t = (totals){.max_abs = _mm256_set1_pd(block->max_abs),
                  .first_bad = GBX_COMPARE_NONE,
                  .awaited = UINT_MAX};
    GBX_UNROLL
    for (int i = 0; i < GBX_COMPARE_SUMS; ++i) {
        t->sums[0][i] = _mm256_loadu_pd(block->sums[i]);
        t->sums[1][i] = _mm256_loadu_pd(block->sums[i] + LANES);
    }
}

AVX2_INLINE double greatest(__m256d x) {
    __m128d two = _mm_max_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_max_pd(two, _mm_unpackhi_pd(two, two)));
}

AVX2_INLINE void end_totals(const totals *t, gbx_compare_block *block, uint64_t max_ulp) {
    double max_abs = greatest(t->max_abs);
    GBX_UNROLL
    for (int i = 0; i < GBX_COMPARE_SUMS; ++i) {
        _mm256_storeu_pd(block->sums[i], t->sums[0][i]);
        _mm256_storeu_pd(block->sums[i] + LANES, t->sums[1][i]);
    }
    block->max_abs = max_abs > block->max_abs ? max_abs : block->max_abs;
    block->max_ulp = max_ulp > block->max_ulp ? max_ulp : block->max_ulp;
    block->unequal += t->unequal;
    block->mismatches += t->mismatches;
    block->first_bad = t->first_bad < block->first_bad ? t->first_bad : block->first_bad;
}

AVX2_INLINE void count_mismatches(totals *t, unsigned mask, size_t index) {
    t->mismatches += ones(mask);
    if (__builtin_expect((mask & t->awaited) != 0, 0)) {
        t->first_bad = index + (size_t)__builtin_ctz(mask);
        t->awaited = 0;
    }
}

/* Fused where the product needs no rounding: of numbers of 24 bits. */
AVX2_INLINE void add_products(__m256d sums[GBX_COMPARE_SUMS], __m256d got, __m256d want,
                              __m256d difference) {
    sums[GBX_SUM_SQUARE_DIFFERENCE] =
        _mm256_add_pd(sums[GBX_SUM_SQUARE_DIFFERENCE], _mm256_mul_pd(difference, difference));
    sums[GBX_SUM_SQUARE_GOT] = _mm256_fmadd_pd(got, got, sums[GBX_SUM_SQUARE_GOT]);
    sums[GBX_SUM_SQUARE_WANT] = _mm256_fmadd_pd(want, want, sums[GBX_SUM_SQUARE_WANT]);
    sums[GBX_SUM_PRODUCT] = _mm256_fmadd_pd(got, want, sums[GBX_SUM_PRODUCT]);
}

/* 4 elements, of which those in `apart` are further from each other than `ulp`. Returns those that
 * are beyond their tolerance. *out_raised has the sign set where an extreme may be exceeded.
 * `is_exact` as in the rule, a constant. */
AVX2_INLINE unsigned take_4(totals *t, int half, const extremes *x, const gbx_compare_rule *rule,
                            __m256d g, __m256d w, unsigned apart, bool is_exact,
                            __m256d *out_raised) {
    __m256d d = absolute(_mm256_sub_pd(g, w));
    __m256d magnitude = absolute(w);
    add_products(t->sums[half], g, w, d);
    t->max_abs = _mm256_max_pd(t->max_abs, d);
    __m256d raised = exceeds(&x->relative_limit, d, magnitude);
    if (is_exact) {
        __m256d far = _mm256_and_pd(lanes_of(apart), d);
        *out_raised = _mm256_or_pd(raised, exceeds(&x->excess_limit, far, _mm256_set1_pd(1.0)));
        return (1u << LANES) - 1;
    }
    __m256d tolerance = tolerances(rule, magnitude);
    *out_raised = _mm256_or_pd(raised, exceeds(&x->excess_limit, d, tolerance));
    return mask_64(_mm256_cmp_pd(d, tolerance, _CMP_GT_OQ));
}

AVX2_INLINE void take_8(totals *t, extremes *x, const gbx_compare_rule *rule,
                        const unsigned char *got, const unsigned char *want, size_t index,
                        uint32_t dtype, bool is_exact) {
    const size_t half = LANES * width_of(dtype);
    const __m256i near = _mm256_set1_epi32(rule->ulp < UINT32_MAX ? (int)(uint32_t)rule->ulp : -1);
    __m256i distances = distances_32(codes_at(got, dtype), codes_at(want, dtype), dtype);
    unsigned is_near = mask_32(_mm256_cmpeq_epi32(_mm256_max_epu32(distances, near), near));
    unsigned is_equal = mask_32(_mm256_cmpeq_epi32(distances, _mm256_setzero_si256()));
    unsigned apart = is_near ^ ((1u << STEP) - 1);
    __m256d raised[HALVES];
    t->max_ulp = _mm256_max_epu32(t->max_ulp, distances);
    t->unequal += STEP - ones(is_equal);
    unsigned low = take_4(t, 0, x, rule, doubles_at(got, dtype), doubles_at(want, dtype), apart,
                          is_exact, &raised[0]);
    unsigned high = take_4(t, 1, x, rule, doubles_at(got + half, dtype),
                           doubles_at(want + half, dtype), apart >> LANES, is_exact, &raised[1]);
    unsigned mismatches = apart & (low | high << LANES);
    count_mismatches(t, mismatches, index);
    if (__builtin_expect(mask_64(_mm256_or_pd(raised[0], raised[1])) != 0, 0))
        raise_extremes(x, rule, got, want, index, mismatches);
}

/* Of 32-bit lanes. */
AVX2_INLINE uint64_t greatest_32(__m256i x) {
    uint32_t lanes[STEP], most = 0;
    _mm256_storeu_si256((void *)lanes, x);
    for (size_t i = 0; i < STEP; ++i)
        most = lanes[i] > most ? lanes[i] : most;
    return most;
}

AVX2_INLINE void take_floats(const gbx_compare_rule *rule, const unsigned char *got,
                             const unsigned char *want, size_t from, size_t end,
                             gbx_compare_block *block, uint32_t dtype, bool is_exact) {
    const gbx_compare_rule kept = *rule;
    extremes x;
    totals t;
    begin_extremes(&x, &kept, block);
    begin_totals(&t, block);
    for (size_t at = from; at < end; at += STEP) {
        const unsigned char *g = got + at * width_of(dtype);
        const unsigned char *w = want + at * width_of(dtype);
        __m256i rest = _mm256_or_si256(not_finite(codes_at(g, dtype), dtype),
                                       not_finite(codes_at(w, dtype), dtype));
        patch patched;
        _mm_prefetch((const char *)g + AHEAD_BYTES, _MM_HINT_T0);
        _mm_prefetch((const char *)w + AHEAD_BYTES, _MM_HINT_T0);
        if (__builtin_expect(!_mm256_testz_si256(rest, rest), 0)) {
            take_not_finite(rule, got, want, at, mask_32(rest), block, &patched);
            g = patched.got;
            w = patched.want;
        }
        take_8(&t, &x, &kept, g, w, at, dtype, is_exact);
    }
    end_extremes(&x, block);
    end_totals(&t, block, greatest_32(t.max_ulp));
}

/* --- float64 --- */

AVX2_INLINE __m256i keys_64(__m256d x) {
    __m256i codes = _mm256_castpd_si256(x);
    __m256i sign = _mm256_cmpgt_epi64(_mm256_setzero_si256(), codes);
    __m256i bits = _mm256_and_si256(sign, _mm256_set1_epi64x(INT64_MAX));
    return _mm256_sub_epi64(_mm256_xor_si256(codes, bits), sign);
}

AVX2_INLINE __m256i distances_64(__m256d got, __m256d want) {
    __m256i a = keys_64(got), b = keys_64(want);
    __m256i is_less = _mm256_cmpgt_epi64(b, a);
    return _mm256_sub_epi64(_mm256_xor_si256(_mm256_sub_epi64(a, b), is_less), is_less);
}

/* Without signs. */
AVX2_INLINE __m256i is_greater_64(__m256i a, __m256i b) {
    __m256i flip = _mm256_set1_epi64x(INT64_MIN);
    return _mm256_cmpgt_epi64(_mm256_xor_si256(a, flip), _mm256_xor_si256(b, flip));
}

/* Products are rounded before they are added. */
AVX2_INLINE void add_rounded(__m256d sums[GBX_COMPARE_SUMS], __m256d got, __m256d want,
                             __m256d difference) {
    __m256d products[GBX_COMPARE_SUMS] = {[GBX_SUM_SQUARE_DIFFERENCE] =
                                              _mm256_mul_pd(difference, difference),
                                          [GBX_SUM_SQUARE_GOT] = _mm256_mul_pd(got, got),
                                          [GBX_SUM_SQUARE_WANT] = _mm256_mul_pd(want, want),
                                          [GBX_SUM_PRODUCT] = _mm256_mul_pd(got, want)};
    GBX_UNROLL
    for (int i = 0; i < GBX_COMPARE_SUMS; ++i)
        sums[i] = _mm256_add_pd(sums[i], products[i]);
}

/* A difference of finite numbers that is beyond the range is a mismatch, whatever the tolerance. */
AVX2_INLINE __m256d mismatches_64(const gbx_compare_rule *rule, __m256i distances, __m256d d,
                                  __m256d tolerance) {
    __m256d apart =
        _mm256_castsi256_pd(is_greater_64(distances, _mm256_set1_epi64x((int64_t)rule->ulp)));
    if (rule->is_exact)
        return apart;
    __m256d infinity = _mm256_set1_pd(__builtin_inf());
    __m256d is_beyond = _mm256_or_pd(_mm256_cmp_pd(d, tolerance, _CMP_NLE_UQ),
                                     _mm256_cmp_pd(d, infinity, _CMP_EQ_OQ));
    return _mm256_and_pd(apart, is_beyond);
}

AVX2_INLINE void take_64(totals *t, int half, extremes *x, const gbx_compare_rule *rule, __m256d g,
                         __m256d w, size_t index) {
    __m256i distances = distances_64(g, w);
    __m256d d = absolute(_mm256_sub_pd(g, w));
    __m256d magnitude = absolute(w);
    __m256d tolerance = tolerances(rule, magnitude);
    __m256d mismatches = mismatches_64(rule, distances, d, tolerance);
    __m256d is_equal = _mm256_castsi256_pd(_mm256_cmpeq_epi64(distances, _mm256_setzero_si256()));
    t->max_ulp = _mm256_blendv_epi8(t->max_ulp, distances, is_greater_64(distances, t->max_ulp));
    t->unequal += LANES - ones(mask_64(is_equal));
    t->max_abs = _mm256_max_pd(t->max_abs, d);
    add_rounded(t->sums[half], g, w, d);
    count_mismatches(t, mask_64(mismatches), index);
    x->relative = _mm256_max_pd(x->relative, relative_of(d, magnitude));
    take_worst(x, excess_of(d, tolerance), mismatches, index);
}

AVX2_INLINE __m256d not_finite_64(__m256d x) {
    return _mm256_cmp_pd(absolute(x), _mm256_set1_pd(DBL_MAX), _CMP_NLE_UQ);
}

AVX2_INLINE uint64_t greatest_64(__m256i x) {
    uint64_t lanes[LANES], most = 0;
    _mm256_storeu_si256((void *)lanes, x);
    for (size_t i = 0; i < LANES; ++i)
        most = lanes[i] > most ? lanes[i] : most;
    return most;
}

AVX2_INLINE void take_4_doubles(totals *t, int half, extremes *x, const gbx_compare_rule *rule,
                                const unsigned char *got, const unsigned char *want, size_t at,
                                gbx_compare_block *block) {
    __m256d g = _mm256_loadu_pd((const void *)(got + at * sizeof(double)));
    __m256d w = _mm256_loadu_pd((const void *)(want + at * sizeof(double)));
    unsigned rest = mask_64(_mm256_or_pd(not_finite_64(g), not_finite_64(w)));
    patch patched;
    if (__builtin_expect(rest != 0, 0)) {
        take_not_finite(rule, got, want, at, rest, block, &patched);
        g = _mm256_load_pd((const void *)patched.got);
        w = _mm256_load_pd((const void *)patched.want);
    }
    take_64(t, half, x, rule, g, w, at);
}

AVX2 static void take_float64(const gbx_compare_rule *rule, const unsigned char *got,
                              const unsigned char *want, size_t from, size_t end,
                              gbx_compare_block *block) {
    const gbx_compare_rule kept = *rule;
    extremes x;
    totals t;
    begin_extremes(&x, &kept, block);
    begin_totals(&t, block);
    for (size_t at = from; at < end; at += STEP) {
        take_4_doubles(&t, 0, &x, &kept, got, want, at, block);
        take_4_doubles(&t, 1, &x, &kept, got, want, at + LANES, block);
    }
    end_extremes(&x, block);
    end_totals(&t, block, greatest_64(t.max_ulp));
}

/* --- one function for each dtype, for which it is a constant --- */

#    define KERNEL(name, dtype)                                                                    \
        AVX2 static void name(const gbx_compare_rule *rule, const unsigned char *got,              \
                              const unsigned char *want, size_t from, size_t end,                  \
                              gbx_compare_block *block) {                                          \
            if (rule->is_exact)                                                                    \
                take_floats(rule, got, want, from, end, block, dtype, true);                       \
            else                                                                                   \
                take_floats(rule, got, want, from, end, block, dtype, false);                      \
        }

KERNEL(take_float32, GBX_FLOAT32)
KERNEL(take_float16, GBX_FLOAT16)
KERNEL(take_bfloat16, GBX_BFLOAT16)

gbx_compare_kernel *const gbx_compare_avx2[GBX_DTYPE_COUNT] = {
    [GBX_FLOAT32] = take_float32,
    [GBX_FLOAT16] = take_float16,
    [GBX_BFLOAT16] = take_bfloat16,
    [GBX_FLOAT64] = take_float64,
};

#endif
