/*
 * What decides how much a dump holds: levels, marks, filters, statistics and the longest payload;
 * and tensors of all sizes through the smallest arenas. Each record is compared with the sequential
 * model.
 */
#include "dump_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LITTLE = 1 << 17 };

/* --- levels, marks, filters --- */

static void add_marked(dump_scene *scene) {
    for (int i = 0; i < 6; ++i) {
        gbx_task_kernels kernels[] = {gbx_aiv(STEP), gbx_mix(STEP_AIC, STEP, GBX_NO_KERNEL),
                                      gbx_aiv(WIDE)};
        plan_task *task = scene_add(scene, kernels[i % 3], STEP_WRITE);
        scene_arg(scene, task, GBX_ROLE_INOUT, scene_matrix(scene, GBX_FLOAT16, 5, 9));
        scene_arg(scene, task, GBX_ROLE_INPUT, scene_matrix(scene, GBX_INT64, 3, 3));
        scene_arg(scene, task, GBX_ROLE_OUTPUT, scene_matrix(scene, GBX_FLOAT32, 7, 3));
        scene_scalar(task, GBX_FLOAT32, gbx_word_f32(0.1f * (float)i));
        scene_scalar(task, GBX_DTYPE_NONE, (uint64_t)i);
        task->marks_all = i == 4;
        task->tensors[1].is_marked = i == 1 || i == 2;
        task->tensors[2].is_marked = i == 2;
        task->tensors[3].is_marked = i == 2 || i == 3;
        task->scalars[1].is_marked = i == 3;
    }
}

static const gbx_dump_level levels[] = {GBX_DUMP_FULL, GBX_DUMP_PARTIAL, GBX_DUMP_HYBRID,
                                        GBX_DUMP_STATS};
static const char *const level_names[] = {"full", "partial", "hybrid", "stats"};
enum { LEVELS = 4 };

static void check_level(dump_scene *scene, gbx_chip *chip, int runtime, int level,
                        gbx_call_config config, dump_rules rules) {
    dump_files files;
    config.enable_dump_tensor = rules.level = levels[level];
    scene_check(scene, chip, runtime, &config, &rules, &files);
    assert_string_equal(dump_text(files.tensors, "dump_level"), level_names[level]);
    if (levels[level] == GBX_DUMP_STATS) {
        assert_int_equal(dump_number(files.tensors, "payload_bytes"), 0);
        dump_assert_python_reads(&files);
    }
    scene_drop(&files);
}

static void check_levels(dump_scene *scene, gbx_chip *chip, gbx_call_config config,
                         dump_rules rules) {
    for (int runtime = 0; runtime < SCENE_RUNTIMES; ++runtime)
        for (int level = 0; level < LEVELS; ++level)
            check_level(scene, chip, runtime, level, config, rules);
}

static void test_levels_by_marks(void **state) {
    dump_scene *scene = scene_create(LITTLE);
    gbx_chip *chip = scene_chip(scene, *state, 0);
    add_marked(scene);
    check_levels(scene, chip, scene_full_config(), scene_full_rules(scene));
    scene_close(chip);
    scene_destroy(scene);
}

/* Statistics at every level, for every dtype, of random bits and of empty tensors. */
static void test_statistics(void **state) {
    const int64_t none = 0;
    dump_scene *scene = scene_create(4 * LITTLE);
    gbx_chip *chip = scene_chip(scene, *state, 0);
    gbx_call_config config = scene_full_config();
    dump_rules rules = scene_full_rules(scene);
    scene_add_all_dtypes(scene);
    plan_task *task = scene_add(scene, gbx_aiv(STEP), STEP_WRITE);
    scene_arg(scene, task, GBX_ROLE_INPUT, scene_tensor(scene, GBX_FLOAT32, 1, &none));
    scene_arg(scene, task, GBX_ROLE_INPUT, scene_tensor(scene, GBX_INT32, 1, &none));
    gbx_tensor zeros = scene_matrix(scene, GBX_FLOAT16, 20, 20);
    memset(scene->initial + zeros.data, 0, zeros.buffer_bytes);
    scene_arg(scene, task, GBX_ROLE_INPUT, zeros);
    gbx_tensor nans = scene_matrix(scene, GBX_FLOAT32, 20, 20);
    memset(scene->initial + nans.data, 0xff, nans.buffer_bytes);
    scene_arg(scene, task, GBX_ROLE_INPUT, nans);
    for (int runtime = 0; runtime < SCENE_RUNTIMES; ++runtime) {
        config.dump.has_stats = rules.has_stats = false;
        check_level(scene, chip, runtime, 3, config, rules);
    }
    config.dump.has_stats = rules.has_stats = true;
    check_level(scene, chip, PLAN_TENSORMAP, 0, config, rules);
    check_level(scene, chip, PLAN_TENSORMAP, 2, config, rules);
    scene_close(chip);
    scene_destroy(scene);
}

static bool runs(const sequential_task *task, uint32_t func_id) {
    for (int s = 0; s < GBX_SUBTASK_COUNT; ++s)
        if (task->kernels.func_ids[s] == func_id)
            return true;
    return false;
}

static uint32_t filter_dtype(const sequential_task *task, uint32_t arg) {
    const sequential_arg *one = &task->args[arg];
    if (one->is_tensor)
        return one->tensor.dtype;
    if (one->dtype)
        return one->dtype;
    /* WIDE declares its first scalar as float32, its second as float16. */
    if (!runs(task, WIDE))
        return GBX_DTYPE_NONE;
    return arg == task->arg_count - 2 ? GBX_FLOAT32 : GBX_FLOAT16;
}

static bool by_kernel_and_stage(const sequential_task *task, uint32_t arg, bool is_after) {
    (void)arg;
    return (runs(task, STEP) || runs(task, STEP_AIC)) && is_after;
}

static bool by_tasks_or_dtype(const sequential_task *task, uint32_t arg, bool is_after) {
    (void)is_after;
    bool by_task = task->number >= 1 && task->number <= 3 && !task->args[arg].is_tensor;
    bool by_dtype =
        task->args[arg].role == GBX_ROLE_INPUT &&
        (filter_dtype(task, arg) == GBX_INT64 || filter_dtype(task, arg) == GBX_FLOAT16);
    return by_task || by_dtype;
}

static bool by_undeclared(const sequential_task *task, uint32_t arg, bool is_after) {
    (void)is_after;
    return filter_dtype(task, arg) == GBX_DTYPE_NONE;
}

static bool by_func_and_arg(const sequential_task *task, uint32_t arg, bool is_after) {
    (void)is_after;
    return runs(task, WIDE) && (arg == 1 || arg == 3);
}

static bool by_inout(const sequential_task *task, uint32_t arg, bool is_after) {
    return task->args[arg].role == GBX_ROLE_INOUT && !is_after && task->number == 5;
}

typedef struct filter_case {
    const char *filters[3];
    size_t count;
    bool (*matches)(const sequential_task *task, uint32_t arg_index, bool is_after);
} filter_case;

static const filter_case filter_cases[] = {
    {{"kernel=step*,stage=after_completion"}, 1, by_kernel_and_stage},
    {{"task=1..3,kind=scalar", "role=input,dtype=int64", "role=input,dtype=float16"},
     3,
     by_tasks_or_dtype},
    {{"dtype=unknown"}, 1, by_undeclared},
    {{"func=11,arg=1", "kernel=w?de,arg=3"}, 2, by_func_and_arg},
    {{"role=inout,stage=before_dispatch,task=5"}, 1, by_inout},
};

static void test_levels_by_filters(void **state) {
    dump_scene *scene = scene_create(LITTLE);
    gbx_chip *chip = scene_chip(scene, *state, 0);
    add_marked(scene); /* filters replace marks */
    for (size_t i = 0; i < sizeof filter_cases / sizeof filter_cases[0]; ++i) {
        gbx_call_config config = scene_full_config();
        dump_rules rules = scene_full_rules(scene);
        config.dump.filters = filter_cases[i].filters;
        config.dump.filter_count = filter_cases[i].count;
        rules.matches = filter_cases[i].matches;
        for (int level = 0; level < LEVELS; ++level)
            check_level(scene, chip, (int)(i + (size_t)level) % SCENE_RUNTIMES, level, config,
                        rules);
    }
    scene_close(chip);
    scene_destroy(scene);
}

static bool by_nothing(const sequential_task *task, uint32_t arg, bool is_after) {
    (void)task, (void)arg, (void)is_after;
    return false;
}

/* A filter without a match is counted; the matches of other filters are recorded. */
static void test_filter_that_matches_nothing(void **state) {
    static const char *const filters[] = {"task=1000", "arg=50"};
    dump_scene *scene = scene_create(LITTLE);
    gbx_chip *chip = scene_chip(scene, *state, 0);
    gbx_call_config config = scene_full_config();
    dump_rules rules = scene_full_rules(scene);
    char directory[DUMP_PATH_BYTES];
    gbx_call_result result;
    char *log;
    dump_files files;
    add_marked(scene);
    config.dump.filters = filters;
    config.dump.filter_count = 2;
    rules.matches = by_nothing;
    assert_ok(scene_run(scene, chip, PLAN_TENSORMAP, config, directory, &result, &log));
    assert_int_equal(result.dump.unmatched_filters, 2);
    assert_int_equal(result.dump.records, 0);
    free(log);
    dump_files_open(directory, &files);
    scene_compare(scene, PLAN_TENSORMAP, &files, &rules);
    scene_drop(&files);
    scene_close(chip);
    scene_destroy(scene);
}

/* --- sizes --- */

static void test_longest_payload(void **state) {
    dump_scene *scene = scene_create(LITTLE);
    gbx_chip *chip = scene_chip(scene, *state, 0);
    gbx_call_config config = scene_full_config();
    dump_rules rules = scene_full_rules(scene);
    gbx_tensor large = scene_matrix(scene, GBX_FLOAT32, 64, 48);
    plan_task *task = scene_add(scene, gbx_aiv(STEP), STEP_WRITE);
    scene_arg(scene, task, GBX_ROLE_INOUT, large); /* 12288 bytes */
    scene_arg(scene, task, GBX_ROLE_OUTPUT,
              scene_matrix(scene, GBX_UINT8, 64, 64)); /* exactly 4096 */
    scene_arg(scene, task, GBX_ROLE_OUTPUT, scene_matrix(scene, GBX_UINT8, 1, 4097));
    task = scene_add(scene, gbx_aiv(STEP), STEP_WRITE);
    scene_arg(scene, task, GBX_ROLE_INPUT, gbx_view_transpose(&large, 0, 1));
    config.dump.max_tensor_bytes = rules.max_tensor_bytes = 4096;
    for (int runtime = 0; runtime < SCENE_RUNTIMES; ++runtime) {
        dump_files files;
        scene_check(scene, chip, runtime, &config, &rules, &files);
        assert_int_equal(dump_number(files.tensors, "truncated_tensors"), 4);
        scene_drop(&files);
    }
    scene_close(chip);
    scene_destroy(scene);
}

/* 64 times the arena (8 times with thread sanitizer): one contiguous, one reversed, both copied in
 * pieces. */
static void test_tensors_larger_than_the_arena(void **state) {
    dump_scene *scene = scene_create((129u << 20));
    gbx_chip *chip = scene_chip(scene, *state, 0);
    gbx_call_config config = scene_full_config();
    dump_rules rules = scene_full_rules(scene);
    dump_files files;
    int64_t rows = is_thread_sanitized() ? 512 : 4096;
    gbx_tensor from = scene_matrix(scene, GBX_UINT64, rows, 2048),
               to = scene_matrix(scene, GBX_UINT64, 2048, rows);
    plan_task *task = scene_add(scene, gbx_aiv(STEP), STEP_COPY);
    scene_arg(scene, task, GBX_ROLE_INPUT, gbx_view_transpose(&from, 0, 1));
    scene_arg(scene, task, GBX_ROLE_OUTPUT, to);
    config.dump.arena_bytes = 1 << 20;
    config.dump.buffer_count = 2;
    scene_check(scene, chip, PLAN_TENSORMAP, &config, &rules, &files);
    scene_drop(&files);
    scene_close(chip);
    scene_destroy(scene);
}

/* Sizes just below and above those of the smallest arena and its pieces. */
static void test_least_arena(void **state) {
    dump_scene *scene = scene_create(4u << 20);
    gbx_chip *chip = scene_chip(scene, *state, 4);
    gbx_call_config config = scene_full_config();
    dump_rules rules = scene_full_rules(scene);
    static const int64_t sizes[] = {1,     63,    64,    65,    4095,  4096,   4097,  16384,
                                    32767, 32768, 65535, 65536, 65537, 131072, 200001};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        gbx_tensor bytes = scene_tensor(scene, GBX_UINT8, 1, &sizes[i]);
        plan_task *task = scene_add_free(scene, gbx_aiv(STEP), STEP_WRITE);
        scene_arg(scene, task, GBX_ROLE_INOUT, bytes);
        task = scene_add_free(scene, gbx_aiv(STEP), STEP_WRITE);
        scene_arg(scene, task, GBX_ROLE_INPUT,
                  scene_flipped(scene_tensor(scene, GBX_UINT8, 1, &sizes[i]), 0));
    }
    config.dump.arena_bytes = GBX_MIN_DUMP_ARENA_BYTES;
    config.dump.buffer_count = GBX_MIN_DUMP_BUFFERS;
    for (int runtime = 0; runtime < SCENE_RUNTIMES; ++runtime) {
        dump_files files;
        scene_check(scene, chip, runtime, &config, &rules, &files);
        scene_drop(&files);
    }
    scene_close(chip);
    scene_destroy(scene);
}

int main(void) {
    const struct CMUnitTest everywhere[] = {
        scene_test(test_levels_by_marks),
        scene_test(test_least_arena),
    };
    const struct CMUnitTest in_processes[] = {
        scene_test(test_statistics),
        scene_test(test_levels_by_filters),
        scene_test(test_filter_that_matches_nothing),
        scene_test(test_longest_payload),
        scene_test(test_tensors_larger_than_the_arena),
    };
    return RUN_OVER_ALL_VARIANTS(everywhere) + RUN_OVER_PROCESS_VARIANTS(in_processes);
}
