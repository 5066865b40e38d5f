/* The kernel of tests/kernels/replay.c as a task of a hand-made dump, called again by an engine. */
#ifndef GBX_TESTS_REPLAY_CALLS_H
#define GBX_TESTS_REPLAY_CALLS_H

#include "replay_dump.h"

#include "chip_support.h"
#include "kernels/replay_ways.h"
#include "replay/engine/engine.h"

#define REPLAY_BASE UINT64_C(0x7e9000100000)
enum { REPLAY_ROWS = 8, REPLAY_COLUMNS = 6, REPLAY_CELLS = REPLAY_ROWS * REPLAY_COLUMNS };
enum { REPLAY_X = 0, REPLAY_Y = 1, REPLAY_Z = 2, REPLAY_WAY = 3, REPLAY_NUMBER = 4 };

typedef struct replay_call {
    int32_t x[REPLAY_CELLS];
    int32_t z[REPLAY_CELLS];
    int32_t y_after[REPLAY_CELLS]; /* what the dump says */
    made_argument arguments[5];
    made_task task;
    made_replay made;
    gbx_replay_task read;
    gbx_replay_engine_config config;
    gbx_replay_engine *engine;
    gbx_replay_outcome outcome;
    int64_t dispatch;
} replay_call;

static inline made_argument replay_matrix(unsigned role, uint64_t address) {
    return (made_argument){.role = role,
                           .dtype = GBX_INT32,
                           .ndims = 2,
                           .address = address,
                           .shape = {REPLAY_ROWS, REPLAY_COLUMNS},
                           .strides = {REPLAY_COLUMNS, 1}};
}

static inline made_argument replay_scalar(uint64_t bits) {
    return (made_argument){.is_scalar = true, .dtype = GBX_UINT64, .bits = bits};
}

/* One block on AIV0, three separate matrices, and their values. */
static inline void replay_prepare(replay_call *call, enum replay_way way, uint64_t number) {
    memset(call, 0, sizeof *call);
    for (int i = 0; i < REPLAY_CELLS; ++i) {
        call->x[i] = 1000 + 7 * i;
        call->z[i] = -50 * i;
        call->y_after[i] = 5 * i + 3;
    }
    call->arguments[REPLAY_X] = replay_matrix(0, REPLAY_BASE);
    call->arguments[REPLAY_X].before = call->x;
    call->arguments[REPLAY_Y] = replay_matrix(1, REPLAY_BASE + 0x10000);
    call->arguments[REPLAY_Y].after = call->y_after;
    call->arguments[REPLAY_Z] = replay_matrix(2, REPLAY_BASE + 0x20000);
    call->arguments[REPLAY_Z].before = call->z;
    call->arguments[REPLAY_Z].after = call->y_after;
    call->arguments[REPLAY_WAY] = replay_scalar(way);
    call->arguments[REPLAY_NUMBER] = replay_scalar(number);
    call->task = (made_task){.func_ids = {UINT32_MAX, 1, UINT32_MAX},
                             .block_num = 1,
                             .arguments = call->arguments,
                             .argument_count = 5};
    call->config.timeout_ms = 600 * 1000; /* for calls that end by themselves */
    call->dispatch = -1;
}

/* The dump and an engine for it, without reading the task. */
static inline void replay_open_engine(replay_call *call) {
    made_replay_open(&call->made, &call->task);
    call->config.payload_path = gbx_reader_get_origin(call->made.reader)->payload_path;
    assert_ok(gbx_replay_engine_open(&call->config, &call->engine));
}

static inline void replay_open(replay_call *call) {
    replay_open_engine(call);
    assert_ok(gbx_replay_task_read(call->made.entries, 0, &call->read));
}

static inline gbx_replay_request replay_request(const replay_call *call) {
    gbx_replay_request request = {.task = &call->read, .dispatch = call->dispatch};
    for (int i = 0; i < GBX_SUBTASK_COUNT; ++i)
        request.objects[i] = compiled_object("replay.c");
    return request;
}

/* The outcome is that of the last run; it is freed with the call. */
static inline gbx_status replay_try(replay_call *call, const gbx_replay_request *request) {
    gbx_replay_outcome_free(&call->outcome);
    memset(&call->outcome, 0xdd, sizeof call->outcome);
    return gbx_replay_run(call->engine, request, &call->outcome);
}

static inline void replay_again(replay_call *call) {
    gbx_replay_request request = replay_request(call);
    assert_ok(replay_try(call, &request));
}

/* Changes the way for the runs that follow. */
static inline void replay_set_way(replay_call *call, enum replay_way way, uint64_t number) {
    call->read.arguments[REPLAY_WAY].bits = way;
    call->read.arguments[REPLAY_NUMBER].bits = number;
}

static inline void replay_run(replay_call *call) {
    replay_open(call);
    replay_again(call);
}

/* All calls returned, without undeclared writes or anything else to report. */
static inline void assert_clean(const replay_call *call) {
    if (call->outcome.fault)
        fail_msg("%s", call->outcome.fault->text);
    const gbx_answer *answer = call->outcome.answer;
    assert_non_null(answer);
    assert_false(answer->stray_is_unknown);
    assert_int_equal(answer->stray_bytes, 0);
    assert_int_equal(answer->stray_address, 0);
    assert_int_equal(answer->finding_count, 0);
    assert_int_equal(answer->findings_left_out, 0);
}

/* All calls returned, and changed so many bytes outside of outputs, which is the only finding. */
static inline void assert_strays(const replay_call *call, uint64_t address, uint64_t bytes,
                                 uint64_t end) {
    if (call->outcome.fault)
        fail_msg("%s", call->outcome.fault->text);
    const gbx_answer *answer = call->outcome.answer;
    assert_non_null(answer);
    assert_false(answer->stray_is_unknown);
    assert_int_equal(answer->stray_bytes, bytes);
    assert_int_equal(answer->stray_address, address);
    assert_int_equal(answer->finding_count, 1);
    const gbx_task_finding *finding = &answer->findings[0];
    assert_int_equal(finding->kind, GBX_STRAY_WRITE);
    assert_int_equal(finding->argument, GBX_NO_ARGUMENT);
    assert_int_equal(finding->bytes, bytes);
    assert_int_equal(finding->address, address);
    assert_int_equal(finding->end, end);
}

static inline void replay_close(replay_call *call) {
    gbx_replay_outcome_free(&call->outcome);
    gbx_replay_engine_close(call->engine);
    gbx_replay_task_free(&call->read);
    made_replay_close(&call->made);
}

/* The payload of an argument: one int32 per element of the matrix. */
static inline void replay_values(const replay_call *call, uint32_t argument, gbx_replay_kept which,
                                 int32_t out_values[REPLAY_CELLS]) {
    assert_ok(gbx_replay_output(call->engine, argument, which, out_values));
}

/* y = 2 x + number, z += x, like the kernel, whatever y held before. */
static inline void assert_affine(const replay_call *call, int32_t number) {
    for (int i = 0; i < 2; ++i) {
        gbx_replay_kept which = i ? GBX_KEPT_OTHER : GBX_KEPT_FIRST;
        int32_t y[REPLAY_CELLS];
        int32_t z[REPLAY_CELLS];
        replay_values(call, REPLAY_Y, which, y);
        replay_values(call, REPLAY_Z, which, z);
        for (int k = 0; k < REPLAY_CELLS; ++k) {
            assert_int_equal(y[k], 2 * call->x[k] + number);
            assert_int_equal(z[k], call->z[k] + call->x[k]);
        }
    }
}

#endif
