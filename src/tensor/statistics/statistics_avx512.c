/* The kernels with 64-byte vectors. */
#if defined(__x86_64__)

#    include "tensor/statistics/statistics_kernels.h"

#    include <immintrin.h>

#    define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,popcnt")))
#    define AVX512_INLINE                                                                          \
        static inline __attribute__((always_inline, target("avx512f,avx512bw,avx512vl,popcnt")))

#    define VECTOR 64

/* How far ahead of the loads elements are fetched: the next pages are not found otherwise. */
#    define AHEAD_BYTES 2048

AVX512_INLINE __m512i load(const unsigned char *elements) {
    _mm_prefetch((const char *)elements + AHEAD_BYTES, _MM_HINT_T0);
    return _mm512_loadu_si512(elements);
}

AVX512_INLINE uint64_t ones(uint64_t mask) {
    return (uint64_t)_mm_popcnt_u64(mask);
}

/* Sums of 64-bit lanes. */
AVX512_INLINE int64_t sum_64(__m512i lanes) {
    return _mm512_reduce_add_epi64(lanes);
}

/* Of 32-bit lanes. */
AVX512_INLINE int64_t sum_32(__m512i lanes) {
    __m512i low = _mm512_and_si512(lanes, _mm512_set1_epi64(UINT32_MAX));
    return sum_64(_mm512_add_epi64(low, _mm512_srli_epi64(lanes, 32)));
}

AVX512_INLINE __m256i low_half(__m512i vector) {
    return _mm512_castsi512_si256(vector);
}

AVX512_INLINE __m256i high_half(__m512i vector) {
    return _mm512_extracti64x4_epi64(vector, 1);
}

/* Leaves the range of the keys, from which `flip` was taken, in a state. `order` is epi or epu, as
 * the keys are compared. */
#    define DEFINE_TAKE_RANGE(order, bits)                                                         \
        AVX512_INLINE void take_range_##order##bits(gbx_statistics_state *state, __m512i least,    \
                                                    __m512i greatest, uint64_t flip) {             \
            __m256i min = _mm256_min_##order##bits(low_half(least), high_half(least));             \
            __m256i max = _mm256_max_##order##bits(low_half(greatest), high_half(greatest));       \
            __m128i range[2] = {_mm_min_##order##bits(_mm256_castsi256_si128(min),                 \
                                                      _mm256_extracti128_si256(min, 1)),           \
                                _mm_max_##order##bits(_mm256_castsi256_si128(max),                 \
                                                      _mm256_extracti128_si256(max, 1))};          \
            gbx_statistics_take_vectors(state, &range[0], &range[1], (bits) / 8, flip);            \
        }
DEFINE_TAKE_RANGE(epu, 8)
DEFINE_TAKE_RANGE(epu, 16)
DEFINE_TAKE_RANGE(epu, 32)
DEFINE_TAKE_RANGE(epu, 64)
DEFINE_TAKE_RANGE(epi, 8)
DEFINE_TAKE_RANGE(epi, 16)
DEFINE_TAKE_RANGE(epi, 32)
DEFINE_TAKE_RANGE(epi, 64)

/* --- floats of more than a byte --- */

typedef struct float_work {
    __m512i least, greatest;                 /* of keys without the sign flipped */
    uint64_t zeros, small, infinities, nans; /* small: subnormal or zero */
    __m512d sums[4];
} float_work;

/*
 * Counts a vector of floats and takes its range; returns it with 0 for what is not finite. NaN and
 * infinity are rare, or many at once: a branch that is foretold.
 */
#    define DEFINE_COUNT(bits)                                                                     \
        AVX512_INLINE __m512i count_##bits(float_work *work, __m512i x, gbx_float_codes codes) {   \
            const __m512i most = _mm512_set1_epi##bits(INT##bits##_MAX);                           \
            __m512i magnitude = _mm512_and_si512(x, most);                                         \
            __m512i key =                                                                          \
                _mm512_xor_si512(x, _mm512_and_si512(_mm512_srai_epi##bits(x, (bits)-1), most));   \
            __m512i low = key, high = key;                                                         \
            uint64_t special = _mm512_cmpgt_epu##bits##_mask(                                      \
                magnitude, _mm512_set1_epi##bits((int##bits##_t)codes.last_finite));               \
            work->zeros += ones(_mm512_testn_epi##bits##_mask(magnitude, magnitude));              \
            work->small += ones(_mm512_cmplt_epu##bits##_mask(                                     \
                magnitude, _mm512_set1_epi##bits((int##bits##_t)codes.first_normal)));             \
            if (__builtin_expect(special != 0, 0)) {                                               \
                mask_##bits nan = _mm512_cmpgt_epu##bits##_mask(                                   \
                    magnitude, _mm512_set1_epi##bits((int##bits##_t)codes.infinity));              \
                work->nans += ones(nan);                                                           \
                work->infinities += ones(special & ~(uint64_t)nan);                                \
                low = _mm512_mask_mov_epi##bits(key, nan, most);                                   \
                high =                                                                             \
                    _mm512_mask_mov_epi##bits(key, nan, _mm512_set1_epi##bits(INT##bits##_MIN));   \
                x = _mm512_maskz_mov_epi##bits((mask_##bits) ~special, x);                         \
            }                                                                                      \
            work->least = _mm512_min_epi##bits(work->least, low);                                  \
            work->greatest = _mm512_max_epi##bits(work->greatest, high);                           \
            return x;                                                                              \
        }
typedef __mmask32 mask_16;
typedef __mmask16 mask_32;
typedef __mmask8 mask_64;
DEFINE_COUNT(16)
DEFINE_COUNT(32)
DEFINE_COUNT(64)

/* Adds 16 floats to two vectors of lanes. */
AVX512_INLINE void add_floats(__m512d sums[2], __m512 x) {
    __m256 high = _mm256_castsi256_ps(high_half(_mm512_castps_si512(x)));
    sums[0] = _mm512_add_pd(sums[0], _mm512_cvtps_pd(_mm512_castps512_ps256(x)));
    sums[1] = _mm512_add_pd(sums[1], _mm512_cvtps_pd(high));
}

AVX512_INLINE __m512 floats_of_16(__m256i x, uint32_t dtype) {
    if (dtype == GBX_BFLOAT16)
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
    return _mm512_cvtph_ps(x);
}

AVX512_INLINE void take_16(float_work *work, __m512i x, uint32_t dtype) {
    x = count_16(work, x, gbx_float_codes_of(dtype));
    add_floats(work->sums, floats_of_16(low_half(x), dtype));
    add_floats(work->sums + 2, floats_of_16(high_half(x), dtype));
}

AVX512_INLINE void take_32(float_work *work, const unsigned char *elements) {
    gbx_float_codes codes = gbx_float_codes_of(GBX_FLOAT32);
    GBX_UNROLL
    for (int i = 0; i < 2; ++i) {
        __m512i x = count_32(work, load(elements + VECTOR * i), codes);
        add_floats(work->sums + 2 * i, _mm512_castsi512_ps(x));
    }
}

AVX512_INLINE void take_64(float_work *work, const unsigned char *elements) {
    gbx_float_codes codes = gbx_float_codes_of(GBX_FLOAT64);
    GBX_UNROLL
    for (int i = 0; i < 4; ++i) {
        __m512i x = count_64(work, load(elements + VECTOR * i), codes);
        work->sums[i] = _mm512_add_pd(work->sums[i], _mm512_castsi512_pd(x));
    }
}

/* One element for each lane. */
AVX512_INLINE void take_lanes(float_work *work, const unsigned char *elements, uint32_t dtype) {
    if (dtype == GBX_FLOAT64) {
        take_64(work, elements);
    } else if (dtype == GBX_FLOAT32) {
        take_32(work, elements);
    } else {
        take_16(work, load(elements), dtype);
    }
}

AVX512_INLINE void begin_floats(float_work *work, const gbx_statistics_state *state,
                                uint32_t dtype) {
    __m512i most = dtype == GBX_FLOAT64   ? _mm512_set1_epi64(INT64_MAX)
                   : dtype == GBX_FLOAT32 ? _mm512_set1_epi32(INT32_MAX)
                                          : _mm512_set1_epi16(INT16_MAX);
    *work = (float_work){.least = most, .greatest = _mm512_xor_si512(most, _mm512_set1_epi64(-1))};
    GBX_UNROLL
    for (int i = 0; i < 4; ++i)
        work->sums[i] = _mm512_loadu_pd(state->sums + 8 * i);
}

AVX512_INLINE void end_floats(const float_work *work, gbx_statistics_state *state, uint32_t dtype) {
    GBX_UNROLL
    for (int i = 0; i < 4; ++i)
        _mm512_storeu_pd(state->sums + 8 * i, work->sums[i]);
    state->zero_count += work->zeros;
    state->subnormal_count += work->small - work->zeros;
    state->inf_count += work->infinities;
    state->nan_count += work->nans;
    if (dtype == GBX_FLOAT64)
        take_range_epi64(state, work->least, work->greatest, UINT64_C(1) << 63);
    else if (dtype == GBX_FLOAT32)
        take_range_epi32(state, work->least, work->greatest, UINT64_C(1) << 31);
    else
        take_range_epi16(state, work->least, work->greatest, 0x8000);
}

AVX512_INLINE void take_floats(gbx_statistics_state *state, const unsigned char *elements,
                               size_t count, uint32_t dtype, size_t bytes) {
    float_work work;
    begin_floats(&work, state, dtype);
    for (size_t i = 0; i < count; i += GBX_STATISTICS_LANES)
        take_lanes(&work, elements + bytes * i, dtype);
    end_floats(&work, state, dtype);
}

/* --- float8 --- */

typedef struct float8_work {
    __m512i least, greatest;                 /* of keys without the sign flipped */
    uint64_t zeros, small, infinities, nans; /* small: subnormal or zero */
    __m512i parts[4];                        /* of the sum, in lanes of 32 bits */
} float8_work;

/* As count_16 and the others do. */
AVX512_INLINE __m512i count_8(float8_work *work, __m512i x, gbx_float_codes codes) {
    const __m512i most = _mm512_set1_epi8(INT8_MAX);
    __m512i magnitude = _mm512_and_si512(x, most);
    __m512i key =
        _mm512_mask_sub_epi8(magnitude, _mm512_movepi8_mask(x), _mm512_set1_epi8(-1), magnitude);
    __m512i low = key, high = key;
    __mmask64 special =
        _mm512_cmpgt_epu8_mask(magnitude, _mm512_set1_epi8((char)codes.last_finite));
    work->zeros += ones(_mm512_testn_epi8_mask(magnitude, magnitude));
    work->small +=
        ones(_mm512_cmplt_epu8_mask(magnitude, _mm512_set1_epi8((char)codes.first_normal)));
    if (__builtin_expect(special != 0, 0)) {
        __mmask64 nan = _mm512_cmpgt_epu8_mask(magnitude, _mm512_set1_epi8((char)codes.infinity));
        work->nans += ones(nan);
        work->infinities += ones(special & ~nan);
        low = _mm512_mask_mov_epi8(key, nan, most);
        high = _mm512_mask_mov_epi8(key, nan, _mm512_set1_epi8(INT8_MIN));
        x = _mm512_maskz_mov_epi8(~special, x);
    }
    work->least = _mm512_min_epi8(work->least, low);
    work->greatest = _mm512_max_epi8(work->greatest, high);
    return x;
}

AVX512_INLINE __m512i load_table(const void *table) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table));
}

/* Leaves the sum of the parts in a state. */
AVX512_INLINE void end_float8(const float8_work *work, gbx_statistics_state *state) {
    const __m512i one = _mm512_set1_epi64(1);
    state->zero_count += work->zeros;
    state->subnormal_count += work->small - work->zeros;
    state->inf_count += work->infinities;
    state->nan_count += work->nans;
    take_range_epi8(state, work->least, work->greatest, 0x80);
    GBX_UNROLL
    for (int p = 0; p < 4; ++p) {
        __m512i even = _mm512_mul_epi32(work->parts[p], one);
        __m512i odd = _mm512_mul_epi32(_mm512_srli_epi64(work->parts[p], 32), one);
        state->part_low += sum_64(_mm512_add_epi64(even, odd)) * (INT64_C(1) << 8 * p);
    }
}

AVX512_INLINE void take_float8(gbx_statistics_state *state, const unsigned char *elements,
                               size_t count, uint32_t dtype, int parts) {
    const gbx_float_codes codes = gbx_float_codes_of(dtype);
    const gbx_float8_units units = gbx_float8_units_of(dtype);
    const __m512i small = load_table(units.small), other = load_table(units.other);
    const __m512i half = _mm512_set1_epi8(15), pair = _mm512_set1_epi16(1);
    float8_work work = {.least = _mm512_set1_epi8(INT8_MAX),
                        .greatest = _mm512_set1_epi8(INT8_MIN)};
    __m512i factors[4];
    for (int p = 0; p < parts; ++p) {
        signed char table[16];
        gbx_float8_factors(units.step, (unsigned)p, table);
        factors[p] = load_table(table);
    }
    for (size_t at = 0; at < count; at += VECTOR) {
        __m512i x = count_8(&work, load(elements + at), codes);
        __m512i upper = _mm512_and_si512(_mm512_srli_epi16(x, 4), half);
        __mmask64 is_small = _mm512_testn_epi8_mask(x, _mm512_set1_epi8(0x70));
        __m512i lower = _mm512_and_si512(x, half);
        __m512i low =
            _mm512_mask_shuffle_epi8(_mm512_shuffle_epi8(other, lower), is_small, small, lower);
        GBX_UNROLL
        for (int p = 0; p < parts; ++p) {
            __m512i high = _mm512_shuffle_epi8(factors[p], upper);
            __m512i sums = _mm512_madd_epi16(_mm512_maddubs_epi16(low, high), pair);
            work.parts[p] = _mm512_add_epi32(work.parts[p], sums);
        }
    }
    end_float8(&work, state);
}

/* --- integers --- */

typedef struct integer_work {
    __m512i least, greatest; /* of keys */
    __m512i low, high;       /* sums of parts of keys, in lanes */
    uint64_t zeros;
} integer_work;

AVX512_INLINE void take_keys_8(integer_work *work, __m512i key, __m512i flip) {
    work->least = _mm512_min_epu8(work->least, key);
    work->greatest = _mm512_max_epu8(work->greatest, key);
    work->zeros += ones(_mm512_cmpeq_epi8_mask(key, flip));
    work->low = _mm512_add_epi64(work->low, _mm512_sad_epu8(key, _mm512_setzero_si512()));
}

AVX512_INLINE void take_keys_16(integer_work *work, __m512i key, __m512i flip) {
    __m512i even = _mm512_and_si512(key, _mm512_set1_epi32(UINT16_MAX));
    work->least = _mm512_min_epu16(work->least, key);
    work->greatest = _mm512_max_epu16(work->greatest, key);
    work->zeros += ones(_mm512_cmpeq_epi16_mask(key, flip));
    work->low = _mm512_add_epi32(work->low, even);
    work->high = _mm512_add_epi32(work->high, _mm512_srli_epi32(key, 16));
}

AVX512_INLINE void take_keys_32(integer_work *work, __m512i key, __m512i flip) {
    __m512i even = _mm512_and_si512(key, _mm512_set1_epi64(UINT32_MAX));
    work->least = _mm512_min_epu32(work->least, key);
    work->greatest = _mm512_max_epu32(work->greatest, key);
    work->zeros += ones(_mm512_cmpeq_epi32_mask(key, flip));
    work->low = _mm512_add_epi64(work->low, even);
    work->high = _mm512_add_epi64(work->high, _mm512_srli_epi64(key, 32));
}

AVX512_INLINE void take_keys_64(integer_work *work, __m512i key, __m512i flip) {
    __m512i low = _mm512_and_si512(key, _mm512_set1_epi64(UINT32_MAX));
    work->least = _mm512_min_epu64(work->least, key);
    work->greatest = _mm512_max_epu64(work->greatest, key);
    work->zeros += ones(_mm512_cmpeq_epi64_mask(key, flip));
    work->low = _mm512_add_epi64(work->low, low);
    work->high = _mm512_add_epi64(work->high, _mm512_srli_epi64(key, 32));
}

AVX512_INLINE void take_int4_pairs(integer_work *work, __m512i x, __m512i flip) {
    const __m512i half = _mm512_set1_epi8(15);
    __m512i high = _mm512_and_si512(_mm512_srli_epi16(x, 4), half);
    take_keys_8(work, _mm512_xor_si512(_mm512_and_si512(x, half), flip), flip);
    take_keys_8(work, _mm512_xor_si512(high, flip), flip);
}

AVX512_INLINE __m512i flip_vector(uint32_t dtype, size_t bytes) {
    uint64_t flip = gbx_integer_flip_of(dtype);
    return bytes == 1   ? _mm512_set1_epi8((char)flip)
           : bytes == 2 ? _mm512_set1_epi16((short)flip)
           : bytes == 4 ? _mm512_set1_epi32((int)flip)
                        : _mm512_set1_epi64((long long)flip);
}

AVX512_INLINE void end_integers(const integer_work *work, gbx_statistics_state *state,
                                size_t bytes) {
    state->zero_count += work->zeros;
    if (bytes == 1) {
        take_range_epu8(state, work->least, work->greatest, 0);
        state->part_low += sum_64(work->low);
    } else if (bytes == 2) {
        take_range_epu16(state, work->least, work->greatest, 0);
        state->part_low += sum_32(work->low) + sum_32(work->high);
    } else if (bytes == 4) {
        take_range_epu32(state, work->least, work->greatest, 0);
        state->part_low += sum_64(work->low) + sum_64(work->high);
    } else {
        take_range_epu64(state, work->least, work->greatest, 0);
        state->part_low += sum_64(work->low);
        state->part_high += sum_64(work->high);
    }
}

AVX512_INLINE void take_integers(gbx_statistics_state *state, const unsigned char *elements,
                                 size_t count, uint32_t dtype, size_t bytes) {
    const __m512i flip = flip_vector(dtype, bytes);
    integer_work work = {.least = _mm512_set1_epi64(-1)};
    for (size_t at = 0; at < count * bytes; at += VECTOR) {
        __m512i x = load(elements + at);
        if (dtype == GBX_INT4)
            take_int4_pairs(&work, x, flip);
        else if (bytes == 1)
            take_keys_8(&work, _mm512_xor_si512(x, flip), flip);
        else if (bytes == 2)
            take_keys_16(&work, _mm512_xor_si512(x, flip), flip);
        else if (bytes == 4)
            take_keys_32(&work, _mm512_xor_si512(x, flip), flip);
        else
            take_keys_64(&work, _mm512_xor_si512(x, flip), flip);
    }
    end_integers(&work, state, bytes);
}

AVX512 static void take_bool(gbx_statistics_state *state, const unsigned char *elements,
                             size_t count) {
    uint64_t zeros = 0;
    for (size_t at = 0; at < count; at += VECTOR) {
        __m512i x = load(elements + at);
        zeros += ones(_mm512_testn_epi8_mask(x, x));
    }
    gbx_statistics_take_bools(state, count, zeros);
}

/* --- one function for each dtype, for which it is a constant --- */

#    define KERNEL(take, name, dtype, detail)                                                      \
        AVX512 static void name(gbx_statistics_state *state, const unsigned char *elements,        \
                                size_t count) {                                                    \
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

gbx_statistics_kernel *const gbx_statistics_avx512[GBX_DTYPE_COUNT] = {
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
