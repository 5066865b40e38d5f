#include "base/program_path.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checks.h"
#include "scratch.h"

static const gbx_program_path_query query = {
    .program = "no-such-program", .variable = "GLASSBOX_TEST_PROGRAM", .doing = "starting it"};

static int enter(void **state) {
    (void)state;
    unsetenv(query.variable);
    return scratch_enter(NULL) ? 0 : -1;
}

static int leave(void **state) {
    (void)state;
    unsetenv(query.variable);
    return scratch_leave() ? 0 : -1;
}

static void write_program(const char *path) {
    scratch_write(path, "#!/bin/sh\n", 10);
    assert_int_equal(chmod(path, 0755), 0);
}

static void what_is_configured_counts_first(void **state) {
    (void)state;
    char path[PATH_MAX];
    gbx_program_path_query configured = query;
    configured.configured = "./first";
    write_program("first");
    write_program("second");
    assert_int_equal(setenv(query.variable, "./second", 1), 0);
    assert_ok(gbx_program_path_find(&configured, path));
    assert_string_equal(path, "./first");
    assert_ok(gbx_program_path_find(&query, path));
    assert_string_equal(path, "./second");
}

static void what_is_named_has_to_be_a_program(void **state) {
    (void)state;
    char path[PATH_MAX];
    gbx_program_path_query configured = query;
    configured.configured = "./absent";
    assert_fails(gbx_program_path_find(&configured, path), GBX_NOT_FOUND,
                 "starting it: ./absent, named by the configuration, cannot be run: No such file");
    scratch_write("plain", "", 0);
    assert_int_equal(chmod("plain", 0644), 0);
    assert_int_equal(setenv(query.variable, "./plain", 1), 0);
    assert_fails(gbx_program_path_find(&query, path), GBX_NOT_FOUND,
                 "./plain, named by GLASSBOX_TEST_PROGRAM, cannot be run: Permission denied");
}

static void a_missing_program_is_reported(void **state) {
    (void)state;
    char path[PATH_MAX];
    assert_fails(gbx_program_path_find(&query, path), GBX_NOT_FOUND,
                 "starting it: no no-such-program beside ",
                 "; set GLASSBOX_TEST_PROGRAM to its path");
}

/* This test is a program, so it is found beside itself. */
static void a_program_beside_us_is_found(void **state) {
    (void)state;
    char own[PATH_MAX];
    char path[PATH_MAX];
    char resolved[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    assert_true(length > 0);
    own[length] = '\0';
    gbx_program_path_query beside = query;
    beside.program = strrchr(own, '/') + 1;
    assert_ok(gbx_program_path_find(&beside, path));
    assert_non_null(realpath(path, resolved));
    assert_string_equal(resolved, own);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_configured_counts_first, enter, leave),
        cmocka_unit_test_setup_teardown(what_is_named_has_to_be_a_program, enter, leave),
        cmocka_unit_test_setup_teardown(a_missing_program_is_reported, enter, leave),
        cmocka_unit_test_setup_teardown(a_program_beside_us_is_found, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
