#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/histogram.h"
#include "base/float_bits.h"

/* Counts are those of numpy.histogram; tests/array_text_numpy_test.py compares hundreds more. */

static gbx_status read_values(const void *context, uint64_t first, size_t count,
                              uint64_t *out_bits) {
    const double *values = context;
    for (size_t i = 0; i < count; ++i)
        out_bits[i] = gbx_f64_bits(values[first + i]);
    return NULL;
}

static gbx_histogram count(const double *values, size_t value_count, double low, double high,
                           size_t bin_count) {
    const gbx_elements elements = {.dtype = GBX_FLOAT64,
                                   .ndims = 1,
                                   .shape = {(int64_t)value_count},
                                   .count = value_count,
                                   .stored = value_count,
                                   .read = read_values,
                                   .context = values};
    gbx_histogram histogram;
    assert_null(gbx_histogram_count(&elements, low, high, bin_count, &histogram));
    return histogram;
}

static void check_counts(const gbx_histogram *histogram, size_t bin_count,
                         const uint64_t *expected) {
    uint64_t sum = 0;
    assert_int_equal(histogram->bin_count, bin_count);
    for (size_t i = 0; i < bin_count; ++i) {
        assert_int_equal(histogram->counts[i], expected[i]);
        sum += expected[i];
    }
    assert_int_equal(histogram->finite_count, sum);
}

static void bins_have_their_lower_end_and_the_last_both(void **state) {
    (void)state;
    const double values[] = {0.0, 1.0, 1.0, 2.0, 3.0, 4.0, 3.999, 0.999};
    const gbx_histogram histogram = count(values, 8, 0.0, 4.0, 4);
    check_counts(&histogram, 4, (const uint64_t[]){2, 2, 1, 3});
    assert_true(histogram.low == 0.0 && histogram.high == 4.0);
}

/* 0.3 * 10 is 3, but the edge, 3 * 0.1, is above 0.3. So are those at 0.6 and 0.7. */
static void edges_decide_and_not_the_division(void **state) {
    (void)state;
    const double values[] = {0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};
    const gbx_histogram histogram = count(values, 11, 0.0, 1.0, 10);
    check_counts(&histogram, 10, (const uint64_t[]){1, 1, 2, 0, 1, 2, 1, 0, 1, 2});
}

static void what_is_not_finite_or_outside_is_left_out(void **state) {
    (void)state;
    const double values[] = {NAN, INFINITY, -INFINITY, 1.0, 2.0, -1.0, 5.0};
    const gbx_histogram histogram = count(values, 7, 1.0, 2.0, 2);
    check_counts(&histogram, 2, (const uint64_t[]){1, 1});
}

static void one_value_is_one_bin(void **state) {
    (void)state;
    const double values[] = {3.0, 3.0, NAN};
    gbx_histogram histogram = count(values, 3, 3.0, 3.0, 64);
    check_counts(&histogram, 1, (const uint64_t[]){2});
    histogram = count(values, 0, 0.0, 0.0, 64);
    check_counts(&histogram, 1, (const uint64_t[]){0});
}

static void widest_and_narrowest_range_have_bins(void **state) {
    (void)state;
    const double wide[] = {-DBL_MAX, -1.0, 1.0, DBL_MAX};
    gbx_histogram histogram = count(wide, 4, -DBL_MAX, DBL_MAX, 4);
    check_counts(&histogram, 4, (const uint64_t[]){1, 1, 1, 1});
    const double tiny = 0x1p-1074;
    const double narrow[] = {0.0, tiny, 2 * tiny, 3 * tiny};
    histogram = count(narrow, 4, 0.0, 3 * tiny, 3);
    check_counts(&histogram, 3, (const uint64_t[]){1, 1, 2});
}

/* More than one chunk, another dtype, truncated: missing elements are not counted. */
static gbx_status read_codes(const void *context, uint64_t first, size_t count_asked,
                             uint64_t *out_bits) {
    assert_true(first + count_asked <= *(const uint64_t *)context);
    for (size_t i = 0; i < count_asked; ++i)
        out_bits[i] = (first + i) & 0xff;
    return NULL;
}

static void all_stored_elements_count(void **state) {
    (void)state;
    const uint64_t stored = 256 * 40 + 3;
    const gbx_elements elements = {.dtype = GBX_INT8,
                                   .ndims = 1,
                                   .shape = {100000},
                                   .count = 100000,
                                   .stored = stored,
                                   .read = read_codes,
                                   .context = &stored};
    gbx_histogram histogram;
    assert_null(gbx_histogram_count(&elements, -128.0, 127.0, 2, &histogram));
    check_counts(&histogram, 2, (const uint64_t[]){128 * 40, 128 * 40 + 3});
}

static void bins_that_cannot_be_are_refused(void **state) {
    (void)state;
    const double values[] = {1.0};
    const gbx_elements elements = {.dtype = GBX_FLOAT64, .read = read_values, .context = values};
    static const struct {
        double low;
        double high;
        size_t bin_count;
    } cases[] = {{0, 1, 0}, {0, 1, 65}, {1, 0, 4}, {NAN, 1, 4}, {0, INFINITY, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        gbx_histogram histogram;
        gbx_status status = gbx_histogram_count(&elements, cases[i].low, cases[i].high,
                                                cases[i].bin_count, &histogram);
        assert_int_equal(gbx_status_code(status), GBX_INVALID_ARGUMENT);
        gbx_status_free(status);
    }
}

static void bars_show_every_bin_that_is_not_empty(void **state) {
    (void)state;
    const gbx_histogram histogram = {.bin_count = 6, .counts = {0, 1, 250, 500, 1000, 0}};
    char text[GBX_HISTOGRAM_TEXT_BYTES];
    assert_string_equal(gbx_histogram_format(&histogram, true, text), " ▁▂▄█ ");
    assert_string_equal(gbx_histogram_format(&histogram, false, text), " .:=# ");
    const gbx_histogram empty = {.bin_count = 3};
    assert_string_equal(gbx_histogram_format(&empty, true, text), "   ");
}

static void widest_bars_fit(void **state) {
    (void)state;
    gbx_histogram histogram = {.bin_count = GBX_HISTOGRAM_BINS_MAX};
    for (size_t i = 0; i < GBX_HISTOGRAM_BINS_MAX; ++i)
        histogram.counts[i] = 7;
    char text[GBX_HISTOGRAM_TEXT_BYTES];
    assert_int_equal(strlen(gbx_histogram_format(&histogram, true, text)), 64 * strlen("█"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bins_have_their_lower_end_and_the_last_both),
        cmocka_unit_test(edges_decide_and_not_the_division),
        cmocka_unit_test(what_is_not_finite_or_outside_is_left_out),
        cmocka_unit_test(one_value_is_one_bin),
        cmocka_unit_test(widest_and_narrowest_range_have_bins),
        cmocka_unit_test(all_stored_elements_count),
        cmocka_unit_test(bins_that_cannot_be_are_refused),
        cmocka_unit_test(bars_show_every_bin_that_is_not_empty),
        cmocka_unit_test(widest_bars_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
