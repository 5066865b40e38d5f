/* The kernels with 32-byte vectors. */
#if defined(__x86_64__)

#    include "tensor/statistics/statistics_kernels.h"

#    include <immintrin.h>

#    define TARGET __attribute__((target("avx2,f16c,popcnt")))
#    define AVX2_INLINE static inline __attribute__((always_inline)) TARGET
#    define KERNELS gbx_statistics_avx2
#    define VECTOR 32
#    define V(instruction) _mm256_##instruction
#    define SI(instruction) _mm256_##instruction##_si256

typedef __m256i vector;
typedef __m128i half;
typedef __m256d doubles;

/* Comparisons give vectors, with all bits of a lane. */
typedef __m256i truth_8;
typedef __m256i truth_16;
typedef __m256i truth_32;
typedef __m256i truth_64;

/* Bytes of elements for which a comparison holds. */
AVX2_INLINE uint64_t ones(__m256i truth) {
    return (uint64_t)_mm_popcnt_u32((uint32_t)_mm256_movemask_epi8(truth));
}
#    define UNIT_OF_ONES(bytes) (bytes)

#    define is_any(truth) (!_mm256_testz_si256(truth, truth))
#    define but_not(truth, other) _mm256_andnot_si256(other, truth)
#    define greater_8 _mm256_cmpgt_epi8
#    define greater_16 _mm256_cmpgt_epi16
#    define greater_32 _mm256_cmpgt_epi32
#    define greater_64 _mm256_cmpgt_epi64
#    define equal_8 _mm256_cmpeq_epi8
#    define equal_16 _mm256_cmpeq_epi16
#    define equal_32 _mm256_cmpeq_epi32
#    define equal_64 _mm256_cmpeq_epi64
#    define is_zero_8(x) _mm256_cmpeq_epi8(x, _mm256_setzero_si256())
#    define is_zero_16(x) _mm256_cmpeq_epi16(x, _mm256_setzero_si256())
#    define is_zero_32(x) _mm256_cmpeq_epi32(x, _mm256_setzero_si256())
#    define is_zero_64(x) _mm256_cmpeq_epi64(x, _mm256_setzero_si256())
#    define choose_8(truth, a, b) _mm256_blendv_epi8(b, a, truth)
#    define choose_16 choose_8
#    define choose_32 choose_8
#    define choose_64 choose_8
#    define clear_8(truth, x) _mm256_andnot_si256(truth, x)
#    define clear_16 clear_8
#    define clear_32 clear_8
#    define clear_64 clear_8

/* Keys of floats: the magnitude counts the other way where the sign is set. */
#    define flip_by(sign, x, most) _mm256_xor_si256(x, _mm256_and_si256(sign, most))
#    define key_8(x, magnitude, most) flip_by(_mm256_cmpgt_epi8(_mm256_setzero_si256(), x), x, most)
#    define key_16(x, magnitude, most) flip_by(_mm256_srai_epi16(x, 15), x, most)
#    define key_32(x, magnitude, most) flip_by(_mm256_srai_epi32(x, 31), x, most)
#    define key_64(x, magnitude, most)                                                             \
        flip_by(_mm256_cmpgt_epi64(_mm256_setzero_si256(), x), x, most)

#    define set1_64(value) _mm256_set1_epi64x((long long)(value))
#    define min_8 _mm256_min_epi8
#    define min_16 _mm256_min_epi16
#    define min_32 _mm256_min_epi32
#    define max_8 _mm256_max_epi8
#    define max_16 _mm256_max_epi16
#    define max_32 _mm256_max_epi32

AVX2_INLINE __m256i min_64(__m256i a, __m256i b) {
    return _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b));
}

AVX2_INLINE __m256i max_64(__m256i a, __m256i b) {
    return _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b));
}

/* Keys of integers are without a sign; 64 bits are compared with one. */
#    define ORDER_FLIP(bytes) ((bytes) == 8 ? UINT64_C(1) << 63 : 0)
#    define ordered(key) _mm256_xor_si256(key, set1_64(INT64_MIN))
#    define least_8 _mm256_min_epu8
#    define least_16 _mm256_min_epu16
#    define least_32 _mm256_min_epu32
#    define least_64(least, key) min_64(least, ordered(key))
#    define greatest_8 _mm256_max_epu8
#    define greatest_16 _mm256_max_epu16
#    define greatest_32 _mm256_max_epu32
#    define greatest_64(greatest, key) max_64(greatest, ordered(key))

#    define low_half _mm256_castsi256_si128
#    define high_half(x) _mm256_extracti128_si256(x, 1)
#    define floats_of _mm_castsi128_ps
#    define doubles_of _mm256_castsi256_pd

AVX2_INLINE int64_t sum_64(__m256i lanes) {
    int64_t parts[4];
    _mm256_storeu_si256((__m256i *)(void *)parts, lanes);
    return parts[0] + parts[1] + parts[2] + parts[3];
}

/* Leaves the range of the keys, from which `flip` was taken, in a state. */
AVX2_INLINE void take_range(gbx_statistics_state *state, __m256i least, __m256i greatest,
                            size_t key_bytes, uint64_t flip) {
    __m128i ranges[4] = {low_half(least), low_half(greatest), high_half(least),
                         high_half(greatest)};
    gbx_statistics_take_vectors(state, &ranges[0], &ranges[1], key_bytes, flip);
    gbx_statistics_take_vectors(state, &ranges[2], &ranges[3], key_bytes, flip);
}

AVX2_INLINE __m256i load_table(const void *table) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
}

/* What the lower halves of float8 stand for, by whether they are subnormal. */
AVX2_INLINE __m256i choose_units(__m256i x, __m256i lower, __m256i small, __m256i other) {
    return choose_8(is_zero_8(_mm256_and_si256(x, _mm256_set1_epi8(0x70))),
                    _mm256_shuffle_epi8(small, lower), _mm256_shuffle_epi8(other, lower));
}

#    include "tensor/statistics/statistics_vectors.h"

#endif
