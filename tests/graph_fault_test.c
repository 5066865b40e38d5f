/*
 * Failures of the device during a graph, on every runtime: the message names kernels and
 * orchestrations that crash, hang or end their thread, memory can still be read, the host runs
 * again at once and nothing is left behind. Only chips in a process.
 */
#include "graph_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/fault_ways.h"

enum { BEFORE = 300, AFTER = 300, MARK = 0x6d61726b };

typedef struct failing {
    gbx_chip *chip;
    uint64_t marked; /* the test's own memory */
    size_t files;
    size_t mappings;
} failing;

static failing begin_failing(const chip_variant *variant) {
    const uint64_t mark = MARK;
    failing it = {.files = count_open_files(), .mappings = count_mappings_of("glassbox-gm")};
    it.chip = open_graph_chip(variant, 0);
    it.marked = put(it.chip, &mark, sizeof mark);
    return it;
}

/* The chip has ended, its memory remains; other chips run, beside it and after it. */
static void end_failing(const chip_variant *variant, failing *it) {
    uint64_t mark = 0;
    assert_ok(gbx_gm_copy_out(it->chip, &mark, it->marked, sizeof mark));
    assert_int_equal(mark, MARK);
    for (int mode = 0; mode < GRAPH_MODES; ++mode) {
        graph_run again = graph_of(mode, "chain", 0, 0, 1);
        assert_fails(run_graph(it->chip, &again), GBX_DEVICE_LOST, "this chip has failed (",
                     "open another");
    }
    gbx_chip *beside = open_graph_chip(variant, 0);
    assert_chip_runs_graphs(beside);
    gbx_chip_close(it->chip);
    assert_chip_runs_graphs(beside);
    gbx_chip_close(beside);
    assert_int_equal(count_open_files(), it->files);
    assert_int_equal(count_mappings_of("glassbox-gm"), it->mappings);
    assert_false(has_children());
}

/* Runs it on its own chip; if `hung` is given, repeats until the message names it. */
static gbx_status run_failing(const chip_variant *variant, const graph_run *run, const char *hung,
                              failing *out_it) {
    for (int i = 0;; ++i) {
        graph_run attempt = *run;
        if (hung)
            attempt.config.timeout_ms = hang_timeouts_ms[i];
        *out_it = begin_failing(variant);
        gbx_status status = run_graph(out_it->chip, &attempt);
        if (!hung || i + 1 == HANG_TIMEOUTS || strstr(gbx_status_message(status), hung))
            return status;
        gbx_status_free(status);
        gbx_chip_close(out_it->chip);
    }
}

/* A kernel that fails in the given way, as task BEFORE of a graph, in each mode. */
static void check_kernel(const chip_variant *variant, uint64_t way, gbx_code code,
                         const char *how) {
    for (int mode = 0; mode < GRAPH_MODES; ++mode) {
        failing it;
        graph_run run = graph_of(mode, "fault_amid", BEFORE, way, AFTER);
        const char *hung = code == GBX_DEVICE_HUNG ? "kernel fault.c (func 7) of task 300 " : NULL;
        gbx_status status = run_failing(variant, &run, hung, &it);
        const char *on_core = strstr(gbx_status_message(status), " on core ");
        assert_non_null(on_core);
        /* A vector core of the 4 blocks, with its name. */
        unsigned core = (unsigned)strtoul(on_core + strlen(" on core "), NULL, 10);
        char place[128];
        assert_in_range(core, 0, 11);
        assert_int_not_equal(core % 3, GBX_SUBTASK_AIC);
        snprintf(place, sizeof place,
                 "kernel fault.c (func 7) of task 300 on core %u (AIV%u of chip block %u), task "
                 "block 2 of 3",
                 core, core % 3 - 1, core / 3);
        assert_fails(status, code, place, how);
        end_failing(variant, &it);
    }
}

static void test_kernel_that_crashes(void **state) {
    check_kernel(*state, FAIL_STORE, GBX_DEVICE_FAULT,
                 "raised SIGSEGV (Segmentation fault) at address 0x10");
    check_kernel(*state, FAIL_ABORT, GBX_DEVICE_FAULT, "SIGABRT");
}

static void test_kernel_that_hangs(void **state) {
    check_kernel(*state, FAIL_HANG, GBX_DEVICE_HUNG, "made no progress for ");
}

static void test_kernel_that_ends_its_thread(void **state) {
    check_kernel(*state, FAIL_THREAD_EXIT, GBX_DEVICE_FAULT, "pthread_exit");
}

/* All kernels end with the process: the chip cannot know which one ended it. */
static void test_kernel_that_ends_the_chip(void **state) {
    for (int mode = 0; mode < GRAPH_MODES; ++mode) {
        failing it = begin_failing(*state);
        graph_run run = graph_of(mode, "fault_amid", BEFORE, FAIL_EXIT, AFTER);
        assert_fails(run_graph(it.chip, &run), GBX_DEVICE_LOST,
                     "the chip process exited with code 7 while running kernel ", " of task ",
                     " on core ");
        end_failing(*state, &it);
    }
}

/* Three kernels wait for a fourth that does not exist: the message names one and counts the
 * others. */
static void test_mix_that_waits_for_ever(void **state) {
    for (int mode = 0; mode < GRAPH_MODES; ++mode) {
        failing it;
        graph_run run = graph_of(mode, "mix_that_waits", 50, 0, 0);
        memset(run.cells, 0, PRELUDE_AT * sizeof run.cells[0]);
        assert_fails(run_failing(*state, &run, "nor did 2 other cores", &it), GBX_DEVICE_HUNG,
                     "kernel meet.c (func ", ") of task 50 on core ", "task block 0 of 1",
                     "nor did 2 other cores", "they wait forever, or need a longer timeout");
        end_failing(*state, &it);
    }
}

static void check_orchestration(const chip_variant *variant, uint64_t way, gbx_code code,
                                const char *how) {
    for (int mode = CONCURRENT_MODE; mode < GRAPH_MODES; ++mode) {
        failing it;
        graph_run run = graph_of(mode, "fault_of_its_own", BEFORE, way, 0);
        const char *hung = code == GBX_DEVICE_HUNG ? "the orchestration " : NULL;
        assert_fails(run_failing(variant, &run, hung, &it), code, "the orchestration ", how);
        end_failing(variant, &it);
    }
}

static void test_orchestration_that_crashes(void **state) {
    check_orchestration(*state, ORCHESTRATION_STORE, GBX_DEVICE_FAULT,
                        "raised SIGSEGV (Segmentation fault) at address 0x18");
}

static void test_orchestration_that_never_ends(void **state) {
    check_orchestration(*state, ORCHESTRATION_LOOP, GBX_DEVICE_HUNG, "made no progress for ");
}

static void test_orchestration_that_ends_its_thread(void **state) {
    check_orchestration(*state, ORCHESTRATION_THREAD_EXIT, GBX_DEVICE_FAULT,
                        "ended its thread: pthread_exit; it must return instead");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_that_crashes),
        cmocka_unit_test(test_kernel_that_hangs),
        cmocka_unit_test(test_kernel_that_ends_its_thread),
        cmocka_unit_test(test_kernel_that_ends_the_chip),
        cmocka_unit_test(test_mix_that_waits_for_ever),
        cmocka_unit_test(test_orchestration_that_crashes),
        cmocka_unit_test(test_orchestration_that_never_ends),
        cmocka_unit_test(test_orchestration_that_ends_its_thread),
    };
    return RUN_OVER_PROCESS_VARIANTS(tests);
}
