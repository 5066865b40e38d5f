/* A graph while it runs on the chip: the scheduler, the builder of the runtime, and their data.
 * This is the program of the chip for all runtimes; each adds a builder. */
#ifndef GBX_RUNTIME_GRAPH_H
#define GBX_RUNTIME_GRAPH_H

#include "chip/abi.h"
#include "chip/device/device.h"
#include "runtime/check_signature.h"
#include "sched/sched.h"

/* How far descriptions in global memory lie from all tensors: a kernel that runs past a tensor by
 * less does not reach them. */
enum { GBX_APART_BYTES = 64 << 10 };

/* What the host launches a graph with. All addresses lie in global memory. */
typedef struct gbx_graph_launch {
    gbx_global_context global;
    uint64_t storage; /* memory for arguments of tasks, and what the graph allocates; apart from
                         all other memory */
    uint64_t storage_bytes;
    uint64_t storage_spare_bytes; /* more behind them, for zones */
    uint64_t heap;                /* tensormap_and_ringbuffer */
    uint64_t heap_bytes;
    uint64_t heap_spare_bytes; /* the same */
    uint64_t tasks; /* host_build_graph: gbx_host_task[task_count], uint32_t[edge_count] */
    uint64_t edges;
    uint64_t task_count;
    uint64_t edge_count;
    uint32_t window;   /* tensormap_and_ringbuffer */
    uint32_t is_gated; /* aicpu_build_graph: nothing runs before the orchestration has returned */
    uint32_t has_loose_signatures;
    uint32_t reserved;
    uint64_t function; /* the orchestration: an address in this process, or 0 and... */
    char path[4096];   /* ...a shared object... */
    char entry[256];   /* ...and its symbol */
    uint32_t tensor_count;
    uint32_t scalar_count;
    uint64_t scalars[GBX_MAX_RUN_SCALARS];
    gbx_tensor tensors[GBX_MAX_RUN_TENSORS];
} gbx_graph_launch;
_Static_assert(sizeof(gbx_graph_launch) <= GBX_MAX_PAYLOAD_BYTES, "a launch fits its payload");

typedef struct gbx_graph gbx_graph;

/* The part of a runtime that runs on the chip. */
typedef struct gbx_builder {
    /* Private memory that it needs for a launch: zeroed, and mapped as it is touched. */
    uint64_t (*memory_bytes)(const gbx_graph *graph);
    /* How much of it, from its start, is mapped at once, because all of it is touched anyway. */
    uint64_t hot_bytes;
    /* Lays out the memory and starts the scheduler. Control thread. */
    void (*begin)(gbx_graph *graph);
    /* Builds without an orchestration on the chip; NULL where there is one. Control thread. */
    void (*build)(gbx_graph *graph);
    /* The orchestration has returned. Orchestrator thread; may be NULL. */
    void (*end)(gbx_graph *graph);
    /* Waits for the tasks that write a tensor. Orchestrator thread; NULL: a read does not wait. */
    void (*await_tensor)(gbx_graph *graph, const gbx_tensor *tensor);
    /* Nothing can run and tasks are left: finds out why. The last thread. NULL where only a defect
     * of glassbox could cause that. */
    void (*diagnose)(gbx_graph *graph);
    const gbx_orchestration_ops *ops;
    /* The same with a probe, where private copies of arguments are kept: two tables, so that a run
     * without a probe does not even ask. */
    const gbx_orchestration_ops *probed_ops;
} gbx_builder;

struct gbx_graph {
    gbx_sched sched;
    gbx_orchestration orchestration; /* the only member that the orchestration sees */
    gbx_device *device;
    const gbx_builder *builder;
    const gbx_graph_launch *launch; /* in the device's copy */
    gbx_graph_limits limits;
    gbx_graph_error error;  /* the builder's thread, then the last one */
    _Atomic bool has_error; /* `error` is filled in */
    gbx_signature_warnings warnings;
    uint32_t processor_count;
    const gbx_probe_source *probe_source;
    void *memory; /* private to the chip; freed when the next launch begins */
    uint64_t memory_bytes;
    const gbx_probe *probe;           /* NULL: neither dump nor guard */
    const gbx_finding_sink *findings; /* NULL: the same */
    void *kept; /* with a probe: private copies of arguments, at the offsets they have in
                   launch->storage; freed as `memory` is */
    uint64_t kept_bytes;
    void *probe_state; /* freed as `memory` is */
    uint64_t probe_state_bytes;
    void *object; /* of the orchestration; freed as `memory` is */
    gbx_orchestrate_function orchestrate;
    uint64_t task_count; /* tasks that the builder has made */
    /* Of launch->storage, where it is not a ring: buffers from its start, arguments from its end,
     * so that a kernel which runs past a buffer does not reach arguments. */
    uint64_t storage_used;
    uint64_t storage_end;
    uint64_t buffers_at;   /* address of the former's 0; moves on by the zones between buffers */
    uint64_t arguments_at; /* address of the latter's 0 */
    uint64_t zone_end;     /* address behind the last zone in it */
    uint32_t buffer_count; /* that the builder has allocated */
    _Atomic uint64_t heartbeat; /* builder: calls of the orchestration */
};

/* The programs of a chip that runs graphs. `source`, of the probes of runs, outlives the chip. */
gbx_program_set gbx_graph_programs(const gbx_probe_source *source);

static inline gbx_graph *gbx_graph_of(gbx_orchestration *orchestration) {
    return (gbx_graph *)((char *)orchestration - offsetof(gbx_graph, orchestration));
}

/* Starts the scheduler; `tasks` and `cells` lie in the graph's memory. */
void gbx_graph_begin_sched(gbx_graph *graph, gbx_sched_task *tasks, uint32_t task_capacity,
                           gbx_ready_cell *cells, bool is_gated);

/* Keep the first error; no further task starts. */
void gbx_graph_fail(gbx_graph *graph, gbx_graph_error_kind kind, uint64_t task, uint32_t func_id,
                    int64_t value, int64_t other);
void gbx_graph_fail_with(gbx_graph *graph, const gbx_graph_error *error);

/* Whether calls of the orchestration must do nothing. */
static inline bool gbx_graph_is_over(gbx_graph *graph) {
    return graph->error.kind != GBX_GRAPH_OK || gbx_sched_is_cancelled(&graph->sched);
}

/* False when a call that builds must do nothing; else counts the call as progress. */
static inline bool gbx_graph_builds_on(gbx_graph *graph) {
    if (gbx_graph_is_over(graph))
        return false;
    uint64_t calls = atomic_load_explicit(&graph->heartbeat, memory_order_relaxed);
    atomic_store_explicit(&graph->heartbeat, calls + 1, memory_order_relaxed);
    return true;
}

/* All checks of the next task; false, with the error, if it is wrong. */
static inline __attribute__((always_inline)) bool
gbx_graph_check_task(gbx_graph *graph, const gbx_task_kernels *kernels, const gbx_args *args) {
    gbx_graph_error error;
    if (gbx_check_kernels(&graph->limits, graph->task_count, kernels, &error) &&
        gbx_check_args(&graph->limits, graph->task_count, kernels, args, &error) &&
        gbx_check_signatures(&graph->limits, graph->task_count, kernels, args, &error))
        return true;
    gbx_graph_fail_with(graph, &error);
    return false;
}

/* Takes memory out of the storage, rounded up to 64 bytes. 0, with an error, when too little is
 * left. */
uint64_t gbx_graph_take_storage(gbx_graph *graph, uint64_t bytes);

/* The same for arguments of tasks, from the end of the storage. */
uint64_t gbx_graph_take_arguments(gbx_graph *graph, uint64_t bytes);

/* The private copy of arguments in the storage; only with a probe. */
static inline gbx_task_arguments *gbx_graph_kept(const gbx_graph *graph, uint64_t shown) {
    return (gbx_task_arguments *)((char *)graph->kept + (shown - graph->launch->storage));
}

/* Writes the arguments of a task to its private copy, then to `shown` in the storage. */
const gbx_task_arguments *gbx_graph_write_both(const gbx_graph *graph, const gbx_args *args,
                                               gbx_task_arguments *shown);

/* Writes the arguments of a task to the storage at `shown` and, with a probe, its private copy;
 * prepares the task with them. */
static inline __attribute__((always_inline)) void
gbx_graph_prepare(const gbx_graph *graph, gbx_sched_task *task, uint64_t id,
                  const gbx_task_kernels *kernels, const gbx_args *args, uint64_t shown,
                  bool is_probed) {
    gbx_task_arguments *arguments = (gbx_task_arguments *)(uintptr_t)shown;
    if (is_probed) {
        task->right_at = graph->findings ? graph->findings->moment(graph->findings->context) : 0;
        gbx_sched_prepare(task, id, kernels, gbx_graph_write_both(graph, args, arguments));
        return;
    }
    gbx_write_arguments(args, arguments);
    gbx_sched_prepare(task, id, kernels, arguments);
}
/* The same for a buffer of kernels: where there is a guard, it has zones and is poisoned. */
uint64_t gbx_graph_take_buffer(gbx_graph *graph, uint64_t bytes);

/* Whether buffers that a builder allocates need zones, and gbx_graph_guard must be called. */
static inline bool gbx_graph_has_zones(const gbx_graph *graph) {
    return graph->probe && graph->probe->new_buffer;
}

/* Tells the guard of a new buffer; sets its number. */
void gbx_graph_guard(gbx_graph *graph, gbx_probe_buffer *buffer);

/* Entries of gbx_orchestration_ops that runtimes on the chip share. */
void gbx_graph_refuse(gbx_orchestration *orchestration, const char *call);
void gbx_graph_fail_by_user(gbx_orchestration *orchestration, const char *message);
uint64_t gbx_graph_get_tensor_data(gbx_orchestration *orchestration, const gbx_tensor *tensor,
                                   const int64_t *indices);

#endif
