#include "analysis/view_find.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <glassbox/tensor.h>

enum { ROUNDS = 20000 };

/* A view with any strides: overlapping, backwards, of length 1, of no elements. */
static gbx_tensor random_view(unsigned *seed) {
    static const gbx_dtype dtypes[] = {GBX_INT4, GBX_INT8, GBX_BFLOAT16, GBX_FLOAT32, GBX_INT64};
    gbx_tensor view = {.dtype = dtypes[rand_r(seed) % 5], .ndims = (uint32_t)rand_r(seed) % 4};
    for (uint32_t d = 0; d < view.ndims; ++d) {
        view.shape[d] = rand_r(seed) % 50 == 0 ? 0 : 1 + rand_r(seed) % 5;
        view.strides[d] = rand_r(seed) % 25 - 12;
    }
    view.start_offset = rand_r(seed) % 200;
    return view;
}

static int64_t count_elements(const gbx_tensor *view) {
    int64_t count = 1;
    for (uint32_t d = 0; d < view->ndims; ++d)
        count *= view->shape[d];
    return count;
}

/* The first bit of an element, by its row-major number. */
static int64_t bit_of(const gbx_tensor *view, int64_t number) {
    int64_t position = view->start_offset;
    for (uint32_t d = view->ndims; d-- > 0; number /= view->shape[d])
        position += number % view->shape[d] * view->strides[d];
    return position * (int64_t)gbx_dtype_bits(view->dtype);
}

static bool shares(const gbx_tensor *view, int64_t number, int64_t begin, int64_t end) {
    int64_t first = bit_of(view, number);
    return first < end && begin < first + (int64_t)gbx_dtype_bits(view->dtype);
}

static void finds_what_a_walk_over_all_elements_finds(void **state) {
    (void)state;
    unsigned seed = 1;
    int found = 0, missed = 0;
    for (int round = 0; round < ROUNDS; ++round) {
        gbx_tensor view = random_view(&seed);
        int64_t begin = (rand_r(&seed) % 400 - 50) * 4, end = begin + 4 + rand_r(&seed) % 16 * 4;
        bool is_there = false;
        for (int64_t i = 0; i < count_elements(&view); ++i)
            is_there |= shares(&view, i, begin, end);
        gbx_view_element element;
        gbx_view_found got = gbx_view_find(&view, begin, end, &element);
        assert_int_equal(got, is_there ? GBX_VIEW_HAS_IT : GBX_VIEW_LACKS_IT);
        found += is_there;
        missed += !is_there;
        if (!is_there)
            continue;
        assert_true((int64_t)element.number < count_elements(&view));
        assert_true(shares(&view, (int64_t)element.number, begin, end));
        assert_int_equal(element.begin_bit, bit_of(&view, (int64_t)element.number));
        assert_int_equal(element.end_bit, element.begin_bit + (int64_t)gbx_dtype_bits(view.dtype));
    }
    assert_true(found > ROUNDS / 20);
    assert_true(missed > ROUNDS / 20);
}

/* A tile of a large matrix takes a few steps, not one for each element. */
static void large_tiles_are_decided(void **state) {
    (void)state;
    const int64_t width = INT64_C(1) << 20;
    gbx_tensor view = {.dtype = GBX_FLOAT32,
                       .ndims = 2,
                       .shape = {INT64_C(1) << 20, 1000},
                       .strides = {width, 1},
                       .start_offset = 5000};
    gbx_view_element element;
    int64_t row = 777777;
    int64_t inside = (5000 + row * width + 999) * 32;
    assert_int_equal(gbx_view_find(&view, inside, inside + 32, &element), GBX_VIEW_HAS_IT);
    assert_int_equal(element.number, row * 1000 + 999);
    assert_int_equal(gbx_view_find(&view, inside + 32, inside + 64, &element), GBX_VIEW_LACKS_IT);
}

/* Dimensions that reach the same place in very many ways, and never this one. */
static void gives_up_at_some_point(void **state) {
    (void)state;
    gbx_tensor view = {.dtype = GBX_INT8, .ndims = 4};
    for (uint32_t d = 0; d < view.ndims; ++d) {
        view.shape[d] = 1000;
        view.strides[d] = 2 + 2 * (int64_t)d;
    }
    gbx_view_element element;
    assert_int_equal(gbx_view_find(&view, 8 * 9001, 8 * 9002, &element), GBX_VIEW_UNDECIDED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_a_walk_over_all_elements_finds),
        cmocka_unit_test(large_tiles_are_decided),
        cmocka_unit_test(gives_up_at_some_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
