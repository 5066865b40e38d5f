/* Vectors of 32 bytes, and the kernels made of them. */
#if defined(__x86_64__)

#    include <float.h>
#    include <immintrin.h>

#    include "tensor/compare/compare_kernels.h"

#    define FEATURES "avx2,fma,f16c,popcnt"
#    define VECTOR_INLINE static inline __attribute__((always_inline, target(FEATURES)))
#    define LANES 4

typedef __m256d doubles;
typedef __m256 floats;
typedef __m256i integers; /* 8 of 32 bits or 4 of 64 */

typedef __m128i half;

#    define V(instruction) _mm256_##instruction
#    define SI(instruction) _mm256_##instruction##_si256
#    define H(instruction) _mm_##instruction
#    define HSI(instruction) _mm_##instruction##_si128
#    define load_bytes _mm_loadl_epi64

#    include "tensor/compare/compare_lanes.h"

/* --- doubles --- */

/* The low 32 bits of each lane, put into the low bits of 2^52, which is then subtracted. */
VECTOR_INLINE doubles doubles_of_low(__m256i x) {
    __m256i magic = _mm256_castpd_si256(_mm256_set1_pd(0x1p52));
    return _mm256_castsi256_pd(_mm256_blend_epi32(magic, x, 0x55)) - _mm256_set1_pd(0x1p52);
}

/* Both halves are exact: their sum is rounded once. */
VECTOR_INLINE doubles doubles_of_int64(integers x, bool is_signed) {
    doubles high = doubles_of_low(_mm256_srli_epi64(x, 32)) * _mm256_set1_pd(0x1p32);
    __m256d sign = _mm256_castsi256_pd(x);
    if (is_signed)
        high = high - _mm256_blendv_pd(_mm256_setzero_pd(), _mm256_set1_pd(0x1p64), sign);
    return high + doubles_of_low(x);
}

VECTOR_INLINE doubles doubles_of_32(const void *from, bool is_signed) {
    __m128i x = _mm_loadu_si128(from);
    return is_signed ? _mm256_cvtepi32_pd(x) : doubles_of_low(_mm256_cvtepu32_epi64(x));
}

VECTOR_INLINE doubles magnitude(doubles x) {
    return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
}

/* Of |x| and b, which is not negative. */
VECTOR_INLINE doubles larger_magnitude(doubles x, doubles b) {
    return larger(magnitude(x), b);
}

/* Zero in other lanes. */
VECTOR_INLINE doubles in_lanes(unsigned lanes, doubles x) {
    __m256i bits = _mm256_set_epi64x(8, 4, 2, 1);
    __m256i found = _mm256_and_si256(_mm256_set1_epi64x((int64_t)lanes), bits);
    return _mm256_and_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(found, bits)), x);
}

VECTOR_INLINE doubles where_not_zero(doubles condition, doubles x) {
    return _mm256_and_pd(_mm256_cmp_pd(condition, _mm256_setzero_pd(), _CMP_NEQ_OQ), x);
}

VECTOR_INLINE unsigned has_sign(doubles x) {
    return (unsigned)_mm256_movemask_pd(x);
}

VECTOR_INLINE unsigned is_above(doubles a, doubles b) {
    return has_sign(_mm256_cmp_pd(a, b, _CMP_GT_OQ));
}

VECTOR_INLINE unsigned is_not_finite(doubles x) {
    return has_sign(_mm256_cmp_pd(magnitude(x), _mm256_set1_pd(DBL_MAX), _CMP_NLE_UQ));
}

VECTOR_INLINE double largest(doubles x) {
    __m128d two = _mm_max_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_max_pd(two, _mm_unpackhi_pd(two, two)));
}

/* --- floats --- */

VECTOR_INLINE floats magnitude_floats(floats x) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), x);
}

VECTOR_INLINE unsigned is_not_below_floats(floats a, floats b) {
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_NLT_UQ));
}

VECTOR_INLINE unsigned is_not_finite_floats(floats x) {
    __m256 is_beyond = _mm256_cmp_ps(magnitude_floats(x), _mm256_set1_ps(FLT_MAX), _CMP_NLE_UQ);
    return (unsigned)_mm256_movemask_ps(is_beyond);
}

VECTOR_INLINE floats floats_of_codes(integers codes, int shift) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(codes, shift));
}

/* --- integers --- */

VECTOR_INLINE bool is_not_same(integers a, integers b) {
    __m256i bits = _mm256_xor_si256(a, b);
    return !_mm256_testz_si256(bits, bits);
}

/* Unsigned, like all comparisons named above and larger. */
VECTOR_INLINE __m256i exceed_64(__m256i a, __m256i b) {
    __m256i flip = _mm256_set1_epi64x(INT64_MIN);
    return _mm256_cmpgt_epi64(_mm256_xor_si256(a, flip), _mm256_xor_si256(b, flip));
}

VECTOR_INLINE integers larger_64(integers a, integers b) {
    return _mm256_blendv_epi8(b, a, exceed_64(a, b));
}

VECTOR_INLINE unsigned lanes_of_32(__m256i mask) {
    return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(mask));
}

VECTOR_INLINE unsigned is_not_zero_32(integers x) {
    return lanes_of_32(_mm256_cmpeq_epi32(x, _mm256_setzero_si256())) ^ 0xff;
}

VECTOR_INLINE unsigned is_not_zero_64(integers x) {
    __m256i is_zero = _mm256_cmpeq_epi64(x, _mm256_setzero_si256());
    return has_sign(_mm256_castsi256_pd(is_zero)) ^ 0xf;
}

VECTOR_INLINE unsigned is_above_32(integers x, uint32_t limit) {
    __m256i most = _mm256_set1_epi32((int)limit);
    return lanes_of_32(_mm256_cmpeq_epi32(_mm256_max_epu32(x, most), most)) ^ 0xff;
}

VECTOR_INLINE unsigned is_above_64(integers x, uint64_t limit) {
    return has_sign(_mm256_castsi256_pd(exceed_64(x, _mm256_set1_epi64x((int64_t)limit))));
}

/* Where the signs differ, the distance is the sum of the magnitudes. */
VECTOR_INLINE integers across_zero_32(integers a, integers b, int sign, integers otherwise) {
    __m256 is_across = _mm256_castsi256_ps(_mm256_xor_si256(a, b));
    __m256i sum = _mm256_add_epi32(a, _mm256_add_epi32(b, _mm256_set1_epi32(sign)));
    return _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(otherwise), _mm256_castsi256_ps(sum), is_across));
}

VECTOR_INLINE integers differences_64(integers a, integers b, bool is_signed) {
    __m256i is_less = is_signed ? _mm256_cmpgt_epi64(b, a) : exceed_64(b, a);
    return _mm256_sub_epi64(_mm256_xor_si256(_mm256_sub_epi64(a, b), is_less), is_less);
}

/* Numbers that order as doubles do; both zeros are 0. */
VECTOR_INLINE integers keys_of(doubles x) {
    __m256i code = _mm256_castpd_si256(x);
    __m256i sign = _mm256_cmpgt_epi64(_mm256_setzero_si256(), code);
    __m256i bits = _mm256_and_si256(sign, _mm256_set1_epi64x(INT64_MAX));
    return _mm256_sub_epi64(_mm256_xor_si256(code, bits), sign);
}

#    define KERNELS gbx_compare_avx2
#    include "tensor/compare/compare_vectors.h"

#endif
