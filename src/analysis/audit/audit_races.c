/* Pairs of accesses to the same memory, one of them a write, by tasks that ran at the same time or
 * that no path of the graph orders. */
#include <inttypes.h>
#include <stdlib.h>

#include <glassbox/tensor.h>

#include "analysis/audit/internal.h"
#include "analysis/internal.h"
#include "base/memory.h"

/* Tasks that run at a time: more than enough, a chip has 72 cores. */
enum { RUNNING_MAX = 4096 };

/* Pairs that are kept. */
#define RACES_MAX (UINT64_C(1) << 20)

typedef struct sweep {
    gbx_audit_state *state;
    uint64_t *order; /* tasks by the time of their dispatch */
    uint64_t *running;
    uint64_t running_count;
} sweep;

static gbx_status add_race(gbx_audit_state *state, uint64_t one, uint64_t other, bool is_concurrent,
                           bool has_no_path) {
    state->accesses[one].has_race = state->accesses[other].has_race = true;
    if (state->race_count == RACES_MAX) {
        state->are_races_cut = state->audit->counts.has_more = true;
        return NULL;
    }
    GBX_TRY(gbx_array_reserve(&state->races, &state->race_capacity, state->race_count + 1,
                              "listing pairs of tasks"));
    bool is_in_order = state->accesses[one].task <= state->accesses[other].task;
    state->races[state->race_count++] = (gbx_race){
        is_in_order ? one : other, is_in_order ? other : one, is_concurrent, has_no_path};
    return NULL;
}

/* For views that are not one range of bytes. gbx_tensor_overlaps may say yes when the answer would
 * take too long: then their pieces decide. */
static gbx_status check_views(sweep *s, const gbx_access *a, const gbx_access *b,
                              bool *out_do_overlap) {
    gbx_tensor a_view, b_view;
    gbx_byte_runs runs;
    gbx_byte_run run;
    gbx_memory_range found;
    bool is_made = false;
    GBX_TRY(gbx_access_view(s->state, a, &a_view));
    GBX_TRY(gbx_access_view(s->state, b, &b_view));
    *out_do_overlap = gbx_tensor_overlaps(&a_view, &b_view);
    if (*out_do_overlap)
        GBX_TRY(gbx_access_map_pair(s->state, a, b, &is_made));
    if (!is_made)
        return NULL;
    GBX_TRY(gbx_access_runs(s->state, b, &runs));
    *out_do_overlap = false;
    while (!*out_do_overlap && gbx_byte_runs_next(&runs, &run))
        *out_do_overlap =
            gbx_memory_map_find(s->state->map, run.begin, &found) && found.begin < run.end;
    return NULL;
}

static gbx_status check_tasks(sweep *s, const gbx_audit_task *one, const gbx_audit_task *other) {
    for (uint64_t i = one->first; i < one->first + one->count; ++i)
        for (uint64_t k = other->first; k < other->first + other->count; ++k) {
            const gbx_access *a = &s->state->accesses[i];
            const gbx_access *b = &s->state->accesses[k];
            if ((!a->is_write && !b->is_write) || a->begin >= b->end || b->begin >= a->end)
                continue;
            bool do_overlap = true;
            if (!a->is_contiguous || !b->is_contiguous)
                GBX_TRY(check_views(s, a, b, &do_overlap));
            if (do_overlap)
                GBX_TRY(add_race(s->state, i, k, true, false));
        }
    return NULL;
}

/* A task that did not complete has no known writes, and read its inputs when it began. */
static gbx_status begin_task(sweep *s, uint64_t index) {
    const gbx_audit_task *task = &s->state->tasks[index];
    uint64_t kept = 0;
    for (uint64_t i = 0; i < s->running_count; ++i)
        if (s->state->tasks[s->running[i]].end_ns > task->begin_ns)
            s->running[kept++] = s->running[i];
    s->running_count = kept;
    for (uint64_t i = 0; i < s->running_count; ++i)
        GBX_TRY(check_tasks(s, &s->state->tasks[s->running[i]], task));
    if (task->end_ns == UINT64_MAX || task->end_ns <= task->begin_ns)
        return NULL;
    if (s->running_count == RUNNING_MAX)
        return gbx_fail(GBX_BAD_FORMAT,
                        "auditing the dump: by its times, more than %d tasks ran when task %" PRIu64
                        " began, more than any chip can run; run glassbox verify",
                        RUNNING_MAX, task->number);
    s->running[s->running_count++] = index;
    return NULL;
}

static int compare_begins(const void *a, const void *b, void *context) {
    const gbx_audit_task *tasks = context;
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    if (tasks[left].begin_ns != tasks[right].begin_ns)
        return tasks[left].begin_ns < tasks[right].begin_ns ? -1 : 1;
    return left < right ? -1 : left > right;
}

/* Merges what was found of the same pair. */
static void unite_races(gbx_audit_state *state) {
    uint64_t kept = 0;
    if (state->race_count == 0)
        return;
    qsort(state->races, state->race_count, sizeof *state->races, gbx_compare_pairs);
    for (uint64_t i = 1; i < state->race_count; ++i) {
        gbx_race *last = &state->races[kept];
        if (gbx_compare_pairs(last, &state->races[i]) != 0) {
            state->races[++kept] = state->races[i];
            continue;
        }
        last->is_concurrent |= state->races[i].is_concurrent;
        last->has_no_path |= state->races[i].has_no_path;
    }
    state->race_count = kept + 1;
}

/* Lists the races of each access. */
static gbx_status link_races(gbx_audit_state *state) {
    uint64_t count = state->race_count;
    state->links = malloc((2 * count + 1) * sizeof *state->links);
    if (!state->links)
        return gbx_fail_memory("sorting %" PRIu64 " pairs of tasks", count);
    for (uint64_t i = 0; i < count; ++i) {
        state->links[2 * i] = (gbx_race_link){state->races[i].first, i};
        state->links[2 * i + 1] = (gbx_race_link){state->races[i].second, i};
    }
    qsort(state->links, 2 * count, sizeof *state->links, gbx_compare_pairs);
    for (uint64_t i = 2 * count; i-- > 0;)
        state->accesses[state->links[i].access].first_link = i;
    return NULL;
}

static gbx_status sweep_tasks(sweep *s) {
    gbx_audit_state *state = s->state;
    for (uint64_t i = 0; i < state->task_count; ++i)
        s->order[i] = i;
    qsort_r(s->order, state->task_count, sizeof *s->order, compare_begins, state->tasks);
    for (uint64_t i = 0; i < state->task_count; ++i)
        GBX_TRY(begin_task(s, s->order[i]));
    return NULL;
}

/*
 * --- pairs that no path of the graph orders, whatever the times ---
 *
 * Goes through tasks in graph order. For every range of memory it keeps the last writer and the
 * readers since: the next writer must come after all of them. A reader that comes after another one
 * replaces it.
 */

#define NO_INDEX UINT64_MAX
#define NODES_MAX (UINT64_C(1) << 26) /* 1 GiB */

/* Readers of a range, the last one first; ranges that were cut apart share the tail. */
typedef struct reader_node {
    uint64_t access;
    uint64_t next; /* NO_INDEX for none */
} reader_node;

/* In the map, a range has its last writer or NO_INDEX as owner, its first reader_node as offset. */
typedef struct ordering {
    gbx_audit_state *state;
    gbx_memory_map *map;
    reader_node *nodes;
    uint64_t count;
    uint64_t capacity;
    uint64_t first_race; /* of the current task */
    uint64_t last_node;  /* of the current access; NO_INDEX before the first */
} ordering;

/* Whether the pair is among the last few that were found. */
static bool is_known(const ordering *o, uint64_t one, uint64_t other) {
    const gbx_audit_state *state = o->state;
    for (uint64_t i = state->race_count; i > o->first_race && i + 16 > state->race_count; --i) {
        const gbx_race *race = &state->races[i - 1];
        if (race->first == one && race->second == other)
            return true;
    }
    return false;
}

static gbx_status check_order(ordering *o, uint64_t earlier, uint64_t later) {
    gbx_audit_state *state = o->state;
    const gbx_audit_task *first = &state->tasks[state->accesses[earlier].task];
    const gbx_audit_task *second = &state->tasks[state->accesses[later].task];
    if (first == second || gbx_task_graph_is_before(state->graph, first->number, second->number) ||
        is_known(o, earlier, later))
        return NULL;
    return add_race(state, earlier, later, false, true);
}

/* Neighbouring ranges of a view mostly have the same readers, and then share a node. */
static gbx_status add_node(ordering *o, uint64_t access, uint64_t next, uint64_t *out_node) {
    if (o->last_node != NO_INDEX && o->nodes[o->last_node].next == next) {
        *out_node = o->last_node;
        return NULL;
    }
    if (o->count == NODES_MAX)
        return gbx_fail(GBX_EXHAUSTED,
                        "auditing the dump: its memory ranges have more than %" PRIu64
                        " readers, the most that an audit can track",
                        NODES_MAX);
    GBX_TRY(gbx_array_reserve(&o->nodes, &o->capacity, o->count + 1,
                              "listing the readers of memory ranges"));
    o->nodes[o->count] = (reader_node){access, next};
    *out_node = o->last_node = o->count++;
    return NULL;
}

/* --- reading --- */

/* Drops readers that the new reader comes after. */
static uint64_t skip_earlier(const ordering *o, uint64_t node, uint64_t access) {
    const gbx_audit_state *state = o->state;
    uint64_t task = state->tasks[state->accesses[access].task].number;
    while (node != NO_INDEX) {
        uint64_t other = state->tasks[state->accesses[o->nodes[node].access].task].number;
        if (other != task && !gbx_task_graph_is_before(state->graph, other, task))
            break;
        node = o->nodes[node].next;
    }
    return node;
}

/* The first part of [at, end) with one writer and the same readers. */
static gbx_memory_range known_range(const ordering *o, uint64_t at, uint64_t end) {
    gbx_memory_range found;
    gbx_memory_range range = {at, end, NO_INDEX, NO_INDEX};
    if (!gbx_memory_map_find(o->map, at, &found) || found.begin >= end)
        return range;
    if (found.begin > at) {
        range.end = found.begin;
        return range;
    }
    range.owner = found.owner;
    range.offset = found.offset;
    range.end = found.end < end ? found.end : end;
    return range;
}

static gbx_status read_run(ordering *o, uint64_t access, const gbx_byte_run *run) {
    for (uint64_t at = run->begin; at < run->end;) {
        gbx_memory_range range = known_range(o, at, run->end);
        if (range.owner != NO_INDEX)
            GBX_TRY(check_order(o, range.owner, access));
        GBX_TRY(add_node(o, access, skip_earlier(o, range.offset, access), &range.offset));
        GBX_TRY(gbx_memory_map_set(o->map, &range));
        at = range.end;
    }
    return NULL;
}

/* --- writing --- */

static gbx_status write_run(ordering *o, uint64_t access, const gbx_byte_run *run) {
    for (uint64_t at = run->begin; at < run->end;) {
        gbx_memory_range range = known_range(o, at, run->end);
        if (range.owner != NO_INDEX)
            GBX_TRY(check_order(o, range.owner, access));
        for (uint64_t node = range.offset; node != NO_INDEX; node = o->nodes[node].next)
            GBX_TRY(check_order(o, o->nodes[node].access, access));
        at = range.end;
    }
    gbx_memory_range whole = {run->begin, run->end, access, NO_INDEX};
    return gbx_memory_map_set(o->map, &whole);
}

static gbx_status take_task(ordering *o, const gbx_audit_task *task) {
    o->first_race = o->state->race_count;
    for (uint64_t i = task->first; i < task->first + task->count; ++i) {
        gbx_access *access = &o->state->accesses[i];
        gbx_byte_runs runs;
        gbx_byte_run run;
        GBX_TRY(gbx_access_fit(o->state, o->map, access));
        if (!access->is_followed)
            continue;
        GBX_TRY(gbx_access_runs(o->state, access, &runs));
        o->last_node = NO_INDEX;
        while (gbx_byte_runs_next(&runs, &run))
            GBX_TRY(access->is_write ? write_run(o, i, &run) : read_run(o, i, &run));
    }
    return NULL;
}

static gbx_status find_unordered(gbx_audit_state *state) {
    ordering o = {.state = state};
    gbx_status status = gbx_memory_map_create(GBX_OFFSETS_STAY, &o.map);
    for (uint64_t i = 0; !status && i < state->task_count; ++i)
        status = take_task(&o, &state->tasks[i]);
    gbx_memory_map_destroy(o.map);
    free(o.nodes);
    return status;
}

/* --- both --- */

gbx_status gbx_audit_find_races(gbx_audit_state *state) {
    sweep s = {.state = state,
               .order = malloc((state->task_count + 1) * sizeof *s.order),
               .running = malloc(RUNNING_MAX * sizeof *s.running)};
    gbx_status status = NULL;
    if (!s.order || !s.running)
        status = gbx_fail_memory("sorting %" PRIu64 " tasks", state->task_count);
    if (!status)
        status = sweep_tasks(&s);
    if (!status && state->audit->counts.has_edges)
        status = find_unordered(state);
    if (!status) {
        unite_races(state);
        status = link_races(state);
    }
    free(s.order);
    free(s.running);
    return status;
}
