/* tensormap_and_ringbuffer: the orchestration runs on the chip and submits tasks; their edges
 * follow from what they read and write. Tasks, their arguments and the outputs that the runtime
 * allocates live in rings: memory does not grow with the graph. */
#include <glassbox/tensor.h>

#include "runtime/runtimes.h"
#include "runtime/tensormap_and_ringbuffer/window.h"
#include "tensor/view.h"

enum {
    ENTRY = GBX_ENTRY_FIRST_PROGRAM + 2,
    HEAP_ALIGNMENT = 512,
    HOT_BYTES = 1 << 20,
    MIN_ARGUMENT_TASKS = 64, /* with as many arguments as possible */
};

static gbx_window *window_of(gbx_orchestration *orchestration) {
    return gbx_graph_of(orchestration)->memory;
}

static uint64_t memory_bytes(const gbx_graph *graph) {
    return gbx_window_bytes(graph->launch->window);
}

/* --- submitting --- */

/* Every new output has an address of its own, even without elements. */
static uint64_t new_output_bytes(const gbx_tensor *tensor) {
    uint64_t bytes = gbx_tensor_payload_bytes(tensor);
    return ((bytes ? bytes : 1) + HEAP_ALIGNMENT - 1) & ~(uint64_t)(HEAP_ALIGNMENT - 1);
}

/* What a task needs; its new outputs lie in one piece. False, with an error, if they never fit. */
static inline __attribute__((always_inline)) bool
count_need(gbx_window *window, const gbx_task_kernels *kernels, const gbx_args *args,
           gbx_window_need *out_need, bool is_probed) {
    uint32_t words = args->tensor_count + args->scalar_count;
    *out_need = (gbx_window_need){
        .argument_bytes = gbx_task_arguments_bytes(words, args->tensor_count),
        .tensor_count = args->tensor_count,
        .func_id = gbx_first_kernel(kernels),
    };
    uint64_t wanted = 0, limit = window->graph->launch->heap_bytes;
    for (uint32_t news = args->new_outputs; news; news &= news - 1) {
        uint32_t index = (uint32_t)__builtin_ctz(news);
        uint64_t bytes = new_output_bytes(args->tensors[index]);
        wanted += bytes;
        out_need->heap_bytes += bytes + (is_probed ? window->zone_bytes : 0);
        if (bytes > limit || wanted > limit) {
            gbx_graph_error error = {.kind = GBX_GRAPH_HEAP_TENSOR,
                                     .func_id = out_need->func_id,
                                     .task = window->next_id,
                                     .values = {index, (int64_t)wanted, (int64_t)limit}};
            gbx_graph_fail_with(window->graph, &error);
            return false;
        }
    }
    return true;
}

/* The guard fills the zone behind it, and poisons it. */
static void guard_output(gbx_window *window, const gbx_task_kernels *kernels, uint32_t index,
                         uint64_t address, uint64_t bytes, uint64_t zone_end) {
    gbx_probe_buffer buffer = {.address = address,
                               .bytes = bytes,
                               .zone_end = zone_end,
                               .place = GBX_PLACE_OUTPUT,
                               .index = index,
                               .owner_task = window->next_id,
                               .owner_func = gbx_first_kernel(kernels)};
    gbx_graph_guard(window->graph, &buffer);
}

/* One piece of the heap for all new outputs of a task. */
static inline __attribute__((always_inline)) void allocate_outputs(gbx_window *window,
                                                                   const gbx_task_kernels *kernels,
                                                                   const gbx_args *args,
                                                                   uint64_t bytes, bool is_probed) {
    uint64_t address = gbx_ring_take(&window->heap, bytes);
    gbx_tensor_map_heap_push(window->map, address, bytes);
    for (uint32_t news = args->new_outputs; news; news &= news - 1) {
        /* Not const: the orchestration passed it in to get the address. */
        uint32_t index = (uint32_t)__builtin_ctz(news);
        gbx_tensor *tensor = (gbx_tensor *)(uintptr_t)args->tensors[index];
        uint64_t first = address;
        tensor->data = first;
        tensor->buffer_bytes = gbx_tensor_payload_bytes(tensor);
        address += new_output_bytes(tensor) + (is_probed ? window->zone_bytes : 0);
        /* From registers: what was just stored in parts is slow to read as a whole. */
        if (is_probed && window->zone_bytes)
            guard_output(window, kernels, index, first, tensor->buffer_bytes, address);
    }
}

typedef struct submission {
    gbx_window *window;
    gbx_sched_task *task;
} submission;

static void depend(void *context, uint64_t position) {
    submission *submitted = context;
    gbx_window_depend(submitted->window, submitted->task, position);
}

static inline __attribute__((always_inline)) gbx_task
submit(gbx_window *window, const gbx_task_kernels *kernels, const gbx_args *args,
       const gbx_window_need *need, bool is_probed) {
    gbx_task id = window->next_id;
    uint64_t position;
    submission submitted = {.window = window, .task = gbx_window_take(window, &position)};
    if (args->new_outputs)
        allocate_outputs(window, kernels, args, need->heap_bytes, is_probed);
    uint64_t place = gbx_ring_take(&window->arguments, need->argument_bytes);
    gbx_graph_prepare(window->graph, submitted.task, id, kernels, args, place, is_probed);
    if (args->tensor_count)
        gbx_tensor_map_add_task(window->map, position, args->tensors, args->roles,
                                args->tensor_count, depend, &submitted);
    gbx_window_note(window, submitted.task, args);
    window->graph->task_count = window->next_id;
    gbx_sched_release(&window->graph->sched, submitted.task);
    return id;
}

/* False, with an error, if an argument is the output of a task whose scope has ended. */
static bool check_scopes(gbx_window *window, const gbx_task_kernels *kernels,
                         const gbx_args *args) {
    for (uint32_t i = 0; i < args->tensor_count; ++i) {
        if (args->new_outputs >> i & 1 || !gbx_window_has_ended(window, args->tensors[i]->data))
            continue;
        gbx_graph_fail(window->graph, GBX_GRAPH_SCOPE_OVER, window->next_id,
                       gbx_first_kernel(kernels), i, 0);
        return false;
    }
    return true;
}

/* Counts the rest of a scope that does not fit, to report how much it needs. */
static void count_rest(gbx_window *window, const gbx_task_kernels *kernels, const gbx_args *args) {
    gbx_window_need need;
    int64_t first, end;
    bool is_sound = args->tensor_count <= GBX_MAX_TENSOR_ARGS;
    for (uint32_t news = is_sound ? args->new_outputs : 0; news; news &= news - 1) {
        const gbx_tensor *tensor = args->tensors[(uint32_t)__builtin_ctz(news)];
        is_sound = is_sound && tensor && gbx_tensor_is_valid(tensor, &first, &end);
    }
    if (window->is_counting && is_sound && count_need(window, kernels, args, &need, true))
        gbx_window_count_wanted(window, &need);
}

static inline __attribute__((always_inline)) gbx_task
check_and_submit(gbx_orchestration *orchestration, const gbx_task_kernels *kernels,
                 const gbx_args *args, bool is_probed) {
    gbx_window *window = window_of(orchestration);
    gbx_window_need need;
    if (!gbx_graph_builds_on(window->graph)) {
        count_rest(window, kernels, args);
        return GBX_NO_TASK;
    }
    if (!gbx_graph_check_task(window->graph, kernels, args) ||
        !check_scopes(window, kernels, args) ||
        !count_need(window, kernels, args, &need, is_probed) ||
        !gbx_window_make_room(window, &need))
        return GBX_NO_TASK;
    return submit(window, kernels, args, &need, is_probed);
}

static gbx_task submit_task(gbx_orchestration *orchestration, const gbx_task_kernels *kernels,
                            const gbx_args *args) {
    return check_and_submit(orchestration, kernels, args, false);
}

static gbx_task submit_probed(gbx_orchestration *orchestration, const gbx_task_kernels *kernels,
                              const gbx_args *args) {
    return check_and_submit(orchestration, kernels, args, true);
}

/* --- scopes --- */

static void scope_begin(gbx_orchestration *orchestration) {
    gbx_window *window = window_of(orchestration);
    if (window->depth + 1 >= GBX_MAX_SCOPES) {
        gbx_graph_fail(window->graph, GBX_GRAPH_SCOPE_DEPTH, window->next_id, GBX_NO_KERNEL,
                       GBX_MAX_SCOPES - 1, 0);
        return;
    }
    gbx_window_begin_scope(window);
}

static void scope_end(gbx_orchestration *orchestration) {
    gbx_window *window = window_of(orchestration);
    if (window->depth == 0) {
        gbx_graph_fail(window->graph, GBX_GRAPH_SCOPE_END, window->next_id, GBX_NO_KERNEL, 0, 0);
        return;
    }
    gbx_window_end_scope(window);
}

static void end(gbx_graph *graph) {
    const gbx_window *window = graph->memory;
    if (window->depth > 0)
        gbx_graph_fail(graph, GBX_GRAPH_SCOPE_LEFT, window->next_id, GBX_NO_KERNEL, window->depth,
                       0);
}

/* --- reading --- */

static void await_writer(void *context, uint64_t position) {
    gbx_window *window = context;
    gbx_sched_await(&window->graph->sched, gbx_window_task(window, position));
}

static void await_tensor(gbx_graph *graph, const gbx_tensor *tensor) {
    gbx_window *window = graph->memory;
    gbx_tensor_map_find(window->map, tensor, false, await_writer, window);
}

#define SHARED_OPS                                                                                 \
    .refuse = gbx_graph_refuse, .report_failure = gbx_graph_fail_by_user,                          \
    .scope_begin = scope_begin, .scope_end = scope_end,                                            \
    .get_tensor_data = gbx_graph_get_tensor_data

static const gbx_orchestration_ops ops = {SHARED_OPS, .submit_task = submit_task};
static const gbx_orchestration_ops probed_ops = {SHARED_OPS, .submit_task = submit_probed};

static const gbx_builder builder = {
    .memory_bytes = memory_bytes,
    .hot_bytes = HOT_BYTES,
    .begin = gbx_window_begin,
    .end = end,
    .await_tensor = await_tensor,
    .ops = &ops,
    .probed_ops = &probed_ops,
};

/* --- host --- */

static uint64_t argument_ring_bytes(uint32_t window) {
    uint64_t least =
        MIN_ARGUMENT_TASKS * gbx_task_arguments_bytes(GBX_MAX_WORDS, GBX_MAX_TENSOR_ARGS);
    uint64_t bytes = (uint64_t)window * GBX_ARGUMENT_BYTES_PER_TASK;
    return bytes > least ? bytes : least;
}

static gbx_status run(const gbx_runtime_request *request, gbx_call_result *out_result) {
    const gbx_call_config *config = request->config;
    gbx_graph_launch launch = {.window = config->window ? config->window : GBX_DEFAULT_WINDOW};
    uint64_t free_bytes;
    if (launch.window > GBX_MAX_WINDOW)
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "running: a window of %u tasks is too large; at most %u are possible",
                        launch.window, GBX_MAX_WINDOW);
    GBX_TRY(gbx_runtime_free_memory(request, &free_bytes));
    launch.storage_bytes = argument_ring_bytes(launch.window);
    launch.heap_bytes = config->heap_bytes ? config->heap_bytes : free_bytes / 2;
    if (!config->heap_bytes && launch.heap_bytes > GBX_MAX_DEFAULT_HEAP)
        launch.heap_bytes = GBX_MAX_DEFAULT_HEAP;
    launch.heap_bytes &= ~(uint64_t)(HEAP_ALIGNMENT - 1);
    return gbx_runtime_run_on_chip(request, &launch, out_result);
}

const gbx_runtime gbx_tensormap_and_ringbuffer = {
    .name = "tensormap_and_ringbuffer",
    .description =
        "the chip's orchestrator thread submits tasks; edges follow from reads and writes",
    .entry = ENTRY,
    .builder = &builder,
    .run = run,
};
