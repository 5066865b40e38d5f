/* Tasks that ran at the same time, by the clock, and share memory that one of them writes. */
#include <inttypes.h>
#include <stdlib.h>

#include <glassbox/tensor.h>

#include "analysis/audit/internal.h"
#include "base/memory.h"

/* More cannot have run at a time: a chip has 72 cores. */
enum { RUNNING_MAX = 4096 };

/* Pairs that are kept. */
#define RACES_MAX (UINT64_C(1) << 20)

typedef struct sweep {
    gbx_audit_state *state;
    gbx_memory_map *map; /* of one access */
    uint64_t *order;     /* tasks by the time of their dispatch */
    uint64_t *running;
    uint64_t running_count;
} sweep;

gbx_status gbx_audit_add_race(gbx_audit_state *state, uint64_t one, uint64_t other,
                              bool is_concurrent, bool has_no_path) {
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

/* Views whose bytes are not one range. gbx_tensor_overlaps says yes where it would take too long to
 * prove a no: then their pieces tell. */
static gbx_status check_views(sweep *s, const gbx_access *a, const gbx_access *b,
                              bool *out_do_overlap) {
    gbx_tensor a_view, b_view;
    gbx_runs runs;
    gbx_run run;
    gbx_memory_range found;
    bool is_made = false;
    GBX_TRY(gbx_access_view(s->state, a, &a_view));
    GBX_TRY(gbx_access_view(s->state, b, &b_view));
    *out_do_overlap = gbx_tensor_overlaps(&a_view, &b_view);
    if (*out_do_overlap)
        GBX_TRY(gbx_access_map_pair(s->state, a, b, s->map, &is_made));
    if (!is_made)
        return NULL;
    GBX_TRY(gbx_access_runs(s->state, b, &runs));
    *out_do_overlap = false;
    while (!*out_do_overlap && gbx_runs_next(&runs, &run))
        *out_do_overlap = gbx_memory_map_find(s->map, run.begin, &found) && found.begin < run.end;
    return NULL;
}

static gbx_status check_pair(sweep *s, uint64_t one, uint64_t other) {
    const gbx_access *a = &s->state->accesses[one];
    const gbx_access *b = &s->state->accesses[other];
    if ((!a->is_write && !b->is_write) || a->begin >= b->end || b->begin >= a->end)
        return NULL;
    bool do_overlap = true;
    if (!a->is_contiguous || !b->is_contiguous)
        GBX_TRY(check_views(s, a, b, &do_overlap));
    return do_overlap ? gbx_audit_add_race(s->state, one, other, true, false) : NULL;
}

static gbx_status check_tasks(sweep *s, const gbx_audit_task *a, const gbx_audit_task *b) {
    for (uint64_t i = a->first; i < a->first + a->count; ++i)
        for (uint64_t k = b->first; k < b->first + b->count; ++k)
            GBX_TRY(check_pair(s, i, k));
    return NULL;
}

/* A task that did not complete wrote nothing that is known, and read what it read when it began. */
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
                        "auditing the dump: by its times more than %d tasks ran when task %" PRIu64
                        " began, which no chip can",
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

static int compare_races(const void *a, const void *b) {
    const gbx_race *left = a;
    const gbx_race *right = b;
    if (left->first != right->first)
        return left->first < right->first ? -1 : 1;
    return left->second < right->second ? -1 : left->second > right->second;
}

/* Each pair once, with all that is known of it. */
static void unite_races(gbx_audit_state *state) {
    uint64_t kept = 0;
    if (state->race_count == 0)
        return;
    qsort(state->races, state->race_count, sizeof *state->races, compare_races);
    for (uint64_t i = 1; i < state->race_count; ++i) {
        gbx_race *last = &state->races[kept];
        if (compare_races(last, &state->races[i]) != 0) {
            state->races[++kept] = state->races[i];
            continue;
        }
        last->is_concurrent |= state->races[i].is_concurrent;
        last->has_no_path |= state->races[i].has_no_path;
    }
    state->race_count = kept + 1;
}

static int compare_seconds(const void *a, const void *b, void *context) {
    const gbx_race *races = context;
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    if (races[left].second != races[right].second)
        return races[left].second < races[right].second ? -1 : 1;
    return left < right ? -1 : left > right;
}

static gbx_status sort_by_second(gbx_audit_state *state) {
    uint64_t count = state->race_count;
    state->races_by_second = malloc((count + 1) * sizeof *state->races_by_second);
    if (!state->races_by_second)
        return gbx_fail_memory("sorting %" PRIu64 " pairs of tasks", count);
    for (uint64_t i = 0; i < count; ++i)
        state->races_by_second[i] = i;
    if (count > 1)
        qsort_r(state->races_by_second, count, sizeof *state->races_by_second, compare_seconds,
                state->races);
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

gbx_status gbx_audit_find_races(gbx_audit_state *state) {
    sweep s = {.state = state,
               .order = malloc((state->task_count + 1) * sizeof *s.order),
               .running = malloc(RUNNING_MAX * sizeof *s.running)};
    gbx_status status = NULL;
    if (!s.order || !s.running)
        status = gbx_fail_memory("sorting %" PRIu64 " tasks", state->task_count);
    if (!status)
        status = gbx_memory_map_create(GBX_OFFSETS_MOVE, &s.map);
    if (!status)
        status = sweep_tasks(&s);
    if (!status && state->audit->counts.has_edges)
        status = gbx_audit_find_unordered(state);
    if (!status) {
        unite_races(state);
        status = sort_by_second(state);
    }
    gbx_memory_map_destroy(s.map);
    free(s.order);
    free(s.running);
    return status;
}
