/*
 * Correct and wrong graphs, one entry each, on all three runtimes: compiled to a shared object for
 * chips in a process, and into the test for chips in a thread.
 */
#include "orchestrations.h"

#include <pthread.h>

#include <glassbox/orchestration.h>

#define DECLARE(name) int name(gbx_orchestration *o, const gbx_run_args *run);
ORCHESTRATIONS(DECLARE)

#include "orchestration_builder.h"
#include "orchestrations_of_scopes.h"
#include "orchestrations_wrong.h"

/* --- correct graphs --- */

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

/* host_build_graph: COUNT tasks in PRELUDE_CELLS chains, with undescribed raw words. */
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

/* --- tasks that meet --- */

/* Waits at cell `others` until `count` tasks have come. */
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

/* A slow task; the orchestration reads its result while it runs, and the next task adds it. */
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
 * Steps of overlapping views, the first of each pair slow: read after write, write after read and
 * write after write, on complete rows and on every second cell.
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

/* Two tasks with separate views; each waits until the other has begun. */
int disjoint_views(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    add_meeting(&b, gbx_aiv(MEET), 0, 2, 1, scalar(&b, COUNT_AT));
    add_meeting(&b, gbx_aiv(MEET), scalar(&b, CASE_AT) ? 1 : 2, 0, 1, scalar(&b, COUNT_AT));
    return 0;
}

/* --- failures of the device --- */

/* BEFORE tasks, one that fails in the way CASE, and COUNT tasks after it. */
int fault_amid(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    gbx_tensor outputs = cells_at(&b, BAD_AT, 10);
    gbx_args args = gbx_args_begin();
    gbx_args_add_inout(&args, &outputs);
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

/* A mix that waits for one kernel more than it has. */
int mix_that_waits(gbx_orchestration *o, const gbx_run_args *run) {
    builder b = begin(o, run);
    prelude(&b);
    publish(&b, add_meeting(&b, gbx_mix(MEET_AIC, MEET, MEET), BAD_AT, BAD_AT, 4, 0));
    return 0;
}

static volatile uintptr_t low_page; /* 0, hidden from the compiler */

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
