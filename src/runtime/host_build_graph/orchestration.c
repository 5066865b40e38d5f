#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "base/memory.h"
#include "chip/host/chip.h"
#include "runtime/host_build_graph/table.h"

static gbx_host_graph *graph_of(gbx_orchestration *orchestration) {
    return (gbx_host_graph *)orchestration; /* its first member */
}

static bool is_over(const gbx_host_graph *graph) {
    return graph->error.kind != GBX_GRAPH_OK || graph->failure;
}

static void fail(gbx_host_graph *graph, gbx_graph_error_kind kind, uint64_t task, uint32_t func_id,
                 int64_t value, int64_t other) {
    if (!is_over(graph))
        graph->error = (gbx_graph_error){
            .kind = (uint32_t)kind, .func_id = func_id, .task = task, .values = {value, other}};
}

static void fail_with_text(gbx_host_graph *graph, gbx_graph_error_kind kind, const char *text) {
    bool is_first = !is_over(graph);
    fail(graph, kind, graph->entries.count, GBX_NO_KERNEL, 0, 0);
    for (size_t i = 0; is_first && text && text[i] && i + 1 < sizeof graph->error.text; ++i)
        graph->error.text[i] = text[i];
}

static void refuse(gbx_orchestration *orchestration, const char *call) {
    fail_with_text(graph_of(orchestration), GBX_GRAPH_REFUSED, call);
}

static void fail_by_user(gbx_orchestration *orchestration, const char *message) {
    fail_with_text(graph_of(orchestration), GBX_GRAPH_FAILED, message);
}

/* --- memory --- */

static uint64_t device_malloc(gbx_orchestration *orchestration, uint64_t bytes) {
    gbx_host_graph *graph = graph_of(orchestration);
    return is_over(graph) ? 0 : gbx_host_graph_alloc(graph, bytes);
}

/* A buffer that a tensor of the run is copied to or from is known by its name. */
static void note_copy(const gbx_host_graph *graph, uint64_t address, const void *pointer) {
    const gbx_chip_listener *listener = graph->request.listener;
    if (listener)
        listener->note_copy(listener->context, address, pointer);
}

static void copy_to_device(gbx_orchestration *orchestration, uint64_t to, const void *from,
                           uint64_t bytes) {
    gbx_host_graph *graph = graph_of(orchestration);
    if (is_over(graph))
        return;
    note_copy(graph, to, from);
    gbx_host_graph_keep_failure(
        graph, gbx_status_annotate(gbx_gm_copy_in(graph->request.chip, to, from, bytes),
                                   "gbx_copy_to_device"));
}

static void return_to_host(gbx_orchestration *orchestration, void *to, uint64_t from,
                           uint64_t bytes) {
    gbx_host_graph *graph = graph_of(orchestration);
    if (is_over(graph))
        return;
    note_copy(graph, from, to);
    gbx_host_return *copy = gbx_table_add(graph, &graph->returns, 1);
    if (copy)
        *copy = (gbx_host_return){.to = to, .from = from, .bytes = bytes};
}

static gbx_host_page *page_with_room(gbx_host_graph *graph) {
    gbx_host_page **pages = graph->pages.elements;
    gbx_host_page *page = graph->pages.count ? pages[graph->pages.count - 1] : NULL;
    if (page && page->count < sizeof page->tensors / sizeof page->tensors[0])
        return page;
    gbx_host_page **place = gbx_table_add(graph, &graph->pages, 1);
    if (!place)
        return NULL;
    *place = page = malloc(sizeof *page);
    if (!page) {
        --graph->pages.count;
        gbx_host_graph_keep_failure(graph, gbx_fail_memory("building a graph"));
        return NULL;
    }
    page->count = 0;
    page->address = gbx_host_graph_alloc_apart(graph, sizeof page->tensors);
    return page->address ? page : NULL;
}

/*
 * The page is copied to the chip when the graph is launched. A wrong tensor gets a word, too: the
 * task with this word is the one to name.
 */
static uint64_t device_tensor(gbx_orchestration *orchestration, const gbx_tensor *tensor) {
    gbx_host_graph *graph = graph_of(orchestration);
    gbx_graph_error error;
    if (is_over(graph))
        return 0;
    bool is_right = gbx_check_tensor(&graph->limits, graph->entries.count, NULL, GBX_NO_ARGUMENT,
                                     tensor, false, &error);
    if (!tensor) {
        graph->error = error;
        return 0;
    }
    gbx_host_page *page = page_with_room(graph);
    if (!page)
        return 0;
    uint64_t address = page->address + page->count * sizeof *tensor;
    page->tensors[page->count++] = *tensor;
    if (!is_right && graph->bad_tensor.kind == GBX_GRAPH_OK) {
        graph->bad_tensor = error;
        graph->bad_word = address;
    }
    return address;
}

/* --- tasks --- */

/* Names the argument of a task that is the wrong tensor, where there is one. */
static void find_bad_word(gbx_host_graph *graph, gbx_task task, const gbx_task_kernels *kernels,
                          const uint64_t *words, uint32_t word_count) {
    for (uint32_t i = 0; i < word_count && graph->bad_tensor.kind != GBX_GRAPH_OK; ++i) {
        if (words[i] != graph->bad_word)
            continue;
        graph->error = graph->bad_tensor;
        graph->error.task = task;
        graph->error.func_id = gbx_first_kernel(kernels);
        graph->error.values[0] = i;
        return;
    }
}

static bool check_infos(gbx_host_graph *graph, uint64_t task, const gbx_tensor_info *infos,
                        uint32_t count) {
    const gbx_host_entry *entry = gbx_host_entry_at(graph, task);
    const uint64_t *words = (const uint64_t *)graph->words.elements + entry->first_word;
    uint32_t func_id = gbx_first_kernel(&entry->kernels);
    uint64_t named = 0;
    if (count > GBX_MAX_TENSOR_ARGS) {
        fail(graph, GBX_GRAPH_TOO_MANY_ARGS, task, func_id, count,
             entry->word_count > count ? entry->word_count - count : 0);
        return false;
    }
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t index = infos[i].arg_index;
        if (index >= entry->word_count || named >> index & 1)
            fail(graph, GBX_GRAPH_TENSOR_INDEX, task, func_id, index, entry->word_count);
        else if (infos[i].role > GBX_ROLE_INOUT)
            fail(graph, GBX_GRAPH_ROLE, task, func_id, index, infos[i].role);
        else if (words[index] == 0)
            fail(graph, GBX_GRAPH_NULL_TENSOR, task, func_id, index, 0);
        else
            gbx_check_tensor(&graph->limits, task, &entry->kernels, index, &infos[i].tensor, false,
                             &graph->error);
        if (is_over(graph))
            return false;
        named |= UINT64_C(1) << index;
    }
    return count == 0 ||
           gbx_check_infos(&graph->limits, task, &entry->kernels, infos, count, &graph->error);
}

/* True when there was no error and the task exists. */
static bool has_task(gbx_host_graph *graph, gbx_task task) {
    if (task >= graph->entries.count)
        fail(graph, GBX_GRAPH_UNKNOWN_TASK, GBX_NO_TASK, GBX_NO_KERNEL, (int64_t)task,
             (int64_t)graph->entries.count);
    return !is_over(graph);
}

static void set_tensor_info(gbx_orchestration *orchestration, gbx_task task,
                            const gbx_tensor_info *infos, uint32_t count) {
    gbx_host_graph *graph = graph_of(orchestration);
    if (!has_task(graph, task) || !check_infos(graph, task, infos, count))
        return;
    gbx_host_entry *entry = gbx_host_entry_at(graph, task);
    entry->first_info = graph->infos.count;
    gbx_tensor_info *copies = gbx_table_add(graph, &graph->infos, count);
    if (!copies && count)
        return;
    for (uint32_t i = 0; i < count; ++i)
        copies[i] = infos[i];
    entry->info_count = count;
    entry->is_described = 1;
}

static void dump_task_words(gbx_orchestration *orchestration, gbx_task task, uint64_t words) {
    gbx_host_graph *graph = graph_of(orchestration);
    if (!has_task(graph, task))
        return;
    gbx_host_entry *entry = gbx_host_entry_at(graph, task);
    uint64_t all = entry->word_count < 64 ? (UINT64_C(1) << entry->word_count) - 1 : UINT64_MAX;
    uint64_t beyond = words & ~all;
    if (beyond && words != UINT64_MAX)
        fail(graph, GBX_GRAPH_MARK, task, gbx_first_kernel(&entry->kernels),
             __builtin_ctzll(beyond), entry->word_count);
    else
        entry->dumped_words |= words & all;
}

static bool append_entry(gbx_host_graph *graph, const gbx_task_kernels *kernels,
                         const uint64_t *words, uint32_t word_count) {
    uint64_t first_word = graph->words.count;
    uint64_t *copies = gbx_table_add(graph, &graph->words, word_count);
    gbx_host_entry *entry = gbx_table_add(graph, &graph->entries, 1);
    if ((!copies && word_count) || !entry)
        return false;
    if (word_count)
        memcpy(copies, words, word_count * sizeof *words);
    *entry =
        (gbx_host_entry){.kernels = *kernels, .word_count = word_count, .first_word = first_word};
    return true;
}

static gbx_task add_task(gbx_orchestration *orchestration, const gbx_task_kernels *kernels,
                         const uint64_t *words, uint32_t word_count, const gbx_tensor_info *infos,
                         uint32_t info_count) {
    gbx_host_graph *graph = graph_of(orchestration);
    gbx_task task = graph->entries.count;
    if (is_over(graph) || !gbx_check_kernels(&graph->limits, task, kernels, &graph->error))
        return GBX_NO_TASK;
    if (word_count > GBX_MAX_WORDS)
        fail(graph, GBX_GRAPH_TOO_MANY_ARGS, task, gbx_first_kernel(kernels), word_count, -1);
    if (task >= GBX_HOST_MAX_TASKS)
        fail(graph, GBX_GRAPH_TOO_MANY_TASKS, task, gbx_first_kernel(kernels), GBX_HOST_MAX_TASKS,
             0);
    if (!is_over(graph))
        find_bad_word(graph, task, kernels, words, word_count);
    if (is_over(graph) ||
        !gbx_check_word_count(&graph->limits, task, kernels, word_count, &graph->error) ||
        !append_entry(graph, kernels, words, word_count))
        return GBX_NO_TASK;
    if (infos)
        set_tensor_info(orchestration, task, infos, info_count);
    return is_over(graph) ? GBX_NO_TASK : task;
}

static int add_successor(gbx_orchestration *orchestration, gbx_task predecessor, gbx_task successor,
                         int is_conditional) {
    gbx_host_graph *graph = graph_of(orchestration);
    uint64_t count = graph->entries.count;
    if (is_conditional)
        refuse(orchestration, "gbx_add_successor_conditional");
    else if (predecessor >= count || successor >= count)
        fail(graph, GBX_GRAPH_UNKNOWN_TASK, GBX_NO_TASK, GBX_NO_KERNEL,
             (int64_t)(predecessor >= count ? predecessor : successor), (int64_t)count);
    else if (predecessor == successor)
        fail(graph, GBX_GRAPH_SELF_EDGE, successor,
             gbx_first_kernel(&gbx_host_entry_at(graph, successor)->kernels), 0, 0);
    if (is_over(graph))
        return 0;
    gbx_host_edge *edge = gbx_table_add(graph, &graph->edges, 1);
    if (edge)
        *edge = (gbx_host_edge){(uint32_t)predecessor, (uint32_t)successor};
    return edge != NULL;
}

/* One element of a tensor on the chip, as it is now. */
static uint64_t copy_element(gbx_host_graph *graph, const gbx_tensor *tensor,
                             const int64_t *indices) {
    uint64_t element[2] = {0};
    gbx_tensor copy = *tensor;
    int64_t position = tensor->start_offset;
    for (uint32_t d = 0; d < tensor->ndims; ++d)
        position += indices[d] * tensor->strides[d];
    uint32_t width = gbx_dtype_bits(tensor->dtype);
    uint64_t first_byte = (uint64_t)position * width / 8;
    gbx_host_graph_keep_failure(graph, gbx_gm_copy_out(graph->request.chip, element,
                                                       tensor->data + first_byte, (width + 7) / 8));
    copy.data = (uint64_t)(uintptr_t)element - first_byte;
    return is_over(graph) ? 0 : gbx_read_element(&copy, indices);
}

/* The run's own tensors lie in host memory, all others on the chip. */
static uint64_t get_tensor_data(gbx_orchestration *orchestration, const gbx_tensor *tensor,
                                const int64_t *indices) {
    gbx_host_graph *graph = graph_of(orchestration);
    uint64_t task = graph->entries.count;
    if (is_over(graph) ||
        !gbx_check_tensor(&graph->limits, task, NULL, GBX_NO_ARGUMENT, tensor, true,
                          &graph->error) ||
        !gbx_check_indices(task, tensor, indices, &graph->error))
        return 0;
    if (tensor->data == 0) {
        fail(graph, GBX_GRAPH_NULL_TENSOR, task, GBX_NO_KERNEL, GBX_NO_ARGUMENT, 0);
        return 0;
    }
    if (tensor->data - graph->limits.gm_base < graph->limits.gm_bytes)
        return copy_element(graph, tensor, indices);
    return gbx_read_element(tensor, indices);
}

const gbx_orchestration_ops gbx_host_graph_ops = {
    .refuse = refuse,
    .report_failure = fail_by_user,
    .add_task = add_task,
    .set_tensor_info = set_tensor_info,
    .add_successor = add_successor,
    .get_tensor_data = get_tensor_data,
    .device_malloc = device_malloc,
    .copy_to_device = copy_to_device,
    .return_to_host = return_to_host,
    .device_tensor = device_tensor,
    .dump_task_words = dump_task_words,
};
