/* What each question found, as clues; and how much it could not ask. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diagnose/internal.h"

static const gbx_clue about_nobody = {
    .task = GBX_DIAGNOSIS_NOBODY, .other = GBX_DIAGNOSIS_NOBODY, .place = UINT64_MAX};

static gbx_clue clue_of(gbx_clue_source source, gbx_diagnosis_kind kind, uint64_t task,
                        uint64_t index) {
    gbx_clue clue = about_nobody;
    clue.source = source;
    clue.kind = kind;
    clue.task = task;
    clue.index = index;
    return clue;
}

/* --- the dump --- */

/* The journal of a run that was killed has no end, and nobody has written manifests: that is no
 * damage. */
static bool follows_from_kill(const gbx_inquiry *q, const gbx_finding *finding) {
    const gbx_verification *v = &q->d->verification;
    bool has_payload = v->file_bytes > 0 || v->payload_bytes == 0;
    return gbx_reader_get_origin(q->reader)->records_path && !gbx_reader_end(q->reader) &&
           gbx_reader_get_extent(q->reader)->stop == GBX_STOP_END && !finding->has_place &&
           (finding->kind == GBX_FINDING_JOURNAL ||
            (finding->kind == GBX_FINDING_FILE && has_payload));
}

gbx_status gbx_clues_of_dump(gbx_inquiry *q) {
    const gbx_findings *findings = &q->d->verification.findings;
    size_t first = 0;
    while (first < findings->count && follows_from_kill(q, &findings->items[first]))
        ++first;
    if (first == findings->count)
        return NULL;
    gbx_clue clue = clue_of(GBX_CLUE_DUMP, GBX_DIAGNOSIS_DAMAGED_DUMP, GBX_DIAGNOSIS_NOBODY, first);
    /* A kernel that ended the run may have written into what was on its way to the disk. */
    clue.place = gbx_reader_has_ended_well(q->reader) ? 0 : UINT64_MAX;
    return gbx_inquiry_add(q, clue);
}

/* --- the run --- */

static const gbx_diagnosis_kind guard_kinds[] = {
    [GBX_RUN_FINDING_OVERRUN] = GBX_DIAGNOSIS_OVERRUN,
    [GBX_RUN_FINDING_UNDERRUN] = GBX_DIAGNOSIS_UNDERRUN,
    [GBX_RUN_FINDING_STRAY] = GBX_DIAGNOSIS_STRAY,
    [GBX_RUN_FINDING_ARGUMENTS] = GBX_DIAGNOSIS_ARGUMENTS};

/* The task that a guard is sure of, or takes for the likeliest. */
static uint64_t task_of_guard(const gbx_run_finding *f) {
    bool is_named =
        f->candidate_count > 0 && (f->certainty != GBX_CERTAINTY_OPEN || f->candidate_total == 1);
    return is_named ? f->candidates[0].task : GBX_DIAGNOSIS_NOBODY;
}

static gbx_status take_guards(gbx_inquiry *q) {
    gbx_diagnosis *d = q->d;
    d->guard_count = gbx_reader_list_count(q->reader, GBX_LIST_FINDINGS);
    d->guards = calloc(d->guard_count + 1, sizeof *d->guards);
    if (!d->guards)
        return gbx_fail_memory("diagnosing");
    for (size_t i = 0; i < d->guard_count; ++i) {
        const gbx_record *record;
        GBX_TRY(gbx_reader_list_at(q->reader, GBX_LIST_FINDINGS, i, &record));
        const gbx_run_finding *f = &((const gbx_record_finding *)(const void *)record)->finding;
        d->guards[i] = *f;
        if (f->kind >= sizeof guard_kinds / sizeof guard_kinds[0])
            continue;
        gbx_clue clue = clue_of(GBX_CLUE_GUARD, guard_kinds[f->kind], task_of_guard(f), i);
        if (clue.task == GBX_DIAGNOSIS_NOBODY && f->candidate_count > 0)
            clue.place = gbx_task_graph_place(q->graph, f->candidates[0].task);
        GBX_TRY(gbx_inquiry_add(q, clue));
    }
    return NULL;
}

/* The only task that did not complete; nobody if there are several. */
static uint64_t find_unended(const gbx_inquiry *q) {
    uint64_t unended = GBX_DIAGNOSIS_NOBODY;
    for (uint64_t i = 0; i < gbx_task_graph_count(q->graph); ++i) {
        const gbx_graph_task *task = gbx_task_graph_at(q->graph, i);
        if (task->end_ns != UINT64_MAX)
            continue;
        if (unended != GBX_DIAGNOSIS_NOBODY)
            return GBX_DIAGNOSIS_NOBODY;
        unended = task->task;
    }
    return unended;
}

/* The task that a run ended in, by its id; where END does not say, the only one that did not
 * complete. A run that was killed ended anywhere. */
static gbx_status find_end(gbx_inquiry *q, uint64_t *out_task) {
    const gbx_record_outcome *outcome = q->d->outcome;
    *out_task = GBX_DIAGNOSIS_NOBODY;
    if (!outcome || outcome->func_id == GBX_OUTCOME_NO_KERNEL) {
        if (gbx_reader_is_complete(q->reader))
            *out_task = find_unended(q);
        return NULL;
    }
    for (uint64_t i = gbx_task_graph_count(q->graph); i-- > 0;) {
        const gbx_graph_task *task = gbx_task_graph_at(q->graph, i);
        gbx_record_task record;
        bool is_found;
        GBX_TRY(gbx_reader_find_task(q->reader, task->task, &record, &is_found));
        if (!is_found || record.task_id != outcome->task_id)
            continue;
        *out_task = task->task;
        return NULL;
    }
    return NULL;
}

bool gbx_inquiry_has_failed(const gbx_inquiry *q) {
    const gbx_record_outcome *outcome = gbx_reader_outcome(q->reader);
    return (gbx_reader_get_origin(q->reader)->known & GBX_KNOWN_STATUS) &&
           !gbx_reader_has_ended_well(q->reader) &&
           gbx_reader_ending(q->reader) != GBX_ENDING_RECORDS_LOST &&
           !(outcome && outcome->fault == GBX_OUTCOME_GUARD);
}

static gbx_status take_end(gbx_inquiry *q) {
    const gbx_record_outcome *outcome = gbx_reader_outcome(q->reader);
    uint64_t task;
    q->d->outcome = outcome;
    if (!gbx_inquiry_has_failed(q))
        return NULL;
    GBX_TRY(find_end(q, &task));
    bool is_hang = outcome && outcome->fault == GBX_OUTCOME_HANG;
    gbx_diagnosis_kind kind = is_hang ? GBX_DIAGNOSIS_HANG : GBX_DIAGNOSIS_CRASH;
    if (task == GBX_DIAGNOSIS_NOBODY)
        kind = GBX_DIAGNOSIS_FAILED_RUN;
    gbx_clue clue = clue_of(GBX_CLUE_END, kind, task, 0);
    if (task == GBX_DIAGNOSIS_NOBODY)
        clue.other = find_unended(q);
    return gbx_inquiry_add(q, clue);
}

gbx_status gbx_clues_of_run(gbx_inquiry *q) {
    gbx_diagnosis_asked *asked = &q->d->asked[GBX_ASKED_RUN];
    bool is_known = gbx_reader_get_origin(q->reader)->has_findings;
    *(is_known ? &asked->tasks : &asked->not_asked) = q->d->tasks;
    if (!is_known)
        GBX_TRY(gbx_inquiry_lack(q, GBX_ASKED_RUN, "the dump does not say what the run noticed"));
    GBX_TRY(take_guards(q));
    return take_end(q);
}

/* --- the audit --- */

/* Of two tasks without order the one that comes second is accused: it did not wait. */
gbx_status gbx_inquiry_add_audit(gbx_inquiry *q, uint64_t index) {
    static const gbx_diagnosis_kind kinds[] = {
        [GBX_AUDIT_UNDECLARED_WRITE] = GBX_DIAGNOSIS_UNDECLARED_WRITE,
        [GBX_AUDIT_READ_TOO_EARLY] = GBX_DIAGNOSIS_READ_TOO_EARLY,
        [GBX_AUDIT_OVERLAPPING_WRITES] = GBX_DIAGNOSIS_OVERLAPPING_WRITES,
        [GBX_AUDIT_CHANGED_RESULT] = GBX_DIAGNOSIS_CHANGED_RESULT};
    const gbx_audit_finding *f = &q->d->audit.findings[index];
    bool is_change = f->kind == GBX_AUDIT_UNDECLARED_WRITE || f->kind == GBX_AUDIT_CHANGED_RESULT;
    gbx_clue clue = clue_of(GBX_CLUE_AUDIT, kinds[f->kind], GBX_DIAGNOSIS_NOBODY, index);
    clue.other = f->first.task;
    if (!is_change)
        clue.task = f->second.task;
    else
        clue.place = gbx_task_graph_place(q->graph, f->is_result ? f->first.task : f->second.task);
    return gbx_inquiry_add(q, clue);
}

gbx_status gbx_clues_of_audit(gbx_inquiry *q) {
    const gbx_audit *audit = &q->d->audit;
    uint64_t left_out = gbx_audit_left_out(&audit->counts);
    if (left_out > 0)
        GBX_TRY(gbx_inquiry_lack(q, GBX_ASKED_AUDIT,
                                 "%" PRIu64 " %s of the dump could not be audited", left_out,
                                 left_out == 1 ? "entry" : "entries"));
    if (audit->counts.has_more)
        GBX_TRY(gbx_inquiry_lack(q, GBX_ASKED_AUDIT,
                                 "it has more findings than it lists: %zu were looked at",
                                 audit->finding_count));
    if (gbx_audit_find_lack(&audit->counts) != GBX_AUDIT_LACKS_NOTHING)
        GBX_TRY(gbx_inquiry_lack(q, GBX_ASKED_AUDIT, "the dump lacks records of some tasks"));
    for (size_t i = 0; i < audit->finding_count; ++i)
        GBX_TRY(gbx_inquiry_add_audit(q, i));
    return NULL;
}

/* --- kernels and references --- */

static gbx_diagnosis_kind kind_of_replay(uint32_t kind) {
    static const gbx_diagnosis_kind kinds[] = {
        [GBX_STRAY_WRITE] = GBX_DIAGNOSIS_STRAY_WRITE,
        [GBX_UNDECLARED_READ] = GBX_DIAGNOSIS_UNDECLARED_READ,
        [GBX_UNWRITTEN_READ] = GBX_DIAGNOSIS_UNWRITTEN_READ,
        [GBX_NOT_DETERMINISTIC] = GBX_DIAGNOSIS_NOT_DETERMINISTIC,
        [GBX_WRITE_RACE] = GBX_DIAGNOSIS_WRITE_RACE,
        [GBX_READ_RACE] = GBX_DIAGNOSIS_READ_RACE,
        [GBX_ENDLESS_WAIT] = GBX_DIAGNOSIS_ENDLESS_WAIT,
        [GBX_STALE_FLAG] = GBX_DIAGNOSIS_STALE_FLAG};
    return kinds[kind];
}

/* The findings of one task, and its fault. */
static gbx_status take_result(gbx_inquiry *q, const gbx_replay_result *result, uint64_t index,
                              bool did_complete) {
    for (uint32_t i = 0; i < result->finding_count; ++i) {
        if (gbx_replay_is_note(&result->findings[i]))
            continue;
        gbx_clue clue = clue_of(did_complete ? GBX_CLUE_REPLAY : GBX_CLUE_UNENDED_OF,
                                kind_of_replay(result->findings[i].is.kind), result->task, index);
        clue.item = i;
        GBX_TRY(gbx_inquiry_add(q, clue));
    }
    if (!result->fault)
        return NULL;
    gbx_diagnosis_kind kind = did_complete             ? GBX_DIAGNOSIS_FAILS_AGAIN
                              : result->fault->is_hang ? GBX_DIAGNOSIS_HANG
                                                       : GBX_DIAGNOSIS_CRASH;
    return gbx_inquiry_add(
        q, clue_of(did_complete ? GBX_CLUE_FAULT : GBX_CLUE_UNENDED, kind, result->task, index));
}

/* Whether a payload of a task is not what was recorded. */
static bool is_damaged(const gbx_diagnosis *d, uint64_t task) {
    const gbx_findings *findings = &d->verification.findings;
    for (size_t i = 0; i < findings->count; ++i)
        if (findings->items[i].has_place && findings->items[i].place.task == task)
            return true;
    return false;
}

/* A task that is wrong, or that was changed by somebody else. */
static gbx_status take_line(gbx_inquiry *q, uint64_t index) {
    const gbx_check_line *line = &q->d->check.lines[index];
    bool differs = line->verdict == GBX_CHECK_NOT_CHECKED && line->kernels.differs &&
                   !is_damaged(q->d, line->task);
    if (line->verdict == GBX_CHECK_INTRODUCED)
        return gbx_inquiry_add(
            q, clue_of(GBX_CLUE_REFERENCE, GBX_DIAGNOSIS_WRONG_RESULT, line->task, index));
    if (line->verdict != GBX_CHECK_OVERWRITTEN && line->verdict != GBX_CHECK_NOT_REPEATED &&
        !differs)
        return NULL;
    gbx_clue clue = clue_of(GBX_CLUE_LINE, GBX_DIAGNOSIS_NOT_REPEATED, line->task, index);
    clue.other = line->culprit;
    return gbx_inquiry_add(q, clue);
}

static const char *const why_no_order[] = {
    [GBX_ORDER_WAITS] = "blocks wait for each other",
    [GBX_ORDER_SPINS] = "blocks wait without yielding",
    [GBX_ORDER_TOO_LARGE] = "there are too many blocks, or too large outputs",
    [GBX_ORDER_FAILS] = "a block fails when it is called alone",
    [GBX_ORDER_NO_MEMORY] = "memory or processes ran out"};

static gbx_status count_kernels(gbx_inquiry *q) {
    const gbx_check_report *check = &q->d->check;
    gbx_diagnosis_asked *replay = &q->d->asked[GBX_ASKED_REPLAY];
    gbx_diagnosis_asked *races = &q->d->asked[GBX_ASKED_RACES];
    replay->tasks = races->tasks = check->count - check->not_called;
    replay->not_asked = races->not_asked = check->not_called;
    for (uint64_t i = 0; i < check->count && check->not_called > 0; ++i)
        if (check->lines[i].kernels.why_not) {
            GBX_TRY(gbx_inquiry_lack(q, GBX_ASKED_REPLAY, "%s", check->lines[i].kernels.why_not));
            GBX_TRY(gbx_inquiry_lack(q, GBX_ASKED_RACES, "%s", check->lines[i].kernels.why_not));
        }
    if (check->stray_unknown.count > 0)
        GBX_TRY(gbx_inquiry_lack(
            q, GBX_ASKED_REPLAY, "stray writes of %" PRIu64 " %s: tensors are too large",
            check->stray_unknown.count, check->stray_unknown.count == 1 ? "task" : "tasks"));
    for (size_t i = 0; i < sizeof why_no_order / sizeof why_no_order[0]; ++i) {
        uint64_t count = check->orders[i].count;
        if (!why_no_order[i] || count == 0)
            continue;
        races->tasks -= count;
        races->not_asked += count;
        GBX_TRY(gbx_inquiry_lack(q, GBX_ASKED_RACES, "%s", why_no_order[i]));
    }
    return NULL;
}

static gbx_status count_references(gbx_inquiry *q) {
    const gbx_check_report *check = &q->d->check;
    gbx_diagnosis_asked *asked = &q->d->asked[GBX_ASKED_REFERENCES];
    asked->not_asked = check->verdicts[GBX_CHECK_NOT_CHECKED];
    asked->tasks = check->count - asked->not_asked;
    if (check->why_no_scene)
        return gbx_inquiry_lack(q, GBX_ASKED_REFERENCES, "%s", check->why_no_scene);
    for (uint64_t i = 0; i < check->count; ++i)
        if (check->lines[i].verdict == GBX_CHECK_NOT_CHECKED)
            GBX_TRY(gbx_inquiry_lack(q, GBX_ASKED_REFERENCES, "%s", check->lines[i].reason));
    return NULL;
}

gbx_status gbx_clues_of_kernels(gbx_inquiry *q) {
    const gbx_check_report *check = &q->d->check;
    GBX_TRY(count_kernels(q));
    GBX_TRY(count_references(q));
    for (uint64_t i = 0; i < check->result_count; ++i)
        GBX_TRY(take_result(q, &check->results[i], i, true));
    for (uint64_t i = 0; i < check->count; ++i)
        GBX_TRY(take_line(q, i));
    return NULL;
}

gbx_status gbx_clues_of_unended(gbx_inquiry *q) {
    for (size_t i = 0; i < q->d->unended_count; ++i)
        GBX_TRY(take_result(q, &q->d->unended[i], i, false));
    return NULL;
}

/* --- values --- */

/* Lines are in graph order. */
const gbx_check_line *gbx_inquiry_find_line(const gbx_inquiry *q, uint64_t task) {
    const gbx_check_report *check = &q->d->check;
    uint64_t place = gbx_task_graph_place(q->graph, task), low = 0, high = check->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (gbx_task_graph_place(q->graph, check->lines[middle].task) < place)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_found = low < check->count && check->lines[low].task == task;
    return is_found ? &check->lines[low] : NULL;
}

/* A NaN that a task made of inputs without one. If a reference makes it too, or the golden is
 * satisfied, it is meant. */
static gbx_status take_nan(gbx_inquiry *q) {
    const gbx_first_nan *nan = &q->d->nan;
    bool is_right = q->d->asked[GBX_ASKED_GOLDEN].tasks > 0 && !q->d->golden;
    if (is_right || !nan->has_nan || nan->nan.inputs != GBX_NAN_INPUTS_CLEAN)
        return NULL;
    const gbx_check_line *line = gbx_inquiry_find_line(q, nan->nan.task);
    if (line && line->verdict == GBX_CHECK_RIGHT)
        return NULL;
    return gbx_inquiry_add(q, clue_of(GBX_CLUE_NAN, GBX_DIAGNOSIS_NAN, nan->nan.task, 0));
}

gbx_status gbx_inquiry_add_odd(gbx_inquiry *q, size_t index) {
    static const gbx_diagnosis_kind kinds[] = {[GBX_ODD_UNWRITTEN] = GBX_DIAGNOSIS_ODD_MEMORY,
                                               [GBX_ODD_NAMED_SCALAR] = GBX_DIAGNOSIS_ODD_SCALAR,
                                               [GBX_ODD_SCALAR_BITS] = GBX_DIAGNOSIS_ODD_SCALAR,
                                               [GBX_ODD_SCALAR] = GBX_DIAGNOSIS_ODD_SCALAR,
                                               [GBX_ODD_SWAPPED] = GBX_DIAGNOSIS_ODD_VIEW,
                                               [GBX_ODD_RELATION] = GBX_DIAGNOSIS_ODD_VIEW,
                                               [GBX_ODD_READ_TWICE] = GBX_DIAGNOSIS_ODD_VIEW,
                                               [GBX_ODD_LOST_WRITE] = GBX_DIAGNOSIS_LOST_WRITE,
                                               [GBX_ODD_ALIAS] = GBX_DIAGNOSIS_ODD_VIEW,
                                               [GBX_ODD_VIEW] = GBX_DIAGNOSIS_ODD_VIEW,
                                               [GBX_ODD_LAYOUT] = GBX_DIAGNOSIS_ODD_VIEW,
                                               [GBX_ODD_SOURCE] = GBX_DIAGNOSIS_ODD_VIEW,
                                               [GBX_ODD_REPEATED] = GBX_DIAGNOSIS_ODD_TASK,
                                               [GBX_ODD_NEAR_SCALAR] = GBX_DIAGNOSIS_ODD_SCALAR,
                                               [GBX_ODD_LOOSE_SCALAR] = GBX_DIAGNOSIS_ODD_SCALAR};
    const gbx_odd_argument *odd = &q->d->odd.items[index];
    gbx_clue clue = clue_of(GBX_CLUE_ODD, kinds[odd->kind], odd->task, index);
    clue.other = odd->other;
    return gbx_inquiry_add(q, clue);
}

gbx_status gbx_inquiry_add_golden(gbx_inquiry *q) {
    const gbx_diagnosis *d = q->d;
    uint64_t writer = d->has_blame && d->blame.writer_count == 1 ? d->blame.writers[0].task
                                                                 : GBX_DIAGNOSIS_NOBODY;
    bool is_other = d->unchecked.task != GBX_DIAGNOSIS_NOBODY && d->unchecked.task != writer;
    gbx_clue clue = clue_of(GBX_CLUE_GOLDEN, GBX_DIAGNOSIS_WRONG_OUTPUT,
                            is_other ? d->unchecked.task : writer, 0);
    clue.other = is_other ? writer : d->is_unwritten ? d->nearest.task : GBX_DIAGNOSIS_NOBODY;
    return gbx_inquiry_add(q, clue);
}

gbx_status gbx_clues_of_values(gbx_inquiry *q) {
    GBX_TRY(take_nan(q));
    for (size_t i = 0; i < q->d->odd.count; ++i)
        if (q->d->odd.items[i].is_needed)
            GBX_TRY(gbx_inquiry_add_odd(q, i));
    return q->d->golden ? gbx_inquiry_add_golden(q) : NULL;
}
