#include "checks.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/run/output_directory.h"

enum { NOON = 1785585600 }; /* 2026-08-01 12:00:00 UTC */
#define STAMP "20260801_120000"

/* Each test has its own working directory. */
static int enter_directory(void **state) {
    char *directory = strdup("/tmp/glassbox-test-XXXXXX");
    setenv("TZ", "UTC", 1);
    if (!directory || !mkdtemp(directory) || chdir(directory) != 0)
        return -1;
    *state = directory;
    return 0;
}

static int leave_directory(void **state) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", (const char *)*state);
    int result = chdir("/") != 0 || system(command) != 0;
    free(*state);
    return result;
}

static gbx_output_place place_of(const char *scene, const char *of_case, uint32_t round) {
    gbx_output_place place = {.scene = scene, .case_name = of_case, .round = round, .time = NOON};
    return place;
}

static void check_created(const gbx_output_place *place, const char *expected) {
    gbx_output_directory made;
    struct stat info;
    assert_ok(gbx_output_directory_create(place, &made));
    assert_string_equal(made.path, expected);
    assert_int_equal(stat(expected, &info), 0);
    assert_true(S_ISDIR(info.st_mode));
    gbx_output_directory_free(&made);
}

static void check_link(const char *expected) {
    char target[PATH_MAX] = "";
    ssize_t length = readlink("outputs/latest", target, sizeof target - 1);
    assert_true(length > 0);
    assert_string_equal(target, expected);
}

static size_t count_entries(const char *path) {
    DIR *directory = opendir(path);
    size_t count = 0;
    assert_non_null(directory);
    while (readdir(directory))
        ++count;
    closedir(directory);
    return count - 2;
}

static void names_have_scene_case_time_and_round(void **state) {
    (void)state;
    gbx_output_place place = place_of("adder", "small", 0);
    check_created(&place, "outputs/adder_small_" STAMP);
    check_link("adder_small_" STAMP);
    place = place_of("adder", "small", 12);
    check_created(&place, "outputs/adder_small_" STAMP "_r12");
    check_link("adder_small_" STAMP "_r12");
}

static void a_name_that_is_taken_gets_a_number(void **state) {
    (void)state;
    gbx_output_place place = place_of("adder", "small", 1);
    check_created(&place, "outputs/adder_small_" STAMP "_r1");
    check_created(&place, "outputs/adder_small_" STAMP "_r1_2");
    check_created(&place, "outputs/adder_small_" STAMP "_r1_3");
    check_link("adder_small_" STAMP "_r1_3");
    assert_int_equal(count_entries("outputs"), 4); /* no temporary link is left */
}

static void names_stay_inside_the_directory(void **state) {
    (void)state;
    char long_name[1000];
    memset(long_name, 'x', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    gbx_output_place place = place_of("../a b/c", "../..", 0);
    check_created(&place, "outputs/_._a_b_c__._.._" STAMP);
    place = place_of("", ".hidden", 0);
    check_created(&place, "outputs/___hidden_" STAMP);
    place = place_of(long_name, long_name, 0);
    gbx_output_directory made;
    assert_ok(gbx_output_directory_create(&place, &made));
    assert_true(strlen(made.path) < 200);
    gbx_output_directory_free(&made);
    /* A two-byte letter at the cut is left out completely. */
    memset(long_name, 'x', 79);
    strcpy(long_name + 79, "\xc3\xa9\xc3\xa9");
    place = place_of("adder", long_name, 0);
    assert_ok(gbx_output_directory_create(&place, &made));
    assert_non_null(strstr(made.path, "xx_" STAMP));
    gbx_output_directory_free(&made);
}

static void a_chosen_directory_is_the_only_dump(void **state) {
    (void)state;
    gbx_output_place place = place_of("adder", "small", 0);
    place.chosen = "deep/er/here/";
    place.is_only = true;
    check_created(&place, "deep/er/here");
    check_created(&place,
                  "deep/er/here"); /* unchanged; whether it holds a dump is not checked here */
    assert_int_not_equal(access("outputs", F_OK), 0);
}

static void several_dumps_lie_in_the_chosen_directory(void **state) {
    (void)state;
    gbx_output_place place = place_of("adder", "small", 0);
    place.chosen = "here";
    check_created(&place, "here/small");
    check_created(&place, "here/small_2");
    place.round = 2;
    check_created(&place, "here/small_r2");
    place.case_name = "..";
    check_created(&place, "here/_._r2");
    assert_int_not_equal(access("outputs", F_OK), 0);
}

static void what_cannot_be_made_is_named(void **state) {
    (void)state;
    gbx_output_directory made;
    gbx_output_place place = place_of("adder", "small", 0);
    fclose(fopen("outputs", "w"));
    assert_fails(gbx_output_directory_create(&place, &made), GBX_IO,
                 "creating the directory outputs for a dump: Not a directory", "-o");
    assert_null(made.path);
    place.chosen = "outputs/below";
    assert_fails(gbx_output_directory_create(&place, &made), GBX_IO, "outputs", "Not a directory");
    place.chosen = "/proc/nowhere";
    assert_fails(gbx_output_directory_create(&place, &made), GBX_IO, "/proc/nowhere");
}

/* Something that is not a link stays; the dump is written anyway. */
static void a_directory_called_latest_is_kept(void **state) {
    (void)state;
    assert_int_equal(mkdir("outputs", 0777), 0);
    assert_int_equal(mkdir("outputs/latest", 0777), 0);
    gbx_output_place place = place_of("adder", "small", 0);
    check_created(&place, "outputs/adder_small_" STAMP);
    assert_int_equal(count_entries("outputs"), 2);
    assert_int_equal(count_entries("outputs/latest"), 0);
}

static void discarding_takes_back_what_is_empty(void **state) {
    (void)state;
    gbx_output_directory made;
    gbx_output_place place = place_of("adder", "small", 0);
    assert_ok(gbx_output_directory_create(&place, &made));
    gbx_output_directory_discard(&made);
    assert_null(made.path);
    assert_int_not_equal(access("outputs", F_OK), 0);
    check_created(&place, "outputs/adder_small_" STAMP);
    assert_ok(gbx_output_directory_create(&place, &made));
    check_link("adder_small_" STAMP "_2");
    gbx_output_directory_discard(&made);
    check_link("adder_small_" STAMP);
    assert_int_equal(count_entries("outputs"), 2);
}

static void begin_dump(const char *directory) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/tensor_dump", directory);
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(path, sizeof path, "%s/tensor_dump/tensor_dump.rec", directory);
    FILE *journal = fopen(path, "wx");
    assert_non_null(journal);
    fclose(journal);
}

static void discarding_keeps_a_dump_that_was_begun(void **state) {
    (void)state;
    gbx_output_directory made;
    gbx_output_place place = place_of("adder", "small", 0);
    assert_ok(gbx_output_directory_create(&place, &made));
    begin_dump("outputs/adder_small_" STAMP);
    gbx_output_directory_discard(&made);
    assert_string_equal(made.path, "outputs/adder_small_" STAMP);
    check_link("adder_small_" STAMP);
    gbx_output_directory_free(&made);
}

static void discarding_does_not_change_a_directory_of_the_user(void **state) {
    (void)state;
    gbx_output_directory made;
    gbx_output_place place = place_of("adder", "small", 0);
    assert_int_equal(mkdir("mine", 0777), 0);
    place.chosen = "mine";
    place.is_only = true;
    assert_ok(gbx_output_directory_create(&place, &made));
    gbx_output_directory_discard(&made);
    assert_null(made.path); /* it contains nothing of the run */
    assert_int_equal(access("mine", F_OK), 0);
    /* An earlier dump does not belong to this run. */
    begin_dump("mine");
    assert_ok(gbx_output_directory_create(&place, &made));
    gbx_output_directory_discard(&made);
    assert_null(made.path);
    assert_int_equal(access("mine/tensor_dump/tensor_dump.rec", F_OK), 0);
}

enum { PROCESSES = 4, EACH = 50 };

static void make_many(void) {
    gbx_output_place place = place_of("adder", "small", 0);
    for (int i = 0; i < EACH; ++i) {
        gbx_output_directory made;
        char mark[PATH_MAX];
        if (gbx_output_directory_create(&place, &made))
            _exit(1);
        snprintf(mark, sizeof mark, "%s/mine", made.path);
        if (mkdir(mark, 0777) != 0) /* another process got the same directory */
            _exit(2);
        gbx_output_directory_free(&made);
    }
    _exit(0);
}

/* Meanwhile the link is never missing. */
static void processes_never_share_one(void **state) {
    (void)state;
    pid_t pids[PROCESSES];
    gbx_output_place place = place_of("adder", "small", 0);
    check_created(&place, "outputs/adder_small_" STAMP);
    for (int i = 0; i < PROCESSES; ++i) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            make_many();
    }
    struct stat info;
    for (int i = 0; i < PROCESSES; ++i) {
        int status = 0;
        while (waitpid(pids[i], &status, WNOHANG) == 0)
            assert_int_equal(stat("outputs/latest", &info), 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count_entries("outputs"), 1 + PROCESSES * EACH + 1);
    assert_int_equal(stat("outputs/latest/mine", &info), 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_directory, leave_directory)
    const struct CMUnitTest tests[] = {
        TEST(names_have_scene_case_time_and_round),
        TEST(a_name_that_is_taken_gets_a_number),
        TEST(names_stay_inside_the_directory),
        TEST(a_chosen_directory_is_the_only_dump),
        TEST(several_dumps_lie_in_the_chosen_directory),
        TEST(what_cannot_be_made_is_named),
        TEST(a_directory_called_latest_is_kept),
        TEST(discarding_takes_back_what_is_empty),
        TEST(discarding_keeps_a_dump_that_was_begun),
        TEST(discarding_does_not_change_a_directory_of_the_user),
        TEST(processes_never_share_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
