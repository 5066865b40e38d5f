#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "store/run/run_info.h"

static const char whole[] =
    "{\"generator\": \"g\", \"run\": {\"run_id\": \"r\", \"scene\": \"s\", \"case\": \"c\", "
    "\"platform\": \"p\", \"runtime\": \"t\", \"rank\": 3, \"round\": 4, \"started_at\": \"now\"}, "
    "\"dump_level\": \"stats\", \"has_args\": true, \"filters\": [\"a\", \"b\"], \"kernels\": "
    "[{\"func_id\": 9, \"name\": \"k\", \"core_type\": \"aic\", \"signature\": [\"scalar\", \"in\", "
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
    {KERNEL("\"func_id\": 1, \"name\": \"k\", \"core_type\": \"aix\""), "none of aic, aiv"},
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_is_read),
        cmocka_unit_test(names_belong_to_slots),
        cmocka_unit_test(most_members_may_be_absent),
        cmocka_unit_test(what_is_wrong_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
