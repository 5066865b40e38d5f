#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "store/journal/record_index.h"

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int compare(const void *left, const void *right) {
    const gbx_index_entry *a = left;
    const gbx_index_entry *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Sorts by the index and by qsort, and compares. */
static void check_sort(const gbx_index_entry *entries, size_t count) {
    gbx_record_index index = {0};
    assert_null(gbx_record_index_reserve(&index, count));
    for (size_t i = 0; i < count; ++i)
        gbx_record_index_add(&index, entries[i].key, entries[i].offset);
    gbx_index_entry *expected = malloc((count + 1) * sizeof *expected);
    assert_non_null(expected);
    memcpy(expected, entries, count * sizeof *expected);
    qsort(expected, count, sizeof *expected, compare);
    gbx_record_index_sort(&index);
    assert_int_equal(index.count, count);
    if (count)
        assert_memory_equal(index.entries, expected, count * sizeof *expected);
    free(expected);
    gbx_record_index_free(&index);
}

static void any_order_is_sorted(void **state) {
    (void)state;
    static const size_t counts[] = {0, 1, 2, 47, 48, 49, 50, 255, 1000, 20000};
    /* Which bits of the key and of the offset vary: few keys, equal keys, all bits. */
    static const uint64_t masks[][2] = {
        {UINT64_MAX, UINT64_MAX},       {0, 0xffffff}, {0xff, 0xffff},
        {UINT64_C(0xff00000000), 0xff}, {0xffffff, 0}, {UINT64_C(3) << 62, 1}};
    static gbx_index_entry entries[20000];
    uint64_t random = 88172645463325252u;
    for (size_t m = 0; m < sizeof masks / sizeof masks[0]; ++m)
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; ++c) {
            for (size_t i = 0; i < counts[c]; ++i) {
                entries[i].key = next_random(&random) & masks[m][0];
                entries[i].offset = next_random(&random) & masks[m][1];
            }
            check_sort(entries, counts[c]);
        }
}

static void sorted_and_reversed_orders_are_sorted(void **state) {
    (void)state;
    static gbx_index_entry entries[5000];
    for (size_t i = 0; i < 5000; ++i)
        entries[i] = (gbx_index_entry){i << 20, i * 40};
    check_sort(entries, 5000);
    for (size_t i = 0; i < 5000; ++i)
        entries[i] = (gbx_index_entry){(5000 - i) << 20, i * 40};
    check_sort(entries, 5000);
}

/* As in journals: some tasks at a time, and sometimes a record that comes much later. */
static void almost_sorted_orders_are_sorted(void **state) {
    (void)state;
    static gbx_index_entry entries[6000];
    static const size_t late[] = {0, 1, 700, 2999}; /* how many records are late */
    for (size_t together = 1; together <= 64; together *= 4)
        for (size_t l = 0; l < sizeof late / sizeof late[0]; ++l) {
            for (size_t i = 0; i < 6000; ++i) {
                size_t group = i / (together * 2);
                size_t task = group * together + i % together;
                size_t number = i / together % 2;
                entries[i] = (gbx_index_entry){task << 20 | number << 8, i * 40};
            }
            for (size_t i = 0; i < late[l]; ++i)
                entries[5999 - i].key = entries[i * 2].key;
            check_sort(entries, 6000);
        }
}

static void find_gives_the_first_not_below(void **state) {
    (void)state;
    gbx_record_index index = {0};
    assert_int_equal(gbx_record_index_find(&index, 5), 0);
    assert_null(gbx_record_index_reserve(&index, 4));
    static const uint64_t keys[] = {2, 4, 4, 9};
    for (size_t i = 0; i < 4; ++i)
        gbx_record_index_add(&index, keys[i], i);
    static const size_t expected[] = {0, 0, 0, 1, 1, 3, 3, 3, 3, 3, 4};
    for (uint64_t key = 0; key < sizeof expected / sizeof expected[0]; ++key)
        assert_int_equal(gbx_record_index_find(&index, key), expected[key]);
    gbx_record_index_free(&index);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_is_sorted),
        cmocka_unit_test(sorted_and_reversed_orders_are_sorted),
        cmocka_unit_test(almost_sorted_orders_are_sorted),
        cmocka_unit_test(find_gives_the_first_not_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
