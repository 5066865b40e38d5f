/*
 * Wrong graphs, on every platform, in a process and in a thread, on every runtime: each is refused
 * with a message that names the task, whatever is in flight, and the chip stays usable.
 */
#include "graph_support.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* The modes that a case applies to. */
enum {
    H = 1 << HOST_MODE,
    A = 1 << CONCURRENT_MODE | 1 << SEQUENTIAL_MODE,
    T = 1 << TENSORMAP_MODE,
    ALL = H | A | T
};

/* In texts, @ stands for the number of tasks before the wrong one, @+n for n more. */
typedef struct wrong_graph {
    const char *entry;
    uint64_t variant;
    uint64_t count;
    int modes;
    const char *text;
    const char *more; /* a second part of the message; may be NULL */
} wrong_graph;

#define STEP_AT "task @ (kernel step.c)"

static const wrong_graph wrong_graphs[] = {
    {"bad_kernels", NOT_REGISTERED, 0, ALL, "task @: no kernel is registered as func 900", NULL},
    {"bad_kernels", FAR_FUNC, 0, ALL, "task @: no kernel is registered as func 70000", NULL},
    {"bad_kernels", WRONG_CORE, 0, ALL,
     STEP_AT ": the kernel is registered for AIV cores, but used on an AIC core", NULL},
    {"bad_kernels", NO_KERNEL, 0, ALL, "task @: none of its three subtasks names a kernel", NULL},
    {"bad_kernels", NO_BLOCKS, 0, ALL, STEP_AT ": block_num is 0, expected 1 to 65536", NULL},
    {"bad_kernels", MANY_BLOCKS, 0, ALL, STEP_AT ": block_num is 65537, expected 1 to 65536", NULL},
    {"bad_kernels", SYNC_BLOCKS, 0, ALL,
     STEP_AT ": its 5 blocks wait for each other, but the chip has only 4", "open it with as many"},
    {"bad_tensor", NULL_POINTER, 0, A | T, STEP_AT ": argument 1 is a null tensor", NULL},
    {"bad_tensor", NULL_DATA, 0, ALL, STEP_AT ": argument 1 is a null tensor", NULL},
    {"bad_tensor", BAD_DTYPE, 0, ALL, STEP_AT ": argument 1: tensor: dtype is 99, expected 1 to 18",
     NULL},
    {"bad_tensor", NEGATIVE_SHAPE, 0, ALL,
     STEP_AT ": argument 1: tensor: shape[0] is -4, expected 0 or more", NULL},
    {"bad_tensor", BEFORE_MEMORY, 0, ALL,
     STEP_AT ": argument 1: its elements from 0x1000 to 0x1008 are not in the chip's global memory",
     " to 0x"},
    {"bad_tensor", BEYOND_MEMORY, 0, ALL, STEP_AT ": argument 1: its elements from 0x",
     "are not in the chip's global memory"},
    {"bad_tensor", BAD_ROLE, 0, ALL,
     STEP_AT ": argument 1: unknown role 3; expected input, output or inout", NULL},
    {"too_many_arguments", MANY_TENSORS, 0, A | T,
     STEP_AT ": it has 33 tensors and 2 scalars, at most 32 of each are possible", NULL},
    {"too_many_arguments", MANY_SCALARS, 0, A | T,
     STEP_AT ": it has 2 tensors and 33 scalars, at most 32 of each are possible", NULL},
    {"too_many_arguments", MANY_WORDS, 0, H,
     STEP_AT ": it has 65 words of arguments, at most 64 are possible", NULL},
    {"bad_tensor_info", INFO_BEYOND, 0, H,
     STEP_AT ": tensor info describes argument 4 twice, or beyond the 4 that the task has", NULL},
    {"bad_tensor_info", INFO_TWICE, 0, H,
     STEP_AT ": tensor info describes argument 0 twice, or beyond the 4 that the task has", NULL},
    {"bad_tensor_info", INFO_ROLE, 0, H, STEP_AT ": argument 1: unknown role 7", NULL},
    {"bad_tensor_info", INFO_COUNT, 0, H, STEP_AT ": it has 33 tensors", "at most 32"},
    {"bad_tensor_info", INFO_NULL_WORD, 0, H, STEP_AT ": argument 1 is a null tensor", NULL},
    {"bad_tensor_info", INFO_TASK, 0, H, "task 123456 does not exist; there are @+1 tasks", NULL},
    {"bad_mark", MARK_BEYOND, 0, A | T,
     STEP_AT ": argument 4 is marked for the dump, but the task has 4",
     "mark only arguments that were added"},
    {"bad_mark", MARK_TOO_SOON, 0, A | T,
     STEP_AT ": argument 3 is marked for the dump, but the task has 2", NULL},
    {"bad_mark", MARK_FAR, 0, A | T,
     STEP_AT ": argument 4294967295 is marked for the dump, but the task has 4", NULL},
    {"bad_mark", MARK_WORD, 0, H, STEP_AT ": argument 4 is marked for the dump, but the task has 4",
     NULL},
    {"bad_mark", MARK_LAST_WORD, 0, H,
     STEP_AT ": argument 63 is marked for the dump, but the task has 4", NULL},
    {"bad_mark", MARK_NOWHERE, 0, H, "task 4321 does not exist; there are @+1 tasks", NULL},
    {"own_error", RETURN_7, 0, ALL, "the orchestration returned error 7 after @ tasks", NULL},
    {"own_error", RETURN_MINUS_3, 0, ALL, "the orchestration returned error -3 after @ tasks",
     NULL},
    {"own_error", FAIL_WITH_TEXT, 0, ALL,
     "the orchestration failed after @ tasks: the input is odd", NULL},
    {"own_error", FIRST_ERROR_COUNTS, 0, ALL,
     "the orchestration failed after @ tasks: this came first", NULL},
    {"bad_index", INDEX_AT_SIZE, 0, ALL,
     "gbx_get_tensor_data before task @: index 128 is outside dimension 0 of size 128", NULL},
    {"bad_index", INDEX_NEGATIVE, 0, ALL,
     "gbx_get_tensor_data before task @: index -1 is outside dimension 0 of size 128", NULL},
    {"bad_index", INDEX_ON_CHIP, 0, ALL,
     "gbx_get_tensor_data before task @: index 128 is outside dimension 0 of size 128", NULL},
    {"bad_index", NULL_READ, 0, ALL, "before task @: the tensor of a call is a null tensor", NULL},
    {"bad_index", NULL_DEVICE_TENSOR, 0, H, "before task @: the tensor of a call is a null tensor",
     NULL},
    {"bad_edge", SELF_EDGE, 0, H | A, STEP_AT ": an edge makes it wait for itself", NULL},
    {"bad_edge", EDGE_FROM_NOWHERE, 0, H | A,
     "task 99999 does not exist; there are @+1 tasks, numbered from 0", NULL},
    {"bad_edge", EDGE_TO_NOWHERE, 0, H | A,
     "task 99998 does not exist; there are @+1 tasks, numbered from 0", NULL},
    {"bad_edge", EDGE_OF_NO_TASK, 0, H | A, "a call names GBX_NO_TASK", "there are @+1 tasks"},
    {"cycle", WHOLE_CYCLE, 2, H | A,
     STEP_AT " waits for itself, in a cycle of 2 tasks through task @+1", NULL},
    {"cycle", WHOLE_CYCLE, 999, H | A,
     STEP_AT " waits for itself, in a cycle of 999 tasks through task @+998",
     "remove one of its edges"},
    {"cycle", CYCLE_BETWEEN, 5, H | A,
     "task @+1 (kernel step.c) waits for itself, in a cycle of 2 tasks through task @+2", NULL},
    {"bad_publishing", TWICE, 0, A, STEP_AT ": it is published twice", NULL},
    {"bad_publishing", LATE_EDGE, 0, A, STEP_AT ": an edge to it was added after it was published",
     "add edges first"},
    {"bad_publishing", NEVER, 0, A, STEP_AT " was never published; call gbx_publish_task", NULL},
    {"bad_publishing", THREE_NEVER, 0, A,
     STEP_AT " was never published, nor were 2 more; call gbx_publish_task for each", NULL},
    {"bad_publishing", NEVER_FIRST, 0, A, STEP_AT " was never published; call gbx_publish_task",
     NULL},
    {"bad_publishing", PUBLISH_NOWHERE, 0, A, "task 77777 does not exist; there are @+1 tasks",
     NULL},
    {"bad_publishing", NEW_OUTPUT, 0, A,
     "task @+1 (kernel step.c): argument 1 has no memory, and only tensormap_and_ringbuffer ",
     "gbx_device_malloc"},
    {"bad_scope", END_WITHOUT_BEGIN, 0, T, "gbx_scope_end before task @: no scope is open", NULL},
    {"bad_scope", LEFT_OPEN, 0, T, "returned after @ tasks with 2 scopes open", "gbx_scope_end"},
    {"bad_scope", TOO_DEEP, 0, T, "gbx_scope_begin before task @: scopes nest at most 63 deep",
     NULL},
    {"bad_scope", AFTER_ITS_END, 0, T,
     "task @+1 (kernel step.c): argument 0 is an output of a scope that has ended",
     "gbx_scope_end"},
    {"bad_scope", AFTER_NESTED_ENDS, 0, T,
     "task @+3 (kernel step.c): argument 0 is an output of a scope that has ended",
     "gbx_scope_end"},
    {"bad_memory", HUGE_MALLOC, 0, A,
     "task @: 8589934592 bytes are needed, but the graph has only ", "more global memory (--gm)"},
    {"bad_memory", HUGE_OUTPUT, 0, T,
     STEP_AT ": argument 1: the task's new outputs up to this one take 8589934592 bytes, "
             "the heap ring has ",
     "--gm"},
};

/* The text with its numbers filled in. */
static const char *numbered(const char *text, uint64_t before, char *out, size_t bytes) {
    size_t at = 0;
    for (; text && *text && at + 24 < bytes; ++text) {
        uint64_t number = before;
        if (*text != '@') {
            out[at++] = *text;
            continue;
        }
        if (text[1] == '+') {
            char *end;
            number += strtoull(text + 2, &end, 10);
            text = end - 1;
        }
        at += (size_t)snprintf(out + at, bytes - at, "%llu", (unsigned long long)number);
    }
    out[at] = '\0';
    return out;
}

/* The run ended long before the hang timeout. */
static void assert_no_watchdog(const graph_run *run, int64_t start_ns) {
    assert_true(gbx_clock_ns() - start_ns < run->config.timeout_ms / 2 * GBX_NS_PER_MS);
}

static void check_wrong(gbx_chip *chip, const wrong_graph *wrong, int mode, uint64_t before) {
    char text[256];
    char more[256];
    graph_run run = graph_of(mode, wrong->entry, before, wrong->variant, wrong->count);
    int64_t start_ns = gbx_clock_ns();
    assert_fails(run_graph(chip, &run), GBX_BAD_GRAPH,
                 numbered(wrong->text, before, text, sizeof text),
                 numbered(wrong->more, before, more, sizeof more));
    assert_no_watchdog(&run, start_ns);
}

static void check_all_wrong(const chip_variant *variant, uint64_t before) {
    gbx_chip *chip = open_graph_chip(variant, 0);
    assert_chip_runs_graphs(chip);
    for (size_t i = 0; i < sizeof wrong_graphs / sizeof wrong_graphs[0]; ++i) {
        for (int mode = 0; mode < GRAPH_MODES; ++mode)
            if (wrong_graphs[i].modes >> mode & 1) {
                check_wrong(chip, &wrong_graphs[i], mode, before);
                assert_chip_runs_graph(chip, mode);
            }
    }
    gbx_chip_close(chip);
}

static void test_first_task_is_wrong(void **state) {
    check_all_wrong(*state, 0);
}

static void test_task_amid_others_is_wrong(void **state) {
    check_all_wrong(*state, 3);
}

/* The run ends with the message while thousands of tasks are in flight. */
static void test_wrong_after_thousands(void **state) {
    check_all_wrong(*state, is_thread_sanitized() ? 500 : 2000);
}

/* Every call that some runtime does not have, by name. */
static void test_calls_that_are_not_there(void **state) {
    static const struct {
        uint64_t call;
        int modes; /* runtimes without it */
        const char *name;
    } calls[] = {
        {CALL_DEVICE_MALLOC, T, "gbx_device_malloc"},
        {CALL_COPY_TO_DEVICE, A | T, "gbx_copy_to_device"},
        {CALL_RETURN_TO_HOST, A | T, "gbx_return_to_host"},
        {CALL_DEVICE_TENSOR, A | T, "gbx_device_tensor"},
        {CALL_ADD_TASK, A | T, "gbx_add_task"},
        {CALL_SET_TENSOR_INFO, A | T, "gbx_set_tensor_info_to_task"},
        {CALL_ADD_TASK_WITH_INFO, A | T, "gbx_add_task_with_tensor_info"},
        {CALL_ADD_SUCCESSOR, T, "gbx_add_successor"},
        {CALL_ADD_TASK_WITH_ARGS, H | T, "gbx_add_task_with_args"},
        {CALL_ADD_SUCCESSOR_CONDITIONAL, H | T, "gbx_add_successor_conditional"},
        {CALL_PUBLISH_TASK, H | T, "gbx_publish_task"},
        {CALL_SUBMIT_TASK, H | A, "gbx_submit_task"},
        {CALL_SCOPE_BEGIN, H | A, "gbx_scope_begin"},
        {CALL_SCOPE_END, H | A, "gbx_scope_end"},
        {CALL_DUMP_TASK_WORDS, A | T, "gbx_dump_task_words"},
    };
    gbx_chip *chip = open_graph_chip(*state, 0);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; ++i)
        for (int mode = 0; mode < GRAPH_MODES; ++mode) {
            char expected[128];
            graph_run run = graph_of(mode, "refused", 2, calls[i].call, 0);
            if (!(calls[i].modes >> mode & 1))
                continue;
            snprintf(expected, sizeof expected, "%s is not available in %s", calls[i].name,
                     run.mode->runtime);
            assert_fails(run_graph(chip, &run), GBX_BAD_GRAPH, expected);
        }
    assert_chip_runs_graphs(chip);
    gbx_chip_close(chip);
}

/* Lack of host memory has its own code. */
static void test_host_memory_is_out(void **state) {
    gbx_chip *chip = open_graph_chip(*state, 0);
    graph_run run = graph_of(HOST_MODE, "bad_memory", 5, HUGE_MALLOC, 0);
    assert_fails(run_graph(chip, &run), GBX_EXHAUSTED, "building the graph, after 5 tasks",
                 "8589934592 bytes");
    assert_chip_runs_graphs(chip);
    gbx_chip_close(chip);
}

/* Kernels that wait for each other finish even if the orchestration fails. */
static void test_error_beside_a_mix(void **state) {
    gbx_chip *chip = open_graph_chip(*state, 0);
    int rounds = getenv("GLASSBOX_STRESS") ? 500 : 5;
    for (int round = 0; round < rounds; ++round)
        for (int mode = 0; mode < GRAPH_MODES; ++mode) {
            graph_run run = graph_of(mode, "mixes_that_meet", (uint64_t)(round % 5) * 25, 1, 0);
            for (int i = 0; i < PRELUDE_AT; ++i)
                run.cells[i] = 0;
            char expected[96];
            snprintf(expected, sizeof expected, "failed after %d tasks: an error beside a mix",
                     4 + round % 5 * 25);
            assert_fails(run_graph(chip, &run), GBX_BAD_GRAPH, expected);
        }
    assert_chip_runs_graphs(chip);
    gbx_chip_close(chip);
}

/* --- windows and heaps that are too small --- */

/* The number that follows a text in a message. */
static uint64_t number_after(const char *message, const char *text) {
    const char *at = strstr(message, text);
    assert_non_null(at);
    return strtoull(at + strlen(text), NULL, 10);
}

static int64_t value_of_scope(const graph_run *run) {
    return stepped(stepped_often(BAD_AT, 0, 1, run->count), 5);
}

static void assert_scope_is_right(const graph_run *run) {
    assert_int_equal(run->cells[BAD_AT], value_of_scope(run));
    assert_int_equal(run->cells[BAD_AT + 1], stepped(stepped(stepped(BAD_AT + 1, 1), 1), 1));
    assert_int_equal(run->result.tasks, run->before + run->count + 4);
    assert_prelude_is_done(run);
}

/* Runs with too little, then with the number that the message asks for, then with one less. */
static void check_window(gbx_chip *chip, uint64_t before, uint32_t window, uint64_t count) {
    graph_run run = graph_of(TENSORMAP_MODE, "scope_of_outputs", before, 4, count);
    int64_t start_ns = gbx_clock_ns();
    run.config.window = window;
    gbx_status status = run_graph(chip, &run);
    assert_no_watchdog(&run, start_ns);
    assert_int_equal(gbx_status_code(status), GBX_BAD_GRAPH);
    uint64_t enough = number_after(gbx_status_message(status), "run with --window ");
    assert_int_equal(number_after(gbx_status_message(status), "open scope needs "), enough);
    char full[96];
    char task[64];
    snprintf(full, sizeof full, ": no room in the window of %u tasks", window);
    snprintf(task, sizeof task, "task %llu (kernel step.c)", (unsigned long long)(before + window));
    assert_fails(status, GBX_BAD_GRAPH, full, task, "end scopes earlier");
    run = graph_of(TENSORMAP_MODE, "scope_of_outputs", before, 4, count);
    run.config.window = (uint32_t)enough;
    assert_ok(run_graph(chip, &run));
    assert_scope_is_right(&run);
    /* All tasks of the scope but the last are kept: fewer slots are too few. */
    assert_in_range(enough, count, count + 1);
}

static void test_window_too_small_for_a_scope(void **state) {
    gbx_chip *chip = open_graph_chip(*state, 0);
    check_window(chip, 0, 4, 5);
    check_window(chip, 0, 1, 9);
    check_window(chip, 100, 16, 40);
    check_window(chip, 7, 500, 1500);
    assert_chip_runs_graphs(chip);
    gbx_chip_close(chip);
}

static void test_heap_too_small_for_a_scope(void **state) {
    enum { COUNT = 20, OUTPUT_CELLS = 64 }; /* 512 bytes each */
    gbx_chip *chip = open_graph_chip(*state, 0);
    graph_run run = graph_of(TENSORMAP_MODE, "scope_of_outputs", 3, OUTPUT_CELLS, COUNT);
    run.config.heap_bytes = 4096;
    gbx_status status = run_graph(chip, &run);
    assert_int_equal(gbx_status_code(status), GBX_BAD_GRAPH);
    uint64_t enough = number_after(gbx_status_message(status), "open scope needs ");
    assert_fails(status, GBX_BAD_GRAPH,
                 "task 11 (kernel step.c): no room in the heap ring of 4096 bytes", "--gm");
    assert_int_equal(enough, COUNT * 512);
    run = graph_of(TENSORMAP_MODE, "scope_of_outputs", 3, OUTPUT_CELLS, COUNT);
    run.config.heap_bytes = enough;
    assert_ok(run_graph(chip, &run));
    assert_scope_is_right(&run);
    gbx_chip_close(chip);
}

/* Tasks with many tensors fill other rings than the window: the number is still enough. */
static void test_window_for_tasks_of_many_tensors(void **state) {
    enum { COUNT = 600 };
    gbx_chip *chip = open_graph_chip(*state, 0);
    graph_run run = graph_of(TENSORMAP_MODE, "scope_of_many_tensors", 0, 0, COUNT);
    run.config.window = 700;
    gbx_status status = run_graph(chip, &run);
    assert_int_equal(gbx_status_code(status), GBX_BAD_GRAPH);
    uint64_t enough = number_after(gbx_status_message(status), "run with --window ");
    assert_fails(status, GBX_BAD_GRAPH, "(kernel wide.c): no room in the window of 700 tasks");
    assert_in_range(enough, 701, 31 * COUNT);
    run = graph_of(TENSORMAP_MODE, "scope_of_many_tensors", 0, 0, COUNT);
    run.config.window = (uint32_t)enough;
    assert_ok(run_graph(chip, &run));
    assert_int_equal(run.cells[BAD_AT], stepped(COUNT - 1, 5));
    gbx_chip_close(chip);
}

/* Each scope returns all of its heap, wherever in the ring it ended. */
static void test_one_output_may_fill_the_heap(void **state) {
    enum { HEAP_CELLS = 2048 };
    gbx_chip *chip = open_graph_chip(*state, 0);
    graph_run run = graph_of(TENSORMAP_MODE, "scopes_of_sizes", 0, 0, HEAP_CELLS);
    run.config.heap_bytes = HEAP_CELLS * sizeof(int64_t);
    int64_t expected = 0;
    for (uint64_t i = 0; i < 40; ++i)
        expected = stepped(stepped(expected, i), 1);
    assert_ok(run_graph(chip, &run));
    assert_int_equal(run.cells[0], expected);
    gbx_chip_close(chip);
}

/* --- orchestrations that cannot be loaded --- */

static int return_0(gbx_orchestration *orchestration, const gbx_run_args *run) {
    (void)orchestration;
    (void)run;
    return 0;
}

static void test_orchestrations_that_cannot_be_had(void **state) {
    const chip_variant *variant = *state;
    gbx_chip *chip = open_graph_chip(variant, 0);
    char path[4096];
    for (int mode = 0; mode < GRAPH_MODES; ++mode) {
        gbx_run run = {.runtime = graph_modes[mode].runtime};
        run.source = test_kernel(0, GBX_CORE_AIV, "does_not_compile.c", path).source;
        assert_fails(gbx_chip_run(chip, &run, NULL, NULL), GBX_BAD_KERNEL, "does_not_compile.c",
                     "no_such_field");
        run.source = test_kernel(0, GBX_CORE_AIV, "step.c", path).source;
        assert_fails(gbx_chip_run(chip, &run, NULL, NULL), GBX_BAD_KERNEL, " has no orchestrate;",
                     "int orchestrate(gbx_orchestration *, const gbx_run_args *)");
        run.entry = "no_such_entry";
        assert_fails(gbx_chip_run(chip, &run, NULL, NULL), GBX_BAD_KERNEL,
                     " has no no_such_entry;");
        run.source = "/nonexistent/orchestration.c";
        assert_fails(gbx_chip_run(chip, &run, NULL, NULL), GBX_NOT_FOUND,
                     "/nonexistent/orchestration.c");
        run.source = NULL;
        run.shared_object = "/nonexistent/orchestration.so";
        assert_fails(gbx_chip_run(chip, &run, NULL, NULL), GBX_NOT_FOUND,
                     "/nonexistent/orchestration.so");
        run.shared_object = NULL;
        assert_fails(gbx_chip_run(chip, &run, NULL, NULL), GBX_INVALID_ARGUMENT, "0 of source");
        run.function = return_0;
        if (mode != HOST_MODE && variant->device == GBX_DEVICE_PROCESS)
            assert_fails(gbx_chip_run(chip, &run, NULL, NULL), GBX_UNSUPPORTED, "function pointer",
                         "GBX_DEVICE_THREAD");
        else
            assert_ok(gbx_chip_run(chip, &run, NULL, NULL));
        run.runtime = "build_graph";
        assert_fails(gbx_chip_run(chip, &run, NULL, NULL), GBX_NOT_FOUND,
                     "unknown runtime \"build_graph\"", "tensormap_and_ringbuffer");
    }
    assert_chip_runs_graphs(chip);
    gbx_chip_close(chip);
}

/* --- correct graphs --- */

/* From source, which the run compiles. */
static void test_orchestration_by_source(void **state) {
    gbx_chip *chip = open_graph_chip(*state, 0);
    char path[4096];
    for (int mode = 0; mode < GRAPH_MODES; ++mode) {
        int64_t cells[CELLS] = {7};
        const uint64_t scalars[RUN_SCALARS] = {graph_modes[mode].on, 0, 0, 10};
        gbx_run_tensor tensor = {
            .name = "cells",
            .tensor = vector_at((uint64_t)(uintptr_t)cells, GBX_INT64, CELLS),
            .role = GBX_ROLE_INOUT,
        };
        gbx_run run = {.runtime = graph_modes[mode].runtime,
                       .source = test_kernel(0, GBX_CORE_AIV, "orchestrations.c", path).source,
                       .entry = "chain",
                       .tensors = &tensor,
                       .tensor_count = 1,
                       .scalars = scalars,
                       .scalar_count = RUN_SCALARS};
        assert_ok(gbx_chip_run(chip, &run, NULL, NULL));
        assert_int_equal(cells[0], stepped_often(7, 0, 1, 10));
    }
    gbx_chip_close(chip);
}

static void test_empty_graph(void **state) {
    gbx_chip *chip = open_graph_chip(*state, 0);
    for (int mode = 0; mode < GRAPH_MODES; ++mode) {
        graph_run run = graph_of(mode, "empty", 0, 0, 0);
        assert_ok(run_graph(chip, &run));
        assert_int_equal(run.result.tasks, 0);
        assert_int_equal(run.result.dispatches, 0);
        for (int64_t i = 0; i < CELLS; ++i)
            assert_int_equal(run.cells[i], i);
    }
    gbx_chip_close(chip);
}

/* Marks without a dump do not affect a graph. */
static void test_marks_without_a_dump(void **state) {
    gbx_chip *chip = open_graph_chip(*state, 0);
    for (int mode = 0; mode < GRAPH_MODES; ++mode) {
        graph_run run = graph_of(mode, "good_marks", 0, 0, 30);
        assert_ok(run_graph(chip, &run));
        assert_int_equal(run.cells[0], stepped_often(0, 0, 1, 30));
        assert_int_equal(run.result.tasks, 30);
    }
    gbx_chip_close(chip);
}

/* All cores of the chip at once, repeatedly, between plain tasks. */
static void test_mixes_that_meet(void **state) {
    gbx_chip *chip = open_graph_chip(*state, 0);
    for (int mode = 0; mode < GRAPH_MODES; ++mode) {
        graph_run run = graph_of(mode, "mixes_that_meet", 200, 0, 0);
        memset(run.cells, 0, PRELUDE_AT * sizeof run.cells[0]);
        assert_ok(run_graph(chip, &run));
        assert_int_equal(run.result.tasks, 204);
        assert_int_equal(run.result.dispatches, 200 + 4 * 12);
        for (int i = 0; i < 4; ++i) {
            assert_int_equal(run.cells[BAD_AT + 2 * i], 12);
            assert_int_equal(run.cells[BAD_AT + 2 * i + 1], 1);
        }
        assert_prelude_is_done(&run);
    }
    gbx_chip_close(chip);
}

/* More than 2^17 tasks: the host's tables have no fixed size. */
static void test_two_hundred_thousand_tasks(void **state) {
    uint64_t count = is_thread_sanitized() ? 20000 : 200000;
    gbx_chip *chip = open_graph_chip(*state, UINT64_C(1) << 30);
    graph_run run = graph_of(HOST_MODE, "many_independent", 0, 0, count);
    assert_ok(run_graph(chip, &run));
    assert_int_equal(run.result.tasks, count);
    run.before = count; /* its tasks are those of a prelude */
    assert_prelude_is_done(&run);
    gbx_chip_close(chip);
}

/* A window of a few tasks is enough for any number of tasks. */
static void test_back_pressure(void **state) {
    static const uint32_t windows[] = {1, 2, 3, 4, 64};
    gbx_chip *chip = open_graph_chip(*state, 0);
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; ++i) {
        graph_run run = graph_of(TENSORMAP_MODE, "scope_of_outputs", 10000, 1, 0);
        run.config.window = windows[i];
        if (windows[i] != 4)
            run.before = 500;
        assert_ok(run_graph(chip, &run));
        assert_scope_is_right(&run);
    }
    gbx_chip_close(chip);
}

static void test_nested_scopes(void **state) {
    gbx_chip *chip = open_graph_chip(*state, 0);
    graph_run run = graph_of(TENSORMAP_MODE, "nested_scopes", 0, 0, 300);
    int64_t outer = stepped(0, 0);
    for (uint64_t i = 0; i < run.count; ++i)
        outer = stepped(stepped(outer, i), 1);
    assert_ok(run_graph(chip, &run));
    assert_int_equal(run.cells[0], stepped(outer, 2));
    assert_int_equal(run.result.tasks, 2 * run.count + 2);
    gbx_chip_close(chip);
}

static void test_reading_waits_for_the_writer(void **state) {
    gbx_chip *chip = open_graph_chip(*state, 0);
    graph_run run = graph_of(TENSORMAP_MODE, "read_result", 0, 0, 0);
    run.cells[0] = 5;
    int64_t start_ns = gbx_clock_ns();
    assert_ok(run_graph(chip, &run));
    assert_true(gbx_clock_ns() - start_ns >= 100 * GBX_NS_PER_MS);
    assert_int_equal(run.cells[1], 19);
    assert_int_equal(run.cells[2], 3 * 5 + 19);
    gbx_chip_close(chip);
}

/* The steps of `hazards`, one after the other. */
static void step_views(int64_t *cells, int64_t from, int64_t from_stride, int64_t to,
                       int64_t to_stride, int64_t count, uint64_t addend) {
    for (int64_t i = 0; i < count; ++i)
        cells[to + i * to_stride] = stepped(cells[from + i * from_stride], addend);
}

static void test_hazards_are_ordered(void **state) {
    gbx_chip *chip = open_graph_chip(*state, 0);
    graph_run run = graph_of(TENSORMAP_MODE, "hazards", 0, 0, 0);
    graph_run expected = run;
    step_views(expected.cells, 0, 1, 8, 1, 8, 0);
    step_views(expected.cells, 8, 1, 20, 1, 8, 1);
    step_views(expected.cells, 0, 2, 16, 1, 4, 2);
    step_views(expected.cells, 8, 1, 0, 1, 8, 3);
    step_views(expected.cells, 1, 2, 0, 2, 4, 4);
    step_views(expected.cells, 16, 1, 0, 2, 4, 5);
    step_views(expected.cells, 0, 2, 16, 1, 4, 6);
    assert_ok(run_graph(chip, &run));
    assert_memory_equal(run.cells, expected.cells, sizeof run.cells);
    gbx_chip_close(chip);
}

/* Two tasks with separate views meet; two with a common cell do not. */
static void test_disjoint_views_run_at_once(void **state) {
    cpu_set_t usable;
    assert_int_equal(sched_getaffinity(0, sizeof usable, &usable), 0);
    if (CPU_COUNT(&usable) < 2)
        skip();
    gbx_chip *chip = open_graph_chip(*state, 0);
    graph_run run = graph_of(TENSORMAP_MODE, "disjoint_views", 0, 0, 600000);
    memset(run.cells, 0, sizeof run.cells);
    assert_ok(run_graph(chip, &run));
    assert_int_equal(run.cells[1], 1);
    assert_int_equal(run.cells[3], 1);
    run = graph_of(TENSORMAP_MODE, "disjoint_views", 0, 1, 50);
    memset(run.cells, 0, sizeof run.cells);
    assert_ok(run_graph(chip, &run));
    assert_int_equal(run.cells[1], 2 + 1); /* the first waited in vain, then the second ran */
    gbx_chip_close(chip);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_task_is_wrong),
        cmocka_unit_test(test_task_amid_others_is_wrong),
        cmocka_unit_test(test_wrong_after_thousands),
        cmocka_unit_test(test_calls_that_are_not_there),
        cmocka_unit_test(test_host_memory_is_out),
        cmocka_unit_test(test_error_beside_a_mix),
        cmocka_unit_test(test_window_too_small_for_a_scope),
        cmocka_unit_test(test_heap_too_small_for_a_scope),
        cmocka_unit_test(test_window_for_tasks_of_many_tensors),
        cmocka_unit_test(test_one_output_may_fill_the_heap),
        cmocka_unit_test(test_orchestrations_that_cannot_be_had),
        cmocka_unit_test(test_orchestration_by_source),
        cmocka_unit_test(test_empty_graph),
        cmocka_unit_test(test_marks_without_a_dump),
        cmocka_unit_test(test_mixes_that_meet),
        cmocka_unit_test(test_two_hundred_thousand_tasks),
        cmocka_unit_test(test_back_pressure),
        cmocka_unit_test(test_nested_scopes),
        cmocka_unit_test(test_reading_waits_for_the_writer),
        cmocka_unit_test(test_hazards_are_ordered),
        cmocka_unit_test(test_disjoint_views_run_at_once),
    };
    return RUN_OVER_ALL_VARIANTS(tests);
}
