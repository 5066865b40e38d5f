/* Vectors of 64 bytes, and the kernels made of them. */
#if defined(__x86_64__)

#    include <float.h>
#    include <immintrin.h>

#    include "tensor/compare/compare_kernels.h"

#    define FEATURES "avx512f,avx512bw,avx512vl,avx512dq,f16c,popcnt"
#    define VECTOR_INLINE static inline __attribute__((always_inline, target(FEATURES)))
#    define LANES 8

typedef __m512d doubles;
typedef __m512 floats;
typedef __m512i integers; /* 16 of 32 bits or 8 of 64 */

typedef __m256i half;

#    define V(instruction) _mm512_##instruction
#    define SI(instruction) _mm512_##instruction##_si512
#    define H(instruction) _mm256_##instruction
#    define HSI(instruction) _mm256_##instruction##_si256
#    define load_bytes _mm_loadu_si128

#    include "tensor/compare/compare_lanes.h"

/* --- doubles --- */

VECTOR_INLINE doubles doubles_of_int64(integers x, bool is_signed) {
    return is_signed ? _mm512_cvtepi64_pd(x) : _mm512_cvtepu64_pd(x);
}

VECTOR_INLINE doubles doubles_of_32(const void *from, bool is_signed) {
    __m256i x = _mm256_loadu_si256(from);
    return is_signed ? _mm512_cvtepi32_pd(x) : _mm512_cvtepu32_pd(x);
}

VECTOR_INLINE doubles magnitude(doubles x) {
    return _mm512_abs_pd(x);
}

/* Of |x| and b, which is not negative. */
VECTOR_INLINE doubles larger_magnitude(doubles x, doubles b) {
    return _mm512_range_pd(x, b, 0xb);
}

/* Zero in other lanes. */
VECTOR_INLINE doubles in_lanes(unsigned lanes, doubles x) {
    return _mm512_maskz_mov_pd((__mmask8)lanes, x);
}

VECTOR_INLINE doubles where_not_zero(doubles condition, doubles x) {
    return _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(condition, _mm512_setzero_pd(), _CMP_NEQ_OQ), x);
}

VECTOR_INLINE unsigned is_above(doubles a, doubles b) {
    return _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ);
}

VECTOR_INLINE unsigned has_sign(doubles x) {
    return _mm512_movepi64_mask(_mm512_castpd_si512(x));
}

/* NaN of both kinds, infinity of both signs. */
VECTOR_INLINE unsigned is_not_finite(doubles x) {
    return _mm512_fpclass_pd_mask(x, 0x99);
}

VECTOR_INLINE double largest(doubles x) {
    return _mm512_reduce_max_pd(x);
}

/* --- floats --- */

VECTOR_INLINE floats magnitude_floats(floats x) {
    return _mm512_abs_ps(x);
}

VECTOR_INLINE unsigned is_not_below_floats(floats a, floats b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ);
}

VECTOR_INLINE unsigned is_not_finite_floats(floats x) {
    return _mm512_fpclass_ps_mask(x, 0x99);
}

VECTOR_INLINE floats floats_of_codes(integers codes, int shift) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(codes, (unsigned)shift));
}

/* --- integers --- */

VECTOR_INLINE bool is_not_same(integers a, integers b) {
    return _mm512_cmpneq_epi64_mask(a, b) != 0;
}

VECTOR_INLINE integers larger_64(integers a, integers b) {
    return _mm512_max_epu64(a, b);
}

VECTOR_INLINE unsigned is_not_zero_32(integers x) {
    return _mm512_test_epi32_mask(x, x);
}

VECTOR_INLINE unsigned is_not_zero_64(integers x) {
    return _mm512_test_epi64_mask(x, x);
}

VECTOR_INLINE unsigned is_above_32(integers x, uint32_t limit) {
    return _mm512_cmpgt_epu32_mask(x, _mm512_set1_epi32((int)limit));
}

VECTOR_INLINE unsigned is_above_64(integers x, uint64_t limit) {
    return _mm512_cmpgt_epu64_mask(x, _mm512_set1_epi64((int64_t)limit));
}

/* Where the signs differ, the distance is the sum of the magnitudes. */
VECTOR_INLINE integers across_zero_32(integers a, integers b, int sign, integers otherwise) {
    __mmask16 is_across = _mm512_movepi32_mask(_mm512_xor_si512(a, b));
    __m512i moved = _mm512_add_epi32(b, _mm512_set1_epi32(sign));
    return _mm512_mask_add_epi32(otherwise, is_across, a, moved);
}

VECTOR_INLINE integers differences_64(integers a, integers b, bool is_signed) {
    __m512i most = is_signed ? _mm512_max_epi64(a, b) : _mm512_max_epu64(a, b);
    __m512i least = is_signed ? _mm512_min_epi64(a, b) : _mm512_min_epu64(a, b);
    return _mm512_sub_epi64(most, least);
}

/* Numbers that order as doubles do; both zeros are 0. */
VECTOR_INLINE integers keys_of(doubles x) {
    __m512i code = _mm512_castpd_si512(x);
    __m512i sign = _mm512_srai_epi64(code, 63);
    __m512i bits = _mm512_set1_epi64(INT64_MAX);
    return _mm512_sub_epi64(_mm512_ternarylogic_epi64(code, sign, bits, 0x78), sign);
}

#    define KERNELS gbx_compare_avx512
#    include "tensor/compare/compare_vectors.h"

#endif
