/*
 * The task graph of paged attention, the same on every runtime: for each batch entry and each head
 * of the caches a chain of blocks, for each block four tasks. An orchestration says how a task is
 * added (pa_graph.add) and where temporaries lie, and calls pa_build.
 */
#ifndef PAGED_ATTENTION_H
#define PAGED_ATTENTION_H

#include <stdbool.h>

#include <glassbox/orchestration.h>

/* Kernels by func_id. */
enum { PA_QK_MATMUL = 0, PA_SOFTMAX_PREPARE = 1, PA_PV_MATMUL = 2, PA_ONLINE_UPDATE = 3 };

/* Tensors of the run. */
enum {
    PA_QUERY,
    PA_KEY_CACHE,
    PA_VALUE_CACHE,
    PA_BLOCK_TABLE,
    PA_CONTEXT_LENS,
    PA_OUT,
    PA_TENSORS
};

/* Blocks of a chain that may be under way at once where temporaries come from a pool. */
enum { PA_SETS = 4, PA_MAX_OPERANDS = 6, PA_MAX_SCALARS = 2, PA_MAX_PREDECESSORS = 2 };

typedef struct pa_operand {
    gbx_tensor tensor; /* data 0: the runtime allocates it when a task first writes it */
    uint64_t word;     /* host_build_graph: its description in global memory, 0 before it is made */
} pa_operand;

/* A task as all runtimes see it. */
typedef struct pa_task {
    gbx_task_kernels kernels;
    pa_operand *operands[PA_MAX_OPERANDS];
    gbx_role roles[PA_MAX_OPERANDS];
    uint32_t operand_count;
    uint64_t scalars[PA_MAX_SCALARS];
    gbx_dtype scalar_dtypes[PA_MAX_SCALARS];
    uint32_t scalar_count;
    gbx_task after[PA_MAX_PREDECESSORS]; /* for explicit edges; GBX_NO_TASK: none */
    uint32_t after_count;
} pa_task;

typedef struct pa_graph {
    gbx_orchestration *o;
    const gbx_run_args *run;                                            /* read while building */
    gbx_tensor tensors[PA_TENSORS];                                     /* what tasks get */
    gbx_task (*add)(const struct pa_graph *graph, const pa_task *task); /* set by the runtime */
    bool has_scopes;                                                    /* likewise */
    uint64_t pool; /* temporaries of all chains; 0: the runtime allocates */
    int64_t batch, kv_heads, group, head_dim, block_size;
} pa_graph;

/* Temporaries of one block. The tasks are those that used them last. */
typedef struct pa_set {
    pa_operand scores, weights, block_max, block_sum, partial;
    gbx_task softmax, update;
} pa_set;

/* All blocks of one batch entry and one head of the caches. */
typedef struct pa_chain {
    int64_t entry, kv_head, length;
    pa_operand query, out, running_max, running_sum;
    gbx_task update; /* of the block before */
    pa_set sets[PA_SETS];
} pa_chain;

/* --- tasks --- */

static inline pa_task pa_task_of(gbx_task_kernels kernels) {
    pa_task task = {.kernels = kernels};
    return task;
}

static inline void pa_operand_add(pa_task *task, pa_operand *operand, gbx_role role) {
    task->roles[task->operand_count] = role;
    task->operands[task->operand_count++] = operand;
}

static inline void pa_scalar_add(pa_task *task, gbx_dtype dtype, uint64_t bits) {
    task->scalar_dtypes[task->scalar_count] = dtype;
    task->scalars[task->scalar_count++] = bits;
}

static inline void pa_after(pa_task *task, gbx_task predecessor) {
    task->after[task->after_count++] = predecessor;
}

/* The arguments of a task for runtimes that take gbx_args. */
static inline gbx_args pa_args_of(const pa_task *task) {
    gbx_args args = gbx_args_begin();
    for (uint32_t i = 0; i < task->operand_count; ++i) {
        gbx_tensor *tensor = &task->operands[i]->tensor;
        if (task->roles[i] == GBX_ROLE_OUTPUT && tensor->data == 0)
            gbx_args_add_new_output(&args, tensor);
        else
            gbx_args_add_tensor(&args, tensor, task->roles[i]);
    }
    for (uint32_t i = 0; i < task->scalar_count; ++i)
        gbx_args_add_scalar(&args, task->scalar_dtypes[i], task->scalars[i]);
    return args;
}

/* --- temporaries --- */

/* A tensor at *cursor, which moves past it; without an address where the cursor is 0. */
static inline void pa_place(pa_operand *operand, gbx_dtype dtype, int64_t rows, int64_t columns,
                            uint64_t *cursor) {
    const int64_t shape[] = {rows, columns};
    uint64_t element_bytes = dtype == GBX_FLOAT32 ? 4 : 2;
    uint64_t bytes = (uint64_t)(rows * (columns ? columns : 1)) * element_bytes;
    operand->tensor = gbx_tensor_at(*cursor, dtype, columns ? 2 : 1, shape);
    operand->word = 0;
    if (*cursor == 0)
        return;
    operand->tensor.buffer_bytes = bytes;
    *cursor += (bytes + 63) / 64 * 64;
}

static inline void pa_place_set(const pa_graph *graph, pa_set *set, uint64_t *cursor) {
    pa_place(&set->scores, GBX_FLOAT32, graph->group, graph->block_size, cursor);
    pa_place(&set->weights, GBX_FLOAT16, graph->group, graph->block_size, cursor);
    pa_place(&set->block_max, GBX_FLOAT32, graph->group, 0, cursor);
    pa_place(&set->block_sum, GBX_FLOAT32, graph->group, 0, cursor);
    pa_place(&set->partial, GBX_FLOAT32, graph->group, graph->head_dim, cursor);
}

/* All temporaries of a chain from `base` on; returns where they end. */
static inline uint64_t pa_place_chain(const pa_graph *graph, pa_chain *chain, uint64_t base) {
    uint64_t cursor = base;
    pa_place(&chain->running_max, GBX_FLOAT32, graph->group, 0, &cursor);
    pa_place(&chain->running_sum, GBX_FLOAT32, graph->group, 0, &cursor);
    for (int i = 0; i < PA_SETS; ++i)
        pa_place_set(graph, &chain->sets[i], &cursor);
    return cursor;
}

static inline uint64_t pa_chain_bytes(const pa_graph *graph) {
    pa_chain chain;
    return pa_place_chain(graph, &chain, 64) - 64;
}

/* The pool, for runtimes whose temporaries the orchestration allocates. */
static inline void pa_allocate_pool(pa_graph *graph) {
    uint64_t chains = (uint64_t)(graph->batch * graph->kv_heads);
    graph->pool = gbx_device_malloc(graph->o, chains * pa_chain_bytes(graph));
}

/* --- the graph --- */

/* One block of one head in a cache: [block_size, head_dim], tokens apart by all heads. */
static inline pa_operand pa_cache_block(const gbx_tensor *cache, int64_t block, int64_t kv_head) {
    gbx_tensor all_heads = gbx_view_select(cache, 0, block);
    pa_operand operand = {gbx_view_select(&all_heads, 1, kv_head), 0};
    return operand;
}

/* The rows of a chain in a tensor [batch, heads, head_dim]: [group, head_dim]. */
static inline pa_operand pa_head_rows(const pa_graph *graph, const gbx_tensor *tensor,
                                      const pa_chain *chain) {
    gbx_tensor heads = gbx_view_select(tensor, 0, chain->entry);
    pa_operand operand = {gbx_view_slice(&heads, 0, chain->kv_head * graph->group, graph->group),
                          0};
    return operand;
}

/* Returns the task that computes the weights. */
static inline gbx_task pa_add_weights(const pa_graph *graph, pa_chain *chain, pa_set *set,
                                      pa_operand *key, int64_t valid) {
    pa_task qk = pa_task_of(gbx_aic(PA_QK_MATMUL));
    pa_operand_add(&qk, &chain->query, GBX_ROLE_INPUT);
    pa_operand_add(&qk, key, GBX_ROLE_INPUT);
    pa_operand_add(&qk, &set->scores, GBX_ROLE_OUTPUT);
    pa_after(&qk, set->softmax);

    pa_task softmax = pa_task_of(gbx_aiv(PA_SOFTMAX_PREPARE));
    pa_after(&softmax, graph->add(graph, &qk));
    pa_after(&softmax, set->update);
    pa_operand_add(&softmax, &set->scores, GBX_ROLE_INPUT);
    pa_operand_add(&softmax, &set->weights, GBX_ROLE_OUTPUT);
    pa_operand_add(&softmax, &set->block_max, GBX_ROLE_OUTPUT);
    pa_operand_add(&softmax, &set->block_sum, GBX_ROLE_OUTPUT);
    pa_scalar_add(&softmax, GBX_FLOAT32, graph->run->scalars[0]);
    pa_scalar_add(&softmax, GBX_INT32, (uint64_t)valid);
    return graph->add(graph, &softmax);
}

/* Returns the task that takes the block into the output. The first makes the state of the chain. */
static inline gbx_task pa_add_output(const pa_graph *graph, pa_chain *chain, pa_set *set,
                                     pa_operand *value, bool is_first, bool is_last) {
    gbx_role state = is_first ? GBX_ROLE_OUTPUT : GBX_ROLE_INOUT;
    pa_task pv = pa_task_of(gbx_aic(PA_PV_MATMUL));
    pa_operand_add(&pv, &set->weights, GBX_ROLE_INPUT);
    pa_operand_add(&pv, value, GBX_ROLE_INPUT);
    pa_operand_add(&pv, &set->partial, GBX_ROLE_OUTPUT);
    pa_after(&pv, set->softmax);

    pa_task update = pa_task_of(gbx_aiv(PA_ONLINE_UPDATE));
    pa_after(&update, graph->add(graph, &pv));
    pa_after(&update, chain->update);
    pa_operand_add(&update, &set->block_max, GBX_ROLE_INPUT);
    pa_operand_add(&update, &set->block_sum, GBX_ROLE_INPUT);
    pa_operand_add(&update, &set->partial, GBX_ROLE_INPUT);
    pa_operand_add(&update, &chain->running_max, state);
    pa_operand_add(&update, &chain->running_sum, state);
    pa_operand_add(&update, &chain->out, state);
    pa_scalar_add(&update, GBX_BOOL, is_first);
    pa_scalar_add(&update, GBX_BOOL, is_last);
    return graph->add(graph, &update);
}

/* Which block of the caches holds the tokens of a block of a chain. */
static inline int64_t pa_block_of(const pa_graph *graph, const pa_chain *chain, int64_t index) {
    const int64_t at[] = {chain->entry, index};
    int64_t block = gbx_get_tensor_i32(graph->o, &graph->run->tensors[PA_BLOCK_TABLE], at);
    if (block >= 0 && block < graph->tensors[PA_KEY_CACHE].shape[0])
        return block;
    gbx_orchestration_fail(graph->o, "block_table: a block number is outside the caches");
    return 0;
}

/*
 * Blocks n and n + PA_SETS share temporaries: the scores are free after the softmax of block n, the
 * rest after its update.
 */
static inline void pa_add_block(const pa_graph *graph, pa_chain *chain, int64_t index) {
    int64_t left = chain->length - index * graph->block_size;
    int64_t valid = left < graph->block_size ? left : graph->block_size;
    int64_t block = pa_block_of(graph, chain, index);
    pa_operand key = pa_cache_block(&graph->tensors[PA_KEY_CACHE], block, chain->kv_head);
    pa_operand value = pa_cache_block(&graph->tensors[PA_VALUE_CACHE], block, chain->kv_head);
    pa_set *set = &chain->sets[index % PA_SETS];
    uint64_t no_address = 0;
    if (graph->pool == 0)
        pa_place_set(graph, set, &no_address);
    set->softmax = pa_add_weights(graph, chain, set, &key, valid);
    set->update = pa_add_output(graph, chain, set, &value, index == 0, left <= graph->block_size);
    chain->update = set->update;
}

static inline void pa_add_chain(const pa_graph *graph, int64_t entry, int64_t kv_head,
                                int64_t length) {
    pa_chain chain = {.entry = entry, .kv_head = kv_head, .length = length, .update = GBX_NO_TASK};
    uint64_t number = (uint64_t)(entry * graph->kv_heads + kv_head);
    chain.query = pa_head_rows(graph, &graph->tensors[PA_QUERY], &chain);
    chain.out = pa_head_rows(graph, &graph->tensors[PA_OUT], &chain);
    pa_place_chain(graph, &chain, graph->pool ? graph->pool + number * pa_chain_bytes(graph) : 0);
    for (int i = 0; i < PA_SETS; ++i)
        chain.sets[i].softmax = chain.sets[i].update = GBX_NO_TASK;
    if (graph->has_scopes)
        gbx_scope_begin(graph->o);
    for (int64_t index = 0; index * graph->block_size < length; ++index)
        pa_add_block(graph, &chain, index);
    if (graph->has_scopes)
        gbx_scope_end(graph->o);
}

/* A graph without tasks: sizes and tensors of the run; an orchestration may replace the tensors. */
static inline pa_graph pa_begin(gbx_orchestration *o, const gbx_run_args *run) {
    const int64_t *query = run->tensors[PA_QUERY].shape, *cache = run->tensors[PA_KEY_CACHE].shape;
    pa_graph graph = {.o = o,
                      .run = run,
                      .batch = query[0],
                      .kv_heads = cache[2],
                      .group = query[1] / cache[2],
                      .head_dim = query[2],
                      .block_size = cache[1]};
    for (int i = 0; i < PA_TENSORS; ++i)
        graph.tensors[i] = run->tensors[i];
    return graph;
}

/* Adds all tasks. Returns what the orchestration returns. */
static inline int pa_build(const pa_graph *graph) {
    int64_t longest = graph->run->tensors[PA_BLOCK_TABLE].shape[1] * graph->block_size;
    for (int64_t entry = 0; entry < graph->batch; ++entry) {
        int64_t length =
            gbx_get_tensor_i32(graph->o, &graph->run->tensors[PA_CONTEXT_LENS], &entry);
        if (length < 1 || length > longest) {
            gbx_orchestration_fail(
                graph->o,
                "context_lens: a length is less than 1, or exceeds the blocks of block_table");
            return 1;
        }
        for (int64_t kv_head = 0; kv_head < graph->kv_heads; ++kv_head)
            pa_add_chain(graph, entry, kv_head, length);
    }
    return 0;
}

#endif
