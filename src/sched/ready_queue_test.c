/* Queues with several producers and consumers: no item is lost or doubled, and those of one
 * producer stay in order. */
#include "sched/ready_queue.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

enum { MAX_CELLS = 64, MAX_SIDES = 4, ITEMS = 20000 };

static gbx_ready_cell cells[MAX_CELLS];

/* A queue whose positions begin at `start`, as after that many pushes and pops. */
static void init_at(gbx_ready_queue *queue, uint32_t capacity, uint32_t start) {
    memset(cells, 0, sizeof cells);
    gbx_ready_queue_init(queue, cells, capacity);
    atomic_store(&queue->head, start);
    atomic_store(&queue->tail, start);
    for (uint32_t i = 0; i < capacity; ++i) {
        uint32_t position = start + i;
        uint32_t index = position & (capacity - 1);
        atomic_store(&cells[index].turn, position - index);
    }
}

static void test_first_in_first_out(void **state) {
    (void)state;
    static const uint32_t starts[] = {0, 1, 5, UINT32_MAX - 3, UINT32_MAX, 0x7ffffffe};
    for (uint32_t capacity = 1; capacity <= MAX_CELLS; capacity *= 2) {
        for (size_t k = 0; k < sizeof starts / sizeof starts[0]; ++k) {
            gbx_ready_queue queue;
            uint32_t next_in = 0, next_out = 0, item;
            init_at(&queue, capacity, starts[k]);
            for (uint32_t round = 0; round < 1000; ++round) {
                uint32_t count = (uint32_t)rand() % (capacity - (next_in - next_out) + 1);
                for (uint32_t i = 0; i < count; ++i)
                    gbx_ready_queue_push(&queue, next_in++);
                assert_int_equal(gbx_ready_queue_is_empty(&queue), next_in == next_out);
                count = (uint32_t)rand() % (next_in - next_out + 1);
                for (uint32_t i = 0; i < count; ++i) {
                    assert_true(gbx_ready_queue_pop(&queue, &item));
                    assert_int_equal(item, next_out++);
                }
            }
            while (next_out < next_in) {
                assert_true(gbx_ready_queue_pop(&queue, &item));
                assert_int_equal(item, next_out++);
            }
            assert_false(gbx_ready_queue_pop(&queue, &item));
            assert_true(gbx_ready_queue_is_empty(&queue));
        }
    }
}

/* --- several threads --- */

typedef struct contest {
    gbx_ready_queue queue;
    uint32_t producers;
    uint32_t capacity;
    _Atomic uint32_t
        room; /* entries that may still be pushed: the test, not the queue, keeps within it */
    _Atomic uint32_t popped;
    _Atomic uint32_t times[MAX_SIDES][ITEMS];
    _Atomic uint32_t is_out_of_order;
} contest;

typedef struct side {
    contest *of;
    uint32_t number;
} side;

static void take_room(contest *c) {
    for (;;) {
        uint32_t room = atomic_load(&c->room);
        if (room > 0 && atomic_compare_exchange_weak(&c->room, &room, room - 1))
            return;
        sched_yield();
    }
}

static void *produce(void *argument) {
    const side *me = argument;
    for (uint32_t i = 0; i < ITEMS; ++i) {
        take_room(me->of);
        gbx_ready_queue_push(&me->of->queue, me->number * ITEMS + i);
    }
    return NULL;
}

/* A consumer sees the items of one producer in order. */
static void *consume(void *argument) {
    contest *c = ((const side *)argument)->of;
    int64_t last[MAX_SIDES] = {-1, -1, -1, -1};
    uint32_t item;
    while (atomic_load(&c->popped) < c->producers * ITEMS) {
        if (!gbx_ready_queue_pop(&c->queue, &item)) {
            sched_yield();
            continue;
        }
        atomic_fetch_add(&c->room, 1);
        atomic_fetch_add(&c->popped, 1);
        if (item >= c->producers * ITEMS || (int64_t)(item % ITEMS) <= last[item / ITEMS]) {
            atomic_store(&c->is_out_of_order, 1);
            continue;
        }
        last[item / ITEMS] = item % ITEMS;
        atomic_fetch_add(&c->times[item / ITEMS][item % ITEMS], 1);
    }
    return NULL;
}

static contest shared;

static void run_contest(uint32_t producers, uint32_t consumers, uint32_t capacity, uint32_t start) {
    pthread_t threads[2 * MAX_SIDES];
    side sides[2 * MAX_SIDES];
    memset(&shared, 0, sizeof shared);
    init_at(&shared.queue, capacity, start);
    shared.producers = producers;
    atomic_store(&shared.room, capacity);
    for (uint32_t i = 0; i < producers + consumers; ++i) {
        sides[i] = (side){&shared, i};
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < producers ? produce : consume, &sides[i]), 0);
    }
    for (uint32_t i = 0; i < producers + consumers; ++i)
        pthread_join(threads[i], NULL);
    assert_false(atomic_load(&shared.is_out_of_order));
    for (uint32_t p = 0; p < producers; ++p)
        for (uint32_t i = 0; i < ITEMS; ++i)
            assert_int_equal(atomic_load(&shared.times[p][i]), 1);
    assert_true(gbx_ready_queue_is_empty(&shared.queue));
}

static void test_nothing_is_lost_or_doubled(void **state) {
    (void)state;
    static const struct {
        uint32_t producers, consumers, capacity;
    } shapes[] = {{1, 1, 2}, {4, 4, 64}, {4, 1, 4}, {1, 4, 8}, {3, 3, 1}, {2, 2, 2}};
    uint32_t rounds = getenv("GLASSBOX_STRESS") ? 50 : 1;
    for (uint32_t round = 0; round < rounds; ++round)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; ++i)
            run_contest(shapes[i].producers, shapes[i].consumers, shapes[i].capacity,
                        UINT32_MAX - ITEMS / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_in_first_out),
        cmocka_unit_test(test_nothing_is_lost_or_doubled),
    };
    return cmocka_run_group_tests_name("ready_queue", tests, NULL, NULL);
}
