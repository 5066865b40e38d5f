/* A chip inside this process: it reports what it cannot isolate, and the host stays usable. */
#include "chip_support.h"

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "scratch.h"

enum { WAIT = 1, COUNT = 2, LONGEST_MS = 600 * 1000 };

static _Atomic int is_released;
static _Atomic int has_ended;

static void wait_for_release(const uint64_t *args) {
    (void)args;
    while (!atomic_load(&is_released))
        usleep(1000);
    atomic_store(&has_ended, 1);
}

static void await_end_of_kernel(void) {
    for (int waited_ms = 0; waited_ms < LONGEST_MS && !atomic_load(&has_ended); ++waited_ms)
        usleep(1000);
    assert_int_equal(atomic_load(&has_ended), 1);
}

static void count_block(const uint64_t *args) {
    _Atomic uint64_t *counter = gbx_tensor_origin(gbx_arg_tensor(args, 0), sizeof *counter);
    atomic_fetch_add(counter, gbx_local(args)->block_idx + 1);
}

static gbx_chip *open_with(const char *platform, uint32_t threads) {
    gbx_chip_config config = {.platform = platform,
                              .device = GBX_DEVICE_THREAD,
                              .blocks = 5,
                              .aicpu_threads = threads,
                              .gm_bytes = 16 << 20};
    gbx_chip *chip;
    assert_ok(gbx_chip_open(&config, &chip));
    return chip;
}

static void add_function(gbx_chip *chip, uint32_t func_id, const char *name,
                         gbx_kernel_function function) {
    gbx_kernel kernel = {
        .func_id = func_id, .name = name, .core = GBX_CORE_AIV, .function = function};
    assert_ok(gbx_kernel_register(chip, &kernel));
}

/* Repeats until the message names the kernel; on a stalled machine it may not have begun. */
static gbx_status call_hanging(uint32_t threads, gbx_dump_level level, gbx_chip **out_chip) {
    gbx_call call = call_of(WAIT, GBX_CORE_AIV, 1, NULL, 0);
    for (int i = 0;; ++i) {
        char directory[16];
        snprintf(directory, sizeof directory, "dump%d", i);
        gbx_call_config config = {.timeout_ms = hang_timeouts_ms[i],
                                  .enable_dump_tensor = level,
                                  .dump = {.directory = directory, .arena_bytes = 1 << 20}};
        *out_chip = open_with("a2a3sim", threads);
        add_function(*out_chip, WAIT, "wait_for_release", wait_for_release);
        atomic_store(&is_released, 0);
        atomic_store(&has_ended, 0);
        gbx_status status = gbx_chip_call(*out_chip, &call, &config, NULL);
        if (i + 1 == HANG_TIMEOUTS || strstr(gbx_status_message(status), "wait_for_release"))
            return status;
        gbx_status_free(status);
        atomic_store(&is_released, 1);
        gbx_chip_close(*out_chip);
    }
}

/* The thread of a hung kernel cannot be ended; the host continues without it. */
static void test_hang_is_reported_and_outlived(void **state) {
    (void)state;
    gbx_chip *chip;
    assert_fails(call_hanging(2, GBX_DUMP_OFF, &chip), GBX_DEVICE_HUNG,
                 "kernel wait_for_release (func 1) of task 0 on core ", "task block 0 of 1",
                 "no progress");
    gbx_chip_close(chip);
    atomic_store(&is_released, 1);
    await_end_of_kernel();
}

/* The state of a thread: 'S' when it sleeps. */
static char state_of(const char *thread_id) {
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/stat", thread_id);
    FILE *stat = fopen(path, "r");
    if (stat && !fgets(text, sizeof text, stat))
        text[0] = '\0';
    if (stat)
        fclose(stat);
    const char *after_name = strrchr(text, ')');
    return after_name ? after_name[2] : '?';
}

/* Counts all threads, or those that do not sleep: at least this one. */
static uint32_t threads_of_this_process(bool are_awake) {
    DIR *tasks = opendir("/proc/self/task");
    uint32_t count = 0;
    assert_non_null(tasks);
    for (const struct dirent *task; (task = readdir(tasks));)
        count += task->d_name[0] != '.' && (!are_awake || state_of(task->d_name) != 'S');
    closedir(tasks);
    return count;
}

/* Waits until the workers sleep after a kernel has ended. */
static void await_sleep_of_others(void) {
    for (int seen = 0, waited_ms = 0; seen < 10 && waited_ms < LONGEST_MS; waited_ms += 10) {
        usleep(10000);
        seen = threads_of_this_process(true) == 1 ? seen + 1 : 0;
    }
}

/* A joined thread is still listed for a moment. */
static void await_threads(uint32_t count) {
    for (int waited_ms = 0; waited_ms < LONGEST_MS && threads_of_this_process(false) != count;
         ++waited_ms)
        usleep(1000);
    assert_int_equal(threads_of_this_process(false), count);
}

/* A kernel that was reported as hung but ends later still finds its AICPU thread, even if a dump
 * was finished without it: closing the chip leaves no thread behind. */
static void test_hang_with_dump_ends_well(void **state) {
    (void)state;
    uint32_t threads = threads_of_this_process(false);
    gbx_chip *chip;
    assert_true(scratch_enter(NULL));
    assert_fails(call_hanging(1, GBX_DUMP_FULL, &chip), GBX_DEVICE_HUNG, "wait_for_release");
    atomic_store(&is_released, 1);
    await_end_of_kernel();
    await_sleep_of_others();
    gbx_chip_close(chip);
    await_threads(threads);
    assert_true(scratch_leave());
}

static void store_at_zero(const uint64_t *args) {
    *(volatile uint64_t *)(uintptr_t)args[0] = 1;
}

static void exit_42(int number) {
    (void)number;
    _exit(42);
}

/* A fault is the host's own: the host's handler sees it, like that of a debugger or sanitizer. */
static void test_fault_reaches_the_host(void **state) {
    (void)state;
    const char *sanitizers = getenv("GLASSBOX_SANITIZE");
    if (sanitizers && strstr(sanitizers, "thread"))
        skip(); /* thread sanitizer does not support threads after a fork */
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, exit_42);
        gbx_chip *chip = open_with("a2a3sim", 1);
        const uint64_t nowhere = 0x10;
        add_function(chip, WAIT, "store_at_zero", store_at_zero);
        gbx_call call = gbx_call_aiv(WAIT);
        call.scalars = &nowhere;
        call.scalar_count = 1;
        gbx_status_free(gbx_chip_call(chip, &call, NULL, NULL));
        _exit(1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

/* Every block runs exactly once, for any number of AICPU threads, blocks and calls. */
static void test_every_block_runs_once(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= GBX_MAX_AICPU_THREADS; ++threads) {
        gbx_chip *chip = open_with("a5sim", threads);
        add_function(chip, COUNT, "count_block", count_block);
        uint64_t counter = 0;
        uint64_t expected = 0;
        gbx_tensor tensor = vector_at(put(chip, &counter, sizeof counter), GBX_UINT64, 1);
        for (uint32_t block_num = 1; block_num < 60; block_num += 7) {
            gbx_call call = call_of(COUNT, GBX_CORE_AIV, block_num, &tensor, 1);
            assert_ok(gbx_chip_call(chip, &call, NULL, NULL));
            expected += (uint64_t)block_num * (block_num + 1) / 2;
            assert_ok(gbx_gm_copy_out(chip, &counter, tensor.data, sizeof counter));
            assert_int_equal(counter, expected);
        }
        gbx_chip_close(chip);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fault_reaches_the_host),
        cmocka_unit_test(test_every_block_runs_once),
        cmocka_unit_test(test_hang_with_dump_ends_well),
        cmocka_unit_test(test_hang_is_reported_and_outlived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
