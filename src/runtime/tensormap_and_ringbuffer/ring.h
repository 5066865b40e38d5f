/*
 * Memory that is taken and given back in the same order. Positions count up for ever; where they
 * lie is their remainder. Nothing is split at the end: what does not fit there begins again.
 */
#ifndef GBX_RUNTIME_RING_H
#define GBX_RUNTIME_RING_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gbx_ring {
    uint64_t base;
    uint64_t bytes;
    uint64_t soft_bytes; /* begins again after so many where it can: memory that is warm */
    uint64_t head;       /* position of the next piece */
    uint64_t tail;       /* position of the oldest one */
    uint64_t lap;        /* position at which the head was last at the base */
} gbx_ring;

/* Where a piece would begin. */
static inline uint64_t gbx_ring_position(const gbx_ring *ring, uint64_t bytes) {
    uint64_t at = ring->head - ring->lap;
    uint64_t start_over = ring->lap + ring->bytes;
    if (at + bytes > ring->bytes)
        return start_over;
    if (at >= ring->soft_bytes && start_over + bytes - ring->tail <= ring->bytes)
        return start_over;
    return ring->head;
}

static inline bool gbx_ring_has_room(const gbx_ring *ring, uint64_t bytes) {
    return bytes <= ring->bytes &&
           gbx_ring_position(ring, bytes) + bytes - ring->tail <= ring->bytes;
}

/* The address of a piece that there is room for. */
static inline uint64_t gbx_ring_take(gbx_ring *ring, uint64_t bytes) {
    uint64_t position = gbx_ring_position(ring, bytes);
    if (position == ring->lap + ring->bytes) /* by skipping the rest, or by having filled it */
        ring->lap = position;
    ring->head = position + bytes;
    return ring->base + (position - ring->lap);
}

#endif
