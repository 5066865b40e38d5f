/*
 * gbx_add_successor_conditional says whether the edge counts: 1 for a predecessor that is waiting
 * or running, 0 for one that is done. The kernels are functions of this program, so the chips run
 * in a thread.
 */
#include <glassbox/runtime.h>

#include "chip_support.h"

#include <sched.h>

enum { ADD_ONE = 0, WAITING = 0, DONE = 1, VALUE = 2, CELLS = 3 };

static void add_one(const uint64_t *args) {
    const gbx_tensor *cells = gbx_arg_tensor(args, 0);
    int64_t *values = (int64_t *)(uintptr_t)cells->data;
    __atomic_add_fetch(&values[VALUE], 1, __ATOMIC_RELEASE);
}

static gbx_task add_task(gbx_orchestration *o, const gbx_run_args *run) {
    gbx_args args = gbx_args_begin();
    gbx_args_add_inout(&args, &run->tensors[0]);
    return gbx_add_task_with_args(o, gbx_aiv(ADD_ONE), &args);
}

static int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    int64_t *cells = (int64_t *)(uintptr_t)run->tensors[0].data;
    gbx_task first = add_task(o, run);
    gbx_task second = add_task(o, run);
    cells[WAITING] = gbx_add_successor_conditional(o, first, second);
    gbx_publish_task(o, second); /* waits for one that is not published yet */
    gbx_publish_task(o, first);
    while (__atomic_load_n(&cells[VALUE], __ATOMIC_ACQUIRE) < 2)
        sched_yield();
    gbx_task third = add_task(o, run);
    /* The first completed before the second began, and the second has run by now. */
    cells[DONE] = gbx_add_successor_conditional(o, first, third);
    gbx_publish_task(o, third);
    return 0;
}

static void test_edge_counts_until_its_predecessor_is_done(void **state) {
    const chip_variant *variant = *state;
    if (variant->device != GBX_DEVICE_THREAD)
        skip();
    int64_t cells[CELLS] = {-1, -1, 0};
    const int64_t shape[1] = {CELLS};
    gbx_chip *chip = open_chip(variant, 2);
    gbx_kernel kernel = {
        .func_id = ADD_ONE, .name = "add_one", .core = GBX_CORE_AIV, .function = add_one};
    assert_ok(gbx_kernel_register(chip, &kernel));
    gbx_run_tensor tensor = {.name = "cells", .role = GBX_ROLE_INOUT};
    assert_ok(
        gbx_tensor_contiguous((uint64_t)(uintptr_t)cells, GBX_INT64, 1, shape, &tensor.tensor));
    gbx_run run = {.runtime = "aicpu_build_graph",
                   .function = orchestrate,
                   .tensors = &tensor,
                   .tensor_count = 1};
    assert_ok(gbx_chip_run(chip, &run, NULL, NULL));
    assert_int_equal(cells[WAITING], 1);
    assert_int_equal(cells[DONE], 0);
    assert_int_equal(cells[VALUE], 3);
    gbx_chip_close(chip);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edge_counts_until_its_predecessor_is_done)};
    return RUN_OVER_ALL_VARIANTS(tests);
}
