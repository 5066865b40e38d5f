/*
 * The window of tasks in flight, and all that is reused along with it. Device code, of the
 * orchestrator thread alone but for the tasks themselves.
 */
#ifndef GBX_RUNTIME_WINDOW_H
#define GBX_RUNTIME_WINDOW_H

#include "runtime/graph.h"
#include "runtime/tensormap_and_ringbuffer/ring.h"
#include "runtime/tensormap_and_ringbuffer/tensor_map.h"

enum { GBX_MAX_SCOPES = 64 };

typedef struct gbx_window {
    gbx_graph *graph;
    gbx_sched_task *tasks;
    uint64_t mask;   /* of the number of a task to its place */
    uint64_t size;   /* tasks at a time */
    uint64_t head;   /* number of the next task */
    uint64_t tail;   /* the oldest that is not retired */
    uint64_t *marks; /* by place: 1 + the last task that was found to depend on it */
    gbx_tensor_map *map;
    gbx_ring arguments;
    gbx_ring heap;
    gbx_sched_edge *edges; /* a ring of as many as edge_mask + 1 */
    uint64_t edge_mask;
    uint64_t edge_head;
    uint64_t edge_tail;
    uint64_t scope_first[GBX_MAX_SCOPES]; /* the first task that can be in each open scope */
    uint32_t depth;                       /* of the innermost; 0 is the orchestration itself */
    /* After a window, or heap, too small: how much the scope that holds it wants in all. */
    uint32_t full_depth;
    bool is_counting;
    uint64_t wanted_tasks;
    uint64_t wanted_bytes;
} gbx_window;

/* What a task takes. */
typedef struct gbx_window_need {
    uint64_t argument_bytes;
    uint64_t heap_bytes; /* of all its new outputs, rounded up */
    uint32_t tensor_count;
    uint32_t func_id;
} gbx_window_need;

/* How the memory of the builder is laid out for a window of `size` tasks. */
uint64_t gbx_window_bytes(uint32_t size);
gbx_window *gbx_window_begin(gbx_graph *graph);

/*
 * Waits until a task with these needs fits; false, with the error, when it never will, or the run
 * is over.
 */
bool gbx_window_make_room(gbx_window *window, const gbx_window_need *need);

/* Makes place for the next task, of which the pieces were taken from the rings before. */
gbx_sched_task *gbx_window_place(gbx_window *window);

/* Notes what the task has taken, for when it is retired. */
void gbx_window_note(gbx_window *window, gbx_sched_task *task, uint32_t tensor_count,
                     uint32_t new_count);

/* `task` waits for the task in flight of this number; at most once each. */
void gbx_window_depend(gbx_window *window, gbx_sched_task *task, uint64_t predecessor);

/* After an error: counts what would have been needed. */
void gbx_window_count_wanted(gbx_window *window, const gbx_window_need *need);

#endif
