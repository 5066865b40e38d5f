/*
 * Missing edges. One of them leaves many pairs of tasks without order: those that it would order
 * are no findings of their own. The nearest pairs come first: of the tasks that an earlier one
 * should have been before, the first, and of those that it should have waited for, the last.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "diagnose/internal.h"

#define EDGES_NS (10 * GBX_NS_PER_SECOND) /* pairs that are not looked at by then are findings */

static const char doing[] = "looking for missing edges";

/* Two tasks without order, by their places in the graph. */
typedef struct pair {
    uint64_t before;
    uint64_t after;
    size_t clue;
} pair;

typedef struct edges {
    gbx_inquiry *q;
    pair *pairs; /* by the later task; of these, the nearest first */
    size_t pair_count;
    pair *missing; /* edges, likewise */
    size_t missing_count;
    uint64_t missing_capacity;
    bool *marks; /* by place: it leads to the task that is looked at */
    int64_t deadline_ns;
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
    e->marks = calloc(gbx_task_graph_count(q->graph) + 1, sizeof *e->marks);
    if (!e->pairs || !e->marks)
        return gbx_fail_memory("%s", doing);
    for (size_t i = 0; i < q->clue_count; ++i) {
        if (!is_pair(q, &q->clues[i]) || q->clues[i].is_weak)
            continue;
        uint64_t a = gbx_task_graph_place(q->graph, q->clues[i].other);
        uint64_t b = gbx_task_graph_place(q->graph, q->clues[i].task);
        if (a != UINT64_MAX && b != UINT64_MAX && a != b)
            e->pairs[e->pair_count++] = (pair){a < b ? a : b, a < b ? b : a, i};
    }
    qsort(e->pairs, e->pair_count, sizeof *e->pairs, compare_pairs);
    return NULL;
}

/* The first missing edge that ends at a place, or after it. */
static size_t find_missing(const edges *e, uint64_t after) {
    size_t low = 0, high = e->missing_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (e->missing[middle].after < after)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Marks the places from which an edge, there or missing, leads to this one. */
static void mark_before(edges *e, uint64_t place) {
    const gbx_graph_task *task = gbx_task_graph_at(e->q->graph, place);
    for (uint64_t i = 0; i < task->predecessor_count; ++i) {
        uint64_t from = gbx_task_graph_place(e->q->graph, task->predecessors[i]);
        if (from < place)
            e->marks[from] = true;
    }
    for (size_t i = find_missing(e, place); i < e->missing_count && e->missing[i].after == place;
         ++i)
        e->marks[e->missing[i].before] = true;
}

/* Walks from one later task to the earlier ones of its pairs: what leads to it is ordered; where
 * nothing does, an edge is missing. */
static gbx_status reduce_one(edges *e, size_t first, size_t end, bool *drops) {
    uint64_t after = e->pairs[first].after, lowest = e->pairs[end - 1].before;
    memset(e->marks, 0, (after + 1) * sizeof *e->marks);
    mark_before(e, after);
    for (uint64_t place = after; place-- > lowest;) {
        bool is_missing = false;
        for (; first < end && e->pairs[first].before == place; ++first) {
            drops[e->pairs[first].clue] = e->marks[place];
            is_missing |= !e->marks[place];
        }
        if (is_missing) {
            GBX_TRY(
                gbx_array_reserve(&e->missing, &e->missing_capacity, e->missing_count + 1, doing));
            e->missing[e->missing_count++] = e->pairs[first - 1];
            e->marks[place] = true;
        }
        if (e->marks[place])
            mark_before(e, place);
    }
    return NULL;
}

/* Marks the clues that follow from others. */
static gbx_status reduce(edges *e, bool *drops) {
    for (size_t first = 0, end; first < e->pair_count; first = end) {
        for (end = first + 1; end < e->pair_count && e->pairs[end].after == e->pairs[first].after;
             ++end)
            ;
        if (gbx_clock_ns() > e->deadline_ns)
            return NULL;
        GBX_TRY(reduce_one(e, first, end, drops));
    }
    return NULL;
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
    edges e = {.q = q, .deadline_ns = gbx_clock_ns() + EDGES_NS};
    bool *drops = calloc(q->clue_count + 1, sizeof *drops);
    gbx_status status = drops ? gather(&e) : gbx_fail_memory("%s", doing);
    if (!status && e.pair_count > 1) {
        status = reduce(&e, drops);
        if (!status)
            drop_values(&e, drops);
        if (!status)
            status = drop(q, drops);
    }
    free(e.pairs);
    free(e.missing);
    free(e.marks);
    free(drops);
    return status;
}
