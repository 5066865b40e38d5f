#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/doorbell.h"

enum { ROUNDS = 20000, WAITERS = 16, RINGERS = 4, RINGS_EACH = 10000 };

/* SIGALRM ends the test after this time if a broken doorbell does not end a sleep. */
enum { LONGEST_RUN_SECONDS = 900 };

static uint32_t sleepers(gbx_doorbell *bell) {
    return atomic_load(&bell->sleepers);
}

static void a_ring_before_the_wait_returns_at_once(void **state) {
    (void)state;
    gbx_doorbell bell = {0};
    uint32_t seen = gbx_doorbell_read(&bell);
    assert_int_equal(seen, 0);
    gbx_doorbell_ring(&bell);
    assert_true(gbx_doorbell_wait(&bell, seen, GBX_FOREVER));
    assert_true(gbx_doorbell_wait(&bell, seen, 0));
    assert_true(gbx_doorbell_wait(&bell, seen, -1));
    assert_int_equal(gbx_doorbell_read(&bell), 1);
    assert_int_equal(sleepers(&bell), 0);
}

static void rings_that_were_seen_do_not_count(void **state) {
    (void)state;
    gbx_doorbell bell = {0};
    gbx_doorbell_ring(&bell);
    gbx_doorbell_ring(&bell);
    uint32_t seen = gbx_doorbell_read(&bell);
    assert_int_equal(seen, 2);
    assert_false(gbx_doorbell_wait(&bell, seen, GBX_NS_PER_MS));
    gbx_doorbell_ring(&bell);
    assert_true(gbx_doorbell_wait(&bell, seen, GBX_FOREVER));
}

static void the_count_wraps(void **state) {
    (void)state;
    gbx_doorbell bell = {0};
    atomic_store(&bell.rings, UINT32_MAX);
    uint32_t seen = gbx_doorbell_read(&bell);
    assert_false(gbx_doorbell_wait(&bell, seen, GBX_NS_PER_MS));
    gbx_doorbell_ring(&bell);
    assert_int_equal(gbx_doorbell_read(&bell), 0);
    assert_true(gbx_doorbell_wait(&bell, seen, GBX_FOREVER));
}

static void a_wait_without_a_ring_lasts_its_time(void **state) {
    (void)state;
    gbx_doorbell bell = {0};
    static const int64_t timeouts_ns[] = {1, 20 * GBX_NS_PER_MS, 50 * GBX_NS_PER_MS};
    for (size_t i = 0; i < sizeof timeouts_ns / sizeof timeouts_ns[0]; ++i) {
        int64_t start_ns = gbx_clock_ns();
        assert_false(gbx_doorbell_wait(&bell, 0, timeouts_ns[i]));
        assert_true(gbx_clock_ns() - start_ns >= timeouts_ns[i]);
        assert_int_equal(sleepers(&bell), 0);
    }
}

static void no_time_left_only_looks(void **state) {
    (void)state;
    gbx_doorbell bell = {0};
    assert_false(gbx_doorbell_wait(&bell, 0, 0));
    assert_false(gbx_doorbell_wait(&bell, 0, -1));
    assert_false(gbx_doorbell_wait(&bell, 0, INT64_MIN));
    assert_int_equal(sleepers(&bell), 0);
}

/*
 * The values are plain on purpose: thread sanitizer or a wrong value shows that a ring does not
 * make earlier writes visible.
 */
typedef struct table {
    gbx_doorbell to_there;
    gbx_doorbell to_here;
    uint64_t ball;
    uint32_t wrong_there_count;
} table;

static void *play_back(void *argument) {
    table *game = argument;
    for (uint32_t round = 0; round < ROUNDS; ++round) {
        gbx_doorbell_wait(&game->to_there, round, GBX_FOREVER);
        game->wrong_there_count += game->ball != 2 * (uint64_t)round + 1;
        ++game->ball;
        gbx_doorbell_ring(&game->to_here);
    }
    return NULL;
}

static void ping_pong_loses_nothing(void **state) {
    (void)state;
    table game = {.ball = 0};
    pthread_t other;
    uint32_t wrong_here_count = 0;
    assert_int_equal(pthread_create(&other, NULL, play_back, &game), 0);
    for (uint32_t round = 0; round < ROUNDS; ++round) {
        ++game.ball;
        gbx_doorbell_ring(&game.to_there);
        wrong_here_count += !gbx_doorbell_wait(&game.to_here, round, GBX_FOREVER);
        wrong_here_count += game.ball != 2 * (uint64_t)round + 2;
    }
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(wrong_here_count, 0);
    assert_int_equal(game.wrong_there_count, 0);
    assert_int_equal(gbx_doorbell_read(&game.to_there), ROUNDS);
    assert_int_equal(gbx_doorbell_read(&game.to_here), ROUNDS);
    assert_int_equal(sleepers(&game.to_there) + sleepers(&game.to_here), 0);
}

typedef struct inbox {
    gbx_doorbell bell;
    _Atomic uint32_t items;
} inbox;

static void *post(void *argument) {
    inbox *to = argument;
    for (uint32_t i = 0; i < RINGS_EACH; ++i) {
        atomic_fetch_add_explicit(&to->items, 1, memory_order_relaxed);
        gbx_doorbell_ring(&to->bell);
        if (i % 64 == 0)
            sched_yield(); /* lets the reader fall asleep in between */
    }
    return NULL;
}

/* The loop of the header. After a lost ring, the reader would sleep with items left. */
static uint32_t read_all(inbox *from) {
    uint32_t taken = 0;
    while (taken < RINGERS * RINGS_EACH) {
        uint32_t seen = gbx_doorbell_read(&from->bell);
        uint32_t items = atomic_exchange_explicit(&from->items, 0, memory_order_relaxed);
        if (items)
            taken += items;
        else
            gbx_doorbell_wait(&from->bell, seen, GBX_FOREVER);
    }
    return taken;
}

static void many_ringers_lose_nothing(void **state) {
    (void)state;
    inbox shared = {.items = 0};
    pthread_t threads[RINGERS];
    for (size_t i = 0; i < RINGERS; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, post, &shared), 0);
    assert_int_equal(read_all(&shared), RINGERS * RINGS_EACH);
    for (size_t i = 0; i < RINGERS; ++i)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(gbx_doorbell_read(&shared.bell), RINGERS * RINGS_EACH);
    assert_int_equal(atomic_load(&shared.items), 0);
}

typedef struct waiter {
    gbx_doorbell *bell;
    int64_t timeout_ns;
    int64_t slept_ns;
    bool is_rung;
    _Atomic bool has_ended;
} waiter;

static void *wait_once(void *argument) {
    waiter *me = argument;
    int64_t start_ns = gbx_clock_ns();
    me->is_rung = gbx_doorbell_wait(me->bell, 0, me->timeout_ns);
    me->slept_ns = gbx_clock_ns() - start_ns;
    atomic_store(&me->has_ended, true);
    return NULL;
}

/* A waiter counts itself a little before it sleeps. */
static void await_sleepers(gbx_doorbell *bell, uint32_t count) {
    while (sleepers(bell) < count)
        sched_yield();
    usleep(20000);
}

static void one_ring_wakes_all_waiters(void **state) {
    (void)state;
    gbx_doorbell bell = {0};
    waiter waiters[WAITERS];
    pthread_t threads[WAITERS];
    for (size_t i = 0; i < WAITERS; ++i) {
        /* Some with a distant deadline, which sleep in another way. */
        waiters[i] =
            (waiter){.bell = &bell, .timeout_ns = i % 2 ? GBX_FOREVER : 3600 * GBX_NS_PER_SECOND};
        assert_int_equal(pthread_create(&threads[i], NULL, wait_once, &waiters[i]), 0);
    }
    await_sleepers(&bell, WAITERS);
    gbx_doorbell_ring(&bell);
    for (size_t i = 0; i < WAITERS; ++i)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < WAITERS; ++i)
        assert_true(waiters[i].is_rung);
    assert_int_equal(sleepers(&bell), 0);
}

static void ignore_signal(int number) {
    (void)number;
}

static void a_signal_does_not_end_a_wait(void **state) {
    (void)state;
    gbx_doorbell bell = {0};
    waiter sleeping = {.bell = &bell, .timeout_ns = 100 * GBX_NS_PER_MS, .is_rung = true};
    waiter patient = {.bell = &bell, .timeout_ns = GBX_FOREVER};
    struct sigaction before;
    struct sigaction action = {.sa_handler = ignore_signal}; /* without SA_RESTART */
    pthread_t thread;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_once, &sleeping), 0);
    while (!atomic_load(&sleeping.has_ended)) {
        usleep(5000);
        pthread_kill(thread, SIGUSR1);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(sleeping.is_rung);
    assert_true(sleeping.slept_ns >= 100 * GBX_NS_PER_MS);
    assert_int_equal(pthread_create(&thread, NULL, wait_once, &patient), 0);
    await_sleepers(&bell, 1);
    assert_int_equal(pthread_kill(thread, SIGUSR1), 0);
    usleep(20000);
    gbx_doorbell_ring(&bell);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(patient.is_rung);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_before_the_wait_returns_at_once),
        cmocka_unit_test(rings_that_were_seen_do_not_count),
        cmocka_unit_test(the_count_wraps),
        cmocka_unit_test(a_wait_without_a_ring_lasts_its_time),
        cmocka_unit_test(no_time_left_only_looks),
        cmocka_unit_test(ping_pong_loses_nothing),
        cmocka_unit_test(many_ringers_lose_nothing),
        cmocka_unit_test(one_ring_wakes_all_waiters),
        cmocka_unit_test(a_signal_does_not_end_a_wait),
    };
    alarm(LONGEST_RUN_SECONDS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
