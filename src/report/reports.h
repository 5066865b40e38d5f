/*
 * The reports of commands: for people, the line that matters first, and as one JSON document (the
 * forms are in docs/). Each writes to a sink and fails only as reading and writing do.
 */
#ifndef GBX_REPORT_REPORTS_H
#define GBX_REPORT_REPORTS_H

#include "analysis/audit/audit.h"
#include "analysis/blame/blame.h"
#include "analysis/blame/first_nan.h"
#include "analysis/diff/diff.h"
#include "analysis/export/export.h"
#include "analysis/selection.h"
#include "diagnose/diagnose.h"
#include "replay/check/check_report.h"
#include "replay/sanitize/sanitize.h"
#include "replay/session.h"
#include "replay/swap/swap.h"
#include "report/dump.h"
#include "report/party.h"
#include "report/progress.h"
#include "report/sink.h"
#include "scene/runner.h"
#include "store/recover.h"
#include "store/verify/verify.h"

/* --- audit_report.c --- */

/* `given` is how the user named the dump, NULL for the latest. */
GBX_MUST_USE gbx_status gbx_audit_print(gbx_sink *sink, const gbx_opened_dump *dump,
                                        const char *given, const gbx_audit *audit, bool as_json);

/* --- blame_report.c --- */

typedef struct gbx_blame_report {
    gbx_blame_element element;
    gbx_blame_answer answer;
    gbx_blame_inputs inputs; /* freed by the owner of the report */
} gbx_blame_report;

/* The dump is open with GBX_INDEX_GRAPH. `element` is a text for gbx_blame_find; `depth` 0: no
 * inputs. `progress` may be NULL. */
GBX_MUST_USE gbx_status gbx_blame_report_make(const gbx_opened_dump *dump, const char *element,
                                              uint32_t depth, gbx_progress *progress,
                                              gbx_blame_report *out_report);

/* `given` as above. */
GBX_MUST_USE gbx_status gbx_blame_print(gbx_sink *sink, const gbx_opened_dump *dump,
                                        const char *given, const gbx_blame_report *report,
                                        bool as_json);

/* One line, indented, with the command that says more; and the members of an object that is
 * begun. */
GBX_MUST_USE gbx_status gbx_blame_print_line(gbx_sink *sink, const gbx_opened_dump *dump,
                                             const char *given, const gbx_blame_report *report);
GBX_MUST_USE gbx_status gbx_blame_put(gbx_sink *sink, const gbx_opened_dump *dump,
                                      const char *given, const gbx_blame_report *report);

/* The command that asks for an element. */
const char *gbx_text_blame(gbx_texts *texts, const gbx_opened_dump *dump, const char *given,
                           const gbx_blame_element *element);

/* --- first_nan_report.c --- */

/* gbx_first_nan_find with a progress line; the dump is open with GBX_INDEX_GRAPH. */
GBX_MUST_USE gbx_status gbx_first_nan_search(const gbx_opened_dump *dump, const gbx_selected *only,
                                             gbx_first_nan *out_first);

/* `given` as above. */
GBX_MUST_USE gbx_status gbx_first_nan_print(gbx_sink *sink, const gbx_opened_dump *dump,
                                            const char *given, const gbx_first_nan *found,
                                            bool as_json);

/* --- check_report.c --- */

/* `given` as above. */
GBX_MUST_USE gbx_status gbx_check_print(gbx_sink *sink, const gbx_opened_dump *dump,
                                        const char *given, const gbx_check_report *report,
                                        bool as_json);

/* "weights[6, 3] is 1.0, expected 0.0 (...); 11 of 128 elements are wrong", of a line that is
 * introduced and whose outputs are kept. */
const char *gbx_text_introduced(gbx_texts *texts, const gbx_check_line *line);

/* --- diagnosis_text.c, diagnosis_hint_text.c, diagnosis_report.c, diagnosis_json.c --- */

/* What a finding says, and what one of its clues does; *out_text is in the sink's texts. */
GBX_MUST_USE gbx_status gbx_diagnosis_say(const gbx_reporting *r, const gbx_diagnosis *diagnosis,
                                          const gbx_diagnosis_finding *finding,
                                          const char **out_text);
GBX_MUST_USE gbx_status gbx_diagnosis_say_clue(const gbx_reporting *r,
                                               const gbx_diagnosis *diagnosis, const gbx_clue *clue,
                                               const char **out_text);

/* What is odd about an argument. */
GBX_MUST_USE gbx_status gbx_diagnosis_say_odd(const gbx_reporting *r, const gbx_odd_argument *odd,
                                              const char **out_text);

/* "task 12, kernel add", which most sentences begin with. */
GBX_MUST_USE gbx_status gbx_diagnosis_title(const gbx_reporting *r, uint64_t task,
                                            const char **out_text);

/* `given` as above. As JSON it is the document that is kept in the dump's directory. */
GBX_MUST_USE gbx_status gbx_diagnosis_print(gbx_sink *sink, const gbx_opened_dump *dump,
                                            const char *given, const gbx_diagnosis *diagnosis,
                                            bool as_json);

/* The document alone, and the command that shows a finding again. */
GBX_MUST_USE gbx_status gbx_diagnosis_put(const gbx_reporting *r, const gbx_diagnosis *diagnosis);
const char *gbx_text_diagnosis_command(const gbx_reporting *r, const gbx_diagnosis *diagnosis,
                                       const gbx_diagnosis_finding *finding);

/* Writes DIRECTORY/diagnosis.json. */
GBX_MUST_USE gbx_status gbx_diagnosis_save(const gbx_opened_dump *dump, const char *given,
                                           const gbx_diagnosis *diagnosis);

/* --- diagnosis_ask.c --- */

typedef struct gbx_diagnosis_asking {
    const char *command;          /* whose warnings these are */
    const char *given;            /* as above */
    gbx_diagnose_request request; /* without entries, directory and progress */
    bool saves;                   /* diagnosis.json */
    bool as_json;
    bool is_quiet; /* nothing is printed */
} gbx_diagnosis_asking;

/* Opens the dump, asks it with a progress line, prints the diagnosis and keeps it. */
GBX_MUST_USE gbx_status gbx_diagnosis_ask(gbx_sink *sink, const gbx_diagnosis_asking *asking,
                                          size_t *out_findings);

/* --- finding_report.c --- */

/* The names of gbx_finding_of in JSON. */
extern const char *const gbx_replay_finding_names[GBX_FINDING_KINDS];

/* "task 12, kernel add, changes 4 bytes outside its outputs, ..." */
const char *gbx_text_finding(gbx_texts *texts, const gbx_reader *reader,
                             const gbx_replay_result *result, const gbx_replay_finding *finding);

/* "findings" and "notes" of some tasks; those of one, into an array that is begun. */
void gbx_findings_put(gbx_sink *sink, const gbx_reader *reader, const gbx_replay_result *results,
                      uint64_t count);
void gbx_findings_put_items(gbx_sink *sink, const gbx_reader *reader,
                            const gbx_replay_result *result, bool are_notes);

/* --- sanitize_report.c --- */

/* "task 5, kernel scale, reads 4 bytes right behind argument 0 x (element [64] of [64]) at
 * kernels/scale.c:7" */
const char *gbx_text_sanitize_finding(gbx_texts *texts, const gbx_replay_task *task,
                                      const gbx_sanitize_finding *finding);

/* "address was not asked: ..." of a sanitizer that was to be asked and was not; else NULL. */
const char *gbx_text_sanitize_reason(gbx_texts *texts, const gbx_sanitize_report *report,
                                     gbx_sanitizer sanitizer);

/* "asked", "findings" and "notes", in an object that is begun. */
void gbx_sanitize_put(gbx_sink *sink, const gbx_replay_task *task,
                      const gbx_sanitize_report *report);

/* A report on one task. `is_verbose`: with all that was printed. */
GBX_MUST_USE gbx_status gbx_sanitize_print(gbx_sink *sink, const gbx_replay_task *task,
                                           const gbx_sanitize_report *report, bool is_verbose,
                                           bool as_json);

/* 0: nothing found; 1: findings; 2: nothing could be asked. */
int gbx_sanitize_exit_code(const gbx_sanitize_report *report);

/* --- replay_report.c --- */

/* Where a report on replayed tasks goes, and what the recorded run ended with, "" if well. */
typedef struct gbx_replay_reporting {
    gbx_sink *sink;
    const gbx_reader *reader;
    const char *run_end;
} gbx_replay_reporting;

int gbx_replay_exit_code(const gbx_replay_result *result);
int gbx_replay_swap_exit_code(const gbx_replay_swap *swap);

/* One task; one with other kernels, `files` for people. */
GBX_MUST_USE gbx_status gbx_replay_print(const gbx_replay_reporting *r,
                                         const gbx_replay_result *result, bool as_json);
GBX_MUST_USE gbx_status gbx_replay_print_swap(const gbx_replay_reporting *r,
                                              const gbx_replay_swap *swap, const char *files,
                                              bool as_json);

/* The members of one task, in an object that is begun. */
void gbx_replay_put(const gbx_replay_reporting *r, const gbx_replay_result *result);

/* For a list of tasks: its words, its note and its colour. */
const char *gbx_replay_verdict_name(gbx_replay_verdict verdict); /* in JSON */
const char *gbx_replay_verdict_text(gbx_sink *sink, gbx_replay_verdict verdict, uint64_t count);
GBX_MUST_USE gbx_status gbx_replay_print_rows(const gbx_replay_reporting *r,
                                              const gbx_replay_result *results, uint64_t count);

/* --- replay_list_report.c --- */

/* A report on many tasks that grows while they are replayed. */
typedef struct gbx_replay_listing gbx_replay_listing;
GBX_MUST_USE gbx_status gbx_replay_listing_begin(const gbx_replay_reporting *r, bool as_json,
                                                 gbx_replay_listing **out_listing);
/* A gbx_replay_on_result: `listing` is a gbx_replay_listing. */
GBX_MUST_USE gbx_status gbx_replay_listing_add(void *listing, gbx_replay_result *result);
/* Prints the rest and frees it; `status` is what happened before, and is returned. */
GBX_MUST_USE gbx_status gbx_replay_listing_end(gbx_replay_listing *listing, gbx_status status,
                                               int *out_exit_code);

/* --- dispatch_report.c --- */

/* `indices` of `selected` are dispatches, numbered as in kernel_args_dump.json; the first `limit`
 * of them are listed. The JSON has the form of that file, and needs a reader with
 * GBX_INDEX_EXECUTIONS. */
GBX_MUST_USE gbx_status gbx_dispatches_print_list(gbx_sink *sink, const gbx_opened_dump *dump,
                                                  const gbx_dispatches *dispatches,
                                                  const gbx_selected *selected, uint64_t limit,
                                                  bool is_filtered);
GBX_MUST_USE gbx_status gbx_dispatches_print_json(gbx_sink *sink, const gbx_opened_dump *dump,
                                                  const gbx_dispatches *dispatches,
                                                  const gbx_selected *selected, uint64_t limit);

/* One dispatch, a line for each argument. */
GBX_MUST_USE gbx_status gbx_dispatches_print_one(gbx_sink *sink, const gbx_opened_dump *dump,
                                                 const gbx_dispatches *dispatches, uint64_t index);

/* --- diff_report.c --- */

/* The two dumps, and the one whose names and numbers are shown: A, unless only B has names. */
typedef struct gbx_diff_dumps {
    gbx_opened_dump a;
    gbx_opened_dump b;
    bool shows_b;
} gbx_diff_dumps;

enum { GBX_DIFF_LINES_MAX = 20 };

/* Their entries are NULL. */
typedef struct gbx_diff_kept {
    gbx_diff_record records[GBX_DIFF_LINES_MAX];
    uint64_t count;
} gbx_diff_kept;

/* While records come, JSON is written, or the first of each verdict are kept for a text. */
typedef struct gbx_diff_report {
    gbx_sink *sink;
    const gbx_diff_dumps *dumps;
    bool as_json;
    gbx_diff_kept kept[GBX_DIFF_VERDICT_COUNT];  /* those of B are with those of A */
    gbx_diff_record gaps[GBX_DIFF_REASON_COUNT]; /* the first that was not compared of each */
} gbx_diff_report;

/* The report borrows sink and dumps, and needs no free. */
void gbx_diff_report_begin(gbx_sink *sink, const gbx_diff_dumps *dumps, bool as_json,
                           gbx_diff_report *out_report);

/* For gbx_diff_observer.on_record. */
void gbx_diff_report_add(gbx_diff_report *report, const gbx_diff_record *record);

/* `status` is how the comparison ended: a failure is returned, and JSON ends where it is. */
GBX_MUST_USE gbx_status gbx_diff_report_end(gbx_diff_report *report, const gbx_diff_result *result,
                                            gbx_status status);

/* --- verify_report.c --- */

GBX_MUST_USE gbx_status gbx_verification_print(gbx_sink *sink, const gbx_verification *verification,
                                               const char *directory, bool as_json);

/* --- recover_report.c --- */

void gbx_recovery_print(gbx_sink *sink, const gbx_recovery *recovery, const char *directory);

/* --- run_report.c --- */

typedef struct gbx_run_layout {
    const gbx_scene *scene;             /* all of these are borrowed */
    const gbx_scene_options *options;   /* have no defaults left open */
    const gbx_scene_case *const *cases; /* that will run */
    size_t case_count;
    bool is_verbose; /* outputs that are right are printed, too */
    bool diagnoses;  /* so nobody needs the command that does */
    bool as_json;
} gbx_run_layout;

typedef struct gbx_run_report {
    gbx_sink *sink;
    gbx_run_layout layout;
    size_t name_width; /* of the longest case's name */
    bool is_begun;     /* the document */
} gbx_run_report;

/* The report borrows the sink, and needs no free. */
void gbx_run_report_begin(gbx_sink *sink, const gbx_run_layout *layout, gbx_run_report *out_report);

/* A result as it comes: a line, more for outputs that differ, or an object of the document; and on
 * stderr the sentence of a case that failed. */
void gbx_run_report_add(gbx_run_report *report, const gbx_round_result *result);

/* Whether something is wrong that the run's dump says more about. */
bool gbx_run_needs_diagnosis(const gbx_round_result *result);

/* Whether it has a dump, and is wrong or refused: --diagnose asks also a dump that holds little. */
bool gbx_run_can_be_diagnosed(const gbx_round_result *result);

/* `status` is how the run ended: a failure is returned. */
GBX_MUST_USE gbx_status gbx_run_report_end(gbx_run_report *report, gbx_status status);

/* --- view_report.c --- */

/* A row each of the first `limit` entries, in their order. `is_filtered`: a line below says how
 * many match. */
GBX_MUST_USE gbx_status gbx_view_print_list(gbx_sink *sink, const gbx_opened_dump *dump,
                                            const gbx_selected *selected, uint64_t limit,
                                            bool is_filtered, bool has_statistics);

/* What it is, its values, their spread and statistics. `is_full`: all elements, however many; fails
 * with GBX_OUT_OF_RANGE where more than 2^32 of them were cut off. */
GBX_MUST_USE gbx_status gbx_view_print_entry(gbx_sink *sink, const gbx_opened_dump *dump,
                                             uint64_t index, bool is_full);

/* A row each of the run's outputs and in-outs at its end; and one of them as an entry above. */
GBX_MUST_USE gbx_status gbx_view_print_results(gbx_sink *sink, const gbx_opened_dump *dump,
                                               bool has_statistics);
GBX_MUST_USE gbx_status gbx_view_print_result(gbx_sink *sink, const gbx_opened_dump *dump,
                                              uint64_t number, bool is_full);

/* The manifest with the first `limit` entries; the dump is open with GBX_INDEX_EXECUTIONS. */
GBX_MUST_USE gbx_status gbx_view_print_json(gbx_sink *sink, const gbx_opened_dump *dump,
                                            const gbx_selected *selected, uint64_t limit,
                                            bool has_statistics);

/* --- export_report.c --- */

/* How much of so many selected entries went to `place`, and what a user has to know of it. */
void gbx_export_print(gbx_sink *sink, const gbx_export_notes *notes, uint64_t selected,
                      gbx_export_format format, const char *place);
void gbx_simpler_print(gbx_sink *sink, const gbx_simpler_report *report, const gbx_reader *reader,
                       uint64_t selected, const char *place);

#endif
