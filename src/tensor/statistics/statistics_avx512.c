/* The kernels with 64-byte vectors. */
#if defined(__x86_64__)

#    include "tensor/statistics/statistics_kernels.h"

#    include <immintrin.h>

#    define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,popcnt")))
#    define AVX512_INLINE static inline __attribute__((always_inline)) TARGET
#    define KERNELS gbx_statistics_avx512
#    define VECTOR 64
#    define V(instruction) _mm512_##instruction
#    define SI(instruction) _mm512_##instruction##_si512

typedef __m512i vector;
typedef __m256i half;
typedef __m512d doubles;

/* Comparisons give masks, with a bit a lane. */
typedef __mmask64 truth_8;
typedef __mmask32 truth_16;
typedef __mmask16 truth_32;
typedef __mmask8 truth_64;

AVX512_INLINE uint64_t ones(uint64_t truth) {
    return (uint64_t)_mm_popcnt_u64(truth);
}
#    define UNIT_OF_ONES(bytes) 1

#    define is_any(truth) ((truth) != 0)
#    define but_not(truth, other) ((truth) & ~(uint64_t)(other))
#    define greater_8 _mm512_cmpgt_epu8_mask
#    define greater_16 _mm512_cmpgt_epu16_mask
#    define greater_32 _mm512_cmpgt_epu32_mask
#    define greater_64 _mm512_cmpgt_epu64_mask
#    define equal_8 _mm512_cmpeq_epi8_mask
#    define equal_16 _mm512_cmpeq_epi16_mask
#    define equal_32 _mm512_cmpeq_epi32_mask
#    define equal_64 _mm512_cmpeq_epi64_mask
#    define is_zero_8(x) _mm512_testn_epi8_mask(x, x)
#    define is_zero_16(x) _mm512_testn_epi16_mask(x, x)
#    define is_zero_32(x) _mm512_testn_epi32_mask(x, x)
#    define is_zero_64(x) _mm512_testn_epi64_mask(x, x)
#    define choose_8(truth, a, b) _mm512_mask_mov_epi8(b, truth, a)
#    define choose_16(truth, a, b) _mm512_mask_mov_epi16(b, truth, a)
#    define choose_32(truth, a, b) _mm512_mask_mov_epi32(b, truth, a)
#    define choose_64(truth, a, b) _mm512_mask_mov_epi64(b, truth, a)
#    define clear_8(truth, x) _mm512_maskz_mov_epi8((truth_8) ~(truth), x)
#    define clear_16(truth, x) _mm512_maskz_mov_epi16((truth_16) ~(truth), x)
#    define clear_32(truth, x) _mm512_maskz_mov_epi32((truth_32) ~(truth), x)
#    define clear_64(truth, x) _mm512_maskz_mov_epi64((truth_64) ~(truth), x)

/* Keys of floats: the magnitude counts the other way where the sign is set. */
#    define flip_by(sign, x, most) _mm512_xor_si512(x, _mm512_and_si512(sign, most))
#    define key_8(x, magnitude, most)                                                              \
        _mm512_mask_sub_epi8(magnitude, _mm512_movepi8_mask(x), _mm512_set1_epi8(-1), magnitude)
#    define key_16(x, magnitude, most) flip_by(_mm512_srai_epi16(x, 15), x, most)
#    define key_32(x, magnitude, most) flip_by(_mm512_srai_epi32(x, 31), x, most)
#    define key_64(x, magnitude, most) flip_by(_mm512_srai_epi64(x, 63), x, most)

#    define set1_64(value) _mm512_set1_epi64((long long)(value))
#    define min_8 _mm512_min_epi8
#    define min_16 _mm512_min_epi16
#    define min_32 _mm512_min_epi32
#    define min_64 _mm512_min_epi64
#    define max_8 _mm512_max_epi8
#    define max_16 _mm512_max_epi16
#    define max_32 _mm512_max_epi32
#    define max_64 _mm512_max_epi64

/* Keys of integers are without a sign. */
#    define ORDER_FLIP(bytes) UINT64_C(0)
#    define least_8 _mm512_min_epu8
#    define least_16 _mm512_min_epu16
#    define least_32 _mm512_min_epu32
#    define least_64 _mm512_min_epu64
#    define greatest_8 _mm512_max_epu8
#    define greatest_16 _mm512_max_epu16
#    define greatest_32 _mm512_max_epu32
#    define greatest_64 _mm512_max_epu64

#    define low_half _mm512_castsi512_si256
#    define high_half(x) _mm512_extracti64x4_epi64(x, 1)
#    define floats_of _mm256_castsi256_ps
#    define doubles_of _mm512_castsi512_pd

AVX512_INLINE int64_t sum_64(__m512i lanes) {
    return _mm512_reduce_add_epi64(lanes);
}

/* Leaves the range of the keys, from which `flip` was taken, in a state. */
#    define DEFINE_TAKE_RANGE(bits)                                                                \
        AVX512_INLINE void take_range_##bits(gbx_statistics_state *state, __m512i least,           \
                                             __m512i greatest) {                                   \
            __m256i min = _mm256_min_epu##bits(low_half(least), high_half(least));                 \
            __m256i max = _mm256_max_epu##bits(low_half(greatest), high_half(greatest));           \
            __m128i range[2] = {                                                                   \
                _mm_min_epu##bits(_mm256_castsi256_si128(min), _mm256_extracti128_si256(min, 1)),  \
                _mm_max_epu##bits(_mm256_castsi256_si128(max), _mm256_extracti128_si256(max, 1))}; \
            gbx_statistics_take_vectors(state, &range[0], &range[1], (bits) / 8, 0);               \
        }
DEFINE_TAKE_RANGE(8)
DEFINE_TAKE_RANGE(16)
DEFINE_TAKE_RANGE(32)
DEFINE_TAKE_RANGE(64)

AVX512_INLINE void take_range(gbx_statistics_state *state, __m512i least, __m512i greatest,
                              size_t key_bytes, uint64_t flip) {
    const __m512i flips = key_bytes == 8   ? set1_64(flip)
                          : key_bytes == 4 ? _mm512_set1_epi32((int)flip)
                          : key_bytes == 2 ? _mm512_set1_epi16((short)flip)
                                           : _mm512_set1_epi8((char)flip);
    least = _mm512_xor_si512(least, flips);
    greatest = _mm512_xor_si512(greatest, flips);
    if (key_bytes == 8)
        take_range_64(state, least, greatest);
    else if (key_bytes == 4)
        take_range_32(state, least, greatest);
    else if (key_bytes == 2)
        take_range_16(state, least, greatest);
    else
        take_range_8(state, least, greatest);
}

AVX512_INLINE __m512i load_table(const void *table) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table));
}

/* What the lower halves of float8 stand for, by whether they are subnormal. */
AVX512_INLINE __m512i choose_units(__m512i x, __m512i lower, __m512i small, __m512i other) {
    __mmask64 is_small = _mm512_testn_epi8_mask(x, _mm512_set1_epi8(0x70));
    return _mm512_mask_shuffle_epi8(_mm512_shuffle_epi8(other, lower), is_small, small, lower);
}

#    include "tensor/statistics/statistics_vectors.h"

#endif
