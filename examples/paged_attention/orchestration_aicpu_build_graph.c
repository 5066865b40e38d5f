/* aicpu_build_graph: a task is published once it has its edges. */
#include "paged_attention.h"

static gbx_task add(const pa_graph *graph, const pa_task *task) {
    gbx_args args = pa_args_of(task);
    gbx_task added = gbx_add_task_with_args(graph->o, task->kernels, &args);
    for (uint32_t i = 0; i < task->after_count; ++i)
        if (task->after[i] != GBX_NO_TASK)
            gbx_add_successor_conditional(graph->o, task->after[i], added);
    gbx_publish_task(graph->o, added);
    return added;
}

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    pa_graph graph = pa_begin(o, run);
    graph.add = add;
    pa_allocate_pool(&graph);
    return pa_build(&graph);
}
