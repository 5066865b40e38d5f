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

enum { CAPACITY = 4096, RUNS = 7, PATIENCE_MIN = 64, PATIENCE_MAX = 1024, BATCH_MAX = 256 };

#define ITEM_COUNT UINT64_C(40000000)
#define TARGET_MILLIONS 100.0

static_assert(ITEM_COUNT % BATCH_MAX == 0, "whole batches");

typedef struct bench {
    gbx_spsc_ring ring;
    uint64_t slots[CAPACITY];
    size_t batch;         /* 1: try_push and try_pop */
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

static void produce_single(bench *run) {
    for (uint64_t i = 0; i < ITEM_COUNT; ++i) {
        unsigned patience = PATIENCE_MIN;
        while (!gbx_spsc_try_push(&run->ring, run->slots, CAPACITY, item_at(i)))
            wait_a_little(&patience);
    }
}

static void produce_batch(bench *run) {
    uint64_t items[BATCH_MAX];
    for (uint64_t i = 0; i < ITEM_COUNT; i += run->batch) {
        for (size_t k = 0; k < run->batch; ++k)
            items[k] = item_at(i + k);
        unsigned patience = PATIENCE_MIN;
        for (size_t pushed = 0; pushed < run->batch;) {
            size_t added = gbx_spsc_push_many(&run->ring, run->slots, CAPACITY, items + pushed,
                                              run->batch - pushed);
            if (added == 0)
                wait_a_little(&patience);
            pushed += added;
        }
    }
}

static void *produce(void *argument) {
    bench *run = argument;
    if (run->batch == 1)
        produce_single(run);
    else
        produce_batch(run);
    return NULL;
}

static uint64_t consume_single(bench *run) {
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

static uint64_t consume_batch(bench *run) {
    unsigned patience = PATIENCE_MIN;
    uint64_t wrong = 0;
    uint64_t items[BATCH_MAX];
    for (uint64_t i = 0; i < ITEM_COUNT;) {
        size_t got = gbx_spsc_pop_many(&run->ring, run->slots, CAPACITY, items, run->batch);
        if (got == 0)
            wait_a_little(&patience);
        else
            patience = PATIENCE_MIN;
        for (size_t k = 0; k < got; ++k)
            wrong += items[k] != item_at(i + k);
        i += got;
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
    run->wrong_count += run->batch == 1 ? consume_single(run) : consume_batch(run);
    int64_t end_ns = gbx_clock_ns();
    pthread_join(producer, NULL);
    if (gbx_spsc_count(&run->ring) != 0)
        run->wrong_count++;
    return (double)(end_ns - start_ns) / (double)GBX_NS_PER_SECOND;
}

static bool measure(const char *name, size_t batch) {
    static bench run;
    run.batch = batch;
    run.wrong_count = 0;
    double best_seconds = run_once(&run);
    for (int i = 1; i < RUNS; ++i) {
        double seconds = run_once(&run);
        if (seconds < best_seconds)
            best_seconds = seconds;
    }
    double millions = (double)ITEM_COUNT / best_seconds / 1e6;
    const char *verdict = millions >= TARGET_MILLIONS ? "ok" : "BELOW";
    printf("%-28s %12.1f %8.1f  %s\n", name, millions, TARGET_MILLIONS,
           run.wrong_count ? "WRONG VALUES" : verdict);
    return run.wrong_count == 0;
}

int main(void) {
    printf("SPSC ring of %d slots, 8-byte items, two threads, best of %d runs\n", CAPACITY, RUNS);
    printf("%-28s %12s %8s\n", "case", "M items/s", "target");
    bool is_right = measure("try_push / try_pop", 1);
    is_right &= measure("push_many / pop_many of 16", 16);
    is_right &= measure("push_many / pop_many of 256", 256);
    return is_right ? 0 : 1;
}
