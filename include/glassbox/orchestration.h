/*
 * All that an orchestration needs to include. An orchestration is the function that builds a task
 * graph, for any of the three runtimes.
 *
 *     #include <glassbox/orchestration.h>
 *     int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
 *         gbx_args args = gbx_args_begin();
 *         gbx_args_add_input(&args, &run->tensors[0]);
 *         gbx_args_add_output(&args, &run->tensors[1]);
 *         gbx_args_add_f32(&args, 1.0f);
 *         gbx_submit_aiv_task(o, ADD_SCALAR, &args);
 *         return 0;
 *     }
 *
 * With host_build_graph it runs on the host, and the tensors of `run` lie in host memory. With the
 * two others it runs on the chip's orchestrator thread, and they lie in global memory. Only one
 * thread may build a graph.
 *
 * Calls need no checks. The first wrong call is remembered with its task; later calls do nothing
 * and return GBX_NO_TASK or address 0. When the orchestration returns, the run fails with one
 * sentence about the first error. An orchestration that returns anything but 0 fails the run, too.
 */
#ifndef GLASSBOX_ORCHESTRATION_H
#define GLASSBOX_ORCHESTRATION_H

#include <glassbox/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GBX_NO_KERNEL UINT32_MAX
#define GBX_NO_TASK UINT64_MAX
#define GBX_MAX_RUN_TENSORS 64
#define GBX_MAX_RUN_SCALARS 64

typedef struct gbx_orchestration gbx_orchestration;

/* A task: its number, in the order of the calls that made tasks, from 0. */
typedef uint64_t gbx_task;

typedef enum gbx_role { GBX_ROLE_INPUT = 0, GBX_ROLE_OUTPUT = 1, GBX_ROLE_INOUT = 2 } gbx_role;

/* The arguments of the run: tensors and scalars, each in the order of the scene's arguments. */
typedef struct gbx_run_args {
    const gbx_tensor *tensors; /* row-major, contiguous */
    const uint64_t *scalars;   /* raw bits, as a kernel gets them */
    uint32_t tensor_count;
    uint32_t scalar_count;
} gbx_run_args;

/* The function that every orchestration defines, by default under the name orchestrate. */
typedef int (*gbx_orchestrate_function)(gbx_orchestration *orchestration, const gbx_run_args *run);

/* --- which kernels a task runs --- */

/* The blocks of the task wait for each other: an error where the chip has fewer. */
enum { GBX_TASK_SYNC_BLOCKS = 1u << 0 };

typedef struct gbx_task_kernels {
    uint32_t func_ids[GBX_SUBTASK_COUNT]; /* for AIC, AIV0, AIV1; GBX_NO_KERNEL for none */
    uint32_t block_num;                   /* 1 and up */
    uint32_t flags;                       /* GBX_TASK_... */
} gbx_task_kernels;

static inline gbx_task_kernels gbx_mix(uint32_t aic, uint32_t aiv0, uint32_t aiv1) {
    gbx_task_kernels kernels = {{aic, aiv0, aiv1}, 1, 0};
    return kernels;
}

static inline gbx_task_kernels gbx_aic(uint32_t func_id) {
    return gbx_mix(func_id, GBX_NO_KERNEL, GBX_NO_KERNEL);
}

static inline gbx_task_kernels gbx_aiv(uint32_t func_id) {
    return gbx_mix(GBX_NO_KERNEL, func_id, GBX_NO_KERNEL);
}

/* The same kernels on `block_num` blocks: gbx_spmd(gbx_mix(1, 2, 3), 8). */
static inline gbx_task_kernels gbx_spmd(gbx_task_kernels kernels, uint32_t block_num) {
    kernels.block_num = block_num;
    return kernels;
}

/* --- arguments of a task (aicpu_build_graph, tensormap_and_ringbuffer) --- */

/*
 * Tensors and scalars in the order of the calls that add them. Tensors are borrowed until the task
 * is added or submitted; the runtime keeps a copy. Too many arguments are an error when the task is
 * added.
 */
typedef struct gbx_args {
    uint32_t tensor_count; /* may exceed the limits: the rest is then not kept */
    uint32_t scalar_count;
    uint32_t new_outputs;    /* a bit for each tensor that the runtime allocates */
    uint32_t dumped_tensors; /* a bit for each argument marked for the dump */
    uint32_t dumped_scalars;
    uint8_t roles[GBX_MAX_TENSOR_ARGS]; /* gbx_role */
    uint8_t
        scalar_dtypes[GBX_MAX_SCALAR_ARGS]; /* gbx_dtype; GBX_DTYPE_NONE: that of the signature */
    const gbx_tensor *tensors[GBX_MAX_TENSOR_ARGS];
    uint64_t scalars[GBX_MAX_SCALAR_ARGS];
    uint32_t wrong_mark;       /* the first invalid index of gbx_args_dump */
    uint32_t wrong_mark_bound; /* and 1 + how many arguments there were; 0: none was invalid */
} gbx_args;

/* Makes arguments empty, for the first use or another. */
static inline void gbx_args_clear(gbx_args *args) {
    args->tensor_count = args->scalar_count = 0;
    args->new_outputs = args->dumped_tensors = args->dumped_scalars = 0;
    args->wrong_mark = args->wrong_mark_bound = 0;
}

static inline gbx_args gbx_args_begin(void) {
    gbx_args args;
    gbx_args_clear(&args);
    return args;
}

static inline void gbx_args_add_tensor(gbx_args *args, const gbx_tensor *tensor, gbx_role role) {
    uint32_t index = args->tensor_count++;
    if (index >= GBX_MAX_TENSOR_ARGS)
        return;
    args->tensors[index] = tensor;
    args->roles[index] = (uint8_t)role;
}

static inline void gbx_args_add_input(gbx_args *args, const gbx_tensor *tensor) {
    gbx_args_add_tensor(args, tensor, GBX_ROLE_INPUT);
}

static inline void gbx_args_add_output(gbx_args *args, const gbx_tensor *tensor) {
    gbx_args_add_tensor(args, tensor, GBX_ROLE_OUTPUT);
}

static inline void gbx_args_add_inout(gbx_args *args, const gbx_tensor *tensor) {
    gbx_args_add_tensor(args, tensor, GBX_ROLE_INOUT);
}

/*
 * tensormap_and_ringbuffer: an output that the runtime allocates from its heap ring when the task
 * is submitted. The caller gives dtype and shape (gbx_new_tensor); the submit fills in the rest.
 * The memory is not cleared. It stays until the scope of the task has ended and its last reader is
 * done.
 */
static inline void gbx_args_add_new_output(gbx_args *args, gbx_tensor *tensor) {
    if (args->tensor_count < GBX_MAX_TENSOR_ARGS)
        args->new_outputs |= 1u << args->tensor_count;
    gbx_args_add_tensor(args, tensor, GBX_ROLE_OUTPUT);
}

/* A scalar by its raw bits; GBX_DTYPE_NONE where the kernel's signature has its dtype. */
static inline void gbx_args_add_scalar(gbx_args *args, gbx_dtype dtype, uint64_t bits) {
    uint32_t index = args->scalar_count++;
    if (index >= GBX_MAX_SCALAR_ARGS)
        return;
    args->scalars[index] = bits;
    args->scalar_dtypes[index] = (uint8_t)dtype;
}

/* The word of a scalar as args[] holds it. */
static inline uint64_t gbx_word_f32(float value) {
    return gbx_f32_bits(value);
}

static inline uint64_t gbx_word_f64(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline void gbx_args_add_f32(gbx_args *args, float value) {
    gbx_args_add_scalar(args, GBX_FLOAT32, gbx_word_f32(value));
}

static inline void gbx_args_add_f64(gbx_args *args, double value) {
    gbx_args_add_scalar(args, GBX_FLOAT64, gbx_word_f64(value));
}

static inline void gbx_args_add_i32(gbx_args *args, int32_t value) {
    gbx_args_add_scalar(args, GBX_INT32, (uint32_t)value);
}

static inline void gbx_args_add_u32(gbx_args *args, uint32_t value) {
    gbx_args_add_scalar(args, GBX_UINT32, value);
}

static inline void gbx_args_add_i64(gbx_args *args, int64_t value) {
    gbx_args_add_scalar(args, GBX_INT64, (uint64_t)value);
}

static inline void gbx_args_add_u64(gbx_args *args, uint64_t value) {
    gbx_args_add_scalar(args, GBX_UINT64, value);
}

static inline void gbx_args_add_bool(gbx_args *args, int value) {
    gbx_args_add_scalar(args, GBX_BOOL, value != 0);
}

/*
 * Marks an argument for the dump (docs/tensor-dump.md: levels partial and hybrid). `index` is its
 * slot among the arguments added so far: tensors first, then scalars. A tensor added later moves
 * the slots of scalars, but a mark stays with its argument. An invalid index is an error when the
 * task is added.
 */
static inline void gbx_args_dump(gbx_args *args, uint32_t index) {
    uint32_t count = args->tensor_count + args->scalar_count;
    if (index >= count && !args->wrong_mark_bound) {
        args->wrong_mark = index;
        args->wrong_mark_bound = 1 + count;
    }
    if (index < args->tensor_count && index < GBX_MAX_TENSOR_ARGS)
        args->dumped_tensors |= 1u << index;
    else if (index < count && index - args->tensor_count < GBX_MAX_SCALAR_ARGS)
        args->dumped_scalars |= 1u << (index - args->tensor_count);
}

/* Marks all arguments, even those added later. */
static inline void gbx_args_dump_all(gbx_args *args) {
    args->dumped_tensors = args->dumped_scalars = UINT32_MAX;
}

/* host_build_graph: which word of a task is which tensor. */
typedef struct gbx_tensor_info {
    uint32_t arg_index; /* the word */
    uint32_t role;      /* gbx_role */
    gbx_tensor tensor;  /* what the word points at */
} gbx_tensor_info;

/* --- what a runtime offers; calls that it does not have are NULL --- */

typedef struct gbx_orchestration_ops {
    /* Fails the graph, because this runtime has no such call. */
    void (*refuse)(gbx_orchestration *o, const char *call);
    void (*report_failure)(gbx_orchestration *o, const char *message);

    gbx_task (*add_task)(gbx_orchestration *o, const gbx_task_kernels *kernels,
                         const uint64_t *words, uint32_t word_count, const gbx_tensor_info *infos,
                         uint32_t info_count);
    void (*set_tensor_info)(gbx_orchestration *o, gbx_task task, const gbx_tensor_info *infos,
                            uint32_t info_count);
    gbx_task (*add_task_with_args)(gbx_orchestration *o, const gbx_task_kernels *kernels,
                                   const gbx_args *args);
    int (*add_successor)(gbx_orchestration *o, gbx_task predecessor, gbx_task successor,
                         int is_conditional);
    void (*publish_task)(gbx_orchestration *o, gbx_task task);
    gbx_task (*submit_task)(gbx_orchestration *o, const gbx_task_kernels *kernels,
                            const gbx_args *args);
    void (*scope_begin)(gbx_orchestration *o);
    void (*scope_end)(gbx_orchestration *o);
    uint64_t (*get_tensor_data)(gbx_orchestration *o, const gbx_tensor *tensor,
                                const int64_t *indices);

    uint64_t (*device_malloc)(gbx_orchestration *o, uint64_t bytes);
    void (*copy_to_device)(gbx_orchestration *o, uint64_t to, const void *from, uint64_t bytes);
    void (*return_to_host)(gbx_orchestration *o, void *to, uint64_t from, uint64_t bytes);
    uint64_t (*device_tensor)(gbx_orchestration *o, const gbx_tensor *tensor);
    void (*dump_task_words)(gbx_orchestration *o, gbx_task task, uint64_t words);
} gbx_orchestration_ops;

struct gbx_orchestration {
    const gbx_orchestration_ops *ops;
};

/* Fails the run with a message. */
static inline void gbx_orchestration_fail(gbx_orchestration *o, const char *message) {
    o->ops->report_failure(o, message);
}

/* --- host_build_graph --- */

/* Memory on the chip, kept until the run has ended; 0 after an error. Also in aicpu_build_graph. */
static inline uint64_t gbx_device_malloc(gbx_orchestration *o, uint64_t bytes) {
    if (o->ops->device_malloc)
        return o->ops->device_malloc(o, bytes);
    o->ops->refuse(o, "gbx_device_malloc");
    return 0;
}

/* Copies immediately. */
static inline void gbx_copy_to_device(gbx_orchestration *o, uint64_t to, const void *from,
                                      uint64_t bytes) {
    if (o->ops->copy_to_device)
        o->ops->copy_to_device(o, to, from, bytes);
    else
        o->ops->refuse(o, "gbx_copy_to_device");
}

/* Requests a copy back to the host, made when all tasks have completed. */
static inline void gbx_return_to_host(gbx_orchestration *o, void *to, uint64_t from,
                                      uint64_t bytes) {
    if (o->ops->return_to_host)
        o->ops->return_to_host(o, to, from, bytes);
    else
        o->ops->refuse(o, "gbx_return_to_host");
}

/* Puts a tensor's description into global memory; returns the word that a kernel gets for it. */
static inline uint64_t gbx_device_tensor(gbx_orchestration *o, const gbx_tensor *tensor) {
    if (o->ops->device_tensor)
        return o->ops->device_tensor(o, tensor);
    o->ops->refuse(o, "gbx_device_tensor");
    return 0;
}

/*
 * Adds a task with raw words: tensors (gbx_device_tensor) first, scalars after them. It runs after
 * all its predecessors. An undescribed task, which never gets tensor info, runs but cannot be
 * dumped.
 */
static inline gbx_task gbx_add_task(gbx_orchestration *o, gbx_task_kernels kernels,
                                    const uint64_t *words, uint32_t word_count) {
    if (o->ops->add_task)
        return o->ops->add_task(o, &kernels, words, word_count, 0, 0);
    o->ops->refuse(o, "gbx_add_task");
    return GBX_NO_TASK;
}

/* Describes a task: these words are tensors; the others are scalars. */
static inline void gbx_set_tensor_info_to_task(gbx_orchestration *o, gbx_task task,
                                               const gbx_tensor_info *infos, uint32_t info_count) {
    if (o->ops->set_tensor_info)
        o->ops->set_tensor_info(o, task, infos, info_count);
    else
        o->ops->refuse(o, "gbx_set_tensor_info_to_task");
}

/* Adds and describes a task. */
static inline gbx_task gbx_add_task_with_tensor_info(gbx_orchestration *o, gbx_task_kernels kernels,
                                                     const uint64_t *words, uint32_t word_count,
                                                     const gbx_tensor_info *infos,
                                                     uint32_t info_count) {
    if (o->ops->add_task)
        return o->ops->add_task(o, &kernels, words, word_count, infos, info_count);
    o->ops->refuse(o, "gbx_add_task_with_tensor_info");
    return GBX_NO_TASK;
}

/*
 * Marks words of a task for the dump, a bit for each (1 << 2 is the word at index 2); all ones mark
 * the complete task. Marks of several calls add up. A bit beyond the words of the task is an error,
 * except in all ones.
 */
static inline void gbx_dump_task_words(gbx_orchestration *o, gbx_task task, uint64_t words) {
    if (o->ops->dump_task_words)
        o->ops->dump_task_words(o, task, words);
    else
        o->ops->refuse(o, "gbx_dump_task_words");
}

/* `successor` starts after `predecessor` has completed. Also in aicpu_build_graph. */
static inline void gbx_add_successor(gbx_orchestration *o, gbx_task predecessor,
                                     gbx_task successor) {
    if (o->ops->add_successor)
        o->ops->add_successor(o, predecessor, successor, 0);
    else
        o->ops->refuse(o, "gbx_add_successor");
}

/* --- aicpu_build_graph --- */

/* Adds a task, which runs only after gbx_publish_task. Add its edges before that. */
static inline gbx_task gbx_add_task_with_args(gbx_orchestration *o, gbx_task_kernels kernels,
                                              const gbx_args *args) {
    if (o->ops->add_task_with_args)
        return o->ops->add_task_with_args(o, &kernels, args);
    o->ops->refuse(o, "gbx_add_task_with_args");
    return GBX_NO_TASK;
}

/*
 * `successor`, which is not published yet, starts after `predecessor`, which may be running or
 * done. Returns 1 when the edge counts, 0 when the predecessor was done already.
 */
static inline int gbx_add_successor_conditional(gbx_orchestration *o, gbx_task predecessor,
                                                gbx_task successor) {
    if (o->ops->add_successor)
        return o->ops->add_successor(o, predecessor, successor, 1);
    o->ops->refuse(o, "gbx_add_successor_conditional");
    return 0;
}

/* The task now has all its edges: it runs as soon as its predecessors are done. */
static inline void gbx_publish_task(gbx_orchestration *o, gbx_task task) {
    if (o->ops->publish_task)
        o->ops->publish_task(o, task);
    else
        o->ops->refuse(o, "gbx_publish_task");
}

/* --- tensormap_and_ringbuffer --- */

/*
 * Submits a task. It runs after every earlier task that writes what it reads, or that reads or
 * writes what it writes, by the exact overlap of views. Waits while the window of tasks or the heap
 * is full.
 */
static inline gbx_task gbx_submit_task(gbx_orchestration *o, gbx_task_kernels kernels,
                                       const gbx_args *args) {
    if (o->ops->submit_task)
        return o->ops->submit_task(o, &kernels, args);
    o->ops->refuse(o, "gbx_submit_task");
    return GBX_NO_TASK;
}

static inline gbx_task gbx_submit_aic_task(gbx_orchestration *o, uint32_t func_id,
                                           const gbx_args *args) {
    return gbx_submit_task(o, gbx_aic(func_id), args);
}

static inline gbx_task gbx_submit_aiv_task(gbx_orchestration *o, uint32_t func_id,
                                           const gbx_args *args) {
    return gbx_submit_task(o, gbx_aiv(func_id), args);
}

static inline gbx_task gbx_submit_mix_task(gbx_orchestration *o, gbx_task_kernels kernels,
                                           const gbx_args *args) {
    return gbx_submit_task(o, kernels, args);
}

/*
 * A scope keeps the tasks submitted in it whose outputs the runtime allocated, and these outputs.
 * They are freed when the scope has ended and they are done; tasks without such outputs are freed
 * as soon as they are done. All are freed in order of submission: a ring. Scopes nest; the
 * orchestration itself is one.
 */
static inline void gbx_scope_begin(gbx_orchestration *o) {
    if (o->ops->scope_begin)
        o->ops->scope_begin(o);
    else
        o->ops->refuse(o, "gbx_scope_begin");
}

static inline void gbx_scope_end(gbx_orchestration *o) {
    if (o->ops->scope_end)
        o->ops->scope_end(o);
    else
        o->ops->refuse(o, "gbx_scope_end");
}

/* --- all runtimes --- */

/*
 * The raw bits of one element of a tensor, in the low bits; `indices` has one index per dimension.
 * tensormap_and_ringbuffer waits for the tasks that write the element; the two others read what is
 * there now, which is right for inputs of the run.
 */
static inline uint64_t gbx_get_tensor_data(gbx_orchestration *o, const gbx_tensor *tensor,
                                           const int64_t *indices) {
    if (o->ops->get_tensor_data)
        return o->ops->get_tensor_data(o, tensor, indices);
    o->ops->refuse(o, "gbx_get_tensor_data");
    return 0;
}

static inline int32_t gbx_get_tensor_i32(gbx_orchestration *o, const gbx_tensor *tensor,
                                         const int64_t *indices) {
    return (int32_t)(uint32_t)gbx_get_tensor_data(o, tensor, indices);
}

static inline float gbx_get_tensor_f32(gbx_orchestration *o, const gbx_tensor *tensor,
                                       const int64_t *indices) {
    return gbx_f32_of_bits((uint32_t)gbx_get_tensor_data(o, tensor, indices));
}

/* --- views, for orchestrations, which are not linked with the library --- */

/* A row-major tensor at `data`. Not checked here, but when a task gets it. */
static inline gbx_tensor gbx_tensor_at(uint64_t data, gbx_dtype dtype, uint32_t ndims,
                                       const int64_t *shape) {
    gbx_tensor tensor;
    int64_t stride = 1;
    memset(&tensor, 0, sizeof tensor);
    tensor.data = data;
    tensor.dtype = (uint32_t)dtype;
    tensor.ndims = ndims;
    for (uint32_t d = ndims < GBX_MAX_DIMS ? ndims : GBX_MAX_DIMS; d-- > 0;) {
        tensor.shape[d] = shape[d];
        tensor.strides[d] = stride;
        stride = (int64_t)((uint64_t)stride * (uint64_t)shape[d]);
    }
    return tensor;
}

/* For gbx_args_add_new_output. */
static inline gbx_tensor gbx_new_tensor(gbx_dtype dtype, uint32_t ndims, const int64_t *shape) {
    return gbx_tensor_at(0, dtype, ndims, shape);
}

/* Of an impossible view an impossible view is made, with what was wrong first. */
static inline gbx_tensor gbx_view_impossible(const gbx_tensor *tensor, uint32_t call, uint32_t dim,
                                             int64_t start, int64_t length) {
    gbx_tensor view = *tensor;
    if (view.dtype & GBX_IMPOSSIBLE_VIEW)
        return view;
    view.dtype |= GBX_IMPOSSIBLE_VIEW;
    view.reserved[0] = call;
    view.reserved[1] = dim;
    view.reserved[2] = (uint64_t)start;
    view.reserved[3] = (uint64_t)length;
    return view;
}

static inline int gbx_view_has_dim(const gbx_tensor *tensor, uint32_t dim) {
    return dim < tensor->ndims && dim < GBX_MAX_DIMS && !(tensor->dtype & GBX_IMPOSSIBLE_VIEW);
}

/* `length` indices of one dimension, beginning with `start`. Where the tensor does not have them, a
 * view that no task takes; so do the next two. */
static inline gbx_tensor gbx_view_slice(const gbx_tensor *tensor, uint32_t dim, int64_t start,
                                        int64_t length) {
    if (!gbx_view_has_dim(tensor, dim) || start < 0 || length < 0 || start > tensor->shape[dim] ||
        length > tensor->shape[dim] - start)
        return gbx_view_impossible(tensor, GBX_VIEW_SLICE, dim, start, length);
    gbx_tensor view = *tensor;
    view.start_offset += start * tensor->strides[dim];
    view.shape[dim] = length;
    return view;
}

/* One index of a dimension; the view has one dimension less. */
static inline gbx_tensor gbx_view_select(const gbx_tensor *tensor, uint32_t dim, int64_t index) {
    if (!gbx_view_has_dim(tensor, dim) || index < 0 || index >= tensor->shape[dim])
        return gbx_view_impossible(tensor, GBX_VIEW_SELECT, dim, index, 1);
    gbx_tensor view = *tensor;
    view.start_offset += index * tensor->strides[dim];
    for (uint32_t d = dim; d + 1 < view.ndims && d + 1 < GBX_MAX_DIMS; ++d) {
        view.shape[d] = view.shape[d + 1];
        view.strides[d] = view.strides[d + 1];
    }
    --view.ndims;
    view.shape[view.ndims] = view.strides[view.ndims] = 0;
    return view;
}

/* Swaps two dimensions. */
static inline gbx_tensor gbx_view_transpose(const gbx_tensor *tensor, uint32_t a, uint32_t b) {
    if (!gbx_view_has_dim(tensor, a) || !gbx_view_has_dim(tensor, b))
        return gbx_view_impossible(tensor, GBX_VIEW_TRANSPOSE, gbx_view_has_dim(tensor, a) ? b : a,
                                   0, 0);
    gbx_tensor view = *tensor;
    view.shape[a] = tensor->shape[b];
    view.shape[b] = tensor->shape[a];
    view.strides[a] = tensor->strides[b];
    view.strides[b] = tensor->strides[a];
    return view;
}

#ifdef __cplusplus
}
#endif
#endif
