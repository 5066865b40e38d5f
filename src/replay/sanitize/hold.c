#include "replay/sanitize/hold.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * Between two waits without progress of anybody, a dispatch has looked at least once at what it
 * waits for. A loop of atomic operations on one address is a wait that does not yield.
 */
enum {
    WAITS = 2,
    LOOKS = 32,
    PAUSE_NS = 50000,
    HOLD_NS = 250000000, /* one stop at most: others may compute for long */
    CALL_NS = 1000000000 /* all stops of a call */
};

enum { MANY_DISPATCHES = 8, BLOCK_BITS = 5 };

typedef enum hold_state { HOLD_NOT_BEGUN = 0, HOLD_RUNS = 1, HOLD_ENDED = 2 } hold_state;

/* One dispatch; only its own thread writes. Relaxed, so that the sanitizer sees no order. */
typedef struct held {
    _Atomic uint32_t state;
    _Atomic uint64_t waits;
    uintptr_t address; /* of the last atomic operation */
    uint32_t looks;    /* more at it, one after the other */
} held;

static const gbx_kernel_call *call;
static held *all;
static uint32_t lanes;
static int rule;
static _Atomic uint64_t progress; /* of any dispatch */
static _Atomic uint64_t held_ns;  /* in this call */
static _Atomic uint32_t has_order;
static _Thread_local uint32_t self = GBX_CALL_NO_DISPATCH;

#define GET(object) atomic_load_explicit(&(object), memory_order_relaxed)
#define PUT(object, value) atomic_store_explicit(&(object), value, memory_order_relaxed)
#define ADD(object, value) atomic_fetch_add_explicit(&(object), value, memory_order_relaxed)

/* --- who is slow --- */

static uint32_t subtask_count(void) {
    uint32_t count = 1;
    while (count < call->dispatch_count &&
           call->dispatches[count].block_idx == call->dispatches[0].block_idx)
        ++count;
    return count;
}

static int block_bits(void) {
    uint32_t blocks = lanes / subtask_count();
    int bits = 0;
    while (bits < BLOCK_BITS && 1u << bits < blocks)
        ++bits;
    return bits;
}

/* Of few dispatches, each; else each subtask of all blocks, then blocks by the bits of their
 * index: any two of a wave differ in one of them. */
static int count_rules(void) {
    uint32_t subtasks = subtask_count();
    if (call->dispatch_count == 1)
        return 0;
    if (call->dispatch_count <= MANY_DISPATCHES)
        return (int)call->dispatch_count;
    return (int)(subtasks > 1 ? subtasks : 0) + 2 * block_bits();
}

static int is_slow(uint32_t dispatch) {
    uint32_t subtasks = subtask_count(), at = (uint32_t)rule - 1;
    if (rule == 0)
        return 0;
    if (call->dispatch_count <= MANY_DISPATCHES)
        return dispatch == at;
    if (subtasks > 1 && at < subtasks)
        return dispatch % subtasks == at;
    at -= subtasks > 1 ? subtasks : 0;
    return (dispatch / subtasks >> at / 2 & 1) == at % 2;
}

int gbx_hold_open(const gbx_kernel_call *of) {
    call = of;
    lanes = gbx_kernel_call_lanes(of);
    all = calloc(of->dispatch_count, sizeof *all);
    return all ? count_rules() : -1;
}

void gbx_hold_choose(int chosen) {
    rule = chosen;
    for (uint32_t i = 0; i < call->dispatch_count; ++i)
        all[i] = (held){0};
    PUT(held_ns, 0);
}

int gbx_hold_has_order(void) {
    return GET(has_order) != 0;
}

/* --- stops --- */

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Whether all others of the wave have ended, or have waited since `before` was noted. */
static int are_others_still(uint32_t first, uint32_t count, const uint64_t *before) {
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t state = GET(all[first + i].state);
        if (state == HOLD_ENDED || is_slow(first + i))
            continue;
        if (state == HOLD_NOT_BEGUN || GET(all[first + i].waits) < before[i] + WAITS)
            return 0;
    }
    return 1;
}

static void note_waits(uint32_t first, uint32_t count, uint64_t *before) {
    for (uint32_t i = 0; i < count; ++i)
        before[i] = GET(all[first + i].waits);
}

static void stop(void) {
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    const uint32_t first = self / lanes * lanes, left = call->dispatch_count - first;
    const uint32_t count = left < lanes ? left : lanes;
    uint64_t before[GBX_CALL_MAX_BLOCKS * GBX_SUBTASK_COUNT];
    if (count > sizeof before / sizeof before[0] || GET(held_ns) > CALL_NS)
        return;
    const uint64_t start = clock_ns();
    uint64_t noted = GET(progress);
    note_waits(first, count, before);
    while (!are_others_still(first, count, before) && clock_ns() - start < HOLD_NS) {
        syscall(SYS_nanosleep, &pause, NULL);
        if (GET(progress) == noted)
            continue;
        noted = GET(progress);
        note_waits(first, count, before);
    }
    ADD(held_ns, clock_ns() - start);
}

/* --- what a dispatch does --- */

void gbx_hold_enter(uint32_t dispatch) {
    self = dispatch;
    PUT(all[self].state, HOLD_RUNS);
    ADD(progress, 1);
    if (is_slow(self))
        stop();
}

void gbx_hold_leave(void) {
    PUT(all[self].state, HOLD_ENDED);
    ADD(progress, 1);
    self = GBX_CALL_NO_DISPATCH;
}

void gbx_hold_wait(void) {
    PUT(has_order, 1);
    if (self != GBX_CALL_NO_DISPATCH)
        ADD(all[self].waits, 1);
}

/* Returns whether the dispatch is to stop after it, too. */
static int begin_atomic(const volatile void *address, int order, int is_load) {
    if (self == GBX_CALL_NO_DISPATCH)
        return 0;
    held *own = &all[self];
    if (order != __ATOMIC_RELAXED)
        PUT(has_order, 1);
    own->looks = own->address == (uintptr_t)address ? own->looks + 1 : 0;
    own->address = (uintptr_t)address;
    if (own->looks >= LOOKS)
        ADD(own->waits, 1);
    else if (!is_load)
        ADD(progress, 1);
    if (!is_slow(self) || own->looks >= (is_load ? 1 : LOOKS))
        return 0;
    stop();
    return !is_load;
}

static void end_atomic(int stops) {
    if (stops)
        stop();
}

/* --- what kernels call: they are linked with --wrap --- */

#define CALLED __attribute__((visibility("default")))

/* Compilers declare none of them. */
#define UPDATE(bits, name)                                                                         \
    uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *address,                  \
                                                uint##bits##_t value, int order);                  \
    CALLED uint##bits##_t __wrap___tsan_atomic##bits##_##name(volatile uint##bits##_t *address,    \
                                                              uint##bits##_t value, int order);    \
    uint##bits##_t __wrap___tsan_atomic##bits##_##name(volatile uint##bits##_t *address,           \
                                                       uint##bits##_t value, int order) {          \
        int stops = begin_atomic(address, order, 0);                                               \
        uint##bits##_t old = __tsan_atomic##bits##_##name(address, value, order);                  \
        end_atomic(stops);                                                                         \
        return old;                                                                                \
    }
#define EXCHANGE(bits, name)                                                                       \
    int __tsan_atomic##bits##_##name(volatile uint##bits##_t *address, uint##bits##_t *expected,   \
                                     uint##bits##_t wanted, int order, int failure_order);         \
    CALLED int __wrap___tsan_atomic##bits##_##name(                                                \
        volatile uint##bits##_t *address, uint##bits##_t *expected, uint##bits##_t wanted,         \
        int order, int failure_order);                                                             \
    int __wrap___tsan_atomic##bits##_##name(volatile uint##bits##_t *address,                      \
                                            uint##bits##_t *expected, uint##bits##_t wanted,       \
                                            int order, int failure_order) {                        \
        int stops = begin_atomic(address, order, 0);                                               \
        int is_done =                                                                              \
            __tsan_atomic##bits##_##name(address, expected, wanted, order, failure_order);         \
        end_atomic(stops);                                                                         \
        return is_done;                                                                            \
    }
#define ATOMIC(bits)                                                                               \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *address, int order);  \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t *address, uint##bits##_t value,       \
                                     int order);                                                   \
    uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                     \
        volatile uint##bits##_t *address, uint##bits##_t expected, uint##bits##_t wanted,          \
        int order, int failure_order);                                                             \
    CALLED uint##bits##_t __wrap___tsan_atomic##bits##_load(                                       \
        const volatile uint##bits##_t *address, int order);                                        \
    CALLED void __wrap___tsan_atomic##bits##_store(volatile uint##bits##_t *address,               \
                                                   uint##bits##_t value, int order);               \
    CALLED uint##bits##_t __wrap___tsan_atomic##bits##_compare_exchange_val(                       \
        volatile uint##bits##_t *address, uint##bits##_t expected, uint##bits##_t wanted,          \
        int order, int failure_order);                                                             \
    uint##bits##_t __wrap___tsan_atomic##bits##_load(const volatile uint##bits##_t *address,       \
                                                     int order) {                                  \
        (void)begin_atomic(address, order, 1);                                                     \
        return __tsan_atomic##bits##_load(address, order);                                         \
    }                                                                                              \
    void __wrap___tsan_atomic##bits##_store(volatile uint##bits##_t *address,                      \
                                            uint##bits##_t value, int order) {                     \
        int stops = begin_atomic(address, order, 0);                                               \
        __tsan_atomic##bits##_store(address, value, order);                                        \
        end_atomic(stops);                                                                         \
    }                                                                                              \
    uint##bits##_t __wrap___tsan_atomic##bits##_compare_exchange_val(                              \
        volatile uint##bits##_t *address, uint##bits##_t expected, uint##bits##_t wanted,          \
        int order, int failure_order) {                                                            \
        int stops = begin_atomic(address, order, 0);                                               \
        uint##bits##_t old = __tsan_atomic##bits##_compare_exchange_val(address, expected, wanted, \
                                                                        order, failure_order);     \
        end_atomic(stops);                                                                         \
        return old;                                                                                \
    }                                                                                              \
    UPDATE(bits, exchange)                                                                         \
    UPDATE(bits, fetch_add)                                                                        \
    UPDATE(bits, fetch_sub)                                                                        \
    UPDATE(bits, fetch_and)                                                                        \
    UPDATE(bits, fetch_or)                                                                         \
    UPDATE(bits, fetch_xor)                                                                        \
    UPDATE(bits, fetch_nand)                                                                       \
    EXCHANGE(bits, compare_exchange_strong)                                                        \
    EXCHANGE(bits, compare_exchange_weak)
ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)
