/*
 * A doorbell that sleeps: one side rings after it changed something, the other looks, and sleeps
 * when there was nothing. Built on a futex of one process; a ring that nobody sleeps for is one
 * atomic addition.
 *
 *     for (;;) {
 *         uint32_t seen = gbx_doorbell_read(&bell);
 *         if (there is work) ...
 *         else gbx_doorbell_wait(&bell, seen, GBX_FOREVER);
 *     }
 */
#ifndef GBX_BASE_DOORBELL_H
#define GBX_BASE_DOORBELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GBX_FOREVER INT64_MAX

typedef struct gbx_doorbell {
    _Atomic uint32_t rings;    /* ringers add one */
    _Atomic uint32_t sleepers; /* waiters add and take one */
} gbx_doorbell;

/* Pairs with gbx_doorbell_ring: what was written before a ring that is counted here is visible. */
static inline uint32_t gbx_doorbell_read(gbx_doorbell *bell) {
    return atomic_load_explicit(&bell->rings, memory_order_acquire);
}

/* Wakes everyone who sleeps. Any thread, signal handlers too. */
void gbx_doorbell_ring(gbx_doorbell *bell);

/* Returns at once when the bell was rung since `seen`, else sleeps; false when the time is over. */
bool gbx_doorbell_wait(gbx_doorbell *bell, uint32_t seen, int64_t timeout_ns);

#endif
