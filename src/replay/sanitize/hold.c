#include "replay/sanitize/hold.h"

#include <stdlib.h>
#include <string.h>
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
    FLAGS = 8, /* whose values a dispatch remembers */
    PAUSE_NS = 50000,
    STOP_PART =
        10,       /* of the time for all calls: one stop at most, for others may compute long... */
    CALL_PART = 5 /* ...and all stops of a call */
};

enum { MANY_DISPATCHES = 8, BLOCK_BITS = 5 };

typedef enum hold_state { HOLD_NOT_BEGUN = 0, HOLD_RUNS = 1, HOLD_ENDED = 2 } hold_state;

typedef struct seen_flag {
    uintptr_t address;
    uint64_t value;
} seen_flag;

/* One dispatch; only its own thread writes. Relaxed, so that the sanitizer sees no order. */
typedef struct held {
    _Atomic uint32_t state;
    _Atomic uint32_t is_stopped;
    _Atomic uint64_t waits;
    uintptr_t address; /* of the last atomic operation */
    uint32_t looks;    /* more at it, one after the other */
    seen_flag flags[FLAGS];
} held;

static const gbx_kernel_call *call;
static held *all;
static uint32_t lanes;
static uint64_t limit;
static int rule;
static _Atomic uint64_t progress;     /* of any dispatch */
static _Atomic uint64_t stopped_ns;   /* in this call */
static _Atomic uint32_t was_too_slow; /* a stop of this call ended before its time */
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
static int count_groups(void) {
    uint32_t subtasks = subtask_count();
    if (call->dispatch_count == 1)
        return 0;
    if (call->dispatch_count <= MANY_DISPATCHES)
        return (int)call->dispatch_count;
    return (int)(subtasks > 1 ? subtasks : 0) + 2 * block_bits();
}

static int is_slow(uint32_t dispatch) {
    uint32_t subtasks = subtask_count(), at = (uint32_t)(rule - 1) / 2;
    if (rule == 0)
        return 0;
    if (call->dispatch_count <= MANY_DISPATCHES)
        return dispatch == at;
    if (subtasks > 1 && at < subtasks)
        return dispatch % subtasks == at;
    at -= subtasks > 1 ? subtasks : 0;
    return (dispatch / subtasks >> at / 2 & 1) == at % 2;
}

/* Slow dispatches either come late to everything, or see each flag at once and are slow after it.
 */
static int is_late_rule(void) {
    return rule % 2 == 1;
}

int gbx_hold_open(const gbx_kernel_call *of, uint64_t limit_ns) {
    limit = limit_ns;
    call = of;
    lanes = gbx_kernel_call_lanes(of);
    all = calloc(of->dispatch_count, sizeof *all);
    return all ? 2 * count_groups() : -1;
}

void gbx_hold_choose(int chosen) {
    rule = chosen;
    memset(all, 0, call->dispatch_count * sizeof *all);
    PUT(stopped_ns, 0);
    PUT(was_too_slow, 0);
}

int gbx_hold_has_order(void) {
    return GET(has_order) != 0;
}

int gbx_hold_was_kept(void) {
    return GET(was_too_slow) == 0;
}

/* --- stops --- */

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Dispatches that run at a time with this one, and how often each had waited. */
typedef struct wave {
    uint32_t first;
    uint32_t count;
    uint64_t waits[GBX_CALL_MAX_BLOCKS * GBX_SUBTASK_COUNT];
} wave;

static int note_waits(wave *w) {
    const uint32_t first = self / lanes * lanes, left = call->dispatch_count - first;
    w->first = first;
    w->count = left < lanes ? left : lanes;
    if (w->count > sizeof w->waits / sizeof w->waits[0])
        return 0;
    for (uint32_t i = 0; i < w->count; ++i)
        w->waits[i] = GET(all[first + i].waits);
    return 1;
}

/* Whether all slow dispatches of the wave, or all others, have ended or have waited since then. */
static int are_still(const wave *w, int slow) {
    for (uint32_t i = 0; i < w->count; ++i) {
        held *one = &all[w->first + i];
        uint32_t state = GET(one->state);
        if (is_slow(w->first + i) != slow || state == HOLD_ENDED || (slow && GET(one->is_stopped)))
            continue;
        if (state == HOLD_NOT_BEGUN || GET(one->waits) < w->waits[i] + WAITS)
            return 0;
    }
    return 1;
}

static void await_still(int slow) {
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    wave w;
    uint64_t noted = GET(progress);
    if (!note_waits(&w) || GET(was_too_slow))
        return;
    const uint64_t start = clock_ns();
    while (!are_still(&w, slow)) {
        if (clock_ns() - start > limit / STOP_PART || GET(stopped_ns) > limit / CALL_PART) {
            PUT(was_too_slow, 1);
            break;
        }
        syscall(SYS_nanosleep, &pause, NULL);
        if (GET(progress) == noted)
            continue;
        noted = GET(progress);
        (void)note_waits(&w);
    }
    ADD(stopped_ns, clock_ns() - start);
}

/* Of a slow dispatch: until nobody else can do more. */
static void stop(void) {
    PUT(all[self].is_stopped, 1);
    await_still(0);
    PUT(all[self].is_stopped, 0);
}

/* --- what a dispatch does --- */

void gbx_hold_enter(uint32_t dispatch) {
    self = dispatch;
    PUT(all[self].state, HOLD_RUNS);
    ADD(progress, 1);
    if (is_slow(self) && is_late_rule())
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

/* Whether a flag has another value than before; at the beginning it is 0. */
static int has_changed(held *own, uintptr_t address, uint64_t value) {
    seen_flag *flag = own->flags;
    while (flag < own->flags + FLAGS - 1 && flag->address && flag->address != address)
        ++flag;
    uint64_t before = flag->address == address ? flag->value : 0;
    *flag = (seen_flag){address, value};
    return value != before;
}

static void begin_atomic(const volatile void *address, int order, int is_load) {
    if (self == GBX_CALL_NO_DISPATCH)
        return;
    held *own = &all[self];
    if (order != __ATOMIC_RELAXED)
        PUT(has_order, 1);
    own->looks = own->address == (uintptr_t)address ? own->looks + 1 : 0;
    own->address = (uintptr_t)address;
    if (own->looks >= LOOKS)
        ADD(own->waits, 1);
    if (is_slow(self) && is_late_rule() && own->looks < (is_load ? 1 : LOOKS))
        stop();
}

static void end_load(const volatile void *address, uint64_t value) {
    if (self != GBX_CALL_NO_DISPATCH && rule > 0 && is_slow(self) && !is_late_rule() &&
        has_changed(&all[self], (uintptr_t)address, value))
        stop();
}

static void end_update(void) {
    if (self == GBX_CALL_NO_DISPATCH || all[self].looks >= LOOKS)
        return;
    ADD(progress, 1);
    if (rule == 0)
        return;
    if (is_slow(self))
        stop();
    else if (!is_late_rule())
        await_still(1);
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
        begin_atomic(address, order, 0);                                                           \
        uint##bits##_t old = __tsan_atomic##bits##_##name(address, value, order);                  \
        end_update();                                                                              \
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
        begin_atomic(address, order, 0);                                                           \
        int is_done =                                                                              \
            __tsan_atomic##bits##_##name(address, expected, wanted, order, failure_order);         \
        end_update();                                                                              \
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
        begin_atomic(address, order, 1);                                                           \
        uint##bits##_t value = __tsan_atomic##bits##_load(address, order);                         \
        end_load(address, value);                                                                  \
        return value;                                                                              \
    }                                                                                              \
    void __wrap___tsan_atomic##bits##_store(volatile uint##bits##_t *address,                      \
                                            uint##bits##_t value, int order) {                     \
        begin_atomic(address, order, 0);                                                           \
        __tsan_atomic##bits##_store(address, value, order);                                        \
        end_update();                                                                              \
    }                                                                                              \
    uint##bits##_t __wrap___tsan_atomic##bits##_compare_exchange_val(                              \
        volatile uint##bits##_t *address, uint##bits##_t expected, uint##bits##_t wanted,          \
        int order, int failure_order) {                                                            \
        begin_atomic(address, order, 0);                                                           \
        uint##bits##_t old = __tsan_atomic##bits##_compare_exchange_val(address, expected, wanted, \
                                                                        order, failure_order);     \
        end_update();                                                                              \
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
