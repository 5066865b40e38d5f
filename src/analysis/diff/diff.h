/*
 * Two dumps against each other: which records are equal, which differ and by how much, and the
 * first task in graph order that differs, with what is known of the cause.
 *
 * Tasks are matched by number (where a dump does not number its tasks, by task_id), records of a
 * task by stage and arg_index; several with the same key in order. Where both dumps tell the names
 * of a task's kernels and these are not the same, its records have no counterpart.
 *
 * Memory does not grow with tensors, and by 40 bytes a task: records are handed to the observer as
 * they are compared.
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

/* One of the two dumps. Its reader was opened with GBX_INDEX_GRAPH, and its payload is open. */
typedef struct gbx_diff_side {
    gbx_entries *entries;
    const uint64_t *selected; /* entries that are asked for, ascending; NULL for all */
    uint64_t selected_count;
} gbx_diff_side;

/* What elements may be off by. Given ones are of all floats; of integers atol alone counts, for
 * numbers such as indices are right or wrong; bool is exact. */
typedef struct gbx_diff_options {
    bool has_tolerance;      /* the next is given; else gbx_tolerance_default */
    gbx_tolerance tolerance; /* without is_strict_nan: */
    bool is_strict_nan;
} gbx_diff_options;

gbx_tolerance gbx_diff_tolerance(const gbx_diff_options *options, uint32_t dtype);

typedef enum gbx_diff_verdict {
    GBX_DIFF_EQUAL,  /* every element is */
    GBX_DIFF_WITHIN, /* some are not, and all are near */
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
    GBX_DIFF_NO_PAYLOAD,  /* missing in one or both, without hashes that tell */
    GBX_DIFF_OVERWRITTEN, /* the bytes of one or both are not its values */
    GBX_DIFF_IN_FLIGHT,   /* of a task that did not complete, in one or both */
    GBX_DIFF_TRUNCATED,   /* not one element is there in both */
    GBX_DIFF_NAN_UNKNOWN, /* equal hashes, strict NaN, and no payload to look for NaN in */
    /* in one alone */
    GBX_DIFF_KERNELS, /* the task has other kernels in the other dump */
    GBX_DIFF_TASK,    /* the other dump has no record of the task */
    GBX_DIFF_RECORD,  /* it has none of the argument at this stage */
    GBX_DIFF_REASON_COUNT
} gbx_diff_reason;

/* Of a record that differs. */
typedef enum gbx_diff_cause {
    GBX_DIFF_CAUSE_UNKNOWN,
    GBX_DIFF_INTRODUCED, /* the inputs of the task are equal or within tolerance */
    GBX_DIFF_INHERITED   /* some input differs, or this is one */
} gbx_diff_cause;

extern const gbx_name_set gbx_diff_verdicts; /* "only_a": "only in A" */
extern const gbx_name_set gbx_diff_reasons;  /* "in_flight": "in flight: the task did not..." */
extern const gbx_name_set gbx_diff_causes;   /* "introduced"; unknown has none */

/* Whether records of this reason were not compared. */
static inline bool gbx_diff_reason_is_gap(gbx_diff_reason reason) {
    return reason >= GBX_DIFF_NO_PAYLOAD && reason <= GBX_DIFF_NAN_UNKNOWN;
}

/* What the cause of a record is known from. */
typedef enum gbx_diff_ground {
    GBX_DIFF_INPUTS_EQUAL,
    GBX_DIFF_INPUTS_WITHIN,       /* all are equal or near */
    GBX_DIFF_INPUTS_NONE,         /* the task has none */
    GBX_DIFF_INPUT_DIFFERS,       /* `input` */
    GBX_DIFF_INPUTS_NOT_COMPARED, /* `input`, which was not or is in one dump alone */
    GBX_DIFF_INPUTS_TRUNCATED,    /* `input`, of which the beginning alone was */
    GBX_DIFF_INPUTS_UNKNOWN,      /* those that are there are equal, but there may be more */
    GBX_DIFF_IS_INPUT             /* the record is an input itself */
} gbx_diff_ground;

/* How the first input that differs came to differ. */
typedef enum gbx_diff_origin {
    GBX_DIFF_ORIGIN_UNKNOWN,  /* the dumps do not tell who wrote it */
    GBX_DIFF_ORIGIN_PASSED,   /* a scalar of the orchestration */
    GBX_DIFF_ORIGIN_FORM,     /* the orchestration passed another kind, dtype or shape */
    GBX_DIFF_ORIGIN_ARGUMENT, /* no task before it wrote there: an argument of the run */
    /* The writer is one task of both dumps: */
    GBX_DIFF_ORIGIN_WRITER_EQUAL,   /* it left it equal */
    GBX_DIFF_ORIGIN_WRITER_PART,    /* it left it equal, but need not have written all of it */
    GBX_DIFF_ORIGIN_WRITER_DIFFERS, /* it left it different, outside of what is selected */
    GBX_DIFF_ORIGIN_WRITER_UNKNOWN, /* it wrote it, which could not be compared whole */
    GBX_DIFF_ORIGIN_WRITERS_APART   /* no: another one in each, or one in one of them alone */
} gbx_diff_origin;

typedef struct gbx_diff_record {
    uint64_t index_a;   /* GBX_DIFF_NONE where it is not there */
    uint64_t index_b;   /* likewise */
    const gbx_entry *a; /* NULL likewise; borrowed until the observer returns */
    const gbx_entry *b;
    gbx_diff_verdict verdict;
    gbx_diff_reason reason;
    gbx_diff_cause cause; /* where it is different */
    gbx_diff_ground ground;
    uint64_t input;            /* of the ground: an entry of A, or of B alone */
    bool input_is_b;           /* it is of B */
    bool is_truncated;         /* the beginning was compared, which is all that both have */
    bool has_metrics;          /* elements were compared: */
    gbx_comparison comparison; /* got is A, want is B */
} gbx_diff_record;

typedef struct gbx_diff_observer {
    void *context;
    /* Every record but equal ones, in graph order. A failure ends the comparison. */
    gbx_status (*on_record)(void *context, const gbx_diff_record *record);
    /* So many tasks of all, and so many bytes of each dump read; may be NULL. */
    void (*on_progress)(void *context, uint64_t tasks, uint64_t all_tasks, uint64_t bytes);
} gbx_diff_observer;

/* What tasks were matched by. */
typedef enum gbx_diff_matching {
    GBX_DIFF_BY_NUMBER,
    GBX_DIFF_BY_TASK_ID, /* because a dump does not number its tasks */
    GBX_DIFF_BY_ORDER    /* in which they appear, because the ids do not match either */
} gbx_diff_matching;

extern const gbx_name_set gbx_diff_matchings; /* "task_seq" */

typedef struct gbx_diff_result {
    uint64_t counts[GBX_DIFF_VERDICT_COUNT];
    uint64_t compared;                       /* equal, within and different */
    uint64_t reasons[GBX_DIFF_REASON_COUNT]; /* of those that are not equal or within */
    uint64_t truncated;                      /* of those compared: beginnings alone */
    uint64_t hashed;                         /* of those equal: by their hashes, without reading */
    uint64_t read_bytes;                     /* of each dump */
    uint64_t tasks_different;                /* that have a record that is different */
    uint64_t tasks_introduced;               /* of them, with one whose cause is the task */
    uint64_t tasks_unknown;                  /* of them, with one whose cause is not known */
    gbx_diff_matching matching;
    uint64_t bad_edges; /* left out of the graph's order */

    bool has_first;        /* some record is different; the first of them: */
    gbx_diff_record first; /* its entries are NULL */
    gbx_diff_origin origin;
    uint64_t writer_a; /* the entry that was left there last; GBX_DIFF_NONE where none is known */
    uint64_t writer_b;

    bool has_other_graph; /* a task has other kernels in A and B, or is in one of two whole dumps
                             alone; the first: */
    uint64_t graph_a;     /* an entry of it in A; GBX_DIFF_NONE where it has none */
    uint64_t graph_b;
    bool is_graph_first; /* it comes before, or is, the task of `first` */
} gbx_diff_result;

/* Something was compared, nothing differs, and neither dump has a record that the other lacks. */
bool gbx_diff_is_alike(const gbx_diff_result *result);

/* Fails with GBX_BAD_FORMAT where an entry's size does not fit its shape: without reading payload,
 * so that a comparison that begins can end. */
GBX_MUST_USE gbx_status gbx_diff_check(gbx_entries *entries);

GBX_MUST_USE gbx_status gbx_diff_run(const gbx_diff_side *a, const gbx_diff_side *b,
                                     const gbx_diff_options *options,
                                     const gbx_diff_observer *observer,
                                     gbx_diff_result *out_result);

#endif
