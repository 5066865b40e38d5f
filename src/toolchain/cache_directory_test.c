#include "checks.h"

#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "toolchain/cache_directory.h"

enum { PATH_BYTES = 512 };

static const char *const variables[] = {"GLASSBOX_CACHE", "XDG_CACHE_HOME", "HOME"};

/* A new directory, none of the variables, and no umask that could hide a wrong mode. */
static int set_up(void **state) {
    char *root = strdup("/tmp/gbx-cache-test-XXXXXX");
    *state = root;
    if (!root || !mkdtemp(root))
        return -1;
    for (size_t i = 0; i < 3; ++i)
        unsetenv(variables[i]);
    umask(0);
    return 0;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

static int tear_down(void **state) {
    int result = nftw(*state, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(*state);
    return result;
}

static void join(char out_path[PATH_BYTES], const char *root, const char *rest) {
    snprintf(out_path, PATH_BYTES, "%s/%s", root, rest);
}

static void set_below(const char *variable, const char *root, const char *rest) {
    char path[PATH_BYTES];
    join(path, root, rest);
    assert_int_equal(setenv(variable, path, 1), 0);
}

/* The cache is <root>/<rest>, and is a directory now. */
static void assert_cache_is(const char *name, const char *root, const char *rest) {
    char expected[PATH_BYTES];
    struct stat info;
    char *path = NULL;
    join(expected, root, rest);
    assert_ok(gbx_cache_directory(name, &path));
    assert_string_equal(path, expected);
    assert_int_equal(stat(path, &info), 0);
    assert_true(S_ISDIR(info.st_mode));
    free(path);
}

static void assert_mode(const char *root, const char *rest, mode_t mode) {
    char path[PATH_BYTES];
    struct stat info;
    join(path, root, rest);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, mode);
}

static size_t count_entries(const char *root) {
    char pattern[PATH_BYTES];
    glob_t found = {0};
    join(pattern, root, "*");
    int result = glob(pattern, 0, NULL, &found);
    size_t count = found.gl_pathc;
    globfree(&found);
    assert_true(result == 0 || result == GLOB_NOMATCH);
    return count;
}

static void the_first_variable_that_is_set_wins(void **state) {
    set_below("HOME", *state, "home");
    assert_cache_is("kernels", *state, "home/.cache/glassbox/kernels");
    set_below("XDG_CACHE_HOME", *state, "xdg");
    assert_cache_is("kernels", *state, "xdg/glassbox/kernels");
    set_below("GLASSBOX_CACHE", *state, "own");
    assert_cache_is("kernels", *state, "own/kernels");
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    assert_cache_is("other", *state, "own/other");
    assert_int_equal(unsetenv("GLASSBOX_CACHE"), 0);
    assert_cache_is("other", *state, "home/.cache/glassbox/other");
}

static void relative_and_empty_values_are_ignored(void **state) {
    static const char *const ignored[] = {"", "relative", "./here", "../up", "~/x", " /blank"};
    set_below("HOME", *state, "home");
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; ++i) {
        assert_int_equal(setenv("GLASSBOX_CACHE", ignored[i], 1), 0);
        assert_int_equal(setenv("XDG_CACHE_HOME", ignored[i], 1), 0);
        assert_cache_is("kernels", *state, "home/.cache/glassbox/kernels");
        set_below("XDG_CACHE_HOME", *state, "xdg");
        assert_cache_is("kernels", *state, "xdg/glassbox/kernels");
    }
}

static void with_no_variable_the_message_names_all_three(void **state) {
    (void)state;
    char *path = "untouched";
    assert_fails(gbx_cache_directory("kernels", &path), GBX_NOT_FOUND,
                 "none of GLASSBOX_CACHE, XDG_CACHE_HOME and HOME is an absolute path");
    assert_null(path);
    for (size_t i = 0; i < 3; ++i)
        assert_int_equal(setenv(variables[i], "relative", 1), 0);
    assert_fails(gbx_cache_directory("kernels", &path), GBX_NOT_FOUND, "none of GLASSBOX_CACHE");
    assert_null(path);
}

static void directories_are_made_with_their_parents_only_for_the_owner(void **state) {
    static const char *const made[] = {"a", "a/b", "a/b/include", "a/b/include/hash"};
    assert_int_equal(chmod(*state, 0755), 0);
    set_below("GLASSBOX_CACHE", *state, "a/b");
    assert_cache_is("include/hash", *state, "a/b/include/hash");
    for (size_t i = 0; i < 4; ++i)
        assert_mode(*state, made[i], 0700);
    assert_mode(*state, "", 0755); /* what was there before stays as it was */
    assert_int_equal(count_entries(*state), 1);
}

static void directories_that_are_there_are_kept(void **state) {
    char file[PATH_BYTES];
    set_below("GLASSBOX_CACHE", *state, "cache/"); /* a slash at the end makes no difference */
    assert_cache_is("kernels", *state, "cache//kernels");
    join(file, *state, "cache/kernels/kept");
    assert_ok(gbx_cache_write(file, "x", 1));
    assert_cache_is("kernels", *state, "cache//kernels");
    assert_int_equal(access(file, R_OK), 0);
}

static void a_cache_that_cannot_be_made_is_named(void **state) {
    char *path = "untouched";
    char expected[PATH_BYTES];
    set_below("GLASSBOX_CACHE", *state, "file/below");
    join(expected, *state, "file");
    assert_ok(gbx_cache_write(expected, "", 0));
    join(expected, *state, "file/below/kernels: Not a directory");
    assert_fails(gbx_cache_directory("kernels", &path), GBX_IO, expected);
    assert_null(path);
}

static void assert_content(const char *path, const char *bytes, size_t size) {
    char content[64] = {0};
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(content, 1, sizeof content, file), size);
    fclose(file);
    assert_memory_equal(content, bytes, size);
}

static void files_are_written_completely_and_replaced(void **state) {
    char path[PATH_BYTES];
    join(path, *state, "file.h");
    assert_ok(gbx_cache_write(path, "first, and longer", 17));
    assert_content(path, "first, and longer", 17);
    assert_ok(gbx_cache_write(path, "a\0b", 3));
    assert_content(path, "a\0b", 3);
    assert_ok(gbx_cache_write(path, "", 0));
    assert_content(path, "", 0);
    assert_int_equal(count_entries(*state), 1);
    assert_mode(*state, "file.h", 0600);
}

/* A reader that has the old file open still sees all of it: the new file is another one. */
static void a_reader_keeps_the_file_that_it_opened(void **state) {
    char path[PATH_BYTES];
    char content[8] = {0};
    join(path, *state, "file.h");
    assert_ok(gbx_cache_write(path, "before", 6));
    FILE *reader = fopen(path, "r");
    assert_non_null(reader);
    assert_ok(gbx_cache_write(path, "after", 5));
    assert_int_equal(fread(content, 1, sizeof content, reader), 6);
    fclose(reader);
    assert_string_equal(content, "before");
    assert_content(path, "after", 5);
}

static void a_file_that_cannot_be_written_is_named_and_leaves_nothing(void **state) {
    char path[PATH_BYTES];
    char expected[2 * PATH_BYTES];
    join(path, *state, "missing/file.h");
    snprintf(expected, sizeof expected, "writing %s: No such file or directory", path);
    assert_fails(gbx_cache_write(path, "x", 1), GBX_IO, expected);
    join(path, *state, "directory"); /* here the last step, the rename, fails */
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(expected, sizeof expected, "writing %s: Is a directory", path);
    assert_fails(gbx_cache_write(path, "x", 1), GBX_IO, expected);
    assert_int_equal(count_entries(*state), 1);
}

/* Makes an empty file that was last written `age_s` seconds ago. */
static void make_old(const char *root, const char *name, time_t age_s) {
    char path[PATH_BYTES];
    join(path, root, name);
    assert_ok(gbx_cache_write(path, "", 0));
    const struct timespec times[2] = {{.tv_sec = time(NULL) - age_s},
                                      {.tv_sec = time(NULL) - age_s}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

#define A_HASH "0123456789abcdef0123456789abcdef"

static void only_old_temporaries_are_swept(void **state) {
    enum { DAY = 24 * 60 * 60 };
    static const char *const kept[] = {
        A_HASH ".so",         A_HASH,        A_HASH ".so.abc",   A_HASH ".so.abcde-",
        A_HASH "0.so.abcdef", "x.so.abcdef", A_HASH ".o.abcdef", A_HASH ".so.abcdefg"};
    enum { KEPT = sizeof kept / sizeof kept[0] };
    for (size_t i = 0; i < KEPT; ++i)
        make_old(*state, kept[i], 2 * DAY);
    make_old(*state, A_HASH ".so.YoUn9r", DAY - 3600);
    make_old(*state, A_HASH ".so.aB3dEf", DAY + 60);
    make_old(*state, A_HASH ".123456", 2 * DAY);
    gbx_cache_sweep(*state);
    assert_int_equal(count_entries(*state), KEPT + 1);
    for (size_t i = 0; i < KEPT; ++i)
        assert_mode(*state, kept[i], 0600);
    assert_mode(*state, A_HASH ".so.YoUn9r", 0600);
    gbx_cache_sweep("/nonexistent/cache");
}

#define cache_test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        cache_test(the_first_variable_that_is_set_wins),
        cache_test(relative_and_empty_values_are_ignored),
        cache_test(with_no_variable_the_message_names_all_three),
        cache_test(directories_are_made_with_their_parents_only_for_the_owner),
        cache_test(directories_that_are_there_are_kept),
        cache_test(a_cache_that_cannot_be_made_is_named),
        cache_test(files_are_written_completely_and_replaced),
        cache_test(a_reader_keeps_the_file_that_it_opened),
        cache_test(a_file_that_cannot_be_written_is_named_and_leaves_nothing),
        cache_test(only_old_temporaries_are_swept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
