/* Blocks SIGUSR1 and ignores SIGTERM, to check that children of this process do not. */
#ifndef GBX_TESTS_ODD_SIGNALS_H
#define GBX_TESTS_ODD_SIGNALS_H

#include "checks.h"

#include <signal.h>

typedef struct odd_signals {
    sigset_t mask_before;
    struct sigaction handler_before;
} odd_signals;

static inline void odd_signals_begin(odd_signals *signals) {
    sigset_t blocked;
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, &signals->mask_before), 0);
    assert_int_equal(sigaction(SIGTERM, &ignore, &signals->handler_before), 0);
}

static inline void odd_signals_end(const odd_signals *signals) {
    assert_int_equal(sigaction(SIGTERM, &signals->handler_before, NULL), 0);
    assert_int_equal(sigprocmask(SIG_SETMASK, &signals->mask_before, NULL), 0);
}

#endif
