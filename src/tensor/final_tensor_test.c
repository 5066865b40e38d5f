#include "tensor/final_tensor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

#include <stdlib.h>

enum { BYTES = 64, COPIES = 12, ROUNDS = 20000 };

static uint64_t seed = 20260901;

static uint64_t below(uint64_t limit) {
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (seed >> 33) % limit;
}

/* Where each byte comes from after all copies, done one by one; 0: from nowhere. */
static void copy_one_by_one(const gbx_tensor_piece *copies, size_t count, uint64_t from[BYTES]) {
    for (size_t i = 0; i < count; ++i)
        for (uint64_t k = 0; k < copies[i].bytes; ++k)
            from[copies[i].offset + k] = copies[i].address + k;
}

static void check(const gbx_tensor_piece *copies, size_t count) {
    uint64_t expected[BYTES] = {0}, got[BYTES] = {0};
    gbx_tensor_piece *pieces;
    size_t piece_count;
    assert_null(gbx_tensor_pieces_of(copies, count, &pieces, &piece_count));
    copy_one_by_one(copies, count, expected);
    uint64_t end = 0;
    for (size_t i = 0; i < piece_count; ++i) {
        assert_true(pieces[i].bytes > 0 && pieces[i].offset >= end);
        bool is_joined = i > 0 && pieces[i].offset == end &&
                         pieces[i].address == pieces[i - 1].address + pieces[i - 1].bytes;
        assert_false(is_joined); /* it would be one piece */
        end = pieces[i].offset + pieces[i].bytes;
        assert_true(end <= BYTES);
    }
    copy_one_by_one(pieces, piece_count, got);
    assert_memory_equal(got, expected, sizeof got);
    free(pieces);
}

static void nothing_is_copied(void **state) {
    gbx_tensor_piece *pieces;
    size_t count = 1;
    (void)state;
    assert_null(gbx_tensor_pieces_of(NULL, 0, &pieces, &count));
    assert_null(pieces);
    assert_int_equal(count, 0);
}

static void rows_of_one_buffer_are_one_piece(void **state) {
    (void)state;
    const gbx_tensor_piece rows[] = {{32, 0x1020, 16}, {0, 0x1000, 16}, {16, 0x1010, 16}};
    gbx_tensor_piece *pieces;
    size_t count;
    assert_null(gbx_tensor_pieces_of(rows, 3, &pieces, &count));
    assert_int_equal(count, 1);
    assert_int_equal(pieces[0].offset, 0);
    assert_int_equal(pieces[0].address, 0x1000);
    assert_int_equal(pieces[0].bytes, 48);
    free(pieces);
}

static void a_later_copy_hides_an_earlier_one(void **state) {
    (void)state;
    const gbx_tensor_piece inside[] = {{0, 0x1000, 64}, {16, 0x2000, 8}};
    const gbx_tensor_piece hidden[] = {{16, 0x2000, 8}, {0, 0x1000, 64}};
    check(inside, 2);
    check(hidden, 2);
}

static void any_series_is_as_if_copied_one_by_one(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS; ++round) {
        gbx_tensor_piece copies[COPIES];
        size_t count = 1 + below(COPIES);
        for (size_t i = 0; i < count; ++i) {
            uint64_t offset = below(BYTES);
            copies[i] = (gbx_tensor_piece){offset, 0x1000 * (1 + below(3)) + offset,
                                           1 + below(BYTES - offset)};
        }
        check(copies, count);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_copied),
        cmocka_unit_test(rows_of_one_buffer_are_one_piece),
        cmocka_unit_test(a_later_copy_hides_an_earlier_one),
        cmocka_unit_test(any_series_is_as_if_copied_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
