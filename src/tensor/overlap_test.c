/* Whether two views share a byte, compared with the sets of their bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include <glassbox/tensor.h>

#define BASE UINT64_C(0x7e9000000000)
#define SPACE_BYTES 8192

static uint64_t random_state = 1;

static int64_t random_between(int64_t least, int64_t most) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    uint64_t mixed = random_state * UINT64_C(2685821657736338717);
    return least + (int64_t)((mixed >> 11) % (uint64_t)(most - least + 1));
}

/* --- the reference: marks every byte of a view, addresses counted from BASE --- */

static uint64_t naive_numel(const gbx_tensor *tensor) {
    uint64_t count = 1;
    for (uint32_t d = 0; d < tensor->ndims; ++d)
        count *= (uint64_t)tensor->shape[d];
    return count;
}

static void mark_bytes(const gbx_tensor *tensor, bool marks[SPACE_BYTES]) {
    memset(marks, 0, SPACE_BYTES);
    for (uint64_t n = 0; n < naive_numel(tensor); ++n) {
        uint64_t number = n;
        int64_t position = tensor->start_offset;
        for (int d = (int)tensor->ndims - 1; d >= 0; --d) {
            position += (int64_t)(number % (uint64_t)tensor->shape[d]) * tensor->strides[d];
            number /= (uint64_t)tensor->shape[d];
        }
        int64_t bits = gbx_dtype_bits(tensor->dtype);
        int64_t at = (int64_t)(tensor->data - BASE) + position * bits / 8;
        for (int64_t b = 0; b < (bits + 7) / 8; ++b) {
            assert_true(at + b >= 0 && at + b < SPACE_BYTES);
            marks[at + b] = true;
        }
    }
}

static bool naive_overlaps(const gbx_tensor *a, const gbx_tensor *b) {
    static bool of_a[SPACE_BYTES], of_b[SPACE_BYTES];
    mark_bytes(a, of_a);
    mark_bytes(b, of_b);
    for (size_t i = 0; i < SPACE_BYTES; ++i)
        if (of_a[i] && of_b[i])
            return true;
    return false;
}

static bool check(const gbx_tensor *a, const gbx_tensor *b) {
    bool expected = naive_overlaps(a, b);
    assert_int_equal(gbx_tensor_overlaps(a, b), expected);
    assert_int_equal(gbx_tensor_overlaps(b, a), expected);
    return expected;
}

static gbx_tensor view(uint32_t dtype, int64_t start, int64_t rows, int64_t columns,
                       int64_t row_stride, int64_t column_stride) {
    gbx_tensor tensor = {.data = BASE,
                         .dtype = dtype,
                         .ndims = 2,
                         .start_offset = start,
                         .shape = {rows, columns},
                         .strides = {row_stride, column_stride}};
    return tensor;
}

/* --- tests --- */

static void tiles_of_a_matrix(void **state) {
    (void)state;
    for (int64_t row = 0; row < 16; ++row)
        for (int64_t column = 0; column < 16; ++column) {
            gbx_tensor a = view(GBX_FLOAT32, 5 * 32 + 8, 4, 8, 32, 1);
            gbx_tensor b = view(GBX_FLOAT32, row * 32 + column, 3, 5, 32, 1);
            bool meets = row < 9 && row + 3 > 5 && column < 16 && column + 5 > 8;
            assert_int_equal(check(&a, &b), meets);
        }
}

static void interleaved_columns_and_steps(void **state) {
    (void)state;
    gbx_tensor even = view(GBX_FLOAT16, 0, 8, 16, 32, 2);
    gbx_tensor odd = view(GBX_FLOAT16, 1, 8, 16, 32, 2);
    assert_false(check(&even, &odd));
    assert_true(check(&even, &even));
    /* Bytes of a wider type between them. */
    gbx_tensor wide = view(GBX_FLOAT32, 0, 1, 3, 0, 4);
    assert_true(check(&odd, &wide));
    gbx_tensor third = view(GBX_UINT8, 0, 1, 20, 0, 3), fifth = view(GBX_UINT8, 1, 1, 20, 0, 5);
    assert_true(check(&third, &fifth));
    gbx_tensor sixth = view(GBX_UINT8, 1, 1, 20, 0, 6), fourth = view(GBX_UINT8, 2, 1, 20, 0, 4);
    assert_false(check(&sixth, &fourth));
}

static void columns_of_a_large_matrix(void **state) {
    (void)state;
    /* Too large to mark: 65536 x 65536 float32, whose columns share no byte. */
    gbx_tensor left = view(GBX_FLOAT32, 0, 65536, 100, 65536, 1);
    gbx_tensor right = view(GBX_FLOAT32, 100, 65536, 100, 65536, 1);
    assert_false(gbx_tensor_overlaps(&left, &right));
    right.start_offset = 99;
    assert_true(gbx_tensor_overlaps(&left, &right));
    gbx_tensor row = view(GBX_FLOAT32, INT64_C(65536) * 40000 + 100, 1, 65436, 65536, 1);
    assert_false(gbx_tensor_overlaps(&left, &row));
    assert_true(gbx_tensor_overlaps(&right, &row));
    gbx_tensor transposed = view(GBX_FLOAT32, 100, 100, 65536, 1, 65536);
    assert_false(gbx_tensor_overlaps(&left, &transposed));
    transposed.start_offset = 99;
    assert_true(gbx_tensor_overlaps(&left, &transposed));
}

static void addresses_are_absolute(void **state) {
    (void)state;
    gbx_tensor a = view(GBX_FLOAT32, 0, 4, 4, 16, 1);
    gbx_tensor b = a;
    b.data += 16;
    assert_false(check(&a, &b));
    b.data -= 1;
    assert_true(check(&a, &b));
    b.data += 1 + 64 * 4;
    assert_false(check(&a, &b));
    a.data = 0;
    b.data = UINT64_MAX - 4096;
    assert_false(gbx_tensor_overlaps(&a, &b));
}

static void empty_views_share_nothing(void **state) {
    (void)state;
    gbx_tensor a = view(GBX_FLOAT32, 0, 0, 4, 4, 1), b = view(GBX_FLOAT32, 0, 4, 4, 4, 1);
    assert_false(check(&a, &b));
    assert_false(check(&a, &a));
    gbx_tensor scalar = {.data = BASE + 60, .dtype = GBX_UINT8};
    assert_true(check(&scalar, &b));
    scalar.data = BASE + 64;
    assert_false(check(&scalar, &b));
}

static void int4_shares_bytes(void **state) {
    (void)state;
    gbx_tensor low = view(GBX_INT4, 0, 1, 8, 0, 2), high = view(GBX_INT4, 1, 1, 8, 0, 2);
    assert_true(check(&low, &high));
    gbx_tensor after = view(GBX_INT4, 16, 1, 4, 0, 1);
    assert_false(check(&high, &after));
    gbx_tensor even_bytes = view(GBX_INT4, 0, 1, 8, 0, 4),
               odd_bytes = view(GBX_INT4, 2, 8, 2, 4, 1);
    assert_false(check(&even_bytes, &odd_bytes));
    odd_bytes.start_offset = 3;
    assert_true(check(&even_bytes, &odd_bytes));
}

/* Irregular strides with more sums than the search tries: a common byte is never missed, whether
 * the search finds it or gives up. */
static void a_hidden_byte_is_not_missed(void **state) {
    (void)state;
    random_state = 99;
    for (int i = 0; i < 200; ++i) {
        gbx_tensor a = {.data = BASE, .dtype = GBX_UINT8, .ndims = 8};
        gbx_tensor b = a;
        int64_t distance = 0;
        for (int d = 0; d < 8; ++d) {
            a.shape[d] = b.shape[d] = random_between(2, 6);
            a.strides[d] = random_between(-1000000, 1000000);
            b.strides[d] = random_between(-1000000, 1000000);
            distance += random_between(0, a.shape[d] - 1) * a.strides[d] -
                        random_between(0, b.shape[d] - 1) * b.strides[d];
        }
        a.start_offset = INT64_C(1) << 30;
        b.start_offset = a.start_offset + distance;
        assert_true(gbx_tensor_overlaps(&a, &b));
        assert_true(gbx_tensor_overlaps(&b, &a));
    }
}

static gbx_tensor random_view(int64_t most_dims, int64_t most_stride) {
    gbx_tensor tensor = {.data = BASE + (uint64_t)random_between(0, 40),
                         .dtype = (uint32_t)random_between(1, GBX_DTYPE_COUNT - 1),
                         .ndims = (uint32_t)random_between(0, most_dims)};
    if (random_between(0, 4) == 0)
        tensor.dtype = GBX_INT4;
    int64_t reach = 0;
    for (uint32_t d = 0; d < tensor.ndims; ++d) {
        tensor.shape[d] = random_between(0, 40) == 0 ? 0 : random_between(1, 5);
        tensor.strides[d] = random_between(-most_stride, most_stride);
        if (tensor.strides[d] < 0 && tensor.shape[d] > 0)
            reach -= (tensor.shape[d] - 1) * tensor.strides[d];
    }
    tensor.start_offset = reach + random_between(0, 20);
    return tensor;
}

static void random_views(void **state) {
    (void)state;
    random_state = 7654321;
    int overlapping = 0, apart = 0;
    for (int i = 0; i < 60000; ++i) {
        int64_t most_dims = i % 3 == 0 ? 5 : 2;
        gbx_tensor a = random_view(most_dims, i % 2 ? 40 : 12);
        gbx_tensor b = random_view(most_dims, i % 2 ? 40 : 12);
        if (check(&a, &b))
            ++overlapping;
        else
            ++apart;
    }
    /* Both answers occur. */
    assert_true(overlapping > 10000 && apart > 10000);
}

/* Tiles, columns and steps of one buffer, as in common graphs: rows on a common pitch. */
static void random_parts_of_one_buffer(void **state) {
    (void)state;
    random_state = 424242;
    const uint32_t dtypes[] = {GBX_INT4, GBX_UINT8, GBX_FLOAT16, GBX_FLOAT32, GBX_FLOAT64};
    for (int i = 0; i < 40000; ++i) {
        gbx_tensor parts[2];
        for (int p = 0; p < 2; ++p) {
            uint32_t dtype = dtypes[random_between(0, 4)];
            int64_t pitch = 64 * 8 / gbx_dtype_bits(dtype);
            int64_t step = random_between(1, 3);
            int64_t columns = random_between(1, pitch / step / 2);
            parts[p] = view(dtype, random_between(0, 20) * pitch + random_between(0, pitch - 1),
                            random_between(1, 6), columns, pitch * random_between(1, 3), step);
        }
        check(&parts[0], &parts[1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_of_a_matrix),
        cmocka_unit_test(interleaved_columns_and_steps),
        cmocka_unit_test(columns_of_a_large_matrix),
        cmocka_unit_test(addresses_are_absolute),
        cmocka_unit_test(empty_views_share_nothing),
        cmocka_unit_test(int4_shares_bytes),
        cmocka_unit_test(a_hidden_byte_is_not_missed),
        cmocka_unit_test(random_views),
        cmocka_unit_test(random_parts_of_one_buffer),
    };
    return cmocka_run_group_tests_name("overlap", tests, NULL, NULL);
}
