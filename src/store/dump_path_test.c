#include "checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/dump_path.h"

static char root[64];

static int enter_directory(void **state) {
    (void)state;
    snprintf(root, sizeof root, "/tmp/glassbox-path-XXXXXX");
    return mkdtemp(root) && chdir(root) == 0 ? 0 : -1;
}

static int leave_directory(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static void make_directory(const char *path) {
    assert_int_equal(mkdir(path, 0777), 0);
}

static void make_file(const char *path) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void make_dump(const char *path) {
    char inner[128];
    make_directory(path);
    snprintf(inner, sizeof inner, "%s/tensor_dump", path);
    make_directory(inner);
    snprintf(inner, sizeof inner, "%s/tensor_dump/tensor_dump.rec", path);
    make_file(inner);
}

static void check_found(const char *given, const char *expected) {
    char *found;
    assert_ok(gbx_dump_path_find(given, &found));
    assert_string_equal(found, expected);
    free(found);
}

/* In the root of the test: a path without links. */
static void check_found_below_root(const char *given, const char *name) {
    char *resolved = realpath(root, NULL);
    char *expected = gbx_dump_path_join(resolved, name);
    check_found(given, expected);
    free(expected);
    free(resolved);
}

static void a_dump_is_found_from_around_it_and_inside_it(void **state) {
    (void)state;
    char *found;
    make_directory("many");
    make_dump("many/one");
    make_file("many/notes.txt");
    check_found("many/one", "many/one");
    check_found("many/one/", "many/one/");
    check_found("many", "many/one");
    check_found("many//", "many/one");
    check_found_below_root("many/one/tensor_dump", "many/one");
    check_found_below_root("many/one/tensor_dump/", "many/one");
    assert_int_equal(symlink("many/one/tensor_dump", "link"), 0);
    check_found_below_root("link", "many/one");
    assert_int_equal(chdir("many/one/tensor_dump"), 0);
    check_found_below_root(".", "many/one");
    assert_int_equal(chdir(root), 0);
    make_dump("many/two");
    make_dump("many/three");
    assert_fails(gbx_dump_path_find("many", &found), GBX_INVALID_ARGUMENT,
                 "holds 3 dumps (one, three...) but no latest", "name one");
    assert_null(found);
    assert_int_equal(symlink("two", "many/latest"), 0);
    check_found("many", "many/latest");
}

static void the_latest_is_found_without_a_name(void **state) {
    (void)state;
    char *found;
    assert_fails(gbx_dump_path_find(NULL, &found), GBX_NOT_FOUND, "no dump at outputs/latest",
                 "glassbox run SCENE --dump-tensor");
    assert_null(found);
    make_directory("outputs");
    assert_int_equal(symlink("gone", "outputs/latest"), 0);
    assert_fails(gbx_dump_path_find(NULL, &found), GBX_NOT_FOUND, "no dump at outputs/latest");
    make_dump("outputs/gone");
    check_found(NULL, "outputs/latest");
}

static void what_is_not_a_dump_is_reported(void **state) {
    (void)state;
    char *found;
    make_directory("empty");
    make_file("file");
    make_directory("tensor_dump");
    make_directory("holder");
    assert_int_equal(symlink("nowhere", "holder/latest"), 0);
    assert_fails(gbx_dump_path_find("gone", &found), GBX_NOT_FOUND, "at gone: No such file",
                 "glassbox run SCENE --dump-tensor");
    assert_fails(gbx_dump_path_find("file", &found), GBX_INVALID_ARGUMENT,
                 "at file: it is not a "
                 "directory");
    assert_fails(gbx_dump_path_find("empty", &found), GBX_NOT_FOUND, "empty: no dump found",
                 "it has no tensor_dump/, no latest", "glassbox run SCENE --dump-tensor");
    assert_fails(gbx_dump_path_find("holder", &found), GBX_NOT_FOUND, "holder: no dump found");
    assert_fails(gbx_dump_path_find("tensor_dump", &found), GBX_NOT_FOUND, "no dump found");
    assert_fails(gbx_dump_path_find("", &found), GBX_NOT_FOUND, "looking for a dump at");
    assert_null(found);
}

/* A directory that holds the manifest itself; our own args_dump.json is not a dump. */
static void dumps_of_other_tools_are_found(void **state) {
    (void)state;
    char *found;
    make_directory("many");
    make_directory("many/args_dump");
    write_file("many/args_dump/args_dump.json",
               "{\"args\": [{\"name\": \"bin_file\", \"type\": \"tensor\"}]}");
    assert_fails(gbx_dump_path_find("many/args_dump", &found), GBX_NOT_FOUND, "no dump found",
                 "args_dump.json with bin_file");
    assert_fails(gbx_dump_path_find("many", &found), GBX_NOT_FOUND, "no dump found");
    write_file("many/args_dump/args_dump.json", "{\"args\": [], \"bin_file\"\n: null}");
    check_found("many/args_dump", "many/args_dump");
    check_found("many", "many/args_dump");
    make_directory("many/older");
    write_file("many/older/tensor_dump.json", "{}");
    check_found("many/older", "many/older");
    assert_fails(gbx_dump_path_find("many", &found), GBX_INVALID_ARGUMENT,
                 "holds 2 dumps (args_dump, older) but no latest");
    make_dump("ours");
    write_file("ours/tensor_dump/tensor_dump.json", "{}");
    check_found_below_root("ours/tensor_dump", "ours");
    assert_int_equal(symlink("args_dump", "many/latest"), 0);
    check_found("many", "many/latest");
}

/* bin_file may come after any number of entries. */
static void the_end_of_a_large_manifest_is_looked_at(void **state) {
    (void)state;
    FILE *file;
    make_directory("large");
    file = fopen("large/args_dump.json", "w");
    assert_non_null(file);
    fputs("{\"args\": [", file);
    for (int i = 0; i < 100000; ++i)
        fputs("{\"task_id\": 1},", file);
    fputs("{}], \"bin_file\": \"args.bin\"}", file);
    assert_int_equal(fclose(file), 0);
    check_found("large", "large");
}

static void paths_are_joined_with_one_slash(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"a", "a/x"}, {"a/", "a/x"}, {"a//", "a/x"}, {"/", "/x"}, {"/a", "/a/x"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        char *path = gbx_dump_path_join(cases[i][0], "x");
        assert_string_equal(path, cases[i][1]);
        free(path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_dump_is_found_from_around_it_and_inside_it,
                                        enter_directory, leave_directory),
        cmocka_unit_test_setup_teardown(the_latest_is_found_without_a_name, enter_directory,
                                        leave_directory),
        cmocka_unit_test_setup_teardown(what_is_not_a_dump_is_reported, enter_directory,
                                        leave_directory),
        cmocka_unit_test_setup_teardown(dumps_of_other_tools_are_found, enter_directory,
                                        leave_directory),
        cmocka_unit_test_setup_teardown(the_end_of_a_large_manifest_is_looked_at, enter_directory,
                                        leave_directory),
        cmocka_unit_test(paths_are_joined_with_one_slash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
