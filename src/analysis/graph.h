/*
 * The tasks of a dump as a graph: which task waited for which, when each was dispatched and
 * completed, and an order in which they can have run.
 */
#ifndef GBX_ANALYSIS_GRAPH_H
#define GBX_ANALYSIS_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "store/reader.h"

typedef struct gbx_task_graph gbx_task_graph;

typedef struct gbx_graph_task {
    uint64_t task;                /* task_seq */
    uint64_t begin_ns;            /* of the first dispatch */
    uint64_t end_ns;              /* of the completion; UINT64_MAX if the dump does not have it */
    const uint64_t *predecessors; /* task_seq of each, ascending */
    uint64_t predecessor_count;
} gbx_graph_task;

/*
 * Reads the whole dump once; the reader must be open with GBX_INDEX_GRAPH and ARGUMENTS, and is not
 * needed afterwards. A dump without journal has only tasks, no edges and no ends. Edges to tasks
 * without record, and edges that close a cycle in a damaged dump, are left out and counted in
 * gbx_task_graph_bad_edges.
 */
GBX_MUST_USE gbx_status gbx_task_graph_create(gbx_reader *reader, gbx_task_graph **out_graph);
void gbx_task_graph_destroy(gbx_task_graph *graph); /* takes NULL */

uint64_t gbx_task_graph_count(const gbx_task_graph *graph);
uint64_t gbx_task_graph_bad_edges(const gbx_task_graph *graph);

/* In graph order: every task after all its predecessors, otherwise by task_seq. */
const gbx_graph_task *gbx_task_graph_at(const gbx_task_graph *graph, uint64_t place);

/* The place of a task in graph order; UINT64_MAX if the graph does not have it. */
uint64_t gbx_task_graph_place(const gbx_task_graph *graph, uint64_t task);

/* Whether `later` waits for `earlier`, directly or through others. Fastest when called repeatedly
 * with the same `later`. It caches what it finds: one thread at a time. */
bool gbx_task_graph_is_before(const gbx_task_graph *graph, uint64_t earlier, uint64_t later);

#endif
