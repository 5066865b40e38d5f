#include "tensor/compare/compare.h"

#include <float.h>
#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#    include <sys/platform/x86.h>
#endif

#include "tensor/compare/compare_kernels.h"
#include "tensor/dtype_table.h"

gbx_tolerance gbx_tolerance_default(uint32_t dtype) {
    const gbx_dtype_info *info = gbx_dtype_info_of(dtype);
    return (gbx_tolerance){.rtol = info->rtol, .atol = info->atol};
}

/* --- the level --- */

gbx_cpu_level gbx_compare_level_detect(void) {
    gbx_cpu_level level = gbx_cpu_level_detect();
#if defined(__x86_64__)
    if (!CPU_FEATURE_ACTIVE(F16C) || !CPU_FEATURE_ACTIVE(FMA))
        level = GBX_CPU_PLAIN;
    else if (level == GBX_CPU_AVX512 && !CPU_FEATURE_ACTIVE(AVX512DQ))
        level = GBX_CPU_AVX2;
#endif
    return level;
}

static gbx_compare_kernel *kernel_of(gbx_cpu_level level, uint32_t dtype) {
#if defined(__x86_64__)
    if (level == GBX_CPU_AVX512)
        return gbx_compare_avx512[dtype];
    if (level == GBX_CPU_AVX2)
        return gbx_compare_avx2[dtype];
#endif
    (void)level;
    (void)dtype;
    return gbx_compare_plain;
}

/* --- blocks --- */

static uint64_t element_bits(uint32_t dtype, const unsigned char *elements, size_t index) {
    uint64_t bits = 0;
    if (gbx_dtype_is_packed(dtype))
        return elements[index / 2] >> (index % 2 * 4) & 0xf;
    const size_t width = gbx_dtype_bits(dtype) / 8;
    memcpy(&bits, elements + index * width, width);
    return bits;
}

/* An infinite tolerance times a zero would be NaN. */
static double usable(double tolerance) {
    return tolerance > 0.0 ? fmin(tolerance, DBL_MAX) : 0.0;
}

static gbx_compare_rule rule_of(const gbx_comparison *comparison) {
    const gbx_tolerance *tolerance = &comparison->tolerance;
    gbx_compare_rule rule = {.dtype = comparison->dtype,
                             .is_strict_nan = tolerance->is_strict_nan,
                             .rtol = usable(tolerance->rtol),
                             .atol = usable(tolerance->atol),
                             .ulp = tolerance->ulp,
                             .sign_bit = gbx_float_codes_of(comparison->dtype).sign};
    rule.is_exact = rule.rtol == 0.0 && rule.atol == 0.0;
    if (rule.is_exact)
        rule.atol = 1.0;
    return rule;
}

static gbx_compare_block block_after(const gbx_comparison *comparison) {
    return (gbx_compare_block){.max_abs = comparison->max_abs,
                               .max_rel = comparison->max_rel,
                               .max_ulp = comparison->max_ulp,
                               .first_bad = GBX_COMPARE_NONE,
                               .worst = GBX_COMPARE_NONE,
                               .worst_excess =
                                   comparison->mismatches > 0 ? comparison->worst_excess : -1.0};
}

/* --- sums --- */

static double sum_of_lanes(double *sums) {
    for (int w = GBX_COMPARE_LANES / 2; w > 0; w /= 2)
        for (int i = 0; i < w; ++i)
            sums[i] += sums[i + w];
    return sums[0];
}

static bool is_all_zero(const unsigned char *elements, size_t count) {
    uint64_t bits = 0;
    for (size_t i = 0; i < count; ++i) {
        uint64_t code;
        memcpy(&code, elements + i * sizeof code, sizeof code);
        bits |= code << 1; /* without the sign */
    }
    return bits == 0;
}

/* A sum of squares is infinite, or so small that squares may have been lost. */
static bool is_out_of_range(long double sum) {
    return !(sum >= 0x1p-900 && sum <= DBL_MAX);
}

static bool is_lossy(long double sum, const unsigned char *elements, size_t count) {
    return is_out_of_range(sum) && !(sum == 0.0L && is_all_zero(elements, count));
}

/* Squares of any float64 and their sums are long doubles. */
static void add_widely(const unsigned char *got, const unsigned char *want, size_t count,
                       long double out_sums[GBX_COMPARE_SUMS]) {
    memset(out_sums, 0, GBX_COMPARE_SUMS * sizeof *out_sums);
    for (size_t i = 0; i < count; ++i) {
        double g, w;
        memcpy(&g, got + i * sizeof g, sizeof g);
        memcpy(&w, want + i * sizeof w, sizeof w);
        if (!isfinite(g) || !isfinite(w))
            continue;
        long double wide_g = g, wide_w = w, difference = wide_g - wide_w;
        out_sums[GBX_SUM_SQUARE_DIFFERENCE] += difference * difference;
        out_sums[GBX_SUM_SQUARE_GOT] += wide_g * wide_g;
        out_sums[GBX_SUM_SQUARE_WANT] += wide_w * wide_w;
        out_sums[GBX_SUM_PRODUCT] += wide_g * wide_w;
    }
}

static void take_sums(gbx_comparison *c, const unsigned char *got, const unsigned char *want,
                      size_t count, gbx_compare_block *block) {
    long double sums[GBX_COMPARE_SUMS];
    for (int i = 0; i < GBX_COMPARE_SUMS; ++i)
        sums[i] = sum_of_lanes(block->sums[i]);
    if (c->dtype == GBX_FLOAT64 &&
        (is_lossy(sums[GBX_SUM_SQUARE_GOT], got, count) ||
         is_lossy(sums[GBX_SUM_SQUARE_WANT], want, count) ||
         (block->unequal > 0 && is_out_of_range(sums[GBX_SUM_SQUARE_DIFFERENCE]))))
        add_widely(got, want, count, sums);
    c->sum_square_difference += sums[GBX_SUM_SQUARE_DIFFERENCE];
    c->sum_square_got += sums[GBX_SUM_SQUARE_GOT];
    c->sum_square_want += sums[GBX_SUM_SQUARE_WANT];
    c->sum_product += sums[GBX_SUM_PRODUCT];
}

/* --- adding --- */

static gbx_compared_element element_of(const gbx_comparison *comparison, const unsigned char *got,
                                       const unsigned char *want, size_t index) {
    return (gbx_compared_element){.index = comparison->elements + index,
                                  .got_bits = element_bits(comparison->dtype, got, index),
                                  .want_bits = element_bits(comparison->dtype, want, index)};
}

static void take_block(gbx_comparison *c, const unsigned char *got, const unsigned char *want,
                       size_t count, gbx_compare_block *block) {
    if (block->mismatches > 0 && c->mismatches == 0)
        c->first_bad = element_of(c, got, want, block->first_bad);
    if (block->worst != GBX_COMPARE_NONE) {
        c->worst = element_of(c, got, want, block->worst);
        c->worst_excess = block->worst_excess;
    }
    c->unequal += block->unequal;
    c->mismatches += block->mismatches;
    c->not_finite += block->not_finite;
    c->max_abs = block->max_abs;
    c->max_rel = block->max_rel;
    c->max_ulp = block->max_ulp;
    c->elements += count;
    take_sums(c, got, want, count, block);
}

void gbx_comparison_begin(gbx_comparison *comparison, uint32_t dtype,
                          const gbx_tolerance *tolerance) {
    *comparison = (gbx_comparison){.dtype = dtype, .tolerance = *tolerance};
}

void gbx_comparison_add_at(gbx_cpu_level level, gbx_comparison *comparison, const void *got,
                           const void *want, size_t count) {
    const size_t bits = gbx_dtype_bits(comparison->dtype);
    if (bits == 0)
        return;
    const gbx_compare_rule rule = rule_of(comparison);
    gbx_compare_kernel *kernel = kernel_of(level, rule.dtype);
    for (size_t done = 0; done < count;) {
        size_t left = count - done;
        size_t size = left < GBX_COMPARISON_STEP ? left : GBX_COMPARISON_STEP;
        size_t whole = size / GBX_COMPARE_GROUP * GBX_COMPARE_GROUP;
        const unsigned char *some_got = (const unsigned char *)got + done * bits / 8;
        const unsigned char *some_want = (const unsigned char *)want + done * bits / 8;
        gbx_compare_block block = block_after(comparison);
        kernel(&rule, some_got, some_want, 0, whole, &block);
        gbx_compare_plain(&rule, some_got, some_want, whole, size, &block);
        take_block(comparison, some_got, some_want, size, &block);
        done += size;
    }
}

void gbx_comparison_add(gbx_comparison *comparison, const void *got, const void *want,
                        size_t count) {
    gbx_comparison_add_at(gbx_compare_level_detect(), comparison, got, want, count);
}

/* --- results --- */

double gbx_comparison_rmse(const gbx_comparison *comparison) {
    uint64_t count = comparison->elements - comparison->not_finite;
    return count > 0 ? (double)sqrtl(comparison->sum_square_difference / (long double)count) : NAN;
}

double gbx_comparison_cosine(const gbx_comparison *comparison) {
    long double got = comparison->sum_square_got, want = comparison->sum_square_want;
    if (comparison->elements == comparison->not_finite)
        return NAN;
    if (got == 0.0L || want == 0.0L)
        return got == want ? 1.0 : 0.0;
    double cosine = (double)(comparison->sum_product / sqrtl(got) / sqrtl(want));
    return fmax(-1.0, fmin(1.0, cosine));
}

/* --- whole tensors --- */

gbx_comparison gbx_compare(const gbx_tensor *tensor, const void *got, const void *want,
                           const gbx_tolerance *tolerance) {
    const uint64_t elements = (uint64_t)gbx_tensor_numel(tensor);
    gbx_comparison result;
    gbx_comparison_begin(&result, tensor->dtype, tolerance);
    if (elements == 0)
        return result;
    /* Rows of packed elements start at a byte; all else is one long row. */
    const uint64_t row = gbx_dtype_is_packed(tensor->dtype) && tensor->ndims
                             ? (uint64_t)tensor->shape[tensor->ndims - 1]
                             : elements;
    const uint64_t row_bytes = (row * gbx_dtype_bits(tensor->dtype) + 7) / 8;
    for (uint64_t i = 0; i < elements / row; ++i)
        gbx_comparison_add(&result, (const unsigned char *)got + i * row_bytes,
                           (const unsigned char *)want + i * row_bytes, (size_t)row);
    return result;
}

void gbx_compare_index(const gbx_tensor *tensor, uint64_t number, int64_t out_index[GBX_MAX_DIMS]) {
    for (uint32_t d = tensor->ndims; d-- > 0;) {
        out_index[d] = (int64_t)(number % (uint64_t)tensor->shape[d]);
        number /= (uint64_t)tensor->shape[d];
    }
}
