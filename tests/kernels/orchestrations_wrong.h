/* A part of orchestrations.c: wrong graphs; CASE_AT selects the error. */
#ifndef GBX_TESTS_ORCHESTRATIONS_WRONG_H
#define GBX_TESTS_ORCHESTRATIONS_WRONG_H

#include "orchestration_builder.h"

int bad_kernels(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    gbx_task_kernels kernels = gbx_aiv(STEP);
    switch (scalar(&b, CASE_AT)) {
    case NOT_REGISTERED:
        kernels = gbx_aiv(900);
        break;
    case FAR_FUNC:
        kernels = gbx_mix(STEP_AIC, 70000, STEP);
        break;
    case WRONG_CORE:
        kernels = gbx_aic(STEP);
        break;
    case NO_KERNEL:
        kernels = gbx_aiv(GBX_NO_KERNEL);
        break;
    case NO_BLOCKS:
        kernels.block_num = 0;
        break;
    case MANY_BLOCKS:
        kernels.block_num = 65537;
        break;
    case SYNC_BLOCKS:
        kernels = gbx_spmd(gbx_mix(STEP_AIC, STEP, STEP), 5);
        kernels.flags = GBX_TASK_SYNC_BLOCKS;
        break;
    }
    gbx_tensor cell = cells_at(&b, BAD_AT, 1);
    gbx_args args = step_args(&cell, &cell, 1, 0);
    publish(&b, add(&b, kernels, &args));
    return 0;
}

/* On host_build_graph only the description is wrong, not the tensor that the word points at. */
static void add_bad_tensor(const builder *b, const gbx_tensor *bad, gbx_role role) {
    gbx_tensor good = cells_at(b, BAD_AT, 1);
    gbx_args args = step_args(&good, bad, 1, 0);
    args.roles[1] = (uint8_t)role;
    if (!is_on(b, ON_HOST)) {
        publish(b, add(b, gbx_aiv(STEP), &args));
        return;
    }
    uint64_t word = gbx_device_tensor(b->o, &good);
    const uint64_t words[] = {word, word, 1, 0};
    gbx_tensor_info infos[] = {{0, GBX_ROLE_INPUT, good}, {1, role, *bad}};
    gbx_add_task_with_tensor_info(b->o, gbx_aiv(STEP), words, 4, infos, 2);
}

int bad_tensor(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    gbx_tensor bad = cells_at(&b, BAD_AT + 1, 1);
    gbx_role role = GBX_ROLE_OUTPUT;
    switch (scalar(&b, CASE_AT)) {
    case NULL_POINTER:
        add_bad_tensor(&b, NULL, role);
        return 0;
    case NULL_DATA:
        bad.data = 0;
        break;
    case BAD_DTYPE:
        bad.dtype = 99;
        break;
    case NEGATIVE_SHAPE:
        bad.shape[0] = -4;
        break;
    case BEFORE_MEMORY:
        bad = gbx_tensor_at(0x1000, GBX_INT64, 1, bad.shape);
        break;
    case BEYOND_MEMORY:
        bad.shape[0] = INT64_C(1) << 40;
        bad.buffer_bytes = 0;
        break;
    case BAD_ROLE:
        role = (gbx_role)3;
        break;
    }
    add_bad_tensor(&b, &bad, role);
    return 0;
}

int too_many_arguments(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    gbx_tensor cell = cells_at(&b, BAD_AT, 1);
    gbx_args args = step_args(&cell, &cell, 1, 0);
    const uint64_t words[65] = {0};
    switch (scalar(&b, CASE_AT)) {
    case MANY_TENSORS:
        while (args.tensor_count < 33)
            gbx_args_add_input(&args, &cell);
        break;
    case MANY_SCALARS:
        while (args.scalar_count < 33)
            gbx_args_add_u32(&args, 1);
        break;
    default: /* MANY_WORDS, on the host */
        gbx_add_task(o, gbx_aiv(STEP), words, 65);
        return 0;
    }
    publish(&b, add(&b, gbx_aiv(STEP), &args));
    return 0;
}

/* host_build_graph. */
int bad_tensor_info(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    gbx_tensor cell = cells_at(&b, BAD_AT, 1);
    uint64_t word = gbx_device_tensor(o, &cell);
    uint64_t words[] = {word, word, 1, 0};
    gbx_tensor_info infos[33];
    uint32_t count = 2;
    for (uint32_t i = 0; i < 33; ++i) {
        gbx_tensor_info info = {i, GBX_ROLE_INOUT, cell};
        infos[i] = info;
    }
    uint64_t which = scalar(&b, CASE_AT);
    if (which == INFO_BEYOND)
        infos[1].arg_index = 4;
    else if (which == INFO_TWICE)
        infos[1].arg_index = 0;
    else if (which == INFO_ROLE)
        infos[1].role = 7;
    else if (which == INFO_COUNT)
        count = 33;
    else if (which == INFO_NULL_WORD)
        words[1] = 0;
    gbx_task task = gbx_add_task(o, gbx_aiv(STEP), words, 4);
    gbx_set_tensor_info_to_task(o, which == INFO_TASK ? 123456 : task, infos, count);
    return 0;
}

static void bad_mark_on_host(const builder *b) {
    gbx_task task = add_step(b, BAD_AT, BAD_AT, 1);
    uint64_t which = scalar(b, CASE_AT);
    gbx_dump_task_words(b->o, which == MARK_NOWHERE ? 4321 : task,
                        which == MARK_LAST_WORD ? UINT64_C(1) << 63 : UINT64_C(0x31));
}

int bad_mark(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    if (is_on(&b, ON_HOST)) {
        bad_mark_on_host(&b);
        return 0;
    }
    gbx_tensor cell = cells_at(&b, BAD_AT, 1);
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, &cell);
    gbx_args_add_output(&args, &cell);
    if (scalar(&b, CASE_AT) == MARK_TOO_SOON)
        gbx_args_dump(&args, 3);
    gbx_args_add_u64(&args, 1);
    gbx_args_add_u64(&args, 0);
    gbx_args_dump(&args, 0);
    gbx_args_dump(&args, scalar(&b, CASE_AT) == MARK_FAR ? UINT32_MAX : 4); /* the first counts */
    publish(&b, add(&b, gbx_aiv(STEP), &args));
    return 0;
}

/* Every valid way to mark: COUNT steps of cell 0. */
int good_marks(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    gbx_tensor cell = cells_at(&b, 0, 1);
    gbx_task last = GBX_NO_TASK;
    for (uint64_t i = 0; i < scalar(&b, COUNT_AT); ++i) {
        gbx_args args = step_args(&cell, &cell, i, 0);
        if (i % 3 == 0)
            gbx_args_dump_all(&args);
        for (uint32_t index = 0; i % 3 == 1 && index < 4; ++index)
            gbx_args_dump(&args, index);
        gbx_task task = add(&b, gbx_aiv(STEP), &args);
        if (is_on(&b, ON_HOST))
            gbx_dump_task_words(o, task, i % 3 ? 0xf : UINT64_MAX);
        follow(&b, last, task);
        publish(&b, task);
        last = task;
    }
    return 0;
}

int own_error(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    switch (scalar(&b, CASE_AT)) {
    case RETURN_7:
        return 7;
    case RETURN_MINUS_3:
        return -3;
    case FAIL_WITH_TEXT:
        gbx_orchestration_fail(o, "the input is odd");
        return 0;
    default:
        gbx_orchestration_fail(o, "this came first");
        gbx_orchestration_fail(o, "this came second");
        gbx_get_tensor_data(o, &b.cells, (const int64_t[]){-1});
        publish(&b, add_step(&b, BAD_AT, BAD_AT, 0));
        return 9;
    }
}

int bad_index(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    const int64_t indices[] = {scalar(&b, CASE_AT) == INDEX_NEGATIVE ? -1 : CELLS};
    if (scalar(&b, CASE_AT) == NULL_DEVICE_TENSOR)
        gbx_device_tensor(o, NULL);
    else if (scalar(&b, CASE_AT) == NULL_READ)
        gbx_get_tensor_data(o, NULL, indices);
    else
        gbx_get_tensor_data(o, scalar(&b, CASE_AT) == INDEX_ON_CHIP ? &b.cells : &run->tensors[0],
                            indices);
    return 0;
}

static void call(const builder *b, uint64_t which) {
    gbx_orchestration *o = b->o;
    gbx_tensor cell = cells_at(b, BAD_AT, 1);
    gbx_args args = step_args(&cell, &cell, 1, 0);
    gbx_tensor_info info = {0, GBX_ROLE_INPUT, cell};
    uint64_t word = 1;
    switch (which) {
    case CALL_DEVICE_MALLOC:
        gbx_device_malloc(o, 8);
        break;
    case CALL_COPY_TO_DEVICE:
        gbx_copy_to_device(o, cell.data, &word, sizeof word);
        break;
    case CALL_RETURN_TO_HOST:
        gbx_return_to_host(o, &word, cell.data, sizeof word);
        break;
    case CALL_DEVICE_TENSOR:
        gbx_device_tensor(o, &cell);
        break;
    case CALL_ADD_TASK:
        gbx_add_task(o, gbx_aiv(STEP), &word, 1);
        break;
    case CALL_SET_TENSOR_INFO:
        gbx_set_tensor_info_to_task(o, 0, &info, 1);
        break;
    case CALL_ADD_TASK_WITH_INFO:
        gbx_add_task_with_tensor_info(o, gbx_aiv(STEP), &word, 1, &info, 1);
        break;
    case CALL_ADD_SUCCESSOR:
        gbx_add_successor(o, 0, 1);
        break;
    case CALL_ADD_TASK_WITH_ARGS:
        gbx_add_task_with_args(o, gbx_aiv(STEP), &args);
        break;
    case CALL_ADD_SUCCESSOR_CONDITIONAL:
        gbx_add_successor_conditional(o, 0, 1);
        break;
    case CALL_PUBLISH_TASK:
        gbx_publish_task(o, 0);
        break;
    case CALL_SUBMIT_TASK:
        gbx_submit_aiv_task(o, STEP, &args);
        break;
    case CALL_SCOPE_BEGIN:
        gbx_scope_begin(o);
        break;
    case CALL_SCOPE_END:
        gbx_scope_end(o);
        break;
    case CALL_DUMP_TASK_WORDS:
        gbx_dump_task_words(o, 0, 1);
        break;
    }
}

int refused(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    call(&b, scalar(&b, CASE_AT));
    return 0;
}

int bad_edge(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    gbx_task task = add_step(&b, BAD_AT, BAD_AT, 0);
    switch (scalar(&b, CASE_AT)) {
    case SELF_EDGE:
        gbx_add_successor(o, task, task);
        break;
    case EDGE_FROM_NOWHERE:
        gbx_add_successor(o, 99999, task);
        break;
    case EDGE_TO_NOWHERE:
        gbx_add_successor(o, task, 99998);
        break;
    case EDGE_OF_NO_TASK:
        gbx_add_successor(o, GBX_NO_TASK, task);
        break;
    }
    return 0;
}

/* COUNT tasks in a cycle; or two in a cycle, with a task before and two after. */
int cycle(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    uint64_t count = scalar(&b, COUNT_AT);
    gbx_task first = scalar(&b, BEFORE_AT);
    for (uint64_t i = 0; i < count; ++i)
        add_step(&b, BAD_AT, BAD_AT, i);
    for (uint64_t i = 0; i + 1 < count; ++i)
        gbx_add_successor(o, first + i, first + i + 1);
    if (scalar(&b, CASE_AT) == WHOLE_CYCLE)
        gbx_add_successor(o, first + count - 1, first);
    else
        gbx_add_successor(o, first + 2, first + 1);
    for (uint64_t i = 0; i < count; ++i)
        publish(&b, first + i);
    return 0;
}

/* aicpu_build_graph. */
int bad_publishing(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    int64_t one = 1;
    gbx_tensor cell = cells_at(&b, BAD_AT, 1);
    gbx_tensor output = gbx_new_tensor(GBX_INT64, 1, &one);
    gbx_args args = gbx_args_begin();
    gbx_task task = add_step(&b, BAD_AT, BAD_AT, 0);
    switch (scalar(&b, CASE_AT)) {
    case TWICE:
        gbx_publish_task(o, task);
        gbx_publish_task(o, task);
        break;
    case LATE_EDGE:
        gbx_publish_task(o, task);
        gbx_add_successor(o, add_step(&b, BAD_AT, BAD_AT, 0), task);
        break;
    case NEVER:
        break;
    case THREE_NEVER:
        add_step(&b, BAD_AT + 1, BAD_AT + 1, 0);
        add_step(&b, BAD_AT + 2, BAD_AT + 2, 0);
        break;
    case NEVER_FIRST:
        for (int i = 0; i < 3; ++i) {
            gbx_task after = add_step(&b, BAD_AT, BAD_AT, 0);
            gbx_add_successor(o, after - 1, after);
            gbx_publish_task(o, after);
        }
        break;
    case PUBLISH_NOWHERE:
        gbx_publish_task(o, 77777);
        break;
    case NEW_OUTPUT:
        gbx_publish_task(o, task);
        gbx_args_add_input(&args, &cell);
        gbx_args_add_new_output(&args, &output);
        gbx_add_task_with_args(o, gbx_aiv(STEP), &args);
        break;
    }
    return 0;
}

#endif
