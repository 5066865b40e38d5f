/* The line of a bug: asks sanitizers about accused tasks, and about some of each other kernel. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diagnose/internal.h"

enum { ACCUSED_MAX = 16, HUNG_TIMEOUT_MS = 3000 };

static const char doing[] = "looking for lines";

static const gbx_diagnosis_kind kinds[GBX_SANITIZE_KIND_COUNT] = {
    [GBX_SANITIZE_READ_OUTSIDE] = GBX_DIAGNOSIS_OUT_OF_BOUNDS_READ,
    [GBX_SANITIZE_WRITE_OUTSIDE] = GBX_DIAGNOSIS_OUT_OF_BOUNDS_WRITE,
    [GBX_SANITIZE_WRITES_INPUT] = GBX_DIAGNOSIS_OUT_OF_BOUNDS_WRITE,
    [GBX_SANITIZE_UNINITIALISED] = GBX_DIAGNOSIS_UNINITIALISED,
    [GBX_SANITIZE_UNDEFINED] = GBX_DIAGNOSIS_UNDEFINED,
    [GBX_SANITIZE_RACE] = GBX_DIAGNOSIS_DATA_RACE,
    [GBX_SANITIZE_STACK] = GBX_DIAGNOSIS_BAD_LOCAL,
    [GBX_SANITIZE_GLOBAL] = GBX_DIAGNOSIS_BAD_LOCAL,
    [GBX_SANITIZE_HEAP] = GBX_DIAGNOSIS_BAD_LOCAL,
    [GBX_SANITIZE_CRASH] = GBX_DIAGNOSIS_FAILS_AGAIN,
    [GBX_SANITIZE_OTHER] = GBX_DIAGNOSIS_UNDEFINED,
    [GBX_SANITIZE_UNWRITTEN] = GBX_DIAGNOSIS_UNWRITTEN_READ};

/* --- one task --- */

/* A load of whole vectors takes the gap between rows along. If it used what is there, a replay
 * would show it in the outputs, and the sanitizer for uninitialised memory in branches. */
static bool may_be_ignored(const gbx_sanitize_finding *finding) {
    return finding->kind == GBX_SANITIZE_READ_OUTSIDE && finding->argument != GBX_NO_ARGUMENT &&
           finding->distance == 0;
}

/* Notes, crashes and hangs say more of a task that is accused already than of one that is not. */
static bool is_clue(const gbx_sanitize_finding *finding, bool is_accused) {
    if (!is_accused && may_be_ignored(finding))
        return false;
    bool is_other = finding->kind == GBX_SANITIZE_OTHER && finding->at.line > 0 &&
                    finding->sanitizer == GBX_SANITIZE_ADDRESS; /* memcpy of overlapping bytes */
    return finding->kind < GBX_SANITIZE_CRASH || is_other ||
           (is_accused && !gbx_sanitize_is_note(finding) && finding->at.line > 0);
}

/* Where a value comes from is said before where it is used, and before a decision by it. */
static uint32_t rank_of(const gbx_sanitize_finding *finding) {
    if (finding->kind != GBX_SANITIZE_UNINITIALISED)
        return 0;
    return finding->argument == GBX_NO_ARGUMENT ? 2 : finding->other.line > 0;
}

static gbx_status take_report(gbx_inquiry *q, size_t index, bool is_accused) {
    const gbx_diagnosis_line *line = &q->d->lines[index];
    for (size_t i = 0; i < line->report.finding_count; ++i) {
        const gbx_sanitize_finding *finding = &line->report.findings[i];
        if (!is_clue(finding, is_accused))
            continue;
        GBX_TRY(gbx_inquiry_add(q, (gbx_clue){.source = GBX_CLUE_SANITIZER,
                                              .kind = kinds[finding->kind],
                                              .task = line->task.task,
                                              .other = GBX_DIAGNOSIS_NOBODY,
                                              .index = index,
                                              .item = (uint32_t)i,
                                              .rank = rank_of(finding)}));
    }
    return NULL;
}

/* Why a sanitizer was not asked of some tasks: the first reason; NULL if it was not to be asked. */
static const char *first_refusal(const gbx_diagnosis *d, size_t sanitizer) {
    for (size_t i = 0; i < d->line_count; ++i)
        if (d->lines[i].report.asked[sanitizer].why_not)
            return d->lines[i].report.asked[sanitizer].why_not;
    return NULL;
}

/* Sanitizers that were asked of no task, for the same reason as this one; the first says it. */
static gbx_status note_none(gbx_inquiry *q, const bool was_asked[GBX_SANITIZER_COUNT],
                            size_t sanitizer) {
    const char *why = first_refusal(q->d, sanitizer);
    char names[128] = "";
    size_t used = 0, count = 0;
    for (size_t k = 0; k < GBX_SANITIZER_COUNT && why; ++k) {
        const char *other = was_asked[k] ? NULL : first_refusal(q->d, k);
        if (!other || strcmp(other, why) != 0)
            continue;
        if (k < sanitizer)
            return NULL;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", count++ ? ", " : "",
                                 gbx_name_of(&gbx_sanitizers, (uint32_t)k));
    }
    return why ? gbx_inquiry_lack(q, GBX_ASKED_SANITIZERS, "%s %s asked of no task: %s", names,
                                  count == 1 ? "was" : "were", why)
               : NULL;
}

/* What was asked of no task comes first. */
static gbx_status note_refusals(gbx_inquiry *q) {
    bool was_asked[GBX_SANITIZER_COUNT] = {false};
    const gbx_diagnosis *d = q->d;
    for (size_t i = 0; i < d->line_count; ++i)
        for (size_t k = 0; k < GBX_SANITIZER_COUNT; ++k)
            was_asked[k] |= d->lines[i].report.asked[k].was_asked;
    for (size_t k = 0; k < GBX_SANITIZER_COUNT; ++k)
        if (!was_asked[k])
            GBX_TRY(note_none(q, was_asked, k));
    for (size_t i = 0; i < d->line_count; ++i)
        for (size_t k = 0; k < GBX_SANITIZER_COUNT; ++k)
            if (was_asked[k] && d->lines[i].report.asked[k].why_not)
                GBX_TRY(gbx_inquiry_lack(q, GBX_ASKED_SANITIZERS, "%s",
                                         d->lines[i].report.asked[k].why_not));
    return NULL;
}

/* A task that cannot be asked is no failure. */
static gbx_status refuse(gbx_inquiry *q, gbx_diagnosis_line *line, gbx_status status) {
    gbx_status noted = gbx_inquiry_lack(q, GBX_ASKED_SANITIZERS, "%s", gbx_status_message(status));
    gbx_status_free(status);
    gbx_replay_task_free(&line->task);
    return noted;
}

/* One that is refused by all of them was not asked. */
static bool was_answered(const gbx_sanitize_report *report) {
    for (size_t i = 0; i < GBX_SANITIZER_COUNT; ++i)
        if (report->asked[i].was_asked)
            return true;
    return false;
}

static bool hangs(const gbx_replay_result *results, size_t count, uint64_t task) {
    for (size_t i = 0; i < count; ++i)
        if (results[i].task == task && results[i].fault && results[i].fault->is_hang)
            return true;
    return false;
}

/* A task that hangs has done what a sanitizer can see of it before long: it need not hang for the
 * whole time once more. */
static uint32_t timeout_of(const gbx_inquiry *q, uint64_t task) {
    const gbx_diagnosis *d = q->d;
    bool is_hung = hangs(d->unended, d->unended_count, task) ||
                   hangs(d->check.results, d->check.result_count, task);
    return q->request->timeout_ms == 0 && is_hung ? HUNG_TIMEOUT_MS : q->request->timeout_ms;
}

static gbx_status ask(gbx_inquiry *q, gbx_replay_session *session, uint64_t task, bool is_accused) {
    gbx_diagnosis *d = q->d;
    if (!d->lines)
        d->lines = calloc(ACCUSED_MAX + GBX_SAMPLES_MAX, sizeof *d->lines);
    if (!d->lines)
        return gbx_fail_memory("%s", doing);
    gbx_diagnosis_line *line = &d->lines[d->line_count];
    *line = (gbx_diagnosis_line){0};
    gbx_status status = gbx_replay_task_read(q->request->entries, task, &line->task);
    if (status)
        return refuse(q, line, gbx_replay_task_explain(&line->task, status, true));
    unsigned wanted =
        1u << GBX_SANITIZE_ACCESS | 1u << GBX_SANITIZE_ADDRESS | 1u << GBX_SANITIZE_MEMORY;
    if (line->task.dispatch_count > 1)
        wanted |= 1u << GBX_SANITIZE_THREAD;
    session->config.timeout_ms = timeout_of(q, task);
    status = gbx_sanitize_task(session, &line->task, wanted, &line->report);
    if (status)
        return refuse(q, line, status);
    ++d->line_count;
    GBX_TRY(gbx_inquiry_chooses(q, task, &line->is_chosen));
    d->asked[GBX_ASKED_SANITIZERS].tasks += line->is_chosen && was_answered(&line->report);
    return take_report(q, d->line_count - 1, is_accused);
}

/* --- which tasks --- */

/* Whether a kernel or mix is one of the first that were asked, by a task that counts. */
static bool was_asked(const gbx_diagnosis *d, size_t count, const uint32_t *func_ids) {
    for (size_t i = 0; i < count; ++i)
        if (d->lines[i].is_chosen &&
            memcmp(d->lines[i].task.func_ids, func_ids, sizeof d->lines[i].task.func_ids) == 0)
            return true;
    return false;
}

static gbx_status ask_accused(gbx_inquiry *q, gbx_replay_session *session) {
    const gbx_diagnosis *d = q->d;
    for (size_t i = 0; i < d->finding_count && i < ACCUSED_MAX; ++i)
        if (d->findings[i].task != GBX_DIAGNOSIS_NOBODY)
            GBX_TRY(ask(q, session, d->findings[i].task, true));
    return NULL;
}

/* Of kernels that nobody has accused. */
static gbx_status ask_others(gbx_inquiry *q, gbx_replay_session *session) {
    const size_t accused = q->d->line_count;
    gbx_samples samples;
    GBX_TRY(gbx_inquiry_sample(q, &samples));
    for (size_t i = 0; i < samples.count; ++i)
        if (!was_asked(q->d, accused, samples.func_ids[i]))
            GBX_TRY(ask(q, session, samples.tasks[i], false));
    if (!samples.has_more)
        return NULL;
    return gbx_inquiry_lack(q, GBX_ASKED_SANITIZERS, "only %d tasks that are not accused are asked",
                            GBX_SAMPLES_MAX);
}

/* --- all of them --- */

gbx_status gbx_inquiry_find_lines(gbx_inquiry *q) {
    gbx_diagnosis_asked *asked = &q->d->asked[GBX_ASKED_SANITIZERS];
    gbx_replay_session session = {0};
    gbx_status status = gbx_inquiry_open_session(q, &session);
    if (!status)
        status = ask_accused(q, &session);
    if (!status)
        status = ask_others(q, &session);
    if (!status)
        status = note_refusals(q);
    if (!status)
        status = gbx_inquiry_drop_atomic(q, &session);
    if (!status)
        status = gbx_inquiry_drop_sized(q, &session);
    gbx_replay_session_close(&session);
    asked->not_asked = q->d->chosen > asked->tasks ? q->d->chosen - asked->tasks : 0;
    if (!status && asked->not_asked > 0)
        status =
            gbx_inquiry_lack(q, GBX_ASKED_SANITIZERS,
                             "they are asked about accused tasks, and of each other kernel about "
                             "one task of each shape, at most %d",
                             GBX_SAMPLES_OF_KERNEL);
    return status;
}

void gbx_diagnosis_lines_free(gbx_diagnosis *d) {
    for (size_t i = 0; i < d->line_count; ++i) {
        gbx_replay_task_free(&d->lines[i].task);
        gbx_sanitize_report_free(&d->lines[i].report);
    }
    free(d->lines);
}

/* --- the line of a finding --- */

/* How well what a sanitizer found explains a finding; 0: not at all. */
static int fit(gbx_diagnosis_kind kind, gbx_sanitize_kind found) {
    bool writes = found == GBX_SANITIZE_WRITE_OUTSIDE || found == GBX_SANITIZE_WRITES_INPUT;
    bool reads = found == GBX_SANITIZE_READ_OUTSIDE || found == GBX_SANITIZE_UNINITIALISED;
    switch (kind) {
    case GBX_DIAGNOSIS_WRITE_RACE:
    case GBX_DIAGNOSIS_READ_RACE:
    case GBX_DIAGNOSIS_DATA_RACE:
        return found == GBX_SANITIZE_RACE ? 3 : 0;
    case GBX_DIAGNOSIS_STRAY_WRITE:
    case GBX_DIAGNOSIS_OVERRUN:
    case GBX_DIAGNOSIS_UNDERRUN:
    case GBX_DIAGNOSIS_STRAY:
    case GBX_DIAGNOSIS_ARGUMENTS:
        return writes                               ? 3
               : found == GBX_SANITIZE_READ_OUTSIDE ? 2
               : found == GBX_SANITIZE_UNDEFINED    ? 1
                                                    : 0;
    case GBX_DIAGNOSIS_UNDECLARED_READ:
        return reads ? 3 : 0;
    case GBX_DIAGNOSIS_NOT_DETERMINISTIC:
        return found == GBX_SANITIZE_RACE ? 3 : reads ? 2 : 1;
    default:
        return found == GBX_SANITIZE_UNDEFINED ? 1 : 2;
    }
}

const gbx_sanitize_finding *gbx_diagnosis_line_of(const gbx_diagnosis *d,
                                                  const gbx_diagnosis_finding *finding,
                                                  const gbx_replay_task **out_task) {
    const gbx_sanitize_finding *best = NULL;
    int best_fit = 0;
    for (size_t i = 0; i < finding->clue_count; ++i) {
        const gbx_clue *clue = &finding->clues[i];
        if (clue->source != GBX_CLUE_SANITIZER)
            continue;
        const gbx_diagnosis_line *line = &d->lines[clue->index];
        const gbx_sanitize_finding *found = &line->report.findings[clue->item];
        int how = i == 0 ? 4 : fit(finding->kind, found->kind);
        if (found->at.line == 0 || how <= best_fit)
            continue;
        best = found;
        best_fit = how;
        *out_task = &line->task;
    }
    return best;
}
