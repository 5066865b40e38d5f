/*
 * Missing edges. One of them leaves many pairs of tasks without order: those that it would order
 * are no findings of their own. The nearest pairs come first: of the tasks that an earlier one
 * should have been before, the first, and of those that it should have waited for, the last.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "diagnose/internal.h"

enum { EDGES_MAX = 1024, PAIRS_MAX = 1 << 16 }; /* more are not reduced */

static const char doing[] = "looking for missing edges";

/* Two tasks without order, by their places in the graph. */
typedef struct pair {
    uint64_t before;
    uint64_t after;
    size_t clue;
} pair;

typedef struct edges {
    gbx_inquiry *q;
    pair *pairs;
    size_t pair_count;
    pair items[EDGES_MAX]; /* that are missing */
    size_t count;
    bool is_reached[EDGES_MAX];
} edges;

static bool is_pair(const gbx_inquiry *q, const gbx_clue *clue) {
    return clue->source == GBX_CLUE_AUDIT &&
           (clue->kind == GBX_DIAGNOSIS_READ_TOO_EARLY ||
            clue->kind == GBX_DIAGNOSIS_OVERLAPPING_WRITES) &&
           q->d->audit.findings[clue->index].has_no_path;
}

static int compare_numbers(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_pairs(const void *a, const void *b) {
    const pair *x = a, *y = b;
    int order = compare_numbers(x->after, y->after);
    return order != 0 ? order : compare_numbers(y->before, x->before);
}

static gbx_status gather(edges *e) {
    const gbx_inquiry *q = e->q;
    e->pairs = calloc(q->clue_count + 1, sizeof *e->pairs);
    if (!e->pairs)
        return gbx_fail_memory("%s", doing);
    for (size_t i = 0; i < q->clue_count; ++i) {
        if (!is_pair(q, &q->clues[i]))
            continue;
        uint64_t a = gbx_task_graph_place(q->graph, q->clues[i].other);
        uint64_t b = gbx_task_graph_place(q->graph, q->clues[i].task);
        if (a == UINT64_MAX || b == UINT64_MAX)
            continue;
        e->pairs[e->pair_count++] = (pair){a < b ? a : b, a < b ? b : a, i};
    }
    qsort(e->pairs, e->pair_count, sizeof *e->pairs, compare_pairs);
    return NULL;
}

/* Whether one place is the other, or before it by the edges that the graph has. */
static bool leads(const edges *e, uint64_t from, uint64_t to) {
    const gbx_task_graph *graph = e->q->graph;
    return from == to ||
           (from < to && gbx_task_graph_is_before(graph, gbx_task_graph_at(graph, from)->task,
                                                  gbx_task_graph_at(graph, to)->task));
}

/* Whether the missing edges that are known would order a pair. They are sorted by their ends. */
static bool is_ordered(edges *e, const pair *p) {
    for (size_t i = 0; i < e->count; ++i) {
        const pair *edge = &e->items[i];
        bool is_near = edge->before >= p->before && edge->after <= p->after;
        e->is_reached[i] = is_near && leads(e, p->before, edge->before);
        for (size_t k = 0; is_near && k < i && !e->is_reached[i]; ++k)
            e->is_reached[i] = e->is_reached[k] && leads(e, e->items[k].after, edge->before);
        if (e->is_reached[i] && leads(e, edge->after, p->after))
            return true;
    }
    return false;
}

/* Marks the clues that follow from others. */
static void reduce(edges *e, bool *drops) {
    for (size_t i = 0; i < e->pair_count; ++i) {
        const pair *p = &e->pairs[i];
        bool is_known = e->count > 0 && e->items[e->count - 1].before == p->before &&
                        e->items[e->count - 1].after == p->after;
        if (is_known) /* of the same two tasks */
            continue;
        drops[p->clue] = is_ordered(e, p);
        if (!drops[p->clue] && e->count < EDGES_MAX)
            e->items[e->count++] = *p;
    }
}

/* A task of such a pair may have read or left what the other wrote: then it differs from a call. */
static void drop_values(const edges *e, bool *drops) {
    const gbx_inquiry *q = e->q;
    for (size_t i = 0; i < q->clue_count; ++i) {
        const gbx_clue *clue = &q->clues[i];
        uint64_t place = gbx_task_graph_place(q->graph, clue->task);
        bool is_open = clue->source == GBX_CLUE_LINE && clue->other == GBX_DIAGNOSIS_NOBODY;
        for (size_t k = 0; k < e->pair_count && is_open && !drops[i]; ++k)
            drops[i] = drops[e->pairs[k].clue] &&
                       (e->pairs[k].before == place || e->pairs[k].after == place);
    }
}

static gbx_status drop(gbx_inquiry *q, const bool *drops) {
    size_t kept = 0, dropped = 0, values = 0;
    for (size_t i = 0; i < q->clue_count; ++i) {
        dropped += drops[i] && q->clues[i].source == GBX_CLUE_AUDIT;
        values += drops[i] && q->clues[i].source != GBX_CLUE_AUDIT;
        if (!drops[i])
            q->clues[kept++] = q->clues[i];
    }
    q->clue_count = kept;
    q->d->asked[GBX_ASKED_AUDIT].findings -= dropped;
    q->d->asked[GBX_ASKED_REPLAY].findings -= values;
    if (dropped == 0)
        return NULL;
    return gbx_inquiry_note_harmless(q, GBX_ASKED_AUDIT,
                                     "%zu more %s of tasks %s no order, which missing edges that "
                                     "are named would give %s",
                                     dropped, dropped == 1 ? "pair" : "pairs",
                                     dropped == 1 ? "has" : "have", dropped == 1 ? "it" : "them");
}

gbx_status gbx_inquiry_reduce_pairs(gbx_inquiry *q) {
    edges *e = calloc(1, sizeof *e);
    bool *drops = calloc(q->clue_count + 1, sizeof *drops);
    gbx_status status = NULL;
    if (e && drops) {
        e->q = q;
        status = gather(e);
        if (!status && e->pair_count > 1 && e->pair_count <= PAIRS_MAX) {
            reduce(e, drops);
            drop_values(e, drops);
            status = drop(q, drops);
        }
        free(e->pairs);
    } else {
        status = gbx_fail_memory("%s", doing);
    }
    free(e);
    free(drops);
    return status;
}
