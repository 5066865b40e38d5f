/* Who did it: gives clues without a task, and those about victims, to the task that is known to
 * have done it. */
#include <stdlib.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "diagnose/internal.h"

typedef struct range {
    uint64_t begin;
    uint64_t end;
} range;

/* Bytes that a task is known to have written outside its outputs. */
typedef struct deed {
    range where;
    uint64_t reach; /* the largest end up to here */
    uint64_t task;
} deed;

/* Nothing orders two tasks: what is wrong with the first is what the second has done. */
typedef struct collision {
    uint64_t first;
    uint64_t second; /* accused */
} collision;

/* All of them, by their first byte; who writes outside at all, by number; and collisions. */
typedef struct deeds {
    deed *items;
    uint64_t count;
    uint64_t capacity;
    uint64_t *tasks;
    uint64_t task_count;
    uint64_t task_capacity;
    collision *collisions;
    uint64_t collision_count;
    uint64_t collision_capacity;
} deeds;

/* --- what is known to be written --- */

static gbx_status add_deed(deeds *all, uint64_t task, uint64_t begin, uint64_t end) {
    if (begin >= end)
        return NULL;
    GBX_TRY(gbx_array_reserve(&all->items, &all->capacity, all->count + 1, "diagnosing"));
    all->items[all->count++] = (deed){{begin, end}, 0, task};
    return NULL;
}

static range range_of_guard(const gbx_run_finding *f) {
    uint64_t begin = f->address + (uint64_t)f->first;
    return (range){begin, begin + f->span};
}

static gbx_status add_result(deeds *all, const gbx_replay_result *result) {
    for (uint32_t i = 0; i < result->range_count; ++i)
        GBX_TRY(add_deed(all, result->task, result->ranges[i].address,
                         result->ranges[i].address + result->ranges[i].bytes));
    for (uint32_t i = 0; i < result->finding_count; ++i) {
        const gbx_task_finding *is = &result->findings[i].is;
        if (is->kind == GBX_STRAY_WRITE && result->findings[i].has_address)
            GBX_TRY(add_deed(all, result->task, is->address,
                             is->end > is->address ? is->end : is->address + 1));
    }
    return result->fault
               ? add_deed(all, result->task, result->fault->stray_address, result->fault->stray_end)
               : NULL;
}

static bool writes_outside(const gbx_clue *clue) {
    return clue->kind == GBX_DIAGNOSIS_STRAY_WRITE || clue->kind == GBX_DIAGNOSIS_OVERRUN ||
           clue->kind == GBX_DIAGNOSIS_UNDERRUN || clue->kind == GBX_DIAGNOSIS_STRAY;
}

static gbx_status add_collision(deeds *all, const gbx_clue *clue) {
    GBX_TRY(gbx_array_reserve(&all->collisions, &all->collision_capacity, all->collision_count + 1,
                              "diagnosing"));
    all->collisions[all->collision_count++] = (collision){clue->other, clue->task};
    return NULL;
}

static gbx_status add_clue(const gbx_inquiry *q, deeds *all, const gbx_clue *clue) {
    const gbx_replay_result *result = gbx_clue_result(q->d, clue);
    if (clue->kind == GBX_DIAGNOSIS_READ_TOO_EARLY ||
        clue->kind == GBX_DIAGNOSIS_OVERLAPPING_WRITES)
        return add_collision(all, clue);
    if (writes_outside(clue)) {
        GBX_TRY(
            gbx_array_reserve(&all->tasks, &all->task_capacity, all->task_count + 1, "diagnosing"));
        all->tasks[all->task_count++] = clue->task;
    }
    if (clue->source == GBX_CLUE_GUARD) {
        range where = range_of_guard(&q->d->guards[clue->index]);
        return add_deed(all, clue->task, where.begin, where.end);
    }
    return result && !result->is_relocated ? add_result(all, result) : NULL;
}

static int compare_deeds(const void *a, const void *b) {
    const deed *x = a, *y = b;
    int order = gbx_order_u64(x->where.begin, y->where.begin);
    return order != 0 ? order : gbx_order_u64(x->task, y->task);
}

static int compare_collisions(const void *a, const void *b) {
    const collision *x = a, *y = b;
    int order = gbx_order_u64(x->first, y->first);
    return order != 0 ? order : gbx_order_u64(x->second, y->second);
}

static gbx_status gather(const gbx_inquiry *q, size_t named, deeds *all) {
    for (size_t i = 0; i < named; ++i)
        GBX_TRY(add_clue(q, all, &q->clues[i]));
    if (all->count > 0)
        qsort(all->items, all->count, sizeof *all->items, compare_deeds);
    if (all->task_count > 0)
        qsort(all->tasks, all->task_count, sizeof *all->tasks, gbx_compare_u64);
    if (all->collision_count > 0)
        qsort(all->collisions, all->collision_count, sizeof *all->collisions, compare_collisions);
    for (uint64_t i = 0, reach = 0; i < all->count; ++i) {
        reach = all->items[i].where.end > reach ? all->items[i].where.end : reach;
        all->items[i].reach = reach;
    }
    return NULL;
}

/* --- who did it --- */

/* A task that is known to have written there; nobody if none is. */
static uint64_t find_writer(const deeds *all, range where) {
    uint64_t end = gbx_lower_bound_at(all->items, all->count, sizeof *all->items,
                                      offsetof(deed, where.begin), where.end);
    for (; end > 0 && all->items[end - 1].reach > where.begin; --end)
        if (all->items[end - 1].where.end > where.begin)
            return all->items[end - 1].task;
    return GBX_DIAGNOSIS_NOBODY;
}

static bool is_in(const deeds *all, uint64_t task) {
    return all->task_count > 0 &&
           bsearch(&task, all->tasks, all->task_count, sizeof task, gbx_compare_u64) != NULL;
}

/* Whether a task ran after one side of a change, and before the other noticed it. */
static bool ran_meanwhile(const gbx_inquiry *q, const gbx_audit_finding *f, uint64_t task) {
    uint64_t place = gbx_task_graph_place(q->graph, task);
    uint64_t first = gbx_task_graph_place(q->graph, f->first.task);
    uint64_t second = f->is_result ? UINT64_MAX : gbx_task_graph_place(q->graph, f->second.task);
    if (place == UINT64_MAX || first == UINT64_MAX || task == f->first.task)
        return false;
    const gbx_graph_task *by = gbx_task_graph_at(q->graph, place);
    const gbx_graph_task *left = gbx_task_graph_at(q->graph, first);
    uint64_t since = f->is_seen ? left->begin_ns : left->end_ns;
    uint64_t until =
        second == UINT64_MAX ? UINT64_MAX : gbx_task_graph_at(q->graph, second)->begin_ns;
    return by->end_ns >= since && by->begin_ns <= until;
}

/* A call of a task ends where memory ends: one that is known to write outside its outputs may have
 * written further in the run, if it ran then. */
static uint64_t find_likely(const gbx_inquiry *q, const gbx_clue *open, const deeds *all) {
    if (open->source == GBX_CLUE_GUARD) {
        const gbx_run_finding *f = &q->d->guards[open->index];
        for (uint32_t i = 0; i < f->candidate_count; ++i)
            if (is_in(all, f->candidates[i].task))
                return f->candidates[i].task;
        return GBX_DIAGNOSIS_NOBODY;
    }
    const gbx_audit_finding *f = &q->d->audit.findings[open->index];
    for (uint32_t i = 0; i < GBX_AUDIT_SUSPECTS && i < f->suspect_count; ++i)
        if (is_in(all, f->suspects[i].task))
            return f->suspects[i].task;
    for (uint64_t i = 0; i < all->task_count; ++i)
        if (ran_meanwhile(q, f, all->tasks[i]))
            return all->tasks[i];
    return GBX_DIAGNOSIS_NOBODY;
}

/* Who changed the bytes of a clue without a task. */
static uint64_t find_doer(const gbx_inquiry *q, const gbx_clue *open, const deeds *all) {
    range where;
    if (open->source == GBX_CLUE_GUARD) {
        where = range_of_guard(&q->d->guards[open->index]);
    } else if (open->source == GBX_CLUE_AUDIT) {
        const gbx_audit_finding *f = &q->d->audit.findings[open->index];
        where = (range){f->address, f->address + f->bytes};
    } else {
        return GBX_DIAGNOSIS_NOBODY;
    }
    uint64_t task = find_writer(all, where);
    return task != GBX_DIAGNOSIS_NOBODY ? task : find_likely(q, open, all);
}

/* --- order --- */

/* Clues with a task first, by place and kind. */
static int compare_clues(const void *a, const void *b) {
    const gbx_clue *x = a, *y = b;
    int order = (x->task == GBX_DIAGNOSIS_NOBODY) - (y->task == GBX_DIAGNOSIS_NOBODY);
    if (order == 0)
        order = gbx_order_u64(x->place, y->place);
    if (order == 0)
        order = gbx_order_u64(x->task, y->task);
    if (order == 0)
        order = x->is_weak - y->is_weak;
    if (order == 0)
        order = gbx_order_u64(x->kind, y->kind);
    if (order == 0)
        order = gbx_order_u64(x->rank, y->rank);
    if (order == 0)
        order = gbx_order_u64(x->source, y->source);
    return order != 0 ? order : gbx_order_u64(x->index, y->index);
}

static size_t count_named(const gbx_inquiry *q) {
    size_t count = 0;
    while (count < q->clue_count && q->clues[count].task != GBX_DIAGNOSIS_NOBODY)
        ++count;
    return count;
}

static void sort(gbx_inquiry *q) {
    if (q->clue_count > 0)
        qsort(q->clues, q->clue_count, sizeof *q->clues, compare_clues);
}

/* The task that the first of two tasks without order collides with; nobody if there is none. */
static uint64_t find_collision(const deeds *all, uint64_t task) {
    uint64_t at = gbx_lower_bound_at(all->collisions, all->collision_count, sizeof *all->collisions,
                                     offsetof(collision, first), task);
    return at < all->collision_count && all->collisions[at].first == task
               ? all->collisions[at].second
               : GBX_DIAGNOSIS_NOBODY;
}

/* Values that changed in a task are what the culprit did, if it is known. */
static void give(const gbx_inquiry *q, gbx_clue *clue, const deeds *all) {
    bool has_changed = clue->kind == GBX_DIAGNOSIS_NOT_REPEATED;
    uint64_t doer = !has_changed                          ? find_doer(q, clue, all)
                    : clue->other != GBX_DIAGNOSIS_NOBODY ? clue->other
                                                          : find_collision(all, clue->task);
    if (doer == GBX_DIAGNOSIS_NOBODY)
        return;
    if (has_changed)
        clue->other = clue->task;
    clue->task = doer;
    clue->is_assigned = true;
    clue->place = gbx_task_graph_place(q->graph, doer);
}

gbx_status gbx_inquiry_assign(gbx_inquiry *q, size_t *out_named) {
    deeds all = {0};
    sort(q);
    size_t named = count_named(q);
    gbx_status status = gather(q, named, &all);
    for (size_t i = 0; i < q->clue_count && !status; ++i)
        if (!q->clues[i].is_assigned &&
            (i >= named || q->clues[i].kind == GBX_DIAGNOSIS_NOT_REPEATED))
            give(q, &q->clues[i], &all);
    free(all.items);
    free(all.tasks);
    free(all.collisions);
    sort(q);
    *out_named = count_named(q);
    return status;
}
