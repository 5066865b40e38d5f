#include "odd_signals.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"

#define MIB ((size_t)1 << 20) /* 16 times what a pipe holds */

static gbx_process_result run_script(const char *script) {
    gbx_process_result result;
    char *const arguments[] = {"sh", "-c", (char *)(uintptr_t)script, NULL};
    assert_ok(gbx_process_run(arguments, &result));
    assert_non_null(result.out_text);
    assert_non_null(result.err_text);
    return result;
}

static void assert_exits(const char *script, int exit_code) {
    gbx_process_result result = run_script(script);
    assert_int_equal(result.signal, 0);
    assert_int_equal(result.exit_code, exit_code);
    gbx_process_result_free(&result);
}

static void assert_no_children(void) {
    int status;
    errno = 0;
    assert_int_equal(waitpid(-1, &status, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void both_outputs_are_kept_apart(void **state) {
    (void)state;
    gbx_process_result result = run_script("printf one; printf two >&2; printf ' three'");
    assert_string_equal(result.out_text, "one three");
    assert_int_equal(result.out_size, 9);
    assert_string_equal(result.err_text, "two");
    assert_int_equal(result.exit_code, 0);
    assert_int_equal(result.signal, 0);
    gbx_process_result_free(&result);
    assert_null(result.out_text);
    assert_null(result.err_text);
    assert_int_equal(result.out_size, 0);
    gbx_process_result_free(&result); /* freeing it again is valid */
}

static void silence_gives_empty_texts(void **state) {
    (void)state;
    gbx_process_result result = run_script(":");
    assert_string_equal(result.out_text, "");
    assert_string_equal(result.err_text, "");
    assert_int_equal(result.out_size, 0);
    gbx_process_result_free(&result);
}

static void zero_bytes_of_the_output_are_kept(void **state) {
    (void)state;
    gbx_process_result result = run_script("printf 'a\\0b'");
    assert_int_equal(result.out_size, 3);
    assert_memory_equal(result.out_text, "a\0b", 4);
    gbx_process_result_free(&result);
}

/* Reading them one after the other would fill the unread pipe: both must be read at the same
 * time. */
static void large_outputs_do_not_lock_up(void **state) {
    (void)state;
    static const char *const orders[] = {"out; err", "err; out", "out & err & wait"};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; ++i) {
        char script[256];
        snprintf(script, sizeof script,
                 "out() { head -c 1048576 /dev/zero | tr '\\0' o; }\n"
                 "err() { head -c 1048576 /dev/zero | tr '\\0' e >&2; }\n%s",
                 orders[i]);
        gbx_process_result result = run_script(script);
        assert_int_equal(result.exit_code, 0);
        assert_int_equal(result.out_size, MIB);
        assert_int_equal(strspn(result.out_text, "o"), MIB);
        assert_int_equal(strlen(result.err_text), MIB);
        assert_int_equal(strspn(result.err_text, "e"), MIB);
        gbx_process_result_free(&result);
    }
}

/* Sizes around the ones at which the texts grow. */
static void every_size_is_read_completely(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 4095, 4096, 12288, 12289, 16383, 16384, 16385, 65537};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        char script[64];
        snprintf(script, sizeof script, "head -c %zu /dev/zero | tr '\\0' x", sizes[i]);
        gbx_process_result result = run_script(script);
        assert_int_equal(result.out_size, sizes[i]);
        assert_int_equal(strspn(result.out_text, "x"), sizes[i]);
        assert_int_equal(result.out_text[sizes[i]], '\0');
        gbx_process_result_free(&result);
    }
}

static void exit_codes_are_given(void **state) {
    (void)state;
    assert_exits("exit 0", 0);
    assert_exits("exit 1", 1);
    assert_exits("exit 7", 7);
    assert_exits("exit 255", 255);
}

static void death_by_a_signal_is_given_with_the_output_so_far(void **state) {
    (void)state;
    gbx_process_result result = run_script("printf before; kill -KILL $$");
    assert_int_equal(result.exit_code, -1);
    assert_int_equal(result.signal, SIGKILL);
    assert_string_equal(result.out_text, "before");
    gbx_process_result_free(&result);
}

/* A program that cannot be started is a failure that names it, and leaves nothing behind. */
static void assert_cannot_start(const char *program, const char *reason) {
    char expected[256];
    char *const arguments[] = {(char *)(uintptr_t)program, "argument", NULL};
    const size_t open_before = count_open_files();
    gbx_process_result result;
    gbx_status status = gbx_process_run(arguments, &result);
    snprintf(expected, sizeof expected, "running %s: %s", program, reason);
    assert_int_equal(gbx_status_code(status), GBX_NOT_FOUND);
    assert_int_equal(strncmp(gbx_status_message(status), expected, strlen(expected)), 0);
    assert_null(result.out_text);
    assert_null(result.err_text);
    gbx_status_free(status);
    assert_int_equal(count_open_files(), open_before);
    assert_no_children();
}

static void a_missing_program_is_named(void **state) {
    (void)state;
    /* A directory of PATH that may not be read gives another reason than a readable one. */
    assert_cannot_start("glassbox-no-such-program", "");
    assert_cannot_start("/nonexistent/cc", strerror(ENOENT));
    assert_cannot_start("/dev/null", strerror(EACCES));
}

static void no_descriptor_and_no_process_is_left(void **state) {
    (void)state;
    const size_t open_before = count_open_files();
    for (int i = 0; i < 5; ++i) {
        assert_exits("printf x; printf y >&2", 0);
        assert_exits("exit 3", 3);
    }
    assert_int_equal(count_open_files(), open_before);
    assert_no_children();
}

static void arguments_pass_unchanged(void **state) {
    (void)state;
    gbx_process_result result;
    char *const arguments[] = {"sh",
                               "-c",
                               "for a; do printf '[%s]' \"$a\"; done",
                               "script",
                               "",
                               "two words",
                               " edges ",
                               "'",
                               "\"quoted\" 'both'",
                               "$HOME `x` \\n",
                               "*",
                               "a\nb\tc",
                               "--",
                               "\xc3\xa9",
                               NULL};
    assert_ok(gbx_process_run(arguments, &result));
    assert_string_equal(result.out_text,
                        "[][two words][ edges ]['][\"quoted\" 'both'][$HOME `x` \\n][*][a\nb\tc]"
                        "[--][\xc3\xa9]");
    gbx_process_result_free(&result);
}

static void the_environment_passes(void **state) {
    (void)state;
    assert_int_equal(setenv("GBX_PROCESS_TEST", "a  b", 1), 0);
    gbx_process_result result = run_script("printf %s \"$GBX_PROCESS_TEST\"");
    assert_int_equal(unsetenv("GBX_PROCESS_TEST"), 0);
    assert_string_equal(result.out_text, "a  b");
    gbx_process_result_free(&result);
}

static void standard_input_is_empty(void **state) {
    (void)state;
    gbx_process_result result = run_script("cat; readlink /proc/self/fd/0");
    assert_string_equal(result.out_text, "/dev/null\n");
    gbx_process_result_free(&result);
}

/* Even one that was not opened close-on-exec, as libraries do. */
static void no_other_descriptor_is_inherited(void **state) {
    (void)state;
    int open_here = open("/dev/null", O_RDONLY);
    assert_true(open_here >= 0);
    int high = fcntl(open_here, F_DUPFD, 57);
    assert_int_equal(high, 57);
    assert_exits("[ -e /proc/self/fd/1 ] && [ ! -e /proc/self/fd/57 ]", 0);
    close(high);
    close(open_here);
}

/* The program must not inherit what this process ignores or blocks. */
static void signals_are_back_to_normal_in_the_program(void **state) {
    (void)state;
    odd_signals signals;
    odd_signals_begin(&signals);
    gbx_process_result blocked_result = run_script("kill -USR1 $$; exit 5");
    gbx_process_result ignored_result = run_script("kill -TERM $$; exit 5");
    odd_signals_end(&signals);
    assert_int_equal(blocked_result.signal, SIGUSR1);
    assert_int_equal(ignored_result.signal, SIGTERM);
    gbx_process_result_free(&blocked_result);
    gbx_process_result_free(&ignored_result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_outputs_are_kept_apart),
        cmocka_unit_test(silence_gives_empty_texts),
        cmocka_unit_test(zero_bytes_of_the_output_are_kept),
        cmocka_unit_test(large_outputs_do_not_lock_up),
        cmocka_unit_test(every_size_is_read_completely),
        cmocka_unit_test(exit_codes_are_given),
        cmocka_unit_test(death_by_a_signal_is_given_with_the_output_so_far),
        cmocka_unit_test(a_missing_program_is_named),
        cmocka_unit_test(no_descriptor_and_no_process_is_left),
        cmocka_unit_test(arguments_pass_unchanged),
        cmocka_unit_test(the_environment_passes),
        cmocka_unit_test(standard_input_is_empty),
        cmocka_unit_test(no_other_descriptor_is_inherited),
        cmocka_unit_test(signals_are_back_to_normal_in_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
