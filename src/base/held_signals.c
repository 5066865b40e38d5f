#include "base/held_signals.h"

#include <pthread.h>
#include <string.h>

static const int ending[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGXCPU,
                             SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2};

enum { ENDING_COUNT = sizeof ending / sizeof ending[0] };

/* A blocked signal stays pending even if it is ignored, so ask. */
static bool is_ignored(int number) {
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && !(action.sa_flags & SA_SIGINFO) &&
           action.sa_handler == SIG_IGN;
}

void gbx_signals_hold(gbx_held_signals *out_signals) {
    sigemptyset(&out_signals->held);
    for (size_t i = 0; i < ENDING_COUNT; ++i)
        if (!is_ignored(ending[i]))
            sigaddset(&out_signals->held, ending[i]);
    pthread_sigmask(SIG_BLOCK, &out_signals->held, &out_signals->before);
}

void gbx_signals_release(const gbx_held_signals *signals) {
    pthread_sigmask(SIG_SETMASK, &signals->before, NULL);
}

/* The first of them that has come; 0 for none. */
static int first_that_came(const gbx_held_signals *signals) {
    sigset_t pending;
    if (sigpending(&pending) != 0)
        return 0;
    for (size_t i = 0; i < ENDING_COUNT; ++i)
        if (sigismember(&signals->held, ending[i]) == 1 && sigismember(&pending, ending[i]) == 1)
            return ending[i];
    return 0;
}

bool gbx_signals_have_come(const gbx_held_signals *signals) {
    return first_that_came(signals) != 0;
}

gbx_status gbx_signals_check(const gbx_held_signals *signals) {
    int number = signals ? first_that_came(signals) : 0;
    if (number == 0)
        return NULL;
    return gbx_fail(GBX_IO, "stopped by a signal (%s)", strsignal(number));
}
