/* Builds the graph of a plan on the runtime that the run's scalar names. */
#include "dump_plan.h"

int orchestrate(gbx_orchestration *o, const gbx_run_args *run);

static void fill_tensors(const plan_task *task, uint64_t memory, gbx_tensor *tensors) {
    for (uint32_t i = 0; i < task->tensor_count; ++i) {
        tensors[i] = task->tensors[i].view;
        tensors[i].data += memory;
    }
}

/* --- runtimes that take gbx_args --- */

static gbx_args args_of(const plan_task *task, const gbx_tensor *tensors) {
    gbx_args args = gbx_args_begin();
    for (uint32_t i = 0; i < task->tensor_count; ++i)
        gbx_args_add_tensor(&args, &tensors[i], (gbx_role)task->tensors[i].role);
    for (uint32_t i = 0; i < task->scalar_count; ++i)
        gbx_args_add_scalar(&args, (gbx_dtype)task->scalars[i].dtype, task->scalars[i].bits);
    for (uint32_t i = 0; i < task->tensor_count; ++i)
        if (task->tensors[i].is_marked)
            gbx_args_dump(&args, i);
    for (uint32_t i = 0; i < task->scalar_count; ++i)
        if (task->scalars[i].is_marked)
            gbx_args_dump(&args, task->tensor_count + i);
    if (task->marks_all)
        gbx_args_dump_all(&args);
    return args;
}

static void submit(gbx_orchestration *o, const plan_task *task, const gbx_tensor *tensors) {
    gbx_args args = args_of(task, tensors);
    gbx_submit_task(o, task->kernels, &args);
}

static void publish(gbx_orchestration *o, const plan_task *task, const gbx_tensor *tensors) {
    gbx_args args = args_of(task, tensors);
    gbx_task added = gbx_add_task_with_args(o, task->kernels, &args);
    for (uint32_t i = 0; i < task->after_count; ++i)
        gbx_add_successor_conditional(o, task->after[i], added);
    gbx_publish_task(o, added);
}

/* --- host_build_graph --- */

static void misdescribe(uint32_t description, gbx_tensor_info *info) {
    if (description == PLAN_WRONG_SHAPE) {
        ++info->tensor.shape[0];
        info->tensor.buffer_bytes = 0; /* or the runtime finds out */
    }
    if (description == PLAN_WRONG_ADDRESS)
        info->tensor.data += 64;
}

static uint64_t marks_of(const plan_task *task) {
    uint64_t marks = task->marks_all ? UINT64_MAX : 0;
    for (uint32_t i = 0; i < task->tensor_count; ++i)
        marks |= (uint64_t)(task->tensors[i].is_marked != 0) << i;
    for (uint32_t i = 0; i < task->scalar_count; ++i)
        marks |= (uint64_t)(task->scalars[i].is_marked != 0) << (task->tensor_count + i);
    return marks;
}

static void add(gbx_orchestration *o, const plan_task *task, const gbx_tensor *tensors) {
    uint64_t words[GBX_MAX_TENSOR_ARGS + GBX_MAX_SCALAR_ARGS];
    gbx_tensor_info infos[GBX_MAX_TENSOR_ARGS];
    uint32_t count = task->tensor_count + task->scalar_count;
    uint32_t info_count = task->tensor_count;
    gbx_task added;
    for (uint32_t i = 0; i < task->tensor_count; ++i) {
        words[i] = gbx_device_tensor(o, &tensors[i]);
        infos[i].arg_index = i;
        infos[i].role = task->tensors[i].role;
        infos[i].tensor = tensors[i];
    }
    if (task->tensor_count > 1)
        misdescribe(task->description, &infos[1]);
    if (task->description == PLAN_LACKS_ONE)
        infos[1] = infos[--info_count];
    for (uint32_t i = 0; i < task->scalar_count; ++i)
        words[task->tensor_count + i] = task->scalars[i].bits;
    if (task->description == PLAN_UNDESCRIBED || task->description == PLAN_DESCRIBED_LATER)
        added = gbx_add_task(o, task->kernels, words, count);
    else
        added = gbx_add_task_with_tensor_info(o, task->kernels, words, count, infos, info_count);
    if (task->description == PLAN_DESCRIBED_LATER)
        gbx_set_tensor_info_to_task(o, added, infos, info_count);
    if (marks_of(task))
        gbx_dump_task_words(o, added, marks_of(task));
    for (uint32_t i = 0; i < task->after_count; ++i)
        gbx_add_successor(o, task->after[i], added);
}

static uint64_t move_memory(gbx_orchestration *o, const gbx_tensor *memory) {
    uint64_t bytes = (uint64_t)memory->shape[0];
    uint64_t device = gbx_device_malloc(o, bytes);
    gbx_copy_to_device(o, device, (const void *)(uintptr_t)memory->data, bytes);
    gbx_return_to_host(o, (void *)(uintptr_t)memory->data, device, bytes);
    return device;
}

static void save_run(const gbx_run_args *run) {
    uint64_t *saved = (uint64_t *)(uintptr_t)run->tensors[PLAN_SAVED].data;
    saved[SAVED_TENSOR_COUNT] = run->tensor_count;
    saved[SAVED_SCALAR_COUNT] = run->scalar_count;
    memcpy(saved + SAVED_TENSORS, run->tensors, run->tensor_count * sizeof *run->tensors);
    memcpy(saved + SAVED_TENSORS + run->tensor_count * SAVED_TENSOR_WORDS, run->scalars,
           run->scalar_count * sizeof *run->scalars);
}

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    const plan *p = (const plan *)(uintptr_t)run->tensors[PLAN_TENSOR].data;
    uint64_t runtime = run->scalars[PLAN_RUNTIME];
    uint64_t memory = run->tensors[PLAN_MEMORY].data;
    if (run->tensor_count > PLAN_SAVED)
        save_run(run);
    if (runtime == PLAN_HOST_BUILD_GRAPH)
        memory = move_memory(o, &run->tensors[PLAN_MEMORY]);
    for (uint32_t i = 0; i < p->task_count; ++i) {
        gbx_tensor tensors[GBX_MAX_TENSOR_ARGS];
        fill_tensors(&p->tasks[i], memory, tensors);
        if (runtime == PLAN_HOST_BUILD_GRAPH)
            add(o, &p->tasks[i], tensors);
        else if (runtime == PLAN_AICPU_BUILD_GRAPH)
            publish(o, &p->tasks[i], tensors);
        else
            submit(o, &p->tasks[i], tensors);
    }
    return (int)p->result;
}
