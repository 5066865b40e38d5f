#include "sequential.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

enum { POISON = 0xCD, ALIGNMENT = 512 };

typedef struct node {
    sequential_task task;
    sequential_arg *args;
    uint64_t *successors;
    size_t successor_count;
    size_t pending; /* predecessors that have not run */
    bool is_published;
} node;

typedef struct copy_back {
    void *to;
    uint64_t from;
    uint64_t bytes;
} copy_back;

struct sequential_model {
    gbx_orchestration base; /* first: orchestrations get its address */
    const gbx_kernel_function *kernels;
    size_t kernel_count;
    uint32_t blocks;
    sequential_observer observer;

    node **nodes; /* NULL on tensormap_and_ringbuffer, which keeps no tasks after they ran */
    size_t node_count;
    bool has_backward_edge; /* so that the order of adding is not a valid order to run */
    copy_back *copies;
    size_t copy_count;
    void **memory;
    size_t memory_count;
    int open_scopes;
    uint64_t made;
    uint64_t run;
    char error[256];
};

static sequential_model *model_of(gbx_orchestration *o) {
    return (sequential_model *)(void *)o;
}

static void *must(void *pointer) {
    if (!pointer) {
        fprintf(stderr, "sequential model: out of memory\n");
        abort();
    }
    return pointer;
}

/* Makes room for one more element in an array whose capacity is a power of two. */
static void *grow(void *array, size_t count, size_t size) {
    if (count & (count - 1))
        return array;
    return must(realloc(array, (count ? 2 * count : 1) * size));
}

static void *model_memory(sequential_model *model, uint64_t bytes) {
    size_t size = (size_t)(bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    void *memory = must(aligned_alloc(ALIGNMENT, size));
    memset(memory, POISON, size);
    model->memory = grow(model->memory, model->memory_count, sizeof *model->memory);
    model->memory[model->memory_count++] = memory;
    return memory;
}

static bool has_failed(const sequential_model *model) {
    return model->error[0] != '\0';
}

/* The first error stays. */
__attribute__((format(printf, 2, 3))) static void set_error(sequential_model *model,
                                                            const char *format, ...) {
    if (has_failed(model))
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(model->error, sizeof model->error, format, arguments);
    va_end(arguments);
}

/* --- running one task --- */

typedef struct dispatch {
    gbx_kernel_function kernel;
    gbx_local_context local;
    uint64_t args[GBX_ARG_SLOTS];
    pthread_t thread;
} dispatch;

static void *run_dispatch(void *context) {
    dispatch *d = context;
    d->kernel(d->args);
    return NULL;
}

static void fill_dispatch(const sequential_model *model, const sequential_task *task,
                          uint32_t block, uint32_t subtask, const gbx_global_context *global,
                          dispatch *d) {
    d->kernel = model->kernels[task->kernels.func_ids[subtask]];
    d->local = (gbx_local_context){block, task->kernels.block_num, subtask,
                                   GBX_SUBTASK_COUNT * (block % model->blocks) + subtask};
    memset(d->args, 0, sizeof d->args);
    for (uint32_t i = 0; i < task->arg_count; ++i)
        d->args[i] = task->args[i].word;
    d->args[GBX_ARG_LOCAL_CONTEXT] = (uintptr_t)&d->local;
    d->args[GBX_ARG_GLOBAL_CONTEXT] = (uintptr_t)global;
}

static void run_together(dispatch *dispatches, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (pthread_create(&dispatches[i].thread, NULL, run_dispatch, &dispatches[i]) != 0) {
            fprintf(stderr, "sequential model: no thread for a dispatch\n");
            abort();
        }
    for (size_t i = 0; i < count; ++i)
        pthread_join(dispatches[i].thread, NULL);
}

/* Blocks from `first` on, as many as the chip has. */
static void run_blocks(const sequential_model *model, const sequential_task *task, uint32_t first,
                       dispatch *dispatches) {
    const gbx_global_context global = {0, UINT64_MAX, model->blocks, 0};
    size_t count = 0;
    for (uint32_t b = first; b < task->kernels.block_num && b - first < model->blocks; ++b)
        for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s)
            if (task->kernels.func_ids[s] != GBX_NO_KERNEL)
                fill_dispatch(model, task, b, s, &global, &dispatches[count++]);
    if (task->kernels.block_num == 1 && count == 1)
        run_dispatch(&dispatches[0]);
    else
        run_together(dispatches, count);
}

static void run_task(sequential_model *model, const sequential_task *task) {
    size_t most = (size_t)model->blocks * GBX_SUBTASK_COUNT;
    dispatch *dispatches = must(malloc(most * sizeof *dispatches));
    if (model->observer.before)
        model->observer.before(model->observer.context, task);
    for (uint32_t b = 0; b < task->kernels.block_num; b += model->blocks)
        run_blocks(model, task, b, dispatches);
    if (model->observer.after)
        model->observer.after(model->observer.context, task);
    ++model->run;
    free(dispatches);
}

/* --- making tasks --- */

static bool kernels_are_right(sequential_model *model, const gbx_task_kernels *kernels) {
    bool has_any = false;
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s) {
        uint32_t id = kernels->func_ids[s];
        if (id == GBX_NO_KERNEL)
            continue;
        has_any = true;
        if (id >= model->kernel_count || !model->kernels[id])
            set_error(model, "task %llu: no kernel has func_id %u", (unsigned long long)model->made,
                      id);
    }
    if (!has_any)
        set_error(model, "task %llu: no kernel", (unsigned long long)model->made);
    if (kernels->block_num == 0)
        set_error(model, "task %llu: block_num is 0", (unsigned long long)model->made);
    if ((kernels->flags & GBX_TASK_SYNC_BLOCKS) && kernels->block_num > model->blocks)
        set_error(model, "task %llu: %u blocks wait for each other, the chip has %u",
                  (unsigned long long)model->made, kernels->block_num, model->blocks);
    return !has_failed(model);
}

static node *make_node(sequential_model *model, const gbx_task_kernels *kernels,
                       uint32_t arg_count) {
    node *made = must(calloc(1, sizeof *made));
    made->args = must(calloc(arg_count ? arg_count : 1, sizeof *made->args));
    made->task = (sequential_task){.number = model->made++,
                                   .kernels = *kernels,
                                   .is_described = true,
                                   .arg_count = arg_count,
                                   .args = made->args};
    return made;
}

static void free_node(node *old) {
    free(old->successors);
    free(old->args);
    free(old);
}

static gbx_task keep_node(sequential_model *model, node *made) {
    model->nodes = grow(model->nodes, model->node_count, sizeof *model->nodes);
    model->nodes[model->node_count++] = made;
    return made->task.number;
}

static void allocate_output(sequential_model *model, gbx_tensor *tensor) {
    *tensor = gbx_new_tensor((gbx_dtype)tensor->dtype, tensor->ndims, tensor->shape);
    tensor->buffer_bytes = gbx_tensor_payload_bytes(tensor);
    tensor->data = (uintptr_t)model_memory(model, tensor->buffer_bytes);
}

/* The address of the tensor stays valid: args[] of a node never move. */
static void fill_tensor(sequential_model *model, const gbx_args *args, uint32_t index,
                        sequential_arg *arg) {
    if (args->new_outputs >> index & 1u)
        allocate_output(model, (gbx_tensor *)args->tensors[index]);
    arg->is_tensor = true;
    arg->is_marked = args->dumped_tensors >> index & 1u;
    arg->role = (gbx_role)args->roles[index];
    arg->tensor = *args->tensors[index];
    arg->dtype = arg->tensor.dtype;
    arg->word = (uintptr_t)&arg->tensor;
}

static void fill_scalar(const gbx_args *args, uint32_t index, sequential_arg *arg) {
    arg->is_marked = args->dumped_scalars >> index & 1u;
    arg->dtype = args->scalar_dtypes[index];
    arg->word = args->scalars[index];
}

static node *node_of_args(sequential_model *model, const gbx_task_kernels *kernels,
                          const gbx_args *args) {
    if (args->tensor_count > GBX_MAX_TENSOR_ARGS || args->scalar_count > GBX_MAX_SCALAR_ARGS)
        set_error(model, "task %llu: too many arguments", (unsigned long long)model->made);
    if (args->wrong_mark_bound)
        set_error(model, "task %llu: a mark of argument %u, of %u", (unsigned long long)model->made,
                  args->wrong_mark, args->wrong_mark_bound - 1);
    if (!kernels_are_right(model, kernels))
        return NULL;
    node *made = make_node(model, kernels, args->tensor_count + args->scalar_count);
    for (uint32_t i = 0; i < args->tensor_count; ++i)
        fill_tensor(model, args, i, &made->args[i]);
    for (uint32_t i = 0; i < args->scalar_count; ++i)
        fill_scalar(args, i, &made->args[args->tensor_count + i]);
    return made;
}

/* --- calls of all runtimes --- */

static void op_refuse(gbx_orchestration *o, const char *call) {
    set_error(model_of(o), "%s: this runtime has no such call", call);
}

static void op_fail(gbx_orchestration *o, const char *message) {
    set_error(model_of(o), "%s", message);
}

static uint64_t op_get_tensor_data(gbx_orchestration *o, const gbx_tensor *tensor,
                                   const int64_t *indices) {
    uint32_t bits = gbx_dtype_bits(tensor->dtype);
    int64_t element = tensor->start_offset;
    uint64_t value = 0;
    if (bits < 8)
        set_error(model_of(o), "gbx_get_tensor_data: elements are not whole bytes");
    if (has_failed(model_of(o)))
        return 0;
    for (uint32_t d = 0; d < tensor->ndims; ++d)
        element += indices[d] * tensor->strides[d];
    memcpy(&value, (const char *)(uintptr_t)tensor->data + element * (int64_t)(bits / 8), bits / 8);
    return value;
}

static uint64_t op_device_malloc(gbx_orchestration *o, uint64_t bytes) {
    return has_failed(model_of(o)) ? 0 : (uintptr_t)model_memory(model_of(o), bytes);
}

static gbx_task op_submit_task(gbx_orchestration *o, const gbx_task_kernels *kernels,
                               const gbx_args *args) {
    node *made = node_of_args(model_of(o), kernels, args);
    if (!made)
        return GBX_NO_TASK;
    gbx_task number = made->task.number;
    run_task(model_of(o), &made->task);
    free_node(made);
    return number;
}

static void op_scope_begin(gbx_orchestration *o) {
    ++model_of(o)->open_scopes;
}

static void op_scope_end(gbx_orchestration *o) {
    if (model_of(o)->open_scopes-- == 0)
        set_error(model_of(o), "gbx_scope_end: no scope is open");
}

static gbx_task op_add_task_with_args(gbx_orchestration *o, const gbx_task_kernels *kernels,
                                      const gbx_args *args) {
    if (args->new_outputs)
        set_error(model_of(o), "gbx_add_task_with_args: this runtime allocates no outputs");
    node *made = node_of_args(model_of(o), kernels, args);
    return made ? keep_node(model_of(o), made) : GBX_NO_TASK;
}

static node *find_node(sequential_model *model, gbx_task task, const char *call) {
    if (task >= model->node_count)
        set_error(model, "%s: there is no task %llu", call, (unsigned long long)task);
    return has_failed(model) ? NULL : model->nodes[task];
}

static void op_publish_task(gbx_orchestration *o, gbx_task task) {
    node *found = find_node(model_of(o), task, "gbx_publish_task");
    if (found && found->is_published)
        set_error(model_of(o), "task %llu is published twice", (unsigned long long)task);
    else if (found)
        found->is_published = true;
}

static int op_add_successor(gbx_orchestration *o, gbx_task predecessor, gbx_task successor,
                            int is_conditional) {
    sequential_model *model = model_of(o);
    node *from = find_node(model, predecessor, "gbx_add_successor");
    node *to = find_node(model, successor, "gbx_add_successor");
    if (!from || !to)
        return 0;
    if (is_conditional && to->is_published)
        set_error(model, "task %llu gets an edge after it was published",
                  (unsigned long long)successor);
    from->successors = grow(from->successors, from->successor_count, sizeof *from->successors);
    from->successors[from->successor_count++] = successor;
    ++to->pending;
    if (predecessor >= successor)
        model->has_backward_edge = true;
    return 1;
}

/* --- host_build_graph --- */

static void describe(sequential_model *model, node *task, const gbx_tensor_info *infos,
                     uint32_t info_count) {
    task->task.is_described = true;
    for (uint32_t i = 0; i < info_count; ++i) {
        if (infos[i].arg_index >= task->task.arg_count) {
            set_error(model, "task %llu: tensor info of a word it does not have",
                      (unsigned long long)task->task.number);
            return;
        }
        sequential_arg *arg = &task->args[infos[i].arg_index];
        arg->is_tensor = true;
        arg->role = (gbx_role)infos[i].role;
        arg->tensor = infos[i].tensor;
        arg->dtype = arg->tensor.dtype;
    }
}

static gbx_task op_add_task(gbx_orchestration *o, const gbx_task_kernels *kernels,
                            const uint64_t *words, uint32_t word_count,
                            const gbx_tensor_info *infos, uint32_t info_count) {
    sequential_model *model = model_of(o);
    if (word_count > GBX_MAX_TENSOR_ARGS + GBX_MAX_SCALAR_ARGS)
        set_error(model, "task %llu: too many arguments", (unsigned long long)model->made);
    if (!kernels_are_right(model, kernels))
        return GBX_NO_TASK;
    node *made = make_node(model, kernels, word_count);
    for (uint32_t i = 0; i < word_count; ++i)
        made->args[i].word = words[i];
    made->task.is_described = false;
    if (infos)
        describe(model, made, infos, info_count);
    return keep_node(model, made);
}

static void op_set_tensor_info(gbx_orchestration *o, gbx_task task, const gbx_tensor_info *infos,
                               uint32_t info_count) {
    node *found = find_node(model_of(o), task, "gbx_set_tensor_info_to_task");
    if (found)
        describe(model_of(o), found, infos, info_count);
}

static void op_dump_task_words(gbx_orchestration *o, gbx_task task, uint64_t words) {
    node *found = find_node(model_of(o), task, "gbx_dump_task_words");
    for (uint32_t i = 0; found && i < 64; ++i) {
        if (!(words >> i & 1))
            continue;
        if (i < found->task.arg_count)
            found->args[i].is_marked = true;
        else if (words != UINT64_MAX)
            set_error(model_of(o), "task %llu: a mark of word %u, which it does not have",
                      (unsigned long long)task, i);
    }
}

static void op_copy_to_device(gbx_orchestration *o, uint64_t to, const void *from, uint64_t bytes) {
    if (!has_failed(model_of(o)))
        memcpy((void *)(uintptr_t)to, from, (size_t)bytes);
}

static void op_return_to_host(gbx_orchestration *o, void *to, uint64_t from, uint64_t bytes) {
    sequential_model *model = model_of(o);
    model->copies = grow(model->copies, model->copy_count, sizeof *model->copies);
    model->copies[model->copy_count++] = (copy_back){to, from, bytes};
}

static uint64_t op_device_tensor(gbx_orchestration *o, const gbx_tensor *tensor) {
    if (has_failed(model_of(o)))
        return 0;
    gbx_tensor *copy = model_memory(model_of(o), sizeof *copy);
    *copy = *tensor;
    return (uintptr_t)copy;
}

/* --- the complete graph --- */

static void run_in_order_of_adding(sequential_model *model) {
    for (size_t i = 0; i < model->node_count; ++i)
        run_task(model, &model->nodes[i]->task);
}

/* Runs each task once its last predecessor has run; tasks that remain form a cycle. */
static void run_in_topological_order(sequential_model *model) {
    uint64_t *ready = must(malloc((model->node_count + 1) * sizeof *ready));
    size_t ready_count = 0;
    for (size_t i = 0; i < model->node_count; ++i)
        if (model->nodes[i]->pending == 0)
            ready[ready_count++] = i;
    for (size_t i = 0; i < ready_count; ++i) {
        const node *next = model->nodes[ready[i]];
        run_task(model, &next->task);
        for (size_t s = 0; s < next->successor_count; ++s)
            if (--model->nodes[next->successors[s]]->pending == 0)
                ready[ready_count++] = next->successors[s];
    }
    if (ready_count < model->node_count)
        set_error(model, "%zu tasks wait for each other", model->node_count - ready_count);
    free(ready);
}

static void run_graph(sequential_model *model) {
    for (size_t i = 0; model->base.ops->publish_task && i < model->node_count; ++i)
        if (!model->nodes[i]->is_published)
            set_error(model, "task %zu was never published", i);
    if (has_failed(model))
        return;
    if (model->has_backward_edge)
        run_in_topological_order(model);
    else
        run_in_order_of_adding(model);
    for (size_t i = 0; i < model->copy_count && !has_failed(model); ++i)
        memcpy(model->copies[i].to, (const void *)(uintptr_t)model->copies[i].from,
               (size_t)model->copies[i].bytes);
}

static void forget_run(sequential_model *model) {
    for (size_t i = 0; i < model->node_count; ++i)
        free_node(model->nodes[i]);
    for (size_t i = 0; i < model->memory_count; ++i)
        free(model->memory[i]);
    free(model->nodes);
    free(model->memory);
    free(model->copies);
    model->nodes = NULL;
    model->memory = NULL;
    model->copies = NULL;
    model->node_count = model->memory_count = model->copy_count = 0;
    model->has_backward_edge = false;
    model->open_scopes = 0;
    model->made = model->run = 0;
    model->error[0] = '\0';
}

static const struct {
    const char *name;
    gbx_orchestration_ops ops;
} runtimes[] = {
    {"host_build_graph",
     {.refuse = op_refuse,
      .report_failure = op_fail,
      .add_task = op_add_task,
      .set_tensor_info = op_set_tensor_info,
      .add_successor = op_add_successor,
      .get_tensor_data = op_get_tensor_data,
      .device_malloc = op_device_malloc,
      .copy_to_device = op_copy_to_device,
      .return_to_host = op_return_to_host,
      .device_tensor = op_device_tensor,
      .dump_task_words = op_dump_task_words}},
    {"aicpu_build_graph",
     {.refuse = op_refuse,
      .report_failure = op_fail,
      .add_task_with_args = op_add_task_with_args,
      .add_successor = op_add_successor,
      .publish_task = op_publish_task,
      .get_tensor_data = op_get_tensor_data,
      .device_malloc = op_device_malloc}},
    {"tensormap_and_ringbuffer",
     {.refuse = op_refuse,
      .report_failure = op_fail,
      .submit_task = op_submit_task,
      .scope_begin = op_scope_begin,
      .scope_end = op_scope_end,
      .get_tensor_data = op_get_tensor_data}},
};

sequential_model *sequential_create(const char *runtime, const gbx_kernel_function *kernels,
                                    size_t kernel_count, uint32_t blocks) {
    for (size_t i = 0; i < sizeof runtimes / sizeof runtimes[0]; ++i) {
        if (strcmp(runtimes[i].name, runtime) != 0)
            continue;
        sequential_model *model = must(calloc(1, sizeof *model));
        model->base.ops = &runtimes[i].ops;
        model->kernels = kernels;
        model->kernel_count = kernel_count;
        model->blocks = blocks ? blocks : GBX_DEFAULT_BLOCKS;
        return model;
    }
    return NULL;
}

void sequential_destroy(sequential_model *model) {
    if (!model)
        return;
    forget_run(model);
    free(model);
}

void sequential_observe(sequential_model *model, const sequential_observer *observer) {
    model->observer = observer ? *observer : (sequential_observer){0};
}

int sequential_run(sequential_model *model, gbx_orchestrate_function function,
                   const gbx_run_args *run) {
    forget_run(model);
    int result = function(&model->base, run);
    if (result)
        set_error(model, "the orchestration returned %d", result);
    if (model->open_scopes > 0)
        set_error(model, "%d scopes were not ended", model->open_scopes);
    if (!has_failed(model))
        run_graph(model);
    return has_failed(model) ? -1 : 0;
}

const char *sequential_error(const sequential_model *model) {
    return has_failed(model) ? model->error : NULL;
}

uint64_t sequential_task_count(const sequential_model *model) {
    return model->run;
}

gbx_orchestration *sequential_orchestration(sequential_model *model) {
    return &model->base;
}
