#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include "base/spsc_ring.h"

enum { PAIR_CAPACITY = 256, BATCH_MAX = 100 };

#define PAIR_ITEMS UINT64_C(3000000)

/* A ring whose next positions are about to pass 2^64 when `start` is near its end. */
static void init_at(gbx_spsc_ring *ring, uint64_t start) {
    gbx_spsc_init(ring);
    atomic_store(&ring->tail, start);
    atomic_store(&ring->seen_head, start);
    atomic_store(&ring->head, start);
    atomic_store(&ring->seen_tail, start);
}

static void check_fills_and_drains(uint64_t capacity, uint64_t start) {
    gbx_spsc_ring ring;
    uint64_t slots[8];
    uint64_t item = 99;
    init_at(&ring, start);
    for (uint64_t round = 0; round < 5; ++round) {
        assert_false(gbx_spsc_try_pop(&ring, slots, capacity, &item));
        assert_int_equal(item, round == 0 ? 99 : 100 * (round - 1) + capacity - 1);
        for (uint64_t i = 0; i < capacity; ++i) {
            assert_int_equal(gbx_spsc_count(&ring), i);
            assert_true(gbx_spsc_try_push(&ring, slots, capacity, 100 * round + i));
        }
        assert_false(gbx_spsc_try_push(&ring, slots, capacity, 7777));
        assert_int_equal(gbx_spsc_count(&ring), capacity);
        for (uint64_t i = 0; i < capacity; ++i) {
            assert_true(gbx_spsc_try_pop(&ring, slots, capacity, &item));
            assert_int_equal(item, 100 * round + i);
        }
    }
}

static void full_refuses_and_empty_gives_nothing(void **state) {
    (void)state;
    for (uint64_t capacity = 1; capacity <= 8; capacity *= 2) {
        check_fills_and_drains(capacity, 0);
        check_fills_and_drains(capacity, 3);
    }
}

static void positions_wrap_at_two_to_the_64(void **state) {
    (void)state;
    for (uint64_t capacity = 1; capacity <= 8; capacity *= 2) {
        for (uint64_t before = 0; before <= 2 * capacity; ++before)
            check_fills_and_drains(capacity, UINT64_MAX - before);
    }
}

static void items_interleave_in_order(void **state) {
    (void)state;
    gbx_spsc_ring ring;
    uint64_t slots[4];
    init_at(&ring, UINT64_MAX - 50);
    uint64_t popped = 0;
    for (uint64_t pushed = 0; pushed < 300; ++pushed) {
        assert_true(gbx_spsc_try_push(&ring, slots, 4, pushed));
        if (pushed % 3 == 2) {
            for (uint64_t item = 0; gbx_spsc_try_pop(&ring, slots, 4, &item); ++popped)
                assert_int_equal(item, popped);
        }
    }
    assert_int_equal(popped, 300);
}

static void batch_takes_what_fits_across_the_turn(void **state) {
    (void)state;
    gbx_spsc_ring ring;
    uint64_t slots[8];
    init_at(&ring, UINT64_MAX - 4); /* slot 3, and the positions wrap on the way */
    const uint64_t items[10] = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
    uint64_t got[10] = {0};
    assert_int_equal(gbx_spsc_pop_many(&ring, slots, 8, got, 10), 0);
    assert_int_equal(gbx_spsc_push_many(&ring, slots, 8, items, 0), 0);
    assert_int_equal(gbx_spsc_push_many(&ring, slots, 8, items, 6), 6);
    assert_int_equal(gbx_spsc_pop_many(&ring, slots, 8, got, 4), 4);
    assert_memory_equal(got, items, 4 * sizeof items[0]);
    assert_int_equal(gbx_spsc_push_many(&ring, slots, 8, items, 10), 6);
    assert_int_equal(gbx_spsc_push_many(&ring, slots, 8, items, 10), 0);
    assert_int_equal(gbx_spsc_count(&ring), 8);
    assert_int_equal(gbx_spsc_pop_many(&ring, slots, 8, got, 10), 8);
    const uint64_t expected[8] = {14, 15, 10, 11, 12, 13, 14, 15};
    assert_memory_equal(got, expected, sizeof expected);
    assert_int_equal(gbx_spsc_count(&ring), 0);
}

static void capacity_one_moves_batches_one_by_one(void **state) {
    (void)state;
    gbx_spsc_ring ring;
    uint64_t slot = 0;
    init_at(&ring, UINT64_MAX);
    const uint64_t items[2] = {5, 6};
    uint64_t got[2] = {0};
    for (size_t i = 0; i < 2; ++i) {
        assert_int_equal(gbx_spsc_push_many(&ring, &slot, 1, items + i, 2 - i), 1);
        assert_int_equal(gbx_spsc_pop_many(&ring, &slot, 1, got + i, 2), 1);
    }
    assert_memory_equal(got, items, sizeof items);
}

/* Each field in turn gets values that a broken peer may leave; the slots have guards on both
 * sides. */
static void scribbled_ring_stays_within_its_slots(void **state) {
    (void)state;
    static const uint64_t wild[] = {
        0, 1, 7, 8, 9, 20, UINT64_MAX, UINT64_MAX - 7, UINT64_MAX / 2, UINT64_C(1) << 40};
    enum { WILD = sizeof wild / sizeof wild[0], GUARD = 16 };
    for (size_t code = 0; code < WILD * WILD * WILD * WILD; ++code) {
        gbx_spsc_ring ring;
        uint64_t guarded[8 + 2 * GUARD];
        memset(guarded, 0xab, sizeof guarded);
        atomic_init(&ring.tail, wild[code % WILD]);
        atomic_init(&ring.seen_head, wild[code / WILD % WILD]);
        atomic_init(&ring.head, wild[code / WILD / WILD % WILD]);
        atomic_init(&ring.seen_tail, wild[code / WILD / WILD / WILD]);
        uint64_t items[32] = {0};
        uint64_t *slots = guarded + GUARD;
        assert_true(gbx_spsc_push_many(&ring, slots, 8, items, 32) <= 8);
        gbx_spsc_try_push(&ring, slots, 8, 0);
        assert_true(gbx_spsc_pop_many(&ring, slots, 8, items, 32) <= 8);
        gbx_spsc_try_pop(&ring, slots, 8, items);
        for (size_t i = 0; i < GUARD; ++i) {
            assert_int_equal(guarded[i], UINT64_C(0xabababababababab));
            assert_int_equal(guarded[GUARD + 8 + i], UINT64_C(0xabababababababab));
        }
    }
}

static void count_shows_a_scribbled_ring(void **state) {
    (void)state;
    gbx_spsc_ring ring;
    uint64_t slots[8];
    uint64_t item = 0;
    gbx_spsc_init(&ring);
    atomic_store(&ring.tail, 9);
    assert_int_equal(gbx_spsc_count(&ring), 9);
    assert_false(gbx_spsc_try_pop(&ring, slots, 8, &item));
    assert_false(gbx_spsc_try_push(&ring, slots, 8, 1));
    atomic_store(&ring.head, 10);
    assert_int_equal(gbx_spsc_count(&ring), UINT64_MAX);
}

/* The cached position of the other side is read again when it cannot be right. */
static void scribbled_memory_of_the_other_side_heals(void **state) {
    (void)state;
    gbx_spsc_ring ring;
    uint64_t slots[8];
    uint64_t item = 0;
    gbx_spsc_init(&ring);
    atomic_store(&ring.seen_head, 1000);
    atomic_store(&ring.seen_tail, 1000);
    assert_false(gbx_spsc_try_pop(&ring, slots, 8, &item));
    assert_true(gbx_spsc_try_push(&ring, slots, 8, 5));
    atomic_store(&ring.seen_head, 1000);
    atomic_store(&ring.seen_tail, 1000);
    assert_int_equal(gbx_spsc_push_many(&ring, slots, 8, &(uint64_t){6}, 1), 1);
    assert_int_equal(gbx_spsc_pop_many(&ring, slots, 8, &item, 1), 1);
    assert_int_equal(item, 5);
    assert_true(gbx_spsc_try_pop(&ring, slots, 8, &item));
    assert_int_equal(item, 6);
}

typedef struct pair {
    gbx_spsc_ring ring;
    uint64_t slots[PAIR_CAPACITY];
} pair;

static uint64_t item_at(uint64_t position) {
    return position * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

static void *produce_single(void *argument) {
    pair *shared = argument;
    for (uint64_t i = 0; i < PAIR_ITEMS; ++i) {
        while (!gbx_spsc_try_push(&shared->ring, shared->slots, PAIR_CAPACITY, item_at(i)))
            sched_yield();
    }
    return NULL;
}

/* Batches of every size from 1 to BATCH_MAX. */
static void *produce_batches(void *argument) {
    pair *shared = argument;
    uint64_t items[BATCH_MAX];
    for (uint64_t i = 0; i < PAIR_ITEMS;) {
        size_t size = i % BATCH_MAX + 1;
        if (size > PAIR_ITEMS - i)
            size = PAIR_ITEMS - i;
        for (size_t k = 0; k < size; ++k)
            items[k] = item_at(i + k);
        size_t pushed =
            gbx_spsc_push_many(&shared->ring, shared->slots, PAIR_CAPACITY, items, size);
        if (pushed == 0)
            sched_yield();
        i += pushed;
    }
    return NULL;
}

static uint64_t wrong_of_single(pair *shared) {
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < PAIR_ITEMS; ++i) {
        uint64_t item = 0;
        while (!gbx_spsc_try_pop(&shared->ring, shared->slots, PAIR_CAPACITY, &item))
            sched_yield();
        wrong += item != item_at(i);
    }
    return wrong;
}

static uint64_t wrong_of_batches(pair *shared) {
    uint64_t wrong = 0;
    uint64_t items[BATCH_MAX];
    for (uint64_t i = 0; i < PAIR_ITEMS;) {
        size_t wanted = i % 37 + 1;
        size_t got = gbx_spsc_pop_many(&shared->ring, shared->slots, PAIR_CAPACITY, items, wanted);
        wrong += gbx_spsc_count(&shared->ring) > PAIR_CAPACITY;
        for (size_t k = 0; k < got; ++k)
            wrong += items[k] != item_at(i + k);
        if (got == 0)
            sched_yield();
        i += got;
    }
    return wrong;
}

static void check_pair(void *(*produce)(void *), uint64_t (*consume)(pair *)) {
    static pair shared;
    init_at(&shared.ring, UINT64_MAX - PAIR_ITEMS / 2);
    pthread_t producer;
    assert_int_equal(pthread_create(&producer, NULL, produce, &shared), 0);
    uint64_t wrong = consume(&shared);
    assert_int_equal(pthread_join(producer, NULL), 0);
    assert_int_equal(wrong, 0);
    assert_int_equal(gbx_spsc_count(&shared.ring), 0);
}

static void two_threads_move_single_items_in_order(void **state) {
    (void)state;
    check_pair(produce_single, wrong_of_single);
}

static void two_threads_move_batches_in_order(void **state) {
    (void)state;
    check_pair(produce_batches, wrong_of_batches);
}

static void single_and_batch_mix(void **state) {
    (void)state;
    check_pair(produce_single, wrong_of_batches);
    check_pair(produce_batches, wrong_of_single);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_refuses_and_empty_gives_nothing),
        cmocka_unit_test(positions_wrap_at_two_to_the_64),
        cmocka_unit_test(items_interleave_in_order),
        cmocka_unit_test(batch_takes_what_fits_across_the_turn),
        cmocka_unit_test(capacity_one_moves_batches_one_by_one),
        cmocka_unit_test(scribbled_ring_stays_within_its_slots),
        cmocka_unit_test(count_shows_a_scribbled_ring),
        cmocka_unit_test(scribbled_memory_of_the_other_side_heals),
        cmocka_unit_test(two_threads_move_single_items_in_order),
        cmocka_unit_test(two_threads_move_batches_in_order),
        cmocka_unit_test(single_and_batch_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
