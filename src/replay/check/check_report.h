/* Checks the tasks of a dump: the request, and the results by task and in groups. */
#ifndef GBX_REPLAY_CHECK_CHECK_REPORT_H
#define GBX_REPLAY_CHECK_CHECK_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/selection.h"
#include "replay/check/check.h"
#include "replay/replay_result.h"

/* What calling the kernels of a task again showed. */
typedef struct gbx_check_kernels {
    bool is_called;
    const char *why_not; /* it is not called */
    gbx_replay_verdict verdict;
    bool differs;        /* it leaves other values than the dump has */
    bool is_accused;     /* it has a finding, or fails */
    int64_t result;      /* of the report's `results`; -1: none is kept */
    uint64_t mismatches; /* elements of other values than in the dump */
    uint64_t slots;      /* the arguments that have them: a bit for each slot below 64 */
    double max_abs;      /* of these: |dump - replay|; infinite if one is no float, or not finite */
} gbx_check_kernels;

/* Whether a wrong task may be the victim of another: its kernels leave other values than the dump
 * has, or nobody knows, because they fail. */
static inline bool gbx_check_may_be_victim(const gbx_check_kernels *kernels) {
    return kernels->differs || (kernels->is_called && kernels->verdict == GBX_REPLAY_FAULT);
}

/* The result of one task; lines are in graph order. */
typedef struct gbx_check_line {
    uint64_t task;
    uint64_t task_id;
    uint32_t func_ids[GBX_SUBTASK_COUNT]; /* GBX_NO_KERNEL for none */
    gbx_check_verdict verdict;
    const char *reason;        /* of NOT_CHECKED, OVERWRITTEN and NOT_REPEATED */
    uint64_t culprit;          /* task_seq of the task that is known to write into its tensors, of a
                                  task that is wrong or differs; UINT64_MAX for none */
    gbx_check_output *outputs; /* NULL if they are not kept; never of the first
                                  GBX_CHECK_LINES_MAX of each kernel that are INTRODUCED */
    uint32_t output_count;     /* of kept outputs */
    uint32_t worst_output;
    uint32_t wrong_outputs;
    uint32_t missing_outputs;
    uint64_t not_written; /* elements of all outputs that the reference does not write */
    uint64_t stray_bytes; /* written by references outside of outputs */
    uint64_t stray_address;
    bool stray_is_unknown;
    double max_abs; /* of all outputs, like the next */
    double max_rel;
    gbx_check_kernels kernels;
} gbx_check_line;

/* Called tasks of which something was not asked. */
typedef struct gbx_check_skipped {
    uint64_t count;
    uint64_t first; /* line of the first */
} gbx_check_skipped;

/* Of one kernel or mix. */
typedef struct gbx_check_steady {
    uint32_t func_ids[GBX_SUBTASK_COUNT];
    uint64_t tasks; /* INTRODUCED whatever happens later */
} gbx_check_steady;

typedef struct gbx_check_report {
    gbx_reader *reader; /* of the dump; borrowed */
    char *scene;        /* path of scene.json; NULL without references */
    char *why_no_scene; /* with may_lack_scene: why there are no references, or NULL */
    bool keeps_all;     /* outputs of all tasks, and notes */
    bool keeps_notes;
    gbx_check_line *lines;
    uint64_t count;
    uint64_t capacity;
    uint64_t verdicts[GBX_CHECK_VERDICT_COUNT]; /* tasks with each verdict */
    gbx_check_steady *steady;
    uint64_t steady_count;
    uint64_t steady_capacity;
    gbx_replay_result
        *results; /* of kernels with findings or faults; if notes are kept, of those with notes */
    uint64_t result_count;
    uint64_t result_capacity;
    uint64_t accused;    /* tasks whose kernels have findings or faults */
    uint64_t not_called; /* tasks whose kernels were not called again */
    uint64_t differing;  /* tasks whose kernels leave other values when they are called again */
    gbx_check_skipped orders[GBX_ORDER_NOT_ASKED + 1]; /* tasks by gbx_order_state */
    gbx_check_skipped stray_unknown; /* not searched for stray writes: tensors are too large */
    uint64_t left_out;               /* tasks excluded by filters */
    uint64_t bad_edges;              /* of the graph, ignored by its order */
    char **reasons;                  /* mostly without duplicates */
    uint64_t reason_count;
    uint64_t reason_capacity;
} gbx_check_report;

enum { GBX_CHECK_LINES_MAX = 20 }; /* of a list in text */

/* Pointers in `result` stay the reader's. The task may have been read only in part. */
GBX_MUST_USE gbx_status gbx_check_report_add(gbx_check_report *report, const gbx_replay_task *task,
                                             const gbx_check_result *result,
                                             const gbx_check_kernels *kernels);
void gbx_check_report_free(gbx_check_report *report);

/* The first INTRODUCED task; NULL for none. */
const gbx_check_line *gbx_check_report_first(const gbx_check_report *report);

/* --- groups --- */

enum { GBX_CHECK_EXAMPLES = 3 };

/* Tasks of one kernel or mix: all, or those that are NOT_CHECKED for the same reason. */
typedef struct gbx_check_group {
    const gbx_check_line *examples[GBX_CHECK_EXAMPLES]; /* the first tasks */
    uint64_t tasks;
    uint64_t verdicts[GBX_CHECK_VERDICT_COUNT];
    uint64_t not_written;
    uint64_t not_written_tasks;
    const gbx_check_line *first_not_written; /* NULL for none, like the next */
    uint64_t stray_tasks;
    const gbx_check_line *first_stray;
    uint64_t stray_unknown_tasks;
    double max_abs;
    double max_rel;
} gbx_check_group;

/* In order of first appearance; freed by the caller. */
GBX_MUST_USE gbx_status gbx_check_report_group(const gbx_check_report *report, bool is_unchecked,
                                               gbx_check_group **out_groups, size_t *out_count);

/* --- checking a dump --- */

/* All zero selects all tasks; else they match one of `kernels`, and one of `numbers` or `ids`. */
typedef struct gbx_check_filter {
    gbx_selection_names kernels;
    gbx_selection_ranges numbers;
    gbx_selection_ranges ids;
} gbx_check_filter;

typedef enum gbx_check_step {
    GBX_CHECK_COMPILES = 0, /* references */
    GBX_CHECK_STARTS = 1,   /* with `count` tasks */
    GBX_CHECK_GOES_ON = 2   /* `count` tasks are done */
} gbx_check_step;

/* All pointers are borrowed. */
typedef struct gbx_check_request {
    gbx_entries *entries; /* of a reader with ARGUMENTS | DISPATCHES | GRAPH */
    const char *directory;
    const char *scene; /* named by the user; NULL: the one in run.json */
    const gbx_check_filter *filter;
    uint32_t timeout_ms; /* of a call; 0: the default */
    uint32_t jobs;       /* processes; 0: one for each processor */
    bool is_trusted;     /* kernels that came with the dump may run */
    bool is_silent;      /* what kernels print is lost */
    bool keeps_all;      /* see gbx_check_report, like the next */
    bool keeps_notes;
    bool may_lack_scene; /* then kernels are called again all the same */
    void (*progress)(void *context, gbx_check_step step, uint64_t count);
    void *progress_context;
} gbx_check_request;

/*
 * Checks tasks in graph order. Fails with GBX_INVALID_ARGUMENT if the filter has numbers of tasks
 * and the dump does not number them, if there is no usable scene, and like gbx_check_task. With
 * may_lack_scene, without a usable scene no task is checked, and kernels are called again. The
 * caller frees the report, even after a failure; it needs the reader.
 */
GBX_MUST_USE gbx_status gbx_check_dump(const gbx_check_request *request,
                                       gbx_check_report *out_report);

#endif
