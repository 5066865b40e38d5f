#include "scratch.h"

#include <string.h>
#include <unistd.h>

#include "store/run/kept_run.h"

static int enter_directory(void **state) {
    (void)state;
    return !scratch_enter(NULL);
}

static int leave_directory(void **state) {
    (void)state;
    return !scratch_leave();
}

static void write_file(const char *path, const char *text) {
    scratch_write(path, text, strlen(text));
}

#define HASH "06b05ab6733a618578af5f94892f3950" /* of "abc" */
#define HEAD "{\"schema_version\": 1, \"blocks\": 24, \"gm_bytes\": 8192, \"scene_path\": \"/a/b\","
#define KERNEL                                                                                     \
    "{\"func_id\": 7, \"name\": \"add\", \"object\": \"kernels/x.so\", \"object_hash\": \"" HASH   \
    "\", \"source\": \"kernels/x/y.c\", \"origin\": \"/s/y.c\", \"compile_flags\": \"-O1\", "      \
    "\"link_flags\": null}"

static void test_reads(void **state) {
    (void)state;
    gbx_kept_run *run;
    write_file("run.json", HEAD "\"kernels\": [{\"func_id\": 3, \"name\": \"f\"}," KERNEL "]}");
    assert_ok(gbx_kept_run_read(".", &run));
    assert_int_equal(run->blocks, 24);
    assert_int_equal(run->gm_bytes, 8192);
    assert_string_equal(run->scene_path, "/a/b");
    assert_null(gbx_kept_run_kernel(run, 0));
    assert_null(gbx_kept_run_kernel(run, 3)->object);
    const gbx_kept_kernel *kernel = gbx_kept_run_kernel(run, 7);
    assert_string_equal(kernel->name, "add");
    assert_string_equal(kernel->object, "./kernels/x.so");
    assert_string_equal(kernel->source, "./kernels/x/y.c");
    assert_string_equal(kernel->origin, "/s/y.c");
    assert_string_equal(kernel->compile_flags, "-O1");
    assert_null(kernel->link_flags);
    assert_true(kernel->object_hash.high == 0x06b05ab6733a6185u);
    assert_true(kernel->object_hash.low == 0x78af5f94892f3950u);
    gbx_kept_run_free(run);
}

static void test_verifies(void **state) {
    (void)state;
    gbx_kept_run *run;
    write_file("run.json", "{\"schema_version\": 1, \"kernels\": [{\"func_id\": 0, \"name\": "
                           "\"f\"},{\"func_id\": 1, \"name\": \"g\", \"object\": \"g.so\", "
                           "\"object_hash\": \"" HASH "\"}]}");
    assert_ok(gbx_kept_run_read(".", &run));
    assert_int_equal(run->blocks, 0);
    assert_null(run->scene_path);
    assert_fails(gbx_kept_kernel_verify(&run->kernels[0]), GBX_NOT_FOUND,
                 "kernel f: the dump "
                 "holds no");
    assert_fails(gbx_kept_kernel_verify(&run->kernels[1]), GBX_NOT_FOUND, "g.so: No such file");
    write_file("g.so", "abd");
    assert_fails(gbx_kept_kernel_verify(&run->kernels[1]), GBX_BAD_FORMAT,
                 "g.so is not the shared object that ran");
    write_file("g.so", "abc");
    assert_ok(gbx_kept_kernel_verify(&run->kernels[1]));
    unlink("g.so");
    assert_int_equal(symlink("/dev/zero", "g.so"), 0); /* an endless file */
    assert_fails(gbx_kept_kernel_verify(&run->kernels[1]), GBX_BAD_FORMAT,
                 "g.so: it is not a "
                 "regular file");
    gbx_kept_run_free(run);
}

static void check_refused(const char *text, gbx_code code, const char *expected) {
    gbx_kept_run *run;
    write_file("run.json", text);
    assert_fails(gbx_kept_run_read(".", &run), code, expected);
    assert_null(run);
}

#define OF_KERNEL(fields) HEAD "\"kernels\": [{\"func_id\": 7, \"name\": \"add\"" fields "}]}"

static void test_refuses(void **state) {
    (void)state;
    gbx_kept_run *run;
    assert_fails(gbx_kept_run_read(".", &run), GBX_NOT_FOUND, "run.json");
    check_refused("{", GBX_BAD_FORMAT, "run.json");
    check_refused("{\"schema_version\": 2, \"kernels\": []}", GBX_BAD_FORMAT, "schema_version");
    check_refused("{\"schema_version\": 1}", GBX_BAD_FORMAT, "kernels");
    check_refused("{\"schema_version\": 1, \"blocks\": 25, \"kernels\": []}", GBX_BAD_FORMAT,
                  "blocks");
    check_refused("{\"schema_version\": 1, \"gm_bytes\": 34359738369, \"kernels\": []}",
                  GBX_BAD_FORMAT, "gm_bytes");
    check_refused(HEAD "\"kernels\": [" KERNEL "," KERNEL "]}", GBX_BAD_FORMAT,
                  "kernels[1].func_id: 7 is already the func_id of an earlier kernel");
    check_refused(OF_KERNEL(", \"object\": \"/etc/x.so\""), GBX_BAD_FORMAT,
                  "kernels[0].object: \"/etc/x.so\" is not the path");
    check_refused(OF_KERNEL(", \"object\": \"kernels/../../x.so\""), GBX_BAD_FORMAT,
                  "is not the path of a file inside");
    check_refused(OF_KERNEL(", \"source\": \"..\""), GBX_BAD_FORMAT, "kernels[0].source");
    check_refused(OF_KERNEL(", \"object\": \"x.so\""), GBX_BAD_FORMAT, "object_hash");
    check_refused(OF_KERNEL(", \"object\": \"x.so\", \"object_hash\": \"06b05\""), GBX_BAD_FORMAT,
                  "\"06b05\" is not a hash");
    check_refused(OF_KERNEL(", \"object\": \"x.so\", \"object_hash\": "
                            "\"06b05ab6733a618578af5f94892f395g\""),
                  GBX_BAD_FORMAT, "is not a hash");
    check_refused(OF_KERNEL(", \"origin\": 5"), GBX_BAD_FORMAT, "kernels[0].origin");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reads, enter_directory, leave_directory),
        cmocka_unit_test_setup_teardown(test_verifies, enter_directory, leave_directory),
        cmocka_unit_test_setup_teardown(test_refuses, enter_directory, leave_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
