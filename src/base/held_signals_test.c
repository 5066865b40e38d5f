#include "checks.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/held_signals.h"

static const int numbers[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGXCPU,
                              SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2};

enum { COUNT = sizeof numbers / sizeof numbers[0] };

static volatile sig_atomic_t handled;

static void on_signal(int number) {
    handled = number;
}

static int handle_all(void **state) {
    (void)state;
    handled = 0;
    for (size_t i = 0; i < COUNT; ++i)
        signal(numbers[i], on_signal);
    return 0;
}

static void one_that_came_is_seen_and_acts_at_the_release(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT; ++i) {
        gbx_held_signals signals;
        handled = 0;
        gbx_signals_hold(&signals);
        assert_false(gbx_signals_have_come(&signals));
        assert_ok(gbx_signals_check(&signals));
        kill(getpid(), numbers[i]); /* to the process, as a terminal does */
        assert_true(gbx_signals_have_come(&signals));
        assert_fails(gbx_signals_check(&signals), GBX_IO, "stopped by a signal",
                     strsignal(numbers[i]));
        assert_int_equal(handled, 0);
        gbx_signals_release(&signals);
        assert_int_equal(handled, numbers[i]);
    }
    assert_ok(gbx_signals_check(NULL));
}

static void one_that_is_ignored_never_comes(void **state) {
    (void)state;
    gbx_held_signals signals;
    signal(SIGHUP, SIG_IGN);
    gbx_signals_hold(&signals);
    kill(getpid(), SIGHUP);
    assert_false(gbx_signals_have_come(&signals));
    gbx_signals_release(&signals);
    assert_int_equal(handled, 0);
}

static void one_that_was_blocked_stays_blocked(void **state) {
    (void)state;
    gbx_held_signals signals;
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    gbx_signals_hold(&signals);
    kill(getpid(), SIGTERM);
    gbx_signals_release(&signals);
    assert_int_equal(handled, 0);
    pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
    assert_int_equal(handled, SIGTERM);
}

static void *wait_a_moment(void *context) {
    (void)context;
    usleep(20000);
    return NULL;
}

static void threads_that_are_started_later_hold_them_too(void **state) {
    (void)state;
    gbx_held_signals signals;
    pthread_t thread;
    gbx_signals_hold(&signals);
    assert_int_equal(pthread_create(&thread, NULL, wait_a_moment, NULL), 0);
    kill(getpid(), SIGINT);
    pthread_join(thread, NULL);
    assert_int_equal(handled, 0);
    assert_true(gbx_signals_have_come(&signals));
    gbx_signals_release(&signals);
    assert_int_equal(handled, SIGINT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_that_came_is_seen_and_acts_at_the_release, handle_all),
        cmocka_unit_test_setup(one_that_is_ignored_never_comes, handle_all),
        cmocka_unit_test_setup(one_that_was_blocked_stays_blocked, handle_all),
        cmocka_unit_test_setup(threads_that_are_started_later_hold_them_too, handle_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
