/*
 * A graph while it runs on the chip: the scheduler, the builder of the runtime, and what they work
 * on. This is the program of the chip for all runtimes; each adds a builder.
 */
#ifndef GBX_RUNTIME_GRAPH_H
#define GBX_RUNTIME_GRAPH_H

#include "chip/abi.h"
#include "chip/device/device.h"
#include "runtime/check.h"
#include "sched/sched.h"

/* What the host launches a graph with. All addresses lie in global memory. */
typedef struct gbx_graph_launch {
    gbx_global_context global;
    uint64_t storage; /* memory for arguments of tasks, and what the graph allocates */
    uint64_t storage_bytes;
    uint64_t heap; /* tensormap_and_ringbuffer */
    uint64_t heap_bytes;
    uint64_t tasks; /* host_build_graph: gbx_host_task[task_count], uint32_t[edge_count] */
    uint64_t edges;
    uint64_t task_count;
    uint64_t edge_count;
    uint32_t window;   /* tensormap_and_ringbuffer */
    uint32_t is_gated; /* aicpu_build_graph: nothing runs before the orchestration has returned */
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
    /* Private memory that it wants for a launch: zero, taken as it is touched. */
    uint64_t (*memory_bytes)(const gbx_graph *graph);
    /* How much of it, from its start, is touched all over: taken in one go, not page by page. */
    uint64_t hot_bytes;
    /* Lays out the memory and begins with the scheduler. Control thread. */
    void (*begin)(gbx_graph *graph);
    /* Builds without an orchestration on the chip; NULL where there is one. Control thread. */
    void (*build)(gbx_graph *graph);
    /* The orchestration has returned. Orchestrator thread; may be NULL. */
    void (*end)(gbx_graph *graph);
    /* Nothing can run and tasks are left: finds out why. The last thread. NULL where that would be
     * a defect of ours. */
    void (*diagnose)(gbx_graph *graph);
    const gbx_orchestration_ops *ops;
} gbx_builder;

struct gbx_graph {
    gbx_sched sched;
    gbx_orchestration orchestration; /* what the orchestration gets; the graph around it is ours */
    gbx_device *device;
    const gbx_builder *builder;
    const gbx_graph_launch *launch; /* in the device's copy */
    gbx_graph_limits limits;
    gbx_graph_error error;  /* the builder's thread, then the last one */
    _Atomic bool has_error; /* it is filled in */
    uint32_t processor_count;
    const gbx_probe_source *probe_source;
    void *memory; /* private to the chip; of the last launch until the next begins */
    uint64_t memory_bytes;
    const gbx_probe *probe; /* NULL: nobody listens */
    void *probe_state;      /* likewise */
    void *object;           /* of the orchestration; likewise */
    gbx_orchestrate_function orchestrate;
    uint64_t task_count;        /* tasks that the builder has made */
    uint64_t storage_used;      /* of launch->storage, where it is not a ring */
    _Atomic uint64_t heartbeat; /* builder: calls of the orchestration */
    void *builder_state;        /* in `memory` */
};

/* The programs of a chip that runs graphs; `source` listens to runs with a dump, and outlives it.
 */
gbx_program_set gbx_graph_programs(const gbx_probe_source *source);

static inline gbx_graph *gbx_graph_of(gbx_orchestration *orchestration) {
    return (gbx_graph *)((char *)orchestration - offsetof(gbx_graph, orchestration));
}

/* Begins with the scheduler: `tasks` and `cells` lie in the graph's memory. */
void gbx_graph_begin_sched(gbx_graph *graph, gbx_sched_task *tasks, uint32_t task_capacity,
                           gbx_ready_cell *cells, bool is_gated);

/* Keeps the first error and lets no further task start. */
void gbx_graph_fail(gbx_graph *graph, gbx_graph_error_kind kind, uint64_t task, uint32_t func_id,
                    int64_t value, int64_t other);
void gbx_graph_fail_with(gbx_graph *graph, const gbx_graph_error *error);

/* Whether calls of the orchestration are to do nothing. */
static inline bool gbx_graph_is_over(gbx_graph *graph) {
    return graph->error.kind != GBX_GRAPH_OK || gbx_sched_is_cancelled(&graph->sched);
}

/* The same for a call that builds: one more that is done counts as progress. */
static inline bool gbx_graph_builds_on(gbx_graph *graph) {
    if (gbx_graph_is_over(graph))
        return false;
    uint64_t calls = atomic_load_explicit(&graph->heartbeat, memory_order_relaxed);
    atomic_store_explicit(&graph->heartbeat, calls + 1, memory_order_relaxed);
    return true;
}

/* Takes memory out of the storage, a multiple of 64 bytes; 0, and the error, when it is used up. */
uint64_t gbx_graph_take_storage(gbx_graph *graph, uint64_t bytes);

/* Entries of gbx_orchestration_ops that runtimes on the chip share. */
void gbx_graph_refuse(gbx_orchestration *orchestration, const char *call);
void gbx_graph_fail_by_user(gbx_orchestration *orchestration, const char *message);

#endif
