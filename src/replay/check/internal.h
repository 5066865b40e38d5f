/* Shared by the files that check a dump. */
#ifndef GBX_REPLAY_CHECK_INTERNAL_H
#define GBX_REPLAY_CHECK_INTERNAL_H

#include "analysis/graph.h"
#include "replay/check/check_report.h"
#include "replay/session.h"

/* --- check_report.c --- */

/* Keeps a copy of a sentence as long as the report. */
GBX_MUST_USE gbx_status gbx_check_report_keep(gbx_check_report *report, const char *text,
                                              const char **out_reason);

/* --- check_victims.c --- */

/* All pointers are borrowed. */
typedef struct gbx_check_trial {
    gbx_replay_session *session; /* without pending tasks */
    const gbx_references *references;
    const gbx_check_filter *filter;
    const gbx_task_graph *graph;
    gbx_check_report *report; /* of all tasks */
    /* Of gbx_check_acquit: positions of the results of tasks that wrote, or may have written,
     * outside of their outputs. */
    uint64_t *suspects;
    uint64_t suspect_count;
} gbx_check_trial;

/*
 * Calls the kernels of tasks that are INTRODUCED and differ once more. A task whose kernels leave
 * the right values becomes OVERWRITTEN if another task is known to write into its tensors, else
 * NOT_REPEATED, unless its own findings say that its values vary. A task whose kernels fail becomes
 * NOT_REPEATED if another task is known to write into its tensors.
 */
GBX_MUST_USE gbx_status gbx_check_acquit(gbx_check_trial *trial);

#endif
