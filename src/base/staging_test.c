#include "checks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/staging.h"

enum { PATH_BYTES = 256, BIG_BYTES = 3 << 20 };

static char root[] = "/tmp/glassbox-staging-test-XXXXXX";
static char paths[8][PATH_BYTES];

/* root/NAME; valid for the next eight calls. */
static const char *at(const char *name) {
    static size_t next;
    char *path = paths[next++ % 8];
    snprintf(path, PATH_BYTES, "%s/%s", root, name);
    return path;
}

static void put(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void check_file(const char *path, const char *expected) {
    char text[256];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    fclose(file);
    assert_string_equal(text, expected);
}

static size_t count_names(const char *path, const char *with) {
    size_t count = 0;
    DIR *files = opendir(path);
    assert_non_null(files);
    for (const struct dirent *file; (file = readdir(files)) != NULL;)
        count += file->d_name[0] != '.' && strstr(file->d_name, with) != NULL;
    closedir(files);
    return count;
}

static int make_root(void **state) {
    (void)state;
    strcpy(root + strlen(root) - 6, "XXXXXX");
    return mkdtemp(root) ? 0 : 1;
}

static int remove_root(void **state) {
    (void)state;
    char command[PATH_BYTES];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static gbx_status write_text(gbx_staging *staging, const char *name, const char *text) {
    gbx_output output;
    int fd;
    GBX_TRY(gbx_staging_open(staging, name, &fd));
    GBX_TRY(gbx_output_open(&output, fd, NULL));
    fputs(text, output.stream);
    return gbx_output_close(&output, name, NULL);
}

static void a_file_appears_complete_and_replaces(void **state) {
    (void)state;
    gbx_staging staging;
    gbx_output output;
    int fd;
    put(at("name"), "old");
    assert_ok(gbx_staging_create_file(at("name"), &staging, &fd));
    assert_ok(gbx_output_open(&output, fd, NULL));
    fputs("new", output.stream);
    assert_ok(gbx_output_close(&output, "name", NULL));
    assert_int_equal(output.bytes, 3);
    check_file(at("name"), "old");
    assert_int_equal(count_names(root, "name.partial-"), 1);
    assert_ok(gbx_staging_finish(&staging, GBX_PUBLISH_WHOLE, NULL));
    check_file(at("name"), "new");
    assert_int_equal(count_names(root, ""), 1);
    struct stat about;
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(stat(at("name"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0666 & ~mask);
}

static void a_failure_leaves_what_was_there(void **state) {
    (void)state;
    gbx_staging staging;
    int fd;
    put(at("name"), "old");
    assert_ok(gbx_staging_create_file(at("name"), &staging, &fd));
    close(fd);
    gbx_status status = gbx_fail(GBX_BAD_FORMAT, "it went wrong");
    assert_fails(gbx_staging_finish(&staging, GBX_PUBLISH_WHOLE, status), GBX_BAD_FORMAT,
                 "it went wrong");
    check_file(at("name"), "old");
    assert_int_equal(count_names(root, ""), 1);
}

static void a_link_stays_and_its_file_is_replaced(void **state) {
    (void)state;
    gbx_staging staging;
    int fd;
    put(at("file"), "old");
    assert_int_equal(symlink("file", at("link")), 0);
    assert_ok(gbx_staging_create_file(at("link"), &staging, &fd));
    assert_int_equal(write(fd, "new", 3), 3);
    close(fd);
    assert_ok(gbx_staging_finish(&staging, GBX_PUBLISH_WHOLE, NULL));
    check_file(at("file"), "new");
    struct stat about;
    assert_int_equal(lstat(at("link"), &about), 0);
    assert_true(S_ISLNK(about.st_mode));
}

static void places_that_cannot_be_are_refused(void **state) {
    (void)state;
    gbx_staging staging;
    int fd;
    put(at("file"), "x");
    assert_fails(gbx_staging_create_file(root, &staging, &fd), GBX_IO,
                 "a directory is already "
                 "there");
    assert_fails(gbx_staging_create_file("/dev/null", &staging, &fd), GBX_IO,
                 "something other "
                 "than a file is already there");
    assert_fails(gbx_staging_create_file(at("no/name"), &staging, &fd), GBX_IO, "No such file");
    assert_fails(gbx_staging_create_directory(at("file"), &staging), GBX_IO,
                 "something else has "
                 "that name");
    assert_fails(gbx_staging_create_directory(at("file/name"), &staging), GBX_IO,
                 "Not a directory");
    assert_fails(gbx_staging_check_free(root), GBX_IO, "a directory with files is already there");
    assert_fails(gbx_staging_check_free(at("file")), GBX_IO,
                 "it exists and is not a readable directory");
    assert_ok(gbx_staging_check_free(at("new")));
    assert_int_equal(count_names(root, ""), 1);
}

static void a_directory_appears_complete(void **state) {
    (void)state;
    gbx_staging staging;
    assert_int_equal(mkdir(at("out"), 0777), 0); /* an empty directory is used */
    assert_ok(gbx_staging_create_directory(at("out///"), &staging));
    assert_ok(write_text(&staging, "a", "1"));
    assert_ok(write_text(&staging, "b", "2"));
    assert_fails(write_text(&staging, "b", "3"), GBX_LOST, "out/b", "File exists");
    assert_int_equal(count_names(at("out"), ""), 0);
    assert_ok(gbx_staging_finish(&staging, GBX_PUBLISH_WHOLE, NULL));
    check_file(at("out/a"), "1");
    check_file(at("out/b"), "2");
    assert_int_equal(count_names(root, ""), 1);
}

/* A folder in a directory that is being made, with a file in it. */
static void fill_folder(gbx_staging *staging) {
    assert_int_equal(mkdirat(staging->directory, "folder", 0777), 0);
    assert_ok(write_text(staging, "folder/file", "2"));
}

static void a_directory_with_files_is_not_replaced(void **state) {
    (void)state;
    gbx_staging staging;
    assert_ok(gbx_staging_create_directory(at("out"), &staging));
    assert_ok(write_text(&staging, "a", "1"));
    fill_folder(&staging);
    assert_int_equal(mkdir(at("out"), 0777), 0); /* another process was faster */
    put(at("out/mine"), "kept");
    assert_fails(gbx_staging_finish(&staging, GBX_PUBLISH_WHOLE, NULL), GBX_IO,
                 "a directory "
                 "with files is already there");
    check_file(at("out/mine"), "kept");
    assert_int_equal(count_names(root, ""), 1);
}

static void files_are_merged_into_a_directory(void **state) {
    (void)state;
    gbx_staging staging;
    char name[16];
    assert_int_equal(mkdir(at("out"), 0777), 0);
    put(at("out/f7"), "old");
    put(at("out/mine"), "kept");
    assert_ok(gbx_staging_create_directory(at("out"), &staging));
    for (int i = 0; i < 2000; ++i) { /* more than one call returns */
        snprintf(name, sizeof name, "f%d", i);
        assert_ok(write_text(&staging, name, name));
    }
    check_file(at("out/f7"), "old");
    assert_ok(gbx_staging_finish(&staging, GBX_PUBLISH_MERGED, NULL));
    assert_int_equal(count_names(at("out"), "f"), 2000);
    check_file(at("out/f7"), "f7");
    check_file(at("out/f1999"), "f1999");
    check_file(at("out/mine"), "kept");
    assert_int_equal(count_names(root, ""), 1);
}

static void a_failed_merge_is_reported(void **state) {
    (void)state;
    gbx_staging staging;
    assert_int_equal(mkdir(at("out"), 0777), 0);
    assert_int_equal(mkdir(at("out/a"), 0777), 0);
    assert_ok(gbx_staging_create_directory(at("out"), &staging));
    assert_ok(write_text(&staging, "a", "1"));
    assert_fails(gbx_staging_finish(&staging, GBX_PUBLISH_MERGED, NULL), GBX_IO,
                 "cannot move all files into", "Is a directory");
    assert_int_equal(count_names(root, ""), 1);
}

/* Files go to the path chosen when they were begun, or nowhere. */
static void a_link_that_came_meanwhile_is_not_followed(void **state) {
    (void)state;
    gbx_staging staging;
    assert_int_equal(mkdir(at("out"), 0777), 0);
    assert_int_equal(mkdir(at("elsewhere"), 0777), 0);
    assert_ok(gbx_staging_create_directory(at("out"), &staging));
    assert_ok(write_text(&staging, "a", "1"));
    assert_int_equal(rmdir(at("out")), 0);
    assert_int_equal(symlink("elsewhere", at("out")), 0);
    assert_fails(gbx_staging_finish(&staging, GBX_PUBLISH_MERGED, NULL), GBX_IO,
                 "cannot open the directory");
    assert_int_equal(count_names(at("elsewhere"), ""), 0);
    assert_int_equal(count_names(root, ""), 2);
}

static void what_is_discarded_is_gone(void **state) {
    (void)state;
    gbx_staging staging;
    assert_ok(gbx_staging_create_directory(at("out"), &staging));
    assert_ok(write_text(&staging, "a", "1"));
    fill_folder(&staging);
    gbx_staging_discard(&staging);
    assert_int_equal(count_names(root, ""), 0);
}

static void fill(FILE *stream) {
    static char bytes[BIG_BYTES];
    memset(bytes, 'x', sizeof bytes);
    fwrite(bytes, 1, sizeof bytes, stream);
}

/* A write that fails is reported at the close, whatever else failed because of it. */
static void a_failed_write_is_reported(void **state) {
    (void)state;
    gbx_staging staging;
    gbx_output output;
    struct rlimit before;
    int fd;
    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    assert_ok(gbx_staging_create_file(at("name"), &staging, &fd));
    assert_ok(gbx_output_open(&output, fd, NULL));
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){1 << 20, before.rlim_max});
    fill(output.stream);
    assert_true(ferror(output.stream));
    gbx_status status = gbx_output_close(&output, "it", gbx_fail(GBX_INTERNAL, "another"));
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(output.bytes, 1 << 20);
    status = gbx_staging_finish(&staging, GBX_PUBLISH_WHOLE, status);
    assert_fails(status, GBX_LOST, "cannot write it: File too large");
    assert_int_equal(count_names(root, ""), 0);
}

static void on_signal(int number) {
    (void)number;
}

static void a_signal_stops_the_writing(void **state) {
    (void)state;
    gbx_held_signals signals;
    gbx_staging staging;
    gbx_output output;
    int fd;
    signal(SIGTERM, on_signal);
    gbx_signals_hold(&signals);
    assert_ok(gbx_staging_create_file(at("name"), &staging, &fd));
    assert_ok(gbx_output_open(&output, fd, &signals));
    fill(output.stream);
    assert_false(ferror(output.stream));
    kill(getpid(), SIGTERM);
    fill(output.stream);
    assert_true(ferror(output.stream));
    gbx_status status = gbx_output_close(&output, "it", NULL);
    status = gbx_staging_finish(&staging, GBX_PUBLISH_WHOLE, status);
    gbx_signals_release(&signals);
    assert_fails(status, GBX_LOST, "cannot write it");
    assert_int_equal(count_names(root, ""), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_file_appears_complete_and_replaces),
        TEST(a_failure_leaves_what_was_there),
        TEST(a_link_stays_and_its_file_is_replaced),
        TEST(places_that_cannot_be_are_refused),
        TEST(a_directory_appears_complete),
        TEST(a_directory_with_files_is_not_replaced),
        TEST(files_are_merged_into_a_directory),
        TEST(a_failed_merge_is_reported),
        TEST(a_link_that_came_meanwhile_is_not_followed),
        TEST(what_is_discarded_is_gone),
        TEST(a_failed_write_is_reported),
        TEST(a_signal_stops_the_writing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
