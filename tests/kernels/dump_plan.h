/*
 * A task graph as data, for tests of the dump: the test makes it, dump_orchestration.c builds it on
 * any runtime, and dump_step.c computes it. All tensors are views of one memory; an address in a
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
    PLAN_SAVED = 2, /* optional: the orchestration saves its arguments in it */
    PLAN_RUNTIME = 0,
};

typedef enum plan_runtime {
    PLAN_HOST_BUILD_GRAPH,
    PLAN_AICPU_BUILD_GRAPH,
    PLAN_TENSORMAP
} plan_runtime;

/* host_build_graph: how the words of a task are described to the runtime. */
typedef enum plan_description {
    PLAN_DESCRIBED,       /* with the call that adds the task */
    PLAN_DESCRIBED_LATER, /* with a separate call */
    PLAN_UNDESCRIBED,
    PLAN_WRONG_SHAPE,   /* argument 1 has one row more than the kernel gets */
    PLAN_WRONG_ADDRESS, /* argument 1 has another address than the kernel gets */
    PLAN_LACKS_ONE,     /* argument 1 is not described */
} plan_description;

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
    uint32_t description; /* plan_description */
    uint32_t marks_all;
    uint32_t has_control; /* used only by the test */
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

/* --- the first tensor of dump_step.c, which controls it --- */

typedef enum step_mode {
    STEP_WRITE,   /* writes every element, computed from all inputs and the old value of an inout */
    STEP_COPY,    /* outputs get the elements of tensor 1 */
    STEP_NOTHING, /* changes nothing */
    STEP_CRASH,   /* as STEP_WRITE, up to an element */
    STEP_HANG,    /* likewise */
    STEP_EXIT,    /* likewise, and ends the process */
} step_mode;

typedef struct step_control {
    uint64_t mode;
    uint64_t tensor_count; /* including this one */
    uint64_t written;      /* a bit for each tensor */
    uint64_t inouts;       /* likewise */
    uint64_t subtasks;     /* of the task: a bit for each */
    uint64_t seed;
    uint64_t stop_tensor; /* crash or hang: before this element of this tensor */
    uint64_t stop_element;
} step_control;

enum { STEP_CONTROL_WORDS = sizeof(step_control) / sizeof(uint64_t) };

#endif
