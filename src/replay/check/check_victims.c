/* Tasks that are wrong in the dump because another task wrote into their outputs. */
#include <stdio.h>

#include "replay/check/internal.h"

/* Whether a task's stray writes hit an output of another. */
static bool hits(const gbx_replay_result *result, const gbx_replay_task *task) {
    for (uint32_t i = 0; i < result->range_count; ++i) {
        const gbx_tensor written = {.data = result->ranges[i].address,
                                    .dtype = GBX_UINT8,
                                    .ndims = 1,
                                    .shape = {(int64_t)result->ranges[i].bytes},
                                    .strides = {1}};
        for (uint32_t a = 0; a < task->argument_count; ++a)
            if (task->arguments[a].is_tensor && task->arguments[a].role != GBX_ROLE_INPUT &&
                gbx_tensor_overlaps(&task->arguments[a].tensor, &written))
                return true;
    }
    return false;
}

/* The task whose stray writes hit an output; NULL if no replay shows one. */
static const gbx_replay_result *find_guilty(const gbx_check_report *report,
                                            const gbx_replay_task *task) {
    for (uint64_t i = 0; i < report->accused_count; ++i)
        if (report->accused[i].task != task->task && hits(&report->accused[i], task))
            return &report->accused[i];
    return NULL;
}

static gbx_status acquit(gbx_check_report *report, gbx_check_line *line,
                         const gbx_replay_result *guilty) {
    char text[GBX_REPLAY_TITLE_BYTES + 128];
    snprintf(text, sizeof text, "%s wrote into its output", guilty->title);
    --report->verdicts[line->verdict];
    line->verdict = GBX_CHECK_OVERWRITTEN;
    ++report->verdicts[line->verdict];
    return gbx_check_report_keep(report, text, &line->reason);
}

/* Asks whether the kernel of a wrong task leaves right values when it is called again. */
static gbx_status ask_again(gbx_replay_session *session, const gbx_references *references,
                            gbx_check_report *report, gbx_check_line *line) {
    gbx_replay_task task;
    gbx_replay_job job;
    gbx_replay_payloads payloads = {0};
    gbx_replay_result result = {0};
    gbx_check_result checked = {.verdict = GBX_CHECK_NOT_CHECKED};
    GBX_TRY(gbx_replay_task_read(session->config.entries, line->task, &task));
    const gbx_replay_result *guilty = find_guilty(report, &task);
    gbx_status status = guilty ? gbx_replay_session_job(session, &task, &job) : NULL;
    if (!status && guilty)
        status = gbx_replay_execute(&job, &payloads, &result);
    if (!status && guilty && !result.fault)
        status = gbx_check_payloads(session->engine, session->config.entries, &task,
                                    (const void *const *)payloads.kept[GBX_KEPT_FIRST],
                                    references->items, references->count, &checked);
    if (!status && checked.verdict == GBX_CHECK_RIGHT)
        status = acquit(report, line, guilty);
    gbx_replay_payloads_free(&payloads);
    gbx_replay_result_free(&result);
    gbx_replay_task_free(&task);
    return status;
}

/* A task whose kernel leaves other values than the dump has may be the victim of another. */
gbx_status gbx_check_acquit(gbx_replay_session *session, const gbx_references *references,
                            gbx_check_report *report) {
    for (uint64_t i = 0; i < report->count; ++i)
        if (report->lines[i].verdict == GBX_CHECK_INTRODUCED && report->lines[i].differs)
            GBX_TRY(ask_again(session, references, report, &report->lines[i]));
    return NULL;
}
