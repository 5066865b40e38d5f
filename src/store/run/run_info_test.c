#include "scratch.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/run/run_info.h"

static const char whole[] =
    "{\"generator\": \"g\", \"run\": {\"run_id\": \"r\", \"scene\": \"s\", \"case\": \"c\", "
    "\"platform\": \"p\", \"runtime\": \"t\", \"rank\": 3, \"round\": 4, \"started_at\": \"now\"}, "
    "\"dump_level\": \"stats\", \"has_args\": true, \"filters\": [\"a\", \"b\"], \"kernels\": "
    "[{\"func_id\": 9, \"name\": \"k\", \"core_type\": \"aic\", \"signature\": [\"scalar\", "
    "\"in\", "
    "\"scalar:int32\", \"inout\", \"out\"], \"arg_names\": [\"n\", \"x\", \"m\", null]}, "
    "{\"func_id\": 2, \"name\": \"l\", \"core_type\": \"aiv\", \"signature\": [\"in\", \"in\", "
    "\"in\"], \"arg_names\": [\"a\", \"b\", \"c\"]}], \"run_args\": [{\"name\": \"x\", \"role\": "
    "\"input\"}, {\"name\": null, \"role\": \"scalar\"}]}";

static gbx_status parse(const char *text, gbx_run_info *info) {
    return gbx_run_info_parse("the.rec", text, strlen(text), info);
}

static void every_member_is_read(void **state) {
    (void)state;
    gbx_run_info info;
    assert_null(parse(whole, &info));
    assert_string_equal(info.generator, "g");
    assert_string_equal(info.run_id, "r");
    assert_string_equal(info.scene, "s");
    assert_string_equal(info.case_name, "c");
    assert_string_equal(info.platform, "p");
    assert_string_equal(info.runtime, "t");
    assert_string_equal(info.started_at, "now");
    assert_int_equal(info.rank, 3);
    assert_int_equal(info.round, 4);
    assert_string_equal(info.dump_level, "stats");
    assert_true(info.has_args);
    assert_int_equal(info.filter_count, 2);
    assert_string_equal(info.filters[1], "b");
    assert_int_equal(info.kernel_count, 2);
    const gbx_run_kernel *kernel = gbx_run_info_kernel(&info, 9);
    assert_string_equal(kernel->name, "k");
    assert_string_equal(kernel->core_type, "aic");
    assert_int_equal(kernel->signature_count, 5);
    assert_string_equal(kernel->signature[2], "scalar:int32");
    assert_int_equal(info.argument_count, 2);
    assert_string_equal(info.arguments[0].role, "input");
    assert_null(info.arguments[1].name);
    gbx_run_info_free(&info);
}

/* Tensors of the signature take the first slots: x, (no name), (no name), then scalars n, m. */
static void names_belong_to_slots(void **state) {
    (void)state;
    static const char *const alone[] = {"x", NULL, NULL, "n", "m", NULL};
    static const char *const mixed[] = {"x", "b", "c", "n", "m", NULL};
    static const uint32_t one[3] = {9, UINT32_MAX, UINT32_MAX};
    static const uint32_t two[3] = {9, 2, UINT32_MAX};
    gbx_run_info info;
    assert_null(parse(whole, &info));
    for (uint32_t slot = 0; slot < 6; ++slot) {
        const char *name = gbx_run_info_slot_name(&info, one, slot);
        assert_true(name ? alone[slot] && strcmp(name, alone[slot]) == 0 : !alone[slot]);
        name = gbx_run_info_slot_name(&info, two, slot);
        assert_true(name ? mixed[slot] && strcmp(name, mixed[slot]) == 0 : !mixed[slot]);
    }
    gbx_run_info_free(&info);
}

static void most_members_may_be_absent(void **state) {
    (void)state;
    gbx_run_info info;
    assert_null(parse("{\"generator\": \"g\", \"run\": {}, \"dump_level\": null}", &info));
    assert_null(info.scene);
    assert_null(info.dump_level);
    assert_false(info.has_args);
    assert_int_equal(info.kernel_count, 0);
    gbx_run_info_free(&info);
}

typedef struct bad_case {
    const char *text;
    const char *message;
} bad_case;

#define KERNEL(members) "{\"generator\": \"g\", \"run\": {}, \"kernels\": [{" members "}]}"

static const bad_case bad[] = {
    {"", "the.rec: line"},
    {"[]", "the.rec: expected an object"},
    {"{\"run\": {}}", "\"generator\" is missing"},
    {"{\"generator\": \"g\"}", "\"run\" is missing"},
    {"{\"generator\": \"g\", \"run\": {\"rank\": -1}}", "run.rank: -1"},
    {KERNEL("\"func_id\": 1024"), "kernels[0].func_id: 1024"},
    {KERNEL("\"func_id\": 1, \"name\": 5"), "kernels[0].name: expected a string"},
    {KERNEL("\"func_id\": 1, \"name\": \"k\", \"core_type\": \"aix\""), "unknown value \"aix\"; "
                                                                        "expected aic or aiv"},
    {KERNEL("\"func_id\": 1, \"name\": \"k\", \"core_type\": \"aiv\", \"signature\": [\"inn\"]"),
     "kernels[0].signature[0]"},
    {KERNEL("\"func_id\": 1, \"name\": \"k\", \"core_type\": \"aiv\", \"signature\": "
            "[\"scalar:quoted\\\"\"]"),
     "kernels[0].signature[0]"},
    {KERNEL("\"func_id\": 1, \"name\": \"k\", \"core_type\": \"aiv\", \"signature\": [\"in\"], "
            "\"arg_names\": [\"a\", \"b\"]"),
     "2 names for a signature of 1"},
};

static void what_is_wrong_is_named(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        gbx_run_info info;
        gbx_status status = parse(bad[i].text, &info);
        assert_int_equal(gbx_status_code(status), GBX_BAD_FORMAT);
        if (!strstr(gbx_status_message(status), bad[i].message))
            fail_msg("%s: %s", bad[i].text, gbx_status_message(status));
        gbx_status_free(status);
    }
}

/* --- writing --- */

static int enter_directory(void **state) {
    (void)state;
    return !scratch_enter(NULL);
}

static int leave_directory(void **state) {
    (void)state;
    return !scratch_leave();
}

/* A run with every field that its files can have. */
static void describe(gbx_run_info *info) {
    static const char *filters[] = {"kernel=k"};
    static gbx_run_argument arguments[] = {{.name = "x", .role = "input"}, {.role = "scalar"}};
    static char object[] = "kernels/k_1.so";
    static gbx_run_kernel kernels[2];
    kernels[0] = (gbx_run_kernel){.func_id = 9,
                                  .name = "k",
                                  .core_type = "aic",
                                  .declared = "in,scalar:int32,out",
                                  .arg_names = "x,n,y",
                                  .object = object,
                                  .object_hash = {.low = 0x1f, .high = 0xa},
                                  .origin = "/gone/k.c",
                                  .compile_flags = "-O1"};
    kernels[1] = (gbx_run_kernel){.func_id = 2, .name = "l", .core_type = "aiv"};
    *info = (gbx_run_info){.generator = "g",
                           .run_id = "r",
                           .scene = "s",
                           .platform = "p",
                           .runtime = "t",
                           .started_at = "now",
                           .rank = 3,
                           .round = 4,
                           .dump_level = "stats",
                           .has_args = true,
                           .filters = filters,
                           .filter_count = 1,
                           .kernels = kernels,
                           .kernel_count = 2,
                           .arguments = arguments,
                           .argument_count = 2,
                           .command = "glassbox run s",
                           .device = "process",
                           .scene_path = "/gone",
                           .blocks = 8,
                           .threads = 5,
                           .gm_bytes = 4096,
                           .result = {.status = "running"}};
}

static void the_record_has_what_the_journal_needs(void **state) {
    (void)state;
    gbx_run_info info;
    char *text;
    describe(&info);
    assert_ok(gbx_run_record_make(&info, &text));
    assert_string_equal(
        text,
        "{\"generator\":\"g\",\"run\":{\"run_id\":\"r\",\"scene\":\"s\",\"case\":null,"
        "\"platform\":\"p\",\"runtime\":\"t\",\"rank\":3,\"round\":4,\"started_at\":\"now\"},"
        "\"dump_level\":\"stats\",\"has_args\":true,\"filters\":[\"kernel=k\"],\"kernels\":[{"
        "\"func_id\":9,\"name\":\"k\",\"core_type\":\"aic\",\"signature\":[\"in\","
        "\"scalar:int32\",\"out\"],\"arg_names\":[\"x\",\"n\",\"y\"]},{\"func_id\":2,\"name\":"
        "\"l\",\"core_type\":\"aiv\",\"signature\":[]}],\"run_args\":[{\"name\":\"x\",\"role\":"
        "\"input\"},{\"name\":null,\"role\":\"scalar\"}]}\n");
    gbx_run_info read;
    assert_ok(parse(text, &read));
    assert_string_equal(gbx_run_info_kernel(&read, 9)->slot_names[1], "y");
    assert_string_equal(gbx_run_info_kernel(&read, 9)->slot_names[2], "n");
    gbx_run_info_free(&read);
    free(text);
}

static json_t *load_run_json(void) {
    json_t *document = json_load_file("run.json", 0, NULL);
    assert_non_null(document);
    return document;
}

static void run_json_is_written_and_read(void **state) {
    (void)state;
    gbx_run_info info;
    gbx_run_info read;
    describe(&info);
    assert_ok(gbx_run_file_write(&info, "."));
    json_t *document = load_run_json();
    json_t *result = json_object_get(document, "result");
    assert_int_equal(json_object_size(result), 1);
    assert_string_equal(json_string_value(json_object_get(result, "status")), "running");
    assert_string_equal(json_string_value(json_object_get(document, "command")), "glassbox run s");
    assert_int_equal(json_integer_value(json_object_get(document, "threads")), 5);
    json_decref(document);
    info.result = (gbx_run_result){
        .status = "failed", .error = "e", .tasks = 6, .dispatches = 7, .dump = {.dropped = 8}};
    assert_ok(gbx_run_file_write(&info, "."));
    document = load_run_json();
    result = json_object_get(document, "result");
    assert_string_equal(json_string_value(json_object_get(result, "error")), "e");
    assert_int_equal(json_integer_value(json_object_get(result, "dispatches")), 7);
    result = json_object_get(result, "dump");
    assert_int_equal(json_integer_value(json_object_get(result, "dropped")), 8);
    json_decref(document);
    assert_ok(gbx_run_info_load(".", &read));
    assert_int_equal(read.blocks, 8);
    assert_int_equal(read.gm_bytes, 4096);
    assert_string_equal(read.scene_path, "/gone");
    const gbx_run_kernel *kernel = gbx_run_info_kernel(&read, 9);
    assert_string_equal(kernel->object, "./kernels/k_1.so");
    assert_true(kernel->object_hash.low == 0x1f && kernel->object_hash.high == 0xa);
    assert_string_equal(kernel->origin, "/gone/k.c");
    assert_string_equal(kernel->compile_flags, "-O1");
    assert_null(kernel->link_flags);
    assert_null(gbx_run_info_kernel(&read, 2)->object);
    gbx_run_info_free(&read);
    assert_int_equal(access("run.json.tmp", F_OK), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_is_read),
        cmocka_unit_test(names_belong_to_slots),
        cmocka_unit_test(most_members_may_be_absent),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(the_record_has_what_the_journal_needs),
        cmocka_unit_test_setup_teardown(run_json_is_written_and_read, enter_directory,
                                        leave_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
