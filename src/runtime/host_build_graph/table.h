/* The tables of a graph that is built on the host. Host code. */
#ifndef GBX_RUNTIME_HOST_TABLE_H
#define GBX_RUNTIME_HOST_TABLE_H

#include "hal/hal.h"
#include "runtime/host_build_graph/host_build_graph.h"

/* An array that grows; its memory moves when it does. */
typedef struct gbx_table {
    void *elements;
    size_t element_bytes;
    size_t count;
    uint64_t capacity;
} gbx_table;

/* A task while the graph is built; its words and its tensor info lie in other tables. */
typedef struct gbx_host_entry {
    gbx_task_kernels kernels;
    uint32_t word_count;
    uint32_t info_count;
    uint32_t is_described;
    uint64_t dumped_words; /* a bit for each word that is marked */
    uint64_t first_word;
    uint64_t first_info;
} gbx_host_entry;

typedef struct gbx_host_return {
    void *to;
    uint64_t from;
    uint64_t bytes;
} gbx_host_return;

/* Descriptions of tensors, and the piece of global memory that they are copied to. */
typedef struct gbx_host_page {
    uint64_t address;
    uint32_t count;
    gbx_tensor tensors[512];
} gbx_host_page;

struct gbx_host_graph {
    gbx_orchestration orchestration;
    gbx_runtime_request request;
    gbx_graph_limits limits;
    gbx_graph_error error;
    gbx_graph_error bad_tensor; /* the first wrong one that got a word: which argument is it? */
    uint64_t bad_word;
    gbx_signature_warnings warnings;
    gbx_status failure; /* of the host, not an error in the graph */
    gbx_table entries;  /* gbx_host_entry */
    gbx_table words;    /* uint64_t */
    gbx_table infos;    /* gbx_tensor_info */
    gbx_table edges;    /* gbx_host_edge */
    gbx_table returns;  /* gbx_host_return */
    gbx_table pages;    /* gbx_host_page * */
    gbx_table memory;   /* uint64_t: addresses to free */
};

/* Appends `count` elements to one of the graph's tables, not cleared, and returns the first. NULL
 * when memory is out, which fails the graph; also when a table without memory grows by 0. */
void *gbx_table_add(gbx_host_graph *graph, gbx_table *table, size_t count);

static inline gbx_host_entry *gbx_host_entry_at(const gbx_host_graph *graph, uint64_t task) {
    return (gbx_host_entry *)graph->entries.elements + task;
}

extern const gbx_orchestration_ops gbx_host_graph_ops;

/* Global memory that is freed with the graph; 0, which fails the graph, when it is used up. */
uint64_t gbx_host_graph_alloc(gbx_host_graph *graph, uint64_t bytes);

/* The same for descriptions of tasks and tensors, apart from tensors (GBX_APART_BYTES). */
uint64_t gbx_host_graph_alloc_apart(gbx_host_graph *graph, uint64_t bytes);

/* Keeps the first failure; frees the others. */
void gbx_host_graph_keep_failure(gbx_host_graph *graph, gbx_status status);

#endif
