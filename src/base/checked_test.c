#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/checked.h"

static void add_says_when_it_overflows(void **state) {
    (void)state;
    uint64_t sum = 0;
    assert_true(gbx_checked_add_u64(UINT64_MAX - 1, 1, &sum));
    assert_int_equal(sum, UINT64_MAX);
    assert_false(gbx_checked_add_u64(UINT64_MAX, 1, &sum));
    int64_t signed_sum = 0;
    assert_true(gbx_checked_add_i64(INT64_MAX, INT64_MIN, &signed_sum));
    assert_int_equal(signed_sum, -1);
    assert_false(gbx_checked_add_i64(INT64_MAX, 1, &signed_sum));
    assert_false(gbx_checked_add_i64(INT64_MIN, -1, &signed_sum));
}

static void multiply_says_when_it_overflows(void **state) {
    (void)state;
    uint64_t product = 0;
    assert_true(gbx_checked_mul_u64(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1, &product));
    assert_int_equal(product, UINT64_MAX - UINT32_MAX);
    assert_false(gbx_checked_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &product));
    assert_true(gbx_checked_mul_u64(0, UINT64_MAX, &product));
    assert_int_equal(product, 0);
    int64_t signed_product = 0;
    assert_true(gbx_checked_mul_i64(-3, 7, &signed_product));
    assert_int_equal(signed_product, -21);
    assert_false(gbx_checked_mul_i64(INT64_MIN, -1, &signed_product));
    assert_false(gbx_checked_mul_i64(INT64_C(1) << 32, INT64_C(1) << 31, &signed_product));
}

static void align_up_rounds_to_the_next_multiple(void **state) {
    (void)state;
    uint64_t aligned = 1;
    assert_true(gbx_checked_align_up(0, 64, &aligned));
    assert_int_equal(aligned, 0);
    assert_true(gbx_checked_align_up(1, 64, &aligned));
    assert_int_equal(aligned, 64);
    assert_true(gbx_checked_align_up(64, 64, &aligned));
    assert_int_equal(aligned, 64);
    assert_true(gbx_checked_align_up(17, 1, &aligned));
    assert_int_equal(aligned, 17);
    assert_true(gbx_checked_align_up(UINT64_MAX - 63, 64, &aligned));
    assert_int_equal(aligned, UINT64_MAX - 63);
    assert_false(gbx_checked_align_up(UINT64_MAX - 62, 64, &aligned));
}

static void range_is_inside_only_if_all_of_it_is(void **state) {
    (void)state;
    assert_true(gbx_range_is_inside(0, 0, 0));
    assert_true(gbx_range_is_inside(10, 0, 10));
    assert_true(gbx_range_is_inside(4, 6, 10));
    assert_false(gbx_range_is_inside(4, 7, 10));
    assert_false(gbx_range_is_inside(11, 0, 10));
    assert_false(gbx_range_is_inside(1, UINT64_MAX, 10));
    assert_true(gbx_range_is_inside(0, UINT64_MAX, UINT64_MAX));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(add_says_when_it_overflows),
        cmocka_unit_test(multiply_says_when_it_overflows),
        cmocka_unit_test(align_up_rounds_to_the_next_multiple),
        cmocka_unit_test(range_is_inside_only_if_all_of_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
