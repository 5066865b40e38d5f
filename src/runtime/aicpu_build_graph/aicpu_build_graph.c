/*
 * aicpu_build_graph: the orchestration runs on the chip, adds tasks and explicit edges to tables,
 * and publishes each task when its edges are complete. Nothing is reused while the run lasts.
 */
#include "runtime/cycle.h"
#include "runtime/graph.h"
#include "runtime/runtimes.h"

enum {
    ENTRY = GBX_ENTRY_FIRST_PROGRAM + 1,
    MAX_TASKS = 1 << 22,
    MAX_EDGES = 1 << 24,
};

/* The builder's part of the chip's private memory; pages are taken as they are touched. */
typedef struct tables {
    gbx_sched_task tasks[MAX_TASKS];
    gbx_sched_edge edges[MAX_EDGES];
    gbx_ready_cell cells[GBX_CLASS_COUNT * MAX_TASKS];
    uint32_t waits_for[MAX_TASKS]; /* for the search of a cycle */
    uint32_t edge_count;
} tables;

/* Words of a task's storage. */
enum { IS_PUBLISHED = 0 };

static tables *tables_of(const gbx_graph *graph) {
    return graph->memory;
}

static uint64_t memory_bytes(const gbx_graph *graph) {
    (void)graph;
    return sizeof(tables);
}

static void begin(gbx_graph *graph) {
    tables *all = tables_of(graph);
    gbx_graph_begin_sched(graph, all->tasks, MAX_TASKS, all->cells, graph->launch->is_gated);
}

static uint32_t kernel_of(const gbx_sched_task *task) {
    return task->func_ids[task->first_subtask];
}

/* --- what the orchestration calls --- */

static inline __attribute__((always_inline)) bool
check(gbx_graph *graph, const gbx_task_kernels *kernels, const gbx_args *args) {
    uint64_t id = graph->task_count;
    if (!gbx_graph_check_task(graph, kernels, args))
        return false;
    uint32_t func_id = gbx_first_kernel(kernels);
    if (args->new_outputs)
        gbx_graph_fail(graph, GBX_GRAPH_NEW_OUTPUT, id, func_id, __builtin_ctz(args->new_outputs),
                       0);
    else if (id >= MAX_TASKS)
        gbx_graph_fail(graph, GBX_GRAPH_TOO_MANY_TASKS, id, func_id, MAX_TASKS, 0);
    else
        return true;
    return false;
}

static inline __attribute__((always_inline)) gbx_task add(gbx_orchestration *orchestration,
                                                          const gbx_task_kernels *kernels,
                                                          const gbx_args *args, bool is_probed) {
    gbx_graph *graph = gbx_graph_of(orchestration);
    if (!gbx_graph_builds_on(graph) || !check(graph, kernels, args))
        return GBX_NO_TASK;
    uint64_t place = gbx_graph_take_arguments(
        graph,
        gbx_task_arguments_bytes(args->tensor_count + args->scalar_count, args->tensor_count));
    if (!place)
        return GBX_NO_TASK;
    gbx_sched_task *task = &tables_of(graph)->tasks[graph->task_count];
    gbx_graph_prepare(graph, task, graph->task_count, kernels, args, place, is_probed);
    task->storage[IS_PUBLISHED] = 0;
    return graph->task_count++;
}

static gbx_task add_task(gbx_orchestration *orchestration, const gbx_task_kernels *kernels,
                         const gbx_args *args) {
    return add(orchestration, kernels, args, false);
}

static gbx_task add_probed(gbx_orchestration *orchestration, const gbx_task_kernels *kernels,
                           const gbx_args *args) {
    return add(orchestration, kernels, args, true);
}

static gbx_sched_task *find_task(gbx_graph *graph, gbx_task task) {
    if (task < graph->task_count)
        return &tables_of(graph)->tasks[task];
    gbx_graph_fail(graph, GBX_GRAPH_UNKNOWN_TASK, GBX_NO_TASK, GBX_NO_KERNEL, (int64_t)task,
                   (int64_t)graph->task_count);
    return NULL;
}

static int add_successor(gbx_orchestration *orchestration, gbx_task from, gbx_task to,
                         int is_conditional) {
    (void)is_conditional; /* neither call waits for a predecessor that is done */
    gbx_graph *graph = gbx_graph_of(orchestration);
    tables *all = tables_of(graph);
    if (!gbx_graph_builds_on(graph))
        return 0;
    gbx_sched_task *predecessor = find_task(graph, from);
    gbx_sched_task *successor = predecessor ? find_task(graph, to) : NULL;
    if (!successor)
        return 0;
    if (from == to)
        gbx_graph_fail(graph, GBX_GRAPH_SELF_EDGE, to, kernel_of(successor), 0, 0);
    else if (successor->storage[IS_PUBLISHED])
        gbx_graph_fail(graph, GBX_GRAPH_PUBLISHED, to, kernel_of(successor), 0, 0);
    else if (all->edge_count >= MAX_EDGES)
        gbx_graph_fail(graph, GBX_GRAPH_TOO_MANY_EDGES, to, kernel_of(successor), MAX_EDGES, 0);
    if (graph->error.kind != GBX_GRAPH_OK)
        return 0;
    gbx_sched_edge *edge = &all->edges[all->edge_count++];
    *edge = (gbx_sched_edge){
        .next_input = successor->inputs, .successor = successor, .predecessor = from};
    successor->inputs = edge;
    return gbx_sched_link(predecessor, edge);
}

static void publish_task(gbx_orchestration *orchestration, gbx_task id) {
    gbx_graph *graph = gbx_graph_of(orchestration);
    gbx_sched_task *task = gbx_graph_builds_on(graph) ? find_task(graph, id) : NULL;
    if (!task)
        return;
    if (task->storage[IS_PUBLISHED]) {
        gbx_graph_fail(graph, GBX_GRAPH_PUBLISHED_TWICE, id, kernel_of(task), 0, 0);
        return;
    }
    task->storage[IS_PUBLISHED] = 1;
    gbx_sched_release(&graph->sched, task);
}

static uint64_t device_malloc(gbx_orchestration *orchestration, uint64_t bytes) {
    gbx_graph *graph = gbx_graph_of(orchestration);
    return gbx_graph_builds_on(graph) ? gbx_graph_take_buffer(graph, bytes ? bytes : 1) : 0;
}

/* --- why the graph is stuck --- */

static void name_unpublished(gbx_graph *graph, uint32_t first) {
    tables *all = tables_of(graph);
    int64_t count = 0;
    for (uint64_t i = 0; i < graph->task_count; ++i)
        count += !all->tasks[i].storage[IS_PUBLISHED];
    gbx_graph_fail(graph, GBX_GRAPH_NEVER_PUBLISHED, first, kernel_of(&all->tasks[first]),
                   count - 1, 0);
}

static void diagnose(gbx_graph *graph) {
    tables *all = tables_of(graph);
    uint32_t count = (uint32_t)graph->task_count;
    uint32_t stuck = 0;
    uint32_t last = 0;
    gbx_graph_error error;
    for (uint32_t i = count; i-- > 0;) {
        all->waits_for[i] = GBX_WAITS_FOR_NONE;
        if (!gbx_sched_task_is_completed(&all->tasks[i]))
            stuck = i;
    }
    for (uint32_t i = 0; i < all->edge_count; ++i) {
        const gbx_sched_edge *edge = &all->edges[i];
        if (!gbx_sched_task_is_completed(&all->tasks[edge->predecessor]))
            all->waits_for[edge->successor->id] = (uint32_t)edge->predecessor;
    }
    if (gbx_find_cycle(all->waits_for, count, stuck, &error, &last)) {
        error.func_id = kernel_of(&all->tasks[error.task]);
        gbx_graph_fail_with(graph, &error);
    } else {
        name_unpublished(graph, last);
    }
}

#define SHARED_OPS                                                                                 \
    .refuse = gbx_graph_refuse, .report_failure = gbx_graph_fail_by_user,                          \
    .add_successor = add_successor, .publish_task = publish_task,                                  \
    .get_tensor_data = gbx_graph_get_tensor_data, .device_malloc = device_malloc

static const gbx_orchestration_ops ops = {SHARED_OPS, .add_task_with_args = add_task};
static const gbx_orchestration_ops probed_ops = {SHARED_OPS, .add_task_with_args = add_probed};

static const gbx_builder builder = {
    .memory_bytes = memory_bytes,
    .begin = begin,
    .diagnose = diagnose,
    .ops = &ops,
    .probed_ops = &probed_ops,
};

/* --- host --- */

static gbx_status run(const gbx_runtime_request *request, gbx_call_result *out_result) {
    gbx_graph_launch launch = {.is_gated = request->config->build == GBX_BUILD_SEQUENTIAL};
    uint64_t free_bytes;
    GBX_TRY(gbx_runtime_free_memory(request, &free_bytes));
    launch.storage_bytes = free_bytes / 4 * 3 & ~UINT64_C(511);
    return gbx_runtime_run_on_chip(request, &launch, out_result);
}

const gbx_runtime gbx_aicpu_build_graph = {
    .name = "aicpu_build_graph",
    .description =
        "the chip's orchestrator thread builds the graph; explicit edges, published tasks",
    .entry = ENTRY,
    .builder = &builder,
    .run = run,
};
