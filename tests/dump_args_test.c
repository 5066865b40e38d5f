/*
 * Compares args_dump.json with the arguments that the orchestration saved, and
 * kernel_args_dump.json with the args[] that each dispatch saved, word for word. Also checks that
 * each of the two flags, without the other, writes only its own files.
 */
#include "dump_scene.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MEMORY = 1 << 19,
    FIXED_WORDS = GBX_ARG_SLOTS + 2 + 3, /* of a row of save_args.c: slots and both contexts */
    TENSOR_WORDS = sizeof(gbx_tensor) / sizeof(uint64_t),
    SAVED_WORDS = 1024,
    RUN_SCALARS = 1 + 16,
    RUN_TENSORS = 5,
};

/* --- graphs of tasks that save their arguments --- */

/* A task of `tensor_count` tensors; the first one receives the rows. */
static plan_task *add_saving(dump_scene *scene, gbx_task_kernels kernels, uint32_t tensor_count,
                             uint32_t scalar_count) {
    plan_task *task = scene_add_plain(scene, kernels);
    scene_arg(scene, task, GBX_ROLE_OUTPUT,
              scene_matrix(scene, GBX_UINT64, (int64_t)kernels.block_num * GBX_SUBTASK_COUNT,
                           FIXED_WORDS + (int64_t)tensor_count * TENSOR_WORDS));
    for (uint32_t i = 1; i < tensor_count; ++i) {
        gbx_tensor view = scene_matrix(scene, (gbx_dtype)(1 + i % 16), 3, 4 + (int64_t)i);
        if (i % 3 == 1)
            view = gbx_view_transpose(&view, 0, 1);
        if (i % 4 == 2)
            view = gbx_view_select(&view, 0, 1);
        scene_arg(scene, task, (gbx_role)(i % 3), view);
    }
    for (uint32_t i = 0; i < scalar_count; ++i)
        scene_scalar(task, (gbx_dtype)(i % 17), UINT64_C(0x123456789abcdef1) * (i + 1));
    return task;
}

static void make_graph(dump_scene *scene) {
    scene_clear(scene);
    add_saving(scene, gbx_aiv(SAVE), 1, 0);
    add_saving(scene, gbx_aic(SAVE_AIC), 4, 3);
    add_saving(scene, gbx_spmd(gbx_mix(SAVE_AIC, SAVE, SAVE), 7), 5, 2);
    add_saving(scene, gbx_spmd(gbx_mix(GBX_NO_KERNEL, GBX_NO_KERNEL, SAVE), 3), 2, 5);
    add_saving(scene, gbx_aiv(SAVE), GBX_MAX_TENSOR_ARGS, GBX_MAX_SCALAR_ARGS);
    scene_add_plain(scene, gbx_spmd(gbx_aiv(IDLE), 2));
}

static const uint64_t *saved_row(const dump_scene *scene, const plan_task *task,
                                 const json_t *dispatch) {
    const gbx_tensor *rows = &task->tensors[0].view;
    uint64_t row = dump_number(dispatch, "block_idx") * GBX_SUBTASK_COUNT +
                   dump_number(dispatch, "subtask_id");
    assert_true((int64_t)row < rows->shape[0]);
    return (const uint64_t *)(const void *)(scene->memory + rows->data) +
           row * (uint64_t)rows->strides[0];
}

/* --- one dispatch --- */

static const char *const role_names[] = {"input", "output", "inout"};

/* The description that the kernel found at the address in its word. */
static void check_tensor_slot(const json_t *slot, const plan_task *task, uint32_t index,
                              const uint64_t *row) {
    gbx_tensor saved;
    memcpy(&saved, row + FIXED_WORDS + index * TENSOR_WORDS, sizeof saved);
    assert_string_equal(dump_text(slot, "kind"), "tensor");
    assert_string_equal(dump_text(slot, "role"), role_names[task->tensors[index].role]);
    assert_string_equal(dump_text(slot, "dtype"), dump_dtype_name(saved.dtype));
    assert_int_equal(dump_number(slot, "ndims"), saved.ndims);
    assert_true(dump_array_is(slot, "shape", saved.shape, saved.ndims));
    assert_true(dump_array_is(slot, "strides", saved.strides, saved.ndims));
    assert_int_equal(dump_signed(slot, "start_offset"), saved.start_offset);
    assert_int_equal(dump_hex(slot, "data_ptr"), saved.data);
    assert_int_equal(dump_hex(slot, "bits"), row[index]);
}

/* Without a dtype there are only bits. */
static void check_value(const json_t *one, uint32_t dtype, uint64_t word) {
    assert_string_equal(dump_text(one, "dtype"), dump_dtype_name(dtype));
    assert_int_equal(dump_hex(one, "bits"), word);
    if (dtype == GBX_DTYPE_NONE)
        assert_null(json_object_get(one, "value"));
    else
        assert_true(dump_value_is(dump_field(one, "value"), dtype, word));
}

static void check_scalar_slot(const json_t *slot, uint32_t dtype, uint64_t word) {
    assert_string_equal(dump_text(slot, "kind"), "scalar");
    assert_string_equal(dump_text(slot, "role"), "input");
    check_value(slot, dtype, word);
}

static void check_word(const json_t *slot, uint64_t word) {
    assert_string_equal(dump_text(slot, "kind"), "word");
    assert_true(json_is_null(dump_field(slot, "role")));
    check_value(slot, GBX_DTYPE_NONE, word);
}

static void check_slots(const json_t *dispatch, const plan_task *task, int runtime,
                        const uint64_t *row) {
    const json_t *slots = dump_array(dispatch, "args");
    assert_int_equal(json_array_size(slots), task->tensor_count + task->scalar_count);
    for (uint32_t i = 0; i < json_array_size(slots); ++i) {
        const json_t *slot = json_array_get(slots, i);
        assert_int_equal(dump_number(slot, "arg_index"), i);
        if (i < task->tensor_count) {
            check_tensor_slot(slot, task, i, row);
            continue;
        }
        /* host_build_graph has no call that declares a scalar. */
        uint32_t dtype = task->scalars[i - task->tensor_count].dtype;
        bool is_declared = dtype && runtime != PLAN_HOST_BUILD_GRAPH;
        assert_int_equal(row[i], task->scalars[i - task->tensor_count].bits);
        check_scalar_slot(slot, is_declared ? dtype : GBX_DTYPE_NONE, row[i]);
    }
}

static void check_contexts(const json_t *dispatch, const uint64_t *row) {
    static const uint32_t at[] = {GBX_ARG_LOCAL_CONTEXT, GBX_ARG_GLOBAL_CONTEXT};
    const json_t *contexts = dump_array(dispatch, "contexts");
    assert_int_equal(json_array_size(contexts), 2);
    for (size_t i = 0; i < 2; ++i) {
        const json_t *one = json_array_get(contexts, i);
        assert_int_equal(dump_number(one, "arg_index"), at[i]);
        assert_int_equal(dump_hex(one, "bits"), row[at[i]]);
        assert_non_null(strstr(dump_text(one, "name"), i == 0 ? "local" : "global"));
    }
}

static void check_place(const json_t *dispatch, const uint64_t *row) {
    gbx_local_context local;
    memcpy(&local, row + GBX_ARG_SLOTS, sizeof local);
    assert_int_equal(dump_number(dispatch, "block_idx"), local.block_idx);
    assert_int_equal(dump_number(dispatch, "block_num"), local.block_num);
    assert_int_equal(dump_number(dispatch, "subtask_id"), local.subtask);
    assert_int_equal(dump_number(dispatch, "core_id"), local.core_id);
}

static void check_dispatch(const dump_scene *scene, const json_t *dispatch, int runtime) {
    uint64_t seq = dump_number(dispatch, "task_seq"), subtask = dump_number(dispatch, "subtask_id");
    assert_in_range(seq, 0, scene->graph->task_count - 1);
    assert_in_range(subtask, 0, GBX_SUBTASK_COUNT - 1);
    const plan_task *task = &scene->graph->tasks[seq];
    uint32_t id = task->kernels.func_ids[subtask];
    assert_int_not_equal(id, GBX_NO_KERNEL);
    assert_int_equal(dump_hex(dispatch, "task_id"), seq);
    assert_int_equal(dump_number(dispatch, "func_id"), id);
    assert_string_equal(dump_text(dispatch, "kernel"), scene->kernels.facts[id].name);
    assert_string_equal(dump_text(dispatch, "core_type"), subtask == 0 ? "aic" : "aiv");
    assert_int_equal(dump_number(dispatch, "block_num"), task->kernels.block_num);
    assert_string_equal(dump_text(dispatch, "stage"), "before_dispatch");
    dump_number(dispatch, "time_ns");
    if (id == IDLE)
        return;
    const uint64_t *row = saved_row(scene, task, dispatch);
    check_slots(dispatch, task, runtime, row);
    check_contexts(dispatch, row);
    check_place(dispatch, row);
}

/* --- all dispatches --- */

static uint64_t dispatches_of(const plan_task *task) {
    uint64_t subtasks = 0;
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s)
        subtasks += task->kernels.func_ids[s] != GBX_NO_KERNEL;
    return subtasks * task->kernels.block_num;
}

/* Each dispatch once, ordered by task, block and subtask. */
static void check_dispatches(const dump_scene *scene, const dump_files *files, int runtime) {
    const json_t *list = dump_array(files->kernel_args, "dispatches");
    uint64_t expected = 0, slots = 0, last = 0;
    for (uint32_t i = 0; i < scene->graph->task_count; ++i) {
        const plan_task *task = &scene->graph->tasks[i];
        expected += dispatches_of(task);
        slots += dispatches_of(task) * (task->tensor_count + task->scalar_count);
    }
    assert_int_equal(json_array_size(list), expected);
    assert_int_equal(dump_number(files->kernel_args, "total_dispatches"), expected);
    assert_int_equal(dump_number(files->kernel_args, "total_args"), slots);
    assert_int_equal(dump_number(files->kernel_args, "schema_version"), 1);
    for (size_t i = 0; i < expected; ++i) {
        const json_t *one = json_array_get(list, i);
        uint64_t place = (dump_number(one, "task_seq") << 32) +
                         (dump_number(one, "block_idx") << 2) + dump_number(one, "subtask_id") + 1;
        assert_true(place > last);
        last = place;
        assert_int_equal(dump_number(one, "dispatch_id"), i);
        check_dispatch(scene, one, runtime);
    }
}

/* --- the orchestration's own arguments --- */

typedef struct saving_run {
    uint64_t saved[SAVED_WORDS];
    float extra[6];
    uint8_t nothing;
    gbx_run_tensor tensors[RUN_TENSORS];
    uint64_t scalars[RUN_SCALARS];
    const char *names[RUN_SCALARS];
    gbx_dtype dtypes[RUN_SCALARS];
} saving_run;

static void make_run(const dump_scene *scene, int runtime, saving_run *run) {
    const int64_t saved_shape = SAVED_WORDS, extra_shape[] = {2, 3, 1}, empty_shape[] = {4, 0};
    memset(run, 0, sizeof *run);
    scene_run_tensors(scene, run->tensors);
    run->tensors[PLAN_SAVED] = (gbx_run_tensor){.name = "saved", .role = GBX_ROLE_INOUT};
    assert_ok(gbx_tensor_contiguous((uintptr_t)run->saved, GBX_UINT64, 1, &saved_shape,
                                    &run->tensors[PLAN_SAVED].tensor));
    run->tensors[3] = (gbx_run_tensor){.name = "extra", .role = GBX_ROLE_INPUT};
    assert_ok(gbx_tensor_contiguous((uintptr_t)run->extra, GBX_FLOAT32, 3, extra_shape,
                                    &run->tensors[3].tensor));
    run->tensors[4] = (gbx_run_tensor){.name = NULL, .role = GBX_ROLE_INPUT};
    assert_ok(gbx_tensor_contiguous((uintptr_t)&run->nothing, GBX_BFLOAT16, 2, empty_shape,
                                    &run->tensors[4].tensor));
    run->scalars[PLAN_RUNTIME] = (uint64_t)runtime;
    run->names[PLAN_RUNTIME] = "runtime";
    run->dtypes[PLAN_RUNTIME] = GBX_UINT64;
    for (uint32_t i = 1; i < RUN_SCALARS; ++i) {
        run->scalars[i] = UINT64_C(0x9e3779b97f4a7c15) * i;
        run->names[i] = i % 3 ? "scale" : NULL;
        run->dtypes[i] = (gbx_dtype)i;
    }
}

static void check_name(const json_t *one, const char *name) {
    const json_t *value = json_object_get(one, "name");
    if (name)
        assert_string_equal(dump_text(one, "name"), name);
    else
        assert_true(!value || json_is_null(value) || strcmp(json_string_value(value), "") == 0);
}

static void check_run_tensor(const json_t *one, const gbx_run_tensor *given,
                             const gbx_tensor *saved) {
    check_name(one, given->name);
    assert_string_equal(dump_text(one, "type"), "tensor");
    assert_string_equal(dump_text(one, "dtype"), dump_dtype_name(saved->dtype));
    assert_int_equal(dump_number(one, "ndims"), saved->ndims);
    assert_true(dump_array_is(one, "shape", saved->shape, saved->ndims));
    assert_int_equal(dump_hex(one, "data_ptr"), saved->data);
}

static void check_run_scalar(const json_t *one, const saving_run *run, uint32_t index,
                             uint64_t saved) {
    char decimal[32];
    snprintf(decimal, sizeof decimal, "%" PRIu64, saved);
    check_name(one, run->names[index]);
    assert_string_equal(dump_text(one, "type"), "scalar");
    assert_string_equal(dump_text(one, "scalar_value"), decimal);
    check_value(one, run->dtypes[index], saved);
}

static void check_run_args(const dump_files *files, const saving_run *run) {
    const json_t *list = dump_array(files->args, "args");
    const uint64_t *saved = run->saved;
    assert_int_equal(saved[SAVED_TENSOR_COUNT], RUN_TENSORS);
    assert_int_equal(saved[SAVED_SCALAR_COUNT], RUN_SCALARS);
    assert_int_equal(dump_number(files->args, "schema_version"), 1);
    assert_int_equal(dump_number(files->args, "total_args"), RUN_TENSORS + RUN_SCALARS);
    assert_int_equal(json_array_size(list), RUN_TENSORS + RUN_SCALARS);
    assert_null(json_object_get(files->args, "bin_file"));
    for (uint32_t i = 0; i < RUN_TENSORS + RUN_SCALARS; ++i) {
        const json_t *one = json_array_get(list, i);
        gbx_tensor tensor;
        assert_int_equal(dump_number(one, "arg_index"), i);
        if (i >= RUN_TENSORS) {
            uint32_t index = i - RUN_TENSORS;
            const uint64_t *words = saved + SAVED_TENSORS + RUN_TENSORS * SAVED_TENSOR_WORDS;
            check_run_scalar(one, run, index, words[index]);
            continue;
        }
        memcpy(&tensor, saved + SAVED_TENSORS + i * SAVED_TENSOR_WORDS, sizeof tensor);
        check_run_tensor(one, &run->tensors[i], &tensor);
    }
}

/* --- runs --- */

static void run_saving(dump_scene *scene, gbx_chip *chip, int runtime, gbx_call_config *config,
                       saving_run *run, gbx_call_result *out_result) {
    make_run(scene, runtime, run);
    memcpy(scene->memory, scene->initial, scene->memory_bytes);
    gbx_run request = {.runtime = scene_runtimes[runtime],
                       .shared_object = compiled_object("dump_orchestration.c"),
                       .tensors = run->tensors,
                       .tensor_count = RUN_TENSORS,
                       .scalars = run->scalars,
                       .scalar_count = RUN_SCALARS,
                       .scalar_names = run->names,
                       .scalar_dtypes = run->dtypes};
    dump_log log = dump_log_begin();
    gbx_status status = gbx_chip_run(chip, &request, config, out_result);
    char *text = dump_log_end(&log);
    assert_ok(status);
    assert_string_equal(text, "");
    free(text);
}

static bool has_file(const dump_files *files, const char *name) {
    char path[DUMP_PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/tensor_dump/%s", files->directory, name);
    return access(path, F_OK) == 0;
}

static void check_files(const dump_files *files, bool has_tensors, bool has_args) {
    assert_int_equal(has_file(files, "tensor_dump.json"), has_tensors);
    assert_int_equal(has_file(files, "tensor_dump.bin"), has_tensors);
    assert_int_equal(has_file(files, "args_dump.json"), has_args);
    assert_int_equal(has_file(files, "kernel_args_dump.json"), has_args);
    assert_true(has_file(files, "tensor_dump.rec"));
}

/* Of a good run, of which nothing is missing. */
static void check_ending(const json_t *file) {
    assert_true(dump_bool(file, "complete"));
    assert_string_equal(dump_text(file, "status"), "ok");
    assert_int_equal(json_array_size(dump_array(file, "losses")), 0);
    assert_int_equal(json_array_size(dump_array(file, "skipped")), 0);
}

static void check_args(dump_scene *scene, gbx_chip *chip, int runtime, gbx_dump_level level) {
    static const char *const filters[] = {"kernel=save,arg=0"};
    gbx_call_config config = {
        .timeout_ms = 20000, .enable_dump_tensor = level, .enable_dump_args = true};
    saving_run run;
    gbx_call_result result = {0};
    char directory[DUMP_PATH_BYTES];
    dump_files files;
    dump_directory_make(directory);
    config.dump.directory = directory;
    if (level != GBX_DUMP_OFF) { /* arguments of dispatches ignore it */
        config.dump.filters = filters;
        config.dump.filter_count = 1;
    }
    run_saving(scene, chip, runtime, &config, &run, &result);
    dump_files_open(directory, &files);
    check_files(&files, level != GBX_DUMP_OFF, true);
    check_dispatches(scene, &files, runtime);
    check_run_args(&files, &run);
    check_ending(files.args);
    check_ending(files.kernel_args);
    dump_assert_python_reads(&files);
    assert_int_equal(result.dump.dispatches, dump_number(files.kernel_args, "total_dispatches"));
    if (level == GBX_DUMP_OFF)
        assert_int_equal(result.dump.records, 0);
    scene_drop(&files);
}

static void test_only_arguments(void **state) {
    dump_scene *scene = scene_create(MEMORY);
    gbx_chip *chip = scene_chip(scene, *state, 3);
    make_graph(scene);
    for (int runtime = 0; runtime < SCENE_RUNTIMES; ++runtime)
        check_args(scene, chip, runtime, GBX_DUMP_OFF);
    scene_close(chip);
    scene_destroy(scene);
}

static void test_arguments_beside_tensors(void **state) {
    dump_scene *scene = scene_create(MEMORY);
    gbx_chip *chip = scene_chip(scene, *state, 0);
    make_graph(scene);
    for (int runtime = 0; runtime < SCENE_RUNTIMES; ++runtime)
        check_args(scene, chip, runtime, GBX_DUMP_FULL);
    scene_close(chip);
    scene_destroy(scene);
}

/* Rows hold addresses, which differ in the model: only the files are compared. */
static void test_only_tensors(void **state) {
    dump_scene *scene = scene_create(MEMORY);
    gbx_chip *chip = scene_chip(scene, *state, 0);
    make_graph(scene);
    for (int runtime = 0; runtime < SCENE_RUNTIMES; ++runtime) {
        char directory[DUMP_PATH_BYTES];
        gbx_call_config config = scene_full_config();
        gbx_call_result result = {0};
        saving_run run;
        dump_files files;
        dump_directory_make(directory);
        config.dump.directory = directory;
        run_saving(scene, chip, runtime, &config, &run, &result);
        dump_files_open(directory, &files);
        check_files(&files, true, false);
        dump_check_itself(&files);
        assert_int_equal(json_array_size(dump_array(files.tensors, "losses")), 0);
        assert_int_equal(result.dump.dispatches, 0);
        /* The rows as the kernels left them: the dump records the memory after the run. */
        for (uint64_t i = 0; i < 5; ++i) {
            const gbx_tensor *rows = &scene->graph->tasks[i].tensors[0].view;
            const json_t *entry = dump_find(&files, i, 0, true);
            assert_int_equal(dump_number(entry, "bin_size"), rows->buffer_bytes);
            assert_memory_equal(dump_payload(&files, entry), scene->memory + rows->data,
                                rows->buffer_bytes);
        }
        scene_drop(&files);
    }
    scene_close(chip);
    scene_destroy(scene);
}

/* host_build_graph: every word of an undescribed task is a plain word. */
static void test_arguments_without_description(void **state) {
    dump_scene *scene = scene_create(MEMORY);
    gbx_chip *chip = scene_chip(scene, *state, 0);
    gbx_call_config config = {.timeout_ms = 20000, .enable_dump_args = true};
    char directory[DUMP_PATH_BYTES];
    gbx_call_result result;
    char *log;
    dump_files files;
    plan_task *task = add_saving(scene, gbx_aiv(SAVE), 2, 2);
    task->description = PLAN_UNDESCRIBED;
    assert_ok(scene_run(scene, chip, PLAN_HOST_BUILD_GRAPH, config, directory, &result, &log));
    free(log);
    dump_files_open(directory, &files);
    const json_t *list = dump_array(files.kernel_args, "dispatches");
    assert_int_equal(json_array_size(list), 1);
    const json_t *skipped = dump_array(files.kernel_args, "skipped");
    assert_int_equal(json_array_size(skipped), 1);
    assert_true(json_is_null(dump_field(json_array_get(skipped, 0), "arg_index")));
    assert_string_equal(dump_text(json_array_get(skipped, 0), "reason_code"), "undescribed");
    const json_t *dispatch = json_array_get(list, 0), *slots = dump_array(dispatch, "args");
    const uint64_t *row = saved_row(scene, task, dispatch);
    assert_int_equal(json_array_size(slots), 4);
    for (uint32_t i = 0; i < 4; ++i)
        check_word(json_array_get(slots, i), row[i]);
    scene_drop(&files);
    scene_close(chip);
    scene_destroy(scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scene_test(test_only_arguments),
        scene_test(test_arguments_beside_tensors),
        scene_test(test_only_tensors),
        scene_test(test_arguments_without_description),
    };
    return RUN_OVER_ALL_VARIANTS(tests);
}
