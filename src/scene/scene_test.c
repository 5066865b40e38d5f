#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glassbox/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scene/scene.h"

/* A directory with the files that these scenes name; broken scenes are in tests/run_test.py. */
static char directory[64];

static void put(const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int make_directory(void **state) {
    (void)state;
    strcpy(directory, "/tmp/glassbox-scene-test-XXXXXX");
    if (!mkdtemp(directory))
        return 1;
    put("k.c", "");
    put("o.c", "");
    put("g.py", "");
    return 0;
}

static int remove_directory(void **state) {
    (void)state;
    static const char *const names[] = {"k.c", "o.c", "g.py", "scene.json"};
    char path[128];
    for (size_t i = 0; i < 4; ++i) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        unlink(path);
    }
    return rmdir(directory);
}

static gbx_scene *load(const char *text) {
    gbx_scene *scene = NULL;
    put("scene.json", text);
    gbx_status status = gbx_scene_load(directory, &scene);
    assert_string_equal(gbx_status_message(status), "");
    return scene;
}

static const char full[] =
    "{\"name\": \"s\", \"description\": \"d\","
    " \"kernels\": [{\"func_id\": 7, \"name\": \"k\", \"source\": \"k.c\", \"core\": \"aic\","
    "   \"signature\": [\"in\", \"inout\", \"scalar\", \"scalar:fp16\"],"
    "   \"arg_names\": [\"a\", \"b\", \"c\", \"d\"], \"reference\": \"k.c\", \"rtol\": 0.5,"
    "   \"compile_flags\": \"-O1\", \"link_flags\": \"-lz\"}],"
    " \"orchestrations\": {\"host_build_graph\": {\"source\": \"o.c\", \"entry\": \"build\"}},"
    " \"args\": [{\"name\": \"n\", \"dtype\": \"int64\", \"role\": \"scalar\","
    "   \"value\": 9007199254740993},"
    "  {\"name\": \"x\", \"dtype\": \"bf16\", \"shape\": [2, 3], \"role\": \"in\","
    "   \"fill\": \"arange\", \"start\": 4},"
    "  {\"name\": \"y\", \"dtype\": \"float64\", \"shape\": [5], \"role\": \"out\"}],"
    " \"cases\": {\"z\": {}, \"a\": {\"description\": \"e\", \"args\": {"
    "   \"x\": {\"fill\": \"random\", \"dtype\": \"int8\"}, \"y\": {\"atol\": 0.25},"
    "   \"n\": {\"value\": -1}}}},"
    " \"golden\": {\"source\": \"g.py\"}}";

static void everything_is_read(void **state) {
    (void)state;
    gbx_scene *scene = load(full);
    const gbx_scene_kernel *kernel = &scene->kernels[0];
    assert_string_equal(scene->name, "s");
    assert_string_equal(scene->description, "d");
    assert_int_equal(scene->kernel_count, 1);
    assert_int_equal(kernel->func_id, 7);
    assert_int_equal(kernel->core, GBX_CORE_AIC);
    assert_int_equal(kernel->parameter_count, 4);
    assert_int_equal(kernel->signature[1].is.kind, GBX_ROLE_INOUT);
    assert_int_equal(kernel->signature[2].is.dtype, GBX_DTYPE_NONE);
    assert_int_equal(kernel->signature[3].is.dtype, GBX_FLOAT16);
    assert_string_equal(kernel->signature[3].name, "d");
    assert_true(kernel->rtol == 0.5 && kernel->atol < 0.0);
    assert_string_equal(kernel->compile_flags, "-O1");
    assert_string_equal(kernel->link_flags, "-lz");
    for (uint32_t i = 0; gbx_runtime_name(i); ++i) {
        bool is_host = strcmp(gbx_runtime_name(i), "host_build_graph") == 0;
        assert_int_equal(scene->orchestrations[i].source != NULL, is_host);
        if (is_host)
            assert_string_equal(scene->orchestrations[i].entry, "build");
    }
    assert_string_equal(scene->golden.entry, "golden");
    assert_non_null(strstr(scene->golden.source, "/g.py"));
    gbx_scene_free(scene);
}

static void cases_change_arguments(void **state) {
    (void)state;
    gbx_scene *scene = load(full);
    assert_int_equal(scene->case_count, 2);
    assert_string_equal(scene->cases[0].name, "z"); /* in the order of the file */
    const gbx_scene_arg *args = scene->cases[0].args;
    assert_int_equal(args[0].fill.value_bits, 9007199254740993);
    assert_int_equal(args[1].tensor.dtype, GBX_BFLOAT16);
    assert_int_equal(args[1].fill.kind, GBX_FILL_ARANGE);
    assert_true(args[1].fill.start == 4.0 && args[1].fill.step == 1.0);
    assert_int_equal(args[2].fill.kind, GBX_FILL_NONE);
    assert_true(args[2].rtol == 1e-12 && args[2].atol == 1e-14);
    args = gbx_scene_find_case(scene, "a")->args;
    assert_true(args[0].fill.value_bits == UINT64_MAX);
    assert_int_equal(args[1].tensor.dtype, GBX_INT8);
    assert_int_equal(args[1].tensor.shape[1], 3);
    assert_int_equal(args[1].fill.kind, GBX_FILL_RANDOM);
    assert_true(args[1].fill.low == 0.0 && args[1].fill.high == 10.0);
    assert_int_equal(args[1].fill.seed, 2);
    assert_true(args[2].rtol == 0.0 && args[2].atol == 0.25);
    assert_null(gbx_scene_find_case(scene, "b"));
    gbx_scene_free(scene);
}

static void one_case_is_there_without_any(void **state) {
    (void)state;
    gbx_scene *scene = load(
        "{\"name\": \"s\", \"kernels\": [{\"func_id\": 0, \"name\": \"k\", \"source\": \"k.c\","
        " \"core\": \"aiv\", \"signature\": []}], \"args\": [],"
        " \"orchestrations\": {\"aicpu_build_graph\": {\"source\": \"o.c\"}}}");
    assert_int_equal(scene->case_count, 1);
    assert_string_equal(scene->cases[0].name, "default");
    assert_int_equal(scene->arg_count, 0);
    assert_null(scene->golden.source);
    gbx_scene_free(scene);
}

static void failure_leaves_nothing(void **state) {
    (void)state;
    gbx_scene *scene = (gbx_scene *)1;
    put("scene.json",
        "{\"name\": \"s\", \"kernels\": [{\"func_id\": 0, \"name\": \"k\", \"source\":"
        " \"k.c\", \"core\": \"aiv\", \"signature\": [\"inn\"]}]}");
    gbx_status status = gbx_scene_load(directory, &scene);
    char expected[192];
    snprintf(expected, sizeof expected,
             "%s/scene.json: kernels[0].signature[0]: unknown value \"inn\"; expected in, out, "
             "inout or scalar",
             directory);
    assert_string_equal(gbx_status_message(status), expected);
    assert_int_equal(gbx_status_code(status), GBX_BAD_FORMAT);
    assert_null(scene);
    gbx_status_free(status);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_read),
        cmocka_unit_test(cases_change_arguments),
        cmocka_unit_test(one_case_is_there_without_any),
        cmocka_unit_test(failure_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
