#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/spsc_ring.h"

enum { PAIR_CAPACITY = 256 };

#define PAIR_ITEMS UINT64_C(3000000)

/* A ring whose next positions are about to pass 2^64 when `start` is near its end. */
static void init_at(gbx_spsc_ring *ring, uint64_t start) {
    gbx_spsc_init(ring);
    atomic_store(&ring->tail, start);
    atomic_store(&ring->seen_head, start);
    atomic_store(&ring->head, start);
    atomic_store(&ring->seen_tail, start);
}

static uint64_t count_of(gbx_spsc_ring *ring) {
    return atomic_load(&ring->tail) - atomic_load(&ring->head);
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
            assert_int_equal(count_of(&ring), i);
            assert_true(gbx_spsc_try_push(&ring, slots, capacity, 100 * round + i));
        }
        assert_false(gbx_spsc_try_push(&ring, slots, capacity, 7777));
        assert_int_equal(count_of(&ring), capacity);
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
        uint64_t item = 0;
        uint64_t *slots = guarded + GUARD;
        size_t pushed = 0, popped = 0;
        while (pushed < 32 && gbx_spsc_try_push(&ring, slots, 8, item))
            ++pushed;
        while (popped < 32 && gbx_spsc_try_pop(&ring, slots, 8, &item))
            ++popped;
        assert_true(pushed <= 16 && popped <= 16);
        for (size_t i = 0; i < GUARD; ++i) {
            assert_int_equal(guarded[i], UINT64_C(0xabababababababab));
            assert_int_equal(guarded[GUARD + 8 + i], UINT64_C(0xabababababababab));
        }
    }
}

static void impossible_distance_is_full_and_empty(void **state) {
    (void)state;
    gbx_spsc_ring ring;
    uint64_t slots[8];
    uint64_t item = 0;
    gbx_spsc_init(&ring);
    atomic_store(&ring.tail, 9);
    assert_false(gbx_spsc_try_pop(&ring, slots, 8, &item));
    assert_false(gbx_spsc_try_push(&ring, slots, 8, 1));
    atomic_store(&ring.head, 10);
    assert_false(gbx_spsc_try_pop(&ring, slots, 8, &item));
    assert_false(gbx_spsc_try_push(&ring, slots, 8, 1));
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
    assert_true(gbx_spsc_try_push(&ring, slots, 8, 6));
    assert_true(gbx_spsc_try_pop(&ring, slots, 8, &item));
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

static void *produce(void *argument) {
    pair *shared = argument;
    for (uint64_t i = 0; i < PAIR_ITEMS; ++i) {
        while (!gbx_spsc_try_push(&shared->ring, shared->slots, PAIR_CAPACITY, item_at(i)))
            sched_yield();
    }
    return NULL;
}

static void two_threads_move_items_in_order(void **state) {
    (void)state;
    static pair shared;
    init_at(&shared.ring, UINT64_MAX - PAIR_ITEMS / 2);
    pthread_t producer;
    assert_int_equal(pthread_create(&producer, NULL, produce, &shared), 0);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < PAIR_ITEMS; ++i) {
        uint64_t item = 0;
        while (!gbx_spsc_try_pop(&shared.ring, shared.slots, PAIR_CAPACITY, &item))
            sched_yield();
        wrong += item != item_at(i) || count_of(&shared.ring) > PAIR_CAPACITY;
    }
    assert_int_equal(pthread_join(producer, NULL), 0);
    assert_int_equal(wrong, 0);
    assert_int_equal(count_of(&shared.ring), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_refuses_and_empty_gives_nothing),
        cmocka_unit_test(positions_wrap_at_two_to_the_64),
        cmocka_unit_test(items_interleave_in_order),
        cmocka_unit_test(scribbled_ring_stays_within_its_slots),
        cmocka_unit_test(impossible_distance_is_full_and_empty),
        cmocka_unit_test(scribbled_memory_of_the_other_side_heals),
        cmocka_unit_test(two_threads_move_items_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
