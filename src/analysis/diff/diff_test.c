#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analysis/diff/internal.h"

/* --- tolerances --- */

static void defaults_are_those_of_the_dtype(void **state) {
    (void)state;
    gbx_diff_options options = {.is_strict_nan = true};
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype) {
        gbx_tolerance expected = gbx_tolerance_default(dtype);
        gbx_tolerance got = gbx_diff_tolerance(&options, dtype);
        assert_true(got.rtol == expected.rtol && got.atol == expected.atol);
        assert_int_equal(got.ulp, expected.ulp);
        assert_true(got.is_strict_nan);
    }
}

/* An index or a flag is right or wrong, however large it is. */
static void integers_have_only_the_absolute_one(void **state) {
    (void)state;
    gbx_diff_options options = {.has_tolerance = true,
                                .tolerance = {.rtol = 0.5, .atol = 2.0, .ulp = 7}};
    gbx_tolerance of_float = gbx_diff_tolerance(&options, GBX_BFLOAT16);
    gbx_tolerance of_integer = gbx_diff_tolerance(&options, GBX_INT4);
    gbx_tolerance of_bool = gbx_diff_tolerance(&options, GBX_BOOL);
    assert_true(of_float.rtol == 0.5 && of_float.atol == 2.0 && of_float.ulp == 7);
    assert_true(of_integer.rtol == 0.0 && of_integer.atol == 2.0 && of_integer.ulp == 0);
    assert_true(of_bool.rtol == 0.0 && of_bool.atol == 0.0 && of_bool.ulp == 0);
    assert_false(of_float.is_strict_nan);
}

/* --- pairs that need no payload --- */

/* A tensor's record with its shape behind it. */
typedef struct tensor_record {
    gbx_record_tensor fixed;
    int64_t words[2 * GBX_MAX_DIMS];
} tensor_record;

typedef struct tensor_entry {
    tensor_record record;
    gbx_entry entry;
} tensor_entry;

static void make_entry(tensor_entry *made, uint8_t dtype, int64_t length, unsigned flags,
                       uint64_t hash) {
    *made = (tensor_entry){.record = {.fixed = {.head = {.type = GBX_RECORD_TENSOR,
                                                         .dtype = dtype,
                                                         .ndims = 1,
                                                         .flags = (uint16_t)flags},
                                                .hash_low = hash,
                                                .hash_high = 1},
                                      .words = {length, 1}}};
    made->entry = (gbx_entry){
        .head = &made->record.fixed.head, .tensor = &made->record.fixed, .dtype = dtype};
}

static gbx_diff_record compare(const gbx_entry *a, const gbx_entry *b, bool is_strict) {
    gbx_diff_options options = {.is_strict_nan = is_strict};
    gbx_diff_pair pair = {.a = a, .b = b, .options = &options};
    gbx_diff_record record = {0};
    gbx_status status = gbx_diff_pair_compare(&pair, &record);
    assert_null(status);
    assert_int_equal(pair.read_bytes, 0);
    return record;
}

static void expect(const gbx_diff_record *record, gbx_diff_verdict verdict,
                   gbx_diff_reason reason) {
    assert_int_equal(record->verdict, verdict);
    assert_int_equal(record->reason, reason);
    assert_false(record->has_metrics);
}

static void hashes_decide_without_payload(void **state) {
    (void)state;
    tensor_entry a, b;
    make_entry(&a, GBX_FLOAT32, 4, GBX_FLAG_HAS_HASH, 7);
    make_entry(&b, GBX_FLOAT32, 4, GBX_FLAG_HAS_HASH, 7);
    gbx_diff_record record = compare(&a.entry, &b.entry, false);
    expect(&record, GBX_DIFF_EQUAL, GBX_DIFF_VALUES);
    record = compare(&a.entry, &b.entry, true);
    expect(&record, GBX_DIFF_NOT_COMPARED, GBX_DIFF_NAN_UNKNOWN);
    b.record.fixed.hash_high = 2;
    record = compare(&a.entry, &b.entry, false);
    expect(&record, GBX_DIFF_DIFFERENT, GBX_DIFF_HASH);
    b.record.fixed.head.flags = 0;
    record = compare(&a.entry, &b.entry, false);
    expect(&record, GBX_DIFF_NOT_COMPARED, GBX_DIFF_NO_PAYLOAD);
}

/* The hash of a beginning cannot be compared with the hash of everything. */
static void hashes_of_other_parts_are_not_compared(void **state) {
    (void)state;
    tensor_entry a, b;
    make_entry(&a, GBX_INT32, 4, GBX_FLAG_HAS_HASH | GBX_FLAG_HAS_PAYLOAD | GBX_FLAG_TRUNCATED, 7);
    make_entry(&b, GBX_INT32, 4, GBX_FLAG_HAS_HASH, 7);
    a.record.fixed.bin_size = 8;
    gbx_diff_record record = compare(&a.entry, &b.entry, false);
    expect(&record, GBX_DIFF_NOT_COMPARED, GBX_DIFF_NO_PAYLOAD);
}

static void the_form_comes_before_hashes(void **state) {
    (void)state;
    gbx_record_scalar scalar = {.head = {.type = GBX_RECORD_SCALAR, .dtype = GBX_INT32}};
    gbx_entry scalar_entry = {.head = &scalar.head, .scalar = &scalar, .dtype = GBX_INT32};
    tensor_entry a, b;
    make_entry(&a, GBX_INT32, 4, GBX_FLAG_HAS_HASH, 7);
    make_entry(&b, GBX_UINT32, 4, GBX_FLAG_HAS_HASH, 7);
    gbx_diff_record record = compare(&a.entry, &b.entry, false);
    expect(&record, GBX_DIFF_DIFFERENT, GBX_DIFF_DTYPE);
    make_entry(&b, GBX_INT32, 5, GBX_FLAG_HAS_HASH, 7);
    record = compare(&a.entry, &b.entry, false);
    expect(&record, GBX_DIFF_DIFFERENT, GBX_DIFF_SHAPE);
    record = compare(&a.entry, &scalar_entry, false);
    expect(&record, GBX_DIFF_DIFFERENT, GBX_DIFF_KIND);
    make_entry(&b, GBX_INT32, 4, GBX_FLAG_HAS_HASH | GBX_FLAG_OVERWRITTEN, 7);
    record = compare(&a.entry, &b.entry, false);
    expect(&record, GBX_DIFF_NOT_COMPARED, GBX_DIFF_OVERWRITTEN);
    make_entry(&b, GBX_INT32, 4, GBX_FLAG_HAS_HASH | GBX_FLAG_IN_FLIGHT, 7);
    record = compare(&a.entry, &b.entry, false);
    expect(&record, GBX_DIFF_NOT_COMPARED, GBX_DIFF_IN_FLIGHT);
}

/* Bits above the dtype's width do not count. */
static void scalars_are_elements_of_their_dtype(void **state) {
    (void)state;
    gbx_diff_options options = {0};
    gbx_record_scalar a = {.head = {.type = GBX_RECORD_SCALAR, .dtype = GBX_INT16}, .bits = 0xffff};
    gbx_record_scalar b = a;
    gbx_entry entry_a = {.head = &a.head, .scalar = &a, .dtype = GBX_INT16};
    gbx_entry entry_b = {.head = &b.head, .scalar = &b, .dtype = GBX_INT16};
    gbx_diff_pair pair = {.a = &entry_a, .b = &entry_b, .options = &options};
    gbx_diff_record record = {0};
    b.bits = UINT64_C(0xabcd0000ffff);
    assert_null(gbx_diff_pair_compare(&pair, &record));
    assert_int_equal(record.verdict, GBX_DIFF_EQUAL);
    b.bits = 2; /* 3 away from -1 */
    assert_null(gbx_diff_pair_compare(&pair, &record));
    assert_int_equal(record.verdict, GBX_DIFF_DIFFERENT);
    assert_true(record.has_metrics && record.comparison.max_abs == 3.0);
    assert_int_equal(record.comparison.first_bad.got_bits, 0xffff);
    assert_int_equal(record.comparison.first_bad.want_bits, 2);
}

/* Older versions recorded uint64 for an undeclared scalar. */
static void undeclared_scalars_are_compared_by_bits(void **state) {
    static const struct {
        uint8_t dtype_a, dtype_b;
        uint64_t bits_a, bits_b;
        gbx_diff_verdict verdict;
    } cases[] = {
        {GBX_DTYPE_NONE, GBX_UINT64, 0xbdcccccd, 0xbdcccccd, GBX_DIFF_EQUAL},
        {GBX_UINT64, GBX_DTYPE_NONE, 0xbdcccccd, 0xbdcccccd, GBX_DIFF_EQUAL},
        {GBX_DTYPE_NONE, GBX_DTYPE_NONE, UINT64_MAX, UINT64_MAX, GBX_DIFF_EQUAL},
        {GBX_DTYPE_NONE, GBX_UINT64, 5, UINT64_C(1) << 32 | 5, GBX_DIFF_DIFFERENT},
        {GBX_DTYPE_NONE, GBX_DTYPE_NONE, 5, 6, GBX_DIFF_DIFFERENT},
        /* As what it is in the other dump: bits above its width do not count. */
        {GBX_DTYPE_NONE, GBX_FLOAT32, UINT64_C(1) << 32 | 0xbdcccccd, 0xbdcccccd, GBX_DIFF_EQUAL},
        {GBX_FLOAT32, GBX_DTYPE_NONE, 0xbdcccccd, 0xbdcccccc, GBX_DIFF_WITHIN},
        {GBX_INT32, GBX_UINT32, 5, 5, GBX_DIFF_DIFFERENT},
    };
    gbx_diff_options options = {.has_tolerance = true, .tolerance = {.atol = 10}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        gbx_record_scalar a = {.head = {.type = GBX_RECORD_SCALAR}, .bits = cases[i].bits_a};
        gbx_record_scalar b = {.head = {.type = GBX_RECORD_SCALAR}, .bits = cases[i].bits_b};
        gbx_entry entry_a = {.head = &a.head, .scalar = &a, .dtype = cases[i].dtype_a};
        gbx_entry entry_b = {.head = &b.head, .scalar = &b, .dtype = cases[i].dtype_b};
        gbx_diff_pair pair = {.options = &options, .a = &entry_a, .b = &entry_b};
        gbx_diff_record record = {0};
        assert_null(gbx_diff_pair_compare(&pair, &record));
        assert_int_equal(record.verdict, cases[i].verdict);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_dtype),
        cmocka_unit_test(integers_have_only_the_absolute_one),
        cmocka_unit_test(hashes_decide_without_payload),
        cmocka_unit_test(hashes_of_other_parts_are_not_compared),
        cmocka_unit_test(the_form_comes_before_hashes),
        cmocka_unit_test(scalars_are_elements_of_their_dtype),
        cmocka_unit_test(undeclared_scalars_are_compared_by_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
