/*
 * A doorbell: one side rings after a change; the other looks for work and sleeps when there is
 * none. Built on a futex within one process; a ring is one atomic addition when no one sleeps.
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

/* Pairs with gbx_doorbell_ring: everything written before a ring counted here is visible. */
static inline uint32_t gbx_doorbell_read(gbx_doorbell *bell) {
    return atomic_load_explicit(&bell->rings, memory_order_acquire);
}

/* Wakes everyone who sleeps. Any thread, signal handlers too. */
void gbx_doorbell_ring(gbx_doorbell *bell);

/* Returns at once when the bell was rung since `seen`, else sleeps; false on a timeout. */
bool gbx_doorbell_wait(gbx_doorbell *bell, uint32_t seen, int64_t timeout_ns);

#endif
