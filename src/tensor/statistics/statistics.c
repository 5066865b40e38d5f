#include "tensor/statistics/statistics.h"

#include <math.h>
#include <stdbool.h>

#if defined(__x86_64__)
#    include <sys/platform/x86.h>
#endif

#include <glassbox/tensor.h>

#include "base/float_bits.h"
#include "tensor/statistics/statistics_kernels.h"

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 unsigned_wide;

#define NAN_BITS UINT64_C(0x7ff8000000000000)

/* --- the level --- */

gbx_cpu_level gbx_statistics_level_detect(void) {
    gbx_cpu_level level = gbx_cpu_level_detect();
#if defined(__x86_64__)
    /* The AVX2 kernels convert float16 with an instruction that is not part of AVX2. */
    if (level == GBX_CPU_AVX2 && !CPU_FEATURE_ACTIVE(F16C))
        level = GBX_CPU_PLAIN;
#endif
    return level;
}

static gbx_statistics_kernel *const *kernels_of_level(gbx_cpu_level level) {
#if defined(__x86_64__)
    if (level == GBX_CPU_AVX512)
        return gbx_statistics_avx512;
    if (level == GBX_CPU_AVX2)
        return gbx_statistics_avx2;
#endif
    (void)level;
    return gbx_statistics_plain;
}

/* --- elements --- */

void gbx_statistics_begin(gbx_statistics_state *state, uint32_t dtype) {
    *state = (gbx_statistics_state){.dtype = dtype, .min_key = UINT64_MAX};
}

static wide sum_of(const gbx_statistics_state *state) {
    return (wide)((unsigned_wide)state->sum_high << 64 | state->sum_low);
}

/* Adds the sums of one call of a kernel to the total. */
static void keep_part(gbx_statistics_state *state) {
    wide sum = sum_of(state) + (wide)state->part_high * ((wide)1 << 32) + state->part_low;
    state->sum_low = (uint64_t)(unsigned_wide)sum;
    state->sum_high = (uint64_t)((unsigned_wide)sum >> 64);
    state->part_low = state->part_high = 0;
}

/* `unit_bytes`: bytes of what the kernels count. */
static void take(gbx_cpu_level level, gbx_statistics_state *state, const unsigned char *elements,
                 size_t bytes, size_t unit_bytes) {
    gbx_statistics_kernel *kernel = kernels_of_level(level)[state->dtype];
    gbx_statistics_kernel *plain = gbx_statistics_plain[state->dtype];
    size_t whole = bytes / (GBX_STATISTICS_GROUP * unit_bytes) * GBX_STATISTICS_GROUP * unit_bytes;
    for (size_t at = 0; at < bytes;) {
        size_t size = at < whole ? whole - at : bytes - at;
        if (size > GBX_STATISTICS_CALL_BYTES)
            size = GBX_STATISTICS_CALL_BYTES;
        (at < whole ? kernel : plain)(state, elements + at, size / unit_bytes);
        keep_part(state);
        at += size;
    }
}

/* Rows of an odd number of elements, the first of which may have begun in an earlier piece. */
static void take_odd_rows(gbx_cpu_level level, gbx_statistics_state *state,
                          const unsigned char *elements, size_t bytes, uint64_t row_elements) {
    uint64_t row_bytes = row_elements / 2 + 1;
    uint64_t column = state->bytes % row_bytes;
    for (size_t at = 0; at < bytes; column = 0) {
        size_t whole = (size_t)(row_bytes - 1 - column);
        if (whole > bytes - at)
            whole = bytes - at;
        take(level, state, elements + at, whole, 1);
        state->count += 2 * (uint64_t)whole;
        at += whole;
        if (at < bytes) {
            gbx_statistics_take_half(state, elements[at++]);
            keep_part(state);
            state->count += 1;
        }
    }
}

void gbx_statistics_update_at(gbx_cpu_level level, gbx_statistics_state *state,
                              const void *elements, size_t bytes, uint64_t row_elements) {
    uint32_t bits = gbx_dtype_bits(state->dtype);
    if (bits == 0)
        return;
    if (gbx_dtype_is_packed(state->dtype) && row_elements % 2 != 0) {
        take_odd_rows(level, state, elements, bytes, row_elements);
    } else {
        take(level, state, elements, bytes, bits < 8 ? 1 : bits / 8);
        state->count += (uint64_t)bytes * 8 / bits;
    }
    state->bytes += bytes;
}

void gbx_statistics_update(gbx_statistics_state *state, const void *elements, size_t bytes,
                           uint64_t row_elements) {
    gbx_statistics_update_at(gbx_statistics_level_detect(), state, elements, bytes, row_elements);
}

/* --- results --- */

static bool has_values(const gbx_statistics_state *state) {
    return state->min_key <= state->max_key;
}

static uint64_t value_of_float_key(uint32_t dtype, uint64_t key) {
    uint64_t sign = gbx_float_codes_of(dtype).sign;
    uint64_t bits = sign == 0 || key & sign ? key ^ sign : key ^ (sign | (sign - 1));
    return gbx_f64_bits(gbx_dtype_to_f64(dtype, bits));
}

static double sum_of_lanes(const gbx_statistics_state *state) {
    double sums[GBX_STATISTICS_LANES];
    memcpy(sums, state->sums, sizeof sums);
    for (int w = GBX_STATISTICS_LANES / 2; w > 0; w /= 2)
        for (int i = 0; i < w; ++i)
            sums[i] += sums[i + w];
    return sums[0];
}

static double float_mean(const gbx_statistics_state *state) {
    uint64_t count = state->count - state->nan_count - state->inf_count;
    bool is_in_units = gbx_dtype_table[state->dtype].statistics == GBX_STATISTICS_FLOAT8;
    double sum = is_in_units
                     ? ldexp((double)sum_of(state), gbx_float8_units_of(state->dtype).exponent)
                     : sum_of_lanes(state);
    double mean = sum / (double)count;
    return count == 0 || isnan(mean) ? gbx_f64_of_bits(NAN_BITS) : mean;
}

static double integer_mean(const gbx_statistics_state *state) {
    wide bias = (wide)gbx_integer_flip_of(state->dtype) * (wide)state->count;
    return state->count > 0 ? (double)(sum_of(state) - bias) / (double)state->count : 0;
}

void gbx_statistics_end(const gbx_statistics_state *state, gbx_statistics *out_statistics) {
    gbx_statistics result = {.nan_count = state->nan_count,
                             .inf_count = state->inf_count,
                             .zero_count = state->zero_count,
                             .subnormal_count = state->subnormal_count};
    bool is_float = gbx_dtype_is_float(state->dtype);
    uint64_t none = is_float ? NAN_BITS : 0, bias = gbx_integer_flip_of(state->dtype);
    result.min_bits = result.max_bits = none;
    if (has_values(state) && is_float) {
        result.min_bits = value_of_float_key(state->dtype, state->min_key);
        result.max_bits = value_of_float_key(state->dtype, state->max_key);
    } else if (has_values(state)) {
        result.min_bits = state->min_key - bias;
        result.max_bits = state->max_key - bias;
    }
    result.mean = is_float ? float_mean(state) : integer_mean(state);
    *out_statistics = result;
}
