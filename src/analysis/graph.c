#include "analysis/graph.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"

/* Each task remembers up to REMEMBERED predecessors that are more than NEAR_PLACES away. */
enum { NEAR_PLACES = 256, REMEMBERED = 4 };

/* The cache of gbx_task_graph_is_before: tasks that `later` waits for are marked, completely from
 * the place `swept` on. Where many tasks wait for one that is far away, as readers of the same
 * weights do, a search ends at the first of them that remembers it. */
typedef struct search {
    uint64_t *marks; /* one bit per place */
    uint64_t later;  /* its place; UINT64_MAX before the first search */
    uint64_t swept;
    uint64_t (*remembered)[REMEMBERED]; /* by place, newest first; UINT64_MAX for none */
} search;

#define READING_GRAPH "reading the graph of the dump's tasks"

struct gbx_task_graph {
    gbx_graph_task *tasks; /* by task_seq */
    uint64_t count;
    uint64_t capacity;
    uint64_t *first_edges; /* of each task, in `edges` */
    uint64_t *edges;       /* predecessors by task_seq, those of a task together */
    uint64_t *edge_places; /* the same by place; until the order is known, by index in `tasks` */
    uint64_t edge_count;
    uint64_t edge_capacity;
    uint64_t bad_edges;
    uint64_t *order;  /* index in `tasks`, by place */
    uint64_t *places; /* place, by index in `tasks` */
    search *search;
};

/* --- reading --- */

static gbx_status add_edges(gbx_task_graph *graph, const gbx_record *record) {
    uint64_t count;
    const uint64_t *predecessors = gbx_record_edges(record, &count);
    GBX_TRY(gbx_array_reserve(&graph->edges, &graph->edge_capacity, graph->edge_count + count,
                              READING_GRAPH));
    if (count > 0)
        memcpy(graph->edges + graph->edge_count, predecessors, count * sizeof *predecessors);
    graph->edge_count += count;
    graph->tasks[graph->count - 1].predecessor_count += count;
    return NULL;
}

/* Sorted by task: TASK, arguments, DONE, EDGES. The first of each kind counts, and all EDGES. */
static gbx_status read_record(gbx_task_graph *graph, const gbx_record *record) {
    if (graph->count == 0 || graph->tasks[graph->count - 1].task != record->task) {
        GBX_TRY(
            gbx_array_reserve(&graph->tasks, &graph->capacity, graph->count + 1, READING_GRAPH));
        graph->tasks[graph->count++] = (gbx_graph_task){
            .task = record->task, .begin_ns = record->time_ns, .end_ns = UINT64_MAX};
    }
    gbx_graph_task *task = &graph->tasks[graph->count - 1];
    if (record->type == GBX_RECORD_DONE && task->end_ns == UINT64_MAX)
        task->end_ns = record->time_ns;
    return record->type == GBX_RECORD_EDGES ? add_edges(graph, record) : NULL;
}

static gbx_status read_all(gbx_task_graph *graph, gbx_reader *reader) {
    uint64_t count = gbx_reader_count(reader);
    for (uint64_t i = 0; i < count; ++i) {
        const gbx_record *record = NULL;
        GBX_TRY(gbx_reader_at(reader, i, &record));
        GBX_TRY(read_record(graph, record));
    }
    return NULL;
}

/* --- edges --- */

static_assert(offsetof(gbx_graph_task, task) == 0, "tasks are compared as numbers");

/* The index of a task; the count if it has no record. */
static uint64_t find_index(const gbx_task_graph *graph, uint64_t task) {
    if (task < graph->count && graph->tasks[task].task == task)
        return task;
    if (graph->count == 0)
        return 0;
    const gbx_graph_task *found =
        bsearch(&task, graph->tasks, graph->count, sizeof *graph->tasks, gbx_compare_u64);
    return found ? (uint64_t)(found - graph->tasks) : graph->count;
}

/* Sorts the edges of a task, and removes duplicates and edges to tasks without record. */
static void resolve_task(gbx_task_graph *graph, gbx_graph_task *task, uint64_t first) {
    uint64_t kept = first;
    uint64_t end = first + task->predecessor_count;
    if (end - first > 1)
        qsort(graph->edges + first, end - first, sizeof *graph->edges, gbx_compare_u64);
    for (uint64_t i = first; i < end; ++i) {
        if (i > first && graph->edges[i] == graph->edges[i - 1])
            continue;
        uint64_t index = find_index(graph, graph->edges[i]);
        graph->bad_edges += index == graph->count;
        graph->edge_places[kept] = index;
        kept += index < graph->count;
    }
    task->predecessor_count = kept - first;
    for (uint64_t i = first; i < kept; ++i)
        graph->edges[i] = graph->tasks[graph->edge_places[i]].task;
}

static gbx_status resolve(gbx_task_graph *graph) {
    graph->first_edges = malloc((graph->count + 1) * sizeof *graph->first_edges);
    graph->edge_places = malloc((graph->edge_count + 1) * sizeof *graph->edge_places);
    if (!graph->first_edges || !graph->edge_places)
        return gbx_fail_memory(READING_GRAPH);
    uint64_t first = 0;
    for (uint64_t i = 0; i < graph->count; ++i) {
        uint64_t count = graph->tasks[i].predecessor_count;
        graph->first_edges[i] = first;
        resolve_task(graph, &graph->tasks[i], first);
        first += count;
    }
    return NULL;
}

/* --- the order --- */

enum { NOT_SEEN = 0, ON_THE_WAY = 1, PLACED = 2 };

/* A walk from a task to its predecessors. */
typedef struct walk {
    gbx_task_graph *graph;
    uint8_t *states;
    uint64_t *path;   /* a stack of tasks whose predecessors are being placed */
    uint64_t *looked; /* how many edges of each task were followed */
    uint64_t depth;
    uint64_t placed;
} walk;

/* Removes an edge of a task; the others keep their order. */
static void drop_edge(gbx_task_graph *graph, uint64_t index, uint64_t edge) {
    gbx_graph_task *task = &graph->tasks[index];
    uint64_t end = graph->first_edges[index] + task->predecessor_count;
    size_t bytes = (end - edge - 1) * sizeof *graph->edges;
    memmove(graph->edges + edge, graph->edges + edge + 1, bytes);
    memmove(graph->edge_places + edge, graph->edge_places + edge + 1, bytes);
    --task->predecessor_count;
    ++graph->bad_edges;
}

/* Follows the next edge of the task on top of the path; places the task after its last edge. */
static void step(walk *w) {
    gbx_task_graph *graph = w->graph;
    uint64_t index = w->path[w->depth - 1];
    if (w->looked[index] == graph->tasks[index].predecessor_count) {
        w->states[index] = PLACED;
        graph->places[index] = w->placed;
        graph->order[w->placed++] = index;
        --w->depth;
        return;
    }
    uint64_t edge = graph->first_edges[index] + w->looked[index];
    uint64_t predecessor = graph->edge_places[edge];
    if (w->states[predecessor] == ON_THE_WAY) {
        drop_edge(graph, index, edge); /* the predecessor waits for this task: a cycle */
        return;
    }
    ++w->looked[index];
    if (w->states[predecessor] == NOT_SEEN) {
        w->states[predecessor] = ON_THE_WAY;
        w->path[w->depth++] = predecessor;
    }
}

static gbx_status put_in_order(gbx_task_graph *graph) {
    size_t room = graph->count + 1;
    walk w = {.graph = graph,
              .states = calloc(room, sizeof *w.states),
              .path = malloc(room * sizeof *w.path),
              .looked = calloc(room, sizeof *w.looked)};
    graph->order = malloc(room * sizeof *graph->order);
    graph->places = malloc(room * sizeof *graph->places);
    bool has_memory = w.states && w.path && w.looked && graph->order && graph->places;
    if (has_memory) {
        for (uint64_t i = 0; i < w.graph->count; ++i) {
            if (w.states[i] != NOT_SEEN)
                continue;
            w.states[i] = ON_THE_WAY;
            w.path[w.depth++] = i;
            while (w.depth > 0)
                step(&w);
        }
        /* Edges by place from here on; each task gets its own. */
        for (uint64_t i = 0; i < graph->count; ++i) {
            gbx_graph_task *task = &graph->tasks[i];
            uint64_t first = graph->first_edges[i];
            task->predecessors = task->predecessor_count ? graph->edges + first : NULL;
            for (uint64_t k = 0; k < task->predecessor_count; ++k)
                graph->edge_places[first + k] = graph->places[graph->edge_places[first + k]];
        }
    }
    free(w.states);
    free(w.path);
    free(w.looked);
    return has_memory ? NULL : gbx_fail_memory(READING_GRAPH);
}

/* --- creating --- */

static gbx_status make_search(gbx_task_graph *graph) {
    graph->search = calloc(1, sizeof *graph->search);
    if (!graph->search)
        return gbx_fail_memory(READING_GRAPH);
    graph->search->later = UINT64_MAX;
    graph->search->marks = calloc(graph->count / 64 + 1, sizeof *graph->search->marks);
    size_t remembered_bytes = (graph->count + 1) * sizeof *graph->search->remembered;
    graph->search->remembered = malloc(remembered_bytes);
    if (!graph->search->marks || !graph->search->remembered)
        return gbx_fail_memory(READING_GRAPH);
    memset(graph->search->remembered, 0xff, remembered_bytes);
    return NULL;
}

gbx_status gbx_task_graph_create(gbx_reader *reader, gbx_task_graph **out_graph) {
    gbx_task_graph *graph = calloc(1, sizeof *graph);
    *out_graph = NULL;
    if (!graph)
        return gbx_fail_memory(READING_GRAPH);
    gbx_status status = read_all(graph, reader);
    if (!status)
        status = resolve(graph);
    if (!status)
        status = put_in_order(graph);
    if (!status)
        status = make_search(graph);
    if (status)
        gbx_task_graph_destroy(graph);
    else
        *out_graph = graph;
    return status;
}

void gbx_task_graph_destroy(gbx_task_graph *graph) {
    if (!graph)
        return;
    if (graph->search) {
        free(graph->search->marks);
        free(graph->search->remembered);
    }
    free(graph->search);
    free(graph->tasks);
    free(graph->first_edges);
    free(graph->edges);
    free(graph->edge_places);
    free(graph->order);
    free(graph->places);
    free(graph);
}

uint64_t gbx_task_graph_count(const gbx_task_graph *graph) {
    return graph->count;
}

uint64_t gbx_task_graph_bad_edges(const gbx_task_graph *graph) {
    return graph->bad_edges;
}

const gbx_graph_task *gbx_task_graph_at(const gbx_task_graph *graph, uint64_t place) {
    return &graph->tasks[graph->order[place]];
}

uint64_t gbx_task_graph_place(const gbx_task_graph *graph, uint64_t task) {
    uint64_t index = find_index(graph, task);
    return index < graph->count ? graph->places[index] : UINT64_MAX;
}

/* --- which task waits for which --- */

static bool is_marked(const search *s, uint64_t place) {
    return s->marks[place / 64] >> place % 64 & 1;
}

static void mark(search *s, uint64_t place) {
    s->marks[place / 64] |= UINT64_C(1) << place % 64;
}

static bool is_remembered(const search *s, uint64_t place, uint64_t earlier) {
    for (int i = 0; i < REMEMBERED; ++i)
        if (s->remembered[place][i] == earlier)
            return true;
    return false;
}

/* Predecessors come before their tasks: going down, the marks of a place are final. */
static void sweep_down(const gbx_task_graph *graph, uint64_t earlier) {
    search *s = graph->search;
    while (s->swept > earlier && !is_marked(s, earlier)) {
        uint64_t place = s->swept - 1;
        if (s->marks[place / 64] == 0) {
            s->swept = place / 64 * 64;
            continue;
        }
        if (is_marked(s, place) && is_remembered(s, place, earlier)) {
            mark(s, earlier);
            return;
        }
        if (is_marked(s, place)) {
            uint64_t index = graph->order[place];
            const uint64_t *places = graph->edge_places + graph->first_edges[index];
            for (uint64_t i = 0; i < graph->tasks[index].predecessor_count; ++i)
                mark(graph->search, places[i]);
        }
        s->swept = place;
    }
}

bool gbx_task_graph_is_before(const gbx_task_graph *graph, uint64_t earlier, uint64_t later) {
    uint64_t earlier_place = gbx_task_graph_place(graph, earlier);
    uint64_t later_place = gbx_task_graph_place(graph, later);
    if (later_place == UINT64_MAX || earlier_place >= later_place)
        return false;
    search *s = graph->search;
    if (s->later != later_place) {
        if (s->later != UINT64_MAX)
            memset(s->marks, 0, (s->later / 64 + 1) * sizeof *s->marks);
        s->later = later_place;
        s->swept = later_place + 1;
        mark(s, later_place);
    }
    if (is_marked(s, earlier_place))
        return true;
    sweep_down(graph, earlier_place);
    if (!is_marked(s, earlier_place))
        return false;
    if (s->later - earlier_place > NEAR_PLACES) {
        uint64_t *remembered = s->remembered[s->later];
        memmove(remembered + 1, remembered, (REMEMBERED - 1) * sizeof *remembered);
        remembered[0] = earlier_place;
    }
    return true;
}
