/*
 * Items per second through the SPSC ring, from one thread to another. Every item is checked for
 * its value and order. The exit code says whether the values were right, not whether it was fast.
 */
#include "base/clock.h"
#include "base/spsc_ring.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { CAPACITY = 4096, RUNS = 7, PATIENCE_MIN = 64, PATIENCE_MAX = 1024 };

#define ITEM_COUNT UINT64_C(40000000)
#define TARGET_MILLIONS 100.0

typedef struct bench {
    gbx_spsc_ring ring;
    uint64_t slots[CAPACITY];
    uint64_t wrong_count; /* consumer: items that were not the next in sequence */
} bench;

/* An odd multiplier: each position has an item of its own. */
static inline uint64_t item_at(uint64_t position) {
    return position * UINT64_C(0x9e3779b97f4a7c15);
}

/*
 * Waits longer from try to try, because each try takes the cache line from the thread that works.
 * The other thread may not have a core: after a while it gets this one. Every wait starts with a
 * `patience` of PATIENCE_MIN.
 */
static void wait_a_little(unsigned *patience) {
    if (*patience > PATIENCE_MAX) {
        sched_yield();
        return;
    }
    for (unsigned i = 0; i < *patience; ++i)
        __builtin_ia32_pause();
    *patience *= 2;
}

static void *produce(void *argument) {
    bench *run = argument;
    for (uint64_t i = 0; i < ITEM_COUNT; ++i) {
        unsigned patience = PATIENCE_MIN;
        while (!gbx_spsc_try_push(&run->ring, run->slots, CAPACITY, item_at(i)))
            wait_a_little(&patience);
    }
    return NULL;
}

static uint64_t consume(bench *run) {
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < ITEM_COUNT; ++i) {
        unsigned patience = PATIENCE_MIN;
        uint64_t item;
        while (!gbx_spsc_try_pop(&run->ring, run->slots, CAPACITY, &item))
            wait_a_little(&patience);
        wrong += item != item_at(i);
    }
    return wrong;
}

/* Seconds for all items, from before the producer starts until the last item is checked. */
static double run_once(bench *run) {
    gbx_spsc_init(&run->ring);
    pthread_t producer;
    int64_t start_ns = gbx_clock_ns();
    if (pthread_create(&producer, NULL, produce, run) != 0) {
        fprintf(stderr, "cannot start the producer thread\n");
        exit(2);
    }
    run->wrong_count += consume(run);
    int64_t end_ns = gbx_clock_ns();
    pthread_join(producer, NULL);
    run->wrong_count += gbx_spsc_try_pop(&run->ring, run->slots, CAPACITY, &(uint64_t){0});
    return (double)(end_ns - start_ns) / (double)GBX_NS_PER_SECOND;
}

int main(void) {
    static bench run;
    printf("SPSC ring of %d slots, 8-byte items, two threads, best of %d runs\n", CAPACITY, RUNS);
    printf("%-28s %12s %8s\n", "case", "M items/s", "target");
    double best_seconds = run_once(&run);
    for (int i = 1; i < RUNS; ++i) {
        double seconds = run_once(&run);
        if (seconds < best_seconds)
            best_seconds = seconds;
    }
    double millions = (double)ITEM_COUNT / best_seconds / 1e6;
    const char *verdict = millions >= TARGET_MILLIONS ? "ok" : "BELOW";
    printf("%-28s %12.1f %8.1f  %s\n", "try_push / try_pop", millions, TARGET_MILLIONS,
           run.wrong_count ? "WRONG VALUES" : verdict);
    return run.wrong_count ? 1 : 0;
}
