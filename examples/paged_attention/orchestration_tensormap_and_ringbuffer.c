/* tensormap_and_ringbuffer finds the edges and allocates temporaries; a chain is a scope. */
#include "paged_attention.h"

static gbx_task add(const pa_graph *graph, const pa_task *task) {
    gbx_args args = pa_args_of(task);
    return gbx_submit_task(graph->o, task->kernels, &args);
}

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    pa_graph graph = pa_begin(o, run);
    graph.add = add;
    graph.has_scopes = true;
    return pa_build(&graph);
}
