/*
 * A second, plain model of the three runtimes, to compare the real ones with: the same
 * orchestration runs in this process, its tasks one after the other, without a chip or a scheduler.
 *
 *     sequential_model *model = sequential_create("host_build_graph", kernels, kernel_count, 8);
 *     if (sequential_run(model, orchestrate, &run))
 *         fail_msg("%s", sequential_error(model));
 *     sequential_destroy(model);
 *
 * Device memory is host memory. On aicpu_build_graph and tensormap_and_ringbuffer tasks work on the
 * tensors of `run` themselves; on host_build_graph the orchestration copies them, as on a chip.
 * Graphs with explicit edges run after the orchestration has returned: in the order of adding if
 * that respects all edges, else in a topological order. tensormap_and_ringbuffer runs each task
 * inside its submit. Memory that the orchestration allocates is filled with 0xCD bytes and kept
 * until the next run or the end of the model.
 *
 * A task of one dispatch is a plain call. The dispatches of a mix or of several blocks may wait for
 * each other: each has a thread, and as many blocks run at a time as the chip has.
 *
 * A model is used by one thread at a time. A lack of memory or threads ends the program.
 */
#ifndef GBX_TESTS_SEQUENTIAL_H
#define GBX_TESTS_SEQUENTIAL_H

#include <stdbool.h>
#include <stddef.h>

#include <glassbox/chip.h>
#include <glassbox/orchestration.h>

typedef struct sequential_model sequential_model;

/* One slot of a task's args[]. */
typedef struct sequential_arg {
    bool is_tensor;
    bool is_marked;    /* to be dumped */
    gbx_role role;     /* of a scalar: GBX_ROLE_INPUT */
    uint32_t dtype;    /* of a scalar: GBX_DTYPE_NONE if the call did not declare one */
    uint64_t word;     /* what the kernel gets */
    gbx_tensor tensor; /* of a tensor: what the word points at */
} sequential_arg;

typedef struct sequential_task {
    gbx_task number; /* in the order of the calls that made them */
    gbx_task_kernels kernels;
    bool is_described; /* false on host_build_graph if no call described which words are tensors */
    uint32_t arg_count;
    const sequential_arg *args;
} sequential_task;

/* Called right before the first dispatch of a task and right after its last; both may be NULL. The
 * task is borrowed until the call returns. */
typedef struct sequential_observer {
    void (*before)(void *context, const sequential_task *task);
    void (*after)(void *context, const sequential_task *task);
    void *context;
} sequential_observer;

/*
 * `kernels` is indexed by func_id, NULL for unused ones, and borrowed for the life of the model.
 * `blocks` is the number of blocks of the chip. Returns NULL for an unknown runtime.
 */
sequential_model *sequential_create(const char *runtime, const gbx_kernel_function *kernels,
                                    size_t kernel_count, uint32_t blocks);
void sequential_destroy(sequential_model *model);

/* Copied; NULL for none. */
void sequential_observe(sequential_model *model, const sequential_observer *observer);

/* Builds and runs the graph; a model may run many. Returns 0, or -1 with the reason in
 * sequential_error. */
int sequential_run(sequential_model *model, gbx_orchestrate_function function,
                   const gbx_run_args *run);

/* Of the last run: the first error, NULL for none; the number of tasks that ran. */
const char *sequential_error(const sequential_model *model);
uint64_t sequential_task_count(const sequential_model *model);

/* What orchestrations receive, for tests that make their own calls inside one. */
gbx_orchestration *sequential_orchestration(sequential_model *model);

#endif
