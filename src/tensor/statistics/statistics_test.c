/* Statistics, at every level of the processor, compared with a plain loop over elements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "base/float_bits.h"
#include "tensor/statistics/statistics_kernels.h"

__extension__ typedef __int128 wide;

#define NAN_BITS UINT64_C(0x7ff8000000000000)

static uint64_t random_state = 1;

static uint64_t random_u64(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * UINT64_C(2685821657736338717);
}

static uint64_t random_below(uint64_t end) {
    return (random_u64() >> 16) % end;
}

/* --- elements --- */

/* A payload that ends with its heap block, so that address sanitizer sees a byte too far. */
typedef struct payload {
    unsigned char *block;
    unsigned char *bytes;
    size_t size;
    uint32_t dtype;
    uint64_t row; /* elements per row, only for packed dtypes */
} payload;

static payload payload_make(uint32_t dtype, size_t size, size_t shift, uint64_t row) {
    payload made = {.size = size, .dtype = dtype, .row = row};
    made.block = malloc(size + shift + 1);
    assert_non_null(made.block);
    made.block = realloc(made.block, size + shift > 0 ? size + shift : 1);
    assert_non_null(made.block);
    made.bytes = made.block + shift;
    return made;
}

static size_t element_bytes(uint32_t dtype) {
    return gbx_dtype_is_packed(dtype) ? 1 : gbx_dtype_bits(dtype) / 8;
}

static uint64_t payload_count(const payload *from) {
    if (!gbx_dtype_is_packed(from->dtype))
        return from->size / element_bytes(from->dtype);
    uint64_t row_bytes = (from->row + 1) / 2;
    uint64_t rest = from->size % row_bytes * 2;
    return from->size / row_bytes * from->row + rest;
}

static uint64_t element_at(const payload *from, uint64_t i) {
    if (gbx_dtype_is_packed(from->dtype)) {
        uint64_t column = i % from->row;
        unsigned byte = from->bytes[i / from->row * ((from->row + 1) / 2) + column / 2];
        return column % 2 ? byte >> 4 : byte & 15u;
    }
    uint64_t bits = 0;
    memcpy(&bits, from->bytes + i * element_bytes(from->dtype), element_bytes(from->dtype));
    return bits;
}

/* --- the reference --- */

static double smallest_normal(uint32_t dtype) {
    switch (dtype) {
    case GBX_FLOAT64:
        return DBL_MIN;
    case GBX_FLOAT8_E4M3:
        return ldexp(1, -6);
    case GBX_FLOAT4_E2M1:
        return 1;
    case GBX_FLOAT8_E8M0:
        return 0; /* all numbers are normal */
    case GBX_FLOAT16:
    case GBX_FLOAT8_E5M2:
        return ldexp(1, -14);
    default:
        return FLT_MIN;
    }
}

static bool is_less(double a, double b) {
    return a < b || (a == b && signbit(a) && !signbit(b));
}

typedef struct expectation {
    gbx_statistics exact; /* all but the mean */
    double mean;          /* in a wider sum */
    double tolerance;
} expectation;

static expectation expect_floats(const payload *from) {
    expectation expected = {.exact = {.min_bits = NAN_BITS, .max_bits = NAN_BITS}};
    gbx_statistics *exact = &expected.exact;
    double least = NAN, greatest = NAN;
    long double sum = 0, magnitudes = 0;
    uint64_t finite = 0;
    for (uint64_t i = 0; i < payload_count(from); ++i) {
        double value = gbx_dtype_to_f64(from->dtype, element_at(from, i));
        exact->nan_count += isnan(value) != 0;
        exact->inf_count += isinf(value) != 0;
        exact->zero_count += value == 0;
        exact->subnormal_count += value != 0 && fabs(value) < smallest_normal(from->dtype);
        if (isnan(value))
            continue;
        if (isnan(least) || is_less(value, least))
            least = value;
        if (isnan(greatest) || is_less(greatest, value))
            greatest = value;
        if (isinf(value))
            continue;
        ++finite;
        sum += value;
        magnitudes += fabsl(value);
    }
    if (!isnan(least)) {
        exact->min_bits = gbx_f64_bits(least);
        exact->max_bits = gbx_f64_bits(greatest);
    }
    expected.mean = finite > 0 ? (double)(sum / (long double)finite) : NAN;
    if (gbx_dtype_bits(from->dtype) <= 8 && from->dtype != GBX_FLOAT8_E8M0) { /* exact, here too */
        expected.mean = finite > 0 ? (double)sum / (double)finite : NAN;
        return expected;
    }
    /* The sum of float64 rounds or overflows: then only the levels must agree. */
    if (magnitudes > DBL_MAX / 2)
        expected.tolerance = INFINITY;
    else if (finite > 0)
        expected.tolerance =
            (double)(magnitudes / (long double)finite) * 1e-13 + (double)DBL_TRUE_MIN;
    return expected;
}

/* An integer by the definition of its dtype. */
static wide integer_of(uint32_t dtype, uint64_t bits) {
    if (dtype == GBX_BOOL)
        return bits != 0;
    unsigned width = gbx_dtype_bits(dtype);
    bool is_negative = gbx_dtype_is_signed(dtype) && bits >> (width - 1) & 1;
    return is_negative ? (wide)bits - ((wide)1 << width) : (wide)bits;
}

static expectation expect_integers(const payload *from) {
    expectation expected = {0};
    wide sum = 0, least = 0, greatest = 0;
    uint64_t count = payload_count(from);
    for (uint64_t i = 0; i < count; ++i) {
        wide value = integer_of(from->dtype, element_at(from, i));
        expected.exact.zero_count += value == 0;
        least = i == 0 || value < least ? value : least;
        greatest = i == 0 || value > greatest ? value : greatest;
        sum += value;
    }
    expected.exact.min_bits = (uint64_t)least;
    expected.exact.max_bits = (uint64_t)greatest;
    expected.mean = count > 0 ? (double)sum / (double)count : 0; /* and is not near it */
    return expected;
}

static void assert_expected(const gbx_statistics *actual, const expectation *expected) {
    assert_int_equal(actual->min_bits, expected->exact.min_bits);
    assert_int_equal(actual->max_bits, expected->exact.max_bits);
    assert_int_equal(actual->nan_count, expected->exact.nan_count);
    assert_int_equal(actual->inf_count, expected->exact.inf_count);
    assert_int_equal(actual->zero_count, expected->exact.zero_count);
    assert_int_equal(actual->subnormal_count, expected->exact.subnormal_count);
    if (isnan(expected->mean))
        assert_int_equal(gbx_f64_bits(actual->mean), NAN_BITS);
    else if (!isinf(expected->tolerance))
        assert_true(fabs(actual->mean - expected->mean) <= expected->tolerance);
}

/* --- checking one payload --- */

/* Pieces of `steps` times the step; 0: in one go. */
static gbx_statistics compute(gbx_cpu_level level, const payload *from, size_t steps) {
    gbx_statistics_state state;
    gbx_statistics result;
    size_t piece = steps > 0 ? steps * GBX_STATISTICS_STEP_BYTES : from->size + 1;
    gbx_statistics_begin(&state, from->dtype);
    for (size_t at = 0; at < from->size; at += piece) {
        size_t size = from->size - at < piece ? from->size - at : piece;
        gbx_statistics_update_at(level, &state, from->bytes + at, size, from->row);
    }
    gbx_statistics_end(&state, &result);
    return result;
}

/* Returns the result, which all levels and pieces must agree on, bit for bit. */
static gbx_statistics check(const payload *from) {
    static const size_t steps[] = {0, 1, 3, 4, 64};
    expectation expected =
        gbx_dtype_is_float(from->dtype) ? expect_floats(from) : expect_integers(from);
    gbx_statistics first = compute(GBX_CPU_PLAIN, from, 0);
    assert_expected(&first, &expected);
    for (gbx_cpu_level level = GBX_CPU_PLAIN; level <= gbx_statistics_level_detect(); ++level)
        for (size_t s = 0; s < sizeof steps / sizeof steps[0]; ++s) {
            if (s > 0 && steps[s] * GBX_STATISTICS_STEP_BYTES >= from->size)
                break;
            gbx_statistics other = compute(level, from, steps[s]);
            assert_memory_equal(&other, &first, sizeof first);
        }
    return first;
}

/* --- values that are easy to get wrong --- */

static uint64_t quiet_nan(uint32_t dtype) {
    switch (dtype) {
    case GBX_FLOAT64:
        return NAN_BITS;
    case GBX_FLOAT32:
        return 0x7fc00000;
    case GBX_BFLOAT16:
        return 0x7fc0;
    case GBX_FLOAT16:
        return 0x7e00;
    case GBX_FLOAT8_E5M2:
        return 0x7e;
    case GBX_FLOAT8_E8M0:
        return 0xff;
    default: /* its largest number if a dtype has no infinity */
        return 0x7f;
    }
}

/* Codes of both signs around the limits of each kind of number; all bits are valid elements. */
static uint64_t odd_code(uint32_t dtype) {
    unsigned width = gbx_dtype_bits(dtype);
    uint64_t all = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    uint64_t normal = 1, infinity = all >> 1;
    if (gbx_dtype_is_float(dtype)) {
        normal = gbx_dtype_from_f64(dtype, smallest_normal(dtype));
        infinity = gbx_dtype_from_f64(dtype, INFINITY); /* float8_e4m3: its largest number */
    }
    const uint64_t codes[] = {0,
                              1,
                              normal - 1,
                              normal,
                              normal + 1,
                              infinity,
                              infinity - 1,
                              infinity + 1,
                              all >> 1,
                              all >> 2,
                              all / 3,
                              normal << 1,
                              quiet_nan(dtype),
                              random_u64() & all >> 1};
    uint64_t code = codes[random_below(sizeof codes / sizeof codes[0])];
    return (random_u64() >> 40 & 1 ? code : code ^ (all ^ all >> 1)) & all;
}

static void put(payload *to, uint64_t i, uint64_t bits) {
    size_t bytes = element_bytes(to->dtype);
    memcpy(to->bytes + i * bytes, &bits, bytes);
}

static void fill_random(payload *to) {
    for (size_t i = 0; i < to->size; ++i)
        to->bytes[i] = (unsigned char)(random_u64() >> 40);
}

/* One in `rarity` is an unusual code, the others are usual numbers of both signs. */
static void fill_with_odd_codes(payload *to, uint64_t rarity) {
    for (uint64_t i = 0; i < to->size / element_bytes(to->dtype); ++i) {
        double usual = ((double)random_below(2000) - 1000) / 16;
        bool is_odd = random_below(rarity) == 0;
        uint64_t low = is_odd ? odd_code(to->dtype) : gbx_dtype_from_f64(to->dtype, usual);
        uint64_t high = gbx_dtype_is_packed(to->dtype) ? odd_code(to->dtype) << 4 : 0;
        put(to, i, low | high);
    }
}

/* --- tests --- */

static void values_of_a_small_array(void **state) {
    (void)state;
    const float values[] = {1.5f, -0.0f, INFINITY, NAN, -2.5f, 1e-40f, 4.0f, 0.0f};
    gbx_statistics_state sums;
    gbx_statistics result;
    gbx_statistics_begin(&sums, GBX_FLOAT32);
    gbx_statistics_update(&sums, values, sizeof values, 8);
    gbx_statistics_end(&sums, &result);
    assert_int_equal(result.min_bits, gbx_f64_bits(-2.5));
    assert_int_equal(result.max_bits, gbx_f64_bits(INFINITY));
    assert_int_equal(result.nan_count, 1);
    assert_int_equal(result.inf_count, 1);
    assert_int_equal(result.zero_count, 2);
    assert_int_equal(result.subnormal_count, 1);
    assert_true(result.mean == 0.5);

    const int32_t integers[] = {INT32_MIN, 0, 5, INT32_MAX};
    gbx_statistics_begin(&sums, GBX_INT32);
    gbx_statistics_update(&sums, integers, sizeof integers, 4);
    gbx_statistics_end(&sums, &result);
    assert_int_equal(result.min_bits, (uint64_t)INT32_MIN);
    assert_int_equal(result.max_bits, INT32_MAX);
    assert_int_equal(result.zero_count, 1);
    assert_true(result.mean == 1.0);
}

static void nothing_counts(void **state) {
    (void)state;
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype) {
        payload none = payload_make(dtype, 0, 0, 3);
        gbx_statistics result = check(&none);
        uint64_t expected = gbx_dtype_is_float(dtype) ? NAN_BITS : 0;
        assert_int_equal(result.min_bits, expected);
        assert_int_equal(result.max_bits, expected);
        assert_int_equal(gbx_f64_bits(result.mean), expected);
        free(none.block);
    }
}

/* Arrays of one value, long enough for vectors and with a tail. */
static void arrays_of_one_value(void **state) {
    (void)state;
    enum { COUNT = 1024 + 77 };
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype)
        for (int i = 0; i < 100; ++i) {
            payload same = payload_make(dtype, COUNT * element_bytes(dtype), (size_t)i % 9, COUNT);
            uint64_t code = odd_code(dtype);
            for (uint64_t k = 0; k < COUNT; ++k)
                put(&same, k, gbx_dtype_is_packed(dtype) ? code | code << 4 : code);
            check(&same);
            free(same.block);
        }
}

static void only_infinities_have_no_mean(void **state) {
    (void)state;
    payload values = payload_make(GBX_FLOAT16, 400 * 2, 0, 0);
    for (uint64_t i = 0; i < 400; ++i)
        put(&values, i, i % 3 == 0 ? 0x7c00 : i % 3 == 1 ? 0xfc00 : 0xfd55);
    gbx_statistics result = check(&values);
    assert_int_equal(result.min_bits, gbx_f64_bits(-INFINITY));
    assert_int_equal(result.max_bits, gbx_f64_bits(INFINITY));
    assert_int_equal(result.inf_count, 267);
    assert_int_equal(result.nan_count, 133);
    assert_int_equal(gbx_f64_bits(result.mean), NAN_BITS);
    free(values.block);
}

static void minus_zero_is_less_than_zero(void **state) {
    (void)state;
    const uint32_t dtypes[] = {GBX_FLOAT32, GBX_FLOAT16,     GBX_BFLOAT16,
                               GBX_FLOAT64, GBX_FLOAT8_E4M3, GBX_FLOAT8_E5M2};
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; ++d)
        for (uint64_t at = 0; at < 300; at += 13) {
            payload zeros = payload_make(dtypes[d], 300 * element_bytes(dtypes[d]), 0, 0);
            memset(zeros.bytes, 0, zeros.size);
            put(&zeros, at, UINT64_C(1) << (gbx_dtype_bits(dtypes[d]) - 1));
            gbx_statistics result = check(&zeros);
            assert_int_equal(result.min_bits, gbx_f64_bits(-0.0));
            assert_int_equal(result.max_bits, gbx_f64_bits(0.0));
            assert_int_equal(result.zero_count, 300);
            assert_int_equal(gbx_f64_bits(result.mean), gbx_f64_bits(0.0));
            free(zeros.block);
        }
}

/* Every code of the dtypes of 8 and 16 bits: all of them, and each among usual numbers. */
static void all_codes(void **state) {
    (void)state;
    enum { AMONG = 160 };
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype) {
        unsigned bits = gbx_dtype_is_packed(dtype) ? 8 : gbx_dtype_bits(dtype);
        if (bits > 16)
            continue;
        uint64_t codes = UINT64_C(1) << bits;
        payload all = payload_make(dtype, 3 * codes * (bits / 8), 1, 3 * codes);
        payload among = payload_make(dtype, AMONG * (bits / 8), 0, AMONG);
        for (uint64_t i = 0; i < 3 * codes; ++i)
            put(&all, i, i * 24593 % codes);
        check(&all);
        for (uint64_t code = 0; code < codes; ++code) {
            fill_with_odd_codes(&among, UINT64_MAX);
            put(&among, code % AMONG, code);
            check(&among);
        }
        free(all.block);
        free(among.block);
    }
}

static void random_payloads(void **state) {
    (void)state;
    random_state = 5;
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype)
        for (int i = 0; i < 300; ++i) {
            uint64_t count = random_below(i % 10 == 0 ? 20000 : 700);
            size_t shift = (size_t)random_below(64);
            uint64_t row = 1 + random_below(500);
            payload values = payload_make(dtype, count * element_bytes(dtype), shift, row);
            if (gbx_dtype_is_packed(dtype))
                values.size -= values.size % ((row + 1) / 2);
            fill_random(&values);
            check(&values);
            fill_with_odd_codes(&values, 1 + random_below(40));
            check(&values);
            free(values.block);
        }
}

/* More than one call of a kernel takes. */
static void large_payloads(void **state) {
    (void)state;
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype) {
        payload values = payload_make(dtype, 3 * GBX_STATISTICS_CALL_BYTES + 8 * 77, 3, 616);
        values.size -= gbx_dtype_is_packed(dtype) ? values.size % 308 : 0;
        fill_with_odd_codes(&values, 50);
        check(&values);
        free(values.block);
    }
}

static void extreme_sums_are_exact(void **state) {
    (void)state;
    const uint32_t dtypes[] = {GBX_INT64, GBX_UINT64, GBX_INT32, GBX_UINT32,
                               GBX_INT16, GBX_UINT16, GBX_INT8,  GBX_UINT8};
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; ++d) {
        payload values = payload_make(dtypes[d], GBX_STATISTICS_CALL_BYTES * 2, 0, 0);
        uint64_t count = payload_count(&values), all = UINT64_MAX;
        memset(values.bytes, 0xff, values.size);
        check(&values);
        for (uint64_t i = 0; i < count; ++i)
            put(&values, i, UINT64_C(1) << (gbx_dtype_bits(dtypes[d]) - 1));
        check(&values);
        for (uint64_t i = 0; i < count; ++i)
            put(&values, i, i % 2 ? all >> (65 - gbx_dtype_bits(dtypes[d])) : 3);
        check(&values);
        free(values.block);
    }
}

/* The order that the header gives: the figures can be computed again elsewhere. */
static void floats_are_summed_in_the_documented_order(void **state) {
    (void)state;
    const uint32_t dtypes[] = {GBX_FLOAT32, GBX_FLOAT16, GBX_BFLOAT16, GBX_FLOAT64,
                               GBX_FLOAT8_E8M0};
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; ++d) {
        payload values = payload_make(dtypes[d], 100003 * element_bytes(dtypes[d]), 5, 0);
        for (uint64_t i = 0; i < payload_count(&values); ++i) {
            int range = dtypes[d] == GBX_FLOAT8_E8M0 ? 90 : 30;
            double scale = ldexp(1, (int)random_below((uint64_t)range) - 20);
            double value = (double)(random_u64() >> 12) / (double)(UINT64_C(1) << 52) * scale;
            put(&values, i, gbx_dtype_from_f64(dtypes[d], value));
        }
        gbx_statistics result = check(&values);
        double lanes[32] = {0};
        for (uint64_t i = 0; i < payload_count(&values); ++i)
            lanes[i % 32] += gbx_dtype_to_f64(dtypes[d], element_at(&values, i));
        for (int w = 16; w > 0; w /= 2)
            for (int i = 0; i < w; ++i)
                lanes[i] += lanes[i + w];
        double mean = lanes[0] / (double)payload_count(&values);
        assert_int_equal(gbx_f64_bits(result.mean), gbx_f64_bits(mean));
        free(values.block);
    }
}

/* The padding of odd rows is not counted, whatever it holds; pieces cut rows anywhere. */
static void check_odd_rows(uint32_t dtype, uint64_t row, size_t shift, uint64_t three,
                           double mean) {
    size_t row_bytes = (size_t)(row + 1) / 2;
    payload values = payload_make(dtype, row_bytes * (1 + 50000 / row_bytes), shift, row);
    fill_random(&values);
    check(&values);
    /* All elements have code 3 and the padding has code 8: counting any of it would show. */
    memset(values.bytes, 0x33, values.size);
    for (size_t at = row_bytes - 1; row % 2 && at < values.size; at += row_bytes)
        values.bytes[at] = 0x83;
    gbx_statistics result = check(&values);
    assert_int_equal(result.min_bits, three);
    assert_int_equal(result.max_bits, three);
    assert_true(result.mean == mean);
    assert_int_equal(result.zero_count, 0);
    free(values.block);
}

static void packed_rows_of_odd_length(void **state) {
    (void)state;
    const uint64_t rows[] = {1, 2, 3, 5, 7, 255, 257, 511, 4095, 8191, 8193, 8195, 40001};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
        check_odd_rows(GBX_INT4, rows[r], r, 3, 3);
        check_odd_rows(GBX_FLOAT4_E2M1, rows[r], r, gbx_f64_bits(1.5), 1.5);
    }
}

/* Counted by hand from the definitions of OCP MX. */
static void values_of_the_mx_floats(void **state) {
    (void)state;
    /* -0.5, 6, 0, -0, 3, -6, 1.5 and half a byte */
    const unsigned char halves[] = {0x79, 0x80, 0xf5, 0xf3};
    /* 2^-127, NaN, 2, 1, 2^127, 0.5 */
    const unsigned char scales[] = {0x00, 0xff, 0x80, 0x7f, 0xfe, 0x7e};
    gbx_statistics_state sums;
    gbx_statistics result;
    gbx_statistics_begin(&sums, GBX_FLOAT4_E2M1);
    gbx_statistics_update(&sums, halves, sizeof halves, 7);
    gbx_statistics_end(&sums, &result);
    assert_int_equal(result.min_bits, gbx_f64_bits(-6));
    assert_int_equal(result.max_bits, gbx_f64_bits(6));
    assert_int_equal(result.zero_count, 2);
    assert_int_equal(result.subnormal_count, 1);
    assert_int_equal(result.nan_count + result.inf_count, 0);
    assert_true(result.mean == 4.0 / 7);
    gbx_statistics_begin(&sums, GBX_FLOAT8_E8M0);
    gbx_statistics_update(&sums, scales, sizeof scales, 6);
    gbx_statistics_end(&sums, &result);
    assert_int_equal(result.min_bits, gbx_f64_bits(0x1p-127));
    assert_int_equal(result.max_bits, gbx_f64_bits(0x1p127));
    assert_int_equal(result.nan_count, 1);
    assert_int_equal(result.inf_count + result.zero_count + result.subnormal_count, 0);
    assert_true(result.mean == 0x1p127 / 5);
}

static void bool_is_zero_or_not(void **state) {
    (void)state;
    payload values = payload_make(GBX_BOOL, 1000, 0, 0);
    for (uint64_t i = 0; i < 1000; ++i)
        values.bytes[i] = i % 4 == 0 ? 0 : (unsigned char)(i % 255 + 1);
    gbx_statistics result = check(&values);
    assert_int_equal(result.max_bits, 1);
    assert_int_equal(result.zero_count, 250);
    assert_true(result.mean == 0.75);
    free(values.block);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_a_small_array),
        cmocka_unit_test(nothing_counts),
        cmocka_unit_test(arrays_of_one_value),
        cmocka_unit_test(only_infinities_have_no_mean),
        cmocka_unit_test(minus_zero_is_less_than_zero),
        cmocka_unit_test(all_codes),
        cmocka_unit_test(random_payloads),
        cmocka_unit_test(large_payloads),
        cmocka_unit_test(extreme_sums_are_exact),
        cmocka_unit_test(floats_are_summed_in_the_documented_order),
        cmocka_unit_test(packed_rows_of_odd_length),
        cmocka_unit_test(values_of_the_mx_floats),
        cmocka_unit_test(bool_is_zero_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
