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
    unsigned char poison;
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
    call->poison = 0xa5;
}

static inline void replay_open(replay_call *call) {
    made_replay_open(&call->made, &call->task);
    assert_ok(gbx_replay_task_read(call->made.entries, 0, &call->read));
    assert_ok(gbx_replay_engine_open(&call->config, &call->engine));
}

static inline gbx_replay_request replay_request(const replay_call *call) {
    gbx_replay_request request = {.entries = call->made.entries,
                                  .task = &call->read,
                                  .dispatch = call->dispatch,
                                  .poison = call->poison};
    for (int i = 0; i < GBX_SUBTASK_COUNT; ++i)
        request.objects[i] = compiled_object("replay.c");
    return request;
}

static inline void replay_again(replay_call *call) {
    gbx_replay_request request = replay_request(call);
    memset(&call->outcome, 0xdd, sizeof call->outcome);
    assert_ok(gbx_replay_run(call->engine, &request, &call->outcome));
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

/* The call succeeded, without undeclared writes. */
static inline void assert_clean(const replay_call *call) {
    if (call->outcome.fault.is_there)
        fail_msg("%s", call->outcome.fault.text);
    assert_false(call->outcome.stray_is_unknown);
    assert_int_equal(call->outcome.stray_bytes, 0);
    assert_int_equal(call->outcome.stray_address, 0);
}

static inline void replay_close(replay_call *call) {
    gbx_replay_engine_close(call->engine);
    gbx_replay_task_free(&call->read);
    made_replay_close(&call->made);
}

/* The payload of an argument: one int32 per element of the matrix. */
static inline void replay_values(const replay_call *call, uint32_t argument,
                                 int32_t out_values[REPLAY_CELLS]) {
    assert_ok(gbx_replay_output(call->engine, argument, out_values));
}

/* y = 2 x + number, z += x, like the kernel. */
static inline void assert_affine(const replay_call *call, int32_t number) {
    int32_t y[REPLAY_CELLS];
    int32_t z[REPLAY_CELLS];
    replay_values(call, REPLAY_Y, y);
    replay_values(call, REPLAY_Z, z);
    for (int i = 0; i < REPLAY_CELLS; ++i) {
        assert_int_equal(y[i], 2 * call->x[i] + number);
        assert_int_equal(z[i], call->z[i] + call->x[i]);
    }
}

#endif
