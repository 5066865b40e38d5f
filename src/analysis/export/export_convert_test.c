#include "checks.h"

#include <math.h>

#include <glassbox/tensor.h>

#include "analysis/export/export.h"
#include "analysis/export/internal.h"
#include "base/float_bits.h"

static uint64_t converted(uint32_t from, uint64_t bits, uint32_t to) {
    gbx_export_convert(from, to, &bits, 1);
    return bits;
}

static uint64_t f32(float value) {
    return gbx_f32_bits(value);
}

static void wide_integers_are_rounded_once(void **state) {
    (void)state;
    /* Above the middle of two float32, but exactly on it when rounded to float64. */
    const uint64_t above = (UINT64_C(1) << 62) + (UINT64_C(1) << 38) + 1;
    assert_int_equal(converted(GBX_INT64, above, GBX_FLOAT32), f32(0x1.000002p62f));
    assert_int_equal(converted(GBX_INT64, above - 1, GBX_FLOAT32), f32(0x1p62f));
    assert_int_equal(converted(GBX_INT64, -above, GBX_FLOAT32), f32(-0x1.000002p62f));
    assert_int_equal(converted(GBX_UINT64, UINT64_MAX, GBX_FLOAT32), f32(0x1p64f));
    assert_int_equal(converted(GBX_UINT64, UINT64_MAX, GBX_FLOAT64), gbx_f64_bits(0x1p64));
    assert_int_equal(converted(GBX_INT64, (uint64_t)INT64_MIN, GBX_FLOAT64), gbx_f64_bits(-0x1p63));
    assert_int_equal(converted(GBX_UINT64, 65519, GBX_FLOAT16), 0x7bff);
    assert_int_equal(converted(GBX_UINT64, 65520, GBX_FLOAT16), 0x7c00);
    assert_int_equal(converted(GBX_INT64, 0, GBX_FLOAT32), 0);
}

static void integers_go_to_integers_exactly_or_saturate(void **state) {
    (void)state;
    const uint64_t minus_one = UINT64_MAX;
    assert_int_equal(converted(GBX_INT64, INT64_MAX - 1, GBX_UINT64), INT64_MAX - 1);
    assert_int_equal(converted(GBX_UINT64, UINT64_MAX, GBX_INT64), INT64_MAX);
    assert_int_equal(converted(GBX_INT64, minus_one, GBX_UINT64), 0);
    assert_int_equal(converted(GBX_INT64, minus_one, GBX_INT8), 0xff);
    assert_int_equal(converted(GBX_INT64, (uint64_t)-129, GBX_INT8), 0x80);
    assert_int_equal(converted(GBX_INT64, 128, GBX_INT8), 0x7f);
    assert_int_equal(converted(GBX_INT64, (uint64_t)INT64_MIN, GBX_INT32), 0x80000000u);
    assert_int_equal(converted(GBX_UINT64, 256, GBX_UINT8), 255);
    assert_int_equal(converted(GBX_INT64, (uint64_t)INT64_MIN, GBX_INT64), INT64_MIN);
    assert_int_equal(converted(GBX_INT4, 0xf, GBX_INT16), 0xffff);
    assert_int_equal(converted(GBX_INT8, 0x80, GBX_UINT64), 0);
    assert_int_equal(converted(GBX_UINT64, 256, GBX_BOOL), 1);
}

static void floats_go_to_integers_by_nearest_even(void **state) {
    (void)state;
    assert_int_equal(converted(GBX_FLOAT32, f32(2.5f), GBX_INT32), 2);
    assert_int_equal(converted(GBX_FLOAT32, f32(-3.5f), GBX_INT64), (uint64_t)-4);
    assert_int_equal(converted(GBX_FLOAT32, f32(INFINITY), GBX_INT64), INT64_MAX);
    assert_int_equal(converted(GBX_FLOAT32, f32(NAN), GBX_INT64), 0);
    assert_int_equal(converted(GBX_FLOAT32, f32(-1), GBX_UINT8), 0);
    assert_int_equal(converted(GBX_FLOAT32, f32(NAN), GBX_BOOL), 1);
}

static void targets_are_the_dtypes_of_numpy(void **state) {
    (void)state;
    size_t count = 0;
    for (uint32_t dtype = 0; dtype < GBX_DTYPE_COUNT + 2; ++dtype)
        count += gbx_export_is_target(dtype);
    assert_int_equal(count, 12);
    assert_true(gbx_export_is_target(GBX_BOOL));
    assert_false(gbx_export_is_target(GBX_BFLOAT16));
    assert_false(gbx_export_is_target(GBX_INT4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_integers_are_rounded_once),
        cmocka_unit_test(integers_go_to_integers_exactly_or_saturate),
        cmocka_unit_test(floats_go_to_integers_by_nearest_even),
        cmocka_unit_test(targets_are_the_dtypes_of_numpy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
