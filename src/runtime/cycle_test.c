/* Cycles of tasks that wait for each other, compared with a plain walk of the graph. */
#include "runtime/cycle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* After orchestration.h, which defines a macro named `fail`. */
#include <cmocka.h>

enum { MAX_TASKS = 40 };
#define NONE GBX_WAITS_FOR_NONE

static void test_a_task_that_waits_for_none(void **state) {
    (void)state;
    const uint32_t waits_for[] = {NONE, 0, 1, NONE};
    gbx_graph_error error = {.kind = GBX_GRAPH_OK};
    uint32_t last = 99;
    assert_int_equal(gbx_find_cycle(waits_for, 4, 2, &error, &last), 0);
    assert_int_equal(last, 0);
    assert_int_equal(gbx_find_cycle(waits_for, 4, 3, &error, &last), 0);
    assert_int_equal(last, 3);
    assert_int_equal(error.kind, GBX_GRAPH_OK);
}

static void test_a_chain_of_all_tasks_is_not_a_cycle(void **state) {
    (void)state;
    uint32_t waits_for[MAX_TASKS];
    gbx_graph_error error;
    uint32_t last;
    for (uint32_t i = 0; i < MAX_TASKS; ++i)
        waits_for[i] = i + 1 < MAX_TASKS ? i + 1 : NONE;
    assert_int_equal(gbx_find_cycle(waits_for, MAX_TASKS, 0, &error, &last), 0);
    assert_int_equal(last, MAX_TASKS - 1);
}

/* 5 waits for 3, and 3, 1, 4 for each other. */
static void test_names_the_least_task(void **state) {
    (void)state;
    const uint32_t waits_for[] = {NONE, 4, NONE, 1, 3, 3};
    gbx_graph_error error;
    uint32_t last;
    assert_int_equal(gbx_find_cycle(waits_for, 6, 5, &error, &last), 1);
    assert_int_equal(error.kind, GBX_GRAPH_CYCLE);
    assert_int_equal(error.task, 1);
    assert_int_equal(error.values[0], 4);
    assert_int_equal(error.values[1], 3);
    assert_int_equal(error.func_id, GBX_NO_KERNEL);
}

static void test_two_tasks_and_one(void **state) {
    (void)state;
    const uint32_t pair[] = {1, 0};
    const uint32_t self[] = {0};
    gbx_graph_error error;
    uint32_t last;
    assert_int_equal(gbx_find_cycle(pair, 2, 1, &error, &last), 1);
    assert_int_equal(error.task, 0);
    assert_int_equal(error.values[0], 1);
    assert_int_equal(error.values[1], 2);
    assert_int_equal(gbx_find_cycle(self, 1, 0, &error, &last), 1);
    assert_int_equal(error.values[1], 1);
}

/* Walks from `stuck` until a task comes again; the step of its first visit gives the length. */
static void check_random(const uint32_t *waits_for, uint32_t count, uint32_t stuck) {
    uint32_t visited[MAX_TASKS] = {0}; /* plus 1 */
    uint32_t at = stuck, before = stuck, steps = 0, last = NONE, least = NONE;
    gbx_graph_error error = {.kind = GBX_GRAPH_OK};
    while (at != NONE && !visited[at]) {
        visited[at] = ++steps;
        before = at;
        at = waits_for[at];
    }
    int is_cycle = gbx_find_cycle(waits_for, count, stuck, &error, &last);
    assert_int_equal(is_cycle, at != NONE);
    if (!is_cycle) {
        assert_int_equal(last, before);
        return;
    }
    for (uint32_t i = 0; i < count; ++i)
        if (visited[i] >= visited[at] && i < least)
            least = i;
    assert_int_equal(error.task, least);
    assert_int_equal(error.values[0], waits_for[least]);
    assert_int_equal(error.values[1], steps - visited[at] + 1);
}

static void test_random_graphs(void **state) {
    (void)state;
    for (uint32_t round = 0; round < 20000; ++round) {
        uint32_t waits_for[MAX_TASKS];
        uint32_t count = 1 + (uint32_t)rand() % MAX_TASKS;
        for (uint32_t i = 0; i < count; ++i)
            waits_for[i] = rand() % 12 ? (uint32_t)rand() % count : NONE;
        check_random(waits_for, count, (uint32_t)rand() % count);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_task_that_waits_for_none),
        cmocka_unit_test(test_a_chain_of_all_tasks_is_not_a_cycle),
        cmocka_unit_test(test_names_the_least_task),
        cmocka_unit_test(test_two_tasks_and_one),
        cmocka_unit_test(test_random_graphs),
    };
    return cmocka_run_group_tests_name("cycle", tests, NULL, NULL);
}
