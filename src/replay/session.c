#include "replay/session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "replay/internal.h"

/* --- opening --- */

gbx_status gbx_replay_read_kept(const char *directory, gbx_kept_run **out_kept) {
    *out_kept = NULL;
    gbx_status status = gbx_kept_run_read(directory, out_kept);
    if (gbx_status_code(status) != GBX_NOT_FOUND)
        return status;
    gbx_status_free(status);
    return NULL;
}

gbx_status gbx_replay_session_open(const gbx_replay_session_config *config,
                                   gbx_replay_session *out_session) {
    gbx_replay_session *s = out_session;
    *s = (gbx_replay_session){.config = *config, .reader = gbx_entries_reader(config->entries)};
    s->run_end = gbx_reader_has_ended_well(s->reader) ? "" : gbx_reader_end_text(s->reader);
    s->outcome = gbx_reader_outcome(s->reader);
    GBX_TRY(gbx_replay_read_kept(config->directory, &s->kept));
    GBX_TRY(gbx_replay_kernels_create(config->directory, s->kept, config->is_trusted,
                                      &s->config.kernels, &s->kernels));
    gbx_replay_engine_config engine = {.timeout_ms = config->timeout_ms,
                                       .chip_blocks = s->kept ? s->kept->blocks : 0,
                                       .gm_bytes = s->kept ? s->kept->gm_bytes : 0};
    return gbx_replay_engine_open(&engine, &s->engine);
}

void gbx_replay_session_close(gbx_replay_session *session) {
    gbx_replay_engine_close(session->engine);
    gbx_replay_kernels_destroy(session->kernels);
    gbx_kept_run_free(session->kept);
    *session = (gbx_replay_session){0};
}

/* --- which tasks --- */

/* The first task from `from` on; UINT64_MAX where there is none. */
static gbx_status next_task(const gbx_replay_session *s, uint64_t from, uint64_t *out_task) {
    uint64_t position = gbx_reader_find(s->reader, from);
    const gbx_record *record;
    *out_task = UINT64_MAX;
    if (position >= gbx_reader_count(s->reader))
        return NULL;
    GBX_TRY(gbx_reader_at(s->reader, position, &record));
    *out_task = record->task;
    return NULL;
}

gbx_status gbx_replay_session_find_id(const gbx_replay_session *session, uint64_t id,
                                      uint64_t *out_task) {
    uint64_t found_count = 0;
    for (uint64_t task = 0, from = 0;; from = task + 1) {
        gbx_record_task about;
        bool is_there;
        GBX_TRY(next_task(session, from, &task));
        if (task == UINT64_MAX)
            break;
        GBX_TRY(gbx_reader_find_task(session->reader, task, &about, &is_there));
        if (is_there && about.task_id == id && found_count++ == 0)
            *out_task = task;
    }
    if (found_count == 1)
        return NULL;
    return gbx_fail(GBX_OUT_OF_RANGE, "%s of this id; glassbox view lists the tasks",
                    found_count ? "the dump has several tasks" : "the dump has no task");
}

/* --- one task --- */

gbx_status gbx_replay_session_check_dispatch(const gbx_replay_session *session,
                                             const gbx_replay_task *task) {
    if (session->config.dispatch < (int64_t)task->dispatch_count)
        return NULL;
    return gbx_fail(GBX_OUT_OF_RANGE,
                    "--dispatch %" PRId64 ": the last one of this task is %" PRIu32,
                    session->config.dispatch, task->dispatch_count - 1);
}

gbx_status gbx_replay_session_job(const gbx_replay_session *session, const gbx_replay_task *task,
                                  gbx_replay_job *out_job) {
    const gbx_replay_session_config *config = &session->config;
    *out_job = (gbx_replay_job){.engine = session->engine,
                                .request = {.entries = config->entries,
                                            .task = task,
                                            .dispatch = config->dispatch,
                                            .poison = GBX_REPLAY_POISON},
                                .run_end = session->run_end,
                                .outcome = session->outcome,
                                .runs = config->runs};
    GBX_TRY(gbx_replay_session_check_dispatch(session, task));
    return gbx_replay_kernels_find(session->kernels, task, out_job->request.objects);
}

/* --- several tasks --- */

/* Consumes the status. What the task was is known as far as it was read. */
static void refuse(const gbx_replay_task *task, gbx_status status, gbx_replay_result *result) {
    *result = (gbx_replay_result){.verdict = GBX_REPLAY_REFUSED,
                                  .task = task->task,
                                  .task_id = task->task_id,
                                  .dispatch = -1,
                                  .stray_argument = -1};
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i)
        if (task->kernel_names[i])
            gbx_replay_result_name(result, task->kernel_names[i]);
    result->refusal.code = gbx_status_code(status);
    result->refusal.lack = task->lack;
    result->refusal.reason = strdup(gbx_status_message(status));
    status = gbx_replay_task_explain(task, status, true);
    result->refusal.sentence = strdup(gbx_status_message(status));
    gbx_status_free(status);
}

gbx_status gbx_replay_session_run(gbx_replay_session *session, uint64_t first, uint64_t last,
                                  void (*progress)(void *context, uint64_t count), void *context,
                                  gbx_replay_results *out_results) {
    gbx_replay_results *list = out_results;
    *list = (gbx_replay_results){0};
    for (uint64_t number, from = first; from <= last; from = number + 1) {
        GBX_TRY(next_task(session, from, &number));
        if (number > last || number == UINT64_MAX)
            break;
        GBX_TRY(
            gbx_array_reserve(&list->items, &list->capacity, list->count + 1, "replaying tasks"));
        /* What stops one task does not stop the others. */
        gbx_replay_result *result = &list->items[list->count++];
        gbx_replay_task task;
        gbx_replay_payloads payloads;
        gbx_replay_job job;
        *result = (gbx_replay_result){0};
        gbx_status status = gbx_replay_task_read(session->config.entries, number, &task);
        if (!status)
            status = gbx_replay_session_job(session, &task, &job);
        if (!status) {
            status = gbx_replay_execute(&job, &payloads, result);
            gbx_replay_payloads_free(&payloads);
        }
        if (status) {
            gbx_replay_result_free(result);
            refuse(&task, status, result);
        }
        gbx_replay_task_free(&task);
        if (progress)
            progress(context, list->count);
    }
    if (list->count == 0)
        return gbx_fail(GBX_OUT_OF_RANGE, "the dump has none of these tasks");
    return NULL;
}

void gbx_replay_results_free(gbx_replay_results *results) {
    for (uint64_t i = 0; i < results->count; ++i)
        gbx_replay_result_free(&results->items[i]);
    free(results->items);
    *results = (gbx_replay_results){0};
}
