/*
 * Tasks that are wrong in the dump, although their kernels leave the right values when they are
 * called again: they are not to blame. Looks for the task that wrote into their tensors.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "replay/check/internal.h"

/* A call ends at the first page that is not there: how far its writes went in the run is unknown.
 * Too far is safe, because only a task whose kernel leaves the right values is acquitted. */
#define FAR_BYTES (UINT64_C(64) << 20)

typedef struct range {
    uint64_t begin;
    uint64_t end;
} range;

/* What a task has to do with the victim; later ones count more. */
typedef enum deed {
    NOTHING = 0,
    MAY_HAVE_HIT = 1, /* it writes so far outside its outputs that it may have hit the victim's */
    HIT_INPUT = 2,
    HIT_OUTPUT = 3
} deed;

typedef struct suspect {
    const gbx_replay_result *result;
    deed deed;
    uint64_t distance; /* of MAY_HAVE_HIT: from its own output to the victim's */
} suspect;

/* --- where a task wrote --- */

/* Whether a range has a byte of a tensor that the task writes, or of one that it only reads. */
static bool touches(const gbx_replay_task *task, bool is_written, range r) {
    const gbx_tensor bytes = {.data = r.begin,
                              .dtype = GBX_UINT8,
                              .ndims = 1,
                              .shape = {(int64_t)(r.end - r.begin)},
                              .strides = {1}};
    for (uint32_t i = 0; i < task->argument_count; ++i) {
        const gbx_replay_argument *argument = &task->arguments[i];
        if (argument->is_tensor && (argument->role != GBX_ROLE_INPUT) == is_written &&
            gbx_tensor_overlaps(&argument->tensor, &bytes))
            return true;
    }
    return false;
}

/* One past the last stray byte that a replay saw; 0 for none. */
static uint64_t stray_end(const gbx_replay_result *result) {
    for (uint32_t i = 0; i < result->finding_count; ++i)
        if (result->findings[i].is.kind == GBX_STRAY_WRITE && !result->findings[i].is_fault)
            return result->findings[i].is.end;
    return 0;
}

/* A stray range; the last of a full list stands for all that did not fit. */
static range stray_range(const gbx_replay_result *result, uint32_t number) {
    const gbx_stray_range *stray = &result->ranges[number];
    range r = {stray->address, stray->address + stray->bytes};
    if (number == GBX_STRAY_RANGES - 1 && stray_end(result) > r.end)
        r.end = stray_end(result);
    return r;
}

static range extent_of(const gbx_tensor *tensor) {
    int64_t first, end;
    gbx_tensor_extent(tensor, &first, &end);
    return (range){tensor->data + (uint64_t)first, tensor->data + (uint64_t)end};
}

/* What a task had changed outside its outputs when it crashed, if it is dense: some bytes of an
 * overrun have the value that was there. */
static bool changed_before_fault(const gbx_replay_result *result, range *out_changed) {
    const gbx_replay_fault *fault = result->fault;
    if (!fault || result->is_relocated || fault->stray_bytes == 0 ||
        fault->stray_bytes < (fault->stray_end - fault->stray_address) / 2)
        return false;
    *out_changed = (range){fault->stray_address, fault->stray_end};
    return true;
}

/* Where a write that faults came from and may have gone on: behind or before the nearest output.
 * *out_edge is the edge of that output. */
static bool find_reach(const gbx_replay_result *result, range *out_reach, uint64_t *out_edge) {
    const gbx_replay_fault *fault = result->fault;
    uint64_t nearest = FAR_BYTES;
    if (!fault || result->is_relocated || fault->signal != SIGSEGV || !fault->has_address ||
        fault->access == GBX_CALL_ACCESS_READ)
        return false;
    for (size_t i = 0; i < result->output_count; ++i) {
        range own = extent_of(&result->outputs[i].tensor);
        bool is_behind = fault->address >= own.end;
        uint64_t distance = is_behind ? fault->address - own.end : own.begin - fault->address;
        if (own.begin == own.end || (!is_behind && fault->address >= own.begin) ||
            distance >= nearest)
            continue;
        nearest = distance;
        *out_edge = is_behind ? own.end : own.begin;
        out_reach->begin = is_behind ? own.end : fault->address - FAR_BYTES;
        out_reach->end = is_behind ? fault->address + FAR_BYTES : own.begin;
    }
    return nearest < FAR_BYTES;
}

/* --- suspects --- */

static uint64_t distance_to(const gbx_replay_task *task, uint64_t address) {
    uint64_t nearest = UINT64_MAX;
    for (uint32_t i = 0; i < task->argument_count; ++i) {
        if (!task->arguments[i].is_tensor || task->arguments[i].role == GBX_ROLE_INPUT)
            continue;
        range own = extent_of(&task->arguments[i].tensor);
        uint64_t distance = address < own.begin  ? own.begin - address
                            : address >= own.end ? address - own.end
                                                 : 0;
        nearest = distance < nearest ? distance : nearest;
    }
    return nearest;
}

static suspect suspect_of(const gbx_replay_result *result, const gbx_replay_task *victim) {
    suspect s = {.result = result};
    range reach;
    uint64_t edge = 0;
    if (changed_before_fault(result, &reach) && touches(victim, true, reach))
        return (suspect){result, HIT_OUTPUT, 0};
    for (uint32_t i = 0; i < result->range_count; ++i) {
        range r = stray_range(result, i);
        if (touches(victim, true, r))
            return (suspect){result, HIT_OUTPUT, 0};
        if (touches(victim, false, r))
            s.deed = HIT_INPUT;
    }
    if (s.deed == NOTHING && find_reach(result, &reach, &edge) && touches(victim, true, reach)) {
        s.deed = MAY_HAVE_HIT;
        s.distance = distance_to(victim, edge);
    }
    return s;
}

/* Whether a task had completed when the victim began: what it wrote there is not what is wrong. */
static bool was_over(const gbx_task_graph *graph, uint64_t task, uint64_t victim) {
    uint64_t place = gbx_task_graph_place(graph, task);
    uint64_t victims_place = gbx_task_graph_place(graph, victim);
    return place != UINT64_MAX && victims_place != UINT64_MAX &&
           gbx_task_graph_at(graph, place)->end_ns <
               gbx_task_graph_at(graph, victims_place)->begin_ns;
}

/* The one that fits best; of equal ones the first. */
static suspect find_suspect(const gbx_check_trial *trial, const gbx_replay_task *victim) {
    suspect best = {.deed = NOTHING};
    for (uint64_t i = 0; i < trial->suspect_count; ++i) {
        const gbx_replay_result *result = &trial->report->results[trial->suspects[i]];
        if (result->task == victim->task || was_over(trial->graph, result->task, victim->task))
            continue;
        suspect s = suspect_of(result, victim);
        if (s.deed > best.deed ||
            (s.deed == best.deed && s.deed == MAY_HAVE_HIT && s.distance < best.distance))
            best = s;
    }
    return best;
}

/* Whether a kernel leaves other values by itself, without another task. */
static bool is_erratic(const gbx_check_report *report, const gbx_check_line *line) {
    const gbx_replay_result *own =
        line->kernels.result < 0 ? NULL : &report->results[line->kernels.result];
    for (uint32_t i = 0; own && i < own->finding_count; ++i)
        switch (own->findings[i].is.kind) {
        case GBX_UNDECLARED_READ:
        case GBX_NOT_DETERMINISTIC:
        case GBX_WRITE_RACE:
        case GBX_READ_RACE:
        case GBX_STALE_FLAG:
            return true;
        default:
            break;
        }
    return false;
}

/* --- acquittals --- */

static gbx_status acquit(gbx_check_report *report, gbx_check_line *line, gbx_check_verdict verdict,
                         const char *reason) {
    --report->verdicts[line->verdict];
    line->verdict = verdict;
    ++report->verdicts[line->verdict];
    return gbx_check_report_keep(report, reason, &line->reason);
}

static gbx_status name_suspect(gbx_check_report *report, gbx_check_line *line, const suspect *s,
                               gbx_check_verdict verdict) {
    static const char *const deeds[] = {
        [MAY_HAVE_HIT] = "writes far outside its outputs, and may have written there",
        [HIT_INPUT] = "wrote into its input while it ran",
        [HIT_OUTPUT] = "wrote into its output"};
    char text[GBX_REPLAY_TITLE_BYTES + 128];
    snprintf(text, sizeof text, "%s, %s", s->result->title, deeds[s->deed]);
    line->culprit = s->result->task;
    return acquit(report, line, verdict, text);
}

static gbx_status name_nobody(gbx_check_report *report, const gbx_check_filter *filter,
                              gbx_check_line *line) {
    char text[256] = "something else wrote there, or its result depends on timing or on what the "
                     "dump does not have";
    bool has_tasks = filter->numbers.count > 0 || filter->ids.count > 0;
    if (report->left_out > 0)
        snprintf(text, sizeof text,
                 "another task may have written there; run glassbox check without %s%s%s",
                 has_tasks ? "--task" : "", has_tasks && filter->kernels.count > 0 ? " and " : "",
                 filter->kernels.count > 0 ? "--kernel" : "");
    else if (report->not_called > 0)
        snprintf(text, sizeof text,
                 "another task may have written there: not all kernels were called again");
    return acquit(report, line, GBX_CHECK_NOT_REPEATED, text);
}

/* Whether the kernels of a task leave right values when they are called again. */
static gbx_status ask_again(gbx_replay_session *session, const gbx_references *references,
                            const gbx_replay_task *task, bool *out_is_right) {
    gbx_replay_job job;
    gbx_replay_payloads payloads = {0};
    gbx_replay_result result = {0};
    gbx_check_result checked = {.verdict = GBX_CHECK_NOT_CHECKED};
    GBX_TRY(gbx_replay_session_job(session, task, &job));
    gbx_status status = gbx_replay_execute(&job, &payloads, &result);
    if (!status && !result.fault)
        status = gbx_check_payloads(session->engine, session->config.entries, task,
                                    (const void *const *)payloads.kept[GBX_KEPT_FIRST],
                                    references->items, references->count, &checked);
    *out_is_right = !status && checked.verdict == GBX_CHECK_RIGHT;
    gbx_replay_payloads_free(&payloads);
    gbx_replay_result_free(&result);
    return status;
}

static gbx_status judge(const gbx_check_trial *trial, gbx_check_line *line) {
    gbx_replay_task task;
    bool is_right = false, fails = line->kernels.verdict == GBX_REPLAY_FAULT;
    gbx_status status = gbx_replay_task_read(trial->session->config.entries, line->task, &task);
    suspect s = {.deed = NOTHING};
    if (!status)
        s = find_suspect(trial, &task);
    if (!status && !fails && (s.deed != NOTHING || !is_erratic(trial->report, line)))
        status = ask_again(trial->session, trial->references, &task, &is_right);
    gbx_replay_task_free(&task);
    if (!status && fails && s.deed != NOTHING)
        return name_suspect(trial->report, line, &s, GBX_CHECK_NOT_REPEATED);
    if (status || !is_right)
        return status;
    return s.deed != NOTHING ? name_suspect(trial->report, line, &s, GBX_CHECK_OVERWRITTEN)
                             : name_nobody(trial->report, trial->filter, line);
}

/* A task that differs, and that no reference judges: only who wrote there can be named. */
static gbx_status find_culprit(const gbx_check_trial *trial, gbx_check_line *line) {
    gbx_replay_task task;
    GBX_TRY(gbx_replay_task_read(trial->session->config.entries, line->task, &task));
    suspect s = find_suspect(trial, &task);
    if (s.deed != NOTHING)
        line->culprit = s.result->task;
    gbx_replay_task_free(&task);
    return NULL;
}

/* Most results only have notes. */
static bool may_have_hit(const gbx_replay_result *result) {
    return result->fault || result->range_count > 0 || result->stray_bytes > 0 ||
           stray_end(result) > 0;
}

static gbx_status find_suspects(gbx_check_trial *trial) {
    const gbx_check_report *report = trial->report;
    trial->suspects = calloc(report->result_count + 1, sizeof *trial->suspects);
    if (!trial->suspects)
        return gbx_fail_memory("looking for tasks that wrote into others");
    for (uint64_t i = 0; i < report->result_count; ++i)
        if (may_have_hit(&report->results[i]))
            trial->suspects[trial->suspect_count++] = i;
    return NULL;
}

static gbx_status acquit_all(const gbx_check_trial *trial) {
    gbx_check_report *report = trial->report;
    for (uint64_t i = 0; i < report->count; ++i) {
        gbx_check_line *line = &report->lines[i];
        if (line->verdict == GBX_CHECK_INTRODUCED && gbx_check_may_be_victim(&line->kernels))
            GBX_TRY(judge(trial, line));
        else if (line->verdict == GBX_CHECK_NOT_CHECKED && line->kernels.differs)
            GBX_TRY(find_culprit(trial, line));
    }
    return NULL;
}

gbx_status gbx_check_acquit(gbx_check_trial *trial) {
    gbx_status status = find_suspects(trial);
    if (!status)
        status = acquit_all(trial);
    free(trial->suspects);
    trial->suspects = NULL;
    trial->suspect_count = 0;
    return status;
}
