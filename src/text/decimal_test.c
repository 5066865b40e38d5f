#include "checks.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/float_bits.h"
#include "text/decimal.h"

enum { RANDOM_VALUES = 200000 };

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* The digits as one integer, past the decimal point. */
static gbx_decimal parse(const char *text, int count) {
    gbx_decimal result = {.count = count};
    for (; *text != 'e'; ++text)
        if (*text != '.')
            result.digits = 10 * result.digits + (uint64_t)(*text - '0');
    result.exponent = atoi(text + 1);
    return result;
}

static gbx_decimal print(double value, int count) {
    char text[64];
    snprintf(text, sizeof text, "%.*e", count - 1, value);
    return parse(text, count);
}

static bool reads_back(gbx_decimal decimal, double value, bool is_f64) {
    char text[64];
    snprintf(text, sizeof text, "%" PRIu64 "e%d", decimal.digits,
             decimal.exponent - decimal.count + 1);
    return is_f64 ? strtod(text, NULL) == value : (double)strtof(text, NULL) == value;
}

/* `count` digits by the C library: the nearest decimal, or the one above it if only that reads
 * back. Floats just above a power of two are twice as far apart as below it. */
static gbx_decimal round_slowly(double value, int count, bool is_f64) {
    gbx_decimal nearest = print(value, count);
    if (reads_back(nearest, value, is_f64))
        return nearest;
    gbx_decimal above = nearest;
    char text[32];
    if (snprintf(text, sizeof text, "%" PRIu64, ++above.digits) > count) {
        above.digits /= 10;
        ++above.exponent;
    }
    return reads_back(above, value, is_f64) ? above : nearest;
}

static gbx_decimal shortest_slowly(double value, bool is_f64) {
    int count = 1;
    if (fabs(value) >= (is_f64 ? DBL_MIN : (double)FLT_MIN))
        count = is_f64 ? DBL_DIG : FLT_DIG;
    gbx_decimal result = round_slowly(value, count, is_f64);
    while (!reads_back(result, value, is_f64))
        result = round_slowly(value, ++count, is_f64);
    for (; result.count > 1 && result.digits % 10 == 0; --result.count)
        result.digits /= 10;
    return result;
}

static void check_decimal(gbx_decimal got, gbx_decimal want) {
    assert_int_equal(got.digits, want.digits);
    assert_int_equal(got.count, want.count);
    assert_int_equal(got.exponent, want.exponent);
}

static void check_shortest_f64(double value) {
    const uint64_t bits = gbx_f64_bits(value) & INT64_MAX;
    if (bits == 0 || !isfinite(value))
        return;
    const gbx_binary binary = gbx_binary_of_f64(bits);
    check_decimal(gbx_decimal_shortest(&binary), shortest_slowly(fabs(value), true));
}

static void check_shortest_f32(float value) {
    const uint32_t bits = gbx_f32_bits(value) & INT32_MAX;
    if (bits == 0 || !isfinite(value))
        return;
    const gbx_binary binary = gbx_binary_of_f32(bits);
    check_decimal(gbx_decimal_shortest(&binary), shortest_slowly(fabs((double)value), false));
}

static void check_rounded(double value) {
    const gbx_binary binary = gbx_binary_of_f64(gbx_f64_bits(value));
    for (int count = 1; count <= DBL_DECIMAL_DIG; ++count)
        check_decimal(gbx_decimal_round(&binary, count), binary.is_below_near
                                                             ? round_slowly(value, count, true)
                                                             : print(value, count));
}

/* Of all sizes, of usual ones, short decimals, and integers of any length. */
static void shortest_f64_is_what_a_search_finds(void **state) {
    (void)state;
    uint64_t random = UINT64_C(0x123456789abcdef1);
    for (int i = 0; i < RANDOM_VALUES; ++i) {
        const uint64_t bits = next_random(&random);
        check_shortest_f64(gbx_f64_of_bits(bits));
        const uint64_t exponent = 1023 - 60 + next_random(&random) % 180;
        check_shortest_f64(gbx_f64_of_bits((bits & (UINT64_MAX >> 12)) | exponent << 52));
        check_shortest_f64((double)(bits % UINT64_C(1000000000000)) / 1e6);
        check_shortest_f64((double)(bits >> bits % 64));
    }
}

static void shortest_f32_is_what_a_search_finds(void **state) {
    (void)state;
    uint64_t random = UINT64_C(0xfedcba9876543211);
    for (int i = 0; i < RANDOM_VALUES; ++i) {
        const uint64_t bits = next_random(&random);
        check_shortest_f32(gbx_f32_of_bits((uint32_t)bits));
        check_shortest_f32(
            gbx_f32_of_bits(0x3a000000u + (uint32_t)(bits >> 3) % 0x0a000000u)); /* near 1 */
        check_shortest_f32((float)(bits % 100000) / 1000.0f);
        check_shortest_f32((float)(bits >> bits % 64));
    }
}

static void powers_of_two_and_their_neighbours_are_right(void **state) {
    (void)state;
    for (uint64_t exponent = 0; exponent < 0x7ff; ++exponent)
        for (uint64_t near = 0; near < 5; ++near)
            check_shortest_f64(gbx_f64_of_bits((exponent << 52) + near - 2));
    for (uint32_t exponent = 0; exponent < 0xff; ++exponent)
        for (uint32_t near = 0; near < 9; ++near)
            check_shortest_f32(gbx_f32_of_bits((exponent << 23) + near - 4));
}

static void rounding_is_that_of_the_library(void **state) {
    (void)state;
    uint64_t random = UINT64_C(0x2545f4914f6cdd1d);
    for (int i = 0; i < RANDOM_VALUES / 20; ++i) {
        const uint64_t bits = next_random(&random) & INT64_MAX;
        check_rounded((double)(bits >> bits % 63 | 1));
        check_rounded((double)(bits % 1000000 + 1) /
                      1024.0); /* ends halfway between two decimals */
        check_rounded((double)(1 + bits % 999) * 0.001);
        const double any = gbx_f64_of_bits(bits);
        if (isfinite(any) && bits != 0)
            check_rounded(any);
    }
    for (int exponent = -1074; exponent <= 1023; ++exponent)
        check_rounded(ldexp(1.0, exponent));
    check_rounded(9.9999999999999);
    check_rounded(0.99999999999999989);
    check_rounded(9999999999999998.0);
}

/* float16: 65504 is the largest, and its neighbour is 65472. */
static void a_narrower_format_needs_fewer_digits(void **state) {
    (void)state;
    const gbx_binary largest = {.fraction = 2047, .exponent = 5};
    check_decimal(gbx_decimal_shortest(&largest), (gbx_decimal){655, 3, 4});
    check_decimal(gbx_decimal_round(&largest, 5), (gbx_decimal){65504, 5, 4});
    const gbx_binary smallest = {.fraction = 1, .exponent = -24};
    check_decimal(gbx_decimal_shortest(&smallest), (gbx_decimal){6, 1, -8});
    const gbx_binary third = {.fraction = 1365, .exponent = -12};
    check_decimal(gbx_decimal_shortest(&third), (gbx_decimal){3333, 4, -1});
}

static void check_digits(uint64_t number) {
    char text[24], expected[24];
    char *end = text + sizeof text;
    const char *digits = gbx_digits_before(end, number);
    const int length = snprintf(expected, sizeof expected, "%" PRIu64, number);
    assert_int_equal(end - digits, length);
    assert_int_equal(gbx_digits_count(number), length);
    assert_memory_equal(digits, expected, (size_t)length);
}

static void digits_are_what_printf_gives(void **state) {
    (void)state;
    uint64_t random = UINT64_C(88172645463325252);
    for (uint64_t power = 1; power < UINT64_C(10000000000000000000); power *= 10)
        for (uint64_t near = 0; near < 3; ++near)
            check_digits(power - 1 + near);
    check_digits(UINT64_MAX);
    for (int i = 0; i < 10000; ++i)
        check_digits(next_random(&random) >> (i % 64));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shortest_f64_is_what_a_search_finds),
        cmocka_unit_test(shortest_f32_is_what_a_search_finds),
        cmocka_unit_test(powers_of_two_and_their_neighbours_are_right),
        cmocka_unit_test(rounding_is_that_of_the_library),
        cmocka_unit_test(digits_are_what_printf_gives),
        cmocka_unit_test(a_narrower_format_needs_fewer_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
