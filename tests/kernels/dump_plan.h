/*
 * A task graph as data, for tests of the dump: what the test makes up, dump_orchestration.c builds
 * on any runtime, and dump_step.c computes. All tensors are views of one memory; an address in a
 * plan is an offset in it.
 */
#ifndef DUMP_PLAN_H
#define DUMP_PLAN_H

#include <glassbox/orchestration.h>

enum {
    PLAN_MAX_TASKS = 40,
    PLAN_MAX_AFTER = 4,
    /* Tensors of a run, then its scalars. */
    PLAN_TENSOR = 0,
    PLAN_MEMORY = 1,
    PLAN_SAVED = 2, /* where it is: the orchestration leaves in it what it was called with */
    PLAN_RUNTIME = 0,
};

typedef enum plan_runtime {
    PLAN_HOST_BUILD_GRAPH,
    PLAN_AICPU_BUILD_GRAPH,
    PLAN_TENSORMAP
} plan_runtime;

/* host_build_graph: what the runtime is told of the words of a task. */
typedef enum plan_telling {
    PLAN_TELL_AT_ONCE, /* with the call that adds the task */
    PLAN_TELL_LATER,   /* with one of its own */
    PLAN_TELL_NOTHING,
    PLAN_TELL_WRONG_SHAPE,   /* of argument 1: a row more than the kernel gets */
    PLAN_TELL_WRONG_ADDRESS, /* of argument 1: elsewhere than the kernel gets */
} plan_telling;

typedef struct plan_tensor {
    uint32_t role; /* gbx_role */
    uint32_t is_marked;
    gbx_tensor view;
} plan_tensor;

typedef struct plan_scalar {
    uint32_t dtype; /* GBX_DTYPE_NONE: not declared by the call */
    uint32_t is_marked;
    uint64_t bits;
} plan_scalar;

typedef struct plan_task {
    gbx_task_kernels kernels;
    uint32_t telling; /* plan_telling */
    uint32_t marks_all;
    uint32_t has_control; /* for the test alone */
    uint32_t after_count;
    uint32_t tensor_count;
    uint32_t scalar_count;
    uint32_t after[PLAN_MAX_AFTER];
    plan_tensor tensors[GBX_MAX_TENSOR_ARGS];
    plan_scalar scalars[GBX_MAX_SCALAR_ARGS];
} plan_task;

typedef struct plan {
    uint32_t task_count;
    uint32_t result; /* what the orchestration returns */
    plan_task tasks[PLAN_MAX_TASKS];
} plan;

/* What PLAN_SAVED holds, in words: two counts, the tensors, the scalars. */
enum {
    SAVED_TENSOR_COUNT = 0,
    SAVED_SCALAR_COUNT = 1,
    SAVED_TENSORS = 2,
    SAVED_TENSOR_WORDS = sizeof(gbx_tensor) / sizeof(uint64_t),
};

/* --- what the first tensor of dump_step.c tells it --- */

typedef enum step_mode {
    STEP_WRITE,   /* writes every element, from all inputs and, of an inout, from what was there */
    STEP_COPY,    /* outputs get the elements of tensor 1 */
    STEP_NOTHING, /* leaves all as it is */
    STEP_CRASH,   /* as STEP_WRITE, up to an element */
    STEP_HANG,    /* likewise */
    STEP_EXIT,    /* likewise, and ends the process */
} step_mode;

typedef struct step_control {
    uint64_t mode;
    uint64_t tensor_count; /* this one included */
    uint64_t written;      /* a bit for each tensor */
    uint64_t inouts;       /* likewise */
    uint64_t subtasks;     /* of the task: a bit each */
    uint64_t seed;
    uint64_t stop_tensor; /* crash or hang: before this element of this tensor */
    uint64_t stop_element;
} step_control;

enum { STEP_CONTROL_WORDS = sizeof(step_control) / sizeof(uint64_t) };

#endif
