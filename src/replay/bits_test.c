#include "replay/bits.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 6 };

static gbx_tensor vector_of(uint32_t dtype, int64_t rows, int64_t columns) {
    return (gbx_tensor){
        .dtype = dtype, .ndims = 2, .shape = {rows, columns}, .strides = {columns, 1}};
}

static void equal_payloads_are_equal(void **state) {
    (void)state;
    gbx_tensor tensor = vector_of(GBX_FLOAT32, 2, 3);
    float values[COUNT] = {1, -0.0f, 3, NAN, INFINITY, 6};
    const float start[COUNT] = {0};
    const unsigned char *bytes = (const unsigned char *)values;
    gbx_bits_payloads payloads = {
        .dump = bytes, .replay = bytes, .start = (const unsigned char *)start};
    gbx_bits_comparison c = gbx_bits_compare(&tensor, &payloads);
    assert_int_equal(c.elements, COUNT);
    assert_int_equal(c.mismatches + c.not_written + c.unstable, 0);
}

static void bits_count_and_not_values(void **state) {
    (void)state;
    gbx_tensor tensor = vector_of(GBX_FLOAT32, 2, 3);
    float dump[COUNT] = {1, 0.0f, 3, NAN, 5, 6};
    float replay[COUNT] = {1, -0.0f, 3, NAN, 7.5f, 6};
    uint32_t other_nan = 0x7fc01234;
    memcpy(&replay[3], &other_nan, sizeof other_nan);
    gbx_bits_payloads payloads = {.dump = (const unsigned char *)dump,
                                  .replay = (const unsigned char *)replay};
    gbx_bits_comparison c = gbx_bits_compare(&tensor, &payloads);
    assert_int_equal(c.mismatches, 3);
    assert_int_equal(c.first_bad, 1);
    assert_int_equal(c.dump_bits, 0);
    assert_int_equal(c.replay_bits, 0x80000000u);
    assert_true(isinf(c.max_abs));
    replay[3] = dump[3];
    assert_true(gbx_bits_compare(&tensor, &payloads).max_abs == 2.5);
}

static void assert_written(const gbx_tensor *tensor, const gbx_bits_payloads *payloads,
                           uint32_t expected) {
    for (uint64_t i = 0; i < COUNT; ++i)
        if (gbx_bits_is_written(tensor, payloads, i) != (expected >> i & 1))
            fail_msg("element %d", (int)i);
}

/* Elements 0 and 4 are as before the first run; 4 is before the second, too. Element 2 was known
 * before both, and element 5 changes only in the second. */
static void what_stays_as_it_was_is_not_written(void **state) {
    (void)state;
    gbx_tensor tensor = vector_of(GBX_UINT16, 2, 3);
    uint16_t start[COUNT] = {0x1234, 0x8765, 2, 0x4321, 0xa5a5, 0x7777};
    uint16_t other_start[COUNT] = {0x5234, 0x9765, 2, 0x5321, 0x5a5a, 0x8888};
    uint16_t dump[COUNT] = {0x1234, 1, 2, 3, 9, 0x7777};
    uint16_t first[COUNT] = {0x1234, 1, 2, 3, 0xa5a5, 0x7777};
    uint16_t second[COUNT] = {0x1234, 1, 2, 4, 0x5a5a, 5};
    gbx_bits_payloads payloads = {.dump = (const unsigned char *)dump,
                                  .replay = (const unsigned char *)first,
                                  .other = (const unsigned char *)second,
                                  .start = (const unsigned char *)start,
                                  .other_start = (const unsigned char *)other_start};
    gbx_bits_comparison c = gbx_bits_compare(&tensor, &payloads);
    assert_written(&tensor, &payloads, 0x2f);
    assert_int_equal(c.not_written, 1);
    assert_int_equal(c.unstable, 2);
    assert_int_equal(c.first_unstable, 3);
    assert_int_equal(c.mismatches, 0);
    payloads.other = NULL; /* of one run, each element that equals its start may be unwritten */
    assert_written(&tensor, &payloads, 0x0a);
    c = gbx_bits_compare(&tensor, &payloads);
    assert_int_equal(c.not_written, 4);
    assert_int_equal(c.unstable, 0);
    payloads.start = payloads.other_start = NULL; /* an inout: all of it is compared */
    payloads.other = (const unsigned char *)second;
    assert_written(&tensor, &payloads, 0x3f);
    c = gbx_bits_compare(&tensor, &payloads);
    assert_int_equal(c.not_written, 0);
    assert_int_equal(c.unstable, 3);
    assert_int_equal(c.mismatches, 1);
    assert_int_equal(c.first_bad, 4);
    assert_int_equal(c.dump_bits, 9);
    assert_int_equal(c.replay_bits, 0xa5a5);
}

static void an_inout_of_one_dispatch_counts_where_it_changed(void **state) {
    (void)state;
    gbx_tensor tensor = vector_of(GBX_INT64, 2, 3);
    int64_t before[COUNT] = {0, 1, 2, 3, 4, 5};
    int64_t replay[COUNT] = {10, 1, 2, 3, 4, 15};
    int64_t dump[COUNT] = {10, 11, 12, 13, 14, 16};
    gbx_bits_payloads payloads = {.dump = (const unsigned char *)dump,
                                  .replay = (const unsigned char *)replay,
                                  .before = (const unsigned char *)before};
    gbx_bits_comparison c = gbx_bits_compare(&tensor, &payloads);
    assert_int_equal(c.not_written, 4);
    assert_int_equal(c.mismatches, 1);
    assert_int_equal(c.first_bad, 5);
    assert_true(c.max_abs == 1.0);
}

/* Rows of three take two bytes: the half at their end is unused. */
static void int4_is_compared_by_halves(void **state) {
    (void)state;
    gbx_tensor tensor = vector_of(GBX_INT4, 2, 3);
    unsigned char dump[4] = {0x21, 0x03, 0x54, 0x06};
    unsigned char replay[4] = {0x21, 0xf3, 0x54, 0x07};
    gbx_bits_payloads payloads = {.dump = dump, .replay = replay};
    gbx_bits_comparison c = gbx_bits_compare(&tensor, &payloads);
    for (uint64_t i = 0; i < COUNT; ++i)
        assert_int_equal(gbx_bits_element(&tensor, dump, i), i + 1);
    assert_int_equal(c.mismatches, 1);
    assert_int_equal(c.first_bad, 5);
    assert_int_equal(c.replay_bits, 7);
    /* Only the last element was written; the one before it equals its start in one run only. */
    const unsigned char start[4] = {0xa5, 0x07, 0x3c, 0x02};
    const unsigned char other_start[4] = {0x5a, 0x08, 0xc3, 0x0d};
    unsigned char first[4] = {0xa5, 0x07, 0x3c, 0x01}, second[4] = {0x5a, 0x08, 0x33, 0x01};
    payloads = (gbx_bits_payloads){
        .dump = dump, .replay = first, .other = second, .start = start, .other_start = other_start};
    c = gbx_bits_compare(&tensor, &payloads);
    assert_int_equal(c.not_written, 4);
    assert_int_equal(c.unstable, 0);
    assert_int_equal(c.mismatches, 2);
    assert_written(&tensor, &payloads, 0x30);
}

static void empty_and_single_tensors_hold(void **state) {
    (void)state;
    gbx_tensor none = vector_of(GBX_INT4, 4, 0);
    gbx_tensor one = {.dtype = GBX_UINT8};
    unsigned char byte = 0xa5, start = 0xa5, other_start = 0x5a;
    gbx_bits_payloads payloads = {.dump = &byte,
                                  .replay = &byte,
                                  .other = &byte,
                                  .start = &start,
                                  .other_start = &other_start};
    assert_int_equal(gbx_bits_compare(&none, &payloads).elements, 0);
    gbx_bits_comparison c = gbx_bits_compare(&one, &payloads);
    assert_int_equal(c.elements, 1);
    assert_int_equal(c.not_written + c.unstable + c.mismatches, 0);
    payloads.other = &other_start;
    assert_int_equal(gbx_bits_compare(&one, &payloads).not_written, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_payloads_are_equal),
        cmocka_unit_test(bits_count_and_not_values),
        cmocka_unit_test(what_stays_as_it_was_is_not_written),
        cmocka_unit_test(an_inout_of_one_dispatch_counts_where_it_changed),
        cmocka_unit_test(int4_is_compared_by_halves),
        cmocka_unit_test(empty_and_single_tensors_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
