/*
 * One way to build a graph on all three runtimes, for the orchestrations of the zoo.
 *
 *     task t = begin_task(g, gbx_aiv(NORM));
 *     in(&t, x);
 *     fresh(&t, &h);
 *     f32(&t, 1e-5f);
 *     after(&t, earlier);
 *     gbx_task norm = add(&t);
 *
 * tensormap_and_ringbuffer ignores what `after` says and finds its edges itself.
 */
#ifndef ZOO_GRAPH_H
#define ZOO_GRAPH_H

#include <glassbox/orchestration.h>

typedef enum runtime_kind { ON_HOST, ON_AICPU, ON_TENSORMAP } runtime_kind;

/* The tensors of the run, where tasks can use them. */
typedef struct graph {
    gbx_orchestration *o;
    const gbx_run_args *run;
    runtime_kind runtime;
    gbx_tensor tensors[GBX_MAX_RUN_TENSORS];
} graph;

enum { MAX_ARGS = 8, MAX_AFTER = 24 };

typedef struct task {
    graph *graph;
    gbx_task_kernels kernels;
    uint32_t tensor_count, scalar_count, after_count;
    gbx_tensor tensors[MAX_ARGS];
    gbx_tensor *made[MAX_ARGS]; /* where the tensor goes that the runtime allocates */
    gbx_role roles[MAX_ARGS];
    gbx_dtype dtypes[MAX_ARGS];
    uint64_t scalars[MAX_ARGS];
    gbx_task after[MAX_AFTER];
} task;

static inline task begin_task(graph *g, gbx_task_kernels kernels) {
    task t = {.graph = g, .kernels = kernels};
    return t;
}

static inline void argument(task *t, gbx_tensor tensor, gbx_role role) {
    t->tensors[t->tensor_count] = tensor;
    t->roles[t->tensor_count++] = role;
}

static inline void in(task *t, gbx_tensor tensor) {
    argument(t, tensor, GBX_ROLE_INPUT);
}

static inline void out(task *t, gbx_tensor tensor) {
    argument(t, tensor, GBX_ROLE_OUTPUT);
}

static inline void inout(task *t, gbx_tensor tensor) {
    argument(t, tensor, GBX_ROLE_INOUT);
}

static inline uint64_t element_bytes(const gbx_tensor *tensor) {
    switch (tensor->dtype) {
    case GBX_FLOAT32:
    case GBX_INT32:
    case GBX_UINT32:
        return 4;
    case GBX_FLOAT16:
    case GBX_BFLOAT16:
        return 2;
    default:
        return 1;
    }
}

static inline uint64_t buffer_bytes(const gbx_tensor *tensor) {
    return (uint64_t)gbx_tensor_numel(tensor) * element_bytes(tensor);
}

/* An output in new memory. It is known in `tensor` once the task was added. */
static inline void fresh(task *t, gbx_tensor *tensor) {
    graph *g = t->graph;
    if (g->runtime != ON_TENSORMAP) {
        tensor->buffer_bytes = buffer_bytes(tensor);
        tensor->data = gbx_device_malloc(g->o, tensor->buffer_bytes);
    }
    t->made[t->tensor_count] = tensor;
    out(t, *tensor);
}

static inline void scalar(task *t, gbx_dtype dtype, uint64_t word) {
    t->dtypes[t->scalar_count] = dtype;
    t->scalars[t->scalar_count++] = word;
}

static inline void f32(task *t, float value) {
    scalar(t, GBX_FLOAT32, gbx_word_f32(value));
}

static inline void i32(task *t, int32_t value) {
    scalar(t, GBX_INT32, (uint32_t)value);
}

static inline void after(task *t, gbx_task earlier) {
    t->after[t->after_count++] = earlier;
}

static inline gbx_task add_words(task *t) {
    graph *g = t->graph;
    uint64_t words[2 * MAX_ARGS];
    gbx_tensor_info infos[MAX_ARGS];
    for (uint32_t i = 0; i < t->tensor_count; ++i) {
        words[i] = gbx_device_tensor(g->o, &t->tensors[i]);
        infos[i] = (gbx_tensor_info){i, t->roles[i], t->tensors[i]};
    }
    for (uint32_t i = 0; i < t->scalar_count; ++i)
        words[t->tensor_count + i] = t->scalars[i];
    return gbx_add_task_with_tensor_info(g->o, t->kernels, words, t->tensor_count + t->scalar_count,
                                         infos, t->tensor_count);
}

static inline gbx_task add_args(task *t) {
    graph *g = t->graph;
    gbx_args args = gbx_args_begin();
    for (uint32_t i = 0; i < t->tensor_count; ++i)
        if (t->made[i] && g->runtime == ON_TENSORMAP)
            gbx_args_add_new_output(&args, t->made[i]);
        else
            gbx_args_add_tensor(&args, &t->tensors[i], t->roles[i]);
    for (uint32_t i = 0; i < t->scalar_count; ++i)
        gbx_args_add_scalar(&args, t->dtypes[i], t->scalars[i]);
    if (g->runtime == ON_TENSORMAP)
        return gbx_submit_task(g->o, t->kernels, &args);
    return gbx_add_task_with_args(g->o, t->kernels, &args);
}

static inline gbx_task add(task *t) {
    graph *g = t->graph;
    if (g->runtime == ON_TENSORMAP)
        return add_args(t);
    gbx_task added = g->runtime == ON_HOST ? add_words(t) : add_args(t);
    for (uint32_t i = 0; i < t->after_count; ++i)
        gbx_add_successor(g->o, t->after[i], added);
    if (g->runtime == ON_AICPU)
        gbx_publish_task(g->o, added);
    return added;
}

/* A part of a matrix. */
static inline gbx_tensor tile(const gbx_tensor *matrix, int64_t row, int64_t rows, int64_t column,
                              int64_t columns) {
    gbx_tensor part = gbx_view_slice(matrix, 0, row, rows);
    return gbx_view_slice(&part, 1, column, columns);
}

static inline gbx_tensor slice(const gbx_tensor *tensor, int64_t start, int64_t length) {
    return gbx_view_slice(tensor, 0, start, length);
}

static inline gbx_tensor matrix_of(gbx_dtype dtype, int64_t rows, int64_t columns) {
    return gbx_new_tensor(dtype, 2, (int64_t[]){rows, columns});
}

static inline gbx_tensor vector_of(gbx_dtype dtype, int64_t length) {
    return gbx_new_tensor(dtype, 1, &length);
}

/* How much of `total` the part at `start` has, of parts of this length. */
static inline int64_t part_of(int64_t total, int64_t start, int64_t length) {
    return total - start < length ? total - start : length;
}

static inline graph graph_on_chip(gbx_orchestration *o, const gbx_run_args *run,
                                  runtime_kind runtime) {
    graph g = {o, run, runtime, {{0}}};
    memcpy(g.tensors, run->tensors, run->tensor_count * sizeof *g.tensors);
    return g;
}

/* `outs` and `inouts` have a bit for each tensor of the run that comes back to the host. */
static inline graph graph_on_host(gbx_orchestration *o, const gbx_run_args *run, uint32_t outs,
                                  uint32_t inouts) {
    graph g = graph_on_chip(o, run, ON_HOST);
    for (uint32_t i = 0; i < run->tensor_count; ++i) {
        gbx_tensor *tensor = &g.tensors[i];
        void *host = (void *)(uintptr_t)tensor->data;
        uint64_t bytes = tensor->buffer_bytes;
        tensor->data = gbx_device_malloc(o, bytes);
        if (!(outs >> i & 1))
            gbx_copy_to_device(o, tensor->data, host, bytes);
        if ((outs | inouts) >> i & 1)
            gbx_return_to_host(o, host, tensor->data, bytes);
    }
    return g;
}

#endif
