#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/array_text.h"
#include "base/float_bits.h"

/* What numpy.array2string prints for the same values; tests/array_text_numpy_test.py compares
 * thousands more. */

enum { COUNT_MAX = 6000 };

typedef struct test_array {
    uint32_t dtype;
    uint32_t ndims;
    int64_t shape[GBX_MAX_DIMS];
    uint64_t stored; /* all when 0 */
    gbx_array_text_options options;
    uint64_t bits[COUNT_MAX];
    uint64_t asked_most; /* elements asked for at once */
    uint64_t asked_end;  /* the last element asked for, and one */
} test_array;

static gbx_status read_array(const void *context, uint64_t first, size_t count,
                             uint64_t *out_bits) {
    test_array *array = (test_array *)(uintptr_t)context;
    assert_true(count > 0 && first + count <= array->stored);
    memcpy(out_bits, array->bits + first, count * sizeof *out_bits);
    array->asked_most = count > array->asked_most ? count : array->asked_most;
    array->asked_end = first + count > array->asked_end ? first + count : array->asked_end;
    return NULL;
}

static gbx_elements elements_of(test_array *array) {
    gbx_elements elements = {.dtype = array->dtype, .ndims = array->ndims, .count = 1};
    for (uint32_t i = 0; i < array->ndims; ++i) {
        elements.shape[i] = array->shape[i];
        elements.count *= (uint64_t)array->shape[i];
    }
    if (array->stored == 0)
        array->stored = elements.count;
    elements.stored = array->stored;
    elements.read = read_array;
    elements.context = array;
    return elements;
}

static void check_print(test_array *array, const char *expected) {
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    const gbx_elements elements = elements_of(array);
    if (array->options.line_width == 0)
        array->options.line_width = 75;
    assert_null(gbx_array_print(to, &elements, &array->options));
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, expected);
    free(text);
}

static test_array *make_array(uint32_t dtype, uint32_t ndims, const int64_t *shape) {
    test_array *array = calloc(1, sizeof *array);
    assert_non_null(array);
    array->dtype = dtype;
    array->ndims = ndims;
    for (uint32_t i = 0; i < ndims; ++i)
        array->shape[i] = shape[i];
    return array;
}

static void check_values(uint32_t dtype, size_t count, const double *values, const char *expected) {
    test_array *array = make_array(dtype, 1, (const int64_t[]){(int64_t)count});
    for (size_t i = 0; i < count; ++i)
        array->bits[i] = gbx_dtype_from_f64(dtype, values[i]);
    check_print(array, expected);
    free(array);
}

#define CHECK(dtype, expected, ...)                                                                \
    check_values(dtype, sizeof((const double[]){__VA_ARGS__}) / sizeof(double),                    \
                 (const double[]){__VA_ARGS__}, expected)

/* 0, step, 2 step... */
static test_array *make_counting(uint32_t dtype, uint32_t ndims, const int64_t *shape,
                                 uint64_t step) {
    test_array *array = make_array(dtype, ndims, shape);
    for (uint64_t i = 0; i < COUNT_MAX; ++i)
        array->bits[i] = gbx_dtype_from_f64(dtype, (double)(i * step));
    return array;
}

static void check_counting(uint32_t dtype, uint32_t ndims, const int64_t *shape,
                           const char *expected) {
    test_array *array = make_counting(dtype, ndims, shape, 1);
    check_print(array, expected);
    free(array);
}

static void floats_align_at_the_point(void **state) {
    (void)state;
    CHECK(GBX_FLOAT32, "[  1.5   -2.25 100.  ]\n", 1.5, -2.25, 100.0);
    CHECK(GBX_FLOAT64, "[ 0.1         0.33333333 -0.5       ]\n", 0.1, 1.0 / 3.0, -0.5);
    CHECK(GBX_FLOAT32, "[ 0.1         0.33333334 -0.5       ]\n", 0.1, 1.0 / 3.0, -0.5);
    CHECK(GBX_FLOAT64, "[1.       1.000001]\n", 1.000000001, 1.000001);
    CHECK(GBX_FLOAT64, "[99999999.1]\n", 99999999.1); /* 99999999.09999999 is nearer */
}

/* Both lie next to the middle of two decimals of 8 places, on the opposite side to what their
 * product with 1e8 suggests. */
static void last_place_is_rounded_from_the_exact_value(void **state) {
    (void)state;
    CHECK(GBX_FLOAT64, "[0.03358513]\n", 0.033585125);
    CHECK(GBX_FLOAT64, "[0.09735515]\n", 0.097355155);
}

static void floats_far_apart_have_exponents(void **state) {
    (void)state;
    CHECK(GBX_FLOAT32, "[1.e-05 1.e+00 1.e+05]\n", 1e-5, 1.0, 1e5);
    CHECK(GBX_FLOAT32, "[1.0000000e-01 1.2345679e+10]\n", 0.1, 1.2345679e10);
    CHECK(GBX_FLOAT64, "[1.e-300 1.e+100]\n", 1e-300, 1e100);
    CHECK(GBX_FLOAT64, "[-0.e+00  1.e+08]\n", -0.0, 1e8);
    CHECK(GBX_FLOAT64, "[   1. 1000.]\n", 1.0, 1000.0);
    CHECK(GBX_FLOAT64, "[1.000e+00 1.001e+03]\n", 1.0, 1001.0);
    CHECK(GBX_FLOAT32, "[  0.2530527 253.05272  ]\n", 0.2530527, 253.05272); /* 1000 in float32 */
    CHECK(GBX_FLOAT64, "[99999999.]\n", 99999999.0);
    CHECK(GBX_FLOAT64, "[0.0001 0.    ]\n", 1e-4, 0.0);
    CHECK(GBX_FLOAT64, "[9.9e-05]\n", 9.9e-5);
}

static void others_than_numbers_align(void **state) {
    (void)state;
    CHECK(GBX_FLOAT32, "[  1.  nan -inf  -0.]\n", 1.0, NAN, -INFINITY, -0.0);
    CHECK(GBX_FLOAT64, "[nan inf]\n", NAN, INFINITY);
    CHECK(GBX_FLOAT64, "[1.e+10    inf]\n", 1e10, INFINITY);
}

/* All digits before the point are exact; those after it are the fewest. */
static void narrow_floats_have_few_digits(void **state) {
    (void)state;
    CHECK(GBX_FLOAT16, "[65504.   100.]\n", 65504.0, 100.0);
    CHECK(GBX_FLOAT16, "[6.55e+04 5.00e-01]\n", 65504.0, 0.5);
    CHECK(GBX_BFLOAT16, "[0.1  3.14 1.01]\n", 0.1, 3.14159, 1.0078125);
    CHECK(GBX_FLOAT8_E4M3, "[448.    0.5  -1.1]\n", 448.0, 0.5, -1.125);
    CHECK(GBX_FLOAT8_E5M2, "[2.e-05 1.e+00 6.e+04]\n", 0x1p-16, 1.0, 57344.0);
}

static void integers_align_right(void **state) {
    (void)state;
    CHECK(GBX_INT8, "[-128  127    0]\n", -128.0, 127.0, 0.0);
    CHECK(GBX_UINT8, "[255   0]\n", 255.0, 0.0);
    CHECK(GBX_INT4, "[-8  7]\n", -8.0, 7.0);
    CHECK(GBX_BOOL, "[ True False]\n", 1.0, 0.0);
    test_array *array = make_array(GBX_INT64, 1, (const int64_t[]){2});
    array->bits[0] = (uint64_t)INT64_MIN;
    array->bits[1] = INT64_MAX;
    check_print(array, "[-9223372036854775808  9223372036854775807]\n");
    array->dtype = GBX_UINT64;
    check_print(array, "[9223372036854775808 9223372036854775807]\n");
    free(array);
}

static void scalars_have_no_brackets(void **state) {
    (void)state;
    static const struct {
        uint32_t dtype;
        double value;
        const char *text;
    } cases[] = {{GBX_FLOAT32, 2.5, "2.5\n"}, {GBX_FLOAT64, NAN, "nan\n"},
                 {GBX_INT32, -7, "-7\n"},     {GBX_BOOL, 1, "True\n"},
                 {GBX_BOOL, 0, "False\n"},    {GBX_FLOAT16, 3, "3.\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        test_array *array = make_array(cases[i].dtype, 0, NULL);
        array->bits[0] = gbx_dtype_from_f64(cases[i].dtype, cases[i].value);
        check_print(array, cases[i].text);
        free(array);
    }
}

static void dimensions_are_blocks(void **state) {
    (void)state;
    check_counting(GBX_FLOAT32, 2, (const int64_t[]){2, 3}, "[[0. 1. 2.]\n [3. 4. 5.]]\n");
    check_counting(GBX_INT32, 4, (const int64_t[]){2, 2, 2, 2},
                   "[[[[ 0  1]\n   [ 2  3]]\n\n  [[ 4  5]\n   [ 6  7]]]\n\n\n"
                   " [[[ 8  9]\n   [10 11]]\n\n  [[12 13]\n   [14 15]]]]\n");
    check_counting(GBX_INT32, 8, (const int64_t[]){1, 1, 1, 1, 1, 1, 1, 2},
                   "[[[[[[[[0 1]]]]]]]]\n");
    check_counting(GBX_FLOAT32, 3, (const int64_t[]){2, 0, 3}, "[]\n");
}

static void long_rows_wrap(void **state) {
    (void)state;
    test_array *array = make_counting(GBX_INT64, 1, (const int64_t[]){12}, 1000);
    array->options.line_width = 40;
    check_print(array,
                "[    0  1000  2000  3000  4000  5000\n  6000  7000  8000  9000 10000 11000]\n");
    array->shape[0] = 3;
    array->stored = 3;
    array->options.line_width = 1;
    check_print(array, "[   0\n 1000\n 2000]\n");
    free(array);

    array = make_array(GBX_FLOAT64, 2, (const int64_t[]){2, 2});
    const double values[] = {1.25, 10.0, 100.0, 0.5};
    for (size_t i = 0; i < 4; ++i)
        array->bits[i] = gbx_f64_bits(values[i]);
    array->options.line_width = 12;
    check_print(array, "[[  1.25\n   10.  ]\n [100.\n    0.5 ]]\n");
    free(array);
}

static void large_arrays_show_their_edges(void **state) {
    (void)state;
    check_counting(GBX_INT32, 1, (const int64_t[]){1001}, "[   0    1    2 ...  998  999 1000]\n");
    check_counting(GBX_INT16, 2, (const int64_t[]){8, 250},
                   "[[   0    1    2 ...  247  248  249]\n [ 250  251  252 ...  497  498  499]\n"
                   " [ 500  501  502 ...  747  748  749]\n ...\n"
                   " [1250 1251 1252 ... 1497 1498 1499]\n [1500 1501 1502 ... 1747 1748 1749]\n"
                   " [1750 1751 1752 ... 1997 1998 1999]]\n");
    check_counting(GBX_INT16, 3, (const int64_t[]){400, 1, 3},
                   "[[[   0    1    2]]\n\n [[   3    4    5]]\n\n [[   6    7    8]]\n\n ...\n\n"
                   " [[1191 1192 1193]]\n\n [[1194 1195 1196]]\n\n [[1197 1198 1199]]]\n");
}

/* What is not shown is not read, and does not widen the rest. */
static void only_edges_are_read(void **state) {
    (void)state;
    test_array *array = make_array(GBX_INT32, 1, (const int64_t[]){5000});
    array->bits[3] = 123456;
    array->bits[4996] = 123456;
    check_print(array, "[0 0 0 ... 0 0 0]\n");
    assert_true(array->asked_most <= 6);
    free(array);
}

static void full_arrays_are_read_in_pieces(void **state) {
    (void)state;
    test_array *array = make_array(GBX_BOOL, 1, (const int64_t[]){COUNT_MAX});
    array->options = (gbx_array_text_options){.is_full = true, .line_width = 100000};
    array->bits[4097] = 1;
    char *expected = malloc(COUNT_MAX * 6 + 3);
    assert_non_null(expected);
    expected[0] = '[';
    for (size_t i = 0; i < COUNT_MAX; ++i)
        memcpy(expected + 1 + i * 6, i == 4097 ? " True " : "False ", 6);
    memcpy(expected + COUNT_MAX * 6, "]\n", 3);
    check_print(array, expected);
    assert_int_equal(array->asked_most, 4096);
    free(expected);
    free(array);
}

static void elements_that_are_not_stored_are_marked(void **state) {
    (void)state;
    test_array *array = make_counting(GBX_INT32, 2, (const int64_t[]){2, 3}, 5);
    array->stored = 4;
    check_print(array, "[[ 0  5 10]\n [15  ?  ?]]\n");
    array->dtype = GBX_BOOL;
    check_print(array, "[[False  True  True]\n [ True     ?     ?]]\n");
    array->dtype = GBX_FLOAT32;
    for (size_t i = 0; i < 4; ++i)
        array->bits[i] = gbx_dtype_from_f64(GBX_FLOAT32, (double)i / 4.0);
    check_print(array, "[[0.   0.25 0.5 ]\n [0.75    ?    ?]]\n");
    free(array);

    array = make_counting(GBX_INT32, 1, (const int64_t[]){4000}, 1);
    array->stored = 3999;
    check_print(array, "[   0    1    2 ... 3997 3998    ?]\n");
    assert_int_equal(array->asked_end, 3999);
    free(array);
}

static gbx_status fail_to_read(const void *context, uint64_t first, size_t count,
                               uint64_t *out_bits) {
    (void)context, (void)first, (void)count, (void)out_bits;
    return gbx_fail(GBX_IO, "the disk is gone");
}

static void failures_are_passed_on(void **state) {
    (void)state;
    test_array *array = make_array(GBX_INT32, 1, (const int64_t[]){COUNT_MAX});
    gbx_elements elements = elements_of(array);
    const gbx_array_text_options options = {.is_full = true, .line_width = 75};
    FILE *to = fopen("/dev/full", "w");
    assert_non_null(to);
    gbx_status status = gbx_array_print(to, &elements, &options);
    assert_int_equal(gbx_status_code(status), GBX_IO);
    assert_non_null(strstr(gbx_status_message(status), "No space left"));
    gbx_status_free(status);
    elements.read = fail_to_read;
    clearerr(to);
    status = gbx_array_print(to, &elements, &options);
    assert_string_equal(gbx_status_message(status), "the disk is gone");
    gbx_status_free(status);
    elements.dtype = GBX_DTYPE_NONE;
    status = gbx_array_print(to, &elements, &options);
    assert_int_equal(gbx_status_code(status), GBX_INVALID_ARGUMENT);
    gbx_status_free(status);
    fclose(to);
    free(array);
}

static void check_element(uint32_t dtype, double value, const char *expected) {
    char text[GBX_ELEMENT_TEXT_BYTES];
    const size_t length = gbx_element_format(dtype, gbx_dtype_from_f64(dtype, value), text);
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
}

static void elements_read_as_the_numbers_that_they_are(void **state) {
    (void)state;
    check_element(GBX_FLOAT64, 0.1, "0.1");
    check_element(GBX_FLOAT32, 0.1, "0.1");
    check_element(GBX_FLOAT16, 0.1, "0.099975586");
    check_element(GBX_BFLOAT16, 0.1, "0.100097656");
    check_element(GBX_FLOAT16, 65504.0, "65504.0");
    check_element(GBX_BFLOAT16, 0x1.fep127, "3.3895314e+38");
    check_element(GBX_BFLOAT16, -0x1p-133, "-9.1835e-41");
    check_element(GBX_FLOAT8_E4M3, 0x1p-9, "0.001953125");
    check_element(GBX_FLOAT8_E4M3, 448.0, "448.0");
    check_element(GBX_FLOAT8_E5M2, -INFINITY, "-inf");
    check_element(GBX_FLOAT8_E4M3, NAN, "nan");
    check_element(GBX_FLOAT16, -0.0, "-0.0");
    check_element(GBX_INT4, -8.0, "-8");
    check_element(GBX_UINT64, 0x1p63, "9223372036854775808");
    check_element(GBX_BOOL, 1.0, "True");
    check_element(GBX_BOOL, 0.0, "False");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_align_at_the_point),
        cmocka_unit_test(last_place_is_rounded_from_the_exact_value),
        cmocka_unit_test(floats_far_apart_have_exponents),
        cmocka_unit_test(others_than_numbers_align),
        cmocka_unit_test(narrow_floats_have_few_digits),
        cmocka_unit_test(integers_align_right),
        cmocka_unit_test(scalars_have_no_brackets),
        cmocka_unit_test(dimensions_are_blocks),
        cmocka_unit_test(long_rows_wrap),
        cmocka_unit_test(large_arrays_show_their_edges),
        cmocka_unit_test(only_edges_are_read),
        cmocka_unit_test(full_arrays_are_read_in_pieces),
        cmocka_unit_test(elements_that_are_not_stored_are_marked),
        cmocka_unit_test(failures_are_passed_on),
        cmocka_unit_test(elements_read_as_the_numbers_that_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
