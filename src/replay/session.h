/* Calls tasks of a dump again, one or several. */
#ifndef GBX_REPLAY_SESSION_H
#define GBX_REPLAY_SESSION_H

#include "replay/replay_result.h"
#include "replay/trust/replay_trust.h"

/* All pointers are borrowed. */
typedef struct gbx_replay_session_config {
    gbx_entries *entries; /* of a reader with ARGUMENTS | DISPATCHES | GRAPH, which may have only
                             the tasks that are called */
    const char *directory;
    gbx_replay_kernel_files kernels; /* replace those of the run */
    bool is_trusted;                 /* code that came with the dump may run */
    uint32_t timeout_ms;             /* 0: the default */
    int64_t dispatch;                /* of each task; -1 for all */
    uint64_t runs;                   /* of each task; at least 1 */
    uint32_t jobs;                   /* processes; 0: one for each processor */
    bool is_silent;                  /* what kernels print is lost */
} gbx_replay_session_config;

typedef struct gbx_sanitize_cache gbx_sanitize_cache;

typedef struct gbx_replay_session {
    gbx_replay_session_config config;
    gbx_reader *reader;
    gbx_kept_run *kept; /* NULL: the dump has no run.json */
    gbx_replay_kernels *kernels;
    gbx_replay_engine *engine;
    gbx_replay_memory memory;
    const char *run_end;           /* how the recorded run ended; "" if well */
    gbx_sanitize_cache *sanitized; /* what gbx_sanitize_task has built; NULL: nothing yet */
} gbx_replay_session;

/* The caller closes the session, even after a failure. */
GBX_MUST_USE gbx_status gbx_replay_session_open(const gbx_replay_session_config *config,
                                                gbx_replay_session *out_session);
void gbx_replay_session_close(gbx_replay_session *session);

/* The task_seq of the task with an id; GBX_OUT_OF_RANGE if no task or several have it. */
GBX_MUST_USE gbx_status gbx_replay_session_find_id(const gbx_replay_session *session, uint64_t id,
                                                   uint64_t *out_task);

/* GBX_OUT_OF_RANGE if the task does not have the configured dispatch. */
GBX_MUST_USE gbx_status gbx_replay_session_check_dispatch(const gbx_replay_session *session,
                                                          const gbx_replay_task *task);

/* The job that runs a task; fails like gbx_replay_kernels_find. */
GBX_MUST_USE gbx_status gbx_replay_session_job(gbx_replay_session *session,
                                               const gbx_replay_task *task,
                                               gbx_replay_job *out_job);

/* Takes the result of a task: what it does not move out is freed after it. */
typedef gbx_status (*gbx_replay_on_result)(void *context, gbx_replay_result *result);

/*
 * Runs all tasks from `first` to `last`, inclusive, a few at a time, and hands over their results
 * in order: memory does not grow with the number of tasks. A task that cannot run is
 * GBX_REPLAY_REFUSED, and the others go on. GBX_OUT_OF_RANGE if the dump has none of them; a
 * failure of `on_result` ends it.
 */
GBX_MUST_USE gbx_status gbx_replay_session_run(gbx_replay_session *session, uint64_t first,
                                               uint64_t last, gbx_replay_on_result on_result,
                                               void *context);

/*
 * Runs gdb on this terminal with the calls of the task, stopped at kernel_entry, and returns when
 * it has ended. `kept`, which may be NULL, locates sources that have moved. Fails with
 * GBX_NOT_FOUND if gdb is not installed.
 */
GBX_MUST_USE gbx_status gbx_replay_gdb(const gbx_replay_job *job, const gbx_kept_run *kept,
                                       int *out_exit_code);

#endif
