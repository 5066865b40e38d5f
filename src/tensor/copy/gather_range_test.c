/* Ranges of a payload, compared with a loop over its single bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "tensor/copy/gather_range.h"

#define GUARD_BYTES 96
#define POISON 0xa5

static uint64_t random_state = 1;

static uint64_t random_u64(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * UINT64_C(2685821657736338717);
}

static int64_t random_between(int64_t least, int64_t most) {
    return least + (int64_t)((random_u64() >> 11) % (uint64_t)(most - least + 1));
}

/* --- the reference --- */

static int64_t position_of(const gbx_tensor *tensor, uint64_t number) {
    int64_t position = tensor->start_offset;
    for (int d = (int)tensor->ndims - 1; d >= 0; --d) {
        position += (int64_t)(number % (uint64_t)tensor->shape[d]) * tensor->strides[d];
        number /= (uint64_t)tensor->shape[d];
    }
    return position;
}

static unsigned half_of(const unsigned char *buffer, int64_t position) {
    return position % 2 ? buffer[position / 2] >> 4 : buffer[position / 2] & 15u;
}

/* One byte of the payload, found independently. */
static unsigned char payload_byte(const gbx_tensor *tensor, const unsigned char *buffer,
                                  uint64_t at) {
    if (gbx_dtype_is_packed(tensor->dtype)) {
        uint64_t row = tensor->ndims > 0 ? (uint64_t)tensor->shape[tensor->ndims - 1] : 1;
        uint64_t row_bytes = (row + 1) / 2;
        uint64_t column = at % row_bytes * 2;
        uint64_t number = at / row_bytes * row + column;
        unsigned low = half_of(buffer, position_of(tensor, number));
        unsigned high = column + 1 < row ? half_of(buffer, position_of(tensor, number + 1)) : 0;
        return (unsigned char)(low | high << 4);
    }
    uint64_t bytes = gbx_dtype_bits(tensor->dtype) / 8;
    return buffer[(uint64_t)position_of(tensor, at / bytes) * bytes + at % bytes];
}

/* --- one view --- */

/* A buffer of the exact size, so that address sanitizer sees a byte too far; and its payload. */
typedef struct gathered {
    gbx_tensor tensor;
    unsigned char *buffer;
    unsigned char *payload;
    uint64_t bytes;
    uint64_t unit; /* ranges are multiples of it */
} gathered;

static gathered gathered_make(gbx_tensor tensor) {
    gathered made = {.tensor = tensor, .bytes = gbx_tensor_payload_bytes(&tensor)};
    int64_t first, end;
    gbx_tensor_extent(&tensor, &first, &end);
    made.unit = gbx_dtype_is_packed(tensor.dtype) ? 1 : gbx_dtype_bits(tensor.dtype) / 8;
    made.buffer = malloc(end > 0 ? (size_t)end : 1);
    made.payload = malloc(made.bytes > 0 ? made.bytes : 1);
    assert_non_null(made.buffer);
    assert_non_null(made.payload);
    for (int64_t i = 0; i < end; ++i)
        made.buffer[i] = (unsigned char)(random_u64() >> 40);
    for (uint64_t i = 0; i < made.bytes; ++i)
        made.payload[i] = payload_byte(&tensor, made.buffer, i);
    return made;
}

static void gathered_free(gathered *view) {
    free(view->buffer);
    free(view->payload);
}

/* Nothing around the range is written. */
static void check_range(const gathered *view, uint64_t first, uint64_t bytes) {
    size_t before = GUARD_BYTES + (size_t)(random_u64() >> 58);
    size_t size = before + (size_t)bytes + GUARD_BYTES;
    unsigned char *actual = malloc(size), *expected = malloc(size);
    assert_non_null(actual);
    assert_non_null(expected);
    memset(actual, POISON, size);
    memset(expected, POISON, size);
    memcpy(expected + before, view->payload + first, (size_t)bytes);
    gbx_tensor_gather_range(&view->tensor, view->buffer, first, bytes, actual + before);
    if (memcmp(actual, expected, size) != 0)
        assert_memory_equal(actual, expected, size);
    free(actual);
    free(expected);
}

static void check_random_range(const gathered *view) {
    uint64_t units = view->bytes / view->unit;
    uint64_t first = (uint64_t)random_between(0, (int64_t)units);
    uint64_t count = (uint64_t)random_between(0, (int64_t)(units - first));
    check_range(view, first * view->unit, count * view->unit);
}

/* Consecutive pieces, one buffer for all of them. */
static void check_chain(const gathered *view, uint64_t piece) {
    unsigned char *whole = malloc(view->bytes + GUARD_BYTES);
    assert_non_null(whole);
    memset(whole, POISON, view->bytes + GUARD_BYTES);
    for (uint64_t at = 0; at < view->bytes; at += piece) {
        uint64_t bytes = view->bytes - at < piece ? view->bytes - at : piece;
        gbx_tensor_gather_range(&view->tensor, view->buffer, at, bytes, whole + at);
    }
    if (memcmp(whole, view->payload, view->bytes) != 0)
        assert_memory_equal(whole, view->payload, view->bytes);
    for (size_t i = 0; i < GUARD_BYTES; ++i)
        assert_int_equal(whole[view->bytes + i], POISON);
    free(whole);
}

/* Moves the view to where its first byte is inside the buffer, `extra` elements in. */
static gbx_tensor placed(gbx_tensor tensor, int64_t extra) {
    tensor.start_offset = extra;
    for (uint32_t d = 0; d < tensor.ndims; ++d)
        if (tensor.strides[d] < 0 && tensor.shape[d] > 0)
            tensor.start_offset -= (tensor.shape[d] - 1) * tensor.strides[d];
    return tensor;
}

static void swap_dims(gbx_tensor *tensor, uint32_t a, uint32_t b) {
    int64_t shape = tensor->shape[a], stride = tensor->strides[a];
    tensor->shape[a] = tensor->shape[b];
    tensor->strides[a] = tensor->strides[b];
    tensor->shape[b] = shape;
    tensor->strides[b] = stride;
}

/* Row-major with gaps and backward runs; then, often, dimensions in another order or any strides at
 * all, 0 among them. */
static gbx_tensor random_view(uint32_t dtype, int64_t elements) {
    gbx_tensor tensor = {.dtype = dtype, .ndims = (uint32_t)random_between(0, GBX_MAX_DIMS)};
    int64_t span = 1;
    int form = (int)random_between(0, 3);
    for (uint32_t d = tensor.ndims; d-- > 0;) {
        int64_t most = elements < 9 || random_between(0, 3) == 0 ? elements : 9;
        tensor.shape[d] = random_between(0, 80) == 0 ? 0 : random_between(1, most < 1 ? 1 : most);
        elements /= tensor.shape[d] > 0 ? tensor.shape[d] : 1;
        tensor.strides[d] = form == 0 ? random_between(-20, 20) : span;
        if (form >= 2 && random_between(0, 2) == 0)
            tensor.strides[d] += random_between(0, 3);
        if (form >= 2 && random_between(0, 5) == 0)
            tensor.strides[d] = -tensor.strides[d];
        if (tensor.shape[d] > 0)
            span = 1 + (tensor.shape[d] - 1) * llabs(tensor.strides[d]);
        if (gbx_dtype_is_packed(dtype) && form == 1)
            span += span % 2;
    }
    for (uint32_t d = 0; form == 3 && d + 1 < tensor.ndims; ++d)
        swap_dims(&tensor, d, (uint32_t)random_between(d, tensor.ndims - 1));
    return placed(tensor, random_between(0, 3));
}

/* --- tests --- */

static void random_ranges_of_random_views(void **state) {
    (void)state;
    random_state = 77;
    int checked = 0, contiguous = 0, empty = 0;
    for (int i = 0; i < 16000; ++i) {
        gbx_tensor tensor = random_view((uint32_t)(1 + i % (GBX_DTYPE_COUNT - 1)), 600);
        int64_t first, end;
        gbx_tensor_extent(&tensor, &first, &end);
        if (end > 1 << 15)
            continue;
        gathered view = gathered_make(tensor);
        check_range(&view, 0, view.bytes);
        for (int k = 0; k < 12; ++k)
            check_random_range(&view);
        ++checked;
        contiguous += gbx_tensor_is_contiguous(&tensor);
        empty += view.bytes == 0;
        gathered_free(&view);
    }
    assert_true(checked > 12000);
    assert_true(contiguous > 1000 && contiguous < checked / 2);
    assert_true(empty > 100);
}

/* Every possible range of views, so that rows, planes and ends are crossed in all ways. */
static void all_ranges_of_small_views(void **state) {
    (void)state;
    const gbx_tensor views[] = {
        {.dtype = GBX_FLOAT16, .ndims = 3, .shape = {3, 4, 5}, .strides = {1, 3, 12}},
        {.dtype = GBX_INT4, .ndims = 3, .shape = {2, 3, 5}, .strides = {15, 5, 1}},
        {.dtype = GBX_INT4, .ndims = 3, .shape = {2, 3, 5}, .strides = {18, 6, 1}},
        {.dtype = GBX_INT4, .ndims = 2, .shape = {4, 8}, .strides = {10, 1}},
        {.dtype = GBX_INT4, .ndims = 2, .shape = {5, 7}, .strides = {1, 5}},
        {.dtype = GBX_INT4, .ndims = 1, .shape = {13}, .strides = {-3}},
        {.dtype = GBX_UINT8, .ndims = 4, .shape = {2, 1, 3, 7}, .strides = {0, 99, 20, 2}},
        {.dtype = GBX_FLOAT64, .ndims = 2, .shape = {4, 6}, .strides = {0, 0}},
        {.dtype = GBX_INT32,
         .ndims = 8,
         .shape = {2, 1, 2, 1, 2, 2, 1, 3},
         .strides = {1, 0, -2, 7, 4, 8, 0, 16}},
    };
    for (size_t v = 0; v < sizeof views / sizeof views[0]; ++v) {
        gathered view = gathered_make(placed(views[v], (int64_t)v % 3));
        for (uint64_t first = 0; first <= view.bytes; first += view.unit)
            for (uint64_t end = first; end <= view.bytes; end += view.unit)
                check_range(&view, first, end - first);
        gathered_free(&view);
    }
}

static void values_of_a_small_range(void **state) {
    (void)state;
    const uint16_t buffer[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    const gbx_tensor tensor = {
        .dtype = GBX_UINT16, .ndims = 2, .start_offset = 1, .shape = {2, 3}, .strides = {1, 4}};
    uint16_t part[5] = {77, 77, 77, 77, 77};
    gbx_tensor_gather_range(&tensor, buffer, 4, 6, part + 1);
    const uint16_t expected[5] = {77, 9, 2, 6, 77};
    assert_memory_equal(part, expected, sizeof expected);

    /* The padding of a row is 0, whatever the buffer holds there. */
    const unsigned char halves[4] = {0x21, 0xf3, 0x54, 0xe6};
    const gbx_tensor rows = {.dtype = GBX_INT4, .ndims = 2, .shape = {2, 3}, .strides = {4, 1}};
    unsigned char bytes[2];
    gbx_tensor_gather_range(&rows, halves, 1, 2, bytes);
    assert_int_equal(bytes[0], 0x03);
    assert_int_equal(bytes[1], 0x54);
}

static void zero_dimensions(void **state) {
    (void)state;
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype)
        for (int64_t start = 0; start < 4; ++start) {
            gathered view = gathered_make((gbx_tensor){.dtype = dtype, .start_offset = start});
            assert_true(view.bytes > 0);
            check_range(&view, 0, view.bytes);
            check_range(&view, view.bytes, 0);
            gathered_free(&view);
        }
}

static void pieces_make_up_the_whole(void **state) {
    (void)state;
    random_state = 4096;
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype) {
        const gbx_tensor views[] = {
            {.ndims = 2, .shape = {600, 1021}, .strides = {1, 600}},
            {.ndims = 2, .shape = {301, 2048}, .strides = {2050, 1}},
            {.ndims = 2, .shape = {301, 2049}, .strides = {2050, 1}},
            {.ndims = 1, .shape = {600001}, .strides = {-2}},
            {.ndims = 4, .shape = {7, 33, 4, 640}, .strides = {640, 4 * 7 * 640, 7 * 640, 1}},
            {.ndims = 3, .shape = {70, 90, 100}, .strides = {9001, 100, 1}},
            {.ndims = 3, .shape = {5, 300, 400}, .strides = {0, 1, 300}},
            {.ndims = 2, .shape = {300, 2000}, .strides = {2000, 1}},
        };
        static const uint64_t pieces[] = {4096, 16384, 262144};
        for (size_t v = 0; v < sizeof views / sizeof views[0]; ++v) {
            gbx_tensor tensor = views[v];
            tensor.dtype = dtype;
            gathered view = gathered_make(placed(tensor, (int64_t)v));
            for (size_t p = 0; p < sizeof pieces / sizeof pieces[0]; ++p)
                check_chain(&view, pieces[p]);
            gathered_free(&view);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_ranges_of_random_views),
        cmocka_unit_test(all_ranges_of_small_views),
        cmocka_unit_test(values_of_a_small_range),
        cmocka_unit_test(zero_dimensions),
        cmocka_unit_test(pieces_make_up_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
