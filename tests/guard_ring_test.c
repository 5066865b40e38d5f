/*
 * Overruns while memory of the heap ring changes hands: buffers are made, checked and given away at
 * the same time, by several threads. Kernels and orchestration are functions of this program, so
 * the chips run in a thread.
 */
#include <glassbox/runtime.h>

#include "chip_support.h"

#include <stdlib.h>

enum {
    FILL = 0,
    ROUNDS = 40,
    STRESS_ROUNDS = 3000,
    TASKS = 250,
    PLANTED = 5,
    EVERY = TASKS / PLANTED,
    ELEMENTS = 150,
    SHORT = 20,
    LONG = 700
};

/* A kernel with a bug races with the guard that checks its zone: that is what is tested. */
static __attribute__((no_sanitize("thread"))) void fill(const uint64_t *args) {
    const gbx_tensor *tensor = gbx_arg_tensor(args, 0);
    int64_t count = gbx_tensor_numel(tensor) + gbx_arg_i64(args, 1);
    float *data = gbx_tensor_f32(tensor);
    for (int64_t i = 0; i < count; ++i)
        data[i] = (float)i;
}

static int64_t overrun_of_planted; /* elements */

static bool is_planted(uint64_t task) {
    return task % EVERY == EVERY / 2;
}

/* Sizes differ, so that zones and buffers of one round do not lie where those of another did. */
static int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    (void)run;
    for (uint64_t i = 0; i < TASKS; ++i) {
        const int64_t shape[1] = {(int64_t)(1 + i * 37 % 5) * ELEMENTS};
        gbx_tensor tensor = gbx_new_tensor(GBX_FLOAT32, 1, shape);
        gbx_args args = gbx_args_begin();
        gbx_args_add_new_output(&args, &tensor);
        gbx_args_add_i64(&args, is_planted(i) ? overrun_of_planted : 0);
        gbx_scope_begin(o);
        gbx_submit_aiv_task(o, FILL, &args);
        gbx_scope_end(o);
    }
    return 0;
}

typedef void (*check_function)(const gbx_call_result *result);

static void run_overruns(const chip_variant *variant, int64_t elements, check_function check) {
    if (variant->device != GBX_DEVICE_THREAD)
        skip();
    gbx_chip_config chip_config = {.platform = variant->platform,
                                   .device = variant->device,
                                   .blocks = 4,
                                   .aicpu_threads = 4,
                                   .gm_bytes = 64 << 20};
    gbx_chip *chip;
    assert_ok(gbx_chip_open(&chip_config, &chip));
    gbx_kernel kernel = {.func_id = FILL, .name = "fill", .core = GBX_CORE_AIV, .function = fill};
    assert_ok(gbx_kernel_register(chip, &kernel));
    overrun_of_planted = elements;
    gbx_run run = {.function = orchestrate};
    gbx_call_config config = {.heap_bytes = 64 << 10, .guard = GBX_GUARD_REPORT};
    int rounds = getenv("GLASSBOX_STRESS") ? STRESS_ROUNDS : ROUNDS;
    for (int i = 0; i < rounds; ++i) {
        gbx_call_result result;
        assert_ok(gbx_chip_run(chip, &run, &config, &result));
        assert_int_equal(result.tasks, TASKS);
        check(&result);
    }
    gbx_chip_close(chip);
}

/* Overruns that stay inside their own zones: every one is found, and only its task is accused. It
 * is found twice if the next task repairs the zone while the kernel still writes. */
static void check_short(const gbx_call_result *result) {
    bool is_named[TASKS] = {false};
    uint32_t named_count = 0;
    assert_in_range(result->finding_count, PLANTED, GBX_RESULT_FINDINGS);
    for (uint32_t i = 0; i < result->finding_count; ++i) {
        const gbx_run_finding *f = &result->findings[i];
        uint64_t task = f->owner_task;
        assert_true(is_planted(task));
        named_count += !is_named[task];
        is_named[task] = true;
        assert_int_equal(f->candidates[0].task, task);
        assert_int_equal(f->candidates[0].arg_index, 0);
        if (f->kind == GBX_RUN_FINDING_OVERRUN)
            assert_int_not_equal(f->certainty, GBX_CERTAINTY_OPEN);
        else /* the second half of one that was found twice */
            assert_int_equal(f->kind, GBX_RUN_FINDING_STRAY);
        assert_true(f->first >= (int64_t)f->bytes);
        assert_true(f->first + (int64_t)f->span <= (int64_t)(f->bytes + SHORT * sizeof(float)));
    }
    assert_int_equal(named_count, PLANTED);
}

/* Over the next buffers, which others make, fill and give away meanwhile: what a run finds depends
 * on time, but one that wrote is among the candidates of each. */
static void check_long(const gbx_call_result *result) {
    assert_true(result->finding_count > 0);
    for (uint32_t i = 0; i < result->finding_count && i < GBX_RESULT_FINDINGS; ++i) {
        const gbx_run_finding *f = &result->findings[i];
        bool has_planted = f->candidate_total > f->candidate_count;
        for (uint32_t c = 0; c < f->candidate_count; ++c)
            has_planted |= is_planted(f->candidates[c].task);
        assert_true(has_planted);
    }
}

static void test_short_ones(void **state) {
    run_overruns(*state, SHORT, check_short);
}

static void test_long_ones(void **state) {
    run_overruns(*state, LONG, check_long);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_short_ones),
                                       cmocka_unit_test(test_long_ones)};
    return RUN_OVER_ALL_VARIANTS(tests);
}
