/* Checks the tasks of a dump: what is asked, and what was found out, task by task, and in groups.
 */
#ifndef GBX_REPLAY_CHECK_CHECK_REPORT_H
#define GBX_REPLAY_CHECK_CHECK_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/selection.h"
#include "replay/check/check.h"

/* One task. Tasks lie in graph order. */
typedef struct gbx_check_line {
    uint64_t task;
    uint64_t task_id;
    uint32_t func_ids[GBX_SUBTASK_COUNT]; /* GBX_NO_KERNEL for none */
    gbx_check_verdict verdict;
    const char *reason;        /* of what is not checked */
    gbx_check_output *outputs; /* NULL where they are not kept */
    uint32_t output_count;     /* of those that are */
    uint32_t worst_output;
    uint32_t wrong_outputs;
    uint32_t missing_outputs;
    uint64_t not_written; /* elements of all outputs that the reference does not write */
    uint64_t stray_bytes; /* that references wrote outside of outputs */
    uint64_t stray_address;
    bool stray_is_unknown;
    double max_abs; /* of all outputs, like the next */
    double max_rel;
} gbx_check_line;

typedef struct gbx_check_report {
    gbx_reader *reader; /* of the dump; borrowed */
    char *scene;        /* path of scene.json */
    bool keeps_all;     /* outputs of all tasks; else of the first that are introduced */
    gbx_check_line *lines;
    uint64_t count;
    uint64_t capacity;
    uint64_t verdicts[3]; /* how many tasks have each */
    uint64_t left_out;    /* tasks that filters leave out */
    uint64_t bad_edges;   /* of the graph, which its order does not keep to */
    char **reasons;       /* each once, or a few times */
    uint64_t reason_count;
    uint64_t reason_capacity;
} gbx_check_report;

enum { GBX_CHECK_LINES_MAX = 20 }; /* of a list in text */

/* The record of the task is looked up. What is pointed at in `result` is the reader's. */
GBX_MUST_USE gbx_status gbx_check_report_add(gbx_check_report *report, uint64_t task,
                                             const gbx_check_result *result);
void gbx_check_report_free(gbx_check_report *report);

/* The first task that is introduced; NULL for none. */
const gbx_check_line *gbx_check_report_first(const gbx_check_report *report);

/* --- groups --- */

/* All tasks of one kernel, or of one mix. */
typedef struct gbx_check_kernel {
    const gbx_check_line *first;
    uint64_t tasks;
    uint64_t verdicts[3];
    uint64_t not_written;
    uint64_t not_written_tasks;
    const gbx_check_line *first_not_written; /* NULL for none, like the next */
    uint64_t stray_tasks;
    const gbx_check_line *first_stray;
    uint64_t stray_unknown_tasks;
    double max_abs;
    double max_rel;
} gbx_check_kernel;

enum { GBX_CHECK_EXAMPLES = 3 };

/* Tasks of one kernel that are not checked for one reason. */
typedef struct gbx_check_unchecked {
    const gbx_check_line *examples[GBX_CHECK_EXAMPLES]; /* the first ones */
    uint64_t tasks;
} gbx_check_unchecked;

/* In the order in which they come first; freed by the caller. */
GBX_MUST_USE gbx_status gbx_check_report_kernels(const gbx_check_report *report,
                                                 gbx_check_kernel **out_kernels, size_t *out_count);
GBX_MUST_USE gbx_status gbx_check_report_unchecked(const gbx_check_report *report,
                                                   gbx_check_unchecked **out_groups,
                                                   size_t *out_count);

/* --- checking a dump --- */

/* Which tasks: zero for all. Values of one kind widen the choice; a task has to match both its
 * kernels, and its number or id. */
typedef struct gbx_check_filter {
    gbx_selection_names kernels;
    gbx_selection_ranges numbers;
    gbx_selection_ranges ids;
} gbx_check_filter;

typedef enum gbx_check_step {
    GBX_CHECK_COMPILES = 0, /* references */
    GBX_CHECK_STARTS = 1,   /* `count` tasks are looked at */
    GBX_CHECK_GOES_ON = 2   /* `count` of them are done */
} gbx_check_step;

/* All of it is borrowed. */
typedef struct gbx_check_request {
    gbx_entries *entries; /* of a reader with ARGUMENTS | DISPATCHES | GRAPH */
    const char *directory;
    const char *scene; /* that the user names; NULL: where the scene was when it ran */
    const gbx_check_filter *filter;
    uint32_t timeout_ms; /* of a reference; 0: the default */
    bool keeps_all;      /* the outputs of all tasks in the report */
    void (*progress)(void *context, gbx_check_step step, uint64_t count);
    void *progress_context;
} gbx_check_request;

/*
 * Tasks come into the report in the order of the graph. Fails where the filter asks for numbers of
 * tasks that the dump does not tell (GBX_INVALID_ARGUMENT), where there is no scene or none that
 * fits, and as gbx_check_task does. The report is to be freed, whether it fails or not; it needs
 * the reader.
 */
GBX_MUST_USE gbx_status gbx_check_dump(const gbx_check_request *request,
                                       gbx_check_report *out_report);

#endif
