/*
 * Missing edges. One of them leaves many pairs of tasks without order: those that it would order
 * are no findings of their own. The nearest pairs come first: of the tasks that an earlier one
 * should have been before, the first, and of those that it should have waited for, the last.
 */
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
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
    return gbx_clue_is_pair(clue) && q->d->audit.findings[clue->index].has_no_path;
}

static int compare_pairs(const void *a, const void *b) {
    const pair *x = a, *y = b;
    int order = gbx_order_u64(x->after, y->after);
    return order != 0 ? order : gbx_order_u64(y->before, x->before);
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
    return gbx_lower_bound_at(e->missing, e->missing_count, sizeof *e->missing,
                              offsetof(pair, after), after);
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

/* --- values --- */

/* Bytes that a task shares with another one: the pair was dropped. */
typedef struct shared_bytes {
    uint64_t place;
    uint64_t begin;
    uint64_t end;
} shared_bytes;

typedef struct all_shared {
    shared_bytes *items; /* by place */
    size_t count;
} all_shared;

static int compare_shared(const void *a, const void *b) {
    const shared_bytes *x = a, *y = b;
    return gbx_order_u64(x->place, y->place);
}

static gbx_status gather_shared(const edges *e, const bool *drops, all_shared *out) {
    out->items = calloc(2 * e->pair_count + 1, sizeof *out->items);
    if (!out->items)
        return gbx_fail_memory("%s", doing);
    for (size_t i = 0; i < e->pair_count; ++i) {
        const pair *p = &e->pairs[i];
        const gbx_audit_finding *f = &e->q->d->audit.findings[e->q->clues[p->clue].index];
        if (!drops[p->clue])
            continue;
        out->items[out->count++] = (shared_bytes){p->before, f->address, f->address + f->bytes};
        out->items[out->count++] = (shared_bytes){p->after, f->address, f->address + f->bytes};
    }
    qsort(out->items, out->count, sizeof *out->items, compare_shared);
    return NULL;
}

static bool is_shared(const all_shared *all, uint64_t place, const gbx_tensor *view) {
    for (size_t i = gbx_lower_bound_at(all->items, all->count, sizeof *all->items,
                                       offsetof(shared_bytes, place), place);
         i < all->count && all->items[i].place == place; ++i) {
        const shared_bytes *s = &all->items[i];
        const gbx_tensor bytes = {.data = s->begin,
                                  .dtype = GBX_UINT8,
                                  .ndims = 1,
                                  .shape = {(int64_t)(s->end - s->begin)},
                                  .strides = {1}};
        if (s->begin < s->end && gbx_tensor_overlaps(view, &bytes))
            return true;
    }
    return false;
}

/* Whether all outputs of a task that differ have bytes that it shares with another task. */
static gbx_status are_shared(const gbx_inquiry *q, const all_shared *all, const gbx_clue *clue,
                             bool *out_are) {
    gbx_entries *entries = q->request->entries;
    uint64_t differ = q->d->check.lines[clue->index].kernels.slots;
    uint64_t place = gbx_task_graph_place(q->graph, clue->task);
    *out_are = differ != 0;
    for (uint64_t i = gbx_entries_find(entries, clue->task);
         i < gbx_entries_count(entries) && *out_are; ++i) {
        gbx_entry entry;
        gbx_tensor view;
        GBX_TRY(gbx_entries_at(entries, i, &entry));
        if (entry.head->task != clue->task)
            break;
        uint32_t slot = entry.head->arg_index;
        if (!entry.tensor || entry.head->stage == GBX_STAGE_BEFORE || slot >= 64 ||
            !(differ >> slot & 1))
            continue;
        gbx_record_view(entry.tensor, &view);
        *out_are = is_shared(all, place, &view);
    }
    return NULL;
}

/* What two tasks without order both access may be as the other left it: then it differs from a
 * call. Other outputs that differ stay findings. */
static gbx_status drop_values(const edges *e, bool *drops) {
    const gbx_inquiry *q = e->q;
    all_shared all = {0};
    gbx_status status = gather_shared(e, drops, &all);
    for (size_t i = 0; i < q->clue_count && all.count > 0 && !status; ++i)
        if (q->clues[i].source == GBX_CLUE_LINE && q->clues[i].other == GBX_DIAGNOSIS_NOBODY)
            status = are_shared(q, &all, &q->clues[i], &drops[i]);
    free(all.items);
    return status;
}

/* --- dropping --- */

static gbx_status report_dropped(gbx_inquiry *q, size_t pairs, size_t values) {
    if (pairs > 0)
        GBX_TRY(gbx_inquiry_note_harmless(
            q, GBX_ASKED_AUDIT,
            "%zu more %s of tasks %s no order, but the missing edges that are named would order %s",
            pairs, pairs == 1 ? "pair" : "pairs", pairs == 1 ? "has" : "have",
            pairs == 1 ? "it" : "them"));
    if (values > 0)
        GBX_TRY(gbx_inquiry_note_harmless(
            q, GBX_ASKED_REPLAY,
            "%zu %s other values than the dump has, in memory of another task that missing edges "
            "which are named would order",
            values, values == 1 ? "task leaves" : "tasks leave"));
    return NULL;
}

static gbx_status is_chosen(const gbx_inquiry *q, const gbx_clue *clue, bool *out_is) {
    bool is_other;
    GBX_TRY(gbx_inquiry_chooses(q, clue->task, out_is));
    GBX_TRY(gbx_inquiry_chooses(q, clue->other, &is_other));
    *out_is |= is_other;
    return NULL;
}

static gbx_status drop(gbx_inquiry *q, const bool *drops) {
    size_t kept = 0, pairs = 0, values = 0;
    for (size_t i = 0; i < q->clue_count; ++i) {
        const gbx_clue clue = q->clues[i];
        bool is_asked = true;
        if (gbx_clue_is_pair(&clue))
            GBX_TRY(is_chosen(q, &clue, &is_asked));
        pairs += is_asked && drops[i] && clue.source == GBX_CLUE_AUDIT;
        values += is_asked && drops[i] && clue.source != GBX_CLUE_AUDIT;
        if (is_asked && !drops[i])
            q->clues[kept++] = clue;
        else
            --q->d->asked[clue.source == GBX_CLUE_AUDIT ? GBX_ASKED_AUDIT : GBX_ASKED_REPLAY]
                  .findings;
    }
    q->clue_count = kept;
    return report_dropped(q, pairs, values);
}

gbx_status gbx_inquiry_reduce_pairs(gbx_inquiry *q) {
    edges e = {.q = q, .deadline_ns = gbx_clock_ns() + EDGES_NS};
    bool *drops = calloc(q->clue_count + 1, sizeof *drops);
    gbx_status status = drops ? gather(&e) : gbx_fail_memory("%s", doing);
    if (!status && e.pair_count > 1)
        status = reduce(&e, drops);
    if (!status)
        status = drop_values(&e, drops);
    if (!status)
        status = drop(q, drops);
    free(e.pairs);
    free(e.missing);
    free(e.marks);
    free(drops);
    return status;
}
