#include "checks.h"

#include <time.h>

#include "store/import/internal.h"

/* If every key had the same place in the table, this would take minutes instead of a second. */
enum { KEYS = 300000, SECONDS_MAX = 60 };

static double cpu_seconds(void) {
    return (double)clock() / CLOCKS_PER_SEC;
}

/* Keys that multiplication by a known number, the usual one, maps to the same place. */
static uint64_t chosen_key(uint64_t i) {
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t inverse = factor;
    for (int step = 0; step < 6; ++step)
        inverse *= 2 - factor * inverse;
    uint64_t mixed = i << 29 | i;
    uint64_t key = mixed * inverse;
    return key ^ key >> 32;
}

static void tasks_are_found_whatever_their_keys(void **state) {
    (void)state;
    gbx_import_tasks tasks = {0};
    double start = cpu_seconds();
    for (uint64_t i = 0; i < 2 * KEYS; ++i) {
        bool is_new = false;
        gbx_import_task *task = gbx_import_tasks_get(&tasks, chosen_key(i % KEYS), &is_new);
        assert_non_null(task);
        assert_true(is_new == (i < KEYS));
        assert_true(task->key == chosen_key(i % KEYS) && task == &tasks.items[i % KEYS]);
    }
    assert_int_equal(tasks.map.count, KEYS);
    assert_true(cpu_seconds() - start < SECONDS_MAX);
    gbx_import_tasks_free(&tasks);
}

/* Offsets and sizes whose weighted sums are equal, for two weights. */
static void extents_are_found_wherever_they_lie(void **state) {
    (void)state;
    for (uint64_t weight = 1; weight < 32; weight += 30) {
        gbx_import_map extents = {0};
        double start = cpu_seconds();
        for (uint64_t i = 0; i < 2 * KEYS; ++i) {
            uint64_t key = i % KEYS;
            assert_int_equal(gbx_import_map_get(&extents, weight * (KEYS - key), key + 1), key);
        }
        assert_int_equal(extents.count, KEYS);
        assert_true(cpu_seconds() - start < SECONDS_MAX);
        gbx_import_map_free(&extents);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_are_found_whatever_their_keys),
        cmocka_unit_test(extents_are_found_wherever_they_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
