/*
 * host_build_graph: the orchestration runs on the host and fills a table of tasks and one of edges,
 * which are copied to global memory before the launch; the chip only schedules them.
 */
#ifndef GBX_RUNTIME_HOST_BUILD_GRAPH_H
#define GBX_RUNTIME_HOST_BUILD_GRAPH_H

#include "runtime/graph.h"
#include "runtime/runtimes.h"

enum { GBX_ENTRY_HOST_BUILD_GRAPH = GBX_ENTRY_FIRST_PROGRAM, GBX_HOST_MAX_TASKS = 1 << 26 };

/* A task in the table that the host copies to the chip. */
typedef struct gbx_host_task {
    gbx_task_kernels kernels;
    uint32_t reserved;
    uint64_t arguments; /* address of its gbx_task_arguments */
} gbx_host_task;
_Static_assert(sizeof(gbx_host_task) == 32, "layout of a task in the table");

typedef struct gbx_host_edge {
    uint32_t predecessor;
    uint32_t successor;
} gbx_host_edge;

extern const gbx_builder gbx_host_builder;

/* --- the graph on the host --- */

typedef struct gbx_host_graph gbx_host_graph;

/* The caller owns the graph, which holds global memory until it is destroyed. */
GBX_MUST_USE gbx_status gbx_host_graph_create(const gbx_runtime_request *request,
                                              gbx_host_graph **out_graph);
GBX_MUST_USE gbx_status gbx_host_graph_destroy(gbx_host_graph *graph);

/* Checks the graph, copies it to the chip, runs it and does the copies back. */
GBX_MUST_USE gbx_status gbx_host_graph_launch(gbx_host_graph *graph, gbx_call_result *out_result);

#endif
