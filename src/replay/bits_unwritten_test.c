#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "replay/bits.h"

enum { BYTES = 512 * 8 };

/* What two runs found in an output; no half of a byte is the same in both. */
static unsigned char first_start[BYTES], other_start[BYTES];
static const void *const starts[2] = {first_start, other_start};

static int make_starts(void **state) {
    (void)state;
    for (unsigned i = 0; i < BYTES; ++i) {
        first_start[i] = (unsigned char)(37 * i + i / 256 + 11);
        other_start[i] = (unsigned char)(first_start[i] ^ 0xff);
    }
    return 0;
}

static gbx_tensor make_tensor(uint32_t dtype, uint32_t ndims, const int64_t *shape) {
    gbx_tensor tensor;
    assert_null(gbx_tensor_contiguous(0, dtype, ndims, shape, &tensor));
    return tensor;
}

/* For each width, every second element is written, with all values of a first byte. */
static void test_elements_of_full_bytes(void **state) {
    static const uint32_t dtypes[] = {GBX_UINT8, GBX_BFLOAT16, GBX_FLOAT32, GBX_FLOAT64};
    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; ++d) {
        const int64_t shape[2] = {2, 256};
        gbx_tensor tensor = make_tensor(dtypes[d], 2, shape);
        size_t width = gbx_dtype_bits(dtypes[d]) / 8;
        unsigned char want[BYTES], again[BYTES], got[BYTES];
        memcpy(want, first_start, sizeof want);
        memcpy(again, other_start, sizeof again);
        memset(got, 0x77, sizeof got);
        for (size_t i = 1; i < 512; i += 2) {
            memset(want + i * width, (int)(i / 2), width);
            memset(again + i * width, (int)(i / 2), width);
        }
        assert_true(gbx_bits_share_element(&tensor, want, first_start));
        assert_int_equal(gbx_not_written_clear(&tensor, want, again, starts, got), 256);
        for (size_t i = 0; i < 512 * width; ++i) {
            bool is_written = i / width % 2 == 1;
            assert_int_equal(got[i], is_written ? 0x77 : 0);
            assert_int_equal(want[i], is_written ? i / width / 2 : 0);
            assert_int_equal(again[i], is_written ? i / width / 2 : 0);
        }
    }
}

/* One byte of an element is enough for it to be written. */
static void test_one_byte_is_written(void **state) {
    const int64_t shape[1] = {4};
    gbx_tensor tensor = make_tensor(GBX_FLOAT32, 1, shape);
    (void)state;
    unsigned char want[16], again[16], got[16] = {1};
    memcpy(want, first_start, sizeof want);
    memcpy(again, other_start, sizeof again);
    for (size_t i = 0; i < 4; ++i)
        want[i * 4 + i] = again[i * 4 + i] = (unsigned char)(first_start[i * 4 + i] ^ 0x10);
    assert_false(gbx_bits_share_element(&tensor, want, first_start));
    assert_int_equal(gbx_not_written_clear(&tensor, want, again, starts, got), 0);
    assert_int_equal(got[0], 1);
}

/* A value that equals the start of only one run was written; so was one that both runs began with.
 */
static void test_values_that_are_starts(void **state) {
    const int64_t shape[1] = {3};
    gbx_tensor tensor = make_tensor(GBX_UINT8, 1, shape);
    (void)state;
    const unsigned char one[3] = {0xa5, 0xa5, 0x77}, two[3] = {0x5a, 0x5a, 0x77};
    const void *const both[2] = {one, two};
    unsigned char want[3] = {0xa5, 0x5a, 0x77}, again[3] = {0xa5, 0x5a, 0x77}, got[3] = {1, 2, 3};
    assert_true(gbx_bits_share_element(&tensor, want, one));
    assert_int_equal(gbx_not_written_clear(&tensor, want, again, both, got), 0);
    for (int i = 0; i < 3; ++i)
        assert_int_equal(got[i], i + 1);
    assert_int_equal(want[2], 0x77);
}

/* Rows of three halves have two bytes; the fourth half is unused. */
static void test_int4(void **state) {
    const int64_t shape[2] = {2, 3};
    gbx_tensor tensor = make_tensor(GBX_INT4, 2, shape);
    (void)state;
    const unsigned char one[4] = {0xa5, 0xc5, 0x12, 0xb3};
    const unsigned char two[4] = {0x5a, 0x3a, 0xed, 0x4c};
    const void *const both[2] = {one, two};
    /* Written: elements 1 and 5, the high half of byte 0 and the low half of byte 3. */
    unsigned char want[4] = {0x35, 0xc5, 0x12, 0xb7};
    unsigned char again[4] = {0x3a, 0x3a, 0xed, 0x47};
    unsigned char got[4] = {0xff, 0xff, 0xff, 0xff};
    assert_true(gbx_bits_share_element(&tensor, want, one));
    assert_int_equal(gbx_not_written_clear(&tensor, want, again, both, got), 4);
    static const unsigned char left[4] = {0xf0, 0xf0, 0x00, 0xff};
    assert_memory_equal(got, left, sizeof left);
    assert_int_equal(want[0], 0x30);
    assert_int_equal(again[0], 0x30);
    /* If all elements are written, the unused half does not count. */
    unsigned char whole[4] = {0x11, 0xc1, 0x33, 0xb1};
    assert_false(gbx_bits_share_element(&tensor, whole, one));
    whole[2] = 0x13; /* the high half of byte 2 */
    assert_true(gbx_bits_share_element(&tensor, whole, one));
}

static void test_no_elements(void **state) {
    const int64_t shape[2] = {0, 3};
    gbx_tensor tensor = make_tensor(GBX_INT4, 2, shape);
    gbx_tensor single = make_tensor(GBX_INT32, 0, NULL);
    unsigned char want[4], again[4], got[4] = {1, 2, 3, 4};
    (void)state;
    memcpy(want, first_start, sizeof want);
    memcpy(again, other_start, sizeof again);
    assert_false(gbx_bits_share_element(&tensor, want, first_start));
    assert_int_equal(gbx_not_written_clear(&tensor, want, again, starts, got), 0);
    assert_int_equal(got[0], 1);
    assert_int_equal(gbx_not_written_clear(&single, want, again, starts, got), 1);
    assert_int_equal(got[3], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements_of_full_bytes), cmocka_unit_test(test_one_byte_is_written),
        cmocka_unit_test(test_values_that_are_starts), cmocka_unit_test(test_int4),
        cmocka_unit_test(test_no_elements)};
    return cmocka_run_group_tests(tests, make_starts, NULL);
}
