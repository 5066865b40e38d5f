#include <string.h>

#include "base/checked.h"
#include "base/numbers.h"
#include "runtime/host_build_graph/host_build_graph.h"
#include "tensor/view.h"

/* Where the tables lie in the chip's private memory. */
typedef struct layout {
    uint32_t capacity; /* of the queues */
    uint64_t edges_at;
    uint64_t cells_at;
    uint64_t bytes;
} layout;

static layout layout_of(const gbx_graph_launch *launch) {
    layout at = {.capacity = gbx_power_of_two_from(launch->task_count)};
    at.edges_at = launch->task_count * sizeof(gbx_sched_task);
    at.cells_at = at.edges_at + launch->edge_count * sizeof(gbx_sched_edge);
    at.bytes = at.cells_at + (uint64_t)at.capacity * GBX_CLASS_COUNT * sizeof(gbx_ready_cell);
    return at;
}

static uint64_t memory_bytes(const gbx_graph *graph) {
    return layout_of(graph->launch).bytes;
}

static void begin(gbx_graph *graph) {
    layout at = layout_of(graph->launch);
    char *memory = graph->memory;
    gbx_graph_begin_sched(graph, (gbx_sched_task *)memory, at.capacity,
                          (gbx_ready_cell *)(memory + at.cells_at), true);
}

/* The host has checked all this: a failure here is a defect of the host. */
static bool is_sound(const gbx_graph *graph, const gbx_host_task *task) {
    gbx_graph_error ignored;
    uint64_t offset = task->arguments - graph->limits.gm_base;
    const gbx_task_arguments *arguments = (const gbx_task_arguments *)(uintptr_t)task->arguments;
    return task->arguments >= graph->limits.gm_base && offset < graph->limits.gm_bytes &&
           arguments->word_count <= GBX_MAX_WORDS &&
           gbx_check_kernels(&graph->limits, 0, &task->kernels, &ignored);
}

/* While the control thread builds, it does not run its loop with the heartbeat. */
static void show_life(gbx_graph *graph, uint64_t step) {
    if (step % 65536 == 0)
        atomic_fetch_add_explicit(&graph->device->control->heartbeat, 1, memory_order_relaxed);
}

/* Whether a word is the address of a description that says the same. */
static bool leads_to(const gbx_graph *graph, uint64_t word, const gbx_tensor *tensor) {
    const gbx_graph_limits *limits = &graph->limits;
    return word % _Alignof(gbx_tensor) == 0 && word >= limits->gm_base &&
           gbx_range_is_inside(word - limits->gm_base, sizeof *tensor, limits->gm_bytes) &&
           gbx_tensor_is_alike((const gbx_tensor *)(uintptr_t)word, tensor);
}

/* Makes the private copy of a task's arguments, which are in the storage, and gives it to the task.
 */
static void keep_arguments(const gbx_graph *graph, gbx_sched_task *task) {
    const gbx_task_arguments *shown = task->arguments;
    gbx_task_arguments *kept = gbx_graph_kept(graph, (uint64_t)(uintptr_t)shown);
    memcpy(kept, shown, gbx_task_arguments_bytes(shown->word_count, shown->tensor_count));
    const gbx_tensor *tensor = gbx_task_arguments_tensors(kept);
    kept->misdescribed_words = 0;
    for (uint32_t i = 0; i < kept->word_count; ++i)
        if (kept->kinds[i] & GBX_WORD_TENSOR && !leads_to(graph, kept->words[i], tensor++))
            kept->misdescribed_words |= UINT64_C(1) << i;
    /* Both copies are the same. */
    ((gbx_task_arguments *)(uintptr_t)shown)->misdescribed_words = kept->misdescribed_words;
    task->arguments = kept;
    task->right_at = 0; /* nothing has run */
    if (task->words == shown->words)
        task->words = kept->words;
}

/* On the control thread, before any kernel runs: global memory does not change meanwhile. */
static void build(gbx_graph *graph) {
    const gbx_graph_launch *launch = graph->launch;
    layout at = layout_of(launch);
    const gbx_host_task *table = (const gbx_host_task *)(uintptr_t)launch->tasks;
    const gbx_host_edge *edges = (const gbx_host_edge *)(uintptr_t)launch->edges;
    gbx_sched_task *tasks = graph->memory;
    gbx_sched_edge *nodes = (gbx_sched_edge *)((char *)graph->memory + at.edges_at);
    graph->task_count = launch->task_count;
    for (uint64_t i = 0; i < launch->task_count; ++i) {
        show_life(graph, i);
        if (!is_sound(graph, &table[i]))
            return; /* tasks are left, which fails the launch */
        gbx_sched_prepare(&tasks[i], i, &table[i].kernels,
                          (const gbx_task_arguments *)(uintptr_t)table[i].arguments);
    }
    for (uint64_t i = 0; graph->probe && i < launch->task_count; ++i) {
        show_life(graph, i);
        keep_arguments(graph, &tasks[i]);
    }
    for (uint64_t i = 0; i < launch->edge_count; ++i) {
        show_life(graph, i);
        gbx_sched_task *successor = &tasks[edges[i].successor];
        nodes[i] = (gbx_sched_edge){.next_input = successor->inputs,
                                    .successor = successor,
                                    .predecessor = edges[i].predecessor};
        successor->inputs = &nodes[i];
        gbx_sched_link(&tasks[edges[i].predecessor], &nodes[i]);
    }
    for (uint64_t i = 0; i < launch->task_count; ++i)
        gbx_sched_release(&graph->sched, &tasks[i]);
}

const gbx_builder gbx_host_builder = {
    .memory_bytes = memory_bytes,
    .begin = begin,
    .build = build,
};
