/*
 * Kernels that crash, hang or overwrite memory, and chips that are killed: the message names each,
 * the host survives and runs again at once, memory can still be read, and nothing is left behind.
 * Only chips in a process: in a thread, a fault is the host's own.
 */
#include "chip_support.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/fault_ways.h"

enum { FAULT = 7, FAULT_AIC = 8, ADD = 1, BLOCKS = 4, TASK_BLOCKS = 6, BAD_BLOCK = 5 };
enum { LONGEST_MS = 600 * 1000 }; /* longest wait, even on a busy machine */

typedef struct leftovers {
    size_t files;
    size_t mappings;
} leftovers;

static leftovers count_leftovers(void) {
    leftovers now = {.files = count_open_files(), .mappings = count_mappings_of("glassbox-gm")};
    return now;
}

static void assert_nothing_left(leftovers before) {
    leftovers now = count_leftovers();
    assert_int_equal(now.files, before.files);
    assert_int_equal(now.mappings, before.mappings);
    assert_false(has_children());
}

static gbx_tensor output_of(gbx_chip *chip) {
    const uint64_t zeros[OUTPUTS] = {0};
    return vector_at(put(chip, zeros, sizeof zeros), GBX_UINT64, OUTPUTS);
}

/* Calls the kernel that fails, on the cores of one subtask; `timeout_ms` 0 for the default. */
static gbx_status call_fault_on(gbx_chip *chip, const gbx_tensor *output, gbx_subtask subtask,
                                uint64_t way, uint32_t timeout_ms) {
    const uint64_t scalars[] = {way, BAD_BLOCK, subtask};
    gbx_call call = gbx_call_mix(GBX_NO_KERNEL, GBX_NO_KERNEL, GBX_NO_KERNEL);
    call.kernels[subtask] = subtask == GBX_SUBTASK_AIC ? FAULT_AIC : FAULT;
    call.block_num = TASK_BLOCKS;
    call.tensors = output;
    call.tensor_count = 1;
    call.scalars = scalars;
    call.scalar_count = 3;
    gbx_call_config config = {.timeout_ms = timeout_ms};
    return gbx_chip_call(chip, &call, &config, NULL);
}

static gbx_status call_fault(gbx_chip *chip, const gbx_tensor *output, uint64_t way,
                             uint32_t timeout_ms) {
    return call_fault_on(chip, output, GBX_SUBTASK_AIV0, way, timeout_ms);
}

/* Another chip computes correct values at once. */
static void assert_host_runs_again(const chip_variant *variant) {
    const float a[4] = {1, 2, 3, 4};
    float c[4] = {0};
    gbx_chip *chip = open_chip(variant, 1);
    register_kernel(chip, ADD, GBX_CORE_AIV, "add.c");
    gbx_tensor tensors[] = {vector_at(put(chip, a, sizeof a), GBX_FLOAT32, 4),
                            vector_at(put(chip, a, sizeof a), GBX_FLOAT32, 4),
                            vector_at(put(chip, c, sizeof c), GBX_FLOAT32, 4)};
    gbx_call call = call_of(ADD, GBX_CORE_AIV, 1, tensors, 3);
    assert_ok(gbx_chip_call(chip, &call, NULL, NULL));
    assert_ok(gbx_gm_copy_out(chip, c, tensors[2].data, sizeof c));
    const float expected[4] = {2, 4, 6, 8};
    assert_memory_equal(c, expected, sizeof c);
    gbx_chip_close(chip);
}

/* What the failed block wrote before is in memory, whether or not the chip has ended. */
static void assert_memory_survived(gbx_chip *chip, const gbx_tensor *output) {
    uint64_t values[OUTPUTS];
    assert_ok(gbx_gm_copy_out(chip, values, output->data, sizeof values));
    assert_int_equal(values[BAD_BLOCK], 100 + BAD_BLOCK);
}

/* The chip refuses further calls and says why. */
static void assert_chip_is_over(gbx_chip *chip, const gbx_tensor *output) {
    char path[4096];
    gbx_kernel kernel = test_kernel(ADD, GBX_CORE_AIV, "add.c", path);
    assert_true(gbx_chip_has_failed(chip));
    assert_fails(call_fault(chip, output, 0, 0), GBX_DEVICE_LOST, "this chip has failed (",
                 "open another");
    assert_fails(gbx_kernel_register(chip, &kernel), GBX_DEVICE_LOST, "this chip has failed (");
}

typedef enum address_check {
    ADDRESS_EXACT, /* the one that the kernel reported */
    ADDRESS_CODE,  /* an instruction near kernel_entry */
    ADDRESS_STACK, /* in the address range of stacks and code, but not in the code */
    ADDRESS_NONE   /* no address is printed */
} address_check;

/*
 * The message names the core that the kernel reported, by number and by name, and the address. A
 * task of one vector subtask runs on any vector core.
 */
static void check_place(gbx_chip *chip, const gbx_tensor *output, const char *message,
                        gbx_subtask subtask, address_check check) {
    static const char *const names[] = {"AIC", "AIV0", "AIV1"};
    uint64_t reported[OUTPUTS];
    char place[128];
    assert_ok(gbx_gm_copy_out(chip, reported, output->data, sizeof reported));
    snprintf(place, sizeof place,
             " of task 0 on core %d (%s of chip block %d), task block 5 of 6 raised ",
             (int)reported[CORE_AT], names[reported[CORE_AT] % 3], (int)reported[CORE_AT] / 3);
    assert_in_range(reported[CORE_AT], 0, 3 * BLOCKS - 1);
    assert_int_equal(reported[CORE_AT] % 3 == GBX_SUBTASK_AIC, subtask == GBX_SUBTASK_AIC);
    assert_non_null(strstr(message, place));
    const char *at = strstr(message, " at address 0x");
    assert_int_equal(at == NULL, check == ADDRESS_NONE);
    if (!at)
        return;
    uint64_t address = strtoull(at + strlen(" at address "), NULL, 16);
    if (check == ADDRESS_EXACT)
        assert_int_equal(address, reported[ADDRESS_AT]);
    else if (check == ADDRESS_CODE)
        assert_in_range(address, reported[ADDRESS_AT] - 4096, reported[ADDRESS_AT] + 4096);
    else
        assert_in_range(address > reported[ADDRESS_AT] ? address - reported[ADDRESS_AT]
                                                       : reported[ADDRESS_AT] - address,
                        4096, UINT64_C(1) << 40);
}

static void check_signal_on(const chip_variant *variant, gbx_subtask subtask, uint64_t way,
                            const char *signal, address_check check) {
    leftovers before = count_leftovers();
    gbx_chip *chip = open_chip(variant, BLOCKS);
    register_kernel(chip, FAULT, GBX_CORE_AIV, "fault.c");
    register_kernel(chip, FAULT_AIC, GBX_CORE_AIC, "fault.c");
    gbx_tensor output = output_of(chip);
    gbx_status status = call_fault_on(chip, &output, subtask, way, 0);
    assert_int_equal(gbx_status_code(status), GBX_DEVICE_FAULT);
    check_place(chip, &output, gbx_status_message(status), subtask, check);
    assert_fails(status, GBX_DEVICE_FAULT,
                 subtask == GBX_SUBTASK_AIC ? "kernel fault.c (func 8)" : "kernel fault.c (func 7)",
                 signal);
    assert_memory_survived(chip, &output);
    assert_chip_is_over(chip, &output);
    assert_host_runs_again(variant); /* beside the failed one */
    gbx_chip_close(chip);
    assert_host_runs_again(variant);
    assert_nothing_left(before);
}

static void check_signal(const chip_variant *variant, uint64_t way, const char *signal,
                         address_check check) {
    check_signal_on(variant, GBX_SUBTASK_AIV0, way, signal, check);
}

static void test_bad_store(void **state) {
    check_signal(*state, FAIL_STORE, "SIGSEGV (Segmentation fault)", ADDRESS_EXACT);
    check_signal_on(*state, GBX_SUBTASK_AIC, FAIL_STORE, "SIGSEGV", ADDRESS_EXACT);
    check_signal_on(*state, GBX_SUBTASK_AIV1, FAIL_STORE, "SIGSEGV", ADDRESS_EXACT);
}

static void test_invalid_address(void **state) {
    check_signal(*state, FAIL_NOT_CANONICAL, "at an invalid address", ADDRESS_NONE);
}

static void test_bus_error(void **state) {
    check_signal(*state, FAIL_BUS, "SIGBUS (Bus error)", ADDRESS_EXACT);
}

static void test_division_by_zero(void **state) {
    check_signal(*state, FAIL_DIVIDE, "SIGFPE", ADDRESS_CODE);
}

static void test_illegal_instruction(void **state) {
    check_signal(*state, FAIL_INSTRUCTION, "SIGILL", ADDRESS_CODE);
}

static void test_abort(void **state) {
    check_signal(*state, FAIL_ABORT, "SIGABRT (Aborted)", ADDRESS_NONE);
}

/* A signal that was sent has no address. */
static void test_raised_signal(void **state) {
    check_signal(*state, FAIL_RAISE, "raised SIGSEGV (Segmentation fault)", ADDRESS_NONE);
}

static void test_stack_overflow(void **state) {
    check_signal(*state, FAIL_STACK, "SIGSEGV", ADDRESS_STACK);
}

/* free() of device memory: glibc detects it and aborts, which is reported like any abort. */
static void test_bad_free(void **state) {
    const char *sanitizers = getenv("GLASSBOX_SANITIZE");
    if (sanitizers && sanitizers[0])
        skip(); /* their free() ends the process with its own report */
    check_signal(*state, FAIL_FREE, "SIGABRT", ADDRESS_NONE);
}

/* A heap that a kernel corrupted, with its lock held, delays neither the report nor the end. */
static void test_broken_heap(void **state) {
    const char *sanitizers = getenv("GLASSBOX_SANITIZE");
    if (sanitizers && sanitizers[0])
        skip(); /* their heap prints its own report */
    check_signal(*state, FAIL_HEAP, "SIGABRT", ADDRESS_NONE);
}

static void test_kernel_that_ends_its_thread(void **state) {
    leftovers before = count_leftovers();
    gbx_chip *chip = open_chip(*state, BLOCKS);
    register_kernel(chip, FAULT, GBX_CORE_AIV, "fault.c");
    gbx_tensor output = output_of(chip);
    assert_fails(call_fault(chip, &output, FAIL_THREAD_EXIT, 0), GBX_DEVICE_FAULT,
                 "kernel fault.c (func 7)", "task block 5 of 6",
                 "ended its thread: pthread_exit; it must return instead");
    assert_chip_is_over(chip, &output);
    gbx_chip_close(chip);
    assert_nothing_left(before);
}

/* On its own chip, repeated until the message names the block that hangs. */
static gbx_status call_hanging(const chip_variant *variant, uint64_t way, const char *part,
                               gbx_chip **out_chip, gbx_tensor *out_output) {
    for (int i = 0;; ++i) {
        *out_chip = open_chip(variant, BLOCKS);
        register_kernel(*out_chip, FAULT, GBX_CORE_AIV, "fault.c");
        *out_output = output_of(*out_chip);
        gbx_status status = call_fault(*out_chip, out_output, way, hang_timeouts_ms[i]);
        if (i + 1 == HANG_TIMEOUTS || strstr(gbx_status_message(status), part))
            return status;
        gbx_status_free(status);
        gbx_chip_close(*out_chip);
    }
}

/* The watchdog relies on data that no kernel can overwrite. */
static void test_hang_after_erasing_memory(void **state) {
    leftovers before = count_leftovers();
    gbx_chip *chip;
    gbx_tensor output;
    const char *part = "overwritten its control block";
    assert_fails(call_hanging(*state, FAIL_ERASE, part, &chip, &output), GBX_DEVICE_FAULT, part);
    gbx_chip_close(chip);
    assert_nothing_left(before);
}

/* A result counts even if its ring is lost; the loss of the link is reported. */
static void test_kernel_that_closes_descriptors(void **state) {
    leftovers before = count_leftovers();
    gbx_chip *chip = open_chip(*state, BLOCKS);
    register_kernel(chip, FAULT, GBX_CORE_AIV, "fault.c");
    gbx_tensor output = output_of(chip);
    gbx_status status = call_fault(chip, &output, FAIL_CLOSE, 0);
    assert_memory_survived(chip, &output);
    if (!status) /* else the loss of the link was noticed before the task ended */
        status = call_fault(chip, &output, 0, 0);
    assert_fails(status, GBX_DEVICE_LOST, "closed its link");
    gbx_chip_close(chip);
    assert_nothing_left(before);
}

static void test_hang_is_found_by_the_watchdog(void **state) {
    leftovers before = count_leftovers();
    gbx_chip *chip;
    gbx_tensor output;
    gbx_status status = call_hanging(*state, FAIL_HANG, "task block 5 of 6", &chip, &output);
    assert_fails(status, GBX_DEVICE_HUNG, "kernel fault.c (func 7)", "task block 5 of 6",
                 "no progress for ");
    assert_memory_survived(chip, &output);
    assert_chip_is_over(chip, &output);
    gbx_chip_close(chip);
    assert_host_runs_again(*state);
    assert_nothing_left(before);
}

/* Slow is not hung: a kernel may use all of its timeout. */
static void test_slow_kernel_is_not_a_hang(void **state) {
    gbx_chip *chip = open_chip(*state, BLOCKS);
    register_kernel(chip, FAULT, GBX_CORE_AIV, "fault.c");
    gbx_tensor output = output_of(chip);
    assert_ok(call_fault(chip, &output, FAIL_SLEEP, LONGEST_MS));
    assert_memory_survived(chip, &output);
    gbx_chip_close(chip);
}

/* The bad block runs when the chip ends. Others may not have returned yet: then the message names
 * the one on the first core, and counts the bad one among the others. */
static void assert_lost_amid_kernel(gbx_status status, const char *how) {
    bool counts_it = strstr(gbx_status_message(status), " of 6 and ") != NULL;
    assert_fails(status, GBX_DEVICE_LOST, "chip process", how,
                 "while running kernel fault.c (func 7) of task 0 on core ",
                 counts_it ? " more" : "task block 5 of 6");
}

static void check_ending(const chip_variant *variant, uint64_t way, const char *how) {
    leftovers before = count_leftovers();
    gbx_chip *chip = open_chip(variant, BLOCKS);
    register_kernel(chip, FAULT, GBX_CORE_AIV, "fault.c");
    gbx_tensor output = output_of(chip);
    assert_lost_amid_kernel(call_fault(chip, &output, way, 0), how);
    assert_memory_survived(chip, &output);
    assert_chip_is_over(chip, &output);
    gbx_chip_close(chip);
    assert_host_runs_again(variant);
    assert_nothing_left(before);
}

static void test_kernel_that_exits(void **state) {
    check_ending(*state, FAIL_EXIT, "exited with code 7");
}

static void test_kernel_that_kills(void **state) {
    check_ending(*state, FAIL_KILL, "killed by SIGKILL");
}

static void test_fault_on_a_thread_of_a_kernel(void **state) {
    check_ending(*state, FAIL_THREAD, "killed by SIGSEGV on a thread that is not a core");
}

static void test_scribbled_control_block(void **state) {
    leftovers before = count_leftovers();
    gbx_chip *chip = open_chip(*state, BLOCKS);
    register_kernel(chip, FAULT, GBX_CORE_AIV, "fault.c");
    gbx_tensor output = output_of(chip);
    assert_fails(call_fault(chip, &output, FAIL_CONTROL, 0), GBX_DEVICE_FAULT,
                 "overwritten its control block");
    assert_chip_is_over(chip, &output);
    gbx_chip_close(chip);
    assert_nothing_left(before);
}

/* The request is not in memory that kernels can write: the call ends correctly. */
static void test_scribbled_call(void **state) {
    gbx_chip *chip = open_chip(*state, BLOCKS);
    register_kernel(chip, FAULT, GBX_CORE_AIV, "fault.c");
    gbx_tensor output = output_of(chip);
    assert_ok(call_fault(chip, &output, FAIL_SCRIBBLE_CALL, LONGEST_MS));
    assert_memory_survived(chip, &output);
    gbx_chip_close(chip);
}

static void test_killed_while_idle(void **state) {
    leftovers before = count_leftovers();
    gbx_chip *chip = open_chip(*state, BLOCKS);
    register_kernel(chip, FAULT, GBX_CORE_AIV, "fault.c");
    gbx_tensor output = output_of(chip);
    kill(chip_pid(chip), SIGKILL);
    assert_fails(call_fault(chip, &output, 0, 0), GBX_DEVICE_LOST, "killed by SIGKILL");
    gbx_chip_close(chip);
    assert_host_runs_again(*state);
    assert_nothing_left(before);
}

/* SIGUSR1 stays pending until it is waited for. */
static void hold_signals_of_kernels(sigset_t *out_set) {
    sigemptyset(out_set);
    sigaddset(out_set, SIGUSR1);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, out_set, NULL), 0);
}

/* Waits until a kernel has signalled that it runs. */
static void await_kernel(void) {
    const struct timespec longest = {.tv_sec = LONGEST_MS / 1000};
    sigset_t signals;
    hold_signals_of_kernels(&signals);
    sigtimedwait(&signals, NULL, &longest);
}

static void *kill_amid_kernel(void *argument) {
    const int *pid = argument;
    await_kernel();
    kill(*pid, SIGKILL);
    return NULL;
}

static void test_killed_while_running(void **state) {
    leftovers before = count_leftovers();
    gbx_chip *chip = open_chip(*state, BLOCKS);
    register_kernel(chip, FAULT, GBX_CORE_AIV, "fault.c");
    gbx_tensor output = output_of(chip);
    int pid = chip_pid(chip);
    sigset_t signals;
    pthread_t thread;
    hold_signals_of_kernels(&signals);
    assert_int_equal(pthread_create(&thread, NULL, kill_amid_kernel, &pid), 0);
    assert_lost_amid_kernel(call_fault(chip, &output, FAIL_SIGNALLED_HANG, LONGEST_MS),
                            "killed by SIGKILL");
    pthread_join(thread, NULL);
    gbx_chip_close(chip);
    assert_nothing_left(before);
}

typedef struct stop {
    int pid;
    uint32_t ms;
} stop;

static void *stop_for_a_while(void *argument) {
    const stop *it = argument;
    await_kernel();
    kill(it->pid, SIGSTOP);
    usleep(it->ms * 1000);
    kill(it->pid, SIGCONT);
    return NULL;
}

/* The result of a call whose chip is stopped for a second longer than the kernel's timeout. */
static gbx_status call_stopped(const chip_variant *variant, uint32_t timeout_ms) {
    gbx_chip *chip = open_chip(variant, BLOCKS);
    register_kernel(chip, FAULT, GBX_CORE_AIV, "fault.c");
    gbx_tensor output = output_of(chip);
    stop while_it_runs = {.pid = chip_pid(chip), .ms = timeout_ms + 1000};
    sigset_t signals;
    pthread_t thread;
    hold_signals_of_kernels(&signals);
    assert_int_equal(pthread_create(&thread, NULL, stop_for_a_while, &while_it_runs), 0);
    gbx_status status = call_fault(chip, &output, FAIL_SIGNALLED_SLEEP, timeout_ms);
    pthread_join(thread, NULL);
    gbx_chip_close(chip);
    return status;
}

/* As under a debugger: time in which the chip was stopped does not count against its kernel. A
 * stalled machine adds more time, so longer timeouts are tried, too. */
static void test_stopped_chip_goes_on(void **state) {
    leftovers before = count_leftovers();
    uint32_t timeout_ms = 1500;
    gbx_status status;
    while ((status = call_stopped(*state, timeout_ms)) && timeout_ms < 20000) {
        gbx_status_free(status);
        timeout_ms *= 2;
    }
    assert_ok(status);
    assert_nothing_left(before);
}

/* A stopped chip cannot detect that it hangs: the host does. */
static void test_chip_that_no_longer_answers(void **state) {
    leftovers before = count_leftovers();
    gbx_chip *chip = open_chip(*state, BLOCKS);
    register_kernel(chip, FAULT, GBX_CORE_AIV, "fault.c");
    gbx_tensor output = output_of(chip);
    kill(chip_pid(chip), SIGSTOP);
    assert_fails(call_fault(chip, &output, 0, 200), GBX_DEVICE_HUNG, "has not answered for ",
                 "is it stopped?");
    assert_chip_is_over(chip, &output);
    gbx_chip_close(chip);
    assert_nothing_left(before);
}

static void test_constructor_that_crashes(void **state) {
    leftovers before = count_leftovers();
    gbx_chip *chip = open_chip(*state, 1);
    char path[4096];
    gbx_kernel kernel = test_kernel(3, GBX_CORE_AIV, "broken_constructor.c", path);
    assert_fails(gbx_kernel_register(chip, &kernel), GBX_DEVICE_LOST,
                 "registering kernel broken_constructor.c", "SIGSEGV", "in a constructor");
    gbx_chip_close(chip);
    assert_host_runs_again(*state);
    assert_nothing_left(before);
}

/* Whether a process has ended, even if its parent has not reaped it yet. */
static bool is_gone(int pid) {
    char path[64];
    char line[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *stat = fopen(path, "r");
    if (!stat)
        return true;
    bool is_read = fgets(line, sizeof line, stat) != NULL;
    fclose(stat);
    const char *after_name = strrchr(line, ')');
    return !is_read || (after_name && after_name[2] == 'Z');
}

/* Whether it ended in time. */
static bool await_end_of(int pid) {
    for (int waited_ms = 0; waited_ms < LONGEST_MS && !is_gone(pid); ++waited_ms)
        usleep(1000);
    return is_gone(pid);
}

/* In a child: reports the process id of its chip, then does something endless with the chip. */
typedef void host_life(gbx_chip *chip, uint64_t way, uint32_t block_num);

static void live_in_a_call(gbx_chip *chip, uint64_t way, uint32_t block_num) {
    const uint64_t scalars[] = {way, BAD_BLOCK, GBX_SUBTASK_AIV0};
    register_kernel(chip, FAULT, GBX_CORE_AIV, "fault.c");
    register_kernel(chip, ADD, GBX_CORE_AIV, "add.c");
    gbx_tensor output = output_of(chip);
    gbx_tensor empty = vector_at(output.data, GBX_FLOAT32, 0);
    const gbx_tensor nothing[] = {empty, empty, empty};
    gbx_call call = way ? call_of(FAULT, GBX_CORE_AIV, block_num, &output, 1)
                        : call_of(ADD, GBX_CORE_AIV, block_num, nothing, 3);
    call.scalars = scalars;
    call.scalar_count = 3;
    gbx_status_free(gbx_chip_call(chip, &call, NULL, NULL));
}

static void live_in_a_constructor(gbx_chip *chip, uint64_t way, uint32_t block_num) {
    (void)way;
    (void)block_num;
    char path[4096];
    gbx_kernel kernel = test_kernel(ADD, GBX_CORE_AIV, "endless_constructor.c", path);
    gbx_status_free(gbx_kernel_register(chip, &kernel));
}

/* While another process holds a copy of the link, until the chip has ended. */
static void live_beside_a_fork(gbx_chip *chip, uint64_t way, uint32_t block_num) {
    (void)way;
    (void)block_num;
    if (fork() == 0) {
        await_end_of(chip_pid(chip));
        _exit(0);
    }
}

static _Noreturn void be_a_host(const chip_variant *variant, int pid_fd, host_life *live,
                                uint64_t way, uint32_t block_num) {
    gbx_chip *chip = open_chip(variant, 2);
    int pid = chip_pid(chip);
    if (write(pid_fd, &pid, sizeof pid) == (ssize_t)sizeof pid)
        live(chip, way, block_num);
    for (;;)
        pause(); /* until this host is killed */
}

static void check_chip_ends_with_its_host(const chip_variant *variant, host_life *live,
                                          uint64_t way, uint32_t block_num, uint32_t after_ms) {
    int pipe_ends[2];
    int pid = 0;
    assert_int_equal(pipe2(pipe_ends, O_CLOEXEC), 0);
    pid_t host = fork();
    if (host == 0)
        be_a_host(variant, pipe_ends[1], live, way, block_num);
    ssize_t bytes = read(pipe_ends[0], &pid, sizeof pid);
    usleep(after_ms * 1000);
    bool was_there = bytes == (ssize_t)sizeof pid && !is_gone(pid);
    kill(host, SIGKILL);
    waitpid(host, NULL, 0);
    assert_true(was_there);
    bool has_ended = await_end_of(pid);
    if (!has_ended)
        kill(pid, SIGKILL);
    assert_true(has_ended);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

/* When a host dies, its chip ends, whatever it is doing. */
static void test_chip_ends_with_its_host(void **state) {
    const char *sanitizers = getenv("GLASSBOX_SANITIZE");
    if (sanitizers && strstr(sanitizers, "thread"))
        skip(); /* thread sanitizer does not support threads after a fork */
    check_chip_ends_with_its_host(*state, live_in_a_call, FAIL_HANG, TASK_BLOCKS, 100);
    check_chip_ends_with_its_host(*state, live_in_a_call, FAIL_STORE, TASK_BLOCKS, 100);
    check_chip_ends_with_its_host(*state, live_in_a_call, FAIL_ERASE, TASK_BLOCKS, 100);
    if (!sanitizers || !sanitizers[0])
        check_chip_ends_with_its_host(*state, live_in_a_call, FAIL_HEAP, TASK_BLOCKS, 100);
    check_chip_ends_with_its_host(*state, live_in_a_constructor, 0, 0, 100);
    check_chip_ends_with_its_host(*state, live_beside_a_fork, 0, 0, 20);
    for (uint32_t i = 0; i < 10; ++i)
        check_chip_ends_with_its_host(*state, live_in_a_call, 0, 400 * 1000 * 1000, 10 * i);
}

static void check_process_of_a_kernel_ends(const chip_variant *variant, int signal_to_chip) {
    gbx_chip *chip = open_chip(variant, BLOCKS);
    register_kernel(chip, FAULT, GBX_CORE_AIV, "fault.c");
    gbx_tensor output = output_of(chip);
    uint64_t reported[OUTPUTS];
    assert_ok(call_fault(chip, &output, FAIL_FORK, 0));
    assert_ok(gbx_gm_copy_out(chip, reported, output.data, sizeof reported));
    int pid = (int)reported[ADDRESS_AT];
    bool was_there = !is_gone(pid);
    if (signal_to_chip)
        kill(chip_pid(chip), signal_to_chip);
    gbx_chip_close(chip);
    bool has_ended = await_end_of(pid);
    if (!has_ended)
        kill(pid, SIGKILL);
    assert_true(was_there);
    assert_true(has_ended);
}

/* A process that a kernel started does not outlive the chip, however the chip ends. */
static void test_process_of_a_kernel_ends(void **state) {
    check_process_of_a_kernel_ends(*state, 0);
    check_process_of_a_kernel_ends(*state, SIGKILL);
}

/* Repeated, because leftovers of a failure would add up. */
static void test_many_failures_leave_nothing(void **state) {
    leftovers before = count_leftovers();
    int rounds = getenv("GLASSBOX_STRESS") ? 500 : 20;
    for (int i = 0; i < rounds; ++i) {
        gbx_chip *chip = open_chip(*state, BLOCKS);
        register_kernel(chip, FAULT, GBX_CORE_AIV, "fault.c");
        gbx_tensor output = output_of(chip);
        assert_fails(call_fault(chip, &output, (uint64_t)(i % 5) + 1, 0), GBX_DEVICE_FAULT,
                     "fault.c");
        gbx_chip_close(chip);
        assert_nothing_left(before);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_store),
        cmocka_unit_test(test_invalid_address),
        cmocka_unit_test(test_bus_error),
        cmocka_unit_test(test_division_by_zero),
        cmocka_unit_test(test_illegal_instruction),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_raised_signal),
        cmocka_unit_test(test_stack_overflow),
        cmocka_unit_test(test_bad_free),
        cmocka_unit_test(test_broken_heap),
        cmocka_unit_test(test_kernel_that_ends_its_thread),
        cmocka_unit_test(test_hang_after_erasing_memory),
        cmocka_unit_test(test_kernel_that_closes_descriptors),
        cmocka_unit_test(test_hang_is_found_by_the_watchdog),
        cmocka_unit_test(test_slow_kernel_is_not_a_hang),
        cmocka_unit_test(test_kernel_that_exits),
        cmocka_unit_test(test_kernel_that_kills),
        cmocka_unit_test(test_fault_on_a_thread_of_a_kernel),
        cmocka_unit_test(test_scribbled_control_block),
        cmocka_unit_test(test_scribbled_call),
        cmocka_unit_test(test_killed_while_idle),
        cmocka_unit_test(test_killed_while_running),
        cmocka_unit_test(test_chip_that_no_longer_answers),
        cmocka_unit_test(test_stopped_chip_goes_on),
        cmocka_unit_test(test_constructor_that_crashes),
        cmocka_unit_test(test_chip_ends_with_its_host),
        cmocka_unit_test(test_process_of_a_kernel_ends),
        cmocka_unit_test(test_many_failures_leave_nothing),
    };
    return RUN_OVER_PROCESS_VARIANTS(tests);
}
