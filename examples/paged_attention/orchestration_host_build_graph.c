/* host_build_graph: tensors are copied to the chip, edges are given, words are addresses. */
#include "paged_attention.h"

static uint64_t word_of(gbx_orchestration *o, pa_operand *operand) {
    if (operand->word == 0)
        operand->word = gbx_device_tensor(o, &operand->tensor);
    return operand->word;
}

static gbx_task add(const pa_graph *graph, const pa_task *task) {
    uint64_t words[PA_MAX_OPERANDS + PA_MAX_SCALARS];
    gbx_tensor_info infos[PA_MAX_OPERANDS];
    for (uint32_t i = 0; i < task->operand_count; ++i) {
        words[i] = word_of(graph->o, task->operands[i]);
        infos[i] = (gbx_tensor_info){i, task->roles[i], task->operands[i]->tensor};
    }
    for (uint32_t i = 0; i < task->scalar_count; ++i)
        words[task->operand_count + i] = task->scalars[i];
    gbx_task added = gbx_add_task_with_tensor_info(graph->o, task->kernels, words,
                                                   task->operand_count + task->scalar_count, infos,
                                                   task->operand_count);
    for (uint32_t i = 0; i < task->after_count; ++i)
        if (task->after[i] != GBX_NO_TASK)
            gbx_add_successor(graph->o, task->after[i], added);
    return added;
}

/* The caches and the query go to the chip, the output comes back from it. */
static void move_tensors(pa_graph *graph) {
    static const int moved[] = {PA_QUERY, PA_KEY_CACHE, PA_VALUE_CACHE, PA_OUT};
    for (int i = 0; i < 4; ++i) {
        gbx_tensor *tensor = &graph->tensors[moved[i]];
        void *host = (void *)(uintptr_t)tensor->data;
        uint64_t element_bytes = tensor->dtype == GBX_FLOAT32 ? 4 : 2;
        uint64_t bytes = (uint64_t)gbx_tensor_numel(tensor) * element_bytes;
        tensor->data = gbx_device_malloc(graph->o, bytes);
        tensor->buffer_bytes = bytes;
        if (moved[i] == PA_OUT)
            gbx_return_to_host(graph->o, host, tensor->data, bytes);
        else
            gbx_copy_to_device(graph->o, tensor->data, host, bytes);
    }
}

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    pa_graph graph = pa_begin(o, run);
    graph.add = add;
    move_tensors(&graph);
    pa_allocate_pool(&graph);
    return pa_build(&graph);
}
