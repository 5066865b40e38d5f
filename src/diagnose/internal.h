/* Shared by the files of src/diagnose. */
#ifndef GBX_DIAGNOSE_INTERNAL_H
#define GBX_DIAGNOSE_INTERNAL_H

#include "diagnose/diagnose.h"

typedef struct gbx_inquiry {
    const gbx_diagnose_request *request;
    gbx_diagnosis *d;
    gbx_reader *reader;
    gbx_task_graph *graph;
    gbx_clue *clues;
    size_t clue_count;
    uint64_t clue_capacity;
} gbx_inquiry;

/* --- diagnose.c --- */

/* Whether --task has chosen it; nobody is always chosen. */
GBX_MUST_USE gbx_status gbx_inquiry_chooses(const gbx_inquiry *q, uint64_t task,
                                            bool *out_is_chosen);

/* Whether it is about two tasks without order. */
static inline bool gbx_clue_is_pair(const gbx_clue *clue) {
    return clue->source == GBX_CLUE_AUDIT && (clue->kind == GBX_DIAGNOSIS_READ_TOO_EARLY ||
                                              clue->kind == GBX_DIAGNOSIS_OVERLAPPING_WRITES);
}

/* Adds a clue if its task is chosen, or if it has no task. Sets its place if it has one. A clue
 * about two tasks without order is always added: gbx_inquiry_reduce_pairs needs all of them, and
 * drops those that are not chosen. */
GBX_MUST_USE gbx_status gbx_inquiry_add(gbx_inquiry *q, gbx_clue clue);

/* Notes why something was not asked; each reason once, and only the first few. As printf. */
GBX_MUST_USE gbx_status gbx_inquiry_lack(gbx_inquiry *q, gbx_diagnosis_question question,
                                         const char *format, ...) GBX_PRINTF(3, 4);

/* Notes what was found, and is no finding. As printf. */
GBX_MUST_USE gbx_status gbx_inquiry_note_harmless(gbx_inquiry *q, gbx_diagnosis_question question,
                                                  const char *format, ...) GBX_PRINTF(3, 4);

/* To call tasks one at a time. The caller closes the session, even after a failure. */
GBX_MUST_USE gbx_status gbx_inquiry_open_session(const gbx_inquiry *q,
                                                 gbx_replay_session *out_session);

/* --- clues.c: what each question found --- */

GBX_MUST_USE gbx_status gbx_clues_of_dump(gbx_inquiry *q);
GBX_MUST_USE gbx_status gbx_clues_of_run(gbx_inquiry *q);
bool gbx_inquiry_has_failed(const gbx_inquiry *q); /* the run, and not just by its guard */
GBX_MUST_USE gbx_status gbx_clues_of_audit(gbx_inquiry *q);
GBX_MUST_USE gbx_status gbx_inquiry_add_audit(gbx_inquiry *q, uint64_t index); /* one of them */
GBX_MUST_USE gbx_status gbx_clues_of_kernels(gbx_inquiry *q);
GBX_MUST_USE gbx_status gbx_clues_of_unended(gbx_inquiry *q);
GBX_MUST_USE gbx_status gbx_clues_of_values(gbx_inquiry *q);
GBX_MUST_USE gbx_status gbx_inquiry_add_odd(gbx_inquiry *q, size_t index); /* a hint */

/* The answer of a check about a task; NULL if it was not asked. */
const gbx_check_line *gbx_inquiry_find_line(const gbx_inquiry *q, uint64_t task);

/* --- recorded.c --- */

/* Sets `with_tensors` and `with_values`; the audit has been asked. */
GBX_MUST_USE gbx_status gbx_inquiry_count_recorded(gbx_inquiry *q);

/* --- nan.c --- */

/* Sets `nan`; kernels and references have been asked. */
GBX_MUST_USE gbx_status gbx_inquiry_ask_nan(gbx_inquiry *q);

/* --- golden.c --- */

/* Sets `golden`, who wrote it, and from what. */
GBX_MUST_USE gbx_status gbx_inquiry_ask_golden(gbx_inquiry *q);

/* The same of a wrong element that no finding explains; without one, all stays as it is. */
GBX_MUST_USE gbx_status gbx_inquiry_ask_unexplained(gbx_inquiry *q, bool *out_is_any);
GBX_MUST_USE gbx_status gbx_inquiry_add_golden(gbx_inquiry *q); /* the clue */

/* --- hints.c --- */

/* Sets `odd`; the golden has been read. */
GBX_MUST_USE gbx_status gbx_inquiry_find_hints(gbx_inquiry *q);

/* Sets which of them can explain the wrong element. */
GBX_MUST_USE gbx_status gbx_inquiry_choose_hints(gbx_inquiry *q);

/* --- follow.c --- */

/* Drops clues about unwritten elements that change no result of the run; the golden has been read.
 */
GBX_MUST_USE gbx_status gbx_inquiry_follow(gbx_inquiry *q);

/* --- overlaps.c --- */

/* Drops clues about pairs of tasks that share no byte of the memory that both declare. */
GBX_MUST_USE gbx_status gbx_inquiry_compare_overlaps(gbx_inquiry *q);

/* --- edges.c --- */

/* Drops clues about pairs of tasks that the missing edges of other pairs would order, and those of
 * which --task has chosen neither. */
GBX_MUST_USE gbx_status gbx_inquiry_reduce_pairs(gbx_inquiry *q);

/* --- atomics.c --- */

/* Drops clues about blocks whose order shows, but that do not race; sanitizers have been asked. */
GBX_MUST_USE gbx_status gbx_inquiry_drop_atomic(gbx_inquiry *q, gbx_replay_session *session);

/* --- sizes.c --- */

/* Drops clues about tasks whose kernels read what a replay does not have: buffer_bytes. */
GBX_MUST_USE gbx_status gbx_inquiry_drop_sized(gbx_inquiry *q, gbx_replay_session *session);

/* --- describe.c: what a clue is about --- */

/* The replay that it comes from, or NULL. */
const gbx_replay_result *gbx_clue_result(const gbx_diagnosis *d, const gbx_clue *clue);

/* A finding without lists: the task, argument, element and bytes of one clue. */
GBX_MUST_USE gbx_status gbx_clue_describe(const gbx_inquiry *q, const gbx_clue *clue,
                                          gbx_diagnosis_finding *out_finding);

/* --- doers.c --- */

/* Gives clues to who did it, and sorts them: those with a task first, by place and kind, *out_named
 * of them. */
GBX_MUST_USE gbx_status gbx_inquiry_assign(gbx_inquiry *q, size_t *out_named);

/* --- victims.c --- */

GBX_MUST_USE gbx_status gbx_finding_find_victims(const gbx_inquiry *q,
                                                 gbx_diagnosis_finding *finding);
/* Sets `follows`; the victims are known. */
GBX_MUST_USE gbx_status gbx_inquiry_find_consequences(const gbx_inquiry *q);
/* Whether a finding is about a task, or about one from which it has read. */
bool gbx_diagnosis_explains(const gbx_diagnosis *d, uint64_t task);
bool gbx_has_number(const uint64_t *numbers, size_t count, uint64_t number);

/* --- verdict.c: findings from clues --- */

/* Makes findings of all clues so far, in place of those that there are. */
GBX_MUST_USE gbx_status gbx_inquiry_group(gbx_inquiry *q);

/* The same, with victims and consequences. */
GBX_MUST_USE gbx_status gbx_inquiry_conclude(gbx_inquiry *q);
void gbx_diagnosis_findings_free(gbx_diagnosis *d);

/* --- samples.c --- */

enum { GBX_SAMPLES_OF_KERNEL = 6, GBX_SAMPLES_MAX = 64 };

typedef struct gbx_samples {
    uint64_t tasks[GBX_SAMPLES_MAX];
    uint32_t func_ids[GBX_SAMPLES_MAX][GBX_SUBTASK_COUNT]; /* of each */
    size_t count;
    bool has_more; /* tasks than fit */
} gbx_samples;

/* Tasks that completed: of each kernel or mix the first of each shape of its arguments. */
GBX_MUST_USE gbx_status gbx_inquiry_sample(const gbx_inquiry *q, gbx_samples *out_samples);

/* --- lines.c --- */

/* Adds what sanitizers say of the tasks of findings, and of one task of each other kernel. */
GBX_MUST_USE gbx_status gbx_inquiry_find_lines(gbx_inquiry *q);
void gbx_diagnosis_lines_free(gbx_diagnosis *d);

/* --- variables.c --- */

/* Looks for a variable that explains why a kernel leaves something else each time. */
GBX_MUST_USE gbx_status gbx_inquiry_find_variable(const gbx_inquiry *q,
                                                  gbx_diagnosis_finding *finding);

/* Says which variables tasks share: races on them are not asked. */
GBX_MUST_USE gbx_status gbx_inquiry_note_variables(gbx_inquiry *q);

#endif
