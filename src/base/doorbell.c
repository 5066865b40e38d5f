#include "base/doorbell.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

_Static_assert(sizeof(_Atomic uint32_t) == sizeof(uint32_t), "a futex is a plain 32-bit word");

static long futex(_Atomic uint32_t *word, int operation, uint32_t value,
                  const struct timespec *deadline) {
    return syscall(SYS_futex, word, operation, value, deadline, NULL, FUTEX_BITSET_MATCH_ANY);
}

/*
 * Ringer: count the ring, then look for sleepers. Waiter: count itself, then (in the kernel) look
 * for a ring. Both in one total order, so at least one of the two sees the other.
 */
void gbx_doorbell_ring(gbx_doorbell *bell) {
    int saved_errno = errno;
    atomic_fetch_add_explicit(&bell->rings, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&bell->sleepers, memory_order_seq_cst) != 0)
        futex(&bell->rings, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
    errno = saved_errno;
}

bool gbx_doorbell_wait(gbx_doorbell *bell, uint32_t seen, int64_t timeout_ns) {
    struct timespec deadline;
    const struct timespec *limit = NULL;
    int64_t deadline_ns;
    if (timeout_ns < 0)
        timeout_ns = 0;
    /* A deadline that overflows the clock is no deadline. */
    if (!__builtin_add_overflow(gbx_clock_ns(), timeout_ns, &deadline_ns)) {
        deadline = gbx_timespec_of_ns(deadline_ns);
        limit = &deadline;
    }
    bool is_rung = true;
    atomic_fetch_add_explicit(&bell->sleepers, 1, memory_order_seq_cst);
    while (gbx_doorbell_read(bell) == seen) {
        long result = futex(&bell->rings, FUTEX_WAIT_BITSET_PRIVATE, seen, limit);
        if (result != 0 && errno == ETIMEDOUT) {
            is_rung = gbx_doorbell_read(bell) != seen;
            break;
        }
    }
    atomic_fetch_sub_explicit(&bell->sleepers, 1, memory_order_relaxed);
    return is_rung;
}
