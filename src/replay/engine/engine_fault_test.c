#include "replay_calls.h"

#include <fcntl.h>
#include <signal.h>

enum { LONGEST_MS = 600 * 1000 };

static void assert_text(const replay_call *call, const char *part) {
    assert_non_null(call->outcome.fault);
    if (!strstr(call->outcome.fault->text, part))
        fail_msg("\"%s\" is not in: %s", part, call->outcome.fault->text);
}

/* The text of a fault, and that the next call works as usual. */
static void assert_fault(enum replay_way way, uint64_t number, int signal, const char *text) {
    replay_call call;
    replay_prepare(&call, way, number);
    replay_run(&call);
    if (!call.outcome.fault)
        fail_msg("way %d did not fail", (int)way);
    assert_false(call.outcome.fault->is_hang);
    assert_false(call.outcome.is_clean);
    assert_null(call.outcome.answer);
    assert_int_equal(call.outcome.fault->step, GBX_STEP_RUN);
    assert_int_equal(call.outcome.fault->run, 1);
    assert_int_equal(call.outcome.fault->signal, signal);
    assert_int_equal(call.outcome.fault->dispatch, 0);
    assert_text(&call, "kernel left ");
    assert_text(&call, "block 0, aiv0");
    assert_text(&call, text);
    replay_set_way(&call, WAY_AFFINE, 4);
    replay_again(&call);
    assert_clean(&call);
    assert_affine(&call, 4);
    replay_close(&call);
    assert_false(has_children());
}

static void every_way_to_crash_is_reported(void **state) {
    (void)state;
    assert_fault(WAY_STORE, 0x1230, SIGSEGV, "crashed (block 0, aiv0): SIGSEGV at 0x1230");
    assert_fault(WAY_ABORT, 0, SIGABRT, "SIGABRT");
    assert_fault(WAY_DIVIDE, 0, SIGFPE, "SIGFPE at 0x");
    assert_fault(WAY_OVERFLOW, 0, SIGSEGV, ": its stack is full");
    assert_fault(WAY_EXIT, 0, 0, "ended the process with exit code 0");
    assert_fault(WAY_EXIT, 70, 0, "ended the process with exit code 70");
    assert_fault(WAY_THREAD_END, 0, 0,
                 "ended its thread (block 0, aiv0): pthread_exit; it must return instead");
    assert_fault(WAY_OTHER_THREAD, 0, SIGABRT, "a thread started by a kernel crashed while");
}

/* Block 1 on AIV0 of three blocks of a mix: dispatch 4 of 9. */
static void prepare_three_blocks(replay_call *call, enum replay_way way, uint64_t number) {
    replay_prepare(call, way, number);
    call->task.block_num = 3;
    for (uint32_t i = 0; i < 3; ++i)
        call->task.func_ids[i] = i;
}

static void the_dispatch_that_crashed_is_reported(void **state) {
    (void)state;
    replay_call call;
    uint64_t beyond = REPLAY_BASE + (UINT64_C(9) << 30);
    prepare_three_blocks(&call, WAY_STORE, beyond);
    replay_run(&call);
    assert_int_equal(call.outcome.fault->dispatch, 4);
    assert_true(call.outcome.fault->has_address);
    assert_int_equal(call.outcome.fault->address, beyond);
    assert_text(&call, "kernel left crashed (block 1, aiv0): SIGSEGV at 0x7e9");
    call.dispatch = 4; /* by itself it has the same number */
    replay_again(&call);
    assert_int_equal(call.outcome.fault->dispatch, 4);
    assert_text(&call, "block 1, aiv0");
    replay_close(&call);
}

/* Others have not begun, run or have ended by then. */
static void the_dispatch_that_exits_is_reported(void **state) {
    (void)state;
    replay_call call;
    prepare_three_blocks(&call, WAY_EXIT, 5);
    replay_open(&call);
    for (int i = 0; i < 5; ++i) {
        replay_again(&call);
        assert_int_equal(call.outcome.fault->dispatch, 4);
        assert_text(&call, "kernel left ended the process with exit code 5 (block 1, aiv0)");
    }
    replay_close(&call);
}

/* If one of several ends the process without notice, it is unknown which. */
static void one_of_several_that_ends_the_process_is_not_guessed(void **state) {
    (void)state;
    replay_call call;
    prepare_three_blocks(&call, WAY_END, 9);
    call.z[0] = 0;
    replay_run(&call);
    assert_int_equal(call.outcome.fault->signal, 0);
    assert_text(&call, "one of 9 running calls ended the process with exit code 5 (the first: "
                       "kernel ");
    replay_close(&call);
    replay_prepare(&call, WAY_END, 1);
    call.z[0] = 0;
    replay_run(&call);
    assert_text(&call, "kernel left ended the process with exit code 5 (block 0, aiv0)");
    replay_close(&call);
}

/* --- kernels that do not return --- */

/* All others have returned. */
static void a_kernel_that_waits_forever_is_found(void **state) {
    (void)state;
    replay_call call;
    prepare_three_blocks(&call, WAY_HANG, 0);
    replay_run(&call);
    assert_text(&call, "kernel left waits for a flag that nothing sets (block 1, aiv0)");
    assert_true(call.outcome.fault->is_hang);
    assert_true(call.outcome.fault->is_stuck);
    assert_int_equal(call.outcome.fault->signal, 0);
    assert_int_equal(call.outcome.fault->dispatch, 4);
    replay_set_way(&call, WAY_AFFINE, 9);
    call.dispatch = 4; /* rows 1, 4 and 7 */
    replay_again(&call);
    assert_clean(&call);
    int32_t y[REPLAY_CELLS], start[REPLAY_CELLS];
    replay_values(&call, REPLAY_Y, GBX_KEPT_FIRST, y);
    replay_values(&call, REPLAY_Y, GBX_KEPT_START, start);
    for (int i = 0; i < REPLAY_CELLS; ++i)
        assert_int_equal(y[i], i / REPLAY_COLUMNS % 3 == 1 ? 2 * call.x[i] + 9 : start[i]);
    replay_close(&call);
    assert_false(has_children());
}

/* Nine dispatches wait for a tenth, each at the flag. */
static void the_flags_that_dispatches_wait_for_are_reported(void **state) {
    (void)state;
    replay_call call;
    prepare_three_blocks(&call, WAY_MEET, 10);
    call.z[0] = 0;
    replay_run(&call);
    assert_text(&call, "waits for a flag that nothing sets (block 0, aic, while 8 more ran)");
    const gbx_replay_fault *fault = call.outcome.fault;
    assert_true(fault->is_stuck);
    assert_int_equal(fault->wait_count, 9);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < fault->wait_count; ++i) {
        assert_true(fault->waits[i].dispatch < 9);
        seen |= 1u << fault->waits[i].dispatch;
        assert_int_equal(fault->waits[i].has_address, 1);
        assert_int_equal(fault->waits[i].address, REPLAY_BASE + 0x20000);
    }
    assert_int_equal(seen, 0x1ff);
    replay_close(&call);
}

/* The limit counts for each call and for loading, which may take long on a stalled machine. */
static gbx_status run_spinning(replay_call *call, uint32_t seconds) {
    prepare_three_blocks(call, WAY_SPIN, 0);
    call->config.timeout_ms = seconds * 1000;
    replay_open(call);
    gbx_replay_request request = replay_request(call);
    return replay_try(call, &request);
}

static bool is_of_dispatch(const replay_call *call, uint32_t dispatch) {
    return call->outcome.fault && call->outcome.fault->dispatch == dispatch;
}

static void a_kernel_that_spins_is_reported(void **state) {
    (void)state;
    replay_call call;
    char text[64];
    uint32_t seconds = 1;
    gbx_status status = run_spinning(&call, seconds);
    while ((status || !is_of_dispatch(&call, 4)) && seconds < 100) {
        gbx_status_free(status);
        replay_close(&call);
        status = run_spinning(&call, seconds *= 5);
    }
    assert_ok(status);
    snprintf(text, sizeof text, "kernel left did not return within %d s (block 1, aiv0)",
             (int)seconds);
    assert_text(&call, text);
    assert_non_null(call.outcome.fault);
    assert_true(call.outcome.fault->is_hang);
    assert_false(call.outcome.fault->is_stuck);
    assert_int_equal(call.outcome.fault->signal, 0);
    assert_int_equal(call.outcome.fault->dispatch, 4);
    replay_close(&call);
    assert_false(has_children());
}

/* x takes more memory than may be in use beside other tasks. */
static void prepare_meeting(replay_call *call, bool is_large) {
    static int32_t x[16400];
    replay_prepare(call, WAY_MEET_SPIN, 2);
    call->task.block_num = 2;
    call->z[0] = 0;
    if (!is_large)
        return;
    call->arguments[REPLAY_X].before = x;
    call->arguments[REPLAY_X].address += 0x100000;
    call->arguments[REPLAY_X].shape[0] = 16400;
    call->arguments[REPLAY_X].shape[1] = 1;
    call->arguments[REPLAY_X].strides[0] = 1024;
}

static gbx_status run_meeting(replay_call *call, bool is_large, uint32_t seconds) {
    prepare_meeting(call, is_large);
    call->config.timeout_ms = seconds * 1000;
    replay_open(call);
    gbx_replay_request request = replay_request(call);
    return replay_try(call, &request);
}

/* Each of two dispatches spins alone until the time is over; then they are called without that. */
static void dispatches_that_spin_alone_are_called_together(void **state) {
    (void)state;
    for (int is_large = 0; is_large < 2; ++is_large) {
        replay_call call;
        uint32_t seconds = 1;
        gbx_status status = run_meeting(&call, is_large, seconds);
        while ((status || call.outcome.fault) && seconds < 100) {
            gbx_status_free(status);
            replay_close(&call);
            status = run_meeting(&call, is_large, seconds *= 5);
        }
        assert_ok(status);
        assert_clean(&call);
        assert_int_equal(call.outcome.answer->order, GBX_ORDER_SPINS);
        int32_t y[REPLAY_CELLS], z[REPLAY_CELLS];
        replay_values(&call, REPLAY_Y, GBX_KEPT_FIRST, y);
        replay_values(&call, REPLAY_Z, GBX_KEPT_FIRST, z);
        assert_int_equal(y[GBX_SUBTASK_AIV0], 7 + GBX_SUBTASK_AIV0);
        assert_int_equal(y[REPLAY_COLUMNS + GBX_SUBTASK_AIV0], 107 + GBX_SUBTASK_AIV0);
        assert_int_equal(z[0], 2);
        replay_close(&call);
    }
}

/* --- memory that the task was not given --- */

/* A page around each tensor is there, to see strays; the next one faults. */
static void other_memory_faults(void **state) {
    (void)state;
    static const uint64_t places[] = {REPLAY_BASE - 0x1001, REPLAY_BASE + 0x2000,
                                      REPLAY_BASE + 0x10000 - 0x1001, REPLAY_BASE + 0x22000,
                                      REPLAY_BASE + 0x400001};
    replay_call call;
    char text[64];
    replay_prepare(&call, WAY_AFFINE, 0);
    replay_open(&call);
    for (size_t i = 0; i < 2 * (sizeof places / sizeof places[0]); ++i) {
        uint64_t place = places[i / 2];
        replay_set_way(&call, i % 2 ? WAY_STORE : WAY_LOAD, place);
        replay_again(&call);
        snprintf(text, sizeof text, "kernel left crashed (block 0, aiv0): SIGSEGV at 0x%llx",
                 (unsigned long long)place);
        assert_text(&call, text);
        assert_true(call.outcome.fault->has_address);
        assert_int_equal(call.outcome.fault->address, place);
        assert_int_equal(call.outcome.fault->access,
                         i % 2 ? GBX_CALL_ACCESS_WRITE : GBX_CALL_ACCESS_READ);
    }
    replay_close(&call);
}

/* y has the other sign in the call with the other pattern. */
static void the_call_that_crashed_is_reported(void **state) {
    (void)state;
    replay_call call;
    uint32_t steps = 0;
    replay_prepare(&call, WAY_SIGN, 0);
    replay_open(&call);
    for (uint64_t is_negative = 0; is_negative < 2; ++is_negative) {
        replay_set_way(&call, WAY_SIGN, is_negative);
        replay_again(&call);
        assert_text(&call, "SIGABRT");
        steps |= 1u << call.outcome.fault->step;
    }
    assert_int_equal(steps, 1u << GBX_STEP_RUN | 1u << GBX_STEP_OTHER);
    replay_close(&call);
}

/* What a crashed call wrote is gone: the next one begins as if there had been none. */
static void nothing_of_a_crash_stays(void **state) {
    (void)state;
    replay_call call;
    int32_t y[REPLAY_CELLS], start[REPLAY_CELLS], fresh[REPLAY_CELLS];
    replay_prepare(&call, WAY_NOTHING, 0);
    replay_run(&call);
    replay_values(&call, REPLAY_Y, GBX_KEPT_START, fresh);
    replay_set_way(&call, WAY_STRAY, 8); /* writes all outputs, then crashes */
    replay_again(&call);
    assert_text(&call, "SIGSEGV at 0x8");
    replay_set_way(&call, WAY_NOTHING, 0);
    replay_again(&call);
    assert_clean(&call);
    replay_values(&call, REPLAY_Y, GBX_KEPT_START, start);
    replay_values(&call, REPLAY_Y, GBX_KEPT_FIRST, y);
    assert_memory_equal(start, fresh, sizeof start);
    assert_memory_equal(y, fresh, sizeof y);
    replay_values(&call, REPLAY_Z, GBX_KEPT_FIRST, y);
    assert_memory_equal(y, call.z, sizeof y);
    replay_close(&call);
}

/* --- kernels that cannot be loaded --- */

/* Within a timeout that a stalled machine may exceed. */
static void run_until_it_ends(replay_call *call) {
    bool has_ended = false;
    for (int i = 0; i < 10 && !has_ended; ++i) {
        gbx_replay_request request = replay_request(call);
        gbx_status status = replay_try(call, &request);
        has_ended = !status && !call->outcome.fault;
        gbx_status_free(status);
    }
    assert_true(has_ended);
}

static void assert_refused(const char *file, const char *text, uint32_t timeout_ms) {
    replay_call call;
    char path[512];
    replay_prepare(&call, WAY_AFFINE, 0);
    call.config.timeout_ms = timeout_ms;
    replay_open(&call);
    gbx_replay_request request = replay_request(&call);
    snprintf(path, sizeof path, "%s", file[0] == '/' ? file : compiled_object(file));
    request.objects[1] = path;
    assert_fails(replay_try(&call, &request), GBX_BAD_KERNEL, text);
    run_until_it_ends(&call);
    assert_clean(&call);
    assert_affine(&call, 0);
    replay_close(&call);
}

static void kernels_that_cannot_be_loaded_are_refused(void **state) {
    (void)state;
    assert_refused("/nowhere/kernel.so", "/nowhere/kernel.so", LONGEST_MS);
    assert_refused("no_entry.c", "no kernel_entry", LONGEST_MS);
    assert_refused("undefined_symbol.c", "undefined symbol", LONGEST_MS);
    assert_refused("broken_constructor.c", "a constructor of a shared object failed: SIG",
                   LONGEST_MS);
    assert_refused("endless_constructor.c", "it did not return in time", 3000);
}

static void objects_need_absolute_paths(void **state) {
    (void)state;
    replay_call call;
    replay_prepare(&call, WAY_AFFINE, 0);
    replay_open(&call);
    gbx_replay_request request = replay_request(&call);
    request.objects[1] = "kernel.so";
    assert_fails(replay_try(&call, &request), GBX_INVALID_ARGUMENT, "kernel left", "absolute path");
    request.objects[1] = NULL;
    assert_fails(replay_try(&call, &request), GBX_INVALID_ARGUMENT, "kernel left", "absolute path");
    replay_close(&call);
}

/* --- the program --- */

static void the_program_has_to_be_there(void **state) {
    (void)state;
    replay_call call;
    replay_prepare(&call, WAY_AFFINE, 0);
    call.config.child_program = "/nowhere/glassbox-call";
    replay_open(&call);
    gbx_replay_request request = replay_request(&call);
    assert_fails(replay_try(&call, &request), GBX_NOT_FOUND,
                 "calling kernels: /nowhere/glassbox-call, named by the configuration");
    replay_close(&call);
    assert_fails(
        gbx_replay_engine_open(&(gbx_replay_engine_config){.chip_blocks = 25}, &call.engine),
        GBX_INVALID_ARGUMENT, "25 blocks");
}

/* Output of kernels goes to standard error; the kernel is called three times. */
static void kernels_do_not_print_to_our_output(void **state) {
    (void)state;
    replay_call call;
    char path[192];
    char text[64] = "";
    replay_prepare(&call, WAY_PRINT, 5);
    replay_open(&call);
    snprintf(path, sizeof path, "%s/printed", call.made.files.root);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int before = dup(STDERR_FILENO);
    assert_true(file >= 0 && before >= 0);
    fflush(stderr);
    assert_int_equal(dup2(file, STDERR_FILENO), STDERR_FILENO);
    replay_again(&call);
    assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
    assert_affine(&call, 5);
    assert_true(pread(file, text, sizeof text - 1, 0) > 0);
    assert_string_equal(text, "a kernel prints\na kernel prints\na kernel prints\n");
    close(before);
    close(file);
    unlink(path);
    replay_close(&call);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_to_crash_is_reported),
        cmocka_unit_test(the_dispatch_that_crashed_is_reported),
        cmocka_unit_test(the_dispatch_that_exits_is_reported),
        cmocka_unit_test(one_of_several_that_ends_the_process_is_not_guessed),
        cmocka_unit_test(a_kernel_that_waits_forever_is_found),
        cmocka_unit_test(the_flags_that_dispatches_wait_for_are_reported),
        cmocka_unit_test(a_kernel_that_spins_is_reported),
        cmocka_unit_test(dispatches_that_spin_alone_are_called_together),
        cmocka_unit_test(other_memory_faults),
        cmocka_unit_test(the_call_that_crashed_is_reported),
        cmocka_unit_test(nothing_of_a_crash_stays),
        cmocka_unit_test(kernels_that_cannot_be_loaded_are_refused),
        cmocka_unit_test(objects_need_absolute_paths),
        cmocka_unit_test(the_program_has_to_be_there),
        cmocka_unit_test(kernels_do_not_print_to_our_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
