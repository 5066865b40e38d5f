/*
 * A random graph as data: the test makes it, its orchestrations build it and its kernels compute
 * it. Every value that a task writes depends on its number, on all that it reads and, for an inout,
 * on the old value, so that a task that runs at the wrong time leaves wrong bytes.
 */
#ifndef RANDOM_GRAPH_H
#define RANDOM_GRAPH_H

#include <glassbox/orchestration.h>

enum {
    RANDOM_MAX_TASKS = 200,
    RANDOM_MAX_ARGS = 5,
    RANDOM_BUFFERS = 4,
    /* Tensors of a run. */
    RANDOM_PLAN = 0,
    RANDOM_EDGES = 1,
    RANDOM_FIRST_BUFFER = 2,
    /* Kernels: plus the number of tensors. */
    RANDOM_AIC = 0,
    RANDOM_AIV = 8,
};

typedef enum random_runtime {
    RANDOM_HOST_BUILD_GRAPH,
    RANDOM_AICPU_BUILD_GRAPH,
    RANDOM_TENSORMAP
} random_runtime;

/* Where the bytes of an argument are. */
typedef enum random_place {
    RANDOM_IN_BUFFER, /* `from` is the buffer */
    RANDOM_NEW,       /* a new output of this task */
    RANDOM_OF_TASK    /* a view of argument `from_arg` of task `from` */
} random_place;

typedef struct random_arg {
    uint32_t place; /* random_place */
    uint32_t from;
    uint32_t from_arg;
    uint32_t role;   /* gbx_role */
    gbx_tensor view; /* without its address */
} random_arg;

typedef struct random_task {
    uint32_t subtasks; /* a bit for each */
    uint32_t block_num;
    uint32_t delay;
    uint32_t arg_count;
    uint32_t scope_ends; /* before the task */
    uint32_t scope_begins;
    uint32_t is_read; /* before the task, the orchestration reads the first element of its first
                         argument */
    uint64_t value;   /* what it must find */
    random_arg args[RANDOM_MAX_ARGS];
} random_task;

typedef struct random_plan {
    uint32_t runtime; /* random_runtime */
    uint32_t task_count;
    uint32_t edge_count;
    uint32_t scope_ends; /* after the last task */
    uint32_t publishes_late;
    uint32_t reserved;
    random_task tasks[RANDOM_MAX_TASKS];
} random_plan;

typedef struct random_edge {
    uint32_t from;
    uint32_t to;
} random_edge;

static inline uint64_t random_mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static inline uint32_t random_element_bytes(const gbx_tensor *tensor) {
    switch (tensor->dtype) {
    case GBX_UINT8:
        return 1;
    case GBX_INT16:
        return 2;
    case GBX_FLOAT32:
        return 4;
    default:
        return 8;
    }
}

/* --- the kernel --- */

static inline char *random_element(const gbx_tensor *tensor, int64_t index) {
    int64_t at = tensor->start_offset;
    for (uint32_t d = tensor->ndims; d-- > 0;) {
        at += index % tensor->shape[d] * tensor->strides[d];
        index /= tensor->shape[d];
    }
    return (char *)(uintptr_t)tensor->data + at * random_element_bytes(tensor);
}

static inline uint64_t random_load(const gbx_tensor *tensor, int64_t index) {
    uint64_t value = 0;
    memcpy(&value, random_element(tensor, index), random_element_bytes(tensor));
    return value;
}

static inline void random_spend(uint64_t delay) {
    if (delay % 8 == 1)
        sched_yield();
    for (uint64_t i = 0; i < delay; ++i)
        __asm__ volatile("");
}

static inline void random_write(const gbx_tensor *tensor, uint32_t role, uint64_t hash,
                                int64_t first, int64_t step) {
    int64_t count = gbx_tensor_numel(tensor);
    for (int64_t e = first; e < count; e += step) {
        uint64_t old = role == GBX_ROLE_INOUT ? random_load(tensor, e) : 0;
        uint64_t value = random_mix(random_mix(hash, (uint64_t)e), old);
        memcpy(random_element(tensor, e), &value, random_element_bytes(tensor));
    }
}

/* Scalars: the task's number, its subtasks, its delay, the roles by two bits each. */
static inline void random_kernel(const uint64_t *args, uint32_t tensor_count) {
    const uint64_t *scalars = args + tensor_count;
    const gbx_local_context *local = gbx_local(args);
    uint32_t subtasks = (uint32_t)scalars[1];
    uint32_t rank = (uint32_t)__builtin_popcount(subtasks & ((1u << local->subtask) - 1));
    int64_t step = (int64_t)__builtin_popcount(subtasks) * local->block_num;
    int64_t first = (int64_t)rank * local->block_num + local->block_idx;
    uint64_t hash = random_mix(1, scalars[0]);
    for (uint32_t k = 0; k < tensor_count; ++k) {
        const gbx_tensor *tensor = gbx_arg_tensor(args, k);
        int64_t count = gbx_tensor_numel(tensor);
        for (int64_t e = 0; (scalars[3] >> 2 * k & 3) == GBX_ROLE_INPUT && e < count; ++e)
            hash = random_mix(hash, random_load(tensor, e));
    }
    random_spend(scalars[2] >> (first & 3));
    for (uint32_t k = 0; k < tensor_count; ++k) {
        uint32_t role = scalars[3] >> 2 * k & 3;
        if (role != GBX_ROLE_INPUT)
            random_write(gbx_arg_tensor(args, k), role, random_mix(hash, k), first, step);
    }
}

/* --- the orchestrations --- */

/* Where buffers and new outputs are, for one run. */
typedef struct random_addresses {
    const random_plan *plan;
    uint64_t buffers[RANDOM_BUFFERS];
    uint64_t outputs[RANDOM_MAX_TASKS][RANDOM_MAX_ARGS];
} random_addresses;

static inline gbx_task_kernels random_kernels_of(const random_task *task) {
    gbx_task_kernels kernels = gbx_mix(GBX_NO_KERNEL, GBX_NO_KERNEL, GBX_NO_KERNEL);
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s)
        if (task->subtasks >> s & 1)
            kernels.func_ids[s] =
                (s == GBX_SUBTASK_AIC ? RANDOM_AIC : RANDOM_AIV) + task->arg_count;
    return gbx_spmd(kernels, task->block_num);
}

static inline gbx_tensor random_view_of(const random_addresses *at, const random_arg *arg,
                                        uint64_t own_address) {
    gbx_tensor view = arg->view;
    view.data = arg->place == RANDOM_IN_BUFFER ? at->buffers[arg->from]
                : arg->place == RANDOM_NEW     ? own_address
                                               : at->outputs[arg->from][arg->from_arg];
    return view;
}

static inline uint64_t random_roles_of(const random_task *task) {
    uint64_t roles = 0;
    for (uint32_t k = 0; k < task->arg_count; ++k)
        roles |= (uint64_t)task->args[k].role << 2 * k;
    return roles;
}

/* The tensors of a task; its new outputs get memory if the runtime does not provide it. */
static inline void random_tensors_of(gbx_orchestration *o, random_addresses *at, uint32_t number,
                                     gbx_tensor *tensors) {
    const random_task *task = &at->plan->tasks[number];
    for (uint32_t k = 0; k < task->arg_count; ++k) {
        const random_arg *arg = &task->args[k];
        uint64_t address = 0;
        if (arg->place == RANDOM_NEW && at->plan->runtime != RANDOM_TENSORMAP)
            address = at->outputs[number][k] = gbx_device_malloc(o, arg->view.buffer_bytes);
        tensors[k] = random_view_of(at, arg, address);
    }
}

static inline gbx_args random_args_of(const random_plan *plan, uint32_t number,
                                      gbx_tensor *tensors) {
    const random_task *task = &plan->tasks[number];
    gbx_args args = gbx_args_begin();
    for (uint32_t k = 0; k < task->arg_count; ++k)
        if (task->args[k].place == RANDOM_NEW && plan->runtime == RANDOM_TENSORMAP)
            gbx_args_add_new_output(&args, &tensors[k]);
        else
            gbx_args_add_tensor(&args, &tensors[k], (gbx_role)task->args[k].role);
    gbx_args_add_u64(&args, number);
    gbx_args_add_u32(&args, task->subtasks);
    gbx_args_add_u32(&args, task->delay);
    gbx_args_add_u64(&args, random_roles_of(task));
    return args;
}

/* Edges are sorted by their successors; returns the first edge of the next task. */
static inline uint32_t random_add_edges(gbx_orchestration *o, const random_plan *plan,
                                        const random_edge *edges, uint32_t at, uint32_t task) {
    for (; at < plan->edge_count && edges[at].to == task; ++at)
        gbx_add_successor(o, edges[at].from, edges[at].to);
    return at;
}

static inline void random_build_on_aicpu(gbx_orchestration *o, random_addresses *at,
                                         const random_edge *edges) {
    const random_plan *plan = at->plan;
    uint32_t edge = 0;
    for (uint32_t i = 0; i < plan->task_count; ++i) {
        gbx_tensor tensors[RANDOM_MAX_ARGS];
        random_tensors_of(o, at, i, tensors);
        gbx_args args = random_args_of(plan, i, tensors);
        gbx_add_task_with_args(o, random_kernels_of(&plan->tasks[i]), &args);
        edge = random_add_edges(o, plan, edges, edge, i);
        if (!plan->publishes_late)
            gbx_publish_task(o, i);
    }
    for (uint32_t i = plan->task_count; plan->publishes_late && i-- > 0;)
        gbx_publish_task(o, i);
}

static inline void random_build_on_host(gbx_orchestration *o, random_addresses *at,
                                        const random_edge *edges, const gbx_run_args *run) {
    const random_plan *plan = at->plan;
    uint32_t edge = 0;
    for (uint32_t b = 0; b < RANDOM_BUFFERS; ++b) {
        const gbx_tensor *buffer = &run->tensors[RANDOM_FIRST_BUFFER + b];
        void *host = (void *)(uintptr_t)buffer->data;
        at->buffers[b] = gbx_device_malloc(o, buffer->buffer_bytes);
        gbx_copy_to_device(o, at->buffers[b], host, buffer->buffer_bytes);
        gbx_return_to_host(o, host, at->buffers[b], buffer->buffer_bytes);
    }
    for (uint32_t i = 0; i < plan->task_count; ++i) {
        const random_task *task = &plan->tasks[i];
        gbx_tensor tensors[RANDOM_MAX_ARGS];
        gbx_tensor_info infos[RANDOM_MAX_ARGS];
        uint64_t words[RANDOM_MAX_ARGS + 4];
        random_tensors_of(o, at, i, tensors);
        for (uint32_t k = 0; k < task->arg_count; ++k) {
            words[k] = gbx_device_tensor(o, &tensors[k]);
            infos[k] = (gbx_tensor_info){k, task->args[k].role, tensors[k]};
        }
        words[task->arg_count] = i;
        words[task->arg_count + 1] = task->subtasks;
        words[task->arg_count + 2] = task->delay;
        words[task->arg_count + 3] = random_roles_of(task);
        gbx_add_task_with_tensor_info(o, random_kernels_of(task), words, task->arg_count + 4, infos,
                                      task->arg_count);
        edge = random_add_edges(o, plan, edges, edge, i);
    }
}

static inline void random_submit(gbx_orchestration *o, random_addresses *at, uint32_t number) {
    const random_task *task = &at->plan->tasks[number];
    gbx_tensor tensors[RANDOM_MAX_ARGS];
    int64_t origin[GBX_MAX_DIMS] = {0};
    for (uint32_t i = 0; i < task->scope_ends; ++i)
        gbx_scope_end(o);
    for (uint32_t i = 0; i < task->scope_begins; ++i)
        gbx_scope_begin(o);
    random_tensors_of(o, at, number, tensors);
    if (task->is_read && gbx_get_tensor_data(o, &tensors[0], origin) != task->value)
        gbx_orchestration_fail(o, "the orchestration read what is not there yet");
    gbx_args args = random_args_of(at->plan, number, tensors);
    gbx_submit_task(o, random_kernels_of(task), &args);
    for (uint32_t k = 0; k < task->arg_count; ++k)
        at->outputs[number][k] = tensors[k].data;
}

static inline int random_orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    const random_plan *plan = (const random_plan *)(uintptr_t)run->tensors[RANDOM_PLAN].data;
    const random_edge *edges = (const random_edge *)(uintptr_t)run->tensors[RANDOM_EDGES].data;
    random_addresses at;
    at.plan = plan;
    for (uint32_t b = 0; b < RANDOM_BUFFERS; ++b)
        at.buffers[b] = run->tensors[RANDOM_FIRST_BUFFER + b].data;
    if (plan->runtime == RANDOM_HOST_BUILD_GRAPH)
        random_build_on_host(o, &at, edges, run);
    else if (plan->runtime == RANDOM_AICPU_BUILD_GRAPH)
        random_build_on_aicpu(o, &at, edges);
    for (uint32_t i = 0; plan->runtime == RANDOM_TENSORMAP && i < plan->task_count; ++i)
        random_submit(o, &at, i);
    for (uint32_t i = 0; plan->runtime == RANDOM_TENSORMAP && i < plan->scope_ends; ++i)
        gbx_scope_end(o);
    return 0;
}

#endif
