/* Builds the graphs of the orchestrations here with the same calls on all three runtimes. */
#ifndef GBX_TESTS_ORCHESTRATION_BUILDER_H
#define GBX_TESTS_ORCHESTRATION_BUILDER_H

#include "orchestrations.h"

#include <glassbox/orchestration.h>

typedef struct builder {
    gbx_orchestration *o;
    const gbx_run_args *run;
    gbx_tensor cells; /* on the chip */
} builder;

static uint64_t scalar(const builder *b, int at) {
    return b->run->scalars[at];
}

static int is_on(const builder *b, uint64_t runtime) {
    return scalar(b, RUNTIME_AT) == runtime;
}

static builder begin(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = {.o = o, .run = run, .cells = run->tensors[0]};
    if (!is_on(&b, ON_HOST))
        return b;
    void *from = (void *)(uintptr_t)run->tensors[0].data;
    uint64_t bytes = (uint64_t)run->tensors[0].shape[0] * sizeof(int64_t);
    b.cells.data = gbx_device_malloc(o, bytes);
    gbx_copy_to_device(o, b.cells.data, from, bytes);
    gbx_return_to_host(o, from, b.cells.data, bytes);
    return b;
}

static gbx_tensor cells_at(const builder *b, int64_t first, int64_t count) {
    return gbx_view_slice(&b->cells, 0, first, count);
}

/* On host_build_graph the words are made from the arguments. */
static gbx_task add_on_host(const builder *b, gbx_task_kernels kernels, const gbx_args *args) {
    uint64_t words[GBX_MAX_TENSOR_ARGS + GBX_MAX_SCALAR_ARGS];
    gbx_tensor_info infos[GBX_MAX_TENSOR_ARGS];
    for (uint32_t i = 0; i < args->tensor_count; ++i) {
        words[i] = gbx_device_tensor(b->o, args->tensors[i]);
        gbx_tensor_info info = {i, args->roles[i], *args->tensors[i]};
        infos[i] = info;
    }
    for (uint32_t i = 0; i < args->scalar_count; ++i)
        words[args->tensor_count + i] = args->scalars[i];
    return gbx_add_task_with_tensor_info(
        b->o, kernels, words, args->tensor_count + args->scalar_count, infos, args->tensor_count);
}

/* A task that is not published yet, on runtimes that publish. */
static gbx_task add(const builder *b, gbx_task_kernels kernels, const gbx_args *args) {
    if (is_on(b, ON_HOST))
        return add_on_host(b, kernels, args);
    if (is_on(b, ON_AICPU))
        return gbx_add_task_with_args(b->o, kernels, args);
    return gbx_submit_task(b->o, kernels, args);
}

static void publish(const builder *b, gbx_task task) {
    if (is_on(b, ON_AICPU))
        gbx_publish_task(b->o, task);
}

static void follow(const builder *b, gbx_task before, gbx_task after) {
    if (!is_on(b, ON_TENSORMAP) && before != GBX_NO_TASK)
        gbx_add_successor(b->o, before, after);
}

static gbx_args step_args(const gbx_tensor *from, const gbx_tensor *to, uint64_t addend,
                          uint64_t delay_us) {
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, from);
    gbx_args_add_output(&args, to);
    gbx_args_add_u64(&args, addend);
    gbx_args_add_u64(&args, delay_us);
    return args;
}

/* A step of one cell, not published. */
static gbx_task add_step(const builder *b, int64_t from, int64_t to, uint64_t addend) {
    gbx_tensor in = cells_at(b, from, 1);
    gbx_tensor out = cells_at(b, to, 1);
    gbx_args args = step_args(&in, &out, addend, 0);
    return add(b, gbx_aiv(STEP), &args);
}

/* Correct tasks before the wrong one. */
static void prelude(const builder *b) {
    gbx_task last[PRELUDE_CELLS];
    for (int i = 0; i < PRELUDE_CELLS; ++i)
        last[i] = GBX_NO_TASK;
    for (uint64_t i = 0; i < scalar(b, BEFORE_AT); ++i) {
        uint64_t cell = i % PRELUDE_CELLS;
        gbx_task task = add_step(b, PRELUDE_AT + (int64_t)cell, PRELUDE_AT + (int64_t)cell, i);
        follow(b, last[cell], task);
        publish(b, task);
        last[cell] = task;
    }
}

#endif
