/*
 * Runs one graph of tasks that do nothing, without a dump, on a chip in threads of this process.
 * Built twice: as the library is, and with a scheduler that has no hooks. bench_hooks runs both
 * under valgrind. usage: hooks_with|hooks_without RUNTIME chain|independent TASKS [DUMP_DIRECTORY]
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/glassbox.h>

#include "base/status.h"

enum { NO_OP = 0 };

static void no_op(const uint64_t *args) {
    (void)args;
}

/* Scalars: 0 how many tasks, 1 whether each waits for the one before. */
static int orchestrate_on_host(gbx_orchestration *o, const gbx_run_args *run) {
    static const gbx_tensor_info no_tensors;
    gbx_task before = GBX_NO_TASK;
    for (uint64_t i = 0; i < run->scalars[0]; ++i) {
        gbx_task task = gbx_add_task_with_tensor_info(o, gbx_aiv(NO_OP), &i, 1, &no_tensors, 0);
        if (run->scalars[1] && i > 0)
            gbx_add_successor(o, before, task);
        before = task;
    }
    return 0;
}

/* The memory of all tasks is the run's tensor: one element for a chain, else one a task. */
static int orchestrate_on_chip(gbx_orchestration *o, const gbx_run_args *run) {
    gbx_args args = gbx_args_begin();
    gbx_tensor own = gbx_view_slice(&run->tensors[0], 0, 0, 1);
    for (uint64_t i = 0; i < run->scalars[0]; ++i) {
        own.start_offset = run->scalars[1] ? 0 : (int64_t)i;
        gbx_args_clear(&args);
        gbx_args_add_inout(&args, &own);
        gbx_submit_aiv_task(o, NO_OP, &args);
    }
    return 0;
}

/* The same with edges of its own. */
static int orchestrate_with_edges(gbx_orchestration *o, const gbx_run_args *run) {
    gbx_args args = gbx_args_begin();
    gbx_tensor own = gbx_view_slice(&run->tensors[0], 0, 0, 1);
    gbx_task before = GBX_NO_TASK;
    for (uint64_t i = 0; i < run->scalars[0]; ++i) {
        own.start_offset = run->scalars[1] ? 0 : (int64_t)i;
        gbx_args_clear(&args);
        gbx_args_add_inout(&args, &own);
        gbx_task task = gbx_add_task_with_args(o, gbx_aiv(NO_OP), &args);
        if (run->scalars[1] && i > 0)
            gbx_add_successor(o, before, task);
        gbx_publish_task(o, task);
        before = task;
    }
    return 0;
}

static gbx_orchestrate_function orchestration_of(const char *runtime) {
    if (strcmp(runtime, "host_build_graph") == 0)
        return orchestrate_on_host;
    return strcmp(runtime, "aicpu_build_graph") == 0 ? orchestrate_with_edges : orchestrate_on_chip;
}

static gbx_status run_graph(gbx_chip *chip, const char *runtime, uint64_t *scalars, float *memory,
                            const char *dump) {
    const int64_t shape[] = {(int64_t)scalars[0]};
    bool is_on_host = strcmp(runtime, "host_build_graph") == 0;
    gbx_run_tensor tensor = {.name = "memory", .role = GBX_ROLE_INPUT};
    gbx_kernel kernel = {.name = "no_op",
                         .core = GBX_CORE_AIV,
                         .function = no_op,
                         .signature = is_on_host ? "scalar" : "inout"};
    gbx_call_result result;
    GBX_TRY(gbx_kernel_register(chip, &kernel));
    GBX_TRY(gbx_tensor_contiguous((uintptr_t)memory, GBX_FLOAT32, 1, shape, &tensor.tensor));
    gbx_run run = {.runtime = runtime,
                   .function = orchestration_of(runtime),
                   .tensors = &tensor,
                   .tensor_count = 1,
                   .scalars = scalars,
                   .scalar_count = 2};
    gbx_call_config config = {.timeout_ms = 600000,
                              .enable_dump_tensor = dump ? GBX_DUMP_FULL : GBX_DUMP_OFF,
                              .dump = {.directory = dump}};
    GBX_TRY(gbx_chip_run(chip, &run, &config, &result));
    if (result.tasks != scalars[0])
        return gbx_fail(GBX_INTERNAL, "%llu tasks completed", (unsigned long long)result.tasks);
    return NULL;
}

/* One processor, so that one worker runs all tasks: what it does does not depend on time. */
static gbx_status run_on_one(const char *runtime, uint64_t *scalars, const char *dump) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    float *memory = calloc(scalars[0], sizeof *memory);
    gbx_chip_config config = {.device = GBX_DEVICE_THREAD, .blocks = 1, .aicpu_threads = 1};
    gbx_chip *chip = NULL;
    gbx_status status = memory ? gbx_chip_open(&config, &chip)
                               : gbx_fail(GBX_EXHAUSTED, "no memory for %llu tasks",
                                          (unsigned long long)scalars[0]);
    if (!status)
        status = run_graph(chip, runtime, scalars, memory, dump);
    gbx_chip_close(chip);
    free(memory);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 4 || argc > 5) {
        fprintf(stderr, "usage: %s RUNTIME chain|independent TASKS [DUMP_DIRECTORY]\n", argv[0]);
        return 2;
    }
    uint64_t scalars[2] = {strtoull(argv[3], NULL, 10), strcmp(argv[2], "chain") == 0};
    gbx_status status = run_on_one(argv[1], scalars, argc == 5 ? argv[4] : NULL);
    int exit_code = gbx_code_exit(gbx_status_code(status));
    if (status)
        fprintf(stderr, "%s: %s\n", argv[0], gbx_status_message(status));
    gbx_status_free(status);
    return exit_code;
}
