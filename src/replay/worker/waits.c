#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "replay/worker/worker.h"

enum {
    LOOK_EVERY = 256,  /* yields of a dispatch */
    QUIET_ROUNDS = 20, /* in which nothing changes */
    ROUND_MS = 50
};

/* Of the calls that run now. One thread at a time looks at them. */
static struct {
    gbx_worker_board *board;
    const gbx_picture *picture;
    uint32_t dispatch_count;
    uint32_t wave;               /* how many of them run at a time */
    unsigned long first_threads; /* before the first call: this one, the lifeline, a sanitizer's */
    atomic_flag is_looking;
    int64_t seen_ns; /* this and the next belong to the thread that looks */
    uint64_t seen_memory;
    uint32_t seen_running;
    int quiet;
    _Atomic uint32_t round;
    _Atomic uint32_t yielded[GBX_MAX_DISPATCHES]; /* the last round in which a dispatch yielded */
    _Atomic uint32_t trapped; /* how many dispatches should run into the trap; 0: there is none */
} calls = {.is_looking = ATOMIC_FLAG_INIT};

/* 0 if they cannot be counted. */
static unsigned long count_threads(void) {
    char text[1024];
    unsigned long threads = 0;
    FILE *file = fopen("/proc/self/stat", "r");
    size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[size] = '\0';
    if (file)
        fclose(file);
    const char *at = strrchr(text, ')'); /* then: state and 16 numbers before that of threads */
    if (!at ||
        sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %lu",
               &threads) != 1)
        return 0;
    return threads;
}

void gbx_waits_watch(gbx_worker_board *board, const gbx_picture *picture, uint32_t dispatch_count,
                     uint32_t wave) {
    if (calls.first_threads == 0)
        calls.first_threads = count_threads();
    calls.board = board;
    calls.wave = wave;
    calls.picture = picture;
    calls.dispatch_count = dispatch_count;
    calls.quiet = 0;
    calls.seen_ns = 0;
}

/* How many dispatches run, and how many of them have yielded in this round. One that is about to
 * begin counts as running. */
static uint32_t count_running(uint32_t *out_yielding) {
    uint32_t round = atomic_load_explicit(&calls.round, memory_order_relaxed);
    uint32_t count = 0;
    uint32_t begun = 0;
    *out_yielding = 0;
    for (uint32_t i = 0; i < calls.dispatch_count; ++i) {
        uint32_t state = atomic_load_explicit(&calls.board->states[i], memory_order_acquire);
        begun += state != GBX_CALL_WAITS;
        if (state != GBX_CALL_RUNS)
            continue;
        ++count;
        *out_yielding += atomic_load_explicit(&calls.yielded[i], memory_order_relaxed) == round;
    }
    return begun < calls.dispatch_count && begun % calls.wave != 0 ? count + 1 : count;
}

static uint64_t hash_memory(void) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < calls.picture->window_count; ++i) {
        const gbx_window *window = &calls.picture->windows[i];
        gbx_hash128 one = gbx_hash_bytes((const void *)(uintptr_t)window->address, window->bytes);
        hash = hash * 31 + one.low;
    }
    return hash;
}

/* From now on the flags that dispatches wait for fault, which gives their addresses. */
static void spring_trap(uint32_t running) {
    atomic_store_explicit(&calls.board->wait_count, 0, memory_order_relaxed);
    atomic_store_explicit(&calls.trapped, running, memory_order_release);
    for (uint32_t i = 0; i < calls.picture->window_count; ++i)
        mprotect((void *)(uintptr_t)calls.picture->windows[i].address,
                 calls.picture->windows[i].bytes, PROT_NONE);
}

/* Whether there are other threads than those at the beginning and those that call dispatches: a
 * kernel may wait for one that it has started. */
static bool has_more_threads(void) {
    uint32_t lanes = calls.dispatch_count < calls.wave ? calls.dispatch_count : calls.wave;
    return count_threads() > calls.first_threads + lanes - 1;
}

/* In the trap: notes where a dispatch waits, and does not return. The last one ends the process. */
static void note_wait(bool has_address, uint64_t address) {
    uint32_t expected = atomic_load_explicit(&calls.trapped, memory_order_acquire);
    uint32_t dispatch = gbx_kernel_call_current();
    if (expected == 0 || dispatch == GBX_CALL_NO_DISPATCH)
        return;
    uint32_t place = atomic_fetch_add(&calls.board->wait_count, 1);
    if (place < GBX_CALL_WAITING)
        calls.board->waits[place] =
            (gbx_call_wait){.dispatch = dispatch, .has_address = has_address, .address = address};
    if (place + 1 >= expected)
        gbx_kernel_call_note(GBX_CALL_STUCK);
    for (;;)
        pause();
}

/* In a quiet round all dispatches yield, none returns, and memory stays the same. Only a kernel
 * that waits for the clock goes on after several of them. */
static void look(void) {
    int64_t now = gbx_clock_ns();
    if (calls.seen_ns != 0 && now - calls.seen_ns < ROUND_MS * GBX_NS_PER_MS)
        return;
    uint64_t memory = hash_memory();
    uint32_t yielding;
    uint32_t running = count_running(&yielding);
    bool is_quiet = calls.seen_ns != 0 && memory == calls.seen_memory &&
                    running == calls.seen_running && yielding == running;
    atomic_fetch_add_explicit(&calls.round, 1, memory_order_relaxed);
    calls.quiet = is_quiet ? calls.quiet + 1 : 0;
    calls.seen_ns = now;
    calls.seen_memory = memory;
    calls.seen_running = running;
    if (calls.quiet >= QUIET_ROUNDS && !has_more_threads())
        spring_trap(running);
}

int gbx_waits_yield(void) {
    static _Thread_local uint32_t own_yields, trapped_yields;
    uint32_t dispatch = gbx_kernel_call_current();
    if (dispatch < calls.dispatch_count) {
        gbx_kernel_call_escape();
        atomic_store_explicit(&calls.yielded[dispatch],
                              atomic_load_explicit(&calls.round, memory_order_relaxed),
                              memory_order_relaxed);
        if (atomic_load_explicit(&calls.trapped, memory_order_relaxed) != 0) {
            if (++trapped_yields == LOOK_EVERY)
                note_wait(false, 0); /* it reads no memory, or it would be in the trap */
        } else if (++own_yields % LOOK_EVERY == 0 && !atomic_flag_test_and_set(&calls.is_looking)) {
            look();
            atomic_flag_clear(&calls.is_looking);
        }
    }
    return (int)syscall(SYS_sched_yield);
}

void gbx_waits_on_fault(uint64_t address) {
    note_wait(true, address);
}
