#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/compare.h"

static gbx_tensor tensor_of(gbx_dtype dtype, uint32_t ndims, const int64_t *shape) {
    gbx_tensor tensor;
    gbx_status status = gbx_tensor_contiguous(0, dtype, ndims, shape, &tensor);
    assert_null(status);
    return tensor;
}

static gbx_comparison compare_f32(const float *got, const float *want, int64_t count, double rtol,
                                  double atol) {
    gbx_tensor tensor = tensor_of(GBX_FLOAT32, 1, &count);
    return gbx_compare(&tensor, got, want, rtol, atol);
}

static void differences_are_measured(void **state) {
    (void)state;
    const float want[] = {1.0f, -2.0f, 4.0f, 0.0f};
    const float got[] = {1.0f, -2.5f, 4.25f, 0.125f};
    gbx_comparison c = compare_f32(got, want, 4, 0.0, 0.25);
    assert_int_equal(c.elements, 4);
    assert_int_equal(c.mismatches, 1);
    assert_int_equal(c.first_bad, 1);
    assert_true(c.max_abs == 0.5);
    assert_true(c.max_rel == 0.25);
    assert_int_equal(c.got_bits, 0xc0200000);
    assert_int_equal(c.want_bits, 0xc0000000);
    assert_int_equal(compare_f32(got, want, 4, 0.25, 0.125).mismatches, 0);
    assert_int_equal(compare_f32(got, want, 4, 0.0, 0.0).mismatches, 3);
}

static void nan_and_infinity_equal_themselves(void **state) {
    (void)state;
    const float want[] = {NAN, INFINITY, -INFINITY, 1.0f, 1.0f, INFINITY, INFINITY, NAN, 0.0f};
    const float got[] = {-NAN, INFINITY, -INFINITY, NAN, INFINITY, 1.0f, -INFINITY, 1.0f, -0.0f};
    gbx_comparison c = compare_f32(got, want, 9, 0.5, 1e30);
    assert_int_equal(c.mismatches, 5);
    assert_int_equal(c.first_bad, 3);
    assert_true(isinf(c.max_abs) && isinf(c.max_rel));
    c = compare_f32(got, want, 3, 0.0, 0.0);
    assert_int_equal(c.mismatches, 0);
    assert_true(c.max_abs == 0.0 && c.max_rel == 0.0);
}

/* Past whole blocks, with one bad element, at every place near their ends. */
static void every_element_counts(void **state) {
    (void)state;
    enum { COUNT = 2500 };
    static float want[COUNT];
    static float got[COUNT];
    static const size_t places[] = {0, 1, 1023, 1024, 2047, 2048, 2499};
    for (size_t i = 0; i < COUNT; ++i) {
        want[i] = (float)i;
        got[i] = (float)i * (1.0f + 1e-6f);
    }
    assert_int_equal(compare_f32(got, want, COUNT, 1e-5, 1e-6).mismatches, 0);
    for (size_t k = 0; k < sizeof places / sizeof places[0]; ++k) {
        float kept = got[places[k]];
        got[places[k]] = -7.0f;
        gbx_comparison c = compare_f32(got, want, COUNT, 1e-5, 1e-6);
        assert_int_equal(c.mismatches, 1);
        assert_int_equal(c.first_bad, places[k]);
        assert_true(c.max_abs == (double)want[places[k]] + 7.0);
        got[places[k]] = kept;
    }
}

static void every_dtype_is_compared(void **state) {
    (void)state;
    enum { COUNT = 1500 };
    static double values[COUNT];
    static unsigned char want[COUNT * 8];
    static unsigned char got[COUNT * 8];
    int64_t count = COUNT;
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype) {
        gbx_tensor tensor = tensor_of((gbx_dtype)dtype, 1, &count);
        for (size_t i = 0; i < COUNT; ++i)
            values[i] = (double)(i % 2);
        gbx_dtype_array_from_f64(dtype, values, COUNT, want);
        values[1201] = 0.0;
        gbx_dtype_array_from_f64(dtype, values, COUNT, got);
        gbx_comparison c = gbx_compare(&tensor, got, want, 0.0, 0.0);
        assert_int_equal(c.mismatches, 1);
        assert_int_equal(c.first_bad, 1201);
        assert_true(c.max_abs == 1.0 && c.max_rel == 1.0);
        assert_int_equal(gbx_compare(&tensor, want, want, 0.0, 0.0).mismatches, 0);
        assert_int_equal(gbx_compare(&tensor, got, want, 1.0, 0.0).mismatches, 0);
    }
}

static void wide_integers_are_exact(void **state) {
    (void)state;
    int64_t count = 3;
    const int64_t want[] = {INT64_MAX, INT64_MIN, 9007199254740993};
    const int64_t got[] = {INT64_MAX - 1, INT64_MAX, 9007199254740992};
    gbx_tensor tensor = tensor_of(GBX_INT64, 1, &count);
    gbx_comparison c = gbx_compare(&tensor, got, want, 0.0, 0.0);
    assert_int_equal(c.mismatches, 3);
    assert_true(c.max_abs == 0x1p64);
    tensor = tensor_of(GBX_UINT64, 1, &count);
    assert_int_equal(gbx_compare(&tensor, got, want, 0.0, 1.0).mismatches, 0);
}

static void halves_of_a_byte_beyond_a_row_do_not_count(void **state) {
    (void)state;
    int64_t shape[] = {2, 3};
    gbx_tensor tensor = tensor_of(GBX_INT4, 2, shape);
    const unsigned char want[] = {0x21, 0x03, 0x54, 0x06};
    const unsigned char got[] = {0x21, 0xf3, 0x54, 0xe7};
    gbx_comparison c = gbx_compare(&tensor, got, want, 0.0, 0.0);
    assert_int_equal(c.mismatches, 1);
    assert_int_equal(c.first_bad, 5);
    assert_int_equal(c.got_bits, 7);
}

static void number_becomes_an_index(void **state) {
    (void)state;
    int64_t shape[] = {3, 4, 5};
    int64_t index[GBX_MAX_DIMS];
    gbx_tensor tensor = tensor_of(GBX_FLOAT32, 3, shape);
    gbx_compare_index(&tensor, 2 * 20 + 3 * 5 + 4, index);
    assert_int_equal(index[0], 2);
    assert_int_equal(index[1], 3);
    assert_int_equal(index[2], 4);
}

static void empty_and_single_tensors(void **state) {
    (void)state;
    int64_t shape[] = {4, 0};
    float one = 1.0f;
    float two = 2.0f;
    gbx_tensor empty = tensor_of(GBX_FLOAT32, 2, shape);
    gbx_tensor single = tensor_of(GBX_FLOAT32, 0, NULL);
    assert_int_equal(gbx_compare(&empty, &one, &two, 0.0, 0.0).mismatches, 0);
    assert_int_equal(gbx_compare(&single, &one, &two, 0.0, 0.0).mismatches, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_are_measured),
        cmocka_unit_test(nan_and_infinity_equal_themselves),
        cmocka_unit_test(every_element_counts),
        cmocka_unit_test(every_dtype_is_compared),
        cmocka_unit_test(wide_integers_are_exact),
        cmocka_unit_test(halves_of_a_byte_beyond_a_row_do_not_count),
        cmocka_unit_test(number_becomes_an_index),
        cmocka_unit_test(empty_and_single_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
