/* Checks task after task, a few at a time: while references run, others are compared. */
#ifndef GBX_CLI_CHECK_FLOW_H
#define GBX_CLI_CHECK_FLOW_H

#include "cli/check_report.h"
#include "cli/progress.h"
#include "replay/check/references.h"

enum { GBX_CHECK_FLOW_MAX = 3 };

/* An engine, and the task that is being checked on it. */
typedef struct gbx_check_place {
    gbx_replay_engine *engine;
    gbx_check_job *job;
    uint64_t task;
    gbx_check_result result;
} gbx_check_place;

typedef struct gbx_check_flow {
    gbx_references *references;
    gbx_check_report *report;
    gbx_progress *progress;
    gbx_check_place places[GBX_CHECK_FLOW_MAX];
    size_t place_count;
    size_t first;  /* the place of the task that began first, of those that are being checked */
    size_t active; /* how many are, in places that follow each other */
} gbx_check_flow;

/* References, report and progress are set, and stay the caller's. For a few tasks one engine is
 * enough. */
GBX_MUST_USE gbx_status gbx_check_flow_open(gbx_check_flow *flow,
                                            const gbx_replay_engine_config *config,
                                            uint64_t task_count);
void gbx_check_flow_close(gbx_check_flow *flow);

/* Tasks come into the report in the order in which they are added, at the latest with _finish. */
GBX_MUST_USE gbx_status gbx_check_flow_add(gbx_check_flow *flow, uint64_t task);
GBX_MUST_USE gbx_status gbx_check_flow_finish(gbx_check_flow *flow);

#endif
