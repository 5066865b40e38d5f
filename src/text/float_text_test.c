#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SSE__
#    include <xmmintrin.h>
#endif

#include "base/float_bits.h"
#include "text/float_text.h"

enum { RANDOM_VALUES = 20000 };

typedef struct f64_case {
    double value;
    const char *text;
} f64_case;

typedef struct f32_case {
    float value;
    const char *text;
} f32_case;

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void check_f64(double value, const char *expected) {
    char text[GBX_FLOAT_TEXT_BYTES];
    assert_int_equal(gbx_f64_format(value, text), strlen(expected));
    assert_string_equal(text, expected);
}

static void check_f32(float value, const char *expected) {
    char text[GBX_FLOAT_TEXT_BYTES];
    assert_int_equal(gbx_f32_format(value, text), strlen(expected));
    assert_string_equal(text, expected);
}

/* The expected texts are those of Python's repr. */
static void f64_is_written_as_python_does(void **state) {
    (void)state;
    static const f64_case cases[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1.0, "1.0"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3.0, "0.3333333333333333"},
        {100.0, "100.0"},
        {123456.789, "123456.789"},
        {0.0001, "0.0001"},
        {0.00001, "1e-05"},
        {0.00012345, "0.00012345"},
        {1e15, "1000000000000000.0"},
        {1e16, "1e+16"},
        {9999999999999998.0, "9999999999999998.0"},
        {12345678901234567890.0, "1.2345678901234567e+19"},
        {1e22, "1e+22"},
        {1e23, "1e+23"},
        {1e300, "1e+300"},
        {-1e-300, "-1e-300"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {DBL_EPSILON, "2.220446049250313e-16"},
        {5e-324, "5e-324"},
        {1e-323, "1e-323"},
        {2.225073858507201e-308, "2.225073858507201e-308"}, /* the largest subnormal */
        {9.22337203685481e18, "9.22337203685481e+18"}, /* with 16 digits, ...4811e+18 is nearer */
        {9007199254740991.0, "9007199254740991.0"},
        {9007199254740992.0, "9007199254740992.0"},
        {9007199254740994.0, "9007199254740994.0"},
        {562949953421312.25,
         "562949953421312.2"}, /* halfway between two: rounds to the even digit */
        {562949953421312.75, "562949953421312.8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        check_f64(cases[i].value, cases[i].text);
}

/* For these powers of two, the nearest decimal of 16 digits is too small, and the next one is
 * right. */
static void f64_power_of_two_takes_the_decimal_above(void **state) {
    (void)state;
    check_f64(0x1p-44, "5.684341886080802e-14");
    check_f64(0x1p-24, "5.960464477539063e-08");
    check_f64(-0x1p-44, "-5.684341886080802e-14");
    check_f64(0x1p89, "6.189700196426902e+26");
}

static void f32_is_shortest_for_float32(void **state) {
    (void)state;
    static const f32_case cases[] = {
        {0.0f, "0.0"},
        {-0.0f, "-0.0"},
        {0.1f, "0.1"},
        {-2.5f, "-2.5"},
        {1.0f / 3.0f, "0.33333334"},
        {16777216.0f, "16777216.0"},
        {1e10f, "10000000000.0"},
        {1e16f, "1e+16"},
        {1e-5f, "1e-05"},
        {1e-4f, "0.0001"},
        {FLT_MAX, "3.4028235e+38"},
        {FLT_MIN, "1.1754944e-38"},
        {FLT_EPSILON, "1.1920929e-07"},
        {0x1p-149f, "1e-45"},
        {0x1p-148f, "3e-45"},
        {8.589973e9f, "8589974000.0"}, /* 8589973000.0 reads back, too, but is not as near */
        {0.000976565f, "0.000976565"}, /* with 7 digits, 9.765649e-04 is nearer */
        {9.22341e18f, "9.22341e+18"},
        {0x1p90f, "1.2379401e+27"},
        {0x1p-96f, "1.2621775e-29"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        check_f32(cases[i].value, cases[i].text);
}

static void texts_that_are_not_numbers_are_named(void **state) {
    (void)state;
    check_f64((double)NAN, "nan");
    check_f64(-(double)NAN, "nan");
    check_f64(gbx_f64_of_bits(UINT64_C(0x7ff0000000000001)), "nan");
    check_f64((double)INFINITY, "inf");
    check_f64(-(double)INFINITY, "-inf");
    check_f32(NAN, "nan");
    check_f32(INFINITY, "inf");
    check_f32(-INFINITY, "-inf");
}

static int digits_of(const char *text) {
    int digits = 0;
    int zeros = 0; /* at the end of the digits so far */
    for (; *text && *text != 'e'; ++text) {
        if (*text < '0' || *text > '9' || (*text == '0' && digits == 0))
            continue;
        ++digits;
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    return digits - zeros;
}

/* Whether a decimal of `digits` digits, the nearest one or a neighbour of it, reads as `value`. */
static bool is_some_decimal(double value, int digits, bool is_f32) {
    char text[64];
    snprintf(text, sizeof text, "%.*e", digits - 1, value);
    uint64_t whole = 0; /* the digits as an integer */
    const char *at = text;
    for (; *at != 'e'; ++at)
        whole = *at == '.' ? whole : 10 * whole + (uint64_t)(*at - '0');
    int exponent = atoi(at + 1) - digits + 1;
    for (uint64_t near = whole - 1; near <= whole + 1; ++near) {
        snprintf(text, sizeof text, "%" PRIu64 "e%d", near, exponent);
        if (is_f32 ? (double)strtof(text, NULL) == value : strtod(text, NULL) == value)
            return true;
    }
    return false;
}

static void check_f64_is_shortest(double value) {
    char text[GBX_FLOAT_TEXT_BYTES];
    gbx_f64_format(value, text);
    double back = strtod(text, NULL);
    assert_memory_equal(&back, &value, sizeof value);
    int digits = digits_of(text);
    assert_in_range(digits, 1, DBL_DECIMAL_DIG);
    for (int fewer = 1; fewer < digits; ++fewer)
        assert_false(is_some_decimal(fabs(value), fewer, false));
}

static void check_f32_is_shortest(float value) {
    char text[GBX_FLOAT_TEXT_BYTES];
    gbx_f32_format(value, text);
    float back = strtof(text, NULL);
    assert_memory_equal(&back, &value, sizeof value);
    int digits = digits_of(text);
    assert_in_range(digits, 1, FLT_DECIMAL_DIG);
    for (int fewer = 1; fewer < digits; ++fewer)
        assert_false(is_some_decimal((double)fabsf(value), fewer, true));
}

static void random_f64_reads_back_and_none_is_shorter(void **state) {
    (void)state;
    uint64_t random = UINT64_C(0x123456789abcdef1);
    for (int i = 0; i < RANDOM_VALUES; ++i) {
        double value = gbx_f64_of_bits(next_random(&random));
        if (isfinite(value))
            check_f64_is_shortest(value);
        check_f64_is_shortest((double)(next_random(&random) % 1000000 + 1) / 1000.0);
    }
}

static void random_f32_reads_back_and_none_is_shorter(void **state) {
    (void)state;
    uint64_t random = UINT64_C(0xfedcba9876543211);
    for (int i = 0; i < RANDOM_VALUES; ++i) {
        float value = gbx_f32_of_bits((uint32_t)next_random(&random));
        if (isfinite(value))
            check_f32_is_shortest(value);
    }
}

static void every_power_of_two_reads_back_and_none_is_shorter(void **state) {
    (void)state;
    for (int exponent = -1074; exponent <= 1023; ++exponent) {
        check_f64_is_shortest(ldexp(1.0, exponent));
        check_f64_is_shortest(nextafter(ldexp(1.0, exponent), INFINITY));
        if (exponent > -1074)
            check_f64_is_shortest(nextafter(ldexp(1.0, exponent), 0.0));
    }
    for (int exponent = -149; exponent <= 127; ++exponent)
        check_f32_is_shortest(ldexpf(1.0f, exponent));
}

static void errno_is_kept(void **state) {
    (void)state;
    errno = EAGAIN;
    check_f64(5e-324, "5e-324");
    check_f64(DBL_MAX, "1.7976931348623157e+308");
    assert_int_equal(errno, EAGAIN);
}

#ifdef __SSE__
/* As a program built with -ffast-math sets it at its start. */
static void subnormals_are_kept_where_the_host_flushes_them(void **state) {
    (void)state;
    unsigned before = _mm_getcsr();
    char f64[GBX_FLOAT_TEXT_BYTES];
    char f32[GBX_FLOAT_TEXT_BYTES];
    _mm_setcsr(before | 0x8040); /* flush to zero, denormals are zero */
    gbx_f64_format(gbx_f64_of_bits(3), f64);
    gbx_f32_format(gbx_f32_of_bits(0x80000005), f32);
    _mm_setcsr(before);
    assert_string_equal(f64, "1.5e-323");
    assert_string_equal(f32, "-7e-45");
}
#endif

/* Compiles a locale with a decimal comma, because machines rarely have one installed. */
static bool set_comma_locale(char *directory) {
    char command[256];
    snprintf(command, sizeof command, "localedef -c -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1",
             directory, directory);
    int made = system(command);
    setenv("LOCPATH", directory, 1);
    return made != -1 && setlocale(LC_ALL, "de_DE.UTF-8");
}

static void decimal_comma_of_the_host_is_not_used(void **state) {
    (void)state;
    char directory[] = "/tmp/float_text_test.XXXXXX";
    assert_non_null(mkdtemp(directory));
    bool has_comma = set_comma_locale(directory);
    char comma[8] = "";
    snprintf(comma, sizeof comma, "%.1f", 0.5);
    char text[GBX_FLOAT_TEXT_BYTES];
    char small[GBX_FLOAT_TEXT_BYTES];
    gbx_f64_format(1234.5678, text);
    gbx_f32_format(1.5e-30f, small);
    setlocale(LC_ALL, "C");
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
    assert_string_equal(text, "1234.5678");
    assert_string_equal(small, "1.5e-30");
    if (!has_comma)
        skip();
    assert_string_equal(comma, "0,5");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f64_is_written_as_python_does),
        cmocka_unit_test(f64_power_of_two_takes_the_decimal_above),
        cmocka_unit_test(f32_is_shortest_for_float32),
        cmocka_unit_test(texts_that_are_not_numbers_are_named),
        cmocka_unit_test(random_f64_reads_back_and_none_is_shorter),
        cmocka_unit_test(random_f32_reads_back_and_none_is_shorter),
        cmocka_unit_test(every_power_of_two_reads_back_and_none_is_shorter),
        cmocka_unit_test(errno_is_kept),
#ifdef __SSE__
        cmocka_unit_test(subnormals_are_kept_where_the_host_flushes_them),
#endif
        cmocka_unit_test(decimal_comma_of_the_host_is_not_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
