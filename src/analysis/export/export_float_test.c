#include "checks.h"

#include <math.h>
#include <string.h>

#include "analysis/export/export_float.h"
#include "base/float_bits.h"

static void check_same(uint32_t bits) {
    char got[GBX_FLOAT_TEXT_BYTES], expected[GBX_FLOAT_TEXT_BYTES];
    size_t length = gbx_export_f32_format(gbx_f32_of_bits(bits), got);
    size_t expected_length = gbx_f32_format(gbx_f32_of_bits(bits), expected);
    assert_string_equal(got, expected);
    assert_int_equal(length, expected_length);
}

static void edges_have_the_same_text(void **state) {
    (void)state;
    static const float values[] = {
        0.1f,     0.5f,     1.0f,    1.5f,    3.0f,       123456.0f,  16777216,   1e10f,
        9999999,  1e15f,    1e16f,   1.5e16f, 1e-4f,      1e-5f,      9.9999e-5f, 3.14159f,
        2.7e-14f, 9e-15f,   3.4e38f, 1e30f,   1e31f,      7e22f,      9.999999f,  999999.94f,
        0.0f,     INFINITY, NAN,     1e-45f,  8388608.5f, 33554432.0f};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
        check_same(gbx_f32_bits(values[i]));
        check_same(gbx_f32_bits(-values[i]));
    }
    for (uint32_t exponent = 0; exponent < 256; ++exponent)
        for (uint32_t near = 0; near < 8; ++near)
            check_same((exponent << 23) + near - 4);
}

static void floats_of_all_sizes_have_the_same_text(void **state) {
    (void)state;
    uint32_t bits = 12345;
    for (int i = 0; i < 100000; ++i) {
        bits = bits * 1664525u + 1013904223u;
        check_same(bits);
        /* And of usual sizes, and short decimals. */
        check_same(0x3a000000u + (bits >> 3) % 0x0a000000u);
        check_same(gbx_f32_bits((float)((double)(bits % 100000) / 1000)));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_have_the_same_text),
        cmocka_unit_test(floats_of_all_sizes_have_the_same_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
