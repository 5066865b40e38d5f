/*
 * Consecutive dumps on one open chip: no dump affects the next, however it ended, and a dump that
 * cannot begin leaves the chip unchanged.
 */
#include "dump_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ROUNDS = 4, TASKS = 12 };

static gbx_tensor matrix(dump_scene *scene, gbx_dtype dtype, int64_t rows, int64_t columns) {
    const int64_t shape[] = {rows, columns};
    return scene_tensor(scene, dtype, 2, shape);
}

/* Values depend on `seed`. */
static void make_graph(dump_scene *scene, uint64_t seed) {
    scene_clear(scene);
    gbx_tensor chain = matrix(scene, GBX_FLOAT32, 16, 16);
    gbx_tensor large =
        matrix(scene, GBX_UINT16, 128, 512); /* larger than a small arena: copied in pieces */
    for (uint32_t i = 0; i < TASKS; ++i) {
        plan_task *task = scene_add(scene, i % 3 ? gbx_aiv(STEP) : gbx_aic(STEP_AIC), STEP_WRITE);
        scene_control(scene, task)->seed += seed;
        scene_arg(scene, task, GBX_ROLE_INOUT, chain);
        scene_arg(scene, task, GBX_ROLE_OUTPUT, matrix(scene, GBX_INT8, 5, 7));
        if (i % 4 == 1)
            scene_arg(scene, task, GBX_ROLE_INOUT, large);
        scene_scalar(task, GBX_INT64, seed + i);
    }
}

/* A full dump that equals the model. */
static void check_full(dump_scene *scene, gbx_chip *chip, int runtime, uint64_t arena_bytes) {
    gbx_call_config config = scene_full_config();
    dump_rules rules = scene_full_rules(scene);
    dump_files files;
    config.dump.arena_bytes = arena_bytes;
    scene_check(scene, chip, runtime, &config, &rules, &files);
    dump_check_itself(&files);
    scene_drop(&files);
}

static gbx_status run_with(dump_scene *scene, gbx_chip *chip, int runtime, gbx_call_config config,
                           char directory[DUMP_PATH_BYTES], gbx_call_result *result) {
    char *log;
    gbx_status status = scene_run(scene, chip, runtime, config, directory, result, &log);
    free(log);
    return status;
}

static bool is_there(const char *directory, const char *name) {
    char path[DUMP_PATH_BYTES + 64];
    struct stat found;
    snprintf(path, sizeof path, "%s/tensor_dump/%s", directory, name);
    return stat(path, &found) == 0;
}

static void test_rounds_with_other_options(void **state) {
    dump_scene *scene = scene_create(1 << 20);
    gbx_chip *chip = scene_chip(scene, *state, 0);
    char directory[DUMP_PATH_BYTES];
    gbx_call_result result;
    for (int round = 0; round < ROUNDS; ++round) {
        int runtime = round % SCENE_RUNTIMES;
        make_graph(scene, (uint64_t)round * 100);
        check_full(scene, chip, runtime, round % 2 ? 64 << 10 : 0);

        gbx_call_config args_alone = {.enable_dump_args = true};
        assert_ok(run_with(scene, chip, runtime, args_alone, directory, &result));
        assert_int_equal(result.dump.records, 0);
        assert_int_equal(result.dump.dispatches, result.dispatches);
        assert_false(is_there(directory, "tensor_dump.json"));
        assert_true(is_there(directory, "kernel_args_dump.json"));
        dump_directory_remove(directory);

        const char *filter = "task=3,stage=after_completion";
        gbx_call_config partial = {.enable_dump_tensor = GBX_DUMP_FULL,
                                   .dump = {.filters = &filter, .filter_count = 1}};
        assert_ok(run_with(scene, chip, runtime, partial, directory, &result));
        assert_int_equal(result.dump.records, 2);
        dump_directory_remove(directory);
    }
    scene_close(chip);
    scene_destroy(scene);
}

/* The orchestration fails: the chip continues, and the next dump is complete. */
static void test_good_run_after_one_that_failed(void **state) {
    dump_scene *scene = scene_create(1 << 20);
    gbx_chip *chip = scene_chip(scene, *state, 0);
    char directory[DUMP_PATH_BYTES];
    for (int runtime = 0; runtime < SCENE_RUNTIMES; ++runtime) {
        gbx_call_result result;
        dump_files files;
        make_graph(scene, 5);
        scene->graph->result = 7;
        gbx_status status = run_with(scene, chip, runtime, scene_full_config(), directory, &result);
        assert_non_null(status);
        dump_files_open(directory, &files);
        assert_string_equal(dump_text(files.tensors, "status"), gbx_status_message(status));
        gbx_status_free(status);
        dump_check_itself(&files);
        scene_drop(&files);
        scene->graph->result = 0;
        make_graph(scene, 6);
        check_full(scene, chip, runtime, 0);
    }
    scene_close(chip);
    scene_destroy(scene);
}

/* A dump that cannot begin: the directory is in use, the chip has no room, a filter is invalid. */
static void test_good_run_after_a_dump_that_cannot_begin(void **state) {
    dump_scene *scene = scene_create(1 << 20);
    gbx_chip *chip = scene_chip(scene, *state, 0);
    const char *filter = "kernel=nothing_of_that_name";
    char directory[DUMP_PATH_BYTES];
    gbx_call_result result;
    make_graph(scene, 9);
    gbx_call_config config = scene_full_config();
    config.dump.arena_bytes = GBX_MAX_DUMP_ARENA_BYTES;
    assert_fails(run_with(scene, chip, PLAN_TENSORMAP, config, directory, &result), GBX_EXHAUSTED,
                 "--dump-arena");
    assert_false(is_there(directory, "tensor_dump.rec"));
    dump_directory_remove(directory);
    config = scene_full_config();
    config.dump.filters = &filter;
    config.dump.filter_count = 1;
    assert_fails(run_with(scene, chip, PLAN_TENSORMAP, config, directory, &result),
                 GBX_INVALID_ARGUMENT, filter);
    assert_false(is_there(directory, "tensor_dump.rec"));
    dump_directory_remove(directory);
    for (int runtime = 0; runtime < SCENE_RUNTIMES; ++runtime)
        check_full(scene, chip, runtime, 0);
    scene_close(chip);
    scene_destroy(scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_rounds_with_other_options, scene_close_all),
        cmocka_unit_test_teardown(test_good_run_after_one_that_failed, scene_close_all),
        cmocka_unit_test_teardown(test_good_run_after_a_dump_that_cannot_begin, scene_close_all),
    };
    return RUN_OVER_ALL_VARIANTS(tests);
}
