/*
 * Calls the kernels of tasks again, in processes of their own, on memory as it was before each task
 * was dispatched: tensors at the addresses of the run, inputs restored, everything else filled with
 * patterns or not there at all.
 *
 * Many tasks are handed over at a time, and a few processes work side by side. A kernel that
 * crashes or hangs costs only itself: its process is started again, and its neighbours are asked
 * again. Kernels are loaded by absolute path and stay loaded as long as a process lives. Only one
 * thread uses an engine.
 */
#ifndef GBX_REPLAY_ENGINE_ENGINE_H
#define GBX_REPLAY_ENGINE_ENGINE_H

#include "replay/engine/call_file.h"
#include "replay/task.h"
#include "replay/worker/order.h"

typedef struct gbx_replay_engine gbx_replay_engine;

typedef struct gbx_replay_engine_config {
    const char *payload_path;  /* of the dump's payload; NULL or "": it has none */
    uint32_t timeout_ms;       /* a call that takes longer counts as a hang; 0: 10 s */
    uint32_t chip_blocks;      /* of the recorded chip: for the global context, and how many blocks
                                  run at a time; 0: 8 */
    uint64_t gm_bytes;         /* of the recorded chip; 0: 8 GiB */
    uint32_t jobs;             /* processes; 0: one for each processor */
    bool is_silent;            /* what kernels print is lost; else it goes to our standard error */
    const char *child_program; /* path of glassbox-call; NULL: $GLASSBOX_CALL, else beside this
                                  program, else in libexec */
} gbx_replay_engine_config;

enum { GBX_REPLAY_MAX_JOBS = 64 };

GBX_MUST_USE gbx_status gbx_replay_engine_open(const gbx_replay_engine_config *config,
                                               gbx_replay_engine **out_engine);
void gbx_replay_engine_close(gbx_replay_engine *engine); /* takes NULL */

typedef struct gbx_replay_fault {
    bool is_hang;
    bool is_stuck; /* a hang: dispatches wait, and nothing lets them continue */
    bool is_known; /* of references: they hung in another task, and were not run again */
    int signal;    /* 0 for a hang, or if the process called exit */
    bool has_address;
    uint64_t address;  /* of the signal */
    uint32_t access;   /* gbx_call_access */
    uint32_t dispatch; /* of the task: the one that crashed, or the first that was still running */
    uint32_t step;     /* gbx_call_step: of which call */
    uint32_t run;      /* of GBX_STEP_RUN: from 1 */
    uint64_t stray_bytes; /* that had changed outside of its outputs by then, like the next two */
    uint64_t stray_address;
    uint64_t stray_end;
    uint32_t wait_count;
    gbx_call_wait waits[GBX_CALL_WAITING]; /* where dispatches wait */
    char text[512]; /* "kernel softmax_prepare crashed (block 0, aiv0): SIGSEGV at 0x7e90..." */
} gbx_replay_fault;

/* All pointers are borrowed until the outcome is taken; paths until the engine is closed. */
typedef struct gbx_replay_request {
    const gbx_replay_task *task;
    const char *objects[GBX_SUBTASK_COUNT]; /* absolute path of a shared object with kernel_entry;
                                               NULL if the task has no such kernel */
    int64_t dispatch;                       /* one of the task's, or -1 for all */
    uint64_t runs;                          /* to be timed; 0 counts as 1 */
    const gbx_tolerance *tolerances;        /* by argument: objects are references, which say what
                                               the outputs should be; NULL: objects are kernels */
    const void *const *start; /* payloads by argument to begin with, instead of the dump's; for
                                 gbx_replay_run. May be NULL, as each of them */
    const void *const *got;   /* payloads by argument to compare with, instead of the dump's; an
                                 output without one is not compared. May be NULL */
    uint64_t token;           /* of the caller */
} gbx_replay_request;

typedef struct gbx_replay_outcome {
    gbx_replay_fault *fault; /* NULL: all calls returned */
    bool is_clean;           /* bit exact, or near the references, and nothing to report */
    uint64_t ns;             /* of a clean task, like the next */
    uint64_t unchanged;      /* see gbx_answer */
    gbx_answer *answer; /* NULL after a fault, and of kernels that are clean; of clean references
                           only `outputs` are set */
    bool is_relocated;  /* tensors lie at other addresses than in the run: the dump does not have
                           these, or no chip of ours uses them. Views still share their buffer */
} gbx_replay_outcome;

void gbx_replay_outcome_free(gbx_replay_outcome *outcome);

/*
 * Runs one task alone and asks everything about it. A kernel that crashes, hangs or exits is an
 * outcome, not a failure; one that cannot be loaded is GBX_BAD_KERNEL, with the text of dlerror. If
 * the tensors do not fit into memory, GBX_OUT_OF_RANGE or GBX_EXHAUSTED. All subtasks of as many
 * blocks as the recorded chip had run at a time. No other task may be submitted. The caller frees
 * the outcome, even after a failure.
 */
GBX_MUST_USE gbx_status gbx_replay_run(gbx_replay_engine *engine, const gbx_replay_request *request,
                                       gbx_replay_outcome *out_outcome);

/* After gbx_replay_run: what the calls left in an argument, row-major. */
typedef enum gbx_replay_kept {
    GBX_KEPT_FIRST = 0, /* of the first run */
    GBX_KEPT_OTHER = 1, /* with the other pattern; of kernels */
    GBX_KEPT_START = 2, /* before the first run; of an output */
    GBX_KEPT_OTHER_START = 3,
    GBX_KEPT_COUNT = 4
} gbx_replay_kept;
GBX_MUST_USE gbx_status gbx_replay_output(const gbx_replay_engine *engine, uint32_t argument,
                                          gbx_replay_kept which, void *out_payload);

/* The descriptor of a tensor of the last gbx_replay_run as its kernels get it; NULL for a scalar.
 */
const gbx_tensor *gbx_replay_placed_tensor(const gbx_replay_engine *engine, uint32_t argument);

/* Whether outcomes have to be taken before more tasks can be submitted. */
bool gbx_replay_is_full(const gbx_replay_engine *engine);

/* Whether a failure concerns only its task. After any other, an engine can only be closed. */
static inline bool gbx_replay_is_of_task(gbx_status status) {
    gbx_code code = gbx_status_code(status);
    return code == GBX_OUT_OF_RANGE || code == GBX_EXHAUSTED || code == GBX_BAD_KERNEL ||
           code == GBX_BAD_FORMAT;
}

/*
 * Many tasks: submits one, and may wait for a process to take it. If the tensors do not fit into
 * memory, GBX_OUT_OF_RANGE or GBX_EXHAUSTED, with a sentence that does not name the task.
 */
GBX_MUST_USE gbx_status gbx_replay_submit(gbx_replay_engine *engine,
                                          const gbx_replay_request *request);

typedef struct gbx_replay_taken {
    gbx_replay_request request;
    gbx_replay_outcome outcome;
    gbx_status status; /* the failure of this task, such as a kernel that cannot be loaded */
} gbx_replay_taken;

/*
 * Takes the outcomes in order of submission; *out_is_there is false if there is none: if `waits`,
 * because all are taken. The caller frees outcome and status.
 */
GBX_MUST_USE gbx_status gbx_replay_take(gbx_replay_engine *engine, bool waits,
                                        gbx_replay_taken *out_taken, bool *out_is_there);

/* For saved programs: a request's call file, without bytes. The caller frees the dispatches. */
GBX_MUST_USE gbx_status gbx_replay_describe_call(const gbx_replay_engine *engine,
                                                 const gbx_replay_request *request,
                                                 gbx_call_file *out_file,
                                                 gbx_call_dispatch **out_dispatches);

/*
 * For debuggers: writes a call file with which glassbox-call restores the memory itself, makes the
 * calls once and catches no faults. The caller removes the file. docs/replay.md has its format.
 */
GBX_MUST_USE gbx_status gbx_replay_write_call(gbx_replay_engine *engine,
                                              const gbx_replay_request *request, const char *path);

#endif
