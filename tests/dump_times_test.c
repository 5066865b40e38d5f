/*
 * Compares where and when each dispatch ran with what its kernel saved, and how long threads waited
 * for room with the totals of the run. The journal is read at the offsets that docs/format.md
 * gives.
 */
#include "dump_scene.h"
#include "journal_parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MEMORY = 1 << 19,
    TIMES = 12, /* save_times.c, on AIV */
    TIMES_AIC = 13,
    ROW_WORDS = 4,
    FREE_TASKS = 12,
    TASK_RECORD = 3,
    DONE_RECORD = 5,
    EXECUTION_RECORD = 12,
    SAMPLE_RECORD = 13,
    CLOCKS_APART_NS = 100000, /* between two clocks, on a busy machine */
};
#define NO_END UINT64_MAX

typedef struct execution {
    uint64_t task;
    uint64_t start_ns;
    uint64_t end_ns;
    uint32_t core_id;
    uint32_t block_idx;
    uint32_t subtask;
    uint32_t func_id;
} execution;

static execution execution_of(const unsigned char *record) {
    assert_int_equal(journal_record_bytes(record), 56);
    return (execution){.task = journal_u64(record + 16),
                       .start_ns = journal_u64(record + 24),
                       .end_ns = journal_u64(record + 32),
                       .core_id = journal_u32(record + 40),
                       .block_idx = journal_u32(record + 44),
                       .subtask = journal_u32(record + 48),
                       .func_id = journal_u32(record + 52)};
}

static void parse(const char *directory, parsed_journal *out_journal) {
    char path[DUMP_PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/tensor_dump/tensor_dump.rec", directory);
    journal_parse(path, out_journal);
}

/* The time of a task's only record of a type. */
static uint64_t time_of(const parsed_journal *journal, unsigned type, uint64_t task) {
    for (size_t i = 0; i < journal->record_count; ++i)
        if (journal_record_type(journal->records[i]) == type &&
            journal_u64(journal->records[i] + 16) == task)
            return journal_u64(journal->records[i] + 24);
    fail();
    return 0;
}

/* --- every dispatch --- */

static dump_scene *create_scene(void) {
    dump_scene *scene = scene_create(MEMORY);
    for (uint32_t id = TIMES; id <= TIMES_AIC; ++id) {
        scene->kernels.facts[id] = (gbx_kernel){.func_id = id,
                                                .name = id == TIMES ? "times" : "times_aic",
                                                .core = id == TIMES ? GBX_CORE_AIV : GBX_CORE_AIC,
                                                .shared_object = compiled_object("save_times.c")};
        scene->kernels.functions[id] = scene->kernels.functions[SAVE];
    }
    return scene;
}

static void add_timed(dump_scene *scene, gbx_task_kernels kernels, bool is_free) {
    plan_task *task = scene_add_plain(scene, kernels);
    if (is_free)
        task->after_count = 0;
    scene_arg(
        scene, task, GBX_ROLE_OUTPUT,
        scene_matrix(scene, GBX_UINT64, (int64_t)kernels.block_num * GBX_SUBTASK_COUNT, ROW_WORDS));
}

static void make_graph(dump_scene *scene) {
    scene_clear(scene);
    add_timed(scene, gbx_aiv(TIMES), false);
    add_timed(scene, gbx_aic(TIMES_AIC), false);
    add_timed(scene, gbx_spmd(gbx_aiv(TIMES), 3), false);
    add_timed(scene, gbx_spmd(gbx_mix(TIMES_AIC, TIMES, TIMES), 7), false);
    add_timed(scene, gbx_spmd(gbx_mix(GBX_NO_KERNEL, GBX_NO_KERNEL, TIMES), 2), false);
    add_timed(scene, gbx_mix(TIMES_AIC, TIMES, GBX_NO_KERNEL), false);
    for (int i = 0; i < FREE_TASKS; ++i)
        add_timed(scene, i % 2 ? gbx_aic(TIMES_AIC) : gbx_aiv(TIMES), true);
}

static const uint64_t *row_of(const dump_scene *scene, const execution *e) {
    const gbx_tensor *rows = &scene->graph->tasks[e->task].tensors[0].view;
    uint64_t row = (uint64_t)e->block_idx * GBX_SUBTASK_COUNT + e->subtask;
    assert_true((int64_t)row < rows->shape[0]);
    return (const uint64_t *)(const void *)(scene->memory + rows->data) + row * ROW_WORDS;
}

/* Times in the journal count from the start of the run, those of kernels from another origin. Each
 * dispatch bounds the difference between the two. */
typedef struct apart {
    int64_t least;
    int64_t most;
} apart;

static void check_execution(const dump_scene *scene, const parsed_journal *journal,
                            const execution *e, apart *clocks) {
    assert_in_range(e->task, 0, scene->graph->task_count - 1);
    assert_in_range(e->subtask, 0, GBX_SUBTASK_COUNT - 1);
    const plan_task *task = &scene->graph->tasks[e->task];
    assert_in_range(e->block_idx, 0, task->kernels.block_num - 1);
    assert_int_equal(e->func_id, task->kernels.func_ids[e->subtask]);
    const uint64_t *row = row_of(scene, e);
    assert_int_equal(e->core_id, row[2]);
    int64_t least = (int64_t)(row[1] - e->end_ns), most = (int64_t)(row[0] - e->start_ns);
    clocks->least = least > clocks->least ? least : clocks->least;
    clocks->most = most < clocks->most ? most : clocks->most;
    assert_true(e->start_ns + CLOCKS_APART_NS >= time_of(journal, TASK_RECORD, e->task));
    assert_true(time_of(journal, DONE_RECORD, e->task) + CLOCKS_APART_NS >= e->end_ns);
}

static void check_executions(const dump_scene *scene, const char *directory) {
    static uint8_t seen[PLAN_MAX_TASKS][16][GBX_SUBTASK_COUNT];
    apart clocks = {INT64_MIN, INT64_MAX};
    uint64_t count = 0, expected = 0;
    parsed_journal journal;
    parse(directory, &journal);
    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < journal.record_count; ++i) {
        if (journal_record_type(journal.records[i]) != EXECUTION_RECORD)
            continue;
        execution e = execution_of(journal.records[i]);
        check_execution(scene, &journal, &e, &clocks);
        assert_int_equal(seen[e.task][e.block_idx][e.subtask]++, 0);
        ++count;
    }
    for (uint32_t i = 0; i < scene->graph->task_count; ++i)
        for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s)
            if (scene->graph->tasks[i].kernels.func_ids[s] != GBX_NO_KERNEL)
                expected += scene->graph->tasks[i].kernels.block_num;
    assert_int_equal(count, expected);
    assert_true(clocks.least <= clocks.most + CLOCKS_APART_NS);
    journal_parse_free(&journal);
}

typedef struct way {
    gbx_dump_level level;
    bool has_args;
    const char *filter;
} way;

static void test_every_dispatch_has_its_place_and_times(void **state) {
    static const way ways[] = {{.level = GBX_DUMP_FULL},
                               {.level = GBX_DUMP_FULL, .filter = "task=2"},
                               {.level = GBX_DUMP_STATS, .has_args = true},
                               {.level = GBX_DUMP_HYBRID},
                               {.level = GBX_DUMP_PARTIAL, .filter = "kernel=times_aic"},
                               {.level = GBX_DUMP_OFF, .has_args = true}};
    dump_scene *scene = create_scene();
    gbx_chip *chip = scene_chip(scene, *state, 0);
    make_graph(scene);
    for (int runtime = 0; runtime < SCENE_RUNTIMES; ++runtime)
        for (size_t i = 0; i < sizeof ways / sizeof ways[0]; ++i) {
            gbx_call_config config = scene_full_config();
            char directory[DUMP_PATH_BYTES];
            gbx_call_result result;
            char *log;
            config.enable_dump_tensor = ways[i].level;
            config.enable_dump_args = ways[i].has_args;
            config.dump.filters = &ways[i].filter;
            config.dump.filter_count = ways[i].filter != NULL;
            assert_ok(scene_run(scene, chip, runtime, config, directory, &result, &log));
            free(log);
            check_executions(scene, directory);
            dump_directory_remove(directory);
        }
    scene_close(chip);
    scene_destroy(scene);
}

/* --- after a fault --- */

enum { BEFORE = 5, FAILING = 5 };

static void make_failing(dump_scene *scene, step_mode mode) {
    scene_clear(scene);
    gbx_tensor chain = scene_matrix(scene, GBX_FLOAT32, 8, 8);
    for (int i = 0; i < BEFORE + 3; ++i) {
        plan_task *task = scene_add(scene, gbx_aiv(STEP), i == FAILING ? mode : STEP_WRITE);
        scene_arg(scene, task, GBX_ROLE_INOUT, chain);
        scene_control(scene, task)->stop_tensor = 1;
    }
}

/* Earlier tasks have ended, this one has begun, later ones have not. */
static bool check_failed(const char *directory) {
    uint32_t seen = 0;
    bool has_failing = false;
    parsed_journal journal;
    parse(directory, &journal);
    for (size_t i = 0; i < journal.record_count; ++i) {
        if (journal_record_type(journal.records[i]) != EXECUTION_RECORD)
            continue;
        execution e = execution_of(journal.records[i]);
        assert_in_range(e.task, 0, FAILING);
        assert_int_equal(seen & 1u << e.task, 0);
        seen |= 1u << e.task;
        assert_int_equal(e.end_ns == NO_END, e.task == FAILING);
        assert_true(e.start_ns < e.end_ns && e.start_ns > 0);
        has_failing |= e.task == FAILING;
    }
    assert_int_equal(seen & 0x1f, 0x1f);
    journal_parse_free(&journal);
    return has_failing;
}

static void check_fault(const chip_variant *variant, step_mode mode, gbx_code code,
                        bool is_reported) {
    dump_scene *scene = scene_create(MEMORY);
    make_failing(scene, mode);
    for (int runtime = 0; runtime < SCENE_RUNTIMES; ++runtime) {
        gbx_call_config config = scene_full_config();
        char directory[DUMP_PATH_BYTES];
        gbx_call_result result;
        char *log;
        if (mode == STEP_HANG)
            config.timeout_ms = 3000;
        gbx_chip *chip = scene_chip(scene, variant, 0);
        assert_fails(scene_run(scene, chip, runtime, config, directory, &result, &log), code, "");
        free(log);
        assert_int_equal(check_failed(directory), is_reported);
        dump_directory_remove(directory);
        scene_close(chip);
    }
    scene_destroy(scene);
}

static void test_kernel_that_crashes_has_no_end(void **state) {
    const chip_variant *variant = *state;
    if (variant->device == GBX_DEVICE_PROCESS)
        check_fault(variant, STEP_CRASH, GBX_DEVICE_FAULT, true);
}

static void test_kernel_that_hangs_has_no_end(void **state) {
    const chip_variant *variant = *state;
    if (variant->device == GBX_DEVICE_PROCESS)
        check_fault(variant, STEP_HANG, GBX_DEVICE_HUNG, true);
}

/* The chip ended before it could report that the task began. */
static void test_kernel_that_ends_the_chip(void **state) {
    const chip_variant *variant = *state;
    if (variant->device == GBX_DEVICE_PROCESS)
        check_fault(variant, STEP_EXIT, GBX_DEVICE_LOST, false);
}

/* --- samples --- */

enum { SAMPLED_TASKS = 24, SAMPLED_THREADS = 2, ARENA_BYTES = 64 << 10 };

static void check_samples(const char *directory, const gbx_dump_totals *totals, bool has_waits) {
    uint64_t waited_ns = 0, waits = 0;
    uint32_t ends[SAMPLED_THREADS] = {0};
    parsed_journal journal;
    parse(directory, &journal);
    for (size_t i = 0; i < journal.record_count; ++i) {
        const unsigned char *record = journal.records[i];
        if (journal_record_type(record) != SAMPLE_RECORD)
            continue;
        uint32_t thread = journal_u32(record + 12) & 0xffff;
        assert_int_equal(journal_record_bytes(record), 64);
        assert_in_range(thread, 0, SAMPLED_THREADS - 1);
        assert_int_equal(journal_u64(record + 48), ARENA_BYTES);
        assert_in_range(journal_u64(record + 40), 0, ARENA_BYTES);
        uint32_t causes = journal_u32(record + 60);
        assert_int_equal(causes != 0, journal_u32(record + 56) != 0);
        assert_in_range(causes, 0, 7);
        if (!causes) {
            assert_int_equal(journal_u64(record + 32), 0);
            ++ends[thread];
            continue;
        }
        waited_ns += journal_u64(record + 32);
        ++waits;
    }
    for (uint32_t t = 0; t < SAMPLED_THREADS; ++t)
        assert_in_range(ends[t], 0, 1);
    assert_int_equal(ends[0] + ends[1] > 0, 1);
    assert_int_equal(waited_ns, totals->stall_ns);
    assert_true(!has_waits || waits > 0);
    journal_parse_free(&journal);
}

static void test_waits_are_samples(void **state) {
    const chip_variant *variant = *state;
    dump_scene *scene = scene_create(SAMPLED_TASKS * 2 * ARENA_BYTES);
    gbx_chip *chip = scene_chip(scene, variant, SAMPLED_THREADS);
    scene_clear(scene);
    for (int i = 0; i < SAMPLED_TASKS; ++i) {
        plan_task *task = scene_add_free(scene, gbx_aiv(STEP), STEP_WRITE);
        scene_arg(scene, task, GBX_ROLE_OUTPUT, scene_matrix(scene, GBX_UINT8, 1, ARENA_BYTES / 2));
    }
    for (int runtime = 0; runtime < SCENE_RUNTIMES; ++runtime) {
        gbx_call_config config = scene_full_config();
        char directory[DUMP_PATH_BYTES];
        gbx_call_result result;
        char *log;
        config.dump.arena_bytes = ARENA_BYTES;
        assert_ok(scene_run(scene, chip, runtime, config, directory, &result, &log));
        free(log);
        /* A host that copies only on request makes the device wait for every arena. */
        check_samples(directory, &result.dump, strcmp(variant->platform, "a5sim") == 0);
        dump_directory_remove(directory);
    }
    scene_close(chip);
    scene_destroy(scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scene_test(test_every_dispatch_has_its_place_and_times),
        scene_test(test_kernel_that_crashes_has_no_end),
        scene_test(test_kernel_that_hangs_has_no_end),
        scene_test(test_kernel_that_ends_the_chip),
        scene_test(test_waits_are_samples),
    };
    return RUN_OVER_ALL_VARIANTS(tests);
}
