/*
 * Which task, kernel and argument of a run is guilty? Asks a dump every question that there is, and
 * makes one answer of what comes out: what the run itself noticed, an audit of its memory, its
 * kernels called again, their references, its first NaN, its wrong results, and sanitizers.
 *
 * What a question finds is a *clue*. Clues about one task are one *finding*: the clue that explains
 * most comes first, the others are its evidence. The same finding about several tasks of one kernel
 * is listed once. Sentences are made in src/report.
 */
#ifndef GBX_DIAGNOSE_DIAGNOSE_H
#define GBX_DIAGNOSE_DIAGNOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/finding.h>

#include "analysis/audit/audit.h"
#include "analysis/blame/blame.h"
#include "analysis/blame/first_nan.h"
#include "analysis/downstream.h"
#include "diagnose/odd.h"
#include "diagnose/statics.h"
#include "replay/check/check_report.h"
#include "replay/sanitize/sanitize.h"
#include "replay/session.h"
#include "store/verify/verify.h"
#include "text/names.h"

#define GBX_DIAGNOSIS_NOBODY UINT64_MAX

/* What a task did. Of several clues about one task the kind that comes first here explains most. */
typedef enum gbx_diagnosis_kind {
    GBX_DIAGNOSIS_DAMAGED_DUMP,
    GBX_DIAGNOSIS_STRAY_WRITE, /* of a replay, as in docs/replay.md; some of sanitizers: */
    GBX_DIAGNOSIS_STALE_FLAG,
    GBX_DIAGNOSIS_WRITE_RACE,
    GBX_DIAGNOSIS_READ_RACE,
    GBX_DIAGNOSIS_DATA_RACE,
    GBX_DIAGNOSIS_BAD_LOCAL, /* outside a local or global variable, or an allocation */
    GBX_DIAGNOSIS_OUT_OF_BOUNDS_READ,
    GBX_DIAGNOSIS_UNINITIALISED,
    GBX_DIAGNOSIS_UNDECLARED_READ,
    GBX_DIAGNOSIS_UNWRITTEN_READ,
    GBX_DIAGNOSIS_ENDLESS_WAIT,
    GBX_DIAGNOSIS_OVERRUN, /* of the run's guard, as in docs/guard.md: */
    GBX_DIAGNOSIS_UNDERRUN,
    GBX_DIAGNOSIS_STRAY,
    GBX_DIAGNOSIS_ARGUMENTS,
    GBX_DIAGNOSIS_OUT_OF_BOUNDS_WRITE, /* of a sanitizer */
    GBX_DIAGNOSIS_NOT_DETERMINISTIC,
    GBX_DIAGNOSIS_READ_TOO_EARLY, /* of an audit, as in docs/audit.md: */
    GBX_DIAGNOSIS_OVERLAPPING_WRITES,
    GBX_DIAGNOSIS_UNDEFINED,    /* undefined behaviour */
    GBX_DIAGNOSIS_WRONG_RESULT, /* the reference leaves something else */
    GBX_DIAGNOSIS_CRASH,
    GBX_DIAGNOSIS_HANG,
    GBX_DIAGNOSIS_FAILS_AGAIN,      /* it completed, and fails when it is called again */
    GBX_DIAGNOSIS_UNDECLARED_WRITE, /* of an audit; nobody is known to have done it: */
    GBX_DIAGNOSIS_CHANGED_RESULT,
    GBX_DIAGNOSIS_NOT_REPEATED, /* its kernel leaves other values when it is called again */
    GBX_DIAGNOSIS_FAILED_RUN,   /* it ended in no task */
    GBX_DIAGNOSIS_ODD_MEMORY,   /* of the graph, and only if nothing else is found: */
    GBX_DIAGNOSIS_ODD_SCALAR,
    GBX_DIAGNOSIS_ODD_VIEW,
    GBX_DIAGNOSIS_ODD_TASK, /* it does again what another has done */
    GBX_DIAGNOSIS_LOST_WRITE,
    GBX_DIAGNOSIS_NAN,
    GBX_DIAGNOSIS_UNWRITTEN,    /* elements of an output that change no result of the run */
    GBX_DIAGNOSIS_WRONG_OUTPUT, /* of the run; nothing else is known */
    GBX_DIAGNOSIS_KIND_COUNT
} gbx_diagnosis_kind;

extern const gbx_name_set gbx_diagnosis_kinds; /* "stray_write" */

/* --- questions --- */

typedef enum gbx_diagnosis_question {
    GBX_ASKED_DUMP,
    GBX_ASKED_RUN,
    GBX_ASKED_AUDIT,
    GBX_ASKED_REPLAY,
    GBX_ASKED_RACES,
    GBX_ASKED_REFERENCES,
    GBX_ASKED_SANITIZERS,
    GBX_ASKED_NAN,
    GBX_ASKED_GOLDEN,
    GBX_ASKED_GRAPH,
    GBX_ASKED_QUESTION_COUNT
} gbx_diagnosis_question;

extern const gbx_name_set gbx_diagnosis_questions; /* "references", and a sentence */

/* All in tasks. */
typedef struct gbx_diagnosis_asked {
    uint64_t tasks; /* that were asked */
    uint64_t findings;
    uint64_t not_asked;
    char *why;        /* they were not asked, or not completely; NULL */
    char *harmless;   /* what was found and is no finding; NULL */
    uint32_t reasons; /* in `why` */
} gbx_diagnosis_asked;

/* --- clues --- */

typedef enum gbx_clue_source {
    GBX_CLUE_DUMP,       /* verification.findings[index] */
    GBX_CLUE_END,        /* of the run: outcome */
    GBX_CLUE_GUARD,      /* guards[index] */
    GBX_CLUE_AUDIT,      /* audit.findings[index] */
    GBX_CLUE_REPLAY,     /* check.results[index].findings[item] */
    GBX_CLUE_FAULT,      /* check.results[index].fault */
    GBX_CLUE_UNENDED,    /* unended[index].fault */
    GBX_CLUE_UNENDED_OF, /* unended[index].findings[item] */
    GBX_CLUE_REFERENCE,  /* check.lines[index], introduced */
    GBX_CLUE_LINE,       /* check.lines[index], not repeated or different */
    GBX_CLUE_SANITIZER,  /* lines[index].report.findings[item] */
    GBX_CLUE_NAN,        /* nan */
    GBX_CLUE_ODD,        /* odd.items[index] */
    GBX_CLUE_GOLDEN      /* blame */
} gbx_clue_source;

typedef struct gbx_clue {
    gbx_clue_source source;
    gbx_diagnosis_kind kind;
    uint64_t task;  /* the accused; GBX_DIAGNOSIS_NOBODY */
    uint64_t other; /* the other task, where there are two; else likewise */
    uint64_t place; /* of `task` in graph order, or of the first task that noticed it */
    uint64_t index;
    uint32_t item;
    uint32_t rank;    /* of clues of one kind about one task: the lowest explains most */
    uint32_t slot;    /* of the argument; GBX_NO_ARGUMENT for none */
    bool is_weak;     /* said only if nothing else is found */
    bool is_assigned; /* to the task that did it; `other` is the one that noticed it, if one did */
} gbx_clue;

/* What sanitizers say of a task. It must not move. */
typedef struct gbx_diagnosis_line {
    gbx_replay_task task;
    gbx_sanitize_report report;
    bool is_chosen; /* by --task */
} gbx_diagnosis_line;

/* --- the answer --- */

typedef struct gbx_diagnosis_finding {
    gbx_diagnosis_kind kind;
    uint64_t task; /* the first in graph order; GBX_DIAGNOSIS_NOBODY */
    uint64_t task_id;
    uint64_t other;
    uint64_t place;
    uint32_t func_ids[GBX_SUBTASK_COUNT];
    uint32_t slot;    /* GBX_NO_ARGUMENT for none, like the name */
    const char *name; /* the reader's; NULL */
    gbx_tensor tensor;
    uint64_t element; /* GBX_NO_ELEMENT for none */
    uint64_t bytes;   /* 0: unknown */
    gbx_replay_dispatch blocks[2];
    uint32_t block_count;
    gbx_clue *clues; /* the first is what is said; the others are of the same task */
    size_t clue_count;
    uint64_t clue_capacity;
    uint64_t *tasks; /* all with this finding, in graph order; the first is `task` */
    size_t task_count;
    uint64_t task_capacity;
    uint64_t *victims; /* tasks that read what it left, directly or through others; task_seq */
    size_t victim_count;
    bool are_victims_known; /* were searched for */
    int64_t follows;        /* from this finding, perhaps; -1 for none */
    char *variable;         /* of its kernel, keeps its value from task to task; NULL */
    char *variable_file;    /* where it is declared: relative to the scene, or absolute; NULL */
    uint32_t variable_line; /* 0: unknown */
} gbx_diagnosis_finding;

typedef struct gbx_diagnosis {
    gbx_diagnosis_finding *findings; /* by first appearance */
    size_t finding_count;
    uint64_t finding_capacity;
    gbx_diagnosis_asked asked[GBX_ASKED_QUESTION_COUNT];
    uint64_t tasks;        /* of the dump */
    uint64_t chosen;       /* of these, by --task */
    uint64_t innocent;     /* chosen tasks that no finding is about */
    uint64_t with_tensors; /* tasks of which the dump has tensors; and */
    uint64_t with_values;  /* values of outputs, or their statistics */

    /* What the clues are about. */
    gbx_verification verification;
    const gbx_record_outcome *outcome; /* the reader's; NULL */
    gbx_run_finding *guards;
    size_t guard_count;
    gbx_audit audit;
    bool has_audit;
    gbx_check_report check;
    gbx_replay_result *unended; /* of tasks that did not complete in the run */
    size_t unended_count;
    uint64_t unended_capacity;
    gbx_diagnosis_line *lines; /* room for all that are asked */
    size_t line_count;
    gbx_first_nan nan;
    gbx_odd odd;
    char *golden; /* a wrong element of the run's outputs: the one that was written first; NULL */
    gbx_blame_element blamed;
    gbx_blame_answer blame;
    bool has_blame;
    gbx_upstream *upstream; /* of the one writer of this element, the last in graph order first */
    size_t upstream_count;
    bool is_upstream_known; /* completely */
    gbx_upstream unchecked; /* the nearest of these, writer included, that no reference has found
                               right; a task of GBX_DIAGNOSIS_NOBODY for none */
    bool is_unwritten;      /* no task has written this element; */
    gbx_upstream nearest;   /* then: what was written nearest to it; likewise */
    uint32_t unused_func;   /* a kernel without tasks that the last writer may have been meant to
                                 call: it has the same signature; GBX_NO_KERNEL */
} gbx_diagnosis;

typedef enum gbx_diagnose_step {
    GBX_DIAGNOSE_VERIFIES,
    GBX_DIAGNOSE_AUDITS,
    GBX_DIAGNOSE_COMPILES,
    GBX_DIAGNOSE_CALLS,
    GBX_DIAGNOSE_SANITIZES,
    GBX_DIAGNOSE_CONCLUDES
} gbx_diagnose_step;

/* All pointers are borrowed. */
typedef struct gbx_diagnose_request {
    gbx_entries *entries; /* of a reader with ARGUMENTS | DISPATCHES | GRAPH, with its payload */
    const char *directory;
    const char *scene;              /* named by the user; NULL: the one in run.json */
    const gbx_check_filter *filter; /* which tasks */
    uint32_t timeout_ms;            /* of a call; 0: the default */
    uint32_t jobs;                  /* processes; 0: one for each processor */
    bool is_trusted;                /* kernels that came with the dump may run */
    void (*progress)(void *context, gbx_diagnose_step step, uint64_t done, uint64_t all);
    void *progress_context;
} gbx_diagnose_request;

/* What cannot be asked is counted in `asked`; it is no failure. The caller frees the diagnosis,
 * even after a failure. */
GBX_MUST_USE gbx_status gbx_diagnose(const gbx_diagnose_request *request,
                                     gbx_diagnosis *out_diagnosis);
void gbx_diagnosis_free(gbx_diagnosis *diagnosis);

/* What a sanitizer says of the line of a finding, and the task that it is about; NULL if no line is
 * known. */
const gbx_sanitize_finding *gbx_diagnosis_line_of(const gbx_diagnosis *diagnosis,
                                                  const gbx_diagnosis_finding *finding,
                                                  const gbx_replay_task **out_task);

#endif
