/*
 * Replays memory from the records, in the order of their times: outputs are written when their
 * tasks complete, inputs are compared with what is there. Bytes that no task wrote become known
 * with their first reader; bytes of a finding are taken from its reader afterwards. In the end, the
 * results of the run are compared like inputs.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/audit/internal.h"
#include "base/memory.h"

enum { PROGRESS_STEP = 256 };

/* --- explaining a difference --- */

/* Whether a writer of these bytes ran while the access was read. */
static bool has_writer(const gbx_audit_state *state, uint64_t access,
                       const gbx_difference *difference) {
    if (!state->accesses[access].has_race || state->are_races_cut)
        return state->accesses[access].has_race;
    uint64_t i = state->accesses[access].first_link;
    for (; i < 2 * state->race_count && state->links[i].access == access; ++i) {
        const gbx_race *race = &state->races[state->links[i].race];
        const gbx_access *other =
            &state->accesses[race->first == access ? race->second : race->first];
        if (race->is_concurrent && other->begin < difference->end && difference->begin < other->end)
            return true;
    }
    return false;
}

/* Whether a task ran since whose outputs are not all in the dump, or may not be. */
static bool may_be_missing(const gbx_audit_state *state, const gbx_access *reader,
                           const gbx_access *owner) {
    if (state->is_any_missing)
        return true;
    for (uint64_t i = 0; state->audit->counts.missing_tasks > 0 && i < state->task_count; ++i) {
        const gbx_audit_task *task = &state->tasks[i];
        if (task->is_missing && i != reader->task && task->begin_ns < reader->time_ns &&
            task->end_ns > owner->seen_ns)
            return true;
    }
    return false;
}

gbx_change gbx_audit_explain(const gbx_audit_state *state, uint64_t raced, const gbx_access *reader,
                             const gbx_difference *difference) {
    if (has_writer(state, raced, difference))
        return GBX_CHANGE_RACED;
    return may_be_missing(state, reader, &state->accesses[difference->owner])
               ? GBX_CHANGE_MISSING
               : GBX_CHANGE_UNDECLARED;
}

/* --- updating the map --- */

/* Whether the access replaces what was known of a range: it differs, or only it has bytes. */
static bool takes_over(const gbx_audit_state *state, const gbx_memory_range *known,
                       uint64_t index) {
    const gbx_access *access = &state->accesses[index];
    const gbx_access *owner = &state->accesses[known->owner];
    return gbx_memory_difference_of(state, known->owner) ||
           (access->has_bytes && !owner->has_bytes);
}

static gbx_status take_over_run(gbx_audit_state *state, uint64_t index, const gbx_byte_run *run) {
    for (uint64_t at = run->begin; at < run->end;) {
        gbx_memory_range known;
        gbx_memory_range seen = {at, run->end, index, run->offset + (at - run->begin)};
        bool is_found = gbx_memory_map_find(state->map, at, &known) && known.begin < run->end;
        bool is_gap = !is_found || known.begin > at;
        if (is_found)
            seen.end = is_gap ? known.begin : known.end < run->end ? known.end : run->end;
        if (is_gap || (known.owner != index && takes_over(state, &known, index)))
            GBX_TRY(gbx_memory_map_set(state->map, &seen));
        at = seen.end;
    }
    return NULL;
}

/* --- events --- */

static gbx_status replay_read(gbx_audit_state *state, uint64_t index) {
    gbx_access *access = &state->accesses[index];
    const gbx_memory_comparison *comparison = &state->comparison;
    bool is_raced = false, is_missing = false;
    GBX_TRY(gbx_access_fit(state, state->map, access));
    if (!access->is_followed) {
        ++state->audit->counts.not_compared[GBX_GAP_PIECES];
        return NULL;
    }
    GBX_TRY(gbx_memory_compare(state, access));
    for (size_t i = 0; i < comparison->count; ++i) {
        const gbx_difference *difference = &comparison->differences[i];
        gbx_change change = gbx_audit_explain(state, index, access, difference);
        is_raced |= change == GBX_CHANGE_RACED;
        is_missing |= change == GBX_CHANGE_MISSING;
        if (change == GBX_CHANGE_UNDECLARED)
            GBX_TRY(gbx_audit_report_change(state, access, difference));
    }
    if (is_raced)
        ++state->audit->counts.raced;
    else if (is_missing)
        ++state->audit->counts.not_compared[GBX_GAP_MISSING_OUTPUTS];
    else if (comparison->unknown_bytes > 0)
        ++state->audit->counts.not_compared[GBX_GAP_NO_BYTES];
    else if (comparison->known_bytes == 0)
        ++state->audit->counts.first_reads;
    else
        ++state->audit->counts.compared;
    bool is_equal = comparison->count == 0 && comparison->unknown_bytes == 0;
    if (is_equal && comparison->is_same)
        state->accesses[comparison->owner].seen_ns = access->time_ns;
    if (is_equal && comparison->known_bytes == access->whole)
        return NULL;
    gbx_byte_runs runs;
    gbx_byte_run run;
    GBX_TRY(gbx_access_runs(state, access, &runs));
    while (gbx_byte_runs_next(&runs, &run))
        GBX_TRY(take_over_run(state, index, &run));
    return NULL;
}

/* An output with too many pieces owns all of the memory that it may have written. */
static gbx_status replay_write(gbx_audit_state *state, uint64_t index) {
    gbx_access *access = &state->accesses[index];
    gbx_byte_runs runs;
    gbx_byte_run run;
    GBX_TRY(gbx_access_fit(state, state->map, access));
    if (!access->is_followed) {
        access->has_bytes = access->has_hash = false;
        gbx_memory_range hull = {access->begin, access->end, index, 0};
        return gbx_memory_map_set(state->map, &hull);
    }
    GBX_TRY(gbx_access_runs(state, access, &runs));
    while (gbx_byte_runs_next(&runs, &run)) {
        gbx_memory_range written = {run.begin, run.end, index, run.offset};
        GBX_TRY(gbx_memory_map_set(state->map, &written));
    }
    return NULL;
}

/* Whether it is a write of a task that began before that time. */
static bool is_earlier_task(const gbx_audit_state *state, const gbx_access *access) {
    return access->is_write && state->tasks[access->task].begin_ns < access->time_ns;
}

/* By time. At the same time, completions come before dispatches, and tasks that took no time by a
 * coarse clock come one after the other. Reads of a task come before its writes. */
static int compare_events(const void *a, const void *b, void *context) {
    const gbx_audit_state *state = context;
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    const gbx_access *one = &state->accesses[left];
    const gbx_access *other = &state->accesses[right];
    if (one->time_ns != other->time_ns)
        return one->time_ns < other->time_ns ? -1 : 1;
    bool is_one_earlier = is_earlier_task(state, one);
    if (is_one_earlier != is_earlier_task(state, other))
        return is_one_earlier ? -1 : 1;
    if (one->task != other->task)
        return one->task < other->task ? -1 : 1;
    return left < right ? -1 : left > right;
}

static gbx_status replay_all(gbx_audit_state *state, uint64_t *order) {
    gbx_memory_map_clear(state->map);
    for (uint64_t i = 0; i < state->access_count; ++i)
        order[i] = i;
    qsort_r(order, state->access_count, sizeof *order, compare_events, state);
    for (uint64_t i = 0; i < state->access_count; ++i) {
        if (state->progress && i % PROGRESS_STEP == 0)
            state->progress(state->context, i, state->access_count);
        GBX_TRY(state->accesses[order[i]].is_write ? replay_write(state, order[i])
                                                   : replay_read(state, order[i]));
    }
    GBX_TRY(gbx_audit_compare_results(state));
    for (uint64_t i = 0; i < state->access_count; ++i)
        state->audit->counts.unread += state->accesses[i].is_write && !state->accesses[i].is_read;
    return NULL;
}

gbx_status gbx_audit_replay(gbx_audit_state *state) {
    uint64_t *order = malloc((state->access_count + 1) * sizeof *order);
    if (!order)
        return gbx_fail_memory("sorting %" PRIu64 " records", state->access_count);
    gbx_status status = replay_all(state, order);
    free(order);
    return status;
}
