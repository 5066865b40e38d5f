#include "analysis/audit/audit.h"

#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/audit/internal.h"
#include "base/memory.h"
#include "base/numbers.h"

enum {
    NEAR_BYTES = 65536,  /* an output further away is no reason for suspicion */
    SEARCHED_MAX = 1000, /* findings with a search for suspects, which goes through all tasks */
    FINDINGS_MAX = 100000
};

static gbx_audit_side make_side(const gbx_audit_state *state, const gbx_access *access,
                                uint64_t begin, uint64_t end) {
    return (gbx_audit_side){.task = state->tasks[access->task].number,
                            .entry = access->entry,
                            .begin = (int64_t)(begin - access->buffer),
                            .end = (int64_t)(end - access->buffer)};
}

/* Called before a finding is made: if the list is full, notes that there are more. */
static bool is_full(gbx_audit_state *state) {
    if (state->audit->finding_count < FINDINGS_MAX)
        return false;
    state->audit->counts.has_more = true;
    return true;
}

static gbx_status add_finding(gbx_audit_state *state, const gbx_audit_finding *finding) {
    gbx_audit *audit = state->audit;
    GBX_TRY(gbx_array_reserve(&audit->findings, &state->finding_capacity, audit->finding_count + 1,
                              "listing findings"));
    audit->findings[audit->finding_count++] = *finding;
    return NULL;
}

/* --- suspects --- */

/* How far one access makes its task a suspect. */
static gbx_audit_suspect suspect_access(const gbx_access *access, uint64_t begin, uint64_t end) {
    gbx_audit_suspect suspect = {.entry = access->entry, .reason = GBX_SUSPECT_RAN};
    if (access->begin >= access->end)
        return suspect;
    if (access->begin < end && begin < access->end) {
        suspect.reason = GBX_SUSPECT_HAS_IT;
    } else if (access->is_write && access->end <= begin && begin - access->end <= NEAR_BYTES) {
        suspect.reason = GBX_SUSPECT_ENDS_BEFORE;
        suspect.distance = begin - access->end;
    } else if (access->is_write && access->begin >= end && access->begin - end <= NEAR_BYTES) {
        suspect.reason = GBX_SUSPECT_BEGINS_AFTER;
        suspect.distance = access->begin - end;
    }
    return suspect;
}

/* Likeliest first: an adjacent output, probably written out of bounds; an argument that lies there;
 * the nearest output on either side. */
static int suspect_class(const gbx_audit_suspect *suspect) {
    if (suspect->reason == GBX_SUSPECT_RAN)
        return 3;
    if (suspect->reason == GBX_SUSPECT_HAS_IT)
        return 1;
    return suspect->distance == 0 ? 0 : 2;
}

static bool is_likelier(const gbx_audit_suspect *a, const gbx_audit_suspect *b) {
    int a_class = suspect_class(a);
    int b_class = suspect_class(b);
    if (a_class != b_class)
        return a_class < b_class;
    return a->distance < b->distance;
}

static gbx_audit_suspect suspect_task(const gbx_audit_state *state, const gbx_audit_task *task,
                                      uint64_t begin, uint64_t end) {
    gbx_audit_suspect best = {.entry = UINT64_MAX, .reason = GBX_SUSPECT_RAN};
    for (uint64_t i = task->first; i < task->first + task->count; ++i) {
        gbx_audit_suspect suspect = suspect_access(&state->accesses[i], begin, end);
        if (is_likelier(&suspect, &best))
            best = suspect;
    }
    best.task = task->number;
    return best;
}

/* Keeps the likeliest first; equal ones stay in order. */
static void add_suspect(gbx_audit_finding *finding, const gbx_audit_suspect *suspect) {
    uint64_t kept = gbx_min_u64(finding->suspect_count, GBX_AUDIT_SUSPECTS);
    uint64_t at = kept;
    while (at > 0 && is_likelier(suspect, &finding->suspects[at - 1]))
        --at;
    ++finding->suspect_count;
    if (at == GBX_AUDIT_SUSPECTS)
        return;
    uint64_t moved = gbx_min_u64(kept, GBX_AUDIT_SUSPECTS - 1) - at;
    memmove(&finding->suspects[at + 1], &finding->suspects[at], moved * sizeof *suspect);
    finding->suspects[at] = *suspect;
}

gbx_status gbx_audit_report_change(gbx_audit_state *state, const gbx_access *reader,
                                   const gbx_difference *difference) {
    const gbx_access *owner = &state->accesses[difference->owner];
    gbx_audit_finding finding = {.kind = GBX_AUDIT_UNDECLARED_WRITE,
                                 .is_compared = !difference->is_by_hash,
                                 .is_seen = !owner->is_write};
    if (is_full(state))
        return NULL;
    GBX_TRY(gbx_memory_compare_element(state, reader, difference, &finding));
    /* Widens the bytes that differ to complete elements. */
    uint32_t bits = gbx_dtype_bits(finding.dtype);
    uint64_t bytes = bits < 8 ? 1 : bits / 8;
    uint64_t begin = difference->begin - (difference->begin - reader->buffer) % bytes;
    uint64_t end = difference->end + (bytes - (difference->end - reader->buffer) % bytes) % bytes;
    finding.address = begin;
    finding.bytes = end - begin;
    finding.first = make_side(state, owner, begin, end);
    finding.second = make_side(state, reader, begin, end);
    finding.has_suspects = state->audit->finding_count < SEARCHED_MAX;
    if (finding.has_suspects) {
        /* All tasks that ran between the last time the bytes were right and now. */
        for (uint64_t i = 0; i < state->task_count; ++i) {
            const gbx_audit_task *task = &state->tasks[i];
            if (i == reader->task || task->begin_ns >= reader->time_ns ||
                task->end_ns <= owner->seen_ns)
                continue;
            gbx_audit_suspect suspect =
                suspect_task(state, task, finding.address, finding.address + finding.bytes);
            add_suspect(&finding, &suspect);
        }
    }
    return add_finding(state, &finding);
}

/* --- unordered pairs --- */

/* The other access of an inout; NULL for an input or an output. */
static const gbx_access *other_half(const gbx_audit_state *state, const gbx_access *access) {
    const gbx_audit_task *task = &state->tasks[access->task];
    for (uint64_t i = task->first; i < task->first + task->count; ++i) {
        const gbx_access *other = &state->accesses[i];
        if (other->arg_index == access->arg_index && other->is_write != access->is_write &&
            other->begin == access->begin && other->end == access->end)
            return other;
    }
    return NULL;
}

/*
 * An inout is both read and written: one pair of arguments makes several pairs of accesses. For an
 * output and a later inout the read is reported, in all other cases the write.
 */
static bool is_reported_otherwise(const gbx_audit_state *state, const gbx_race *race) {
    const gbx_access *first = &state->accesses[race->first];
    const gbx_access *second = &state->accesses[race->second];
    bool is_plain_output = first->is_write && !other_half(state, first);
    if (first->is_write && second->is_write)
        return is_plain_output && other_half(state, second);
    const gbx_access *reader = first->is_write ? second : first;
    return other_half(state, reader) && !(is_plain_output && reader == second);
}

/* Finds the bytes that both access, and the first element of `second` that differs from `first`. */
static gbx_status describe_pair(gbx_audit_state *state, const gbx_access *first,
                                const gbx_access *second, gbx_audit_finding *finding) {
    const gbx_memory_comparison *comparison = &state->comparison;
    uint64_t begin = first->begin > second->begin ? first->begin : second->begin;
    uint64_t end = first->end < second->end ? first->end : second->end;
    bool is_made;
    GBX_TRY(gbx_access_map_pair(state, first, second, &is_made));
    if (is_made) {
        GBX_TRY(gbx_memory_compare(state, second));
        if (comparison->known_bytes > 0) {
            begin = comparison->begin;
            end = comparison->end;
        }
        finding->is_compared = comparison->unknown_bytes == 0 && !finding->is_read_first;
        if (comparison->count > 0 && !finding->is_read_first)
            GBX_TRY(
                gbx_memory_compare_element(state, second, &comparison->differences[0], finding));
    }
    finding->address = begin;
    finding->bytes = end - begin;
    finding->first = make_side(state, first, begin, end);
    finding->second = make_side(state, second, begin, end);
    return NULL;
}

/* For a pair found by time, the graph must still be asked. */
static bool has_no_path(const gbx_audit_state *state, const gbx_race *race) {
    if (race->has_no_path || !state->audit->counts.has_edges)
        return race->has_no_path;
    uint64_t first = state->tasks[state->accesses[race->first].task].number;
    uint64_t second = state->tasks[state->accesses[race->second].task].number;
    return !gbx_task_graph_is_before(state->graph, first, second);
}

static gbx_status report_race(gbx_audit_state *state, const gbx_race *race) {
    const gbx_access *first = &state->accesses[race->first];
    const gbx_access *second = &state->accesses[race->second];
    bool is_read_first = !first->is_write;
    gbx_audit_finding finding = {.kind = first->is_write && second->is_write
                                             ? GBX_AUDIT_OVERLAPPING_WRITES
                                             : GBX_AUDIT_READ_TOO_EARLY,
                                 .is_concurrent = race->is_concurrent,
                                 .is_read_first = is_read_first};
    if (is_full(state))
        return NULL;
    finding.has_no_path = has_no_path(state, race);
    finding.is_read_late =
        is_read_first && state->tasks[second->task].end_ns <= state->tasks[first->task].begin_ns;
    GBX_TRY(describe_pair(state, is_read_first ? second : first, is_read_first ? first : second,
                          &finding));
    return add_finding(state, &finding);
}

/* --- running --- */

static const gbx_name kinds[GBX_AUDIT_KIND_COUNT] = {
    [GBX_AUDIT_UNDECLARED_WRITE] = {"undeclared_write", NULL, "undeclared writes"},
    [GBX_AUDIT_READ_TOO_EARLY] = {"read_too_early", NULL, "reads too early"},
    [GBX_AUDIT_OVERLAPPING_WRITES] = {"overlapping_writes", NULL, "overlapping writes"},
};
const gbx_name_set gbx_audit_kinds = {.rows = kinds, .count = GBX_AUDIT_KIND_COUNT};

static const gbx_name reasons[] = {
    [GBX_SUSPECT_HAS_IT] = {"argument_there", NULL, NULL},
    [GBX_SUSPECT_ENDS_BEFORE] = {"output_ends_before", NULL, NULL},
    [GBX_SUSPECT_BEGINS_AFTER] = {"output_begins_after", NULL, NULL},
    [GBX_SUSPECT_RAN] = {"ran", NULL, NULL},
};
const gbx_name_set gbx_audit_reasons = {.rows = reasons, .count = GBX_SUSPECT_RAN + 1};

/* By the later of both tasks in graph order. */
static int compare_findings(const void *a, const void *b, void *context) {
    const gbx_task_graph *graph = context;
    uint64_t keys[2][5];
    const gbx_audit_finding *both[2] = {a, b};
    for (int i = 0; i < 2; ++i) {
        uint64_t first = gbx_task_graph_place(graph, both[i]->first.task);
        uint64_t second = gbx_task_graph_place(graph, both[i]->second.task);
        keys[i][0] = first > second ? first : second;
        keys[i][1] = first > second ? second : first;
        keys[i][2] = both[i]->second.entry;
        keys[i][3] = both[i]->first.entry;
        keys[i][4] = both[i]->address;
    }
    for (int i = 0; i < 5; ++i)
        if (keys[0][i] != keys[1][i])
            return keys[0][i] < keys[1][i] ? -1 : 1;
    return 0;
}

static gbx_status run(gbx_audit_state *state) {
    GBX_TRY(gbx_memory_comparison_create(&state->comparison));
    GBX_TRY(gbx_memory_map_create(GBX_OFFSETS_MOVE, &state->map));
    GBX_TRY(gbx_audit_gather(state));
    GBX_TRY(gbx_audit_find_races(state));
    GBX_TRY(gbx_audit_replay(state));
    for (uint64_t i = 0; i < state->race_count; ++i)
        if (!is_reported_otherwise(state, &state->races[i]))
            GBX_TRY(report_race(state, &state->races[i]));
    if (state->audit->finding_count > 1)
        qsort_r(state->audit->findings, state->audit->finding_count, sizeof *state->audit->findings,
                compare_findings, (void *)state->graph);
    return NULL;
}

gbx_status gbx_audit_run(gbx_entries *entries, const gbx_task_graph *graph,
                         gbx_audit_progress progress, void *context, gbx_audit *out_audit) {
    gbx_audit_state state = {.entries = entries,
                             .graph = graph,
                             .progress = progress,
                             .context = context,
                             .audit = out_audit};
    *out_audit = (gbx_audit){0};
    gbx_status status = run(&state);
    free(state.tasks);
    free(state.accesses);
    free(state.races);
    free(state.links);
    gbx_memory_map_destroy(state.map);
    gbx_memory_comparison_free(&state.comparison);
    if (status)
        gbx_audit_free(out_audit);
    return status;
}

void gbx_audit_free(gbx_audit *audit) {
    free(audit->findings);
    *audit = (gbx_audit){0};
}

uint64_t gbx_audit_left_out(const gbx_audit_counts *counts) {
    uint64_t left_out = counts->unfollowed + counts->in_flight;
    for (int gap = 0; gap < GBX_GAP_COUNT; ++gap)
        left_out += counts->not_compared[gap];
    return left_out;
}

gbx_audit_lack gbx_audit_find_lack(const gbx_audit_counts *counts) {
    if (!counts->is_complete)
        return GBX_AUDIT_LACKS_END;
    if (counts->missing_tasks == UINT64_MAX)
        return GBX_AUDIT_LACKS_ARGUMENTS;
    return counts->missing_tasks > 0 ? GBX_AUDIT_LACKS_SOME_OUTPUTS : GBX_AUDIT_LACKS_NOTHING;
}

void gbx_audit_missing_edge(const gbx_audit_finding *finding, uint64_t *out_from,
                            uint64_t *out_to) {
    *out_from = finding->is_read_first ? finding->second.task : finding->first.task;
    *out_to = finding->is_read_first ? finding->first.task : finding->second.task;
}
