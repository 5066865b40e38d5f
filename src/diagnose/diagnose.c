/* Asks all questions, cheapest first. */
#include "diagnose/diagnose.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "diagnose/internal.h"

static const gbx_name kind_names[] = {
    [GBX_DIAGNOSIS_DAMAGED_DUMP] = {.name = "damaged_dump"},
    [GBX_DIAGNOSIS_WRITE_RACE] = {.name = "write_race"},
    [GBX_DIAGNOSIS_READ_RACE] = {.name = "read_race"},
    [GBX_DIAGNOSIS_DATA_RACE] = {.name = "data_race"},
    [GBX_DIAGNOSIS_OUT_OF_BOUNDS_WRITE] = {.name = "out_of_bounds_write"},
    [GBX_DIAGNOSIS_OUT_OF_BOUNDS_READ] = {.name = "out_of_bounds_read"},
    [GBX_DIAGNOSIS_UNINITIALISED] = {.name = "uninitialised_value"},
    [GBX_DIAGNOSIS_BAD_LOCAL] = {.name = "bad_local"},
    [GBX_DIAGNOSIS_UNDEFINED] = {.name = "undefined_behaviour"},
    [GBX_DIAGNOSIS_STRAY_WRITE] = {.name = "stray_write"},
    [GBX_DIAGNOSIS_UNDECLARED_READ] = {.name = "undeclared_read"},
    [GBX_DIAGNOSIS_UNWRITTEN_READ] = {.name = "unwritten_read"},
    [GBX_DIAGNOSIS_ENDLESS_WAIT] = {.name = "endless_wait"},
    [GBX_DIAGNOSIS_STALE_FLAG] = {.name = "stale_flag"},
    [GBX_DIAGNOSIS_NOT_DETERMINISTIC] = {.name = "not_deterministic"},
    [GBX_DIAGNOSIS_OVERRUN] = {.name = "overrun"},
    [GBX_DIAGNOSIS_UNDERRUN] = {.name = "underrun"},
    [GBX_DIAGNOSIS_STRAY] = {.name = "stray"},
    [GBX_DIAGNOSIS_ARGUMENTS] = {.name = "arguments"},
    [GBX_DIAGNOSIS_READ_TOO_EARLY] = {.name = "read_too_early"},
    [GBX_DIAGNOSIS_OVERLAPPING_WRITES] = {.name = "overlapping_writes"},
    [GBX_DIAGNOSIS_WRONG_RESULT] = {.name = "wrong_result"},
    [GBX_DIAGNOSIS_CRASH] = {.name = "crash"},
    [GBX_DIAGNOSIS_HANG] = {.name = "hang"},
    [GBX_DIAGNOSIS_FAILS_AGAIN] = {.name = "fails_again"},
    [GBX_DIAGNOSIS_UNDECLARED_WRITE] = {.name = "undeclared_write"},
    [GBX_DIAGNOSIS_CHANGED_RESULT] = {.name = "changed_result"},
    [GBX_DIAGNOSIS_NOT_REPEATED] = {.name = "not_repeated"},
    [GBX_DIAGNOSIS_ODD_MEMORY] = {.name = "odd_memory"},
    [GBX_DIAGNOSIS_ODD_SCALAR] = {.name = "odd_scalar"},
    [GBX_DIAGNOSIS_ODD_VIEW] = {.name = "odd_view"},
    [GBX_DIAGNOSIS_ODD_TASK] = {.name = "odd_task"},
    [GBX_DIAGNOSIS_LOST_WRITE] = {.name = "lost_write"},
    [GBX_DIAGNOSIS_NAN] = {.name = "nan"},
    [GBX_DIAGNOSIS_UNWRITTEN] = {.name = "unwritten"},
    [GBX_DIAGNOSIS_WRONG_OUTPUT] = {.name = "wrong_output"},
    [GBX_DIAGNOSIS_FAILED_RUN] = {.name = "failed_run"}};
const gbx_name_set gbx_diagnosis_kinds = {kind_names, GBX_DIAGNOSIS_KIND_COUNT};

static const gbx_name question_names[] = {
    [GBX_ASKED_DUMP] = {.name = "dump", .sentence = "hashes, sizes and counts of the dump"},
    [GBX_ASKED_RUN] = {.name = "run", .sentence = "what the run noticed by itself"},
    [GBX_ASKED_AUDIT] = {.name = "audit", .sentence = "changes of memory, and order of tasks"},
    [GBX_ASKED_REPLAY] = {.name = "replay", .sentence = "writes and reads outside of arguments"},
    [GBX_ASKED_RACES] = {.name = "races", .sentence = "races between blocks and subtasks"},
    [GBX_ASKED_REFERENCES] = {.name = "references", .sentence = "results against references"},
    [GBX_ASKED_SANITIZERS] = {.name = "sanitizers", .sentence = "sanitizers of the compiler"},
    [GBX_ASKED_NAN] = {.name = "nan", .sentence = "the first NaN"},
    [GBX_ASKED_GOLDEN] = {.name = "golden", .sentence = "outputs of the run against its golden"},
    [GBX_ASKED_GRAPH] = {.name = "graph", .sentence = "odd arguments in the graph"}};
const gbx_name_set gbx_diagnosis_questions = {question_names, GBX_ASKED_QUESTION_COUNT};

/* --- parts --- */

gbx_status gbx_inquiry_chooses(const gbx_inquiry *q, uint64_t task, bool *out_is_chosen) {
    const gbx_check_filter *filter = q->request->filter;
    gbx_record_task record;
    bool is_found = false;
    *out_is_chosen = task == GBX_DIAGNOSIS_NOBODY ||
                     (filter->numbers.count == 0 && filter->ids.count == 0) ||
                     gbx_selection_has_number(&filter->numbers, task);
    if (*out_is_chosen || filter->ids.count == 0)
        return NULL;
    GBX_TRY(gbx_reader_find_task(q->reader, task, &record, &is_found));
    *out_is_chosen = is_found && gbx_selection_has_number(&filter->ids, record.task_id);
    return NULL;
}

/* Which question found it. */
static gbx_diagnosis_question question_of(const gbx_clue *clue) {
    static const gbx_diagnosis_question questions[] = {[GBX_CLUE_DUMP] = GBX_ASKED_DUMP,
                                                       [GBX_CLUE_END] = GBX_ASKED_RUN,
                                                       [GBX_CLUE_GUARD] = GBX_ASKED_RUN,
                                                       [GBX_CLUE_AUDIT] = GBX_ASKED_AUDIT,
                                                       [GBX_CLUE_REPLAY] = GBX_ASKED_REPLAY,
                                                       [GBX_CLUE_FAULT] = GBX_ASKED_REPLAY,
                                                       [GBX_CLUE_UNENDED] = GBX_ASKED_REPLAY,
                                                       [GBX_CLUE_UNENDED_OF] = GBX_ASKED_REPLAY,
                                                       [GBX_CLUE_REFERENCE] = GBX_ASKED_REFERENCES,
                                                       [GBX_CLUE_LINE] = GBX_ASKED_REPLAY,
                                                       [GBX_CLUE_SANITIZER] = GBX_ASKED_SANITIZERS,
                                                       [GBX_CLUE_NAN] = GBX_ASKED_NAN,
                                                       [GBX_CLUE_ODD] = GBX_ASKED_GRAPH,
                                                       [GBX_CLUE_GOLDEN] = GBX_ASKED_GOLDEN};
    bool is_race = clue->kind == GBX_DIAGNOSIS_WRITE_RACE || clue->kind == GBX_DIAGNOSIS_READ_RACE;
    return is_race ? GBX_ASKED_RACES : questions[clue->source];
}

static gbx_status set_slot(const gbx_inquiry *q, gbx_clue *clue) {
    gbx_diagnosis_finding described;
    GBX_TRY(gbx_clue_describe(q, clue, &described));
    clue->slot = described.slot;
    return NULL;
}

gbx_status gbx_inquiry_add(gbx_inquiry *q, gbx_clue clue) {
    bool is_chosen, is_other_chosen;
    GBX_TRY(gbx_inquiry_chooses(q, clue.task, &is_chosen));
    GBX_TRY(gbx_inquiry_chooses(q, clue.other, &is_other_chosen));
    bool is_for_both = clue.other != GBX_DIAGNOSIS_NOBODY && is_other_chosen;
    if (!is_chosen && !is_for_both && !gbx_clue_is_pair(&clue))
        return NULL;
    GBX_TRY(gbx_array_reserve(&q->clues, &q->clue_capacity, q->clue_count + 1, "diagnosing"));
    GBX_TRY(set_slot(q, &clue));
    if (clue.task != GBX_DIAGNOSIS_NOBODY)
        clue.place = gbx_task_graph_place(q->graph, clue.task);
    ++q->d->asked[question_of(&clue)].findings;
    q->clues[q->clue_count++] = clue;
    return NULL;
}

enum { REASONS_MAX = 3 };

/* Whether one of the reasons in `list` is this. */
static bool has_reason(const char *list, const char *reason) {
    size_t length = strlen(reason);
    for (const char *at = list; at;) {
        if (strncmp(at, reason, length) == 0 &&
            (at[length] == '\0' || strncmp(at + length, "; ", 2) == 0))
            return true;
        at = strstr(at, "; ");
        at = at ? at + 2 : NULL;
    }
    return false;
}

/* "one; another" */
static gbx_status append(char **list, const char *text) {
    char *all = NULL;
    if (asprintf(&all, "%s%s%s", *list ? *list : "", *list ? "; " : "", text) < 0)
        return gbx_fail_memory("diagnosing");
    free(*list);
    *list = all;
    return NULL;
}

static gbx_status add_reason(gbx_diagnosis_asked *asked, const char *reason) {
    if (asked->reasons > REASONS_MAX || has_reason(asked->why, reason))
        return NULL;
    return append(&asked->why, asked->reasons++ < REASONS_MAX ? reason : "and other reasons");
}

/* What a compiler says has several lines: only the one that names an error is kept, or the first.
 */
static void make_one_line(char *text) {
    size_t first = strcspn(text, "\n");
    const char *best = text[first] ? strstr(text + first, "error") : NULL;
    if (!text[first])
        return;
    best = best ? best : text + first + strspn(text + first, "\n");
    while (best > text + first + 1 && best[-1] != '\n')
        --best;
    size_t length = strcspn(best, "\n");
    text[first] = length > 0 ? ' ' : '\0';
    memmove(text + first + 1, best, length);
    text[first + (length > 0) + length] = '\0';
}

gbx_status gbx_inquiry_lack(gbx_inquiry *q, gbx_diagnosis_question question, const char *format,
                            ...) {
    char *reason = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&reason, format, arguments);
    va_end(arguments);
    if (length < 0)
        return gbx_fail_memory("diagnosing");
    make_one_line(reason);
    gbx_status status = add_reason(&q->d->asked[question], reason);
    free(reason);
    return status;
}

gbx_status gbx_inquiry_note_harmless(gbx_inquiry *q, gbx_diagnosis_question question,
                                     const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return gbx_fail_memory("diagnosing");
    gbx_status status = append(&q->d->asked[question].harmless, text);
    free(text);
    return status;
}

gbx_status gbx_inquiry_open_session(const gbx_inquiry *q, gbx_replay_session *out_session) {
    const gbx_replay_session_config config = {.entries = q->request->entries,
                                              .directory = q->request->directory,
                                              .is_trusted = q->request->is_trusted,
                                              .timeout_ms = q->request->timeout_ms,
                                              .dispatch = -1,
                                              .runs = 1,
                                              .jobs = 1,
                                              .is_silent = true};
    return gbx_replay_session_open(&config, out_session);
}

static void report(const gbx_inquiry *q, gbx_diagnose_step step, uint64_t done, uint64_t all) {
    if (q->request->progress)
        q->request->progress(q->request->progress_context, step, done, all);
}

/* --- the dump itself --- */

static void on_verify(void *context, const char *what, uint64_t done_bytes, uint64_t bytes) {
    (void)what;
    report(context, GBX_DIAGNOSE_VERIFIES, done_bytes, bytes);
}

static gbx_status ask_dump(gbx_inquiry *q) {
    const gbx_verify_observer observer = {q, on_verify};
    GBX_TRY(gbx_dump_verify_journal(q->request->directory, &observer, &q->d->verification));
    q->d->asked[GBX_ASKED_DUMP].tasks = q->d->tasks;
    return gbx_clues_of_dump(q);
}

/* --- the audit --- */

static void on_audit(void *context, uint64_t done, uint64_t all) {
    report(context, GBX_DIAGNOSE_AUDITS, done, all);
}

static gbx_status ask_audit(gbx_inquiry *q) {
    gbx_diagnosis_asked *asked = &q->d->asked[GBX_ASKED_AUDIT];
    gbx_status status = gbx_audit_run(q->request->entries, q->graph, on_audit, q, &q->d->audit);
    if (status && gbx_status_code(status) != GBX_BAD_FORMAT)
        return status;
    if (status) {
        gbx_status noted = gbx_inquiry_lack(q, GBX_ASKED_AUDIT, "%s", gbx_status_message(status));
        gbx_status_free(status);
        asked->not_asked = q->d->tasks;
        return gbx_status_first(noted, gbx_inquiry_count_recorded(q));
    }
    q->d->has_audit = true;
    GBX_TRY(gbx_inquiry_count_recorded(q));
    asked->tasks = gbx_min_u64(q->d->with_tensors, q->d->chosen);
    asked->not_asked = q->d->tasks - q->d->with_tensors;
    return gbx_clues_of_audit(q);
}

/* --- kernels and references --- */

static void on_check(void *context, gbx_check_step step, uint64_t count) {
    gbx_inquiry *q = context;
    if (step == GBX_CHECK_COMPILES)
        report(q, GBX_DIAGNOSE_COMPILES, 0, 0);
    else
        report(q, GBX_DIAGNOSE_CALLS, step == GBX_CHECK_GOES_ON ? count : 0, q->d->tasks);
}

static gbx_status ask_kernels(gbx_inquiry *q) {
    const gbx_diagnose_request *request = q->request;
    const gbx_check_request check = {.entries = request->entries,
                                     .directory = request->directory,
                                     .scene = request->scene,
                                     .filter = request->filter,
                                     .timeout_ms = request->timeout_ms,
                                     .jobs = request->jobs,
                                     .is_trusted = request->is_trusted,
                                     .may_lack_scene = !request->scene,
                                     .is_silent = true,
                                     .keeps_notes = true, /* what is not written */
                                     .progress = on_check,
                                     .progress_context = q};
    GBX_TRY(gbx_check_dump(&check, &q->d->check));
    return gbx_clues_of_kernels(q);
}

/* A task that did not complete: whether it fails again, and with what. */
static gbx_status call_unended(gbx_inquiry *q, gbx_replay_session *session, uint64_t number) {
    gbx_replay_task task;
    gbx_replay_job job;
    gbx_diagnosis *d = q->d;
    GBX_TRY(
        gbx_array_reserve(&d->unended, &d->unended_capacity, d->unended_count + 1, "diagnosing"));
    gbx_replay_result *result = &d->unended[d->unended_count];
    *result = (gbx_replay_result){0};
    gbx_status status = gbx_replay_task_read(q->request->entries, number, &task);
    if (status)
        status = gbx_replay_task_explain(&task, status, true);
    if (!status)
        status = gbx_replay_session_job(session, &task, &job);
    if (!status)
        status = gbx_replay_execute(&job, NULL, result);
    gbx_replay_task_free(&task);
    if (!status) {
        ++d->unended_count;
        return NULL;
    }
    gbx_replay_result_free(result);
    gbx_status noted = gbx_inquiry_lack(q, GBX_ASKED_REPLAY, "%s", gbx_status_message(status));
    gbx_status_free(status);
    return noted;
}

enum { UNENDED_MAX = 16 };

static gbx_status have_same_kernels(const gbx_inquiry *q, uint64_t one, uint64_t other,
                                    bool *out_have) {
    gbx_record_task records[2];
    bool are_found[2];
    GBX_TRY(gbx_reader_find_task(q->reader, one, &records[0], &are_found[0]));
    GBX_TRY(gbx_reader_find_task(q->reader, other, &records[1], &are_found[1]));
    *out_have = are_found[0] && are_found[1] &&
                memcmp(records[0].func_ids, records[1].func_ids, sizeof records[0].func_ids) == 0;
    return NULL;
}

/* Of a kernel that hangs, every call takes the whole time. */
static gbx_status pass_over_hung(gbx_inquiry *q, uint64_t task, bool *out_passes) {
    *out_passes = false;
    for (size_t i = 0; i < q->d->unended_count && !*out_passes; ++i) {
        const gbx_replay_result *result = &q->d->unended[i];
        if (!result->fault || !result->fault->is_hang)
            continue;
        GBX_TRY(have_same_kernels(q, result->task, task, out_passes));
        if (*out_passes)
            GBX_TRY(gbx_inquiry_lack(q, GBX_ASKED_REPLAY,
                                     "its kernel hung when task %" PRIu64 " was called again",
                                     result->task));
    }
    return NULL;
}

static gbx_status ask_unended(gbx_inquiry *q) {
    gbx_replay_session session = {0};
    gbx_status status = NULL;
    uint64_t count = 0;
    if (gbx_reader_has_ended_well(q->reader))
        return NULL;
    for (uint64_t i = 0; i < gbx_task_graph_count(q->graph) && !status; ++i) {
        const gbx_graph_task *task = gbx_task_graph_at(q->graph, i);
        bool is_chosen;
        if (task->end_ns != UINT64_MAX)
            continue;
        status = gbx_inquiry_chooses(q, task->task, &is_chosen);
        if (status || !is_chosen || ++count > UNENDED_MAX)
            continue;
        bool passes = false;
        if (count == 1)
            status = gbx_inquiry_open_session(q, &session);
        if (!status)
            status = pass_over_hung(q, task->task, &passes);
        if (!status && !passes)
            status = call_unended(q, &session, task->task);
    }
    if (!status && count > UNENDED_MAX)
        status = gbx_inquiry_lack(q, GBX_ASKED_REPLAY,
                                  "only the first %d tasks that did not complete are called again",
                                  UNENDED_MAX);
    if (count > 0)
        gbx_replay_session_close(&session);
    return status ? status : gbx_clues_of_unended(q);
}

/* --- values --- */

static gbx_status ask_values(gbx_inquiry *q) {
    GBX_TRY(gbx_inquiry_ask_golden(q));
    GBX_TRY(gbx_inquiry_follow(q));
    GBX_TRY(gbx_inquiry_compare_overlaps(q));
    GBX_TRY(gbx_inquiry_reduce_pairs(q));
    GBX_TRY(gbx_inquiry_ask_nan(q));
    GBX_TRY(gbx_inquiry_find_hints(q));
    return gbx_clues_of_values(q);
}

/* --- all of it --- */

static gbx_status count_chosen(gbx_inquiry *q) {
    q->d->tasks = gbx_task_graph_count(q->graph);
    for (uint64_t i = 0; i < q->d->tasks; ++i) {
        bool is_chosen;
        GBX_TRY(gbx_inquiry_chooses(q, gbx_task_graph_at(q->graph, i)->task, &is_chosen));
        q->d->chosen += is_chosen;
    }
    return NULL;
}

static gbx_status ask_all(gbx_inquiry *q) {
    GBX_TRY(gbx_task_graph_create(q->reader, &q->graph));
    GBX_TRY(count_chosen(q));
    GBX_TRY(ask_dump(q));
    GBX_TRY(gbx_clues_of_run(q));
    GBX_TRY(ask_audit(q));
    GBX_TRY(ask_kernels(q));
    GBX_TRY(ask_unended(q));
    report(q, GBX_DIAGNOSE_CONCLUDES, 0, 0);
    GBX_TRY(ask_values(q));
    GBX_TRY(gbx_inquiry_group(q));
    report(q, GBX_DIAGNOSE_SANITIZES, 0, 0);
    GBX_TRY(gbx_inquiry_find_lines(q));
    GBX_TRY(gbx_inquiry_note_variables(q));
    return gbx_inquiry_conclude(q);
}

gbx_status gbx_diagnose(const gbx_diagnose_request *request, gbx_diagnosis *out_diagnosis) {
    gbx_inquiry q = {request, out_diagnosis, gbx_entries_reader(request->entries), NULL, NULL, 0,
                     0};
    *out_diagnosis =
        (gbx_diagnosis){.unused_func = GBX_NO_KERNEL, .unchecked = {GBX_DIAGNOSIS_NOBODY, 0}};
    gbx_status status = ask_all(&q);
    gbx_task_graph_destroy(q.graph);
    free(q.clues);
    return status;
}

void gbx_diagnosis_free(gbx_diagnosis *diagnosis) {
    gbx_diagnosis_findings_free(diagnosis);
    gbx_diagnosis_lines_free(diagnosis);
    for (size_t i = 0; i < GBX_ASKED_QUESTION_COUNT; ++i) {
        free(diagnosis->asked[i].why);
        free(diagnosis->asked[i].harmless);
    }
    for (size_t i = 0; i < diagnosis->unended_count; ++i)
        gbx_replay_result_free(&diagnosis->unended[i]);
    free(diagnosis->unended);
    free(diagnosis->guards);
    free(diagnosis->golden);
    free(diagnosis->upstream);
    gbx_odd_free(&diagnosis->odd);
    gbx_check_report_free(&diagnosis->check);
    gbx_audit_free(&diagnosis->audit);
    gbx_verification_free(&diagnosis->verification);
    *diagnosis = (gbx_diagnosis){0};
}
