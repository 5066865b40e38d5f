/*
 * Dumps of runs in which the device died: they open, and all that was recorded until then is there
 * and correct. If a kernel crashes or hangs while it writes its outputs, the dump has its inputs,
 * the bytes written so far (in flight), all earlier tasks and no later ones. Only chips in a
 * process.
 */
#include "dump_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEFORE = 12, AFTER = 4, STOP_ELEMENT = 13 };

/* Outputs before the one where it ends are complete, those after it unchanged. */
static void add_failing(dump_scene *scene, step_mode mode, gbx_tensor chain) {
    gbx_tensor wide = scene_matrix(scene, GBX_INT16, 6, 12);
    plan_task *task = scene_add(scene, gbx_aiv(STEP), mode);
    scene_arg(scene, task, GBX_ROLE_INPUT, chain);
    scene_arg(scene, task, GBX_ROLE_OUTPUT, scene_matrix(scene, GBX_FLOAT32, 3, 5));
    scene_arg(scene, task, GBX_ROLE_INOUT, gbx_view_slice(&wide, 1, 2, 7));
    scene_arg(scene, task, GBX_ROLE_OUTPUT, scene_matrix(scene, GBX_UINT8, 10, 10));
    scene_arg(scene, task, GBX_ROLE_INOUT, scene_matrix(scene, GBX_INT64, 2, 2));
    scene_scalar(task, GBX_DTYPE_NONE, gbx_word_f32(0.25f));
    scene_control(scene, task)->stop_tensor = 3;
    scene_control(scene, task)->stop_element = STOP_ELEMENT;
}

static void make_graph(dump_scene *scene, step_mode mode) {
    scene_clear(scene);
    gbx_tensor chain = scene_matrix(scene, GBX_FLOAT32, 8, 8);
    for (int i = 0; i < BEFORE + 1 + AFTER; ++i) {
        if (i == BEFORE) {
            add_failing(scene, mode, chain);
            continue;
        }
        plan_task *task = scene_add(scene, i % 2 ? gbx_aic(STEP_AIC) : gbx_aiv(STEP), STEP_WRITE);
        scene_arg(scene, task, GBX_ROLE_INOUT, chain);
        scene_arg(scene, task, GBX_ROLE_OUTPUT, scene_matrix(scene, GBX_INT32, 4, 9));
        scene_scalar(task, GBX_INT32, (uint64_t)i);
    }
    /* Later tasks read what it writes, so none of them can run before it. */
    for (int i = BEFORE + 1; i < BEFORE + 1 + AFTER; ++i)
        scene_arg(scene, &scene->graph->tasks[i], GBX_ROLE_INPUT,
                  scene->graph->tasks[BEFORE].tensors[2].view);
}

/* In flight: argument 2 is complete, some elements of 3 are new, 4 and 5 are unchanged. */
static void check_in_flight(const dump_scene *scene, const dump_files *files) {
    const plan_task *task = &scene->graph->tasks[BEFORE];
    for (uint32_t arg = 4; arg <= 5; ++arg) {
        const json_t *entry = dump_find(files, BEFORE, arg, true);
        const gbx_tensor *view = &task->tensors[arg].view;
        assert_true(dump_bool(entry, "in_flight"));
        assert_memory_equal(dump_payload(files, entry), scene->initial + view->data,
                            view->buffer_bytes);
    }
    const json_t *before = dump_find(files, BEFORE, 3, false);
    const json_t *amid = dump_find(files, BEFORE, 3, true);
    const int16_t *old = (const int16_t *)(const void *)dump_payload(files, before);
    const int16_t *now = (const int16_t *)(const void *)dump_payload(files, amid);
    size_t changed = 0;
    for (size_t i = 0; i < STOP_ELEMENT; ++i)
        changed += now[i] != old[i];
    assert_true(changed > STOP_ELEMENT / 2);
    assert_memory_equal(now + STOP_ELEMENT, old + STOP_ELEMENT,
                        dump_number(amid, "bin_size") - STOP_ELEMENT * sizeof *now);
    assert_false(dump_bool(before, "in_flight"));
}

/* On its own chip; a hang is repeated until the message names the task that hangs. */
static gbx_status run_failing(dump_scene *scene, const chip_variant *variant, int runtime,
                              bool is_hang, gbx_chip **out_chip, char directory[DUMP_PATH_BYTES],
                              gbx_call_result *out_result) {
    for (int i = 0;; ++i) {
        gbx_call_config config = scene_full_config();
        char *log;
        if (is_hang)
            config.timeout_ms = hang_timeouts_ms[i];
        *out_chip = scene_chip(scene, variant, 0);
        gbx_status status =
            scene_run(scene, *out_chip, runtime, config, directory, out_result, &log);
        free(log);
        if (!is_hang || i + 1 == HANG_TIMEOUTS || strstr(gbx_status_message(status), "task 12"))
            return status;
        gbx_status_free(status);
        dump_directory_remove(directory);
        scene_close(*out_chip);
    }
}

static void check_way(const chip_variant *variant, step_mode mode, gbx_code code) {
    dump_scene *scene = scene_create(1 << 17);
    make_graph(scene, mode);
    for (int runtime = 0; runtime < SCENE_RUNTIMES; ++runtime) {
        gbx_chip *chip;
        dump_rules rules = scene_full_rules(scene);
        char directory[DUMP_PATH_BYTES];
        gbx_call_result result;
        dump_files files;
        rules.has_fault = true;
        rules.fault_task = BEFORE;
        gbx_status status = run_failing(scene, variant, runtime, code == GBX_DEVICE_HUNG, &chip,
                                        directory, &result);
        assert_fails(status, code, "step", "task 12");
        dump_files_open(directory, &files);
        scene_compare(scene, runtime, &files, &rules);
        check_in_flight(scene, &files);
        assert_int_equal(result.dump.in_flight, 4);
        assert_int_equal(result.dump.records, dump_number(files.tensors, "total_tensors"));
        assert_non_null(strstr(dump_text(files.tensors, "status"), "step"));
        scene_drop(&files);
        scene_close(chip);
    }
    scene_destroy(scene);
}

static void test_kernel_that_crashes(void **state) {
    check_way(*state, STEP_CRASH, GBX_DEVICE_FAULT);
}

static void test_kernel_that_hangs(void **state) {
    check_way(*state, STEP_HANG, GBX_DEVICE_HUNG);
}

/* The chip ends at once: its outputs are not captured, but all earlier records are in global
 * memory. */
static void test_kernel_that_ends_the_chip(void **state) {
    dump_scene *scene = scene_create(1 << 17);
    make_graph(scene, STEP_EXIT);
    for (int runtime = 0; runtime < SCENE_RUNTIMES; ++runtime) {
        gbx_chip *chip = scene_chip(scene, *state, 0);
        dump_rules rules = scene_full_rules(scene);
        char directory[DUMP_PATH_BYTES];
        gbx_call_result result;
        char *log;
        dump_files files;
        rules.has_fault = rules.is_device_lost = true;
        rules.fault_task = BEFORE;
        gbx_status status =
            scene_run(scene, chip, runtime, scene_full_config(), directory, &result, &log);
        assert_fails(status, GBX_DEVICE_LOST, "exited with code 9");
        free(log);
        dump_files_open(directory, &files);
        scene_compare(scene, runtime, &files, &rules);
        assert_int_equal(result.dump.in_flight, 0);
        scene_drop(&files);
        scene_close(chip);
    }
    scene_destroy(scene);
}

/* A chip that runs after a failed one: its dump holds nothing of the other's. */
static void test_chip_after_one_that_crashed(void **state) {
    dump_scene *scene = scene_create(1 << 17);
    gbx_chip *chip = scene_chip(scene, *state, 0);
    dump_rules rules = scene_full_rules(scene);
    gbx_call_config config = scene_full_config();
    char directory[DUMP_PATH_BYTES];
    gbx_call_result result;
    char *log;
    dump_files files;
    make_graph(scene, STEP_CRASH);
    assert_fails(scene_run(scene, chip, PLAN_TENSORMAP, config, directory, &result, &log),
                 GBX_DEVICE_FAULT, "SIGSEGV");
    free(log);
    dump_directory_remove(directory);
    gbx_chip *other = scene_chip(scene, *state, 0);
    make_graph(scene, STEP_WRITE);
    scene_check(scene, other, PLAN_TENSORMAP, &config, &rules, &files);
    scene_drop(&files);
    scene_close(other);
    scene_close(chip);
    scene_destroy(scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scene_test(test_kernel_that_crashes),
        scene_test(test_kernel_that_hangs),
        scene_test(test_kernel_that_ends_the_chip),
        scene_test(test_chip_after_one_that_crashed),
    };
    return RUN_OVER_PROCESS_VARIANTS(tests);
}
