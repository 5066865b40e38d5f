/*
 * A ring of 64-bit items from one producer to one consumer, which may be two processes that share
 * the memory. It owns neither lock nor storage and holds no pointer: the slots and the capacity are
 * passed at every call, from memory that the other side cannot write.
 *
 * Capacity is a power of two, 1 or more, and `slots` has that many items. A full ring takes
 * nothing: the push returns false, and the caller counts a loss or waits.
 *
 * A peer that overwrites the ring can make items wrong, lost or repeated, but no call indexes
 * outside the slots or loops on what it reads: each index is read once and masked, and an
 * impossible distance counts as full (push) or empty (pop).
 */
#ifndef GBX_BASE_SPSC_RING_H
#define GBX_BASE_SPSC_RING_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GBX_SPSC_LINE_BYTES 128 /* two cache lines: the prefetcher of x86 fetches them in pairs */

/*
 * Positions count items since the start, and wrap at 2^64; slot = position & (capacity - 1).
 * The `seen` fields spare their owner a read of the other side's line until it looks full or empty.
 */
typedef struct gbx_spsc_ring {
    _Alignas(GBX_SPSC_LINE_BYTES) _Atomic uint64_t tail; /* producer writes: items ever pushed */
    _Atomic uint64_t seen_head; /* producer writes and reads: last `head` it read */
    _Alignas(GBX_SPSC_LINE_BYTES) _Atomic uint64_t head; /* consumer writes: items ever popped */
    _Atomic uint64_t seen_tail; /* consumer writes and reads: last `tail` it read */
} gbx_spsc_ring;

static_assert(ATOMIC_LLONG_LOCK_FREE == 2,
              "a lock hidden in an atomic does not work across processes");
static_assert(sizeof(_Atomic uint64_t) == sizeof(uint64_t),
              "atomics are laid out as plain integers");
static_assert(sizeof(gbx_spsc_ring) == 256, "layout shared by host and device");
static_assert(offsetof(gbx_spsc_ring, tail) == 0, "layout shared by host and device");
static_assert(offsetof(gbx_spsc_ring, seen_head) == 8, "layout shared by host and device");
static_assert(offsetof(gbx_spsc_ring, head) == 128, "layout shared by host and device");
static_assert(offsetof(gbx_spsc_ring, seen_tail) == 136, "layout shared by host and device");

/* Empties the ring. Before either side uses it; handing the ring over publishes it. */
static inline void gbx_spsc_init(gbx_spsc_ring *ring) {
    atomic_init(&ring->tail, 0);
    atomic_init(&ring->seen_head, 0);
    atomic_init(&ring->head, 0);
    atomic_init(&ring->seen_tail, 0);
}

/* Producer only. Whether there is room for an item at `tail`. */
static inline bool gbx_spsc_has_room(gbx_spsc_ring *ring, uint64_t capacity, uint64_t tail) {
    uint64_t seen_head = atomic_load_explicit(&ring->seen_head, memory_order_relaxed);
    if (tail - seen_head < capacity)
        return true;
    /* Acquire pairs with the release of `head` in the pop: the slots up to it are read. */
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
    atomic_store_explicit(&ring->seen_head, head, memory_order_relaxed);
    return tail - head < capacity;
}

/* Consumer only. Whether there is an item at `head`. */
static inline bool gbx_spsc_has_item(gbx_spsc_ring *ring, uint64_t capacity, uint64_t head) {
    uint64_t seen_tail = atomic_load_explicit(&ring->seen_tail, memory_order_relaxed);
    if (seen_tail - head - 1 < capacity)
        return true;
    /* Acquire pairs with the release of `tail` in the push: the slots up to it are written. */
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    atomic_store_explicit(&ring->seen_tail, tail, memory_order_relaxed);
    return tail - head - 1 < capacity;
}

/* Producer only. False when the ring is full; nothing is written then. */
static inline bool gbx_spsc_try_push(gbx_spsc_ring *ring, uint64_t *slots, uint64_t capacity,
                                     uint64_t item) {
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (!gbx_spsc_has_room(ring, capacity, tail))
        return false;
    slots[tail & (capacity - 1)] = item;
    /* Release pairs with the acquire in gbx_spsc_has_item: the item is there before its position.
     */
    atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
    return true;
}

/* Consumer only. False when the ring is empty; *out_item is untouched then. */
static inline bool gbx_spsc_try_pop(gbx_spsc_ring *ring, const uint64_t *slots, uint64_t capacity,
                                    uint64_t *out_item) {
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    if (!gbx_spsc_has_item(ring, capacity, head))
        return false;
    *out_item = slots[head & (capacity - 1)];
    /* Release pairs with the acquire in gbx_spsc_has_room: the slot is read before it is given
     * back. */
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
    return true;
}

#endif
