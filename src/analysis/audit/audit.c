#include "analysis/audit/audit.h"

#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/audit/internal.h"
#include "analysis/view_find.h"
#include "base/memory.h"
#include "base/numbers.h"

enum {
    NEAR_BYTES = 65536,  /* an output further away is no reason for suspicion */
    SEARCHED_MAX = 1000, /* findings with a search for suspects, which goes through all tasks */
    FINDINGS_MAX = 100000
};

static gbx_audit_side make_side(const gbx_audit_state *state, const gbx_access *access,
                                uint64_t begin, uint64_t end) {
    return (gbx_audit_side){.task = access->is_result ? 0 : state->tasks[access->task].number,
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

/* Whether a view has an element in [begin, end); true where that is not clear. */
static bool has_bytes(const gbx_tensor *view, uint64_t begin, uint64_t end) {
    gbx_view_element element;
    return begin < end &&
           gbx_view_find(view, (int64_t)(begin - view->data) * 8, (int64_t)(end - view->data) * 8,
                         &element) != GBX_VIEW_LACKS_IT;
}

/* Bytes between [begin, end) and the nearest element of a view on one side; NEAR_BYTES + 1 if there
 * is none within. */
static uint64_t measure(const gbx_tensor *view, uint64_t begin, uint64_t end, bool is_before) {
    uint64_t low = 0, high = NEAR_BYTES + 1;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        bool is_there = is_before ? has_bytes(view, begin - middle - 1, begin)
                                  : has_bytes(view, end, end + middle + 1);
        if (is_there)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static gbx_audit_suspect suspect_output(const gbx_audit_suspect *base, uint64_t before,
                                        uint64_t after) {
    gbx_audit_suspect suspect = *base;
    if (before > NEAR_BYTES && after > NEAR_BYTES)
        return suspect;
    suspect.reason = before <= after ? GBX_SUSPECT_ENDS_BEFORE : GBX_SUSPECT_BEGINS_AFTER;
    suspect.distance = before <= after ? before : after;
    return suspect;
}

/* How far one access makes its task a suspect. */
static gbx_status suspect_access(gbx_audit_state *state, const gbx_access *access, uint64_t begin,
                                 uint64_t end, gbx_audit_suspect *out_suspect) {
    gbx_audit_suspect suspect = {.entry = access->entry, .reason = GBX_SUSPECT_RAN};
    bool is_far = access->begin >= access->end ||
                  (access->end <= begin && begin - access->end > NEAR_BYTES) ||
                  (access->begin >= end && access->begin - end > NEAR_BYTES);
    *out_suspect = suspect;
    if (is_far)
        return NULL;
    uint64_t before = access->end <= begin ? begin - access->end : NEAR_BYTES + 1;
    uint64_t after = access->begin >= end ? access->begin - end : NEAR_BYTES + 1;
    bool is_there = before > NEAR_BYTES && after > NEAR_BYTES;
    if (is_there && !access->is_contiguous) {
        /* The bytes may lie in a gap of the view, as in the next tile of the same rows. */
        gbx_tensor view;
        GBX_TRY(gbx_access_view(state, access, &view));
        is_there = has_bytes(&view, begin, end);
        if (!is_there && access->is_write) {
            before = measure(&view, begin, end, true);
            after = measure(&view, begin, end, false);
        }
    }
    if (is_there)
        out_suspect->reason = GBX_SUSPECT_HAS_IT;
    else if (access->is_write)
        *out_suspect = suspect_output(&suspect, before, after);
    return NULL;
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

static gbx_status suspect_task(gbx_audit_state *state, const gbx_audit_task *task, uint64_t begin,
                               uint64_t end, gbx_audit_suspect *out_suspect) {
    gbx_audit_suspect best = {.entry = UINT64_MAX, .reason = GBX_SUSPECT_RAN};
    for (uint64_t i = task->first; i < task->first + task->count; ++i) {
        gbx_audit_suspect suspect;
        GBX_TRY(suspect_access(state, &state->accesses[i], begin, end, &suspect));
        if (is_likelier(&suspect, &best))
            best = suspect;
    }
    best.task = task->number;
    *out_suspect = best;
    return NULL;
}

/* Keeps the likeliest first; equal ones stay in order. */
static void add_suspect(const gbx_audit_suspect *suspect, gbx_audit_suspect *suspects,
                        uint64_t *count) {
    uint64_t kept = gbx_min_u64(*count, GBX_AUDIT_SUSPECTS);
    uint64_t at = kept;
    while (at > 0 && is_likelier(suspect, &suspects[at - 1]))
        --at;
    ++*count;
    if (at == GBX_AUDIT_SUSPECTS)
        return;
    uint64_t moved = gbx_min_u64(kept, GBX_AUDIT_SUSPECTS - 1) - at;
    memmove(&suspects[at + 1], &suspects[at], moved * sizeof *suspect);
    suspects[at] = *suspect;
}

gbx_status gbx_audit_find_suspects(gbx_audit_state *state, const gbx_suspicion *suspicion,
                                   gbx_audit_suspect *out_suspects, uint64_t *out_count) {
    *out_count = 0;
    for (uint64_t i = 0; i < state->task_count; ++i) {
        const gbx_audit_task *task = &state->tasks[i];
        gbx_audit_suspect suspect;
        if (i == suspicion->except || task->begin_ns >= suspicion->before_ns ||
            task->end_ns <= suspicion->after_ns)
            continue;
        GBX_TRY(suspect_task(state, task, suspicion->begin, suspicion->end, &suspect));
        add_suspect(&suspect, out_suspects, out_count);
    }
    return NULL;
}

/* Rows of packed elements begin with a byte, also where their length is odd. */
static gbx_status renumber_packed(gbx_audit_state *state, gbx_audit_finding *finding) {
    gbx_result result;
    GBX_TRY(gbx_reader_result(gbx_entries_reader(state->entries), finding->result, &result));
    uint32_t ndims = result.record->head.ndims;
    uint64_t length = ndims ? (uint64_t)gbx_record_shape(result.record)[ndims - 1] : 1;
    uint64_t byte = finding->element / 2, row_bytes = (length + 1) / 2;
    uint64_t column = byte % row_bytes * 2 + finding->element % 2;
    finding->has_element = column < length; /* else it is the half byte behind the row */
    finding->element = byte / row_bytes * length + column;
    return NULL;
}

gbx_status gbx_audit_report_change(gbx_audit_state *state, const gbx_access *reader,
                                   const gbx_difference *difference) {
    const gbx_access *owner = &state->accesses[difference->owner];
    gbx_audit_finding finding = {.kind = reader->is_result ? GBX_AUDIT_CHANGED_RESULT
                                                           : GBX_AUDIT_UNDECLARED_WRITE,
                                 .is_result = reader->is_result,
                                 .result = reader->is_result ? reader->entry : 0,
                                 .is_compared = !difference->is_by_hash,
                                 .is_seen = !owner->is_write};
    if (is_full(state))
        return NULL;
    GBX_TRY(gbx_memory_compare_element(state, reader, difference, &finding));
    if (finding.has_element && reader->is_result && gbx_dtype_is_packed(finding.dtype))
        GBX_TRY(renumber_packed(state, &finding));
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
    /* All tasks that ran between the last time the bytes were right and now. */
    gbx_suspicion suspicion = {begin, end, owner->seen_ns, reader->time_ns, reader->task};
    if (finding.has_suspects)
        GBX_TRY(
            gbx_audit_find_suspects(state, &suspicion, finding.suspects, &finding.suspect_count));
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
    [GBX_AUDIT_CHANGED_RESULT] = {"changed_result", NULL, "changed results"},
};
const gbx_name_set gbx_audit_kinds = {.rows = kinds, .count = GBX_AUDIT_KIND_COUNT};

static const gbx_name reasons[] = {
    [GBX_SUSPECT_HAS_IT] = {"argument_there", NULL, NULL},
    [GBX_SUSPECT_ENDS_BEFORE] = {"output_ends_before", NULL, NULL},
    [GBX_SUSPECT_BEGINS_AFTER] = {"output_begins_after", NULL, NULL},
    [GBX_SUSPECT_RAN] = {"ran", NULL, NULL},
};
const gbx_name_set gbx_audit_reasons = {.rows = reasons, .count = GBX_SUSPECT_RAN + 1};

/* By the later of both tasks in graph order; results of the run come last. */
static int compare_findings(const void *a, const void *b, void *context) {
    const gbx_task_graph *graph = context;
    uint64_t keys[2][5];
    const gbx_audit_finding *both[2] = {a, b};
    for (int i = 0; i < 2; ++i) {
        uint64_t first = gbx_task_graph_place(graph, both[i]->first.task);
        uint64_t second =
            both[i]->is_result ? UINT64_MAX : gbx_task_graph_place(graph, both[i]->second.task);
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
