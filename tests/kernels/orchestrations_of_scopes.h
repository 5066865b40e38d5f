/* A part of orchestrations.c: scopes and memory of tensormap_and_ringbuffer. */
#ifndef GBX_TESTS_ORCHESTRATIONS_OF_SCOPES_H
#define GBX_TESTS_ORCHESTRATIONS_OF_SCOPES_H

#include "orchestration_builder.h"

/* A task with a new output of one cell. */
static gbx_tensor submit_new_output(builder *b) {
    const int64_t one = 1;
    gbx_tensor cell = cells_at(b, BAD_AT, 1), output = gbx_new_tensor(GBX_INT64, 1, &one);
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, &cell);
    gbx_args_add_new_output(&args, &output);
    gbx_args_add_u64(&args, 0);
    gbx_args_add_u64(&args, 0);
    gbx_submit_aiv_task(b->o, STEP, &args);
    return output;
}

/* Reads the output of an inner scope: right before its end, wrong after it. The one of the outer
 * scope stays. */
static void read_after_end(builder *b, int is_nested) {
    gbx_tensor cell = cells_at(b, BAD_AT, 1);
    gbx_scope_begin(b->o);
    gbx_tensor outer = is_nested ? submit_new_output(b) : cell;
    gbx_scope_begin(b->o);
    gbx_tensor inner = submit_new_output(b);
    gbx_scope_end(b->o);
    if (is_nested) {
        gbx_args fine = step_args(&outer, &cell, 0, 0);
        gbx_submit_aiv_task(b->o, STEP, &fine);
    }
    gbx_args args = step_args(&inner, &cell, 0, 0);
    gbx_submit_aiv_task(b->o, STEP, &args);
    gbx_scope_end(b->o);
}

int bad_scope(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    uint64_t which = scalar(&b, CASE_AT);
    if (which == AFTER_ITS_END || which == AFTER_NESTED_ENDS) {
        read_after_end(&b, which == AFTER_NESTED_ENDS);
        return 0;
    }
    int depth = which == TOO_DEEP ? 64 : 2;
    for (int i = 0; i < depth; ++i)
        gbx_scope_begin(o);
    if (which == LEFT_OPEN)
        return 0;
    for (int i = 0; i < depth; ++i)
        gbx_scope_end(o);
    if (which == END_WITHOUT_BEGIN)
        gbx_scope_end(o);
    return 0;
}

int bad_memory(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    if (scalar(&b, CASE_AT) == HUGE_MALLOC) {
        gbx_device_malloc(o, UINT64_C(1) << 33);
        return 0;
    }
    const int64_t shape[] = {1 << 20, 1 << 10};
    gbx_tensor cell = cells_at(&b, BAD_AT, 1);
    gbx_tensor output = gbx_new_tensor(GBX_INT64, 2, shape);
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, &cell);
    gbx_args_add_new_output(&args, &output);
    gbx_submit_aiv_task(o, STEP, &args);
    return 0;
}

/*
 * A scope of COUNT tasks, each with a new output of CASE cells, and a task that reads the last one.
 * The tasks before and after the scope do not count.
 */
int scope_of_outputs(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    int64_t size = (int64_t)scalar(&b, CASE_AT);
    gbx_tensor cell = cells_at(&b, BAD_AT, 1);
    gbx_tensor input = cells_at(&b, BAD_AT, 1);
    input.shape[0] = size;
    input.strides[0] = 0; /* one cell for all elements */
    gbx_scope_begin(o);
    gbx_tensor last = input;
    for (uint64_t i = 0; i < scalar(&b, COUNT_AT); ++i) {
        gbx_tensor output = gbx_new_tensor(GBX_INT64, 1, &size);
        gbx_args args = gbx_args_begin();
        gbx_args_add_input(&args, &last);
        gbx_args_add_new_output(&args, &output);
        gbx_args_add_u64(&args, i);
        gbx_args_add_u64(&args, 0);
        gbx_submit_aiv_task(o, STEP, &args);
        last = output;
    }
    gbx_tensor of_last = gbx_view_slice(&last, 0, size - 1, 1);
    gbx_args args = step_args(&of_last, &cell, 5, 0);
    gbx_submit_aiv_task(o, STEP, &args);
    gbx_scope_end(o);
    for (int i = 0; i < 3; ++i)
        add_step(&b, BAD_AT + 1, BAD_AT + 1, 1);
    return 0;
}

/* A scope of COUNT tasks of 30 inputs each and an output that stays. */
int scope_of_many_tensors(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    int64_t one = 1;
    gbx_tensor in = cells_at(&b, 0, 1);
    gbx_tensor cell = cells_at(&b, BAD_AT, 1);
    gbx_tensor output;
    gbx_args args;
    gbx_scope_begin(o);
    for (uint64_t i = 0; i < scalar(&b, COUNT_AT); ++i) {
        output = gbx_new_tensor(GBX_INT64, 1, &one);
        args = gbx_args_begin();
        gbx_args_add_input(&args, &in);
        gbx_args_add_new_output(&args, &output);
        for (int extra = 0; extra < 29; ++extra)
            gbx_args_add_input(&args, &in);
        gbx_args_add_u64(&args, i);
        gbx_submit_aiv_task(o, WIDE, &args);
    }
    args = step_args(&output, &cell, 5, 0);
    gbx_submit_aiv_task(o, STEP, &args);
    gbx_scope_end(o);
    return 0;
}

/* Consecutive scopes with one output each, of different sizes, up to all COUNT cells of the
 * heap. */
int scopes_of_sizes(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    int64_t most = (int64_t)scalar(&b, COUNT_AT);
    gbx_tensor cell = cells_at(&b, 0, 1);
    for (int64_t i = 0; i < 40; ++i) {
        int64_t size = i % 2 ? most : 1 + i * most / 40;
        gbx_tensor output = gbx_new_tensor(GBX_INT64, 1, &size);
        gbx_tensor input = cell;
        input.shape[0] = size;
        input.strides[0] = 0;
        gbx_args args = gbx_args_begin();
        gbx_scope_begin(o);
        gbx_args_add_input(&args, &input);
        gbx_args_add_new_output(&args, &output);
        gbx_args_add_u64(&args, (uint64_t)i);
        gbx_args_add_u64(&args, 0);
        gbx_submit_aiv_task(o, STEP, &args);
        gbx_tensor last = gbx_view_slice(&output, 0, size - 1, 1);
        args = step_args(&last, &cell, 1, 0);
        gbx_submit_aiv_task(o, STEP, &args);
        gbx_scope_end(o);
    }
    return 0;
}

/* COUNT scopes inside another, each with its own output, which feeds that of the outer scope. */
int nested_scopes(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    int64_t one = 1;
    gbx_tensor cell = cells_at(&b, 0, 1);
    gbx_tensor outer = gbx_new_tensor(GBX_INT64, 1, &one);
    gbx_scope_begin(o);
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, &cell);
    gbx_args_add_new_output(&args, &outer);
    gbx_args_add_u64(&args, 0);
    gbx_args_add_u64(&args, 0);
    gbx_submit_aiv_task(o, STEP, &args);
    for (uint64_t i = 0; i < scalar(&b, COUNT_AT); ++i) {
        gbx_tensor inner = gbx_new_tensor(GBX_INT64, 1, &one);
        gbx_scope_begin(o);
        gbx_args_clear(&args);
        gbx_args_add_input(&args, &outer);
        gbx_args_add_new_output(&args, &inner);
        gbx_args_add_u64(&args, i);
        gbx_args_add_u64(&args, 0);
        gbx_submit_aiv_task(o, STEP, &args);
        args = step_args(&inner, &outer, 1, 0);
        gbx_submit_aiv_task(o, STEP, &args);
        gbx_scope_end(o);
    }
    args = step_args(&outer, &cell, 2, 0);
    gbx_submit_aiv_task(o, STEP, &args);
    gbx_scope_end(o);
    return 0;
}

#endif
