/* Gather and scatter, at every level of the processor, compared with a loop over single
 * elements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <glassbox/tensor.h>

#include "tensor/copy/strided_copy.h"

#define GUARD_BYTES 128
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

static void fill_random(unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; ++i)
        bytes[i] = (unsigned char)(random_u64() >> 40);
}

/* --- the reference --- */

/* Position of the element with a row-major number, in elements after the buffer's start. */
static int64_t naive_position(const gbx_tensor *tensor, uint64_t number) {
    int64_t position = tensor->start_offset;
    for (int d = (int)tensor->ndims - 1; d >= 0; --d) {
        position += (int64_t)(number % (uint64_t)tensor->shape[d]) * tensor->strides[d];
        number /= (uint64_t)tensor->shape[d];
    }
    return position;
}

/* The same in the payload, where rows of int4 start at a byte. */
static int64_t naive_payload_position(const gbx_tensor *tensor, uint64_t number) {
    if (!gbx_dtype_is_packed(tensor->dtype) || tensor->ndims == 0)
        return (int64_t)number;
    uint64_t row = (uint64_t)tensor->shape[tensor->ndims - 1];
    return (int64_t)(number / row * (row + row % 2) + number % row);
}

static void naive_move(uint32_t bits, const unsigned char *from, int64_t from_at, unsigned char *to,
                       int64_t to_at) {
    if (bits == 4) {
        unsigned byte_read = from[from_at / 2];
        unsigned half = from_at % 2 ? byte_read >> 4 : byte_read & 15u;
        unsigned char *byte = &to[to_at / 2];
        *byte = (unsigned char)(to_at % 2 ? (*byte & 15u) | half << 4 : (*byte & 0xf0u) | half);
        return;
    }
    for (uint32_t b = 0; b < bits / 8; ++b)
        to[to_at * (bits / 8) + b] = from[from_at * (bits / 8) + b];
}

static uint64_t naive_numel(const gbx_tensor *tensor) {
    uint64_t count = 1;
    for (uint32_t d = 0; d < tensor->ndims; ++d)
        count *= (uint64_t)tensor->shape[d];
    return count;
}

static void naive_gather(const gbx_tensor *tensor, const unsigned char *buffer,
                         unsigned char *payload) {
    for (uint64_t n = 0; n < naive_numel(tensor); ++n)
        naive_move(gbx_dtype_bits(tensor->dtype), buffer, naive_position(tensor, n), payload,
                   naive_payload_position(tensor, n));
}

static void naive_scatter(const gbx_tensor *tensor, const unsigned char *payload,
                          unsigned char *buffer) {
    for (uint64_t n = 0; n < naive_numel(tensor); ++n)
        naive_move(gbx_dtype_bits(tensor->dtype), payload, naive_payload_position(tensor, n),
                   buffer, naive_position(tensor, n));
}

/* --- checking one view --- */

/* Heap blocks of the exact size, so that address sanitizer sees a byte too far; `shift` moves the
 * bytes away from the block's alignment. */
typedef struct memory {
    unsigned char *block;
    unsigned char *bytes;
    size_t block_bytes;
} memory;

static memory memory_make(size_t size, size_t before, size_t after) {
    memory made = {.block_bytes = before + size + after};
    made.block = malloc(made.block_bytes > 0 ? made.block_bytes : 1);
    assert_non_null(made.block);
    memset(made.block, POISON, made.block_bytes);
    made.bytes = made.block + before;
    return made;
}

static void assert_same(const memory *actual, const memory *expected) {
    if (memcmp(actual->block, expected->block, actual->block_bytes) != 0)
        assert_memory_equal(actual->block, expected->block, actual->block_bytes);
}

static size_t view_end(const gbx_tensor *tensor) {
    int64_t first, end;
    gbx_tensor_extent(tensor, &first, &end);
    assert_true(first >= 0);
    return (size_t)end;
}

static void check_gather(const gbx_tensor *tensor, size_t shift) {
    size_t end = view_end(tensor), size = gbx_tensor_payload_bytes(tensor);
    memory source = memory_make(end, 0, 0);
    fill_random(source.bytes, end);
    memory expected = memory_make(size, GUARD_BYTES + shift, GUARD_BYTES);
    memset(expected.bytes, 0, size);
    naive_gather(tensor, source.bytes, expected.bytes);
    for (gbx_cpu_level level = GBX_CPU_PLAIN; level <= gbx_cpu_level_detect(); ++level) {
        memory actual = memory_make(size, GUARD_BYTES + shift, GUARD_BYTES);
        gbx_tensor_gather_at(level, tensor, source.bytes, actual.bytes);
        assert_same(&actual, &expected);
        free(actual.block);
    }
    free(expected.block);
    free(source.block);
}

static void check_scatter(const gbx_tensor *tensor, size_t shift) {
    size_t end = view_end(tensor), size = gbx_tensor_payload_bytes(tensor);
    memory source = memory_make(size, 0, 0);
    fill_random(source.bytes, size);
    memory expected = memory_make(end, GUARD_BYTES + shift, GUARD_BYTES);
    naive_scatter(tensor, source.bytes, expected.bytes);
    for (gbx_cpu_level level = GBX_CPU_PLAIN; level <= gbx_cpu_level_detect(); ++level) {
        memory actual = memory_make(end, GUARD_BYTES + shift, GUARD_BYTES);
        gbx_tensor_scatter_at(level, tensor, source.bytes, actual.bytes);
        assert_same(&actual, &expected);
        free(actual.block);
    }
    free(expected.block);
    free(source.block);
}

static void check_both(const gbx_tensor *tensor, size_t shift) {
    check_gather(tensor, shift);
    check_scatter(tensor, shift);
}

/* Moves the view to where its first byte is inside the buffer, `extra` elements in. */
static gbx_tensor placed(gbx_tensor tensor, int64_t extra) {
    tensor.start_offset = extra;
    for (uint32_t d = 0; d < tensor.ndims; ++d)
        if (tensor.strides[d] < 0 && tensor.shape[d] > 0)
            tensor.start_offset -= (tensor.shape[d] - 1) * tensor.strides[d];
    return tensor;
}

static gbx_tensor view_2d(uint32_t dtype, int64_t rows, int64_t columns, int64_t row_stride,
                          int64_t column_stride) {
    gbx_tensor tensor = {.dtype = dtype,
                         .ndims = 2,
                         .shape = {rows, columns},
                         .strides = {row_stride, column_stride}};
    return placed(tensor, 0);
}

/* One dtype of each width, int4 included. */
static const uint32_t widths[] = {GBX_INT4, GBX_UINT8, GBX_BFLOAT16, GBX_FLOAT32, GBX_INT64};
#define WIDTHS (sizeof widths / sizeof widths[0])

/* --- tests --- */

static void contiguous_of_every_dtype(void **state) {
    (void)state;
    const int64_t shape[3] = {3, 5, 7};
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype)
        for (uint32_t ndims = 0; ndims <= 3; ++ndims) {
            gbx_tensor tensor;
            assert_null(gbx_tensor_contiguous(0x1000, dtype, ndims, shape, &tensor));
            check_both(&tensor, dtype % 5);
        }
}

static void values_of_a_small_view(void **state) {
    (void)state;
    const uint16_t buffer[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    gbx_tensor tensor = {
        .dtype = GBX_UINT16, .ndims = 2, .start_offset = 1, .shape = {2, 3}, .strides = {1, 4}};
    uint16_t payload[6];
    gbx_tensor_gather(&tensor, buffer, payload);
    const uint16_t expected[6] = {1, 5, 9, 2, 6, 10};
    assert_memory_equal(payload, expected, sizeof expected);

    uint16_t back[12] = {0};
    gbx_tensor_scatter(&tensor, payload, back);
    const uint16_t scattered[12] = {0, 1, 2, 0, 0, 5, 6, 0, 0, 9, 10, 0};
    assert_memory_equal(back, scattered, sizeof scattered);
}

static void empty_views_write_nothing(void **state) {
    (void)state;
    for (size_t w = 0; w < WIDTHS; ++w)
        for (uint32_t ndims = 1; ndims <= GBX_MAX_DIMS; ++ndims)
            for (uint32_t zero = 0; zero < ndims; ++zero) {
                gbx_tensor tensor = {.dtype = widths[w], .ndims = ndims};
                for (uint32_t d = 0; d < ndims; ++d) {
                    tensor.shape[d] = d == zero ? 0 : 3;
                    tensor.strides[d] = 1 + d;
                }
                check_both(&tensor, 0);
            }
}

static void rows_of_every_length(void **state) {
    (void)state;
    for (int64_t length = 1; length <= 300; ++length) {
        gbx_tensor tensor = view_2d(GBX_UINT8, 5, length, length + 13, 1);
        check_both(&tensor, (size_t)(length % 64));
        tensor = view_2d(GBX_FLOAT32, 4, length, -(length + 1), 1);
        check_both(&tensor, (size_t)(length % 3));
    }
}

static void steps_of_every_width(void **state) {
    (void)state;
    const int64_t counts[] = {1, 2, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 129, 260};
    for (size_t w = 0; w < WIDTHS; ++w)
        for (int64_t step = -9; step <= 9; ++step)
            for (size_t c = 0; c < sizeof counts / sizeof counts[0]; ++c)
                for (int64_t rows = 1; rows <= 3; rows += 2) {
                    gbx_tensor tensor =
                        view_2d(widths[w], rows, counts[c], 10 * counts[c] + 3, step);
                    check_both(&tensor, c * 4 + (w == 1 ? 1 : 0));
                }
}

/* 40 elements over more than 10 GiB of address space, of which only their pages exist. */
static void steps_beyond_32_bits(void **state) {
    (void)state;
    const int64_t count = 40, step = (INT64_C(1) << 26) + 3;
    size_t size = (size_t)(count * step) * sizeof(uint32_t);
    uint32_t *buffer = mmap(NULL, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (buffer == MAP_FAILED)
        skip();
    for (int64_t i = 0; i < count; ++i)
        buffer[i * step] = (uint32_t)(i + 1);
    gbx_tensor tensor = {.dtype = GBX_UINT32, .ndims = 1, .shape = {count}, .strides = {step}};
    for (gbx_cpu_level level = GBX_CPU_PLAIN; level <= gbx_cpu_level_detect(); ++level) {
        uint32_t payload[40] = {0};
        gbx_tensor_gather_at(level, &tensor, buffer, payload);
        for (int64_t i = 0; i < count; ++i)
            assert_int_equal(payload[i], i + 1);
    }
    munmap(buffer, size);
}

static void transpositions_of_awkward_sizes(void **state) {
    (void)state;
    const int64_t sizes[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 130};
    size_t count = sizeof sizes / sizeof sizes[0];
    for (size_t w = 0; w < WIDTHS; ++w)
        for (size_t r = 0; r < count; ++r)
            for (size_t c = 0; c < count; ++c) {
                gbx_tensor tensor =
                    view_2d(widths[w], sizes[r], sizes[c], 1, sizes[r] + (int64_t)(r % 3));
                check_both(&tensor, (r * 8 + c) % 64);
                tensor = view_2d(widths[w], sizes[r], sizes[c], -1, sizes[r]);
                check_both(&tensor, 3);
                tensor = view_2d(widths[w], sizes[r], sizes[c], 1, -sizes[r] - 1);
                check_both(&tensor, 0);
                tensor = view_2d(widths[w], sizes[r], sizes[c], 2, 2 * sizes[r] + 1);
                check_both(&tensor, 8);
            }
}

static void permutations_of_four_dimensions(void **state) {
    (void)state;
    const int64_t shape[4] = {3, 18, 5, 4};
    const int64_t strides[4] = {18 * 5 * 4, 5 * 4, 4, 1};
    for (size_t w = 0; w < WIDTHS; ++w)
        for (int code = 0; code < 256; ++code) {
            int order[4] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6};
            if ((1 << order[0] | 1 << order[1] | 1 << order[2] | 1 << order[3]) != 15)
                continue;
            gbx_tensor tensor = {.dtype = widths[w], .ndims = 4};
            for (int d = 0; d < 4; ++d) {
                tensor.shape[d] = shape[order[d]];
                tensor.strides[d] = strides[order[d]];
            }
            check_both(&tensor, 16);
        }
}

static void broadcasts(void **state) {
    (void)state;
    for (size_t w = 0; w < WIDTHS; ++w) {
        gbx_tensor tensor = view_2d(widths[w], 9, 70, 0, 1);
        check_both(&tensor, 1);
        tensor = view_2d(widths[w], 70, 40, 1, 0);
        check_both(&tensor, 2);
        tensor = view_2d(widths[w], 5, 33, 0, 0);
        check_both(&tensor, 3);
        tensor = view_2d(widths[w], 20, 33, -3, 0);
        check_both(&tensor, 4);
    }
}

/* Rows of a sliding window overlap: the result depends on the order of a scatter. */
static void scatter_keeps_the_last_of_overlapping_elements(void **state) {
    (void)state;
    const float payload[6] = {1, 2, 3, 4, 5, 6};
    gbx_tensor tensor = {.dtype = GBX_FLOAT32, .ndims = 2, .shape = {2, 3}, .strides = {1, 1}};
    float buffer[5] = {0, 0, 0, 0, 9};
    gbx_tensor_scatter(&tensor, payload, buffer);
    const float windows[5] = {1, 4, 5, 6, 9};
    assert_memory_equal(buffer, windows, sizeof windows);

    tensor.strides[0] = 0;
    gbx_tensor_scatter(&tensor, payload, buffer);
    const float rows[5] = {4, 5, 6, 6, 9};
    assert_memory_equal(buffer, rows, sizeof rows);

    for (size_t w = 0; w < WIDTHS; ++w)
        for (int64_t row = -40; row <= 40; ++row) {
            tensor = view_2d(widths[w], 6, 37, row, row % 3 + 1);
            check_scatter(&tensor, 5);
            tensor = view_2d(widths[w], 37, 4, row, -1);
            check_scatter(&tensor, 0);
        }
}

static gbx_tensor random_view(void) {
    gbx_tensor tensor = {.dtype = (uint32_t)random_between(1, GBX_DTYPE_COUNT - 1),
                         .ndims = (uint32_t)random_between(0, GBX_MAX_DIMS)};
    int64_t budget = 600;
    int64_t row_major = 1;
    bool is_tame = random_between(0, 1);
    for (uint32_t d = tensor.ndims; d-- > 0;) {
        int64_t most = budget < 6 || random_between(0, 3) == 0 ? budget : 6;
        tensor.shape[d] = random_between(0, 40) == 0 ? 0 : random_between(1, most < 1 ? 1 : most);
        budget /= tensor.shape[d] > 0 ? tensor.shape[d] : 1;
        tensor.strides[d] = is_tame ? row_major * random_between(1, 2) : random_between(-20, 20);
        if (random_between(0, 5) == 0)
            tensor.strides[d] = -tensor.strides[d];
        row_major = 1 + (tensor.shape[d] > 0 ? tensor.shape[d] - 1 : 0) *
                            (tensor.strides[d] < 0 ? -tensor.strides[d] : tensor.strides[d]);
    }
    for (uint32_t d = 0; is_tame && d + 1 < tensor.ndims; ++d) {
        uint32_t e = (uint32_t)random_between(d, tensor.ndims - 1);
        int64_t shape = tensor.shape[d], stride = tensor.strides[d];
        tensor.shape[d] = tensor.shape[e];
        tensor.strides[d] = tensor.strides[e];
        tensor.shape[e] = shape;
        tensor.strides[e] = stride;
    }
    return placed(tensor, random_between(0, 3));
}

static void random_views(void **state) {
    (void)state;
    random_state = 20240229;
    int checked = 0;
    for (int i = 0; i < 40000; ++i) {
        gbx_tensor tensor = random_view();
        if (view_end(&tensor) > 1 << 15)
            continue;
        check_both(&tensor, (size_t)random_between(0, 63));
        ++checked;
    }
    assert_true(checked > 30000);
}

/* Large enough to bypass the cache, starting at a cache line or not. */
static void large_views_stream(void **state) {
    (void)state;
    const gbx_tensor views[] = {
        view_2d(GBX_UINT8, 1, (4 << 20) + 77, 0, 1),   view_2d(GBX_FLOAT32, 16500, 64, 128, 1),
        view_2d(GBX_FLOAT16, 2100, 1001, 1003, 1),     view_2d(GBX_FLOAT32, 60, 20001, 20003, 1),
        view_2d(GBX_FLOAT32, 1, (1 << 20) + 13, 0, 2), view_2d(GBX_FLOAT16, 3, 800003, 1600009, 2),
        view_2d(GBX_FLOAT64, 2, 300001, 600009, 2),    view_2d(GBX_UINT8, 1, (4 << 20) + 5, 0, 2),
        view_2d(GBX_FLOAT32, 1, (1 << 20) + 5, 0, -3), view_2d(GBX_FLOAT32, 1040, 1024, 1, 1040),
        view_2d(GBX_FLOAT32, 1027, 1040, 1, 1029),     view_2d(GBX_FLOAT16, 1030, 2080, 1, 1031),
        view_2d(GBX_UINT8, 2050, 2112, 1, 2051),       view_2d(GBX_FLOAT64, 700, 800, -1, 701),
    };
    for (size_t v = 0; v < sizeof views / sizeof views[0]; ++v)
        for (size_t shift = 0; shift <= 48; shift += 24)
            check_both(&views[v], shift + (shift == 24 ? 1 : 0));
}

static void int4_fills_up_rows_with_zero(void **state) {
    (void)state;
    const unsigned char buffer[4] = {0x21, 0x43, 0x65, 0x87};
    gbx_tensor tensor = {.dtype = GBX_INT4, .ndims = 2, .shape = {2, 3}, .strides = {3, 1}};
    unsigned char payload[4];
    gbx_tensor_gather(&tensor, buffer, payload);
    const unsigned char rows[4] = {0x21, 0x03, 0x54, 0x06};
    assert_memory_equal(payload, rows, sizeof rows);

    unsigned char back[4] = {0xff, 0xff, 0xff, 0xff};
    gbx_tensor_scatter(&tensor, payload, back);
    const unsigned char scattered[4] = {0x21, 0x43, 0x65, 0xff};
    assert_memory_equal(back, scattered, sizeof scattered);

    gbx_tensor one = {.dtype = GBX_INT4, .start_offset = 5};
    gbx_tensor_gather(&one, buffer, payload);
    assert_int_equal(payload[0], 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contiguous_of_every_dtype),
        cmocka_unit_test(values_of_a_small_view),
        cmocka_unit_test(empty_views_write_nothing),
        cmocka_unit_test(rows_of_every_length),
        cmocka_unit_test(steps_of_every_width),
        cmocka_unit_test(steps_beyond_32_bits),
        cmocka_unit_test(transpositions_of_awkward_sizes),
        cmocka_unit_test(permutations_of_four_dimensions),
        cmocka_unit_test(broadcasts),
        cmocka_unit_test(scatter_keeps_the_last_of_overlapping_elements),
        cmocka_unit_test(random_views),
        cmocka_unit_test(large_views_stream),
        cmocka_unit_test(int4_fills_up_rows_with_zero),
    };
    return cmocka_run_group_tests_name("gather", tests, NULL, NULL);
}
