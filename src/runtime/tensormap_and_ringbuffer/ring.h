/*
 * Memory that is taken and given back in the same order. Positions count up forever; their place is
 * the remainder. No piece is split at the end: one that does not fit there starts at the base.
 */
#ifndef GBX_RUNTIME_RING_H
#define GBX_RUNTIME_RING_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gbx_ring {
    uint64_t base;
    uint64_t bytes;
    uint64_t soft_bytes; /* starts over after this many where possible: the memory is warm */
    uint64_t head;       /* position of the next piece */
    uint64_t tail;       /* position of the oldest one */
    uint64_t lap;        /* position at which the head was last at the base */
    uint64_t skipped;    /* where the lap before it ended; nothing lies from there to `lap` */
    bool is_kept;        /* pieces stay for long: use all of the ring, do not start over early */
} gbx_ring;

/* Where a piece would begin. */
static inline uint64_t gbx_ring_position(const gbx_ring *ring, uint64_t bytes) {
    uint64_t at = ring->head - ring->lap;
    uint64_t start_over = ring->lap + ring->bytes;
    if (at + bytes > ring->bytes)
        return start_over;
    if (at >= ring->soft_bytes && !ring->is_kept && start_over + bytes - ring->tail <= ring->bytes)
        return start_over;
    return ring->head;
}

static inline bool gbx_ring_has_room(const gbx_ring *ring, uint64_t bytes) {
    if (ring->tail == ring->head)
        return bytes <= ring->bytes; /* empty, at any position */
    return bytes <= ring->bytes &&
           gbx_ring_position(ring, bytes) + bytes - ring->tail <= ring->bytes;
}

/* Takes a piece that there is room for; returns its address. */
static inline uint64_t gbx_ring_take(gbx_ring *ring, uint64_t bytes) {
    uint64_t position = gbx_ring_position(ring, bytes);
    if (position == ring->lap + ring->bytes) { /* the rest was skipped, or is full */
        ring->lap = position;
        ring->skipped = ring->head;
        if (ring->tail == ring->head)
            ring->tail = position;
    }
    ring->head = position + bytes;
    return ring->base + (position - ring->lap);
}

/* Gives back everything up to the end of a piece, and what was skipped after it. */
static inline void gbx_ring_give(gbx_ring *ring, uint64_t end) {
    ring->tail = end == ring->skipped ? ring->lap : end;
}

#endif
