/* The kernels with 32-byte vectors. */
#if defined(__x86_64__)

#    include "tensor/statistics/statistics_kernels.h"

#    include <immintrin.h>

#    define AVX2 __attribute__((target("avx2,f16c,popcnt")))
#    define AVX2_INLINE static inline __attribute__((always_inline, target("avx2,f16c,popcnt")))

#    define VECTOR 32

/* How far ahead of the loads elements are fetched: the next pages are not found otherwise. */
#    define AHEAD_BYTES 2048

AVX2_INLINE __m256i load(const unsigned char *elements) {
    _mm_prefetch((const char *)elements + AHEAD_BYTES, _MM_HINT_T0);
    return _mm256_loadu_si256((const __m256i *)(const void *)elements);
}

/* Bytes of elements for which a comparison holds. */
AVX2_INLINE uint64_t ones(__m256i comparison) {
    return (uint64_t)_mm_popcnt_u32((uint32_t)_mm256_movemask_epi8(comparison));
}

/* Sums of 64-bit lanes. */
AVX2_INLINE int64_t sum_64(__m256i lanes) {
    int64_t parts[4];
    _mm256_storeu_si256((__m256i *)(void *)parts, lanes);
    return parts[0] + parts[1] + parts[2] + parts[3];
}

/* Of 32-bit lanes. */
AVX2_INLINE int64_t sum_32(__m256i lanes) {
    __m256i low = _mm256_and_si256(lanes, _mm256_set1_epi64x(UINT32_MAX));
    return sum_64(_mm256_add_epi64(low, _mm256_srli_epi64(lanes, 32)));
}

AVX2_INLINE __m128i low_half(__m256i vector) {
    return _mm256_castsi256_si128(vector);
}

AVX2_INLINE __m128i high_half(__m256i vector) {
    return _mm256_extracti128_si256(vector, 1);
}

/* --- what there is for other widths --- */

#    define set1_16(value) _mm256_set1_epi16((short)(value))
#    define set1_32(value) _mm256_set1_epi32((int)(value))
#    define set1_64(value) _mm256_set1_epi64x((long long)(value))
#    define sign_16(x) _mm256_srai_epi16(x, 15)
#    define sign_32(x) _mm256_srai_epi32(x, 31)
#    define sign_64(x) _mm256_cmpgt_epi64(_mm256_setzero_si256(), x)
#    define min_16 _mm256_min_epi16
#    define min_32 _mm256_min_epi32
#    define max_16 _mm256_max_epi16
#    define max_32 _mm256_max_epi32

AVX2_INLINE __m256i min_64(__m256i a, __m256i b) {
    return _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b));
}

AVX2_INLINE __m256i max_64(__m256i a, __m256i b) {
    return _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b));
}

/* Leaves the range of the keys, from which `flip` was taken, in a state. */
AVX2_INLINE void take_range(gbx_statistics_state *state, __m256i least, __m256i greatest,
                            size_t key_bytes, uint64_t flip) {
    __m128i ranges[4] = {low_half(least), low_half(greatest), high_half(least),
                         high_half(greatest)};
    gbx_statistics_take_vectors(state, &ranges[0], &ranges[1], key_bytes, flip);
    gbx_statistics_take_vectors(state, &ranges[2], &ranges[3], key_bytes, flip);
}

/* --- floats of more than a byte --- */

typedef struct float_work {
    __m256i least, greatest;                 /* of keys without the sign flipped */
    uint64_t zeros, small, infinities, nans; /* in bytes; small: subnormal or zero */
    __m256d sums[8];
} float_work;

/*
 * Counts a vector of floats and takes its range; returns it with 0 for what is not finite. NaN and
 * infinity are rare, or many at once: a branch that is foretold.
 */
#    define DEFINE_COUNT(bits)                                                                     \
        AVX2_INLINE __m256i count_##bits(float_work *work, __m256i x, gbx_float_codes codes) {     \
            const __m256i most = set1_##bits(INT##bits##_MAX);                                     \
            __m256i magnitude = _mm256_and_si256(x, most);                                         \
            __m256i key = _mm256_xor_si256(x, _mm256_and_si256(sign_##bits(x), most));             \
            __m256i low = key, high = key;                                                         \
            __m256i special = compare_##bits(magnitude, set1_##bits(codes.last_finite));           \
            work->zeros += ones(equal_##bits(magnitude, _mm256_setzero_si256()));                  \
            work->small += ones(compare_##bits(set1_##bits(codes.first_normal), magnitude));       \
            if (__builtin_expect(!_mm256_testz_si256(special, special), 0)) {                      \
                __m256i nan = compare_##bits(magnitude, set1_##bits(codes.infinity));              \
                work->nans += ones(nan);                                                           \
                work->infinities += ones(_mm256_andnot_si256(nan, special));                       \
                low = _mm256_blendv_epi8(key, most, nan);                                          \
                high = _mm256_blendv_epi8(key, set1_##bits(INT##bits##_MIN), nan);                 \
                x = _mm256_andnot_si256(special, x);                                               \
            }                                                                                      \
            work->least = min_##bits(work->least, low);                                            \
            work->greatest = max_##bits(work->greatest, high);                                     \
            return x;                                                                              \
        }
#    define compare_16 _mm256_cmpgt_epi16
#    define compare_32 _mm256_cmpgt_epi32
#    define compare_64 _mm256_cmpgt_epi64
#    define equal_16 _mm256_cmpeq_epi16
#    define equal_32 _mm256_cmpeq_epi32
#    define equal_64 _mm256_cmpeq_epi64
DEFINE_COUNT(16)
DEFINE_COUNT(32)
DEFINE_COUNT(64)

/* Adds 8 floats to two vectors of lanes. */
AVX2_INLINE void add_floats(__m256d sums[2], __m256 x) {
    sums[0] = _mm256_add_pd(sums[0], _mm256_cvtps_pd(_mm256_castps256_ps128(x)));
    sums[1] = _mm256_add_pd(sums[1], _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)));
}

AVX2_INLINE __m256 floats_of_16(__m128i x, uint32_t dtype) {
    if (dtype == GBX_BFLOAT16)
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
    return _mm256_cvtph_ps(x);
}

AVX2_INLINE void take_16(float_work *work, __m256d sums[4], __m256i x, uint32_t dtype) {
    x = count_16(work, x, gbx_float_codes_of(dtype));
    add_floats(sums, floats_of_16(low_half(x), dtype));
    add_floats(sums + 2, floats_of_16(high_half(x), dtype));
}

AVX2_INLINE void take_32(float_work *work, const unsigned char *elements) {
    gbx_float_codes codes = gbx_float_codes_of(GBX_FLOAT32);
    GBX_UNROLL
    for (int i = 0; i < 4; ++i) {
        __m256i x = count_32(work, load(elements + VECTOR * i), codes);
        add_floats(work->sums + 2 * i, _mm256_castsi256_ps(x));
    }
}

AVX2_INLINE void take_64(float_work *work, const unsigned char *elements) {
    gbx_float_codes codes = gbx_float_codes_of(GBX_FLOAT64);
    GBX_UNROLL
    for (int i = 0; i < 8; ++i) {
        __m256i x = count_64(work, load(elements + VECTOR * i), codes);
        work->sums[i] = _mm256_add_pd(work->sums[i], _mm256_castsi256_pd(x));
    }
}

/* One element for each lane. */
AVX2_INLINE void take_lanes(float_work *work, const unsigned char *elements, uint32_t dtype) {
    if (dtype == GBX_FLOAT64) {
        take_64(work, elements);
    } else if (dtype == GBX_FLOAT32) {
        take_32(work, elements);
    } else {
        take_16(work, work->sums, load(elements), dtype);
        take_16(work, work->sums + 4, load(elements + VECTOR), dtype);
    }
}

AVX2_INLINE void begin_floats(float_work *work, const gbx_statistics_state *state,
                              size_t key_bytes) {
    __m256i most = key_bytes == 8   ? set1_64(INT64_MAX)
                   : key_bytes == 4 ? set1_32(INT32_MAX)
                                    : set1_16(INT16_MAX);
    *work = (float_work){.least = most, .greatest = _mm256_xor_si256(most, set1_64(-1))};
    GBX_UNROLL
    for (int i = 0; i < 8; ++i)
        work->sums[i] = _mm256_loadu_pd(state->sums + 4 * i);
}

AVX2_INLINE void end_floats(const float_work *work, gbx_statistics_state *state, size_t key_bytes) {
    GBX_UNROLL
    for (int i = 0; i < 8; ++i)
        _mm256_storeu_pd(state->sums + 4 * i, work->sums[i]);
    state->zero_count += work->zeros / key_bytes;
    state->subnormal_count += (work->small - work->zeros) / key_bytes;
    state->inf_count += work->infinities / key_bytes;
    state->nan_count += work->nans / key_bytes;
    take_range(state, work->least, work->greatest, key_bytes, UINT64_C(1) << (8 * key_bytes - 1));
}

AVX2_INLINE void take_floats(gbx_statistics_state *state, const unsigned char *elements,
                             size_t count, uint32_t dtype, size_t bytes) {
    float_work work;
    begin_floats(&work, state, bytes);
    for (size_t i = 0; i < count; i += GBX_STATISTICS_LANES)
        take_lanes(&work, elements + bytes * i, dtype);
    end_floats(&work, state, bytes);
}

/* --- float8 --- */

typedef struct float8_work {
    __m256i least, greatest;                 /* of keys without the sign flipped */
    uint64_t zeros, small, infinities, nans; /* small: subnormal or zero */
    __m256i parts[4];                        /* of the sum, in lanes of 32 bits */
} float8_work;

/* As count_16 and the others do. */
AVX2_INLINE __m256i count_8(float8_work *work, __m256i x, gbx_float_codes codes) {
    const __m256i most = _mm256_set1_epi8(INT8_MAX);
    __m256i magnitude = _mm256_and_si256(x, most);
    __m256i sign = _mm256_cmpgt_epi8(_mm256_setzero_si256(), x);
    __m256i key = _mm256_xor_si256(x, _mm256_and_si256(sign, most));
    __m256i low = key, high = key;
    __m256i special = _mm256_cmpgt_epi8(magnitude, _mm256_set1_epi8((char)codes.last_finite));
    work->zeros += ones(_mm256_cmpeq_epi8(magnitude, _mm256_setzero_si256()));
    work->small += ones(_mm256_cmpgt_epi8(_mm256_set1_epi8((char)codes.first_normal), magnitude));
    if (__builtin_expect(!_mm256_testz_si256(special, special), 0)) {
        __m256i nan = _mm256_cmpgt_epi8(magnitude, _mm256_set1_epi8((char)codes.infinity));
        work->nans += ones(nan);
        work->infinities += ones(_mm256_andnot_si256(nan, special));
        low = _mm256_blendv_epi8(key, most, nan);
        high = _mm256_blendv_epi8(key, _mm256_set1_epi8(INT8_MIN), nan);
        x = _mm256_andnot_si256(special, x);
    }
    work->least = _mm256_min_epi8(work->least, low);
    work->greatest = _mm256_max_epi8(work->greatest, high);
    return x;
}

AVX2_INLINE __m256i load_table(const void *table) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
}

/* Leaves the sum of the parts in a state. */
AVX2_INLINE void end_float8(const float8_work *work, gbx_statistics_state *state) {
    const __m256i one = set1_64(1);
    state->zero_count += work->zeros;
    state->subnormal_count += work->small - work->zeros;
    state->inf_count += work->infinities;
    state->nan_count += work->nans;
    take_range(state, work->least, work->greatest, 1, 0x80);
    GBX_UNROLL
    for (int p = 0; p < 4; ++p) {
        __m256i even = _mm256_mul_epi32(work->parts[p], one);
        __m256i odd = _mm256_mul_epi32(_mm256_srli_epi64(work->parts[p], 32), one);
        state->part_low += sum_64(_mm256_add_epi64(even, odd)) * (INT64_C(1) << 8 * p);
    }
}

AVX2_INLINE void take_float8(gbx_statistics_state *state, const unsigned char *elements,
                             size_t count, uint32_t dtype, int parts) {
    const gbx_float_codes codes = gbx_float_codes_of(dtype);
    const gbx_float8_units units = gbx_float8_units_of(dtype);
    const __m256i small = load_table(units.small), other = load_table(units.other);
    const __m256i half = _mm256_set1_epi8(15), pair = set1_16(1);
    float8_work work = {.least = _mm256_set1_epi8(INT8_MAX),
                        .greatest = _mm256_set1_epi8(INT8_MIN)};
    __m256i factors[4];
    for (int p = 0; p < parts; ++p) {
        signed char table[16];
        gbx_float8_factors(units.step, (unsigned)p, table);
        factors[p] = load_table(table);
    }
    for (size_t at = 0; at < count; at += VECTOR) {
        __m256i x = count_8(&work, load(elements + at), codes);
        __m256i upper = _mm256_and_si256(_mm256_srli_epi16(x, 4), half);
        __m256i exponent = _mm256_and_si256(x, _mm256_set1_epi8(0x70));
        __m256i is_small = _mm256_cmpeq_epi8(exponent, _mm256_setzero_si256());
        __m256i lower = _mm256_and_si256(x, half);
        __m256i low = _mm256_blendv_epi8(_mm256_shuffle_epi8(other, lower),
                                         _mm256_shuffle_epi8(small, lower), is_small);
        GBX_UNROLL
        for (int p = 0; p < parts; ++p) {
            __m256i high = _mm256_shuffle_epi8(factors[p], upper);
            __m256i sums = _mm256_madd_epi16(_mm256_maddubs_epi16(low, high), pair);
            work.parts[p] = _mm256_add_epi32(work.parts[p], sums);
        }
    }
    end_float8(&work, state);
}

/* --- integers --- */

typedef struct integer_work {
    __m256i least, greatest; /* of keys; with 64 bits, without the sign flipped */
    __m256i low, high;       /* sums of parts of keys, in lanes */
    uint64_t zeros;          /* in bytes */
} integer_work;

AVX2_INLINE void take_keys_8(integer_work *work, __m256i key, __m256i flip) {
    work->least = _mm256_min_epu8(work->least, key);
    work->greatest = _mm256_max_epu8(work->greatest, key);
    work->zeros += ones(_mm256_cmpeq_epi8(key, flip));
    work->low = _mm256_add_epi64(work->low, _mm256_sad_epu8(key, _mm256_setzero_si256()));
}

AVX2_INLINE void take_keys_16(integer_work *work, __m256i key, __m256i flip) {
    work->least = _mm256_min_epu16(work->least, key);
    work->greatest = _mm256_max_epu16(work->greatest, key);
    work->zeros += ones(_mm256_cmpeq_epi16(key, flip));
    work->low = _mm256_add_epi32(work->low, _mm256_and_si256(key, set1_32(UINT16_MAX)));
    work->high = _mm256_add_epi32(work->high, _mm256_srli_epi32(key, 16));
}

AVX2_INLINE void take_keys_32(integer_work *work, __m256i key, __m256i flip) {
    work->least = _mm256_min_epu32(work->least, key);
    work->greatest = _mm256_max_epu32(work->greatest, key);
    work->zeros += ones(_mm256_cmpeq_epi32(key, flip));
    work->low = _mm256_add_epi64(work->low, _mm256_and_si256(key, set1_64(UINT32_MAX)));
    work->high = _mm256_add_epi64(work->high, _mm256_srli_epi64(key, 32));
}

AVX2_INLINE void take_keys_64(integer_work *work, __m256i key, __m256i flip) {
    __m256i ordered = _mm256_xor_si256(key, set1_64(INT64_MIN));
    work->least = min_64(work->least, ordered);
    work->greatest = max_64(work->greatest, ordered);
    work->zeros += ones(_mm256_cmpeq_epi64(key, flip));
    work->low = _mm256_add_epi64(work->low, _mm256_and_si256(key, set1_64(UINT32_MAX)));
    work->high = _mm256_add_epi64(work->high, _mm256_srli_epi64(key, 32));
}

AVX2_INLINE void take_int4_pairs(integer_work *work, __m256i x, __m256i flip) {
    const __m256i half = _mm256_set1_epi8(15);
    __m256i high = _mm256_and_si256(_mm256_srli_epi16(x, 4), half);
    take_keys_8(work, _mm256_xor_si256(_mm256_and_si256(x, half), flip), flip);
    take_keys_8(work, _mm256_xor_si256(high, flip), flip);
}

AVX2_INLINE __m256i flip_vector(uint32_t dtype, size_t bytes) {
    uint64_t flip = gbx_integer_flip_of(dtype);
    return bytes == 1   ? _mm256_set1_epi8((char)flip)
           : bytes == 2 ? set1_16(flip)
           : bytes == 4 ? set1_32(flip)
                        : set1_64(flip);
}

AVX2_INLINE void begin_integers(integer_work *work, size_t bytes) {
    *work = (integer_work){.least = set1_64(-1)};
    if (bytes != 8)
        return;
    work->least = set1_64(INT64_MAX);
    work->greatest = set1_64(INT64_MIN);
}

AVX2_INLINE void end_integers(const integer_work *work, gbx_statistics_state *state, size_t bytes) {
    uint64_t flip = bytes == 8 ? UINT64_C(1) << 63 : 0;
    state->zero_count += work->zeros / bytes;
    take_range(state, work->least, work->greatest, bytes, flip);
    if (bytes == 2) {
        state->part_low += sum_32(work->low) + sum_32(work->high);
        return;
    }
    state->part_low += sum_64(work->low);
    *(bytes == 8 ? &state->part_high : &state->part_low) += sum_64(work->high);
}

AVX2_INLINE void take_integers(gbx_statistics_state *state, const unsigned char *elements,
                               size_t count, uint32_t dtype, size_t bytes) {
    const __m256i flip = flip_vector(dtype, bytes);
    integer_work work;
    begin_integers(&work, bytes);
    for (size_t at = 0; at < count * bytes; at += VECTOR) {
        __m256i x = load(elements + at);
        if (dtype == GBX_INT4)
            take_int4_pairs(&work, x, flip);
        else if (bytes == 1)
            take_keys_8(&work, _mm256_xor_si256(x, flip), flip);
        else if (bytes == 2)
            take_keys_16(&work, _mm256_xor_si256(x, flip), flip);
        else if (bytes == 4)
            take_keys_32(&work, _mm256_xor_si256(x, flip), flip);
        else
            take_keys_64(&work, _mm256_xor_si256(x, flip), flip);
    }
    end_integers(&work, state, bytes);
}

AVX2 static void take_bool(gbx_statistics_state *state, const unsigned char *elements,
                           size_t count) {
    uint64_t zeros = 0;
    for (size_t at = 0; at < count; at += VECTOR)
        zeros += ones(_mm256_cmpeq_epi8(load(elements + at), _mm256_setzero_si256()));
    gbx_statistics_take_bools(state, count, zeros);
}

/* --- one function for each dtype, for which it is a constant --- */

#    define KERNEL(take, name, dtype, detail)                                                      \
        AVX2 static void name(gbx_statistics_state *state, const unsigned char *elements,          \
                              size_t count) {                                                      \
            take(state, elements, count, dtype, detail);                                           \
        }

KERNEL(take_floats, take_float32, GBX_FLOAT32, 4)
KERNEL(take_floats, take_float16, GBX_FLOAT16, 2)
KERNEL(take_floats, take_bfloat16, GBX_BFLOAT16, 2)
KERNEL(take_floats, take_float64, GBX_FLOAT64, 8)
KERNEL(take_float8, take_float8_e4m3, GBX_FLOAT8_E4M3, 2)
KERNEL(take_float8, take_float8_e5m2, GBX_FLOAT8_E5M2, 4)
KERNEL(take_integers, take_int4, GBX_INT4, 1)
KERNEL(take_integers, take_int8, GBX_INT8, 1)
KERNEL(take_integers, take_uint8, GBX_UINT8, 1)
KERNEL(take_integers, take_int16, GBX_INT16, 2)
KERNEL(take_integers, take_uint16, GBX_UINT16, 2)
KERNEL(take_integers, take_int32, GBX_INT32, 4)
KERNEL(take_integers, take_uint32, GBX_UINT32, 4)
KERNEL(take_integers, take_int64, GBX_INT64, 8)
KERNEL(take_integers, take_uint64, GBX_UINT64, 8)

gbx_statistics_kernel *const gbx_statistics_avx2[GBX_DTYPE_COUNT] = {
    [GBX_FLOAT32] = take_float32,
    [GBX_FLOAT16] = take_float16,
    [GBX_BFLOAT16] = take_bfloat16,
    [GBX_FLOAT64] = take_float64,
    [GBX_INT8] = take_int8,
    [GBX_UINT8] = take_uint8,
    [GBX_INT16] = take_int16,
    [GBX_UINT16] = take_uint16,
    [GBX_INT32] = take_int32,
    [GBX_UINT32] = take_uint32,
    [GBX_INT64] = take_int64,
    [GBX_UINT64] = take_uint64,
    [GBX_BOOL] = take_bool,
    [GBX_FLOAT8_E4M3] = take_float8_e4m3,
    [GBX_FLOAT8_E5M2] = take_float8_e5m2,
    [GBX_INT4] = take_int4,
};

#endif
