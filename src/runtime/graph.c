#include "runtime/graph.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/runtimes.h"

static gbx_graph *graph_of(gbx_device *device) {
    return device->program_state;
}

/* --- errors --- */

void gbx_graph_fail_with(gbx_graph *graph, const gbx_graph_error *error) {
    if (graph->error.kind == GBX_GRAPH_OK) {
        graph->error = *error;
        /* Pairs with report_fault, on the control thread. */
        atomic_store_explicit(&graph->has_error, true, memory_order_release);
    }
    gbx_sched_cancel(&graph->sched);
}

void gbx_graph_fail(gbx_graph *graph, gbx_graph_error_kind kind, uint64_t task, uint32_t func_id,
                    int64_t value, int64_t other) {
    gbx_graph_error error = {
        .kind = (uint32_t)kind, .func_id = func_id, .task = task, .values = {value, other}};
    gbx_graph_fail_with(graph, &error);
}

static void fail_with_text(gbx_graph *graph, gbx_graph_error_kind kind, const char *text) {
    gbx_graph_error error = {
        .kind = (uint32_t)kind, .func_id = GBX_NO_KERNEL, .task = graph->task_count};
    for (size_t i = 0; text && text[i] && i + 1 < sizeof error.text; ++i)
        error.text[i] = text[i];
    gbx_graph_fail_with(graph, &error);
}

void gbx_graph_refuse(gbx_orchestration *orchestration, const char *call) {
    fail_with_text(gbx_graph_of(orchestration), GBX_GRAPH_REFUSED, call);
}

void gbx_graph_fail_by_user(gbx_orchestration *orchestration, const char *message) {
    fail_with_text(gbx_graph_of(orchestration), GBX_GRAPH_FAILED, message);
}

uint64_t gbx_graph_get_tensor_data(gbx_orchestration *orchestration, const gbx_tensor *tensor,
                                   const int64_t *indices) {
    gbx_graph *graph = gbx_graph_of(orchestration);
    gbx_graph_error error;
    if (!gbx_graph_builds_on(graph))
        return 0;
    if (!gbx_check_tensor(&graph->limits, graph->task_count, NULL, GBX_NO_ARGUMENT, tensor, false,
                          &error) ||
        !gbx_check_indices(graph->task_count, tensor, indices, &error)) {
        gbx_graph_fail_with(graph, &error);
        return 0;
    }
    if (graph->builder->await_tensor)
        graph->builder->await_tensor(graph, tensor);
    return gbx_sched_is_cancelled(&graph->sched) ? 0 : gbx_read_element(tensor, indices);
}

/* --- memory --- */

/* Rounds a size up; false, with an error, when too little is left between buffers and arguments. */
static inline bool fits_storage(gbx_graph *graph, uint64_t bytes, uint64_t *out_rounded) {
    uint64_t left = graph->storage_end - graph->storage_used;
    *out_rounded = (bytes + 63) & ~UINT64_C(63);
    if (*out_rounded >= bytes && *out_rounded <= left)
        return true;
    gbx_graph_fail(graph, GBX_GRAPH_NO_MEMORY, graph->task_count, GBX_NO_KERNEL, (int64_t)bytes,
                   (int64_t)left);
    return false;
}

uint64_t gbx_graph_take_storage(gbx_graph *graph, uint64_t bytes) {
    uint64_t rounded;
    if (!fits_storage(graph, bytes, &rounded))
        return 0;
    uint64_t address = graph->buffers_at + graph->storage_used;
    graph->storage_used += rounded;
    return address;
}

uint64_t gbx_graph_take_arguments(gbx_graph *graph, uint64_t bytes) {
    uint64_t rounded;
    if (!fits_storage(graph, bytes, &rounded))
        return 0;
    graph->storage_end -= rounded;
    return graph->arguments_at + graph->storage_end;
}

const gbx_task_arguments *gbx_graph_write_both(const gbx_graph *graph, const gbx_args *args,
                                               gbx_task_arguments *shown) {
    uint64_t address = (uint64_t)(uintptr_t)shown;
    gbx_task_arguments *kept = gbx_graph_kept(graph, address);
    uint64_t distance = address - (uint64_t)(uintptr_t)kept;
    gbx_write_arguments(args, kept);
    for (uint32_t i = 0; i < kept->tensor_count; ++i)
        kept->words[i] += distance; /* the kernel reads the tensors in global memory */
    memcpy(shown, kept, gbx_task_arguments_bytes(kept->word_count, kept->tensor_count));
    return kept;
}

void gbx_graph_guard(gbx_graph *graph, gbx_probe_buffer *buffer) {
    buffer->number = graph->buffer_count++;
    graph->probe->new_buffer(graph->probe->context, buffer);
}

/* Without enough spare bytes a buffer has no zones; the guard counts it, and poisons it. */
static uint64_t take_unguarded(gbx_graph *graph, uint64_t bytes) {
    gbx_probe_buffer buffer = {.address = gbx_graph_take_storage(graph, bytes),
                               .bytes = bytes,
                               .place = GBX_PLACE_DEVICE_MALLOC,
                               .index = graph->buffer_count,
                               .owner_task = GBX_NO_TASK,
                               .owner_func = GBX_NO_KERNEL};
    if (buffer.address)
        gbx_graph_guard(graph, &buffer);
    return buffer.address;
}

uint64_t gbx_graph_take_buffer(gbx_graph *graph, uint64_t bytes) {
    const uint64_t granule = GBX_PROBE_GRANULE, mask = granule - 1;
    if (!gbx_graph_has_zones(graph))
        return gbx_graph_take_storage(graph, bytes);
    uint64_t at = graph->buffers_at + graph->storage_used;
    /* What lies before it is a zone already, or gets one. */
    uint64_t first = at == graph->zone_end ? at : (at + mask + granule) & ~mask;
    uint64_t spare = first - at + granule + mask; /* at most, with the zone behind it */
    if (spare > graph->arguments_at - graph->buffers_at)
        return take_unguarded(graph, bytes);
    graph->buffers_at += first - at;
    uint64_t address = gbx_graph_take_storage(graph, bytes);
    if (!address)
        return 0;
    if (at != graph->zone_end) {
        gbx_probe_buffer lead = {.address = address - granule,
                                 .zone_end = address,
                                 .place = GBX_PLACE_OWN,
                                 .owner_task = GBX_NO_TASK,
                                 .owner_func = GBX_NO_KERNEL};
        graph->probe->new_buffer(graph->probe->context, &lead);
    }
    uint64_t end = graph->buffers_at + graph->storage_used;
    graph->zone_end = (end + mask + granule) & ~mask;
    graph->buffers_at += graph->zone_end - end;
    gbx_probe_buffer buffer = {.address = address,
                               .bytes = bytes,
                               .zone_end = graph->zone_end,
                               .place = GBX_PLACE_DEVICE_MALLOC,
                               .index = graph->buffer_count,
                               .owner_task = GBX_NO_TASK,
                               .owner_func = GBX_NO_KERNEL};
    gbx_graph_guard(graph, &buffer);
    return address;
}

static void free_memory(gbx_graph *graph) {
    if (graph->memory)
        munmap(graph->memory, graph->memory_bytes);
    graph->memory = NULL;
    if (graph->probe_state)
        munmap(graph->probe_state, graph->probe_state_bytes);
    graph->probe_state = NULL;
    graph->probe = NULL;
    if (graph->kept)
        munmap(graph->kept, graph->kept_bytes);
    graph->kept = NULL;
    graph->findings = NULL;
    if (graph->object)
        dlclose(graph->object);
    graph->object = NULL;
}

/* NULL, with the reason in the control block, when memory is out. */
static void *map_memory(gbx_graph *graph, uint64_t bytes) {
    gbx_control_block *control = graph->device->control;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED)
        return memory;
    snprintf(control->message, sizeof control->message,
             "starting the graph: the chip is out of memory (%" PRIu64 " bytes were wanted)",
             bytes);
    return NULL;
}

static gbx_code take_memory(gbx_graph *graph) {
    graph->memory_bytes = graph->builder->memory_bytes(graph);
    graph->memory = map_memory(graph, graph->memory_bytes);
    if (!graph->memory)
        return GBX_EXHAUSTED;
    uint64_t hot_bytes = graph->builder->hot_bytes;
    if (hot_bytes > graph->memory_bytes)
        hot_bytes = graph->memory_bytes;
    /* A Linux without this call maps pages as they are touched. */
    if (hot_bytes)
        (void)madvise(graph->memory, hot_bytes, MADV_POPULATE_WRITE);
    return GBX_OK;
}

/* --- the probe of dump and guard --- */

static void ring_host(void *context) {
    gbx_device_ring(context);
}

static void show_life(void *context) {
    gbx_device *device = context;
    atomic_fetch_add_explicit(&device->control->heartbeat, 1, memory_order_relaxed);
}

static void stop_run(void *context, uint64_t task, uint32_t func_id) {
    gbx_fault_record_guard(context, task, func_id);
}

static gbx_code attach_probe(gbx_graph *graph) {
    gbx_device *device = graph->device;
    if (!device->launch.dump_data_base && !device->launch.guard_data_base)
        return GBX_OK;
    gbx_probe_request request = {.data_base = device->launch.dump_data_base,
                                 .guard_base = device->launch.guard_data_base,
                                 .flags = device->launch.dump_flags,
                                 .thread_count = device->boot.aicpu_threads,
                                 .gm_base = device->boot.gm_base,
                                 .gm_bytes = device->boot.gm_bytes,
                                 .shown = graph->launch->storage,
                                 .shown_bytes = graph->launch->storage_bytes +
                                                graph->launch->storage_spare_bytes,
                                 .ring = ring_host,
                                 .show_life = show_life,
                                 .stop = stop_run,
                                 .machine = device};
    graph->probe_state_bytes = graph->probe_source->state_bytes(&request);
    graph->probe_state = map_memory(graph, graph->probe_state_bytes);
    if (!graph->probe_state)
        return GBX_EXHAUSTED;
    graph->kept_bytes = request.shown_bytes;
    if (graph->kept_bytes && !(graph->kept = map_memory(graph, graph->kept_bytes)))
        return GBX_EXHAUSTED;
    request.kept = graph->kept;
    graph->probe = graph->probe_source->attach(graph->probe_state, &request);
    graph->findings = request.findings;
    return graph->probe ? GBX_OK : GBX_INTERNAL;
}

/* --- what the scheduler asks of the chip --- */

static void run_dispatch(void *context, const gbx_sched_dispatch *dispatch) {
    gbx_device *device = context;
    /* From private memory: a kernel can write to the one in global memory. */
    gbx_local_context local = {.block_idx = dispatch->block_idx,
                               .block_num = dispatch->task->block_num};
    gbx_core_run(&device->cores[dispatch->core_id], dispatch->task->id, dispatch->func_id, &local,
                 dispatch->args);
}

static void wake_worker(void *context, uint32_t worker) {
    gbx_device *device = context;
    gbx_doorbell_ring(&device->workers[worker].bell);
}

_Static_assert(sizeof(gbx_graph_message) <= sizeof(((gbx_control_block *)0)->message),
               "what a graph reports fits");

/* What the host makes sentences of. */
static void leave_message(gbx_graph *graph) {
    gbx_graph_message *message = (gbx_graph_message *)graph->device->control->message;
    if (atomic_load_explicit(&graph->has_error, memory_order_acquire))
        message->error = graph->error;
    if (graph->limits.warnings)
        gbx_signature_warnings_copy(&graph->warnings, &message->warnings);
}

static void finish(void *context) {
    gbx_device *device = context;
    gbx_graph *graph = graph_of(device);
    uint64_t completed = gbx_sched_completed(&graph->sched);
    if (atomic_load_explicit(&device->has_failed, memory_order_acquire))
        return; /* a hung kernel has ended after all; the control thread reports */
    gbx_code code = GBX_OK;
    if (graph->error.kind == GBX_GRAPH_OK && completed != graph->task_count) {
        code = GBX_INTERNAL;
        if (graph->builder->diagnose)
            graph->builder->diagnose(graph);
    }
    if (graph->error.kind != GBX_GRAPH_OK)
        code = GBX_BAD_GRAPH;
    leave_message(graph);
    gbx_device_finish(device, code, completed, gbx_sched_dispatched(&graph->sched));
}

void gbx_graph_begin_sched(gbx_graph *graph, gbx_sched_task *tasks, uint32_t task_capacity,
                           gbx_ready_cell *cells, bool is_gated) {
    gbx_device *device = graph->device;
    for (uint32_t i = 0; i < device->core_count; ++i) {
        gbx_dispatch_payload *payload = &device->control->dispatches[i];
        graph->sched.dispatches[i].args = payload->args;
        graph->sched.dispatches[i].local = &payload->local;
    }
    gbx_sched_config config = {
        .machine = {device, run_dispatch, wake_worker, finish},
        .probe = graph->probe,
        .global_context = device->launch.payload + offsetof(gbx_graph_launch, global),
        .blocks = device->boot.blocks,
        .thread_count = device->boot.aicpu_threads,
        .processor_count = graph->processor_count,
        .is_gated = is_gated,
        .tasks = tasks,
        .task_capacity = task_capacity,
        .cells = cells,
    };
    gbx_sched_begin(&graph->sched, &config);
}

/* --- the program --- */

static void fill_limits(gbx_graph *graph) {
    gbx_device *device = graph->device;
    graph->limits.gm_base = device->boot.gm_base;
    graph->limits.gm_bytes = device->boot.gm_bytes;
    graph->limits.blocks = device->boot.blocks;
    graph->limits.signatures = device->signatures;
    graph->limits.warnings = graph->launch->has_loose_signatures ? &graph->warnings : NULL;
    for (uint32_t i = 0; i < GBX_MAX_KERNELS; ++i)
        graph->limits.kernel_cores[i] =
            device->kernels[i].entry ? (uint8_t)(1 + device->kernels[i].core) : 0;
}

static gbx_code load_orchestration(gbx_graph *graph) {
    const gbx_graph_launch *launch = graph->launch;
    if (launch->function) {
        uintptr_t function = (uintptr_t)launch->function;
        memcpy(&graph->orchestrate, &function, sizeof function);
        return GBX_OK;
    }
    char definition[640];
    snprintf(definition, sizeof definition,
             "%s; an orchestration defines int %s(gbx_orchestration *, const gbx_run_args *)",
             launch->entry, launch->entry);
    void *symbol = NULL;
    gbx_code code = gbx_object_load(graph->device, launch->path, launch->entry, definition,
                                    &graph->object, &symbol);
    memcpy(&graph->orchestrate, &symbol, sizeof symbol); /* ISO C has no cast to a function */
    return code;
}

static gbx_code start(gbx_device *device, const void *payload, uint64_t bytes) {
    gbx_graph *graph = graph_of(device);
    if (bytes != sizeof(gbx_graph_launch))
        return GBX_INTERNAL;
    free_memory(graph);
    graph->device = device;
    graph->launch = payload;
    graph->builder = gbx_runtime_builder(device->launch.entry);
    graph->error.kind = GBX_GRAPH_OK;
    atomic_store_explicit(&graph->has_error, false, memory_order_relaxed);
    graph->task_count = graph->storage_used = graph->zone_end = 0;
    graph->buffers_at = graph->launch->storage;
    graph->arguments_at = graph->launch->storage + graph->launch->storage_spare_bytes;
    graph->storage_end = graph->launch->storage_bytes & ~UINT64_C(63);
    graph->buffer_count = 0;
    atomic_store_explicit(&graph->warnings.total, 0, memory_order_relaxed);
    atomic_store_explicit(&graph->warnings.kept, 0, memory_order_relaxed);
    fill_limits(graph);
    leave_message(graph); /* no warnings yet: the host may read it whatever happens */
    gbx_code code = take_memory(graph);
    if (code == GBX_OK)
        code = attach_probe(graph);
    if (code == GBX_OK && !graph->builder->build)
        code = load_orchestration(graph);
    if (code != GBX_OK)
        return code;
    graph->orchestration.ops = graph->probe ? graph->builder->probed_ops : graph->builder->ops;
    graph->builder->begin(graph);
    if (!graph->builder->build) {
        gbx_orchestrator_call(device);
        return GBX_OK;
    }
    graph->builder->build(graph);
    gbx_sched_seal(&graph->sched);
    return GBX_OK;
}

static void orchestrate(gbx_device *device) {
    gbx_graph *graph = graph_of(device);
    const gbx_graph_launch *launch = graph->launch;
    gbx_run_args run = {.tensors = launch->tensors,
                        .scalars = launch->scalars,
                        .tensor_count = launch->tensor_count,
                        .scalar_count = launch->scalar_count};
    gbx_fault_enter_orchestration(device);
    int result = graph->orchestrate(&graph->orchestration, &run);
    gbx_fault_leave();
    if (graph->builder->end)
        graph->builder->end(graph);
    if (result != 0)
        gbx_graph_fail(graph, GBX_GRAPH_RETURNED, graph->task_count, GBX_NO_KERNEL, result, 0);
    gbx_sched_seal(&graph->sched);
}

static void work(gbx_device *device, uint32_t worker) {
    gbx_sched_work(&graph_of(device)->sched, worker);
}

static uint64_t tasks_completed(gbx_device *device) {
    return gbx_sched_completed(&graph_of(device)->sched);
}

static uint64_t progress(gbx_device *device) {
    gbx_graph *graph = graph_of(device);
    const gbx_probe *probe = graph->probe;
    return gbx_sched_completed(&graph->sched) + gbx_sched_dispatched(&graph->sched) +
           atomic_load_explicit(&graph->heartbeat, memory_order_relaxed) +
           (probe ? probe->progress(probe->context) : 0);
}

static void cancel(gbx_device *device) {
    gbx_sched_cancel(&graph_of(device)->sched);
}

static uint32_t awake(gbx_device *device) {
    return gbx_sched_awake(&graph_of(device)->sched);
}

/* An error in the graph that came before the fault is reported with it. */
static void report_fault(gbx_device *device, uint32_t core_id) {
    gbx_graph *graph = graph_of(device);
    leave_message(graph);
    gbx_sched_report_fault(&graph->sched, core_id);
}

static const gbx_program graph_program = {
    .start = start,
    .work = work,
    .orchestrate = orchestrate,
    .progress = progress,
    .tasks_completed = tasks_completed,
    .cancel = cancel,
    .awake = awake,
    .report_fault = report_fault,
};

static const gbx_program *find_program(uint32_t entry) {
    return gbx_runtime_builder(entry) ? &graph_program : NULL;
}

/* --- the state of the program, in the device --- */

static void init_state(void *state, uint32_t worker_count, const void *context) {
    gbx_graph *graph = state;
    cpu_set_t processors;
    atomic_store_explicit(&graph->sched.worker_count, worker_count, memory_order_relaxed);
    graph->probe_source = context;
    graph->processor_count = 2;
    if (sched_getaffinity(0, sizeof processors, &processors) == 0)
        graph->processor_count = (uint32_t)CPU_COUNT(&processors);
}

static void destroy_state(void *state) {
    if (state)
        free_memory(state);
}

static void park_first(void *state, uint32_t worker) {
    gbx_sched_park(&((gbx_graph *)state)->sched, worker);
}

static bool is_parked(void *state, uint32_t worker) {
    return gbx_sched_is_parked(&((gbx_graph *)state)->sched, worker);
}

gbx_program_set gbx_graph_programs(const gbx_probe_source *source) {
    return (gbx_program_set){.find = find_program,
                             .state_bytes = sizeof(gbx_graph),
                             .init = init_state,
                             .destroy = destroy_state,
                             .park_first = park_first,
                             .is_parked = is_parked,
                             .context = source};
}
