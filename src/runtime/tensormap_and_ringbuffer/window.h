/*
 * The window of tasks in flight, and all memory that is reused with it. Device code; only the
 * orchestrator thread uses it, but for the tasks themselves.
 */
#ifndef GBX_RUNTIME_WINDOW_H
#define GBX_RUNTIME_WINDOW_H

#include "runtime/graph.h"
#include "runtime/tensormap_and_ringbuffer/ring.h"
#include "runtime/tensormap_and_ringbuffer/tensor_map.h"

enum { GBX_MAX_SCOPES = 64, GBX_ENDED_SCOPES = 32, GBX_ARGUMENT_BYTES_PER_TASK = 1024 };

/* Positions in the heap that belong to scopes that have ended. */
typedef struct gbx_ended_scope {
    uint64_t begin;
    uint64_t end;
} gbx_ended_scope;

typedef struct gbx_window {
    gbx_graph *graph;
    gbx_sched_task *tasks;
    uint64_t size;      /* tasks at a time */
    uint64_t in_flight; /* tasks that are not retired */
    uint64_t next_id;   /* number of the next task */
    gbx_ring places;    /* of tasks, a power of two; the map names tasks by position */
    uint64_t *marks;    /* by place: 1 + the last task that was found to depend on it */
    gbx_tensor_map *map;
    uint32_t access_capacity; /* of the map: arguments that it can keep */
    gbx_ring arguments;
    gbx_ring heap;
    uint64_t zone_bytes; /* behind each new output */
    gbx_ring edge_places;
    gbx_sched_edge *edges;
    uint64_t scope_first[GBX_MAX_SCOPES];    /* the first task that can be in each open scope */
    uint32_t depth;                          /* of the innermost; 0 is the orchestration itself */
    uint64_t keeping_scopes;                 /* a bit for each open one that keeps tasks */
    uint64_t scope_heap[GBX_MAX_SCOPES];     /* where the heap's head was when each began */
    gbx_ended_scope ended[GBX_ENDED_SCOPES]; /* ascending; those that do not fit are forgotten */
    uint32_t ended_count;
    /* When the window or the heap was too small: how much the scope that fills it needs in all. */
    uint32_t full_depth;
    bool is_counting;
    uint64_t wanted_tasks;
    uint64_t wanted_tensors;
    uint64_t wanted_argument_bytes;
    uint64_t wanted_bytes;
} gbx_window;

/* What a task needs. */
typedef struct gbx_window_need {
    uint64_t argument_bytes;
    uint64_t heap_bytes; /* of all its new outputs, rounded up, with their zones */
    uint32_t tensor_count;
    uint32_t func_id;
} gbx_window_need;

/* The memory of the builder for a window of `size` tasks. */
uint64_t gbx_window_bytes(uint32_t size);

/* Makes the window at the start of graph->memory. */
void gbx_window_begin(gbx_graph *graph);

/* Waits until a task fits. False when the run is over or, with an error, when it never will fit. */
bool gbx_window_make_room(gbx_window *window, const gbx_window_need *need);

/* The task at a position that the map has reported. */
static inline gbx_sched_task *gbx_window_task(const gbx_window *window, uint64_t position) {
    return &window->tasks[position & (window->places.bytes - 1)];
}

/* Takes the place of the next task; its position is *out_position. */
gbx_sched_task *gbx_window_take(gbx_window *window, uint64_t *out_position);

/* Notes what the task has taken from all rings, to give back when it is retired. */
void gbx_window_note(gbx_window *window, gbx_sched_task *task, const gbx_args *args);

/* A scope begins inside of the innermost; there are fewer than GBX_MAX_SCOPES. */
void gbx_window_begin_scope(gbx_window *window);

/* The innermost scope ends, and no longer keeps its tasks. */
void gbx_window_end_scope(gbx_window *window);

/* Whether an address lies in the heap in memory of a scope that has ended. Memory that was given to
 * another task since is that task's. */
bool gbx_window_has_ended(const gbx_window *window, uint64_t address);

/* Makes `task` wait for the task in flight at this position; repeated calls count once. */
void gbx_window_depend(gbx_window *window, gbx_sched_task *task, uint64_t position);

/* After an error: adds to what the scope would have needed. */
void gbx_window_count_wanted(gbx_window *window, const gbx_window_need *need);

#endif
