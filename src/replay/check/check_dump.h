/* Checks the tasks of a dump: which, against the references of which scene. */
#ifndef GBX_REPLAY_CHECK_CHECK_DUMP_H
#define GBX_REPLAY_CHECK_CHECK_DUMP_H

#include "replay/check/check_report.h"

enum { GBX_CHECK_FILTER_MAX = 256 }; /* values of each kind */

typedef struct gbx_task_range {
    uint64_t first;
    uint64_t last; /* included */
} gbx_task_range;

typedef struct gbx_task_ranges {
    gbx_task_range items[GBX_CHECK_FILTER_MAX];
    size_t count;
} gbx_task_ranges;

/* Which tasks: zero for all. Values of one kind widen the choice; a task has to match both its
 * kernels, and its number or id. */
typedef struct gbx_check_filter {
    const char *kernels[GBX_CHECK_FILTER_MAX]; /* names or globs; borrowed */
    size_t kernel_count;
    gbx_task_ranges numbers;
    gbx_task_ranges ids;
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
