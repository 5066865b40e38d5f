/* 24 idle blocks sleep: none of their threads runs. */
#include "chip_support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ADD = 1 };

enum { MOST_THREADS = 3 * GBX_MAX_BLOCKS + 16, MOST_SECONDS = 300 };

/* Thread sanitizer adds a thread to the chip, which wakes ten times a second. */
#ifdef __SANITIZE_THREAD__
enum { THREADS_OF_SANITIZER = 1 };
#else
enum { THREADS_OF_SANITIZER = 0 };
#endif

/* What the kernel reports about one thread. */
typedef struct thread_status {
    int id;
    bool sleeps;
    long switches; /* grows by one when a thread wakes or is taken off its CPU */
} thread_status;

static thread_status read_status(int pid, int id) {
    thread_status status = {.id = id};
    char path[64];
    char line[256];
    char letter = '?';
    long count;
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, id);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "voluntary_ctxt_switches: %ld", &count) == 1 ||
            sscanf(line, "nonvoluntary_ctxt_switches: %ld", &count) == 1)
            status.switches += count;
        sscanf(line, "State: %c", &letter);
    }
    fclose(file);
    status.sleeps = letter == 'S';
    return status;
}

/* Every thread of a process, by id, as the kernel lists them. */
static size_t read_threads(int pid, thread_status threads[MOST_THREADS]) {
    char path[64];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));)
        if (entry->d_name[0] != '.') {
            assert_in_range(count, 0, MOST_THREADS - 1);
            threads[count++] = read_status(pid, atoi(entry->d_name));
        }
    closedir(directory);
    return count;
}

/* How many threads of a process ran within one second. */
static size_t threads_that_ran(int pid) {
    thread_status before[MOST_THREADS];
    thread_status after[MOST_THREADS];
    size_t count = read_threads(pid, before);
    sleep(1);
    assert_int_equal(read_threads(pid, after), count);
    size_t ran = 0;
    for (size_t i = 0; i < count; ++i) {
        assert_int_equal(before[i].id, after[i].id);
        ran += !before[i].sleeps || !after[i].sleeps || before[i].switches != after[i].switches;
    }
    return ran;
}

/* Idle after work, not only before it. */
static void test_idle_chip_sleeps(void **state) {
    const float values[64] = {0};
    gbx_chip *chip = open_chip(*state, GBX_MAX_BLOCKS);
    register_kernel(chip, ADD, GBX_CORE_AIV, "add.c");
    gbx_tensor tensor = vector_at(put(chip, values, sizeof values), GBX_FLOAT32, 64);
    const gbx_tensor tensors[] = {tensor, tensor, tensor};
    gbx_call call = call_of(ADD, GBX_CORE_AIV, GBX_MAX_BLOCKS, tensors, 3);
    assert_ok(gbx_chip_call(chip, &call, NULL, NULL));
    /* A worker for each core, the orchestrator, the control thread and the lifeline. */
    thread_status threads[MOST_THREADS];
    assert_true(read_threads(chip_pid(chip), threads) >= 3 * GBX_MAX_BLOCKS + 3);
    int seconds = 0;
    /* When the last thread falls asleep depends on the machine; it must fall asleep eventually. */
    while (threads_that_ran(chip_pid(chip)) > THREADS_OF_SANITIZER)
        assert_true(++seconds < MOST_SECONDS);
    gbx_chip_close(chip);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_idle_chip_sleeps)};
    return RUN_OVER_PROCESS_VARIANTS(tests);
}
