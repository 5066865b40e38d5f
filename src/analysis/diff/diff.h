/*
 * Compares two dumps: which records are equal, which differ and by how much, and which task is the
 * first in graph order that differs, with its cause if known.
 *
 * Tasks are matched by number (by task_id if a dump does not number its tasks), records of a task
 * by stage and arg_index; several with the same key in order. If both dumps name the kernels of a
 * task and the names differ, its records have no counterpart.
 *
 * Takes 40 bytes per task, whatever the size of tensors: the observer gets each record as soon as
 * it is compared.
 */
#ifndef GBX_ANALYSIS_DIFF_DIFF_H
#define GBX_ANALYSIS_DIFF_DIFF_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/entries.h"
#include "base/status.h"
#include "tensor/compare/compare.h"
#include "text/names.h"

#define GBX_DIFF_NONE UINT64_MAX /* no task, no entry */

/* One of the two dumps. Its reader must be open with GBX_INDEX_GRAPH, and its payload too. */
typedef struct gbx_diff_side {
    gbx_entries *entries;
    const uint64_t *selected; /* entries to compare, ascending; NULL for all */
    uint64_t selected_count;
} gbx_diff_side;

/* Tolerances. A given one applies to all floats; for integers only its atol counts, because numbers
 * such as indices are right or wrong; bool is exact. */
typedef struct gbx_diff_options {
    bool has_tolerance;      /* `tolerance` is given; else gbx_tolerance_default */
    gbx_tolerance tolerance; /* its is_strict_nan is not used */
    bool is_strict_nan;
} gbx_diff_options;

gbx_tolerance gbx_diff_tolerance(const gbx_diff_options *options, uint32_t dtype);

typedef enum gbx_diff_verdict {
    GBX_DIFF_EQUAL,  /* all elements are equal */
    GBX_DIFF_WITHIN, /* all elements are within tolerance, not all are equal */
    GBX_DIFF_DIFFERENT,
    GBX_DIFF_ONLY_A,
    GBX_DIFF_ONLY_B,
    GBX_DIFF_NOT_COMPARED,
    GBX_DIFF_VERDICT_COUNT
} gbx_diff_verdict;

typedef enum gbx_diff_reason {
    GBX_DIFF_VALUES, /* the elements decide */
    /* different, without metrics */
    GBX_DIFF_KIND,
    GBX_DIFF_DTYPE,
    GBX_DIFF_SHAPE,
    GBX_DIFF_HASH, /* hashes differ, and payload is missing */
    /* not compared */
    GBX_DIFF_NO_PAYLOAD,  /* missing in one or both, and hashes cannot decide */
    GBX_DIFF_OVERWRITTEN, /* in one or both, the bytes are not the values */
    GBX_DIFF_IN_FLIGHT,   /* in one or both, the task did not complete */
    GBX_DIFF_TRUNCATED,   /* no element is stored in both */
    GBX_DIFF_NAN_UNKNOWN, /* equal hashes, strict NaN, and no payload to search for NaN */
    /* only in one dump */
    GBX_DIFF_KERNELS, /* the task has other kernels in the other dump */
    GBX_DIFF_TASK,    /* the other dump has no record of the task */
    GBX_DIFF_RECORD,  /* the other dump has no record of the argument at this stage */
    GBX_DIFF_REASON_COUNT
} gbx_diff_reason;

/* Why a record differs. */
typedef enum gbx_diff_cause {
    GBX_DIFF_CAUSE_UNKNOWN,
    GBX_DIFF_INTRODUCED, /* the inputs of the task are equal or within tolerance */
    GBX_DIFF_INHERITED   /* an input of the task differs, or this record is an input */
} gbx_diff_cause;

extern const gbx_name_set gbx_diff_verdicts; /* "only_a": "only in A" */
extern const gbx_name_set gbx_diff_reasons;  /* "in_flight": "in flight: the task did not..." */
extern const gbx_name_set gbx_diff_causes;   /* "introduced"; unknown has no name */

/* Whether records with this reason were not compared. */
static inline bool gbx_diff_reason_is_gap(gbx_diff_reason reason) {
    return reason >= GBX_DIFF_NO_PAYLOAD && reason <= GBX_DIFF_NAN_UNKNOWN;
}

/* What the cause of a record follows from. */
typedef enum gbx_diff_ground {
    GBX_DIFF_INPUTS_EQUAL,
    GBX_DIFF_INPUTS_WITHIN,       /* all are equal or within tolerance */
    GBX_DIFF_INPUTS_NONE,         /* the task has none */
    GBX_DIFF_INPUT_DIFFERS,       /* `input` */
    GBX_DIFF_INPUTS_NOT_COMPARED, /* `input` was not compared, or is only in one dump */
    GBX_DIFF_INPUTS_TRUNCATED,    /* only the beginning of `input` was compared */
    GBX_DIFF_INPUTS_UNKNOWN,      /* recorded inputs are equal, but there may be more */
    GBX_DIFF_IS_INPUT             /* the record is an input itself */
} gbx_diff_ground;

/* Why the first input that differs does. */
typedef enum gbx_diff_origin {
    GBX_DIFF_ORIGIN_UNKNOWN,  /* the dumps do not show its writer */
    GBX_DIFF_ORIGIN_PASSED,   /* a scalar of the orchestration */
    GBX_DIFF_ORIGIN_FORM,     /* the orchestration passed another kind, dtype or shape */
    GBX_DIFF_ORIGIN_ARGUMENT, /* no earlier task wrote there: an argument of the run */
    /* The same task wrote it in both dumps: */
    GBX_DIFF_ORIGIN_WRITER_EQUAL,   /* its output is equal */
    GBX_DIFF_ORIGIN_WRITER_PART,    /* its output is equal, but may not cover all of the input */
    GBX_DIFF_ORIGIN_WRITER_DIFFERS, /* its output differs, and is not selected */
    GBX_DIFF_ORIGIN_WRITER_UNKNOWN, /* its output could not be compared completely */
    GBX_DIFF_ORIGIN_WRITERS_APART   /* different tasks wrote it, or a task in only one dump */
} gbx_diff_origin;

typedef struct gbx_diff_record {
    uint64_t index_a;   /* GBX_DIFF_NONE if A does not have it */
    uint64_t index_b;   /* likewise */
    const gbx_entry *a; /* NULL likewise; borrowed until the observer returns */
    const gbx_entry *b;
    gbx_diff_verdict verdict;
    gbx_diff_reason reason;
    gbx_diff_cause cause; /* if it is different, like the next */
    gbx_diff_ground ground;
    uint64_t input;            /* of the ground: an entry of A, or of B if only B has it */
    bool input_is_b;           /* `input` is of B */
    bool is_truncated;         /* only the beginning was compared: both have no more */
    bool is_hashed;            /* equal by hash, without reading */
    bool has_metrics;          /* elements were compared: */
    gbx_comparison comparison; /* got is A, want is B */
} gbx_diff_record;

typedef struct gbx_diff_observer {
    void *context;
    /* Called for each record that is not equal, in graph order. A failure ends the comparison. */
    gbx_status (*on_record)(void *context, const gbx_diff_record *record);
    /* How many tasks are done, and how many bytes of each dump were read; may be NULL. */
    void (*on_progress)(void *context, uint64_t tasks, uint64_t all_tasks, uint64_t bytes);
} gbx_diff_observer;

/* How tasks were matched. */
typedef enum gbx_diff_matching {
    GBX_DIFF_BY_NUMBER,
    GBX_DIFF_BY_TASK_ID, /* because a dump does not number its tasks */
    GBX_DIFF_BY_ORDER    /* of appearance, because the ids do not match either */
} gbx_diff_matching;

extern const gbx_name_set gbx_diff_matchings; /* "task_seq" */

typedef struct gbx_diff_result {
    uint64_t counts[GBX_DIFF_VERDICT_COUNT];
    uint64_t compared;                       /* equal, within and different */
    uint64_t reasons[GBX_DIFF_REASON_COUNT]; /* of records neither equal nor within */
    uint64_t truncated;                      /* compared records: only the beginning */
    uint64_t hashed;                         /* equal records: by hash, without reading */
    uint64_t read_bytes;                     /* of each dump */
    uint64_t tasks_different;                /* with a record that is different */
    uint64_t tasks_introduced;               /* of these, with one that the task introduced */
    uint64_t tasks_unknown;                  /* of these, with one of unknown cause */
    gbx_diff_matching matching;
    uint64_t bad_edges; /* ignored by graph order */

    bool has_first;        /* some record is different; the first of them: */
    gbx_diff_record first; /* its entries are NULL */
    gbx_diff_origin origin;
    uint64_t writer_a; /* the last entry written there; GBX_DIFF_NONE if unknown */
    uint64_t writer_b;

    bool has_other_graph; /* a task has other kernels in A and B, or both dumps are complete and
                             only one has it; the first such task: */
    uint64_t graph_a;     /* an entry of it in A; GBX_DIFF_NONE if A has none */
    uint64_t graph_b;
    bool is_graph_first; /* it comes before, or is, the task of `first` */
} gbx_diff_result;

/* Something was compared, nothing differs, and neither dump has a record that the other lacks. */
bool gbx_diff_is_alike(const gbx_diff_result *result);

/* Fails with GBX_BAD_FORMAT if the size of an entry contradicts its shape. Reads no payload: a
 * comparison can then not fail halfway for that reason. */
GBX_MUST_USE gbx_status gbx_diff_check(gbx_entries *entries);

GBX_MUST_USE gbx_status gbx_diff_run(const gbx_diff_side *a, const gbx_diff_side *b,
                                     const gbx_diff_options *options,
                                     const gbx_diff_observer *observer,
                                     gbx_diff_result *out_result);

#endif
