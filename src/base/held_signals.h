/*
 * The signals that end a program from outside (SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGPIPE,
 * SIGALRM, SIGUSR1, SIGUSR2), held back while something is made that must not be left half done.
 * They are blocked, not handled: work asks at its own pace whether one has come, cleans up, and
 * lets it through, which then ends the program as it would have.
 */
#ifndef GBX_BASE_HELD_SIGNALS_H
#define GBX_BASE_HELD_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#include "base/status.h"

typedef struct gbx_held_signals {
    sigset_t held;   /* without those that the program ignores */
    sigset_t before; /* what was blocked already */
} gbx_held_signals;

/* Of the calling thread and those that it starts from here on; others, started before, would still
 * take them. */
void gbx_signals_hold(gbx_held_signals *out_signals);

/* Lets those that have come through. */
void gbx_signals_release(const gbx_held_signals *signals);

bool gbx_signals_have_come(const gbx_held_signals *signals);

/* Fails with GBX_IO once one has come. Takes NULL, for which none comes. */
GBX_MUST_USE gbx_status gbx_signals_check(const gbx_held_signals *signals);

#endif
