#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <glassbox/tensor.h>

#include "base/float_bits.h"
#include "store/manifest/manifest_text.h"
#include "text/float_text.h"

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void check(const char *text, const char *end, const char *expected) {
    assert_int_equal((size_t)(end - text), strlen(expected));
    assert_memory_equal(text, expected, strlen(expected));
}

static void check_integer(uint64_t value) {
    char text[GBX_VALUE_TEXT_BYTES];
    char expected[GBX_VALUE_TEXT_BYTES];
    snprintf(expected, sizeof expected, "%" PRIu64, value);
    check(text, gbx_put_u64(text, value), expected);
    snprintf(expected, sizeof expected, "%" PRId64, (int64_t)value);
    check(text, gbx_put_i64(text, (int64_t)value), expected);
    snprintf(expected, sizeof expected, "\"0x%016" PRIx64 "\"", value);
    check(text, gbx_put_hex(text, value), expected);
}

static void integers_are_what_printf_gives(void **state) {
    (void)state;
    uint64_t random = 88172645463325252u;
    for (uint64_t power = 1; power < UINT64_C(10000000000000000000); power *= 10)
        for (uint64_t i = 0; i < 3; ++i) {
            check_integer(power - 1 + i);
            check_integer(0 - (power - 1 + i));
        }
    check_integer(UINT64_MAX);
    check_integer(UINT64_C(1) << 63);
    for (int i = 0; i < 100000; ++i)
        check_integer(next_random(&random) >> (i % 64));
}

static void check_f32(float value) {
    char text[GBX_VALUE_TEXT_BYTES];
    char expected[GBX_FLOAT_TEXT_BYTES + 2];
    char plain[GBX_FLOAT_TEXT_BYTES];
    gbx_f32_format(value, plain);
    snprintf(expected, sizeof expected, isfinite(value) ? "%s" : "\"%s\"", plain);
    check(text, gbx_put_f32(text, value), expected);
}

static void check_f64(double value) {
    char text[GBX_VALUE_TEXT_BYTES];
    char expected[GBX_FLOAT_TEXT_BYTES + 2];
    char plain[GBX_FLOAT_TEXT_BYTES];
    gbx_f64_format(value, plain);
    snprintf(expected, sizeof expected, isfinite(value) ? "%s" : "\"%s\"", plain);
    check(text, gbx_put_f64(text, value), expected);
}

/* Quoted if JSON cannot express the number. */
static void floats_are_the_shortest_that_read_back(void **state) {
    (void)state;
    static const double special[] = {
        0.0,       -0.0,     1.0,  -1.0,      0.1,    0.001,    0.0001,  9999999., 1e7,
        16777216., 16777217, 1e15, 1e16,      0x1p53, 0x1p-149, 5e-324,  1e300,    3.4e38,
        65504.,    448.0,    0.5,  0.25,      2.5,    1.0 / 3,  2.0 / 3, 100.0,    123456.,
        0.3,       INFINITY, NAN,  -INFINITY, 0.01,   0.0099,   9.5,     -0.002};
    for (size_t i = 0; i < sizeof special / sizeof special[0]; ++i) {
        check_f32((float)special[i]);
        check_f64(special[i]);
    }
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 40000; ++i) {
        uint64_t bits = next_random(&random);
        check_f32(gbx_f32_of_bits((uint32_t)bits));
        uint32_t common = (uint32_t)(117 + bits % 35) << 23 | (uint32_t)(bits >> 41);
        check_f32(gbx_f32_of_bits(common | (uint32_t)(bits >> 8 & 1) << 31));
        check_f32((float)(bits % 10000000) / 1000.0f);
        if (i % 4 == 0) {
            check_f64(gbx_f64_of_bits(bits));
            check_f64((double)(bits % UINT64_C(1000000000000)) / 1e6);
            check_f64((double)(bits >> 11) * 0x1p-40);
        }
    }
}

typedef struct value_case {
    gbx_dtype dtype;
    uint64_t bits;
    const char *text;
} value_case;

static const value_case values[] = {
    {GBX_FLOAT32, 0x3f800000, "1.0"},
    {GBX_FLOAT32, UINT64_C(0xdeadbeef3dcccccd), "0.1"}, /* the low half counts */
    {GBX_FLOAT32, 0x80000000, "-0.0"},
    {GBX_FLOAT32, 0x7fc00000, "\"nan\""},
    {GBX_FLOAT32, 0xffc00001, "\"nan\""},
    {GBX_FLOAT32, 0x7f800000, "\"inf\""},
    {GBX_FLOAT32, 0xff800000, "\"-inf\""},
    {GBX_FLOAT32, 0x00000001, "1e-45"},
    {GBX_FLOAT32, 0x7f7fffff, "3.4028235e+38"},
    {GBX_FLOAT16, 0x3c00, "1.0"},
    {GBX_FLOAT16, 0x7bff, "65504.0"},
    {GBX_FLOAT16, 0xfc00, "\"-inf\""},
    {GBX_FLOAT16, 0x0001, "5.9604645e-08"},
    {GBX_FLOAT16, 0x2e66, "0.099975586"},
    {GBX_BFLOAT16, 0x3f80, "1.0"},
    {GBX_BFLOAT16, 0x7fc0, "\"nan\""},
    {GBX_BFLOAT16, 0xc049, "-3.140625"},
    {GBX_FLOAT64, UINT64_C(0x3fb999999999999a), "0.1"},
    {GBX_FLOAT64, UINT64_C(0x3fd5555555555555), "0.3333333333333333"},
    {GBX_FLOAT64, 1, "5e-324"},
    {GBX_FLOAT64, UINT64_C(0x7ff8000000000000), "\"nan\""},
    {GBX_INT8, 0x80, "-128"},
    {GBX_INT8, 0xffffff7f, "127"},
    {GBX_UINT8, 0xffff, "255"},
    {GBX_INT16, 0x8000, "-32768"},
    {GBX_UINT16, 0xffffff, "65535"},
    {GBX_INT32, 0x80000000, "-2147483648"},
    {GBX_INT32, UINT64_C(0xffffffffffffffff), "-1"},
    {GBX_UINT32, UINT64_C(0xffffffffffffffff), "4294967295"},
    {GBX_INT64, UINT64_C(0x8000000000000000), "\"-9223372036854775808\""},
    {GBX_INT64, UINT64_C(0x7fffffffffffffff), "\"9223372036854775807\""},
    {GBX_UINT64, UINT64_MAX, "\"18446744073709551615\""},
    {GBX_UINT64, 0, "\"0\""},
    {GBX_BOOL, 0, "false"},
    {GBX_BOOL, 1, "true"},
    {GBX_BOOL, 0x80, "true"},
    {GBX_BOOL, 0x100, "false"},
    {GBX_FLOAT8_E4M3, 0x7e, "448.0"},
    {GBX_FLOAT8_E4M3, 0x7f, "\"nan\""},
    {GBX_FLOAT8_E4M3, 0x01, "0.001953125"},
    {GBX_FLOAT8_E4M3, 0xb8, "-1.0"},
    {GBX_FLOAT8_E5M2, 0x7b, "57344.0"},
    {GBX_FLOAT8_E5M2, 0x7c, "\"inf\""},
    {GBX_FLOAT8_E5M2, 0x01, "1.5258789e-05"},
    {GBX_INT4, 0x8, "-8"},
    {GBX_INT4, 0xf7, "7"},
};

static void values_are_those_of_their_dtype(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
        char text[GBX_VALUE_TEXT_BYTES];
        check(text, gbx_put_value(text, values[i].dtype, values[i].bits), values[i].text);
    }
}

static void extremes_are_of_the_widest_type(void **state) {
    (void)state;
    char text[GBX_VALUE_TEXT_BYTES];
    check(text, gbx_put_extreme(text, GBX_FLOAT32, gbx_f64_bits((double)0.1f)), "0.1");
    check(text, gbx_put_extreme(text, GBX_FLOAT64, gbx_f64_bits(0.1)), "0.1");
    check(text, gbx_put_extreme(text, GBX_FLOAT16, gbx_f64_bits(-INFINITY)), "\"-inf\"");
    check(text, gbx_put_extreme(text, GBX_INT8, (uint64_t)-5), "-5");
    check(text, gbx_put_extreme(text, GBX_UINT32, 4000000000u), "4000000000");
    check(text, gbx_put_extreme(text, GBX_INT64, (uint64_t)INT64_MIN), "\"-9223372036854775808\"");
    check(text, gbx_put_extreme(text, GBX_UINT64, UINT64_MAX), "\"18446744073709551615\"");
    check(text, gbx_put_extreme(text, GBX_BOOL, 1), "true");
}

static void numbers_are_an_array(void **state) {
    (void)state;
    char text[256];
    static const int64_t numbers[] = {3, -1, 0, 9007199254740991};
    check(text, gbx_put_numbers(text, numbers, 4), "[3,-1,0,9007199254740991]");
    check(text, gbx_put_numbers(text, numbers, 0), "[]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_what_printf_gives),
        cmocka_unit_test(floats_are_the_shortest_that_read_back),
        cmocka_unit_test(values_are_those_of_their_dtype),
        cmocka_unit_test(extremes_are_of_the_widest_type),
        cmocka_unit_test(numbers_are_an_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
