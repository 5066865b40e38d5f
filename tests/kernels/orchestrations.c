/*
 * Graphs that are right and graphs that are wrong, one entry each, on all three runtimes: compiled
 * to a shared object for chips in a process, part of the test for those in a thread.
 */
#include "orchestrations.h"

#include <pthread.h>

#include <glassbox/orchestration.h>

#define DECLARE(name) int name(gbx_orchestration *o, const gbx_run_args *run);
ORCHESTRATIONS(DECLARE)

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

/* On host_build_graph the words are made of the arguments. */
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

/* A task that is not published yet, where that makes a difference. */
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

/* Good tasks before the one that is wrong. */
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

/* --- good ones --- */

int empty(gbx_orchestration *o, const gbx_run_args *run) {
    begin(o, run);
    return 0;
}

/* Each of COUNT tasks steps cell 0 by its number. */
int chain(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    gbx_task last = GBX_NO_TASK;
    for (uint64_t i = 0; i < scalar(&b, COUNT_AT); ++i) {
        gbx_task task = add_step(&b, 0, 0, i);
        follow(&b, last, task);
        publish(&b, task);
        last = task;
    }
    return 0;
}

/* host_build_graph: COUNT tasks in PRELUDE_CELLS chains, by raw words that nobody describes. */
int many_independent(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    uint64_t places[PRELUDE_CELLS];
    for (int i = 0; i < PRELUDE_CELLS; ++i) {
        gbx_tensor cell = cells_at(&b, PRELUDE_AT + i, 1);
        places[i] = gbx_device_tensor(o, &cell);
    }
    for (uint64_t i = 0; i < scalar(&b, COUNT_AT); ++i) {
        uint64_t place = places[i % PRELUDE_CELLS];
        const uint64_t words[] = {place, place, i, 0};
        gbx_task task = gbx_add_task(o, gbx_aiv(STEP), words, 4);
        if (i >= PRELUDE_CELLS)
            gbx_add_successor(o, task - PRELUDE_CELLS, task);
    }
    return 0;
}

/* --- wrong ones; `CASE_AT` tells how --- */

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

/* On host_build_graph only the description is wrong, not what the word points at. */
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

/* Every way to mark, none of them wrong: COUNT steps of cell 0. */
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

/* COUNT tasks in a ring; or two of them, with a task before and two after. */
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

/* --- tensormap_and_ringbuffer --- */

int bad_scope(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    uint64_t which = scalar(&b, CASE_AT);
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
 * A scope of COUNT tasks, each with an output of the runtime of as many cells as CASE says, and one
 * that adds the last up; tasks before and after it do not count.
 */
int scope_of_outputs(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    int64_t size = (int64_t)scalar(&b, CASE_AT);
    gbx_tensor cell = cells_at(&b, BAD_AT, 1);
    gbx_tensor input = cells_at(&b, BAD_AT, 1);
    input.shape[0] = size;
    input.strides[0] = 0; /* the same for all */
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
        gbx_submit_aiv_task(o, TELL, &args);
    }
    args = step_args(&output, &cell, 5, 0);
    gbx_submit_aiv_task(o, STEP, &args);
    gbx_scope_end(o);
    return 0;
}

/* Scope after scope with one output of another size, up to all of a heap of COUNT cells. */
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

/* COUNT scopes inside one, each with an output of its own that feeds the one of the outer. */
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

/* --- tasks that meet --- */

/* `others` is the cell that is waited for until `count` have come. */
static gbx_task add_meeting(const builder *b, gbx_task_kernels kernels, int64_t at, int64_t others,
                            uint64_t count, uint64_t patience_ms) {
    gbx_tensor mine = cells_at(b, at, 2);
    gbx_args args = gbx_args_begin();
    gbx_args_add_inout(&args, &mine);
    gbx_args_add_u64(&args, (uint64_t)others);
    gbx_args_add_u64(&args, count);
    gbx_args_add_u64(&args, patience_ms);
    return add(b, kernels, &args);
}

/* Mixes of 4 blocks that wait for each other; CASE 1: then an error. */
int mixes_that_meet(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    gbx_task_kernels mix = gbx_spmd(gbx_mix(MEET_AIC, MEET, MEET), 4);
    mix.flags = GBX_TASK_SYNC_BLOCKS;
    for (int i = 0; i < 4; ++i)
        publish(&b, add_meeting(&b, mix, BAD_AT + 2 * i, BAD_AT + 2 * i, 12, 0));
    if (scalar(&b, CASE_AT))
        gbx_orchestration_fail(o, "an error beside a mix");
    return 0;
}

/* A slow task; its result is read while it runs, and goes on as what the next one adds. */
int read_result(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    gbx_tensor in = cells_at(&b, 0, 1);
    gbx_tensor out = cells_at(&b, 1, 1);
    gbx_args args = step_args(&in, &out, 4, 100 * 1000);
    gbx_submit_aiv_task(o, STEP, &args);
    uint64_t value = gbx_get_tensor_data(o, &b.cells, (const int64_t[]){1});
    add_step(&b, 0, 2, value);
    return 0;
}

/*
 * Steps of views that overlap, the first of each pair slow: read after write, write after read and
 * write after write, on whole rows and on every second cell.
 */
int hazards(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    gbx_tensor low = cells_at(&b, 0, 8);
    gbx_tensor high = cells_at(&b, 8, 8);
    gbx_tensor even = cells_at(&b, 0, 4);
    even.strides[0] = 2;
    gbx_tensor odd = cells_at(&b, 1, 4);
    odd.strides[0] = 2;
    gbx_tensor result = cells_at(&b, 16, 4);
    gbx_tensor results = cells_at(&b, 20, 8);
    const gbx_tensor *steps[][2] = {
        {&low, &high},     /* slow write of high */
        {&high, &results}, /* reads it */
        {&even, &result},  /* slow read of every second of low */
        {&high, &low},     /* writes it */
        {&odd, &even},     /* slow write of every second */
        {&result, &even},  /* writes it again */
        {&even, &result},  /* reads that */
    };
    for (uint64_t i = 0; i < sizeof steps / sizeof steps[0]; ++i) {
        gbx_args args = step_args(steps[i][0], steps[i][1], i, i % 2 == 0 ? 20000 : 0);
        gbx_submit_aiv_task(o, STEP, &args);
    }
    return 0;
}

/* Two tasks with views side by side; each waits until the other has begun. */
int disjoint_views(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    add_meeting(&b, gbx_aiv(MEET), 0, 2, 1, scalar(&b, COUNT_AT));
    add_meeting(&b, gbx_aiv(MEET), scalar(&b, CASE_AT) ? 1 : 2, 0, 1, scalar(&b, COUNT_AT));
    return 0;
}

/* --- failures of the device --- */

/* BEFORE tasks, one that fails as CASE says, and COUNT after it. */
int fault_amid(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    gbx_tensor told = cells_at(&b, BAD_AT, 10);
    gbx_args args = gbx_args_begin();
    gbx_args_add_inout(&args, &told);
    gbx_args_add_u64(&args, scalar(&b, CASE_AT));
    gbx_args_add_u32(&args, 2); /* in its third block */
    gbx_args_add_u32(&args, GBX_SUBTASK_AIV0);
    gbx_task bad = add(&b, gbx_spmd(gbx_aiv(FAULT), 3), &args);
    publish(&b, bad);
    for (uint64_t i = 0; i < scalar(&b, COUNT_AT); ++i) {
        gbx_task task = i % 2 ? add_step(&b, BAD_AT, BAD_AT, i) : add_step(&b, 0, 0, i);
        follow(&b, i % 2 ? bad : GBX_NO_TASK, task);
        publish(&b, task);
    }
    return 0;
}

/* A mix of which one more would have to come than there are. */
int mix_that_waits(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    publish(&b, add_meeting(&b, gbx_mix(MEET_AIC, MEET, MEET), BAD_AT, BAD_AT, 4, 0));
    return 0;
}

static volatile uintptr_t low_page; /* 0, which the compiler must not know */

int fault_of_its_own(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    switch (scalar(&b, CASE_AT)) {
    case ORCHESTRATION_STORE:
        *(volatile int *)(low_page + 0x18) = 1;
        break;
    case ORCHESTRATION_LOOP:
        for (;;)
            sched_yield();
    case ORCHESTRATION_THREAD_EXIT:
        pthread_exit(NULL);
    }
    return 0;
}
