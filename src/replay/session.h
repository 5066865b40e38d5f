/* A dump whose tasks are called again: one of them, or one after the other. */
#ifndef GBX_REPLAY_SESSION_H
#define GBX_REPLAY_SESSION_H

#include "replay/replay_result.h"
#include "replay/trust/replay_trust.h"

/* All of it is borrowed. */
typedef struct gbx_replay_session_config {
    gbx_entries *entries; /* of a reader with ARGUMENTS | DISPATCHES | GRAPH */
    const char *directory;
    gbx_replay_kernel_files kernels; /* in the place of those of the run */
    bool is_trusted;                 /* code that came with the dump may run */
    uint32_t timeout_ms;             /* 0: the default */
    int64_t dispatch;                /* of each task; -1 for all */
    uint64_t runs;                   /* of each task; 1 and up */
} gbx_replay_session_config;

typedef struct gbx_replay_session {
    gbx_replay_session_config config;
    gbx_reader *reader;
    gbx_kept_run *kept; /* NULL: there is no run.json */
    gbx_replay_kernels *kernels;
    gbx_replay_engine *engine;
    const char *run_end; /* what the recorded run ended with; "" where that was well */
    const gbx_record_outcome
        *outcome; /* the same for programs; NULL where the dump does not tell */
} gbx_replay_session;

/* To be closed, whether it fails or not. */
GBX_MUST_USE gbx_status gbx_replay_session_open(const gbx_replay_session_config *config,
                                                gbx_replay_session *out_session);
void gbx_replay_session_close(gbx_replay_session *session);

/* The task_seq of the one task with an id; GBX_OUT_OF_RANGE where none or several have it. */
GBX_MUST_USE gbx_status gbx_replay_session_find_id(const gbx_replay_session *session, uint64_t id,
                                                   uint64_t *out_task);

/* GBX_OUT_OF_RANGE where a task does not have the dispatch that is asked for. */
GBX_MUST_USE gbx_status gbx_replay_session_check_dispatch(const gbx_replay_session *session,
                                                          const gbx_replay_task *task);

/* How a task is to be run; fails as gbx_replay_kernels_find does. */
GBX_MUST_USE gbx_status gbx_replay_session_job(const gbx_replay_session *session,
                                               const gbx_replay_task *task,
                                               gbx_replay_job *out_job);

typedef struct gbx_replay_results {
    gbx_replay_result *items;
    uint64_t count;
    uint64_t capacity;
} gbx_replay_results;

/*
 * All tasks from `first` to `last`, both included. What stops one does not stop the others: it is
 * GBX_REPLAY_REFUSED. `progress` may be NULL; it hears how many are done. GBX_OUT_OF_RANGE where
 * the dump has none of them. The results are to be freed, whether it fails or not.
 */
GBX_MUST_USE gbx_status gbx_replay_session_run(gbx_replay_session *session, uint64_t first,
                                               uint64_t last,
                                               void (*progress)(void *context, uint64_t count),
                                               void *context, gbx_replay_results *out_results);
void gbx_replay_results_free(gbx_replay_results *results);

/* --- replay_gdb.c --- */

/*
 * Starts gdb on this terminal with the calls of the task, stopped at kernel_entry, and comes back
 * when it has ended. `kept` tells where sources are that are no longer where they were; NULL for
 * none. Fails with GBX_NOT_FOUND where there is no gdb.
 */
GBX_MUST_USE gbx_status gbx_replay_gdb(const gbx_replay_job *job, const gbx_kept_run *kept,
                                       int *out_exit_code);

#endif
