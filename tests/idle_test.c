/* 24 blocks that have nothing to do sleep: under 1 % of a CPU. */
#include "chip_support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ADD = 1 };

/* CPU time of a process so far, in clock ticks. */
static long cpu_ticks(int pid) {
    char path[64];
    char line[1024] = "";
    long user = -1;
    long system = -1;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *stat = fopen(path, "r");
    assert_non_null(stat);
    assert_non_null(fgets(line, sizeof line, stat));
    fclose(stat);
    const char *after_name = strrchr(line, ')') + 2;
    assert_int_equal(
        sscanf(after_name, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system),
        2);
    return user + system;
}

static long thread_count(int pid) {
    char path[64];
    char line[256];
    long count = 0;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *status = fopen(path, "r");
    assert_non_null(status);
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "Threads: %ld", &count) == 1)
            break;
    fclose(status);
    return count;
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
    assert_true(thread_count(chip_pid(chip)) >= 3 * GBX_MAX_BLOCKS + 3);
    usleep(500 * 1000); /* until the last worker sleeps */
    long before = cpu_ticks(chip_pid(chip));
    usleep(2000 * 1000);
    long used = cpu_ticks(chip_pid(chip)) - before;
    long one_percent = 2 * sysconf(_SC_CLK_TCK) / 100;
    assert_true(used < one_percent);
    gbx_chip_close(chip);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_idle_chip_sleeps)};
    return RUN_OVER_PROCESS_VARIANTS(tests);
}
