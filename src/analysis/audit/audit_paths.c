/*
 * Accesses to the same memory that no path of the graph orders, whatever the clock said.
 *
 * Tasks are gone through in graph order. Of every range of memory its last writer is known and who
 * has read it since: who comes next has to be after them. Those who are after another reader are
 * enough, so a chain of readers keeps one.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/audit/internal.h"
#include "base/memory.h"

#define NOBODY UINT64_MAX
#define NODES_MAX (UINT64_C(1) << 26) /* 1 GiB */

/* Readers of a range, the last one first; ranges that were one share the rest. */
typedef struct reader_node {
    uint64_t access;
    uint64_t next; /* NOBODY for none */
} reader_node;

/* The owner of a range is its last writer, NOBODY for none; the offset is its first reader_node. */
typedef struct ordering {
    gbx_audit_state *state;
    gbx_memory_map *map;
    reader_node *nodes;
    uint64_t count;
    uint64_t capacity;
    uint64_t first_race; /* of the task at hand */
    uint64_t last_node;  /* of the access at hand; NOBODY before the first */
} ordering;

/* Whether the pair is one of those of the last few that were found. */
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
    if (first == second || gbx_graph_is_before(state->graph, first->number, second->number) ||
        is_known(o, earlier, later))
        return NULL;
    return gbx_audit_add_race(state, earlier, later, false, true);
}

/* Neighbouring ranges of a view mostly have the same readers, and then one node. */
static gbx_status add_node(ordering *o, uint64_t access, uint64_t next, uint64_t *out_node) {
    if (o->last_node != NOBODY && o->nodes[o->last_node].next == next) {
        *out_node = o->last_node;
        return NULL;
    }
    if (o->count == NODES_MAX)
        return gbx_fail(GBX_EXHAUSTED,
                        "ranges of the dump's memory have more than %" PRIu64
                        " readers, which is more than can be followed",
                        NODES_MAX);
    GBX_TRY(gbx_array_reserve(&o->nodes, &o->capacity, o->count + 1,
                              "listing the readers of ranges of memory"));
    o->nodes[o->count] = (reader_node){access, next};
    *out_node = o->last_node = o->count++;
    return NULL;
}

/* --- reading --- */

/* The readers that the one at hand is not after. */
static uint64_t skip_earlier(const ordering *o, uint64_t node, uint64_t access) {
    const gbx_audit_state *state = o->state;
    uint64_t task = state->tasks[state->accesses[access].task].number;
    while (node != NOBODY) {
        uint64_t other = state->tasks[state->accesses[o->nodes[node].access].task].number;
        if (other != task && !gbx_graph_is_before(state->graph, other, task))
            break;
        node = o->nodes[node].next;
    }
    return node;
}

static gbx_status read_range(ordering *o, uint64_t access, const gbx_memory_range *known) {
    gbx_memory_range range = *known;
    if (range.owner != NOBODY)
        GBX_TRY(check_order(o, range.owner, access));
    GBX_TRY(add_node(o, access, skip_earlier(o, range.offset, access), &range.offset));
    return gbx_memory_map_set(o->map, &range);
}

/* The part of [at, end) of which the same is known. */
static gbx_memory_range known_range(const ordering *o, uint64_t at, uint64_t end) {
    gbx_memory_range found;
    gbx_memory_range range = {at, end, NOBODY, NOBODY};
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

static gbx_status read_run(ordering *o, uint64_t access, const gbx_run *run) {
    for (uint64_t at = run->begin; at < run->end;) {
        gbx_memory_range range = known_range(o, at, run->end);
        GBX_TRY(read_range(o, access, &range));
        at = range.end;
    }
    return NULL;
}

/* --- writing --- */

static gbx_status write_run(ordering *o, uint64_t access, const gbx_run *run) {
    for (uint64_t at = run->begin; at < run->end;) {
        gbx_memory_range range = known_range(o, at, run->end);
        if (range.owner != NOBODY)
            GBX_TRY(check_order(o, range.owner, access));
        for (uint64_t node = range.offset; node != NOBODY; node = o->nodes[node].next)
            GBX_TRY(check_order(o, o->nodes[node].access, access));
        at = range.end;
    }
    gbx_memory_range whole = {run->begin, run->end, access, NOBODY};
    return gbx_memory_map_set(o->map, &whole);
}

/* --- the whole --- */

static gbx_status take_access(ordering *o, uint64_t index) {
    gbx_access *access = &o->state->accesses[index];
    gbx_runs runs;
    gbx_run run;
    GBX_TRY(gbx_access_fit(o->state, o->map, access));
    if (!access->is_followed)
        return NULL;
    GBX_TRY(gbx_access_runs(o->state, access, &runs));
    o->last_node = NOBODY;
    while (gbx_runs_next(&runs, &run))
        GBX_TRY(access->is_write ? write_run(o, index, &run) : read_run(o, index, &run));
    return NULL;
}

static gbx_status take_task(ordering *o, const gbx_audit_task *task) {
    o->first_race = o->state->race_count;
    for (uint64_t i = task->first; i < task->first + task->count; ++i)
        GBX_TRY(take_access(o, i));
    return NULL;
}

gbx_status gbx_audit_find_unordered(gbx_audit_state *state) {
    ordering o = {.state = state};
    gbx_status status = gbx_memory_map_create(GBX_OFFSETS_STAY, &o.map);
    for (uint64_t i = 0; !status && i < state->task_count; ++i)
        status = take_task(&o, &state->tasks[i]);
    gbx_memory_map_destroy(o.map);
    free(o.nodes);
    return status;
}
