/*
 * Element types against their definitions: every code of the 4, 8 and 16-bit types, a sieve of the
 * codes of float32, and every place where a rounding or a range ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <glassbox/tensor.h>

#include "base/float_bits.h"
#include "tensor/dtype_table.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

typedef struct format {
    uint32_t dtype;
    int exponent_bits;
    int fraction_bits;
    int bias;
    bool is_ieee;    /* the top exponent is infinity and NaN */
    uint32_t stride; /* the tests check every so many codes */
} format;

static const format formats[] = {
    {GBX_FLOAT32, 8, 23, 127, true, 9973}, {GBX_FLOAT16, 5, 10, 15, true, 1},
    {GBX_BFLOAT16, 8, 7, 127, true, 1},    {GBX_FLOAT8_E4M3, 4, 3, 7, false, 1},
    {GBX_FLOAT8_E5M2, 5, 2, 15, true, 1},
};

/* The definition of the format: sign * fraction * 2^exponent. */
static double define(const format *f, uint32_t code) {
    const uint32_t fraction = code & ((1U << f->fraction_bits) - 1);
    const uint32_t exponent = code >> f->fraction_bits & ((1U << f->exponent_bits) - 1);
    const bool is_top = exponent == (1U << f->exponent_bits) - 1;
    const double sign = code >> (f->fraction_bits + f->exponent_bits) ? -1.0 : 1.0;
    if (is_top && f->is_ieee)
        return fraction ? copysign(NAN, sign) : sign * INFINITY;
    if (is_top && fraction == (1U << f->fraction_bits) - 1)
        return copysign(NAN, sign);
    const double scale =
        exponent ? 1.0 + ldexp(fraction, -f->fraction_bits) : ldexp(fraction, -f->fraction_bits);
    return sign * ldexp(scale, (int)(exponent ? exponent : 1) - f->bias);
}

static uint32_t sign_code(const format *f) {
    return 1U << (f->exponent_bits + f->fraction_bits);
}

static uint32_t top_code(const format *f) {
    return ((1U << f->exponent_bits) - 1) << f->fraction_bits;
}

static uint32_t largest_code(const format *f) {
    return f->is_ieee ? top_code(f) - 1 : sign_code(f) - 2;
}

static void check_decode(uint32_t dtype, uint64_t code, double expected) {
    const double value = gbx_dtype_to_f64(dtype, code);
    double from_array;
    gbx_dtype_array_to_f64(dtype, &code, 1, &from_array);
    const bool is_same = isnan(expected) ? isnan(value) && signbit(value) == signbit(expected)
                                         : gbx_f64_bits(value) == gbx_f64_bits(expected);
    if (!is_same || gbx_f64_bits(from_array) != gbx_f64_bits(value))
        fail_msg("%s 0x%" PRIx64 " is %a, not %a (in an array: %a)", gbx_dtype_name(dtype), code,
                 expected, value, from_array);
}

static void check_encode(uint32_t dtype, double value, uint64_t expected) {
    const uint64_t code = gbx_dtype_from_f64(dtype, value);
    uint64_t from_array = 0;
    gbx_dtype_array_from_f64(dtype, &value, 1, &from_array);
    if (code != expected || from_array != expected)
        fail_msg("%a as %s is 0x%" PRIx64 ", not 0x%" PRIx64 " (in an array: 0x%" PRIx64 ")", value,
                 gbx_dtype_name(dtype), expected, code, from_array);
}

/* A value and its negative. */
static void check_encode_both(const format *f, double value, uint32_t expected) {
    check_encode(f->dtype, value, expected);
    check_encode(f->dtype, -value, sign_code(f) | expected);
}

static void float_codes_decode_to_their_definition(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(formats); ++i) {
        const format *f = &formats[i];
        const uint64_t end = 2 * (uint64_t)sign_code(f);
        for (uint64_t code = 0; code < end; code += f->stride)
            check_decode(f->dtype, code, define(f, (uint32_t)code));
    }
}

static void float_codes_survive_the_way_through_float64(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(formats); ++i) {
        const format *f = &formats[i];
        for (uint64_t code = 0; code < 2 * (uint64_t)sign_code(f); code += f->stride) {
            const double value = gbx_dtype_to_f64(f->dtype, code);
            if (!isnan(value))
                check_encode(f->dtype, value, code);
        }
    }
}

/* Halfway between two neighbours, and the closest float64 on either side of it: code that first
 * rounds to float32 would see a tie in all three. */
static void check_midpoint(const format *f, uint32_t code) {
    const double low = define(f, code);
    const double high = define(f, code + 1);
    const double middle = low + (high - low) / 2;
    check_encode_both(f, middle, code % 2 ? code + 1 : code);
    check_encode_both(f, nextafter(middle, 0.0), code);
    check_encode_both(f, nextafter(middle, INFINITY), code + 1);
}

static void ties_between_neighbours_go_to_even_after_one_rounding(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(formats); ++i) {
        const format *f = &formats[i];
        for (uint32_t code = 0; code < largest_code(f); code += f->stride)
            check_midpoint(f, code);
        check_midpoint(f, (1U << f->fraction_bits) - 1); /* the largest subnormal and the next */
        check_midpoint(f, largest_code(f) - 1);
    }
}

static void float_range_ends_in_infinity_or_saturates(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(formats); ++i) {
        const format *f = &formats[i];
        const uint32_t largest = largest_code(f);
        const uint32_t beyond = f->is_ieee ? top_code(f) : largest;
        const double step = define(f, largest) - define(f, largest - 1);
        const double edge = define(f, largest) + step / 2;
        check_encode_both(f, define(f, largest), largest);
        check_encode_both(f, nextafter(edge, 0.0), largest);
        check_encode_both(f, edge, beyond);
        check_encode_both(f, nextafter(edge, INFINITY), beyond);
        check_encode_both(f, edge * 4, beyond);
        check_encode_both(f, DBL_MAX, beyond);
        check_encode_both(f, INFINITY, beyond);
    }
    check_encode(GBX_FLOAT8_E4M3, 448.0, 0x7e);
    check_encode(GBX_FLOAT8_E4M3, 1e9, 0x7e);
    check_encode(GBX_FLOAT8_E4M3, -INFINITY, 0xfe);
    check_encode(GBX_FLOAT8_E5M2, 57344.0, 0x7b);
    check_encode(GBX_FLOAT8_E5M2, 61440.0, 0x7c);
    check_encode(GBX_FLOAT16, 65519.0, 0x7bff);
    check_encode(GBX_FLOAT16, 65520.0, 0x7c00);
    check_encode(GBX_BFLOAT16, 0x1.fep127, 0x7f7f);
    check_encode(GBX_BFLOAT16, 0x1.ffp127, 0x7f80);
}

static void float_underflow_keeps_the_sign_of_zero(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(formats); ++i) {
        const format *f = &formats[i];
        const double half_of_smallest = define(f, 1) / 2;
        check_encode_both(f, 0.0, 0);
        check_encode_both(f, DBL_TRUE_MIN, 0);
        check_encode_both(f, DBL_MIN, 0);
        check_encode_both(f, DBL_MIN * 0.999, 0);
        check_encode_both(f, half_of_smallest / 2, 0);
        check_encode_both(f, half_of_smallest, 0);
        check_encode_both(f, nextafter(half_of_smallest, 1.0), 1);
        check_encode_both(f, define(f, 1), 1);
    }
    check_encode(GBX_FLOAT64, -0.0, UINT64_C(1) << 63);
    check_encode(GBX_FLOAT64, DBL_TRUE_MIN, 1);
    check_decode(GBX_FLOAT64, 1, DBL_TRUE_MIN);
}

/* Quiet: the first bit of the fraction is set. */
static void nan_becomes_a_quiet_nan_of_the_same_sign(void **state) {
    (void)state;
    static const uint64_t nans[] = {UINT64_C(0x7ff8000000000000), UINT64_C(0xfff8000000000000),
                                    UINT64_C(0x7ff0000000000001), UINT64_C(0xfff0000000000001),
                                    UINT64_C(0x7fffffffffffffff), UINT64_C(0xffffffffffffffff)};
    for (size_t n = 0; n < COUNT_OF(nans); ++n) {
        const double value = gbx_f64_of_bits(nans[n]);
        for (size_t i = 0; i < COUNT_OF(formats); ++i) {
            const format *f = &formats[i];
            const uint64_t code = gbx_dtype_from_f64(f->dtype, value);
            assert_true(isnan(define(f, (uint32_t)code)));
            assert_true(code >> (f->fraction_bits - 1) & 1);
            assert_int_equal(code >> (f->fraction_bits + f->exponent_bits), nans[n] >> 63);
            check_encode(f->dtype, value, code);
        }
        check_encode(GBX_FLOAT8_E4M3, value, 0x7f | nans[n] >> 63 << 7);
        check_encode(GBX_FLOAT64, value, nans[n] | UINT64_C(1) << 51);
    }
}

typedef struct integer {
    uint32_t dtype;
    int64_t min;
    int64_t max;
} integer;

static const integer integers[] = {
    {GBX_INT4, -8, 7},           {GBX_INT8, INT8_MIN, INT8_MAX},
    {GBX_UINT8, 0, UINT8_MAX},   {GBX_INT16, INT16_MIN, INT16_MAX},
    {GBX_UINT16, 0, UINT16_MAX}, {GBX_INT32, INT32_MIN, INT32_MAX},
    {GBX_UINT32, 0, UINT32_MAX},
};

/* n, n + 0.5 and the closest float64 to it on either side. */
static void check_integer_at(const integer *t, int64_t n) {
    const uint64_t mask = (UINT64_C(1) << gbx_dtype_bits(t->dtype)) - 1;
    const double middle = (double)n + 0.5;
    const int64_t nearest[] = {n, n, n % 2 ? n + 1 : n, n + 1};
    const double values[] = {(double)n, nextafter(middle, -INFINITY), middle,
                             nextafter(middle, INFINITY)};
    for (size_t i = 0; i < COUNT_OF(values); ++i) {
        const int64_t above = nearest[i] < t->min ? t->min : nearest[i];
        const int64_t expected = above > t->max ? t->max : above;
        check_encode(t->dtype, values[i], (uint64_t)expected & mask);
    }
    if (n >= t->min && n <= t->max)
        check_decode(t->dtype, (uint64_t)n & mask, (double)n);
}

static void integers_round_to_even_and_saturate(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(integers); ++i) {
        const integer *t = &integers[i];
        for (int64_t offset = -70000; offset <= 70000; ++offset)
            check_integer_at(t, offset);
        for (int64_t offset = -9; offset <= 9; ++offset) {
            check_integer_at(t, t->min + offset);
            check_integer_at(t, t->max + offset);
        }
        const uint64_t mask = (UINT64_C(1) << gbx_dtype_bits(t->dtype)) - 1;
        static const double far[] = {0x1p31, 0x1p32, 0x1p52, 0x1p63, 0x1p64, 1e300, INFINITY};
        for (size_t k = 0; k < COUNT_OF(far); ++k) {
            if (far[k] > (double)t->max)
                check_encode(t->dtype, far[k], (uint64_t)t->max);
            check_encode(t->dtype, -far[k] - 0x1p31, (uint64_t)t->min & mask);
        }
    }
}

static void integers_take_nan_and_zeros_as_zero(void **state) {
    (void)state;
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype) {
        if (gbx_dtype_is_float(dtype) || dtype == GBX_BOOL)
            continue;
        check_encode(dtype, NAN, 0);
        check_encode(dtype, -NAN, 0);
        check_encode(dtype, -0.0, 0);
        check_encode(dtype, 0.5, 0);
        check_encode(dtype, -0.5, 0);
        check_encode(dtype, DBL_TRUE_MIN, 0);
        check_decode(dtype, 0, 0.0);
    }
}

static void int64_is_exact_to_2_53_and_saturates_at_2_63(void **state) {
    (void)state;
    const int64_t two_53 = INT64_C(1) << 53;
    check_decode(GBX_INT64, (uint64_t)(two_53 - 1), 0x1p53 - 1);
    check_decode(GBX_INT64, (uint64_t)(two_53 + 1), 0x1p53);
    check_decode(GBX_INT64, (uint64_t)(two_53 + 3), 0x1p53 + 4);
    check_decode(GBX_INT64, (uint64_t)(-two_53 - 1), -0x1p53);
    check_decode(GBX_INT64, (uint64_t)(-two_53 - 3), -0x1p53 - 4);
    check_decode(GBX_INT64, (uint64_t)INT64_MAX, 0x1p63);
    check_decode(GBX_INT64, (uint64_t)INT64_MIN, -0x1p63);
    check_encode(GBX_INT64, 0x1p53 - 1, (uint64_t)(two_53 - 1));
    check_encode(GBX_INT64, 0x1p52 - 0.5, UINT64_C(1) << 52);
    check_encode(GBX_INT64, 0x1p51 + 0.5, UINT64_C(1) << 51);
    check_encode(GBX_INT64, -0x1p51 - 1.5, (uint64_t) - ((INT64_C(1) << 51) + 2));
    check_encode(GBX_INT64, nextafter(0x1p63, 0.0), (uint64_t)(INT64_MAX - 1023));
    check_encode(GBX_INT64, 0x1p63, (uint64_t)INT64_MAX);
    check_encode(GBX_INT64, INFINITY, (uint64_t)INT64_MAX);
    check_encode(GBX_INT64, nextafter(-0x1p63, 0.0), (uint64_t)(INT64_MIN + 1024));
    check_encode(GBX_INT64, -0x1p63, (uint64_t)INT64_MIN);
    check_encode(GBX_INT64, nextafter(-0x1p63, -INFINITY), (uint64_t)INT64_MIN);
    check_encode(GBX_INT64, -INFINITY, (uint64_t)INT64_MIN);
}

static void uint64_is_exact_to_2_53_and_saturates_at_2_64(void **state) {
    (void)state;
    const uint64_t two_53 = UINT64_C(1) << 53;
    const uint64_t two_63 = UINT64_C(1) << 63;
    check_decode(GBX_UINT64, two_53 - 1, 0x1p53 - 1);
    check_decode(GBX_UINT64, two_53 + 1, 0x1p53);
    check_decode(GBX_UINT64, two_53 + 3, 0x1p53 + 4);
    check_decode(GBX_UINT64, two_63 - 1, 0x1p63);
    check_decode(GBX_UINT64, two_63, 0x1p63);
    check_decode(GBX_UINT64, two_63 + 1024, 0x1p63);
    check_decode(GBX_UINT64, two_63 + 1025, 0x1p63 + 2048);
    check_decode(GBX_UINT64, two_63 + 3071, 0x1p63 + 2048);
    check_decode(GBX_UINT64, two_63 + 3072, 0x1p63 + 4096);
    check_decode(GBX_UINT64, UINT64_MAX, 0x1p64);
    check_encode(GBX_UINT64, 0x1p63, two_63);
    check_encode(GBX_UINT64, 0x1p63 + 2048, two_63 + 2048);
    check_encode(GBX_UINT64, nextafter(0x1p64, 0.0), UINT64_MAX - 2047);
    check_encode(GBX_UINT64, 0x1p64, UINT64_MAX);
    check_encode(GBX_UINT64, INFINITY, UINT64_MAX);
    check_encode(GBX_UINT64, 2.5, 2);
    check_encode(GBX_UINT64, 3.5, 4);
    check_encode(GBX_UINT64, -0.75, 0);
    check_encode(GBX_UINT64, -1e30, 0);
    check_encode(GBX_UINT64, -INFINITY, 0);
}

static void bool_is_one_for_all_but_zero(void **state) {
    (void)state;
    for (uint64_t code = 0; code < 256; ++code)
        check_decode(GBX_BOOL, code, code ? 1.0 : 0.0);
    static const double values[] = {1.0, -1.0, 0.25, DBL_TRUE_MIN, INFINITY, NAN};
    for (size_t i = 0; i < COUNT_OF(values); ++i)
        check_encode(GBX_BOOL, values[i], 1);
    check_encode(GBX_BOOL, 0.0, 0);
    check_encode(GBX_BOOL, -0.0, 0);
}

static void bits_above_the_element_are_ignored(void **state) {
    (void)state;
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype) {
        if (gbx_dtype_bits(dtype) == 64)
            continue;
        const uint64_t above = UINT64_MAX << gbx_dtype_bits(dtype);
        for (uint64_t code = 0; code < 16; ++code)
            assert_true(gbx_dtype_to_f64(dtype, code | above) == gbx_dtype_to_f64(dtype, code));
    }
}

/* --- the floats of OCP MX, by the tables of its definition --- */

static const double e2m1_values[] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};

static void float4_e2m1_is_that_of_ocp(void **state) {
    (void)state;
    for (uint32_t code = 0; code < 8; ++code) {
        check_decode(GBX_FLOAT4_E2M1, code, e2m1_values[code]);
        check_decode(GBX_FLOAT4_E2M1, code | 8, -e2m1_values[code]);
        check_encode(GBX_FLOAT4_E2M1, e2m1_values[code], code);
        check_encode(GBX_FLOAT4_E2M1, -e2m1_values[code], code | 8);
    }
    /* Halfway between two neighbours the even code is taken, and 7 would be between 6 and 8. */
    static const struct {
        double middle;
        uint32_t below, above, taken;
    } ties[] = {{0.25, 0, 1, 0}, {0.75, 1, 2, 2}, {1.25, 2, 3, 2}, {1.75, 3, 4, 4},
                {2.5, 4, 5, 4},  {3.5, 5, 6, 6},  {5.0, 6, 7, 6},  {7.0, 7, 7, 7}};
    for (size_t i = 0; i < COUNT_OF(ties); ++i)
        for (uint32_t sign = 0; sign < 16; sign += 8) {
            const double middle = sign ? -ties[i].middle : ties[i].middle;
            const double far = sign ? -INFINITY : INFINITY;
            check_encode(GBX_FLOAT4_E2M1, middle, ties[i].taken | sign);
            check_encode(GBX_FLOAT4_E2M1, nextafter(middle, 0.0), ties[i].below | sign);
            check_encode(GBX_FLOAT4_E2M1, nextafter(middle, far), ties[i].above | sign);
        }
    static const double large[] = {6.5, 7.5, 8.0, 1e9, DBL_MAX, INFINITY};
    for (size_t i = 0; i < COUNT_OF(large); ++i) {
        check_encode(GBX_FLOAT4_E2M1, large[i], 7);
        check_encode(GBX_FLOAT4_E2M1, -large[i], 15);
    }
    check_encode(GBX_FLOAT4_E2M1, NAN, 7);
    check_encode(GBX_FLOAT4_E2M1, -NAN, 7);
    check_encode(GBX_FLOAT4_E2M1, -DBL_TRUE_MIN, 8);
}

/* A power of two for each code; nothing lies between 0 and the smallest, and nothing above the
 * largest. */
static void float8_e8m0_is_that_of_ocp(void **state) {
    (void)state;
    double power = 0x1p-127;
    for (uint32_t code = 0; code < 255; ++code, power *= 2) {
        const double middle = power * 1.5;
        const uint32_t next = code < 254 ? code + 1 : code;
        check_decode(GBX_FLOAT8_E8M0, code, power);
        check_encode(GBX_FLOAT8_E8M0, power, code);
        check_encode(GBX_FLOAT8_E8M0, nextafter(power, INFINITY), code);
        check_encode(GBX_FLOAT8_E8M0, nextafter(power, 0.0), code);
        check_encode(GBX_FLOAT8_E8M0, nextafter(middle, 0.0), code);
        check_encode(GBX_FLOAT8_E8M0, middle, next);
        check_encode(GBX_FLOAT8_E8M0, -power, 255);
    }
    check_decode(GBX_FLOAT8_E8M0, 255, NAN);
    static const double small[] = {0.0, -0.0, DBL_TRUE_MIN, DBL_MIN, 0x1p-200, 0x1p-128};
    for (size_t i = 0; i < COUNT_OF(small); ++i)
        check_encode(GBX_FLOAT8_E8M0, small[i], 0);
    static const double others[] = {NAN, -NAN, -DBL_TRUE_MIN, -1.0, -DBL_MAX, -INFINITY};
    for (size_t i = 0; i < COUNT_OF(others); ++i)
        check_encode(GBX_FLOAT8_E8M0, others[i], 255);
    check_encode(GBX_FLOAT8_E8M0, 0x1p128, 254);
    check_encode(GBX_FLOAT8_E8M0, DBL_MAX, 254);
    check_encode(GBX_FLOAT8_E8M0, INFINITY, 254);
}

static void only_what_rounds_to_a_number_is_held(void **state) {
    (void)state;
    static const struct {
        uint32_t dtype;
        double value;
        bool is_held;
    } cases[] = {{GBX_FLOAT16, 65519.0, true},       {GBX_FLOAT16, 65520.0, false},
                 {GBX_FLOAT16, INFINITY, true},      {GBX_FLOAT16, NAN, true},
                 {GBX_FLOAT32, 1e39, false},         {GBX_FLOAT64, -DBL_MAX, true},
                 {GBX_FLOAT8_E4M3, 464.0, true},     {GBX_FLOAT8_E4M3, 465.0, false},
                 {GBX_FLOAT8_E4M3, INFINITY, false}, {GBX_FLOAT8_E4M3, NAN, true},
                 {GBX_FLOAT4_E2M1, -7.0, true},      {GBX_FLOAT4_E2M1, 7.1, false},
                 {GBX_FLOAT4_E2M1, NAN, false},      {GBX_FLOAT4_E2M1, INFINITY, false},
                 {GBX_FLOAT4_E2M1, 0.0, true},       {GBX_FLOAT8_E8M0, 0.0, false},
                 {GBX_FLOAT8_E8M0, -1.0, false},     {GBX_FLOAT8_E8M0, NAN, true},
                 {GBX_FLOAT8_E8M0, 0x1p-128, true},  {GBX_FLOAT8_E8M0, 0x1p-129, false},
                 {GBX_FLOAT8_E8M0, 0x1.8p127, true}, {GBX_FLOAT8_E8M0, 0x1p128, false}};
    for (size_t i = 0; i < COUNT_OF(cases); ++i)
        if (gbx_dtype_holds_f64(cases[i].dtype, cases[i].value) != cases[i].is_held)
            fail_msg("%s %a: %d", gbx_dtype_name(cases[i].dtype), cases[i].value, cases[i].is_held);
}

/* --- arrays --- */

/* Low half first; an odd count writes its last byte with a zero high half, and no further. */
static void packed_elements_are_two_a_byte(void **state) {
    (void)state;
    static const double values[] = {1, -2, 7, -8, 3};
    static const unsigned char packed[] = {0xe1, 0x87, 0x03};
    static const double floats[] = {1, -2, 6, -0.5, 3};
    static const unsigned char packed_floats[] = {0xc2, 0x97, 0x05};
    unsigned char floats_bytes[3];
    gbx_dtype_array_from_f64(GBX_FLOAT4_E2M1, floats, COUNT_OF(floats), floats_bytes);
    assert_memory_equal(floats_bytes, packed_floats, sizeof floats_bytes);
    for (size_t count = 0; count <= COUNT_OF(values); ++count) {
        unsigned char bytes[4] = {0xaa, 0xaa, 0xaa, 0xaa};
        gbx_dtype_array_from_f64(GBX_INT4, values, count, bytes);
        const size_t whole = count / 2;
        assert_memory_equal(bytes, packed, whole);
        if (count % 2)
            assert_int_equal(bytes[whole], packed[whole] & 0x0f);
        for (size_t i = (count + 1) / 2; i < sizeof bytes; ++i)
            assert_int_equal(bytes[i], 0xaa);
    }
}

static void packed_elements_are_read_as_asked(void **state) {
    (void)state;
    static const unsigned char packed[] = {0xe1, 0x87, 0xf3};
    static const double expected[] = {1, -2, 7, -8, 3, -1};
    for (size_t count = 0; count <= COUNT_OF(expected); ++count) {
        double values[7] = {99, 99, 99, 99, 99, 99, 99};
        gbx_dtype_array_to_f64(GBX_INT4, packed, count, values);
        assert_memory_equal(values, expected, count * sizeof values[0]);
        for (size_t i = count; i < COUNT_OF(values); ++i)
            assert_true(values[i] == 99);
    }
}

/* Arrays start at an odd address, hold many elements, and end before memory that is not theirs. */
static void check_array(uint32_t dtype) {
    enum { COUNT = 1001 };
    const size_t bytes = (COUNT * (size_t)gbx_dtype_bits(dtype) + 7) / 8;
    static double values[COUNT];
    static double decoded[COUNT];
    static unsigned char elements[COUNT * 8 + 2];
    memset(elements, 0xaa, sizeof elements);
    for (int i = 0; i < COUNT; ++i)
        values[i] = ldexp(i % 2 ? -i - 0.5 : i + 0.25, i % 41 - 20);
    gbx_dtype_array_from_f64(dtype, values, COUNT, elements + 1);
    gbx_dtype_array_to_f64(dtype, elements + 1, COUNT, decoded);
    assert_int_equal(elements[0], 0xaa);
    assert_int_equal(elements[1 + bytes], 0xaa);
    for (int i = 0; i < COUNT; ++i) {
        const uint64_t code = gbx_dtype_from_f64(dtype, values[i]);
        assert_true(gbx_f64_bits(decoded[i]) == gbx_f64_bits(gbx_dtype_to_f64(dtype, code)));
    }
}

static void arrays_hold_what_their_elements_do(void **state) {
    (void)state;
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype) {
        check_array(dtype);
        gbx_dtype_array_from_f64(dtype, NULL, 0, NULL);
        gbx_dtype_array_to_f64(dtype, NULL, 0, NULL);
    }
}

static void each_dtype_has_its_properties(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint32_t bits;
        bool is_float;
        bool is_signed;
    } expected[GBX_DTYPE_COUNT] = {{"unknown", 0, false, false},   {"float32", 32, true, true},
                                   {"float16", 16, true, true},    {"bfloat16", 16, true, true},
                                   {"float64", 64, true, true},    {"int8", 8, false, true},
                                   {"uint8", 8, false, false},     {"int16", 16, false, true},
                                   {"uint16", 16, false, false},   {"int32", 32, false, true},
                                   {"uint32", 32, false, false},   {"int64", 64, false, true},
                                   {"uint64", 64, false, false},   {"bool", 8, false, false},
                                   {"float8_e4m3", 8, true, true}, {"float8_e5m2", 8, true, true},
                                   {"int4", 4, false, true},       {"float4_e2m1", 4, true, true},
                                   {"float8_e8m0", 8, true, false}};
    for (uint32_t dtype = 0; dtype < GBX_DTYPE_COUNT; ++dtype) {
        assert_string_equal(gbx_dtype_name(dtype), expected[dtype].name);
        assert_int_equal(gbx_dtype_bits(dtype), expected[dtype].bits);
        assert_int_equal(gbx_dtype_is_float(dtype), expected[dtype].is_float);
        assert_int_equal(gbx_dtype_is_signed(dtype), expected[dtype].is_signed);
        assert_int_equal(gbx_dtype_is_valid(dtype), dtype != GBX_DTYPE_NONE);
        assert_int_equal(gbx_dtype_is_packed(dtype), dtype && expected[dtype].bits < 8);
    }
}

static bool has_format(const gbx_dtype_info *info, uint32_t bits, int fraction_bits) {
    return info->bits == bits && info->class == GBX_CLASS_FLOAT &&
           info->format.fraction_bits == fraction_bits && info->format.sign_bits == 1;
}

/* Kernels for one format have only dtypes of that format. */
static bool has_statistics(const gbx_dtype_info *info) {
    switch ((gbx_statistics_kind)info->statistics) {
    case GBX_STATISTICS_FLOAT32:
        return has_format(info, 32, 23);
    case GBX_STATISTICS_FLOAT16:
        return has_format(info, 16, 10);
    case GBX_STATISTICS_BFLOAT16:
        return has_format(info, 16, 7);
    case GBX_STATISTICS_FLOAT64:
        return has_format(info, 64, 52);
    case GBX_STATISTICS_FLOAT8:
        return has_format(info, 8, 2) || has_format(info, 8, 3);
    case GBX_STATISTICS_INTEGERS:
        return info->class == GBX_CLASS_SIGNED || info->class == GBX_CLASS_UNSIGNED;
    case GBX_STATISTICS_BOOLS:
        return info->class == GBX_CLASS_BOOL;
    case GBX_STATISTICS_CODES:
        return info->class == GBX_CLASS_FLOAT && info->bits <= 8;
    }
    return false;
}

static bool has_comparison(const gbx_dtype_info *info) {
    const bool is_float = info->class == GBX_CLASS_FLOAT;
    switch ((gbx_compare_kind)info->compare) {
    case GBX_COMPARE_FLOAT32:
        return has_format(info, 32, 23);
    case GBX_COMPARE_FLOAT16:
        return has_format(info, 16, 10);
    case GBX_COMPARE_BFLOAT16:
        return has_format(info, 16, 7);
    case GBX_COMPARE_FLOAT8_E4M3:
        return has_format(info, 8, 3) && info->format.specials == GBX_SPECIALS_NAN_LAST;
    case GBX_COMPARE_FLOAT8_E5M2:
        return has_format(info, 8, 2) && info->format.specials == GBX_SPECIALS_IEEE;
    case GBX_COMPARE_INTEGER16:
        return info->bits == 16 && !is_float;
    case GBX_COMPARE_WIDE:
        return info->bits == 64 || (info->bits == 32 && !is_float);
    case GBX_COMPARE_BYTES:
        return info->bits <= 8 && !is_float;
    case GBX_COMPARE_PLAIN:
        return true;
    }
    return false;
}

/* Checks of a row that the compiler cannot make. */
static void every_row_of_the_table_is_complete(void **state) {
    (void)state;
    static const char *const constants[] = {
#define CONSTANT_NAME(dtype, ...) [GBX_##dtype] = #dtype,
        GBX_DTYPES(CONSTANT_NAME)};
    char names[512] = "";
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype) {
        const gbx_dtype_info *info = &gbx_dtype_table[dtype];
        const gbx_dtype_info *stored = &gbx_dtype_table[info->stored_as];
        const bool is_raw = info->stored_as != dtype;
        if (strcasecmp(constants[dtype], info->name) != 0 || !has_statistics(info) ||
            !has_comparison(info) || info->rtol < 0.0 || info->atol < 0.0 ||
            stored->stored_as != info->stored_as || stored->bits != (info->bits + 7) / 8 * 8 ||
            (is_raw && stored->class != GBX_CLASS_UNSIGNED) ||
            gbx_dtype_parse(info->simpler) != dtype)
            fail_msg("the row of %s", info->name);
        strcat(strcat(names, names[0] ? ", " : ""), info->name);
    }
    assert_string_equal(GBX_DTYPE_NAMES, names);
}

static bool has_name(uint32_t dtype, const char *name) {
    char all[512];
    snprintf(all, sizeof all, "%s %s", gbx_dtype_table[dtype].name, gbx_dtype_table[dtype].aliases);
    for (char *rest = all, *word; (word = strsep(&rest, " ")) != NULL;)
        if (strcasecmp(word, name) == 0)
            return true;
    return false;
}

static void no_two_dtypes_share_a_name(void **state) {
    (void)state;
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype) {
        char all[512];
        snprintf(all, sizeof all, "%s %s", gbx_dtype_table[dtype].name,
                 gbx_dtype_table[dtype].aliases);
        for (char *rest = all, *word; (word = strsep(&rest, " ")) != NULL;)
            for (uint32_t other = 1; other < GBX_DTYPE_COUNT; ++other)
                assert_int_equal(has_name(other, word), other == dtype);
    }
}

static void a_code_without_a_dtype_has_no_values(void **state) {
    (void)state;
    static const uint32_t codes[] = {GBX_DTYPE_NONE, GBX_DTYPE_COUNT, 255, INT32_MAX, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(codes); ++i) {
        unsigned char byte = 0xaa;
        double value = 99;
        assert_false(gbx_dtype_is_valid(codes[i]));
        assert_string_equal(gbx_dtype_name(codes[i]), codes[i] ? "invalid" : "unknown");
        assert_int_equal(gbx_dtype_bits(codes[i]), 0);
        assert_false(gbx_dtype_is_float(codes[i]) || gbx_dtype_is_signed(codes[i]));
        assert_true(isnan(gbx_dtype_to_f64(codes[i], 1)));
        assert_int_equal(gbx_dtype_from_f64(codes[i], 1.0), 0);
        gbx_dtype_array_from_f64(codes[i], &value, 1, &byte);
        assert_int_equal(byte, 0xaa);
        gbx_dtype_array_to_f64(codes[i], &byte, 1, &value);
        assert_true(isnan(value));
    }
}

static void names_parse_in_any_case(void **state) {
    (void)state;
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype) {
        char name[32] = {0};
        const char *lower = gbx_dtype_name(dtype);
        assert_int_equal(gbx_dtype_parse(lower), dtype);
        for (size_t i = 0; lower[i]; ++i)
            name[i] = (char)toupper(lower[i]);
        assert_int_equal(gbx_dtype_parse(name), dtype);
        name[0] = lower[0];
        assert_int_equal(gbx_dtype_parse(name), dtype);
    }
}

static void names_of_other_tools_parse(void **state) {
    (void)state;
    static const struct {
        const char *name;
        gbx_dtype dtype;
    } expected[] = {{"FP16", GBX_FLOAT16},
                    {"Half", GBX_FLOAT16},
                    {"f16", GBX_FLOAT16},
                    {"FP32", GBX_FLOAT32},
                    {"FLOAT", GBX_FLOAT32},
                    {"single", GBX_FLOAT32},
                    {"F32", GBX_FLOAT32},
                    {"FP64", GBX_FLOAT64},
                    {"DOUBLE", GBX_FLOAT64},
                    {"BF16", GBX_BFLOAT16},
                    {"bfloat16_t", GBX_BFLOAT16},
                    {"I4", GBX_INT4},
                    {"I8", GBX_INT8},
                    {"i16", GBX_INT16},
                    {"I32", GBX_INT32},
                    {"i64", GBX_INT64},
                    {"U8", GBX_UINT8},
                    {"u16", GBX_UINT16},
                    {"U32", GBX_UINT32},
                    {"u64", GBX_UINT64},
                    {"int8_t", GBX_INT8},
                    {"uint64_t", GBX_UINT64},
                    {"BOOL", GBX_BOOL},
                    {"bool_", GBX_BOOL},
                    {"FLOAT8_E4M3FN", GBX_FLOAT8_E4M3},
                    {"FP8E4M3FN", GBX_FLOAT8_E4M3},
                    {"FP8E4M3", GBX_FLOAT8_E4M3},
                    {"F8_E4M3", GBX_FLOAT8_E4M3},
                    {"f8E4M3FN", GBX_FLOAT8_E4M3},
                    {"FP8E5M2", GBX_FLOAT8_E5M2},
                    {"float8e5m2", GBX_FLOAT8_E5M2},
                    {"F8_E5M2", GBX_FLOAT8_E5M2},
                    {"f8E5M2", GBX_FLOAT8_E5M2},
                    {"float4_e2m1fn", GBX_FLOAT4_E2M1},
                    {"FLOAT4E2M1", GBX_FLOAT4_E2M1},
                    {"f4E2M1FN", GBX_FLOAT4_E2M1},
                    {"float8_e8m0fnu", GBX_FLOAT8_E8M0},
                    {"FLOAT8E8M0", GBX_FLOAT8_E8M0},
                    {"FP8E8M0", GBX_FLOAT8_E8M0},
                    {"f8E8M0FNU", GBX_FLOAT8_E8M0},
                    {"F8_E8M0", GBX_FLOAT8_E8M0}};
    for (size_t i = 0; i < COUNT_OF(expected); ++i)
        assert_int_equal(gbx_dtype_parse(expected[i].name), expected[i].dtype);
}

static void other_names_are_no_dtype(void **state) {
    (void)state;
    static const char *const names[] = {"",
                                        " ",
                                        "invalid",
                                        "unknown",
                                        "float32 ",
                                        " float32",
                                        "float fp32",
                                        "fp",
                                        "float3",
                                        "f8",
                                        "fp8",
                                        "uint4",
                                        "float8_e4m3fnuz",
                                        "complex64",
                                        "<f4",
                                        "int",
                                        "int128",
                                        "long",
                                        "byte",
                                        "float33",
                                        "float8_e5m2fnuz",
                                        "e5m2\n",
                                        "i8 s8",
                                        "fp4",
                                        "mxfp4",
                                        "float4_e2m1fn_x2",
                                        "FP4E2M1"};
    for (size_t i = 0; i < COUNT_OF(names); ++i)
        assert_int_equal(gbx_dtype_parse(names[i]), GBX_DTYPE_NONE);
    assert_int_equal(gbx_dtype_parse(NULL), GBX_DTYPE_NONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float_codes_decode_to_their_definition),
        cmocka_unit_test(float_codes_survive_the_way_through_float64),
        cmocka_unit_test(ties_between_neighbours_go_to_even_after_one_rounding),
        cmocka_unit_test(float_range_ends_in_infinity_or_saturates),
        cmocka_unit_test(float_underflow_keeps_the_sign_of_zero),
        cmocka_unit_test(nan_becomes_a_quiet_nan_of_the_same_sign),
        cmocka_unit_test(integers_round_to_even_and_saturate),
        cmocka_unit_test(integers_take_nan_and_zeros_as_zero),
        cmocka_unit_test(int64_is_exact_to_2_53_and_saturates_at_2_63),
        cmocka_unit_test(uint64_is_exact_to_2_53_and_saturates_at_2_64),
        cmocka_unit_test(bool_is_one_for_all_but_zero),
        cmocka_unit_test(bits_above_the_element_are_ignored),
        cmocka_unit_test(float4_e2m1_is_that_of_ocp),
        cmocka_unit_test(float8_e8m0_is_that_of_ocp),
        cmocka_unit_test(only_what_rounds_to_a_number_is_held),
        cmocka_unit_test(packed_elements_are_two_a_byte),
        cmocka_unit_test(packed_elements_are_read_as_asked),
        cmocka_unit_test(arrays_hold_what_their_elements_do),
        cmocka_unit_test(each_dtype_has_its_properties),
        cmocka_unit_test(every_row_of_the_table_is_complete),
        cmocka_unit_test(no_two_dtypes_share_a_name),
        cmocka_unit_test(a_code_without_a_dtype_has_no_values),
        cmocka_unit_test(names_parse_in_any_case),
        cmocka_unit_test(names_of_other_tools_parse),
        cmocka_unit_test(other_names_are_no_dtype),
    };
    return cmocka_run_group_tests_name("dtype", tests, NULL, NULL);
}
