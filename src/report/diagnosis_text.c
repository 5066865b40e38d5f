/* What findings of a diagnosis and their evidence say, one sentence each. */
#include <inttypes.h>
#include <string.h>

#include "report/party.h"
#include "report/reports.h"
#include "store/manifest/manifest.h"

/* What a sentence is about. */
typedef struct saying {
    const gbx_reporting *r;
    gbx_texts *t;
    const gbx_diagnosis *d;
    const gbx_clue *clue;
} saying;

/* "task 12, kernel add", "task 3, kernels multiply, finish" */
static gbx_status title(const saying *s, uint64_t task, const char **out_text) {
    gbx_record_task record;
    bool is_found;
    GBX_TRY(gbx_reader_find_task(s->r->dump->reader, task, &record, &is_found));
    if (!is_found) {
        *out_text = gbx_text_format(s->t, "task %" PRIu64, task);
        return NULL;
    }
    const gbx_reader *reader = s->r->dump->reader;
    const char *kernels = "";
    size_t count = 0;
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i)
        if (record.func_ids[i] != GBX_NO_KERNEL)
            kernels = gbx_text_join(
                s->t, kernels, count++ > 0 ? ", " : "",
                gbx_text_shown(s->t, gbx_text_func(s->t, reader, record.func_ids[i])));
    *out_text = gbx_text_format(s->t, "task %s, kernel%s %s",
                                gbx_text_task(s->t, reader, task, record.task_id),
                                count > 1 ? "s" : "", kernels);
    return NULL;
}

/* --- the run --- */

static gbx_status say_dump(const saying *s, const char **out_text) {
    const gbx_findings *findings = &s->d->verification.findings;
    const gbx_finding *first = &findings->items[s->clue->index];
    const char *place = first->has_place
                            ? gbx_text_format(s->t, " (task %" PRIu64 ", argument %u)",
                                              first->place.task, first->place.arg_index)
                            : "";
    *out_text = gbx_text_format(
        s->t,
        "the dump is damaged: %s%s%s; run glassbox verify, because other findings may come from that",
        gbx_text_shown(s->t, first->what), place,
        findings->count > 1
            ? gbx_text_format(s->t, ", and %s",
                              gbx_text_counted(s->t, findings->count - 1, "more problem"))
            : "");
    return NULL;
}

static gbx_status say_end(const saying *s, const char **out_text) {
    const gbx_reader *reader = s->r->dump->reader;
    const char *end = gbx_reader_end(reader) ? gbx_reader_end_text(reader) : "it was killed";
    const char *who;
    if (s->clue->task == GBX_DIAGNOSIS_NOBODY) {
        who = "";
        if (s->clue->other != GBX_DIAGNOSIS_NOBODY) {
            GBX_TRY(title(s, s->clue->other, &who));
            who = gbx_text_format(s->t, "; %s, had not completed", who);
        }
        *out_text = gbx_text_format(s->t, "the run failed: %s%s", gbx_text_shown(s->t, end), who);
        return NULL;
    }
    GBX_TRY(title(s, s->clue->task, &who));
    *out_text = gbx_text_format(s->t, "%s, ended the run: %s", who, gbx_text_shown(s->t, end));
    return NULL;
}

static gbx_status say_guard(const saying *s, const char **out_text) {
    char text[GBX_FINDING_TEXT_BYTES];
    gbx_manifest_finding_text(gbx_reader_run(s->r->dump->reader), &s->d->guards[s->clue->index],
                              text);
    *out_text = gbx_text_format(s->t, "%s", gbx_text_shown(s->t, text));
    return NULL;
}

/* --- the audit --- */

/* "; the first element that differs is [5], expected 6.0, found 100.5" */
static const char *element_text(const saying *s, const gbx_audit_finding *f,
                                const gbx_tensor *tensor) {
    if (!f->has_element)
        return "";
    return gbx_text_format(s->t, "; the first element that differs is %s, expected %s, found %s",
                           gbx_text_index(s->t, tensor, f->element),
                           gbx_text_value(s->t, f->dtype, f->expected),
                           gbx_text_value(s->t, f->dtype, f->found));
}

/* "; the likeliest writer is task 1 (plus)" */
static gbx_status suspect_text(const saying *s, const gbx_audit_finding *f, const char **out_text) {
    gbx_party p;
    *out_text = "";
    if (!f->has_suspects || f->suspect_count == 0)
        return NULL;
    GBX_TRY(gbx_party_find_task(s->r, f->suspects[0].task, &p));
    *out_text = gbx_text_format(s->t, "; the likeliest of %s that ran meanwhile is %s",
                                gbx_text_counted(s->t, f->suspect_count, "task"),
                                gbx_text_party_task(s->t, &p));
    return NULL;
}

static gbx_status result_name(const saying *s, const gbx_audit_finding *f, gbx_tensor *tensor,
                              const char **out_text) {
    gbx_result result;
    GBX_TRY(gbx_reader_result(s->r->dump->reader, f->result, &result));
    gbx_record_view(result.record, tensor);
    *out_text = result.name ? gbx_text_format(s->t, "result %s", gbx_text_shown(s->t, result.name))
                            : gbx_text_format(s->t, "result %" PRIu32, result.arg_index);
    return NULL;
}

static gbx_status say_change(const saying *s, const gbx_audit_finding *f, const char **out_text) {
    gbx_party writer, reader;
    gbx_tensor tensor;
    const char *suspect, *seen;
    GBX_TRY(gbx_party_find(s->r, f->first.task, f->first.entry, &writer));
    GBX_TRY(suspect_text(s, f, &suspect));
    if (f->is_result) {
        GBX_TRY(result_name(s, f, &tensor, &seen));
        seen = gbx_text_format(s->t, "%s at the end of the run", seen);
    } else {
        GBX_TRY(gbx_party_find(s->r, f->second.task, f->second.entry, &reader));
        tensor = reader.tensor;
        seen = gbx_text_party(s->t, &reader);
    }
    *out_text = gbx_text_format(
        s->t, "%s does not hold what %s %s there: a task wrote it without declaring it%s%s", seen,
        gbx_text_party(s->t, &writer), f->is_seen ? "saw" : "left", element_text(s, f, &tensor),
        suspect);
    return NULL;
}

/* "; an edge from task 0 to task 2 is missing" */
static const char *edge_text(const saying *s, const gbx_audit_finding *f) {
    uint64_t from, to;
    if (!f->has_no_path)
        return "";
    gbx_audit_missing_edge(f, &from, &to);
    return gbx_text_format(s->t, "; an edge from task %" PRIu64 " to task %" PRIu64 " is missing",
                           from, to);
}

static gbx_status say_order(const saying *s, const gbx_audit_finding *f, const char **out_text) {
    gbx_party first, second;
    const char *who;
    GBX_TRY(title(s, f->second.task, &who));
    GBX_TRY(gbx_party_find(s->r, f->first.task, f->first.entry, &first));
    GBX_TRY(gbx_party_find(s->r, f->second.task, f->second.entry, &second));
    const char *own = gbx_text_party_argument(s->t, &second);
    const char *other = gbx_text_party(s->t, &first);
    const char *how = f->kind == GBX_AUDIT_OVERLAPPING_WRITES
                          ? "writes %s, and so does %s, and nothing orders the two"
                      : f->is_read_first ? "reads %s, which %s overwrites without waiting for it"
                                         : "reads %s without waiting for %s, which writes it";
    char text[1024];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, how, own, other);
#pragma GCC diagnostic pop
    *out_text = gbx_text_format(s->t, "%s, %s%s%s", who, text, edge_text(s, f),
                                element_text(s, f, &second.tensor));
    return NULL;
}

static gbx_status say_audit(const saying *s, const char **out_text) {
    const gbx_audit_finding *f = &s->d->audit.findings[s->clue->index];
    return f->kind == GBX_AUDIT_UNDECLARED_WRITE || f->kind == GBX_AUDIT_CHANGED_RESULT
               ? say_change(s, f, out_text)
               : say_order(s, f, out_text);
}

/* --- kernels --- */

static gbx_status say_fault(const saying *s, const gbx_replay_result *result,
                            const char **out_text) {
    const char *who;
    GBX_TRY(title(s, result->task, &who));
    *out_text = gbx_text_format(s->t, "%s, %s when it is called again: %s", who,
                                result->did_complete ? "completed in the run, but fails"
                                                     : "did not complete in the run, and fails",
                                gbx_text_shown(s->t, result->fault->text));
    return NULL;
}

static gbx_status say_reference(const saying *s, const char **out_text) {
    const gbx_check_line *line = &s->d->check.lines[s->clue->index];
    const char *who;
    GBX_TRY(title(s, line->task, &who));
    *out_text = gbx_text_format(s->t, "%s, is wrong for its own inputs%s%s", who,
                                line->output_count > 0 ? ": " : "",
                                line->output_count > 0 ? gbx_text_introduced(s->t, line) : "");
    return NULL;
}

static gbx_status say_line(const saying *s, const char **out_text) {
    const gbx_check_line *line = &s->d->check.lines[s->clue->index];
    const char *who, *culprit = "";
    GBX_TRY(title(s, line->task, &who));
    if (line->culprit != UINT64_MAX) {
        GBX_TRY(title(s, line->culprit, &culprit));
        culprit = gbx_text_format(s->t, ": %s, wrote there", culprit);
    } else if (line->reason && line->verdict != GBX_CHECK_NOT_CHECKED) {
        culprit = gbx_text_format(s->t, ": %s", gbx_text_shown(s->t, line->reason));
    }
    *out_text = gbx_text_format(
        s->t, "%s, %s%s", who,
        line->verdict == GBX_CHECK_NOT_CHECKED
            ? "leaves other values when it is called again than the dump has"
        : line->kernels.verdict == GBX_REPLAY_FAULT
            ? "is wrong in the dump, and fails when it is called again"
            : "is wrong in the dump, but leaves the right values when it is called again",
        culprit);
    return NULL;
}

/* --- values --- */

static gbx_status say_nan(const saying *s, const char **out_text) {
    const gbx_nan_output *nan = &s->d->nan.nan;
    const char *who;
    gbx_party p;
    GBX_TRY(title(s, nan->task, &who));
    GBX_TRY(gbx_party_find(s->r, nan->task, nan->entry, &p));
    *out_text = gbx_text_format(
        s->t,
        "%s, is the first that leaves a NaN although none of its inputs has one: %s in %s%s%s", who,
        gbx_text_counted(s->t, nan->nan_count, "NaN"), gbx_text_party_argument(s->t, &p),
        nan->has_element ? ", the first at " : "",
        nan->has_element ? gbx_text_index(s->t, &p.tensor, nan->element) : "");
    return NULL;
}

/* The writer of a wrong result is right for its inputs, and a task before it may be wrong. */
static gbx_status say_unchecked(const saying *s, const char **out_text) {
    const gbx_diagnosis *d = s->d;
    const char *who;
    gbx_party unchecked, writer;
    GBX_TRY(title(s, d->unchecked.task, &who));
    GBX_TRY(gbx_party_find(s->r, d->unchecked.task, d->unchecked.entry, &unchecked));
    GBX_TRY(gbx_party_find(s->r, d->blame.writers[0].task, d->blame.writers[0].entry, &writer));
    *out_text = gbx_text_format(
        s->t,
        "%s, was not compared with a reference, and result %s, which is wrong, comes from its %s; "
        "%s of %s holds the result, and is right for its inputs",
        who, gbx_text_shown(s->t, d->golden), gbx_text_party_argument(s->t, &unchecked),
        gbx_text_party_argument(s->t, &writer), gbx_text_party_task(s->t, &writer));
    return NULL;
}

/* No task has written a result. */
static gbx_status say_unwritten(const saying *s, const char **out_text) {
    const gbx_diagnosis *d = s->d;
    const char *nearest = "", *who;
    gbx_party p;
    if (d->nearest.task != GBX_DIAGNOSIS_NOBODY) {
        GBX_TRY(title(s, d->nearest.task, &who));
        GBX_TRY(gbx_party_find(s->r, d->nearest.task, d->nearest.entry, &p));
        nearest = gbx_text_format(s->t, "; nearest to it writes %s, with %s", who,
                                  gbx_text_party_argument(s->t, &p));
    }
    *out_text = gbx_text_format(
        s->t, "no task writes result %s: a task is missing, or its output lies elsewhere%s",
        gbx_text_shown(s->t, d->golden), nearest);
    return NULL;
}

static gbx_status say_golden(const saying *s, const char **out_text) {
    const gbx_diagnosis *d = s->d;
    const char *who;
    gbx_party p;
    if (s->clue->task == GBX_DIAGNOSIS_NOBODY && d->is_unwritten)
        return say_unwritten(s, out_text);
    if (s->clue->task == GBX_DIAGNOSIS_NOBODY) {
        *out_text = gbx_text_format(s->t, "result %s is wrong, and who wrote it last is not known",
                                    gbx_text_shown(s->t, d->golden));
        return NULL;
    }
    const gbx_blame_writer *writer = &d->blame.writers[0];
    if (s->clue->other != GBX_DIAGNOSIS_NOBODY)
        return say_unchecked(s, out_text);
    const char *unused =
        d->unused_func == GBX_NO_KERNEL
            ? ""
            : gbx_text_format(
                  s->t, "; kernel %s, which takes the same sort of arguments, has no task",
                  gbx_text_shown(s->t, gbx_text_func(s->t, s->r->dump->reader, d->unused_func)));
    GBX_TRY(title(s, writer->task, &who));
    GBX_TRY(gbx_party_find(s->r, writer->task, writer->entry, &p));
    bool was_checked = d->unchecked.task != writer->task;
    *out_text = gbx_text_format(
        s->t,
        "%s, was the last to write result %s, which is wrong, as %s%s; no task is known to be "
        "wrong for its own inputs, %s%s",
        who, gbx_text_shown(s->t, d->golden), gbx_text_party_argument(s->t, &p),
        p.tensor.ndims > 0 ? gbx_text_index(s->t, &p.tensor, writer->element) : "",
        was_checked ? "so its arguments, or those of a task before it, may be"
                    : "but this one was not compared with a reference",
        unused);
    return NULL;
}

/* --- all of them --- */

static gbx_status say(const saying *s, const char **out_text) {
    const gbx_replay_result *result;
    switch (s->clue->source) {
    case GBX_CLUE_DUMP:
        return say_dump(s, out_text);
    case GBX_CLUE_END:
        return say_end(s, out_text);
    case GBX_CLUE_GUARD:
        return say_guard(s, out_text);
    case GBX_CLUE_AUDIT:
        return say_audit(s, out_text);
    case GBX_CLUE_REPLAY:
    case GBX_CLUE_UNENDED_OF:
        result = s->clue->source == GBX_CLUE_REPLAY ? &s->d->check.results[s->clue->index]
                                                    : &s->d->unended[s->clue->index];
        *out_text =
            gbx_text_finding(s->t, s->r->dump->reader, result, &result->findings[s->clue->item]);
        if (s->clue->kind == GBX_DIAGNOSIS_UNWRITTEN && s->clue->task != result->task)
            *out_text =
                gbx_text_format(s->t, "%s; with other values there it does not fail", *out_text);
        return NULL;
    case GBX_CLUE_FAULT:
        return say_fault(s, &s->d->check.results[s->clue->index], out_text);
    case GBX_CLUE_UNENDED:
        return say_fault(s, &s->d->unended[s->clue->index], out_text);
    case GBX_CLUE_REFERENCE:
        return say_reference(s, out_text);
    case GBX_CLUE_LINE:
        return say_line(s, out_text);
    case GBX_CLUE_SANITIZER: {
        const gbx_diagnosis_line *line = &s->d->lines[s->clue->index];
        *out_text =
            gbx_text_sanitize_finding(s->t, &line->task, &line->report.findings[s->clue->item]);
        return NULL;
    }
    case GBX_CLUE_NAN:
        return say_nan(s, out_text);
    case GBX_CLUE_ODD:
        return gbx_diagnosis_say_odd(s->r, &s->d->odd.items[s->clue->index], out_text);
    default:
        return say_golden(s, out_text);
    }
}

gbx_status gbx_diagnosis_title(const gbx_reporting *r, uint64_t task, const char **out_text) {
    const saying s = {.r = r, .t = &r->sink->texts};
    return title(&s, task, out_text);
}

gbx_status gbx_diagnosis_say_clue(const gbx_reporting *r, const gbx_diagnosis *diagnosis,
                                  const gbx_clue *clue, const char **out_text) {
    const saying s = {r, &r->sink->texts, diagnosis, clue};
    return say(&s, out_text);
}

gbx_status gbx_diagnosis_say(const gbx_reporting *r, const gbx_diagnosis *diagnosis,
                             const gbx_diagnosis_finding *finding, const char **out_text) {
    gbx_texts *t = &r->sink->texts;
    GBX_TRY(gbx_diagnosis_say_clue(r, diagnosis, &finding->clues[0], out_text));
    if (!finding->variable)
        return NULL;
    const char *place =
        finding->variable_file
            ? gbx_text_format(t, " (%s:%" PRIu32 ")", gbx_text_shown(t, finding->variable_file),
                              finding->variable_line)
            : "";
    *out_text =
        gbx_text_format(t, "%s; its variable %s%s keeps its value from one task to the next",
                        *out_text, gbx_text_shown(t, finding->variable), place);
    return NULL;
}
