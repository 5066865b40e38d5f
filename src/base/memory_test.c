#include "checks.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static void an_array_keeps_its_items_as_it_grows(void **state) {
    (void)state;
    uint32_t *items = NULL;
    uint64_t capacity = 0;
    for (uint32_t i = 0; i < 5000; ++i) {
        assert_true(gbx_array_grow(&items, &capacity, i + 1u, sizeof *items));
        assert_true(capacity > i);
        items[i] = i * 7;
    }
    for (uint32_t i = 0; i < 5000; ++i)
        assert_int_equal(items[i], i * 7);
    assert_int_equal(capacity, 8192); /* doubled from 16 on */
    free(items);
}

static void room_that_is_there_is_not_moved(void **state) {
    (void)state;
    char *items = NULL;
    uint64_t capacity = 0;
    assert_true(gbx_array_grow(&items, &capacity, 1000, 1));
    assert_int_equal(capacity, 1000);
    const char *before = items;
    assert_true(gbx_array_grow(&items, &capacity, 1000, 1));
    assert_ptr_equal(items, before);
    free(items);
}

static void what_cannot_be_had_changes_nothing(void **state) {
    (void)state;
    uint64_t *items = NULL;
    uint64_t capacity = 0;
    assert_true(gbx_array_grow(&items, &capacity, 3, sizeof *items));
    items[2] = 42;
    const uint64_t *before = items;
    assert_false(gbx_array_grow(&items, &capacity, UINT64_MAX / 4, sizeof *items));
    assert_ptr_equal(items, before);
    assert_int_equal(capacity, 16);
    assert_int_equal(items[2], 42);
    gbx_status status = gbx_array_reserve(&items, &capacity, UINT64_MAX / 4, "counting sheep");
    assert_int_equal(gbx_status_code(status), GBX_EXHAUSTED);
    assert_string_equal(gbx_status_message(status), "counting sheep: out of memory");
    gbx_status_free(status);
    free(items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_keeps_its_items_as_it_grows),
        cmocka_unit_test(room_that_is_there_is_not_moved),
        cmocka_unit_test(what_cannot_be_had_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
