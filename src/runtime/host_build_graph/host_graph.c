#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "base/checked.h"
#include "base/memory.h"
#include "chip/host/chip.h"
#include "runtime/cycle.h"
#include "runtime/host_build_graph/table.h"

void gbx_host_graph_keep_failure(gbx_host_graph *graph, gbx_status status) {
    graph->failure = gbx_status_first(graph->failure, status);
}

void *gbx_table_add(gbx_host_graph *graph, gbx_table *table, size_t count) {
    if (!gbx_array_grow(&table->elements, &table->capacity, table->count + count,
                        table->element_bytes)) {
        gbx_host_graph_keep_failure(graph, gbx_fail_memory("building a graph"));
        return NULL;
    }
    if (!table->elements)
        return NULL;
    void *first = (char *)table->elements + table->count * table->element_bytes;
    table->count += count;
    return first;
}

static uint64_t take_memory(gbx_host_graph *graph, gbx_hal_memory *wanted) {
    uint64_t *place = gbx_table_add(graph, &graph->memory, 1);
    if (!place)
        return 0;
    gbx_status status = gbx_chip_alloc(graph->request.chip, wanted, place);
    if (!status)
        return *place;
    --graph->memory.count;
    gbx_host_graph_keep_failure(
        graph,
        gbx_status_annotate(status, "building the graph, after %zu tasks", graph->entries.count));
    return 0;
}

uint64_t gbx_host_graph_alloc(gbx_host_graph *graph, uint64_t bytes) {
    return take_memory(graph, &(gbx_hal_memory){.bytes = bytes, .use = GBX_HAL_BUFFER});
}

uint64_t gbx_host_graph_alloc_apart(gbx_host_graph *graph, uint64_t bytes) {
    const uint64_t apart = 2 * (uint64_t)GBX_APART_BYTES;
    uint64_t address = take_memory(
        graph,
        &(gbx_hal_memory){.bytes = bytes + apart, .uncounted_bytes = apart, .use = GBX_HAL_OWN});
    return address ? address + GBX_APART_BYTES : 0;
}

static void fill_limits(gbx_host_graph *graph) {
    const gbx_chip *chip = graph->request.chip;
    gbx_graph_limits *limits = &graph->limits;
    gbx_hal_caps caps;
    gbx_chip_ops(chip)->caps(chip->hal, &caps);
    limits->gm_base = caps.gm_base;
    limits->gm_bytes = caps.gm_space;
    limits->blocks = chip->blocks;
    limits->signatures = chip->signatures;
    limits->warnings = graph->request.config->has_loose_signatures ? &graph->warnings : NULL;
    for (uint32_t i = 0; i < GBX_MAX_KERNELS; ++i)
        limits->kernel_cores[i] =
            chip->kernels[i].name[0] ? (uint8_t)(1 + chip->kernels[i].core) : 0;
}

gbx_status gbx_host_graph_create(const gbx_runtime_request *request, gbx_host_graph **out_graph) {
    gbx_host_graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        return gbx_fail_memory("building a graph");
    graph->orchestration.ops = &gbx_host_graph_ops;
    graph->request = *request;
    fill_limits(graph);
    graph->entries.element_bytes = sizeof(gbx_host_entry);
    graph->words.element_bytes = sizeof(uint64_t);
    graph->infos.element_bytes = sizeof(gbx_tensor_info);
    graph->edges.element_bytes = sizeof(gbx_host_edge);
    graph->returns.element_bytes = sizeof(gbx_host_return);
    graph->pages.element_bytes = sizeof(gbx_host_page *);
    graph->memory.element_bytes = sizeof(uint64_t);
    *out_graph = graph;
    return NULL;
}

gbx_status gbx_host_graph_destroy(gbx_host_graph *graph) {
    gbx_status status = NULL;
    gbx_host_page **pages = graph->pages.elements;
    const uint64_t *memory = graph->memory.elements;
    for (size_t i = 0; i < graph->pages.count; ++i)
        free(pages[i]);
    for (size_t i = 0; i < graph->memory.count; ++i)
        status = gbx_status_first(status, gbx_gm_free(graph->request.chip, memory[i]));
    gbx_status_free(graph->failure);
    free(graph->entries.elements);
    free(graph->words.elements);
    free(graph->infos.elements);
    free(graph->edges.elements);
    free(graph->returns.elements);
    free(graph->pages.elements);
    free(graph->memory.elements);
    free(graph);
    return status;
}

/* --- cycles --- */

/* `left`: how many predecessors of each task have not run. Runs all that can; counts them. */
static size_t count_runnable(const gbx_host_graph *graph, const uint32_t *first_edge,
                             const uint32_t *successors, uint32_t *left, uint32_t *queue) {
    size_t count = graph->entries.count;
    size_t queued = 0;
    for (size_t i = 0; i < count; ++i)
        if (left[i] == 0)
            queue[queued++] = (uint32_t)i;
    for (size_t at = 0; at < queued; ++at)
        for (uint32_t e = first_edge[queue[at]]; e < first_edge[queue[at] + 1]; ++e)
            if (--left[successors[e]] == 0)
                queue[queued++] = successors[e];
    return queued;
}

static void sort_edges(const gbx_host_graph *graph, uint32_t *first_edge, uint32_t *successors,
                       uint32_t *left) {
    const gbx_host_edge *edges = graph->edges.elements;
    for (size_t i = 0; i < graph->edges.count; ++i) {
        ++first_edge[edges[i].predecessor + 1];
        ++left[edges[i].successor];
    }
    for (size_t i = 0; i < graph->entries.count; ++i)
        first_edge[i + 1] += first_edge[i];
    for (size_t i = graph->edges.count; i-- > 0;)
        successors[--first_edge[edges[i].predecessor + 1]] = edges[i].successor;
    /* Now first_edge[i + 1] is where the edges of task i begin. */
    for (size_t i = 0; i < graph->entries.count; ++i)
        first_edge[i] = first_edge[i + 1];
    first_edge[graph->entries.count] = (uint32_t)graph->edges.count;
}

static void name_cycle(gbx_host_graph *graph, const uint32_t *left, uint32_t *waits_for) {
    const gbx_host_edge *edges = graph->edges.elements;
    uint32_t count = (uint32_t)graph->entries.count;
    uint32_t stuck = 0;
    uint32_t last;
    for (uint32_t i = 0; i < count; ++i) {
        waits_for[i] = GBX_WAITS_FOR_NONE;
        if (left[i])
            stuck = i;
    }
    for (size_t i = 0; i < graph->edges.count; ++i)
        if (left[edges[i].successor] && left[edges[i].predecessor])
            waits_for[edges[i].successor] = edges[i].predecessor;
    if (gbx_find_cycle(waits_for, count, stuck, &graph->error, &last))
        graph->error.func_id =
            gbx_first_kernel(&gbx_host_entry_at(graph, graph->error.task)->kernels);
}

static gbx_status check_cycles(gbx_host_graph *graph) {
    size_t tasks = graph->entries.count;
    uint32_t *memory = calloc(tasks * 3 + 1 + graph->edges.count, sizeof *memory);
    if (!memory)
        return gbx_fail_memory("checking the graph");
    uint32_t *first_edge = memory;
    uint32_t *left = first_edge + tasks + 1;
    uint32_t *queue = left + tasks;
    uint32_t *successors = queue + tasks;
    sort_edges(graph, first_edge, successors, left);
    if (count_runnable(graph, first_edge, successors, left, queue) != tasks)
        name_cycle(graph, left, queue);
    free(memory);
    return NULL;
}

/* --- to the chip --- */

static uint64_t arguments_bytes(const gbx_host_entry *entry) {
    return gbx_task_arguments_bytes(entry->word_count, entry->info_count);
}

static void write_arguments(const gbx_host_graph *graph, const gbx_host_entry *entry,
                            gbx_task_arguments *arguments) {
    const gbx_tensor_info *infos = (const gbx_tensor_info *)graph->infos.elements;
    memset(arguments, 0, sizeof *arguments);
    arguments->word_count = entry->word_count;
    arguments->tensor_count = entry->info_count;
    arguments->is_described = entry->is_described;
    arguments->dumped_words = entry->dumped_words;
    if (entry->word_count)
        memcpy(arguments->words, (const uint64_t *)graph->words.elements + entry->first_word,
               entry->word_count * sizeof(uint64_t));
    for (uint32_t i = 0; i < entry->info_count; ++i) {
        const gbx_tensor_info *info = &infos[entry->first_info + i];
        arguments->kinds[info->arg_index] = (uint8_t)(GBX_WORD_TENSOR | info->role);
    }
    /* Tensors follow in the order of their words, which need not be that of the infos. */
    gbx_tensor *tensors = gbx_task_arguments_tensors(arguments);
    for (uint32_t w = 0; w < entry->word_count; ++w)
        for (uint32_t i = 0; i < entry->info_count; ++i)
            if (infos[entry->first_info + i].arg_index == w)
                *tensors++ = infos[entry->first_info + i].tensor;
}

static gbx_status take_failure(gbx_host_graph *graph) {
    gbx_status failure = graph->failure;
    graph->failure = NULL;
    if (graph->error.kind == GBX_GRAPH_OK)
        graph->error = graph->bad_tensor;
    if (!failure && graph->error.kind != GBX_GRAPH_OK)
        failure = gbx_graph_error_status(graph->request.chip, graph->request.runtime->name,
                                         &graph->error);
    return failure;
}

/* All arguments, then the table of tasks, then that of edges: one block of memory. */
static gbx_status copy_graph(gbx_host_graph *graph, gbx_graph_launch *launch) {
    size_t count = graph->entries.count;
    uint64_t tasks_at = 0;
    for (size_t i = 0; i < count; ++i)
        tasks_at += arguments_bytes(gbx_host_entry_at(graph, i));
    uint64_t edges_at = tasks_at + count * sizeof(gbx_host_task);
    uint64_t bytes = edges_at + graph->edges.count * sizeof(gbx_host_edge);
    uint64_t base = gbx_host_graph_alloc_apart(graph, bytes);
    if (!base)
        return take_failure(graph);
    char *image = malloc(bytes + 1);
    if (!image)
        return gbx_fail_memory("copying the %" PRIu64 " bytes of the graph", bytes);
    gbx_host_task *tasks = (gbx_host_task *)(image + tasks_at);
    uint64_t at = 0;
    for (size_t i = 0; i < count; ++i) {
        const gbx_host_entry *entry = gbx_host_entry_at(graph, i);
        write_arguments(graph, entry, (gbx_task_arguments *)(image + at));
        tasks[i] = (gbx_host_task){.kernels = entry->kernels, .arguments = base + at};
        at += arguments_bytes(entry);
    }
    if (graph->edges.count)
        memcpy(image + edges_at, graph->edges.elements, bytes - edges_at);
    gbx_status status = gbx_gm_copy_in(graph->request.chip, base, image, bytes);
    free(image);
    launch->storage = base;
    launch->storage_bytes = tasks_at;
    launch->tasks = base + tasks_at;
    launch->edges = base + edges_at;
    launch->task_count = count;
    launch->edge_count = graph->edges.count;
    return status;
}

static gbx_status copy_pages(gbx_host_graph *graph) {
    gbx_host_page **pages = graph->pages.elements;
    for (size_t i = 0; i < graph->pages.count; ++i)
        GBX_TRY(gbx_gm_copy_in(graph->request.chip, pages[i]->address, pages[i]->tensors,
                               pages[i]->count * sizeof pages[i]->tensors[0]));
    return NULL;
}

static gbx_status copy_back(gbx_host_graph *graph) {
    const gbx_host_return *returns = graph->returns.elements;
    for (size_t i = 0; i < graph->returns.count; ++i)
        GBX_TRY(gbx_status_annotate(
            gbx_gm_copy_out(graph->request.chip, returns[i].to, returns[i].from, returns[i].bytes),
            "gbx_return_to_host"));
    return NULL;
}

/* The part of a copy back that goes into a tensor of the host's; `bytes` is 0 for none. */
static gbx_tensor_piece piece_of(const gbx_host_return *copy, uint64_t start, uint64_t bytes) {
    uint64_t to = (uint64_t)(uintptr_t)copy->to;
    uint64_t first = to > start ? to : start;
    uint64_t end = to + copy->bytes < start + bytes ? to + copy->bytes : start + bytes;
    if (first >= end)
        return (gbx_tensor_piece){.bytes = 0};
    return (gbx_tensor_piece){first - start, copy->from + (first - to), end - first};
}

static gbx_status find_pieces(const gbx_host_graph *graph, const gbx_tensor *tensor,
                              gbx_tensor_piece **out_pieces, size_t *out_count) {
    const gbx_host_return *returns = graph->returns.elements;
    size_t count = 0;
    gbx_tensor_piece *copies = calloc(graph->returns.count + 1, sizeof *copies);
    if (!copies)
        return gbx_fail_memory("listing copies to the host");
    for (size_t i = 0; i < graph->returns.count; ++i) {
        copies[count] = piece_of(&returns[i], tensor->data, gbx_tensor_payload_bytes(tensor));
        count += copies[count].bytes != 0;
    }
    gbx_status status = gbx_tensor_pieces_of(copies, count, out_pieces, out_count);
    free(copies);
    return status;
}

/* Hands the final tensors to the listener, as the copies back make them, also after a failure. */
static gbx_status conclude(gbx_host_graph *graph, bool is_in_flight) {
    const gbx_run *run = graph->request.run;
    const gbx_chip_listener *listener = graph->request.listener;
    gbx_final_tensor tensors[GBX_MAX_RUN_TENSORS];
    gbx_tensor_piece *pieces[GBX_MAX_RUN_TENSORS] = {NULL};
    size_t count = 0;
    gbx_status status = NULL;
    for (uint32_t i = 0; i < run->tensor_count && !status; ++i) {
        const gbx_run_tensor *from = &run->tensors[i];
        if (from->role == GBX_ROLE_INPUT)
            continue;
        gbx_final_tensor *to = &tensors[count];
        *to = (gbx_final_tensor){.arg_index = i, .role = from->role, .tensor = from->tensor};
        status = find_pieces(graph, &from->tensor, &pieces[count], &to->piece_count);
        to->pieces = pieces[count++];
    }
    if (!status)
        listener->conclude(listener->context, tensors, count, is_in_flight);
    for (size_t i = 0; i < count; ++i)
        free(pieces[i]);
    return status;
}

static gbx_status run_graph(gbx_host_graph *graph, gbx_graph_launch *launch,
                            gbx_call_result *out_result) {
    gbx_status status = gbx_runtime_launch(&graph->request, launch, out_result);
    return graph->request.listener ? gbx_status_first(status, conclude(graph, status != NULL))
                                   : status;
}

static gbx_status launch_graph(gbx_host_graph *graph, gbx_call_result *out_result) {
    static const gbx_graph_launch empty;
    GBX_TRY(take_failure(graph));
    GBX_TRY(check_cycles(graph));
    GBX_TRY(take_failure(graph));
    gbx_graph_launch *launch = malloc(sizeof *launch);
    if (!launch)
        return gbx_fail_memory("launching a graph");
    *launch = empty;
    gbx_status status = copy_pages(graph);
    if (!status)
        status = copy_graph(graph, launch);
    if (!status)
        status = run_graph(graph, launch, out_result);
    free(launch);
    GBX_TRY(status);
    return copy_back(graph);
}

gbx_status gbx_host_graph_launch(gbx_host_graph *graph, gbx_call_result *out_result) {
    gbx_status status = launch_graph(graph, out_result);
    gbx_signature_warnings_report(graph->request.chip, &graph->warnings, out_result);
    return status;
}
