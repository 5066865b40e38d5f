#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

enum { LINE_BYTES = 2048 };

/* What was written to stderr between begin and end. */
typedef struct capture {
    FILE *file;
    int saved_stderr;
    char text[8192];
    size_t size;
} capture;

static void capture_begin(capture *captured) {
    captured->file = tmpfile();
    assert_non_null(captured->file);
    fflush(stderr);
    captured->saved_stderr = dup(STDERR_FILENO);
    assert_true(captured->saved_stderr >= 0);
    assert_true(dup2(fileno(captured->file), STDERR_FILENO) >= 0);
}

static void capture_end(capture *captured) {
    fflush(stderr);
    int restored = dup2(captured->saved_stderr, STDERR_FILENO);
    close(captured->saved_stderr);
    assert_true(restored >= 0);
    rewind(captured->file);
    captured->size = fread(captured->text, 1, sizeof captured->text - 1, captured->file);
    captured->text[captured->size] = '\0';
    fclose(captured->file);
}

/* The level that a fresh process starts with; a NULL variable is unset. */
static gbx_log_level level_of_fresh_process(const char *variable, capture *captured) {
    capture_begin(captured);
    pid_t child = fork();
    if (child == 0) {
        if (variable)
            setenv("GLASSBOX_LOG", variable, 1);
        else
            unsetenv("GLASSBOX_LOG");
        gbx_log_level level = gbx_log_get_level();
        _exit(level == gbx_log_get_level() ? (int)level : 99);
    }
    int ended = 0;
    pid_t waited = child < 0 ? -1 : waitpid(child, &ended, 0);
    capture_end(captured);
    assert_true(child > 0 && waited == child && WIFEXITED(ended));
    return (gbx_log_level)WEXITSTATUS(ended);
}

/* Runs first: the level is read from the environment once per process. */
static void level_starts_from_the_environment(void **state) {
    (void)state;
    static const struct {
        const char *variable;
        gbx_log_level level;
    } cases[] = {{NULL, GBX_LOG_WARNING},
                 {"error", GBX_LOG_ERROR},
                 {"warning", GBX_LOG_WARNING},
                 {"info", GBX_LOG_INFO},
                 {"debug", GBX_LOG_DEBUG}};
    capture captured;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        assert_int_equal(level_of_fresh_process(cases[i].variable, &captured), cases[i].level);
        assert_string_equal(captured.text, "");
    }
}

static void unknown_level_in_the_environment_is_reported_once(void **state) {
    (void)state;
    capture captured;
    assert_int_equal(level_of_fresh_process("loud", &captured), GBX_LOG_WARNING);
    assert_string_equal(captured.text, "glassbox: warning: GLASSBOX_LOG=loud is unknown; "
                                       "expected error, "
                                       "warning, info or debug; using warning\n");
}

static void level_names_are_parsed_exactly(void **state) {
    (void)state;
    gbx_log_level level = GBX_LOG_ERROR;
    assert_true(gbx_log_parse_level("debug", &level));
    assert_int_equal(level, GBX_LOG_DEBUG);
    assert_true(gbx_log_parse_level("error", &level));
    assert_int_equal(level, GBX_LOG_ERROR);
    assert_true(gbx_log_parse_level("info", &level));
    assert_int_equal(level, GBX_LOG_INFO);
    assert_true(gbx_log_parse_level("warning", &level));
    assert_int_equal(level, GBX_LOG_WARNING);
    static const char *const unknown[] = {"", "Info", "warn", "infos", " debug", "3"};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; ++i)
        assert_false(gbx_log_parse_level(unknown[i], &level));
    assert_int_equal(level, GBX_LOG_WARNING);
}

static void only_lines_up_to_the_level_are_written(void **state) {
    (void)state;
    capture captured;
    capture_begin(&captured);
    gbx_log_set_level(GBX_LOG_INFO);
    gbx_log_error("e %d", 1);
    gbx_log_warning("w %s", "two");
    gbx_log_info("100%%");
    gbx_log_debug("not this");
    gbx_log_set_level(GBX_LOG_ERROR);
    gbx_log_warning("nor this");
    capture_end(&captured);
    assert_string_equal(captured.text, "glassbox: error: e 1\n"
                                       "glassbox: warning: w two\n"
                                       "glassbox: info: 100%\n");
    assert_int_equal(gbx_log_get_level(), GBX_LOG_ERROR);
}

/* One line whose text, after the prefix, has `size` times 'x'. */
static void write_line_of(size_t size, capture *captured) {
    static char text[2 * LINE_BYTES];
    memset(text, 'x', size);
    text[size] = '\0';
    capture_begin(captured);
    gbx_log_set_level(GBX_LOG_ERROR);
    gbx_log_error("%s", text);
    capture_end(captured);
}

static void over_long_line_ends_with_dots(void **state) {
    (void)state;
    const size_t prefix = strlen("glassbox: error: ");
    const size_t longest = LINE_BYTES - 2 - prefix;
    capture captured;
    write_line_of(longest, &captured);
    assert_int_equal(captured.size, LINE_BYTES - 1);
    assert_string_equal(captured.text + LINE_BYTES - 5, "xxx\n");
    static const size_t more[] = {1, 2, 3, LINE_BYTES};
    for (size_t i = 0; i < sizeof more / sizeof more[0]; ++i) {
        write_line_of(longest + more[i], &captured);
        assert_int_equal(captured.size, LINE_BYTES - 1);
        assert_string_equal(captured.text + LINE_BYTES - 6, "x...\n");
        assert_memory_equal(captured.text, "glassbox: error: xxx", prefix + 3);
        assert_int_equal(strspn(captured.text + prefix, "x"), longest - 3);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(level_starts_from_the_environment),
        cmocka_unit_test(unknown_level_in_the_environment_is_reported_once),
        cmocka_unit_test(level_names_are_parsed_exactly),
        cmocka_unit_test(only_lines_up_to_the_level_are_written),
        cmocka_unit_test(over_long_line_ends_with_dots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
