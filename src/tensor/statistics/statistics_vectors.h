/*
 * The kernels, made of the vectors of an instruction set. The file that includes this one has them:
 *
 *     TARGET       the attribute of its functions
 *     KERNELS      the name of the table
 *     VECTOR       bytes of a vector
 *     V(add_epi8)  an instruction on whole vectors; SI(and) one on their bits
 *     vector, half, doubles, and truth_8 to truth_64: what a comparison of such lanes gives
 *
 * and the functions below that differ: those on truths, which are vectors or masks, and those that
 * one set has an instruction for and the other has not.
 */
#ifndef GBX_TENSOR_STATISTICS_STATISTICS_VECTORS_H
#define GBX_TENSOR_STATISTICS_STATISTICS_VECTORS_H

#define VECTOR_INLINE static inline __attribute__((always_inline)) TARGET

/* How far ahead of the loads elements are fetched: the processor does not prefetch the next pages
 * by itself. */
#define AHEAD_BYTES 2048

VECTOR_INLINE vector load(const unsigned char *elements) {
    vector loaded;
    _mm_prefetch((const char *)elements + AHEAD_BYTES, _MM_HINT_T0);
    memcpy(&loaded, elements, sizeof loaded);
    return loaded;
}

#define set1_8(value) V(set1_epi8)((char)(value))
#define set1_16(value) V(set1_epi16)((short)(value))
#define set1_32(value) V(set1_epi32)((int)(value))

/* Sums of 32-bit lanes. */
VECTOR_INLINE int64_t sum_32(vector lanes) {
    vector low = SI(and)(lanes, set1_64(UINT32_MAX));
    return sum_64(V(add_epi64)(low, V(srli_epi64)(lanes, 32)));
}

/* --- floats --- */

typedef struct float_counts {
    vector least, greatest;                  /* of keys without the sign flipped */
    uint64_t zeros, small, infinities, nans; /* in units of ones(); small: subnormal or zero */
} float_counts;

/*
 * Counts a vector of floats and takes its range; returns it with 0 in place of what is not finite.
 * NaN and infinity are rare, or many at once: the branch is predicted well.
 */
#define DEFINE_COUNT(bits)                                                                         \
    VECTOR_INLINE vector count_##bits(float_counts *work, vector x, gbx_float_codes codes) {       \
        const vector most = set1_##bits(INT##bits##_MAX);                                          \
        vector magnitude = SI(and)(x, most);                                                       \
        vector key = key_##bits(x, magnitude, most);                                               \
        vector low = key, high = key;                                                              \
        truth_##bits special = greater_##bits(magnitude, set1_##bits(codes.last_finite));          \
        work->zeros += ones(is_zero_##bits(magnitude));                                            \
        work->small += ones(greater_##bits(set1_##bits(codes.first_normal), magnitude));           \
        if (__builtin_expect(is_any(special), 0)) {                                                \
            truth_##bits nan = greater_##bits(magnitude, set1_##bits(codes.infinity));             \
            work->nans += ones(nan);                                                               \
            work->infinities += ones(but_not(special, nan));                                       \
            low = choose_##bits(nan, most, key);                                                   \
            high = choose_##bits(nan, set1_##bits(INT##bits##_MIN), key);                          \
            x = clear_##bits(special, x);                                                          \
        }                                                                                          \
        work->least = min_##bits(work->least, low);                                                \
        work->greatest = max_##bits(work->greatest, high);                                         \
        return x;                                                                                  \
    }
DEFINE_COUNT(8)
DEFINE_COUNT(16)
DEFINE_COUNT(32)
DEFINE_COUNT(64)

VECTOR_INLINE void begin_counts(float_counts *counts, size_t key_bytes) {
    vector most = key_bytes == 8   ? set1_64(INT64_MAX)
                  : key_bytes == 4 ? set1_32(INT32_MAX)
                  : key_bytes == 2 ? set1_16(INT16_MAX)
                                   : set1_8(INT8_MAX);
    *counts = (float_counts){.least = most, .greatest = SI(xor)(most, set1_64(-1))};
}

VECTOR_INLINE void end_counts(const float_counts *counts, gbx_statistics_state *state,
                              size_t key_bytes) {
    state->zero_count += counts->zeros / UNIT_OF_ONES(key_bytes);
    state->subnormal_count += (counts->small - counts->zeros) / UNIT_OF_ONES(key_bytes);
    state->inf_count += counts->infinities / UNIT_OF_ONES(key_bytes);
    state->nan_count += counts->nans / UNIT_OF_ONES(key_bytes);
    take_range(state, counts->least, counts->greatest, key_bytes,
               UINT64_C(1) << (8 * key_bytes - 1));
}

/* --- floats of more than a byte --- */

enum {
    SUM_LANES = VECTOR / sizeof(double),
    SUMS = GBX_STATISTICS_LANES / SUM_LANES,
    FLOAT_VECTORS = GBX_STATISTICS_LANES * sizeof(float) / VECTOR,
    SHORT_VECTORS = GBX_STATISTICS_LANES * sizeof(uint16_t) / VECTOR
};

typedef struct float_work {
    float_counts counts;
    doubles sums[SUMS];
} float_work;

/* Adds a vector of floats to two vectors of lanes. */
VECTOR_INLINE void add_floats(doubles sums[2], vector x) {
    sums[0] = V(add_pd)(sums[0], V(cvtps_pd)(floats_of(low_half(x))));
    sums[1] = V(add_pd)(sums[1], V(cvtps_pd)(floats_of(high_half(x))));
}

VECTOR_INLINE vector floats_of_16(half x, gbx_statistics_kind kind) {
    return kind == GBX_STATISTICS_BFLOAT16 ? V(slli_epi32)(V(cvtepu16_epi32)(x), 16)
                                           : SI(castps)(V(cvtph_ps)(x));
}

/* One element for each lane. */
VECTOR_INLINE void take_lanes(float_work *work, const unsigned char *elements, uint32_t dtype) {
    const gbx_float_codes codes = gbx_float_codes_of(dtype);
    const gbx_statistics_kind kind = gbx_dtype_table[dtype].statistics;
    if (kind == GBX_STATISTICS_FLOAT64) {
        GBX_UNROLL
        for (int i = 0; i < SUMS; ++i) {
            vector x = count_64(&work->counts, load(elements + VECTOR * i), codes);
            work->sums[i] = V(add_pd)(work->sums[i], doubles_of(x));
        }
    } else if (kind == GBX_STATISTICS_FLOAT32) {
        GBX_UNROLL
        for (int i = 0; i < FLOAT_VECTORS; ++i)
            add_floats(work->sums + 2 * i,
                       count_32(&work->counts, load(elements + VECTOR * i), codes));
    } else {
        GBX_UNROLL
        for (int i = 0; i < SHORT_VECTORS; ++i) {
            vector x = count_16(&work->counts, load(elements + VECTOR * i), codes);
            add_floats(work->sums + 4 * i, floats_of_16(low_half(x), kind));
            add_floats(work->sums + 4 * i + 2, floats_of_16(high_half(x), kind));
        }
    }
}

VECTOR_INLINE void take_floats(gbx_statistics_state *state, const unsigned char *elements,
                               size_t count, uint32_t dtype) {
    const size_t bytes = gbx_dtype_table[dtype].bits / 8;
    float_work work;
    begin_counts(&work.counts, bytes);
    GBX_UNROLL
    for (int i = 0; i < SUMS; ++i)
        work.sums[i] = V(loadu_pd)(state->sums + SUM_LANES * i);
    for (size_t i = 0; i < count; i += GBX_STATISTICS_LANES)
        take_lanes(&work, elements + bytes * i, dtype);
    GBX_UNROLL
    for (int i = 0; i < SUMS; ++i)
        V(storeu_pd)(state->sums + SUM_LANES * i, work.sums[i]);
    end_counts(&work.counts, state, bytes);
}

/* --- float8 --- */

VECTOR_INLINE void take_float8(gbx_statistics_state *state, const unsigned char *elements,
                               size_t count, uint32_t dtype) {
    const gbx_float_codes codes = gbx_float_codes_of(dtype);
    const gbx_float8_units units = gbx_float8_units_of(dtype);
    const int part_count = gbx_float8_parts(units.step);
    const vector small = load_table(units.small), other = load_table(units.other);
    const vector lower_bits = set1_8(15), pair = set1_16(1), one = set1_64(1);
    float_counts counts;
    /* Parts of the sum, in lanes of 32 bits. */
    vector factors[GBX_FLOAT8_PARTS_MAX], parts[GBX_FLOAT8_PARTS_MAX];
    begin_counts(&counts, 1);
    for (int p = 0; p < part_count; ++p) {
        signed char table[16];
        gbx_float8_factors(units.step, (unsigned)p, table);
        factors[p] = load_table(table);
        parts[p] = SI(setzero)();
    }
    for (size_t at = 0; at < count; at += VECTOR) {
        vector x = count_8(&counts, load(elements + at), codes);
        vector upper = SI(and)(V(srli_epi16)(x, 4), lower_bits);
        vector low = choose_units(x, SI(and)(x, lower_bits), small, other);
        GBX_UNROLL
        for (int p = 0; p < part_count; ++p) {
            vector high = V(shuffle_epi8)(factors[p], upper);
            vector sums = V(madd_epi16)(V(maddubs_epi16)(low, high), pair);
            parts[p] = V(add_epi32)(parts[p], sums);
        }
    }
    end_counts(&counts, state, 1);
    GBX_UNROLL
    for (int p = 0; p < part_count; ++p) {
        vector even = V(mul_epi32)(parts[p], one);
        vector odd = V(mul_epi32)(V(srli_epi64)(parts[p], 32), one);
        state->part_low += sum_64(V(add_epi64)(even, odd)) * (INT64_C(1) << 8 * p);
    }
}

/* --- integers --- */

typedef struct integer_work {
    vector least, greatest; /* of keys; with 64 bits, as ordered() makes them */
    vector low, high;       /* sums of parts of keys, in lanes */
    uint64_t zeros;         /* in units of ones() */
} integer_work;

/* The lanes of the sums are twice as wide as those of the keys, except for the widest. */
#define DEFINE_TAKE_KEYS(bits, sum_bits, part_bits)                                                \
    VECTOR_INLINE void take_keys_##bits(integer_work *work, vector key, vector flip) {             \
        vector even = SI(and)(key, set1_##sum_bits(UINT##part_bits##_MAX));                        \
        work->least = least_##bits(work->least, key);                                              \
        work->greatest = greatest_##bits(work->greatest, key);                                     \
        work->zeros += ones(equal_##bits(key, flip));                                              \
        work->low = V(add_epi##sum_bits)(work->low, even);                                         \
        work->high = V(add_epi##sum_bits)(work->high, V(srli_epi##sum_bits)(key, part_bits));      \
    }
DEFINE_TAKE_KEYS(16, 32, 16)
DEFINE_TAKE_KEYS(32, 64, 32)
DEFINE_TAKE_KEYS(64, 64, 32)

VECTOR_INLINE void take_keys_8(integer_work *work, vector key, vector flip) {
    work->least = least_8(work->least, key);
    work->greatest = greatest_8(work->greatest, key);
    work->zeros += ones(equal_8(key, flip));
    work->low = V(add_epi64)(work->low, V(sad_epu8)(key, SI(setzero)()));
}

VECTOR_INLINE void end_integers(const integer_work *work, gbx_statistics_state *state,
                                size_t bytes) {
    state->zero_count += work->zeros / UNIT_OF_ONES(bytes);
    take_range(state, work->least, work->greatest, bytes, ORDER_FLIP(bytes));
    if (bytes == 2) {
        state->part_low += sum_32(work->low) + sum_32(work->high);
        return;
    }
    state->part_low += sum_64(work->low);
    *(bytes == 8 ? &state->part_high : &state->part_low) += sum_64(work->high);
}

VECTOR_INLINE void take_integers(gbx_statistics_state *state, const unsigned char *elements,
                                 size_t count, uint32_t dtype) {
    const bool is_packed = gbx_dtype_table[dtype].bits < 8;
    const size_t bytes = is_packed ? 1 : gbx_dtype_table[dtype].bits / 8;
    const uint64_t flip_bits = gbx_integer_flip_of(dtype);
    const vector flip = bytes == 1   ? set1_8(flip_bits)
                        : bytes == 2 ? set1_16(flip_bits)
                        : bytes == 4 ? set1_32(flip_bits)
                                     : set1_64(flip_bits);
    const uint64_t order = ORDER_FLIP(bytes);
    integer_work work = {.least = set1_64(UINT64_MAX ^ order), .greatest = set1_64(order)};
    for (size_t at = 0; at < count * bytes; at += VECTOR) {
        vector x = load(elements + at);
        vector key = SI(xor)(x, flip);
        if (is_packed) {
            const vector lower_bits = set1_8(15);
            vector high = SI(and)(V(srli_epi16)(x, 4), lower_bits);
            take_keys_8(&work, SI(xor)(SI(and)(x, lower_bits), flip), flip);
            take_keys_8(&work, SI(xor)(high, flip), flip);
        } else if (bytes == 1) {
            take_keys_8(&work, key, flip);
        } else if (bytes == 2) {
            take_keys_16(&work, key, flip);
        } else if (bytes == 4) {
            take_keys_32(&work, key, flip);
        } else {
            take_keys_64(&work, key, flip);
        }
    }
    end_integers(&work, state, bytes);
}

VECTOR_INLINE void take_bools(gbx_statistics_state *state, const unsigned char *elements,
                              size_t count) {
    uint64_t zeros = 0;
    for (size_t at = 0; at < count; at += VECTOR)
        zeros += ones(is_zero_8(load(elements + at)));
    gbx_statistics_take_bools(state, count, zeros);
}

/* --- one function for each dtype, for which it is a constant --- */

VECTOR_INLINE void take_elements(gbx_statistics_state *state, const unsigned char *elements,
                                 size_t count, uint32_t dtype) {
    switch ((gbx_statistics_kind)gbx_dtype_table[dtype].statistics) {
    case GBX_STATISTICS_FLOAT32:
    case GBX_STATISTICS_FLOAT16:
    case GBX_STATISTICS_BFLOAT16:
    case GBX_STATISTICS_FLOAT64:
        take_floats(state, elements, count, dtype);
        break;
    case GBX_STATISTICS_FLOAT8:
        take_float8(state, elements, count, dtype);
        break;
    case GBX_STATISTICS_INTEGERS:
        take_integers(state, elements, count, dtype);
        break;
    case GBX_STATISTICS_BOOLS:
        take_bools(state, elements, count);
        break;
    case GBX_STATISTICS_CODES:
        gbx_statistics_plain[dtype](state, elements, count);
        break;
    }
}

#define KERNEL(dtype, ...)                                                                         \
    TARGET static void take_##dtype(gbx_statistics_state *state, const unsigned char *elements,    \
                                    size_t count) {                                                \
        take_elements(state, elements, count, GBX_##dtype);                                        \
    }
GBX_DTYPES(KERNEL)

#define KERNEL_OF(dtype, ...) [GBX_##dtype] = take_##dtype,
gbx_statistics_kernel *const KERNELS[GBX_DTYPE_COUNT] = {GBX_DTYPES(KERNEL_OF)};

#endif
