#include "replay_calls.h"

#include <fcntl.h>
#include <signal.h>

enum { LONGEST_MS = 600 * 1000 };

static void assert_text(const replay_call *call, const char *part) {
    if (!strstr(call->outcome.fault.text, part))
        fail_msg("\"%s\" is not in: %s", part, call->outcome.fault.text);
}

/* The text of a fault, and that the next call works as usual. */
static void assert_fault(enum replay_way way, uint64_t number, int signal, const char *text) {
    replay_call call;
    replay_prepare(&call, way, number);
    replay_run(&call);
    if (!call.outcome.fault.is_there)
        fail_msg("way %d did not fail", (int)way);
    assert_false(call.outcome.fault.is_hang);
    assert_int_equal(call.outcome.fault.signal, signal);
    assert_int_equal(call.outcome.fault.dispatch, 0);
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
    assert_fault(WAY_OVERFLOW, 0, SIGSEGV, "SIGSEGV at 0x");
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
    assert_int_equal(call.outcome.fault.dispatch, 4);
    assert_true(call.outcome.fault.has_address);
    assert_int_equal(call.outcome.fault.address, beyond);
    assert_text(&call, "kernel left crashed (block 1, aiv0): SIGSEGV at 0x7e9");
    call.dispatch = 4; /* by itself it has the same number */
    replay_again(&call);
    assert_int_equal(call.outcome.fault.dispatch, 4);
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
        assert_int_equal(call.outcome.fault.dispatch, 4);
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
    assert_int_equal(call.outcome.fault.signal, 0);
    assert_text(&call, "one of 9 running calls ended the process with exit code 5 (the first: "
                       "kernel ");
    replay_close(&call);
    replay_prepare(&call, WAY_END, 1);
    call.z[0] = 0;
    replay_run(&call);
    assert_text(&call, "kernel left ended the process with exit code 5 (block 0, aiv0)");
    replay_close(&call);
}

/* From the order on: includes loading, which may take long on a stalled machine. */
static gbx_status run_hanging(replay_call *call, uint32_t seconds) {
    prepare_three_blocks(call, WAY_HANG, 0);
    call->config.timeout_ms = seconds * 1000;
    replay_open(call);
    gbx_replay_request request = replay_request(call);
    return gbx_replay_run(call->engine, &request, &call->outcome);
}

static void a_kernel_that_hangs_is_reported(void **state) {
    (void)state;
    replay_call call;
    char text[64];
    uint32_t seconds = 2;
    gbx_status status = run_hanging(&call, seconds);
    while ((status || call.outcome.fault.dispatch != 4) && seconds < 100) {
        gbx_status_free(status);
        replay_close(&call);
        status = run_hanging(&call, seconds *= 5);
    }
    assert_ok(status);
    assert_true(call.outcome.fault.is_there);
    assert_true(call.outcome.fault.is_hang);
    assert_int_equal(call.outcome.fault.signal, 0);
    assert_int_equal(call.outcome.fault.dispatch, 4);
    snprintf(text, sizeof text, "kernel left did not return within %d s (block 1, aiv0)",
             (int)seconds);
    assert_text(&call, text);
    replay_close(&call);
    assert_false(has_children());
}

/* What it wrote before can be read: strays and outputs. */
static void memory_outlives_a_crash(void **state) {
    (void)state;
    replay_call call;
    int32_t y[REPLAY_CELLS];
    replay_prepare(&call, WAY_STORE, REPLAY_BASE + 0x30000);
    replay_run(&call); /* it may store there: memory of the chip that no tensor has */
    assert_false(call.outcome.fault.is_there);
    assert_int_equal(call.outcome.stray_bytes, 1);
    assert_int_equal(call.outcome.stray_address, REPLAY_BASE + 0x30000);
    replay_set_way(&call, WAY_ABORT, 0);
    replay_again(&call);
    assert_true(call.outcome.fault.is_there);
    assert_int_equal(call.outcome.stray_bytes, 0);
    replay_values(&call, REPLAY_Y, y);
    for (int i = 0; i < REPLAY_CELLS; ++i)
        assert_int_equal((uint32_t)y[i], 0xa5a5a5a5u);
    replay_close(&call);
}

/* --- kernels that cannot be loaded --- */

/* Within a timeout that a stalled machine may exceed. */
static void run_until_it_ends(replay_call *call) {
    bool has_ended = false;
    for (int i = 0; i < 10 && !has_ended; ++i) {
        gbx_replay_request request = replay_request(call);
        gbx_status status = gbx_replay_run(call->engine, &request, &call->outcome);
        has_ended = !status && !call->outcome.fault.is_hang;
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
    assert_fails(gbx_replay_run(call.engine, &request, &call.outcome), GBX_BAD_KERNEL, text);
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
    assert_fails(gbx_replay_run(call.engine, &request, &call.outcome), GBX_INVALID_ARGUMENT,
                 "kernel left", "absolute path");
    request.objects[1] = NULL;
    assert_fails(gbx_replay_run(call.engine, &request, &call.outcome), GBX_INVALID_ARGUMENT,
                 "kernel left", "absolute path");
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
    assert_fails(gbx_replay_run(call.engine, &request, &call.outcome), GBX_NOT_FOUND,
                 "calling kernels: /nowhere/glassbox-call, named by the configuration");
    replay_close(&call);
    assert_fails(
        gbx_replay_engine_open(&(gbx_replay_engine_config){.chip_blocks = 25}, &call.engine),
        GBX_INVALID_ARGUMENT, "25 blocks");
}

/* Output of kernels goes to standard error. */
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
    assert_string_equal(text, "a kernel prints\n");
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
        cmocka_unit_test(a_kernel_that_hangs_is_reported),
        cmocka_unit_test(memory_outlives_a_crash),
        cmocka_unit_test(kernels_that_cannot_be_loaded_are_refused),
        cmocka_unit_test(objects_need_absolute_paths),
        cmocka_unit_test(the_program_has_to_be_there),
        cmocka_unit_test(kernels_do_not_print_to_our_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
