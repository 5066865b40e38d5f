/*
 * A kernel that writes past its output, or over the arguments of tasks in global memory: every
 * record of every task is in the dump, and is what a model computes. The run names the kernel and
 * the task that did it.
 */
#include <glassbox/runtime.h>

#include <stdio.h>
#include <string.h>

#include "chip_support.h"
#include "dump_files.h"
#include "kernels/overrun.h"
#include "store/verify/verify.h"

enum { WRONG_TASK = OVERRUN_TASKS / 2, BYTES = OVERRUN_ELEMENTS * 4, ARGUMENTS = 4 };

static const char *const runtimes[OVERRUN_RUNTIMES] = {
    [OVERRUN_ON_HOST] = "host_build_graph",
    [OVERRUN_ON_AICPU] = "aicpu_build_graph",
    [OVERRUN_ON_TENSORMAP] = "tensormap_and_ringbuffer",
};

static void fill(uint32_t values[OVERRUN_ELEMENTS]) {
    for (uint32_t i = 0; i < OVERRUN_ELEMENTS; ++i)
        values[i] = i * 2654435761u + 7;
}

static gbx_status run_chain(gbx_chip *chip, uint64_t on, uint64_t way, gbx_guard_mode guard,
                            char directory[DUMP_PATH_BYTES], gbx_call_result *out_result) {
    uint32_t values[OVERRUN_ELEMENTS];
    const int64_t shape[1] = {OVERRUN_ELEMENTS};
    const uint64_t scalars[OVERRUN_SCALARS] = {[OVERRUN_ON] = on, [OVERRUN_WAY] = way};
    gbx_run_tensor tensor = {.name = "values", .role = GBX_ROLE_INPUT};
    gbx_run run = {.runtime = runtimes[on],
                   .shared_object = compiled_object("overrun_orchestration.c"),
                   .tensors = &tensor,
                   .tensor_count = 1,
                   .scalars = scalars,
                   .scalar_count = OVERRUN_SCALARS};
    fill(values);
    assert_ok(gbx_tensor_contiguous((uintptr_t)values, GBX_UINT32, 1, shape, &tensor.tensor));
    dump_directory_make(directory);
    gbx_call_config config = {.enable_dump_tensor = GBX_DUMP_FULL,
                              .enable_dump_args = true,
                              .guard = guard,
                              .dump = {.directory = directory, .arena_bytes = 1 << 20}};
    return gbx_chip_run(chip, &run, &config, out_result);
}

/* --- the dump --- */

static void assert_payload(const dump_files *files, uint64_t task, uint32_t arg_index,
                           bool is_after, const uint32_t *values) {
    const json_t *entry = dump_find(files, task, arg_index, is_after);
    if (!entry)
        fail_msg("task %d, arg %d is missing", (int)task, (int)arg_index);
    assert_int_equal(dump_number(entry, "bin_size"), BYTES);
    if (memcmp(dump_payload(files, entry), values, BYTES) != 0)
        fail_msg("task %d, arg %d: the values are wrong", (int)task, (int)arg_index);
}

static void assert_records(const dump_files *files, uint64_t way) {
    uint32_t values[OVERRUN_ELEMENTS];
    fill(values);
    assert_int_equal(dump_entry_count(files), OVERRUN_TASKS * ARGUMENTS);
    for (uint64_t task = 0; task < OVERRUN_TASKS; ++task) {
        assert_payload(files, task, 0, false, values);
        for (uint32_t i = 0; i < OVERRUN_ELEMENTS; ++i)
            values[i] = values[i] * 3 + (uint32_t)task;
        assert_payload(files, task, 1, true, values);
        uint64_t scalars[2] = {task, task == WRONG_TASK ? way : OVERRUN_NOT};
        for (uint32_t i = 0; i < 2; ++i)
            assert_int_equal(dump_hex(dump_find(files, task, 2 + i, false), "bits"), scalars[i]);
    }
    assert_int_equal(json_array_size(dump_array(files->tensors, "losses")), 0);
    assert_int_equal(json_array_size(dump_array(files->tensors, "skipped")), 0);
    assert_true(dump_bool(files->tensors, "complete"));
}

static void assert_verified(const char *directory) {
    gbx_verification verification;
    assert_ok(gbx_dump_verify(directory, NULL, &verification));
    if (verification.findings.count)
        fail_msg("verify: %s", verification.findings.items[0].what);
    assert_true(verification.is_strict);
    gbx_verification_free(&verification);
}

/* --- what the run says --- */

static void assert_named(const gbx_chip *chip, const gbx_call_result *result, uint64_t way) {
    char text[2048], wanted[64];
    size_t named = 0;
    if (way == OVERRUN_NOT) {
        assert_int_equal(result->finding_count, 0);
        return;
    }
    snprintf(wanted, sizeof wanted, "task %d", WRONG_TASK);
    for (uint32_t i = 0; i < result->finding_count && i < GBX_RESULT_FINDINGS; ++i) {
        gbx_finding_describe(chip, NULL, &result->findings[i], text, sizeof text);
        named += strstr(text, wanted) && strstr(text, "overrun");
        if (way == OVERRUN_DESCRIPTION) {
            assert_int_equal(result->findings[i].kind, GBX_RUN_FINDING_ARGUMENTS);
            assert_int_equal(result->findings[i].owner_task, WRONG_TASK);
            assert_int_equal(result->findings[i].candidates[0].task, WRONG_TASK);
            assert_int_equal(result->findings[i].certainty, GBX_CERTAINTY_SURE);
        }
    }
    if (!named)
        fail_msg("way %d: %d findings, and none names the kernel", (int)way,
                 (int)result->finding_count);
}

static void check(gbx_chip *chip, uint64_t on, uint64_t way, gbx_guard_mode guard) {
    char directory[DUMP_PATH_BYTES];
    dump_files files;
    gbx_call_result result;
    assert_ok(run_chain(chip, on, way, guard, directory, &result));
    assert_int_equal(result.tasks, OVERRUN_TASKS);
    dump_files_open(directory, &files);
    dump_check_itself(&files);
    assert_records(&files, way);
    assert_verified(directory);
    /* Without a guard a buffer has no zones; arguments are compared with any dump. */
    if (guard != GBX_GUARD_OFF || way != OVERRUN_OUTPUT)
        assert_named(chip, &result, way);
    dump_files_close(&files);
    dump_directory_remove(directory);
}

static void test_all_records_are_there(void **state) {
    static const gbx_guard_mode guards[] = {GBX_GUARD_REPORT, GBX_GUARD_OFF};
    gbx_chip *chip = open_chip(*state, 2);
    register_kernel(chip, 0, GBX_CORE_AIV, "overrun.c");
    for (uint64_t on = 0; on < OVERRUN_RUNTIMES; ++on)
        for (uint64_t way = 0; way < OVERRUN_WAYS; ++way)
            for (size_t g = 0; g < 2; ++g)
                check(chip, on, way, guards[g]);
    gbx_chip_close(chip);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_records_are_there)};
    return RUN_OVER_ALL_VARIANTS(tests);
}
