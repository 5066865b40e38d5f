#include "dump_scene.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const scene_runtimes[SCENE_RUNTIMES] = {
    [PLAN_HOST_BUILD_GRAPH] = "host_build_graph",
    [PLAN_AICPU_BUILD_GRAPH] = "aicpu_build_graph",
    [PLAN_TENSORMAP] = "tensormap_and_ringbuffer",
};

enum { PLACE_BYTES = 64 };        /* tensors begin at multiples of it */
enum { LONGEST_MS = 600 * 1000 }; /* a good run may stall on a busy machine */
enum { STEP_LIBRARY = 0, IDLE_LIBRARY, SAVE_LIBRARY, ORCHESTRATION_LIBRARY, LIBRARIES };

static const char *const sources[LIBRARIES] = {"dump_step.c", "dump_idle.c", "save_args.c",
                                               "dump_orchestration.c"};

static void *must(void *pointer) {
    assert_non_null(pointer);
    return pointer;
}

/* --- making a scene --- */

static void fill_randomly(uint8_t *bytes, size_t count) {
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < count; ++i) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes[i] = (uint8_t)(state >> 24);
    }
}

static void declare(dump_scene *scene, uint32_t id, gbx_core_type core, const char *name,
                    int library) {
    scene->kernels.facts[id] = (gbx_kernel){.func_id = id,
                                            .name = name,
                                            .core = core,
                                            .shared_object = compiled_object(sources[library])};
    scene->kernels.functions[id] =
        (gbx_kernel_function)must(dlsym(scene->libraries[library], "kernel_entry"));
}

dump_scene *scene_create(size_t memory_bytes) {
    dump_scene *scene = must(calloc(1, sizeof *scene));
    scene->graph = must(calloc(1, sizeof *scene->graph));
    scene->memory = must(malloc(memory_bytes));
    scene->initial = must(malloc(memory_bytes));
    scene->memory_bytes = memory_bytes;
    fill_randomly(scene->initial, memory_bytes);
    for (int i = 0; i < LIBRARIES; ++i)
        scene->libraries[i] = must(dlopen(compiled_object(sources[i]), RTLD_NOW | RTLD_LOCAL));
    declare(scene, STEP, GBX_CORE_AIV, "step", STEP_LIBRARY);
    declare(scene, STEP_AIC, GBX_CORE_AIC, "step_aic", STEP_LIBRARY);
    declare(scene, DECLARED, GBX_CORE_AIV, "declared", STEP_LIBRARY);
    declare(scene, WIDE, GBX_CORE_AIV, "wide", STEP_LIBRARY);
    declare(scene, IDLE, GBX_CORE_AIV, "idle", IDLE_LIBRARY);
    declare(scene, SAVE, GBX_CORE_AIV, "save", SAVE_LIBRARY);
    declare(scene, SAVE_AIC, GBX_CORE_AIC, "save_aic", SAVE_LIBRARY);
    scene->kernels.facts[DECLARED].signature = DECLARED_SIGNATURE;
    scene->kernels.facts[DECLARED].arg_names = DECLARED_NAMES;
    scene->kernels.facts[WIDE].signature = WIDE_SIGNATURE;
    scene->kernels.facts[WIDE].arg_names = WIDE_NAMES;
    return scene;
}

void scene_destroy(dump_scene *scene) {
    for (int i = 0; i < LIBRARIES; ++i)
        dlclose(scene->libraries[i]);
    free(scene->graph);
    free(scene->memory);
    free(scene->initial);
    free(scene);
}

/* The chips that a failed test left open; tests of a program run one after the other. */
enum { MOST_CHIPS = 16 };
static gbx_chip *open_chips[MOST_CHIPS];

static void remember_chip(gbx_chip *chip) {
    size_t at = 0;
    while (at < MOST_CHIPS && open_chips[at])
        ++at;
    assert_in_range(at, 0, MOST_CHIPS - 1);
    open_chips[at] = chip;
}

void scene_close(gbx_chip *chip) {
    for (size_t i = 0; i < MOST_CHIPS; ++i)
        if (open_chips[i] == chip)
            open_chips[i] = NULL;
    gbx_chip_close(chip);
}

int scene_close_all(void **state) {
    (void)state;
    for (size_t i = 0; i < MOST_CHIPS; ++i)
        if (open_chips[i])
            scene_close(open_chips[i]);
    return 0;
}

gbx_chip *scene_chip(const dump_scene *scene, const chip_variant *variant, uint32_t threads) {
    gbx_chip_config config = {.platform = variant->platform,
                              .device = variant->device,
                              .blocks = SCENE_BLOCKS,
                              .aicpu_threads = threads};
    gbx_chip *chip;
    assert_ok(gbx_chip_open(&config, &chip));
    remember_chip(chip);
    for (uint32_t id = 0; id < GBX_MAX_KERNELS; ++id)
        if (scene->kernels.functions[id])
            assert_ok(gbx_kernel_register(chip, &scene->kernels.facts[id]));
    return chip;
}

/* --- graphs --- */

void scene_clear(dump_scene *scene) {
    memset(scene->graph, 0, sizeof *scene->graph);
    scene->used = 0;
}

gbx_tensor scene_tensor(dump_scene *scene, gbx_dtype dtype, uint32_t ndims, const int64_t *shape) {
    gbx_tensor tensor;
    assert_ok(gbx_tensor_contiguous(scene->used, dtype, ndims, shape, &tensor));
    scene->used += (tensor.buffer_bytes + PLACE_BYTES) / PLACE_BYTES * PLACE_BYTES;
    assert_true(scene->used <= scene->memory_bytes);
    return tensor;
}

gbx_tensor scene_matrix(dump_scene *scene, gbx_dtype dtype, int64_t rows, int64_t columns) {
    const int64_t shape[] = {rows, columns};
    return scene_tensor(scene, dtype, 2, shape);
}

gbx_tensor scene_element(dump_scene *scene, gbx_dtype dtype) {
    gbx_tensor row = scene_matrix(scene, dtype, 3, 5);
    row = gbx_view_select(&row, 0, 2);
    return gbx_view_select(&row, 0, 3);
}

gbx_tensor scene_flipped(gbx_tensor view, uint32_t dim) {
    view.start_offset += (view.shape[dim] - 1) * view.strides[dim];
    view.strides[dim] = -view.strides[dim];
    return view;
}

step_control *scene_control(dump_scene *scene, const plan_task *task) {
    return (step_control *)(void *)(scene->initial + task->tensors[0].view.data);
}

plan_task *scene_add_plain(dump_scene *scene, gbx_task_kernels kernels) {
    uint32_t number = scene->graph->task_count++;
    assert_in_range(number, 0, PLAN_MAX_TASKS - 1);
    plan_task *task = &scene->graph->tasks[number];
    memset(task, 0, sizeof *task);
    task->kernels = kernels;
    return task;
}

plan_task *scene_add_free(dump_scene *scene, gbx_task_kernels kernels, step_mode mode) {
    const int64_t words = STEP_CONTROL_WORDS;
    uint32_t number = scene->graph->task_count;
    plan_task *task = scene_add_plain(scene, kernels);
    task->has_control = task->tensor_count = 1;
    task->tensors[0].view = scene_tensor(scene, GBX_UINT64, 1, &words);
    step_control control = {.mode = mode, .tensor_count = 1, .seed = 1000 + number};
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s)
        control.subtasks |= (uint64_t)(kernels.func_ids[s] != GBX_NO_KERNEL) << s;
    *scene_control(scene, task) = control;
    return task;
}

plan_task *scene_add(dump_scene *scene, gbx_task_kernels kernels, step_mode mode) {
    plan_task *task = scene_add_free(scene, kernels, mode);
    if (scene->graph->task_count > 1)
        task->after[task->after_count++] = scene->graph->task_count - 2;
    return task;
}

void scene_arg(dump_scene *scene, plan_task *task, gbx_role role, gbx_tensor view) {
    uint32_t index = task->tensor_count++;
    assert_in_range(index, 0, GBX_MAX_TENSOR_ARGS - 1);
    task->tensors[index].role = role;
    task->tensors[index].view = view;
    if (!task->has_control)
        return;
    step_control *control = scene_control(scene, task);
    control->tensor_count = task->tensor_count;
    control->written |= (uint64_t)(role != GBX_ROLE_INPUT) << index;
    control->inouts |= (uint64_t)(role == GBX_ROLE_INOUT) << index;
}

void scene_scalar(plan_task *task, gbx_dtype dtype, uint64_t bits) {
    assert_in_range(task->scalar_count, 0, GBX_MAX_SCALAR_ARGS - 1);
    task->scalars[task->scalar_count++] = (plan_scalar){.dtype = dtype, .bits = bits};
}

static void add_dtype(dump_scene *scene, gbx_dtype dtype) {
    const int64_t shape[] = {2, 3, 7};
    gbx_tensor odd = scene_matrix(scene, dtype, 5, 3), cube = scene_tensor(scene, dtype, 3, shape);
    plan_task *task = scene_add(scene, gbx_aiv(STEP), STEP_WRITE);
    scene_arg(scene, task, GBX_ROLE_INPUT, gbx_view_transpose(&odd, 0, 1));
    scene_arg(scene, task, GBX_ROLE_INPUT, scene_element(scene, dtype));
    scene_arg(scene, task, GBX_ROLE_INPUT, scene_flipped(odd, 1));
    scene_arg(scene, task, GBX_ROLE_OUTPUT, scene_matrix(scene, dtype, 4, 5));
    scene_arg(scene, task, GBX_ROLE_INOUT, gbx_view_slice(&cube, 2, 1, 5));
    scene_arg(scene, task, GBX_ROLE_INOUT, scene_element(scene, dtype));
    scene_arg(scene, task, GBX_ROLE_OUTPUT, scene_matrix(scene, dtype, 33, 63));
}

void scene_add_all_dtypes(dump_scene *scene) {
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype)
        add_dtype(scene, (gbx_dtype)dtype);
}

/* --- runs --- */

void scene_run_tensors(const dump_scene *scene, gbx_run_tensor tensors[2]) {
    const int64_t plan_bytes = sizeof *scene->graph, memory_bytes = (int64_t)scene->memory_bytes;
    tensors[PLAN_TENSOR] = (gbx_run_tensor){.name = "plan", .role = GBX_ROLE_INPUT};
    tensors[PLAN_MEMORY] = (gbx_run_tensor){.name = "memory", .role = GBX_ROLE_INOUT};
    assert_ok(gbx_tensor_contiguous((uintptr_t)scene->graph, GBX_UINT8, 1, &plan_bytes,
                                    &tensors[PLAN_TENSOR].tensor));
    assert_ok(gbx_tensor_contiguous((uintptr_t)scene->memory, GBX_UINT8, 1, &memory_bytes,
                                    &tensors[PLAN_MEMORY].tensor));
}

gbx_status scene_run(dump_scene *scene, gbx_chip *chip, int runtime, gbx_call_config config,
                     char out_directory[DUMP_PATH_BYTES], gbx_call_result *out_result,
                     char **out_log) {
    const uint64_t scalar = (uint64_t)runtime;
    gbx_run_tensor tensors[2];
    gbx_run run = {.runtime = scene_runtimes[runtime],
                   .shared_object = compiled_object("dump_orchestration.c"),
                   .tensors = tensors,
                   .tensor_count = 2,
                   .scalars = &scalar,
                   .scalar_count = 1};
    memcpy(scene->memory, scene->initial, scene->memory_bytes);
    memset(out_result, 0, sizeof *out_result);
    scene_run_tensors(scene, tensors);
    dump_directory_make(out_directory);
    config.dump.directory = out_directory;
    dump_log log = dump_log_begin();
    gbx_status status = gbx_chip_run(chip, &run, &config, out_result);
    *out_log = dump_log_end(&log);
    return status;
}

void scene_compare(dump_scene *scene, int runtime, const dump_files *files,
                   const dump_rules *rules) {
    const uint64_t scalar = (uint64_t)runtime;
    gbx_run_tensor tensors[2];
    int *returns = must(dlsym(scene->libraries[STEP_LIBRARY], "dump_step_returns"));
    gbx_orchestrate_function function = (gbx_orchestrate_function)must(
        dlsym(scene->libraries[ORCHESTRATION_LIBRARY], "orchestrate"));
    memcpy(scene->memory, scene->initial, scene->memory_bytes);
    scene_run_tensors(scene, tensors);
    const gbx_tensor plain[] = {tensors[0].tensor, tensors[1].tensor};
    gbx_run_args run = {plain, &scalar, 2, 1};
    sequential_model *model = sequential_create(scene_runtimes[runtime], scene->kernels.functions,
                                                GBX_MAX_KERNELS, SCENE_BLOCKS);
    dump_expectation *expected = dump_expect_begin(files, rules);
    sequential_observer observer = dump_expect_observer(expected);
    sequential_observe(model, &observer);
    *returns = 1;
    if (sequential_run(model, function, &run))
        fail_msg("%s", sequential_error(model));
    *returns = 0;
    dump_expect_end(expected);
    sequential_destroy(model);
}

void scene_check(dump_scene *scene, gbx_chip *chip, int runtime, const gbx_call_config *config,
                 const dump_rules *rules, dump_files *out_files) {
    char directory[DUMP_PATH_BYTES];
    gbx_call_result result;
    char *log;
    gbx_status status = scene_run(scene, chip, runtime, *config, directory, &result, &log);
    assert_ok(status);
    assert_string_equal(log, "");
    free(log);
    dump_files_open(directory, out_files);
    assert_int_equal(result.tasks, scene->graph->task_count);
    assert_int_equal(result.dump.records, dump_number(out_files->tensors, "total_tensors"));
    assert_int_equal(result.dump.dropped, 0);
    assert_string_equal(dump_text(out_files->tensors, "status"), "ok");
    assert_true(dump_bool(out_files->tensors, "complete"));
    uint8_t *left = must(malloc(scene->memory_bytes));
    memcpy(left, scene->memory, scene->memory_bytes);
    scene_compare(scene, runtime, out_files, rules);
    assert_memory_equal(left, scene->memory, scene->memory_bytes);
    free(left);
}

void scene_drop(dump_files *files) {
    char directory[DUMP_PATH_BYTES];
    snprintf(directory, sizeof directory, "%s", files->directory);
    dump_files_close(files);
    dump_directory_remove(directory);
}

gbx_call_config scene_full_config(void) {
    return (gbx_call_config){.timeout_ms = LONGEST_MS,
                             .enable_dump_tensor = GBX_DUMP_FULL,
                             .dump.stall_timeout_ms = LONGEST_MS};
}

dump_rules scene_full_rules(const dump_scene *scene) {
    return (dump_rules){.kernels = &scene->kernels, .level = GBX_DUMP_FULL};
}
