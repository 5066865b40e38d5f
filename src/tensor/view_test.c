/* Properties of a view: validity, sizes, contiguity, extent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include <string.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

static gbx_tensor matrix(void) {
    gbx_tensor tensor = {.data = 0x7e9000000000,
                         .buffer_bytes = 4096,
                         .dtype = GBX_FLOAT32,
                         .ndims = 2,
                         .shape = {16, 64},
                         .strides = {64, 1}};
    return tensor;
}

static void assert_refused(const gbx_tensor *tensor, gbx_code code, const char *message) {
    gbx_status status = gbx_tensor_validate(tensor);
    assert_int_equal(gbx_status_code(status), code);
    assert_string_equal(gbx_status_message(status), message);
    gbx_status_free(status);
}

static const char *dtype_message(uint32_t dtype) {
    static char text[64];
    snprintf(text, sizeof text, "tensor: dtype is %u, expected 1 to %d", dtype,
             GBX_DTYPE_COUNT - 1);
    return text;
}

static void assert_accepted(const gbx_tensor *tensor) {
    gbx_status status = gbx_tensor_validate(tensor);
    assert_string_equal(gbx_status_message(status), "");
    assert_null(status);
}

static void validate_accepts_views_inside_their_buffer(void **state) {
    (void)state;
    gbx_tensor tensor = matrix();
    assert_accepted(&tensor);
    tensor.start_offset = 1023;
    tensor.strides[0] = -64;
    tensor.strides[1] = -1;
    assert_accepted(&tensor);
    tensor.strides[0] = tensor.strides[1] = 0;
    assert_accepted(&tensor);
    /* A stride that is never used may be anything. */
    tensor.shape[0] = 1;
    tensor.strides[0] = INT64_MIN;
    assert_accepted(&tensor);
    /* An empty view has no element to be outside. */
    tensor.shape[0] = 0;
    tensor.strides[1] = INT64_MAX;
    tensor.start_offset = 5000;
    assert_accepted(&tensor);
    gbx_tensor scalar = {.dtype = GBX_FLOAT64, .buffer_bytes = 8};
    assert_accepted(&scalar);
}

static void validate_names_the_field_that_is_wrong(void **state) {
    (void)state;
    gbx_tensor tensor = matrix();
    tensor.dtype = 255;
    assert_refused(&tensor, GBX_INVALID_ARGUMENT, dtype_message(255));
    tensor.dtype = GBX_DTYPE_NONE;
    assert_refused(&tensor, GBX_INVALID_ARGUMENT, dtype_message(0));
    tensor = matrix();
    tensor.ndims = 9;
    assert_refused(&tensor, GBX_INVALID_ARGUMENT, "tensor: ndims is 9, expected at most 8");
    tensor = matrix();
    tensor.shape[1] = -3;
    assert_refused(&tensor, GBX_INVALID_ARGUMENT, "tensor: shape[1] is -3, expected 0 or more");
    tensor = matrix();
    tensor.start_offset = -1;
    assert_refused(&tensor, GBX_OUT_OF_RANGE, "tensor: start_offset is -1, expected 0 or more");
}

static void validate_finds_elements_outside_the_buffer(void **state) {
    (void)state;
    gbx_tensor tensor = matrix();
    tensor.start_offset = 1;
    assert_refused(&tensor, GBX_OUT_OF_RANGE,
                   "tensor: elements end at byte 4100, expected at most 4096 (buffer_bytes)");
    tensor.buffer_bytes = 0;
    assert_accepted(&tensor);
    tensor.strides[1] = -1;
    assert_refused(&tensor, GBX_OUT_OF_RANGE,
                   "tensor: strides reach element -62, expected none before data");
    gbx_tensor halves = {.dtype = GBX_INT4,
                         .ndims = 1,
                         .shape = {5},
                         .strides = {2},
                         .start_offset = 1,
                         .buffer_bytes = 5};
    assert_accepted(&halves);
    halves.start_offset = 2;
    assert_refused(&halves, GBX_OUT_OF_RANGE,
                   "tensor: elements end at byte 6, expected at most 5 (buffer_bytes)");
}

static void views_inside_their_tensor_are_made(void **state) {
    (void)state;
    gbx_tensor whole = matrix();
    gbx_tensor view = gbx_view_slice(&whole, 1, 60, 4);
    assert_accepted(&view);
    assert_int_equal(view.start_offset, 60);
    assert_int_equal(view.shape[1], 4);
    view = gbx_view_slice(&whole, 0, 16, 0); /* nothing, at the very end */
    assert_accepted(&view);
    view = gbx_view_select(&whole, 0, 15);
    assert_accepted(&view);
    assert_int_equal(view.start_offset, 15 * 64);
    assert_int_equal(view.ndims, 1);
    assert_int_equal(view.shape[0], 64);
    view = gbx_view_transpose(&view, 0, 0);
    assert_accepted(&view);
    view = gbx_view_transpose(&whole, 0, 1);
    assert_int_equal(view.shape[0], 64);
    assert_int_equal(view.strides[0], 1);
}

static void an_impossible_view_says_what_was_asked(void **state) {
    (void)state;
    gbx_tensor whole = matrix();
    gbx_tensor view = gbx_view_slice(&whole, 1, 61, 4);
    assert_refused(&view, GBX_OUT_OF_RANGE,
                   "gbx_view_slice: start 61 with length 4 is outside dimension 1 of a tensor of "
                   "shape [16, 64]");
    /* What is made of it keeps the first reason. */
    gbx_tensor other = gbx_view_select(&view, 0, 3);
    other = gbx_view_transpose(&other, 0, 1);
    other = gbx_view_slice(&other, 0, 0, 1);
    assert_memory_equal(&other, &view, sizeof view);
    view = gbx_view_slice(&whole, 0, INT64_MIN, INT64_MAX);
    assert_refused(&view, GBX_OUT_OF_RANGE,
                   "gbx_view_slice: start -9223372036854775808 with length 9223372036854775807 is "
                   "outside dimension 0 of a tensor of shape [16, 64]");
    view = gbx_view_select(&whole, 0, 16);
    assert_refused(
        &view, GBX_OUT_OF_RANGE,
        "gbx_view_select: index 16 is outside dimension 0 of a tensor of shape [16, 64]");
    view = gbx_view_select(&whole, UINT32_MAX, 0);
    assert_refused(&view, GBX_OUT_OF_RANGE,
                   "gbx_view_select: a tensor of shape [16, 64] has no dimension 4294967295");
    view = gbx_view_transpose(&whole, 2, 0);
    assert_refused(&view, GBX_OUT_OF_RANGE,
                   "gbx_view_transpose: a tensor of shape [16, 64] has no dimension 2");
    gbx_tensor cell = {.data = 4096, .dtype = GBX_INT8};
    view = gbx_view_slice(&cell, 0, 0, 1);
    assert_refused(&view, GBX_OUT_OF_RANGE,
                   "gbx_view_slice: a tensor of shape [] has no dimension 0");
    /* A dtype with that bit that no view made. */
    whole.dtype |= GBX_IMPOSSIBLE_VIEW;
    assert_refused(&whole, GBX_INVALID_ARGUMENT, dtype_message(whole.dtype));
}

static void validate_survives_overflow(void **state) {
    (void)state;
    gbx_tensor tensor = matrix();
    tensor.buffer_bytes = 0;
    tensor.shape[0] = INT64_C(1) << 40;
    tensor.shape[1] = INT64_C(1) << 40;
    assert_refused(&tensor, GBX_OUT_OF_RANGE,
                   "tensor: shape has more float32 elements than 2^63 bytes hold");
    tensor.shape[0] = INT64_C(1) << 21;
    assert_refused(&tensor, GBX_OUT_OF_RANGE,
                   "tensor: shape has more float32 elements than 2^63 bytes hold");
    tensor = matrix();
    const char *beyond = "tensor: shape, strides and start_offset reach beyond 2^63 bytes";
    tensor.strides[0] = INT64_MAX / 2;
    assert_refused(&tensor, GBX_OUT_OF_RANGE, beyond);
    tensor.strides[0] = INT64_MAX / 30;
    assert_refused(&tensor, GBX_OUT_OF_RANGE, beyond);
    tensor = matrix();
    tensor.start_offset = INT64_MAX;
    assert_refused(&tensor, GBX_OUT_OF_RANGE, beyond);
    gbx_tensor last = {.dtype = GBX_UINT8, .start_offset = INT64_MAX};
    assert_refused(&last, GBX_OUT_OF_RANGE, beyond);
    tensor = matrix();
    tensor.data = UINT64_MAX - 100;
    assert_refused(&tensor, GBX_OUT_OF_RANGE,
                   "tensor: data is 0xffffffffffffff9b and elements end 4096 bytes after it, "
                   "expected an address below 2^64");
}

static void contiguous_is_row_major_over_its_buffer(void **state) {
    (void)state;
    const int64_t shape[3] = {2, 3, 5};
    gbx_tensor tensor;
    assert_null(gbx_tensor_contiguous(0x1234, GBX_FLOAT16, 3, shape, &tensor));
    gbx_tensor expected = {.data = 0x1234,
                           .buffer_bytes = 60,
                           .dtype = GBX_FLOAT16,
                           .ndims = 3,
                           .shape = {2, 3, 5},
                           .strides = {15, 5, 1}};
    assert_memory_equal(&tensor, &expected, sizeof tensor);
    assert_true(gbx_tensor_is_contiguous(&tensor));

    assert_null(gbx_tensor_contiguous(0, GBX_INT4, 3, shape, &tensor));
    assert_int_equal(tensor.buffer_bytes, 2 * 3 * 3);
    assert_int_equal(tensor.strides[0], 18);
    assert_int_equal(tensor.strides[1], 6);
    assert_int_equal(tensor.strides[2], 1);
    assert_true(gbx_tensor_is_contiguous(&tensor));

    assert_null(gbx_tensor_contiguous(0, GBX_FLOAT64, 0, NULL, &tensor));
    assert_int_equal(tensor.buffer_bytes, 8);
}

static void assert_not_contiguous(uint32_t dtype, uint32_t ndims, const int64_t *shape,
                                  gbx_code code) {
    gbx_tensor tensor;
    gbx_status status = gbx_tensor_contiguous(0, dtype, ndims, shape, &tensor);
    assert_int_equal(gbx_status_code(status), code);
    gbx_status_free(status);
}

static void contiguous_refuses_what_cannot_be(void **state) {
    (void)state;
    const int64_t shape[9] = {2, 2, 2, 2, 2, 2, 2, 2, 2};
    const int64_t negative[1] = {-1};
    const int64_t large[2] = {INT64_C(1) << 40, INT64_C(1) << 22};
    const int64_t empty_but_large[3] = {INT64_C(1) << 40, INT64_C(1) << 40, 0};
    assert_not_contiguous(0, 1, shape, GBX_INVALID_ARGUMENT);
    assert_not_contiguous(GBX_DTYPE_COUNT, 1, shape, GBX_INVALID_ARGUMENT);
    assert_not_contiguous(GBX_INT8, 9, shape, GBX_INVALID_ARGUMENT);
    assert_not_contiguous(GBX_INT8, 1, negative, GBX_INVALID_ARGUMENT);
    assert_not_contiguous(GBX_FLOAT32, 2, large, GBX_OUT_OF_RANGE);
    assert_not_contiguous(GBX_FLOAT32, 3, empty_but_large, GBX_OUT_OF_RANGE);
}

static void sizes_of_payloads(void **state) {
    (void)state;
    gbx_tensor tensor = {.dtype = GBX_INT4};
    assert_int_equal(gbx_tensor_numel(&tensor), 1);
    assert_int_equal(gbx_tensor_payload_bytes(&tensor), 1);
    tensor.ndims = 2;
    tensor.shape[0] = 7;
    tensor.shape[1] = 5;
    assert_int_equal(gbx_tensor_numel(&tensor), 35);
    assert_int_equal(gbx_tensor_payload_bytes(&tensor), 21);
    tensor.dtype = GBX_FLOAT64;
    assert_int_equal(gbx_tensor_payload_bytes(&tensor), 280);
    tensor.dtype = GBX_BOOL;
    assert_int_equal(gbx_tensor_payload_bytes(&tensor), 35);
    tensor.shape[0] = 0;
    tensor.shape[1] = INT64_MAX;
    assert_int_equal(gbx_tensor_numel(&tensor), 0);
    assert_int_equal(gbx_tensor_payload_bytes(&tensor), 0);
}

static void contiguity_ignores_strides_never_taken(void **state) {
    (void)state;
    gbx_tensor tensor = matrix();
    tensor.start_offset = 3;
    assert_true(gbx_tensor_is_contiguous(&tensor));
    tensor.strides[0] = 65;
    assert_false(gbx_tensor_is_contiguous(&tensor));
    tensor.shape[0] = 1;
    assert_true(gbx_tensor_is_contiguous(&tensor));
    tensor.strides[1] = 2;
    assert_false(gbx_tensor_is_contiguous(&tensor));
    tensor.strides[1] = -1;
    assert_false(gbx_tensor_is_contiguous(&tensor));
    tensor.shape[0] = 0;
    assert_true(gbx_tensor_is_contiguous(&tensor));
    gbx_tensor scalar = {.dtype = GBX_INT8, .start_offset = 5};
    assert_true(gbx_tensor_is_contiguous(&scalar));
}

static void contiguity_of_int4_is_that_of_its_payload(void **state) {
    (void)state;
    gbx_tensor tensor = {.dtype = GBX_INT4, .ndims = 2, .shape = {3, 5}, .strides = {6, 1}};
    assert_true(gbx_tensor_is_contiguous(&tensor));
    tensor.start_offset = 4;
    assert_true(gbx_tensor_is_contiguous(&tensor));
    tensor.start_offset = 3;
    assert_false(gbx_tensor_is_contiguous(&tensor));
    tensor.start_offset = 0;
    tensor.strides[0] = 5;
    assert_false(gbx_tensor_is_contiguous(&tensor));
    gbx_tensor column = {.dtype = GBX_INT4, .ndims = 2, .shape = {4, 1}, .strides = {2, 1}};
    assert_true(gbx_tensor_is_contiguous(&column));
    gbx_tensor scalar = {.dtype = GBX_INT4, .start_offset = 1};
    assert_false(gbx_tensor_is_contiguous(&scalar));
}

static void assert_extent(const gbx_tensor *tensor, int64_t first, int64_t end) {
    int64_t actual_first = -1, actual_end = -1;
    gbx_tensor_extent(tensor, &actual_first, &actual_end);
    assert_int_equal(actual_first, first);
    assert_int_equal(actual_end, end);
}

static void extent_covers_the_elements(void **state) {
    (void)state;
    gbx_tensor tensor = matrix();
    assert_extent(&tensor, 0, 4096);
    tensor.start_offset = 1000;
    tensor.strides[0] = -50;
    tensor.strides[1] = 2;
    assert_extent(&tensor, (1000 - 15 * 50) * 4, (1000 + 63 * 2 + 1) * 4);
    tensor.strides[0] = tensor.strides[1] = 0;
    assert_extent(&tensor, 4000, 4004);
    tensor.shape[1] = 0;
    assert_extent(&tensor, 0, 0);
    gbx_tensor halves = {
        .dtype = GBX_INT4, .ndims = 1, .shape = {3}, .strides = {-2}, .start_offset = 7};
    assert_extent(&halves, 1, 4);
    halves.strides[0] = 1;
    assert_extent(&halves, 3, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_accepts_views_inside_their_buffer),
        cmocka_unit_test(validate_names_the_field_that_is_wrong),
        cmocka_unit_test(validate_finds_elements_outside_the_buffer),
        cmocka_unit_test(validate_survives_overflow),
        cmocka_unit_test(views_inside_their_tensor_are_made),
        cmocka_unit_test(an_impossible_view_says_what_was_asked),
        cmocka_unit_test(contiguous_is_row_major_over_its_buffer),
        cmocka_unit_test(contiguous_refuses_what_cannot_be),
        cmocka_unit_test(sizes_of_payloads),
        cmocka_unit_test(contiguity_ignores_strides_never_taken),
        cmocka_unit_test(contiguity_of_int4_is_that_of_its_payload),
        cmocka_unit_test(extent_covers_the_elements),
    };
    return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
