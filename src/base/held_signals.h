/*
 * The signals that end a program from outside (SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGPIPE,
 * SIGALRM, SIGUSR1, SIGUSR2), held back during work that must not be left half done. They are
 * blocked, not handled: the work asks now and then whether one has come, cleans up, and releases
 * it; then it ends the program as usual.
 */
#ifndef GBX_BASE_HELD_SIGNALS_H
#define GBX_BASE_HELD_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#include "base/status.h"

typedef struct gbx_held_signals {
    sigset_t held;   /* without those the program ignores */
    sigset_t before; /* what was already blocked */
} gbx_held_signals;

/* For the calling thread and the threads it starts from here on. Threads started earlier still take
 * them. */
void gbx_signals_hold(gbx_held_signals *out_signals);

/* Lets pending signals through. */
void gbx_signals_release(const gbx_held_signals *signals);

bool gbx_signals_have_come(const gbx_held_signals *signals);

/* Fails with GBX_IO once one has come. NULL: none is held, never fails. */
GBX_MUST_USE gbx_status gbx_signals_check(const gbx_held_signals *signals);

#endif
