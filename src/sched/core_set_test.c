/* Free cores: compared with a plain set, and used by several threads at a time. */
#include "sched/core_set.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

enum { MAX_BLOCKS = 24, THREADS = 4, TURNS = 50000 };

static void test_all_are_free_at_first(void **state) {
    (void)state;
    for (uint32_t blocks = 1; blocks <= 32; ++blocks) {
        gbx_core_set set;
        gbx_core_set_init(&set, blocks);
        for (uint32_t place = 0; place < GBX_SUBTASK_COUNT; ++place) {
            for (uint32_t i = 0; i < blocks; ++i)
                assert_int_equal(gbx_core_set_take_any(&set, place, 0),
                                 i * GBX_SUBTASK_COUNT + place);
            assert_int_equal(gbx_core_set_take_any(&set, place, 0), GBX_NO_FREE_CORE);
            assert_int_equal(gbx_core_set_free(&set, place), 0);
        }
    }
}

static bool is_free[GBX_SUBTASK_COUNT][MAX_BLOCKS];

static void check_take_any(gbx_core_set *set, uint32_t place) {
    uint32_t avoided = rand() % 3 ? 0 : (uint32_t)rand();
    uint32_t expected = GBX_NO_FREE_CORE;
    for (uint32_t b = MAX_BLOCKS; b-- > 0;)
        if (is_free[place][b] && !(avoided >> b & 1))
            expected = b * GBX_SUBTASK_COUNT + place;
    assert_int_equal(gbx_core_set_take_any(set, place, avoided), expected);
    if (expected != GBX_NO_FREE_CORE)
        is_free[place][expected / GBX_SUBTASK_COUNT] = false;
}

static void test_against_a_plain_set(void **state) {
    (void)state;
    gbx_core_set set;
    gbx_core_set_init(&set, MAX_BLOCKS);
    memset(is_free, 1, sizeof is_free);
    for (uint32_t i = 0; i < 100000; ++i) {
        uint32_t place = (uint32_t)rand() % GBX_SUBTASK_COUNT;
        uint32_t block = (uint32_t)rand() % MAX_BLOCKS;
        if (rand() % 3 == 0) {
            check_take_any(&set, place);
        } else if (rand() % 2) {
            assert_int_equal(gbx_core_set_take(&set, place, block), is_free[place][block]);
            is_free[place][block] = false;
        } else if (!is_free[place][block]) {
            gbx_core_set_give(&set, block * GBX_SUBTASK_COUNT + place);
            is_free[place][block] = true;
        }
        for (uint32_t b = 0; b < MAX_BLOCKS; ++b)
            assert_int_equal(gbx_core_set_free(&set, place) >> b & 1, is_free[place][b]);
    }
}

/* --- several threads: a core has one owner, who sees what the last one wrote --- */

static gbx_core_set shared;
static uint32_t uses[MAX_BLOCKS * GBX_SUBTASK_COUNT]; /* only the owner writes */
static _Atomic uint32_t taken;

static void *contend(void *argument) {
    (void)argument;
    for (uint32_t i = 0; i < TURNS; ++i) {
        uint32_t core = gbx_core_set_take_any(&shared, i % GBX_SUBTASK_COUNT, 0);
        if (core == GBX_NO_FREE_CORE)
            continue;
        ++uses[core];
        atomic_fetch_add_explicit(&taken, 1, memory_order_relaxed);
        gbx_core_set_give(&shared, core);
    }
    return NULL;
}

static void test_one_owner_at_a_time(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    uint32_t sum = 0;
    gbx_core_set_init(&shared, 2);
    for (uint32_t i = 0; i < THREADS; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, contend, NULL), 0);
    for (uint32_t i = 0; i < THREADS; ++i)
        pthread_join(threads[i], NULL);
    for (uint32_t core = 0; core < MAX_BLOCKS * GBX_SUBTASK_COUNT; ++core)
        sum += uses[core];
    assert_int_equal(sum, atomic_load(&taken));
    for (uint32_t place = 0; place < GBX_SUBTASK_COUNT; ++place)
        assert_int_equal(gbx_core_set_free(&shared, place), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_free_at_first),
        cmocka_unit_test(test_against_a_plain_set),
        cmocka_unit_test(test_one_owner_at_a_time),
    };
    return cmocka_run_group_tests_name("core_set", tests, NULL, NULL);
}
