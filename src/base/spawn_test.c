#include "odd_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"

/* Runs a script to its end; its output goes to the descriptors that it gets. */
static int run_with(const char *script, const int *descriptors, size_t count, bool is_output_ours) {
    char *const arguments[] = {"sh", "-c", (char *)(uintptr_t)script, NULL};
    gbx_spawn_order order = {.path = "/bin/sh",
                             .arguments = arguments,
                             .descriptors = descriptors,
                             .descriptor_count = count,
                             .is_output_ours = is_output_ours};
    pid_t pid = 0;
    int status = 0;
    assert_int_equal(gbx_spawn(&order, &pid), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static int open_sink(void) {
    int fd = memfd_create("sink", MFD_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void assert_said(int sink, const char *expected) {
    char text[512] = "";
    ssize_t bytes = pread(sink, text, sizeof text - 1, 0);
    assert_true(bytes >= 0);
    assert_string_equal(text, expected);
}

/* In the order of the list, even if a descriptor has the number that another one gets in the
 * child. */
static void descriptors_get_their_places(void **state) {
    (void)state;
    int kept[3];
    int crossed[3];
    for (int i = 0; i < 3; ++i)
        kept[i] = open_sink();
    for (int i = 0; i < 3; ++i)
        crossed[i] = fcntl(kept[i], F_DUPFD_CLOEXEC, GBX_SPAWN_FIRST_FD);
    const int orders[2][3] = {{kept[2], kept[0], kept[1]}, {crossed[1], kept[2], crossed[0]}};
    for (int i = 0; i < 2; ++i) {
        for (int k = 0; k < 3; ++k)
            assert_int_equal(ftruncate(kept[k], 0), 0);
        assert_int_equal(run_with("printf a >/dev/fd/3; printf b >/dev/fd/4; printf c >/dev/fd/5",
                                  orders[i], 3, false),
                         0);
        assert_said(orders[i][0], "a");
        assert_said(orders[i][1], "b");
        assert_said(orders[i][2], "c");
    }
    for (int i = 0; i < 3; ++i) {
        close(kept[i]);
        close(crossed[i]);
    }
}

/* Not even those without close-on-exec; the shell's own descriptor has a higher number than all. */
static void nothing_else_is_inherited(void **state) {
    (void)state;
    int sink = open_sink();
    int leaky = fcntl(sink, F_DUPFD, 57);
    assert_int_equal(leaky, 57);
    const size_t open_before = count_open_files();
    assert_int_equal(run_with("for f in /proc/$$/fd/*; do case ${f##*/} in [0-3]|57) "
                              "printf '%s ' ${f##*/} >&3;; esac; done; "
                              "for f in 4 5 6 7 8 9 11 12 13 57; do "
                              "[ -e /proc/$$/fd/$f ] && exit 9; done; exit 0",
                              &sink, 1, false),
                     0);
    assert_said(sink, "0 1 2 3 ");
    assert_int_equal(count_open_files(), open_before);
    close(leaky);
    close(sink);
}

static void signals_are_those_of_a_new_program(void **state) {
    (void)state;
    odd_signals signals;
    odd_signals_begin(&signals);
    int of_blocked = run_with("kill -USR1 $$; exit 5", NULL, 0, false);
    int of_ignored = run_with("kill -TERM $$; exit 5", NULL, 0, false);
    odd_signals_end(&signals);
    assert_true(WIFSIGNALED(of_blocked) && WTERMSIG(of_blocked) == SIGUSR1);
    assert_true(WIFSIGNALED(of_ignored) && WTERMSIG(of_ignored) == SIGTERM);
}

static void it_has_a_group_of_its_own(void **state) {
    (void)state;
    int sink = open_sink();
    /* pid (name) state parent group */
    assert_int_equal(run_with("read -r pid name state parent group rest </proc/$$/stat; "
                              "[ $pid = $group ] && [ $pid != $parent ] && printf own >&3",
                              &sink, 1, false),
                     0);
    assert_said(sink, "own");
    close(sink);
}

typedef struct streams {
    int kept[3];
    int in; /* has "input" */
    int out;
    int err;
} streams;

static void replace_streams(streams *s) {
    fflush(NULL);
    *s = (streams){.in = open_sink(), .out = open_sink(), .err = open_sink()};
    for (int i = 0; i < 3; ++i)
        s->kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 20);
    assert_int_equal(pwrite(s->in, "input\n", 6, 0), 6);
    dup2(s->in, STDIN_FILENO);
    dup2(s->out, STDOUT_FILENO);
    dup2(s->err, STDERR_FILENO);
}

static void restore_streams(const streams *s) {
    for (int i = 0; i < 3; ++i) {
        dup2(s->kept[i], i);
        close(s->kept[i]);
    }
}

static void close_streams(const streams *s) {
    close(s->in);
    close(s->out);
    close(s->err);
}

static const char echo[] = "read -r line; printf \"out $line\"; printf ' err' >&2";

static void streams_are_ours_or_kept_from_it(void **state) {
    (void)state;
    for (int i = 0; i < 2; ++i) {
        bool is_output_ours = i == 1;
        streams s;
        replace_streams(&s);
        int status = run_with(echo, NULL, 0, is_output_ours);
        restore_streams(&s);
        assert_int_equal(status, 0);
        assert_said(s.out, is_output_ours ? "" : "out input");
        assert_said(s.err, is_output_ours ? "out  err" : " err");
        close_streams(&s);
    }
}

static void a_silent_program_says_nothing(void **state) {
    (void)state;
    char *const arguments[] = {"sh", "-c", "read -r line; printf \"out $line\"; printf err >&2",
                               NULL};
    const gbx_spawn_order order = {.path = "/bin/sh", .arguments = arguments, .is_silent = true};
    pid_t pid = 0;
    int status = -1;
    streams s;
    replace_streams(&s);
    int error = gbx_spawn(&order, &pid);
    pid_t ended = waitpid(pid, &status, 0);
    restore_streams(&s);
    assert_int_equal(error, 0);
    assert_int_equal(ended, pid);
    assert_int_equal(status, 0);
    assert_said(s.out, "");
    assert_said(s.err, "");
    close_streams(&s);
}

/* Without a standard error, its output is lost; it must not get into the descriptors it was
 * given. */
static void a_closed_error_stream_takes_nothing(void **state) {
    (void)state;
    int sink = open_sink();
    streams s;
    replace_streams(&s);
    close(STDERR_FILENO);
    int status = run_with("printf lost; printf kept >&3", &sink, 1, true);
    restore_streams(&s);
    assert_int_equal(status, 0);
    assert_said(s.out, "");
    assert_said(s.err, "");
    assert_said(sink, "kept");
    close_streams(&s);
    close(sink);
}

static void what_cannot_be_started_is_an_error_number(void **state) {
    (void)state;
    char *const arguments[] = {"x", NULL};
    const int closed = 900;
    gbx_spawn_order order = {.path = "/nonexistent/chip", .arguments = arguments};
    pid_t pid = 0;
    const size_t open_before = count_open_files();
    assert_int_equal(gbx_spawn(&order, &pid), ENOENT);
    order.path = "/dev/null";
    assert_int_equal(gbx_spawn(&order, &pid), EACCES);
    order.path = "/bin/sh";
    order.descriptors = &closed;
    order.descriptor_count = 1;
    assert_int_equal(gbx_spawn(&order, &pid), EBADF);
    order.descriptor_count = GBX_SPAWN_MAX_DESCRIPTORS + 1;
    assert_int_equal(gbx_spawn(&order, &pid), E2BIG);
    assert_int_equal(count_open_files(), open_before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptors_get_their_places),
        cmocka_unit_test(nothing_else_is_inherited),
        cmocka_unit_test(signals_are_those_of_a_new_program),
        cmocka_unit_test(it_has_a_group_of_its_own),
        cmocka_unit_test(streams_are_ours_or_kept_from_it),
        cmocka_unit_test(a_silent_program_says_nothing),
        cmocka_unit_test(a_closed_error_stream_takes_nothing),
        cmocka_unit_test(what_cannot_be_started_is_an_error_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
