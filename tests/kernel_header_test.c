/* The inline functions of <glassbox/kernel.h>, compared with the library's conversions. */
#include "chip_support.h"

#include <stdlib.h>

enum { CODES = 65536 };

static bool is_nan_code(gbx_dtype dtype, uint32_t code) {
    uint32_t infinity = dtype == GBX_FLOAT16 ? 0x7c00 : 0x7f80;
    return (code & 0x7fff) > infinity;
}

static void check_decode(gbx_dtype dtype, float (*decode)(uint16_t)) {
    for (uint32_t code = 0; code < CODES; ++code) {
        double expected = gbx_dtype_to_f64(dtype, code);
        float got = decode((uint16_t)code);
        if (is_nan_code(dtype, code)) {
            assert_true(got != got);
            assert_int_equal(gbx_f32_bits(got) >> 31, code >> 15);
        } else {
            assert_int_equal(gbx_f32_bits(got), gbx_f32_bits((float)expected));
        }
    }
}

/* Every float32 around each code, and samples of all others. */
static void check_encode(gbx_dtype dtype, uint16_t (*encode)(float)) {
    uint32_t step = getenv("GLASSBOX_STRESS") ? 1 : 997;
    uint64_t checked = 0;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += step) {
        float value = gbx_f32_of_bits((uint32_t)bits);
        uint16_t got = encode(value);
        if (value != value)
            assert_true(is_nan_code(dtype, got) && got >> 15 == bits >> 31);
        else if (got != gbx_dtype_from_f64(dtype, value))
            fail_msg("0x%08x becomes 0x%04x", (unsigned)bits, got);
        ++checked;
    }
    assert_true(checked > 4000000);
    for (uint32_t code = 0; code < CODES; ++code) {
        if (is_nan_code(dtype, code))
            continue;
        uint32_t around = gbx_f32_bits((float)gbx_dtype_to_f64(dtype, code));
        uint32_t half = dtype == GBX_FLOAT16 ? 0x1000 : 0x8000;
        for (uint32_t offset = half - 2; offset <= half + 2; ++offset) {
            float value = gbx_f32_of_bits(around + offset);
            if (value == value)
                assert_int_equal(encode(value), gbx_dtype_from_f64(dtype, value));
        }
        assert_int_equal(encode(gbx_f32_of_bits(around)), code);
    }
}

static void test_float16(void **state) {
    (void)state;
    check_decode(GBX_FLOAT16, gbx_f16_to_f32);
    check_encode(GBX_FLOAT16, gbx_f32_to_f16);
}

static void test_bfloat16(void **state) {
    (void)state;
    check_decode(GBX_BFLOAT16, gbx_bf16_to_f32);
    check_encode(GBX_BFLOAT16, gbx_f32_to_bf16);
}

static void test_scalars_are_read_by_type(void **state) {
    (void)state;
    const uint64_t args[] = {0x40490fdb, 0x400921fb54442d18, 0xffffffff80000001,
                             0x8000000000000000};
    assert_true(gbx_arg_f32(args, 0) == 3.14159274f);
    assert_true(gbx_arg_f64(args, 1) == 3.141592653589793);
    assert_int_equal(gbx_arg_i32(args, 2), INT32_MIN + 1);
    assert_int_equal(gbx_arg_u32(args, 2), 0x80000001);
    assert_true(gbx_arg_i64(args, 3) == INT64_MIN);
    assert_true(gbx_arg_u64(args, 3) == UINT64_C(1) << 63);
}

static void test_flags_count_up(void **state) {
    (void)state;
    uint32_t flag = 0;
    gbx_flag_set(&flag, 3);
    assert_int_equal(gbx_flag_add(&flag, 4), 7);
    gbx_flag_wait(&flag, 7);
    gbx_flag_wait(&flag, 5); /* passed already */
    assert_int_equal(flag, 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float16),
        cmocka_unit_test(test_bfloat16),
        cmocka_unit_test(test_scalars_are_read_by_type),
        cmocka_unit_test(test_flags_count_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
