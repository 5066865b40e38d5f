/*
 * Calls the kernels of one task again, in a child process, on memory that looks as it did before
 * the task was dispatched: tensors at the addresses of the run, inputs restored, outputs poisoned.
 *
 * The memory is a memfd that both map; the child maps it where global memory was, so what a kernel
 * left there can be looked at even when it crashed. The child is started by the first run, serves
 * many runs, and is started anew after one that it did not survive. Kernels are loaded by absolute
 * path and stay loaded as long as the child lives. One thread uses an engine.
 */
#ifndef GBX_REPLAY_ENGINE_ENGINE_H
#define GBX_REPLAY_ENGINE_ENGINE_H

#include "replay/engine/call_file.h"
#include "replay/task.h"

typedef struct gbx_replay_engine gbx_replay_engine;

typedef struct gbx_replay_engine_config {
    uint32_t timeout_ms;       /* a run that takes longer is taken for a hang; 0: 10 s */
    uint32_t chip_blocks;      /* of the chip of the run: what the global context says, and how many
                                  blocks run together; 0: 8 */
    uint64_t gm_bytes;         /* of it; 0: 8 GiB */
    const char *child_program; /* path of glassbox-call; NULL: $GLASSBOX_CALL, else beside us, else
                                  in libexec */
} gbx_replay_engine_config;

GBX_MUST_USE gbx_status gbx_replay_engine_open(const gbx_replay_engine_config *config,
                                               gbx_replay_engine **out_engine);
void gbx_replay_engine_close(gbx_replay_engine *engine); /* takes NULL */

typedef struct gbx_replay_fault {
    bool is_there;
    bool is_hang;
    int signal; /* 0 for a hang, and where the child ended by itself (exit) */
    bool has_address;
    uint64_t address;  /* of a signal that has one */
    uint32_t dispatch; /* which of the task's: the one that crashed, or the first that still ran */
    char text[512];    /* "kernel softmax_prepare crashed (block 0, aiv0): SIGSEGV at 0x7e90..." */
} gbx_replay_fault;

typedef struct gbx_replay_request {
    gbx_entries *entries;
    const gbx_replay_task *task;
    const char *objects[GBX_SUBTASK_COUNT]; /* shared object with kernel_entry, absolute path; NULL
                                               where the task has no kernel */
    int64_t dispatch;                       /* one of the task's, or -1 for all */
    unsigned char poison; /* what every byte of an output holds before; 0xa5 and 0x5a are good */
} gbx_replay_request;

typedef struct gbx_replay_outcome {
    gbx_replay_fault fault;
    uint64_t ns; /* from before the first to after the last of the calls, by the child's clock */
    uint64_t stray_bytes;   /* that changed outside of outputs and inouts, inputs included */
    uint64_t stray_address; /* of the first */
    uint64_t unchanged;     /* a bit an argument: an output or inout that holds, byte for byte, what
                               it held before the calls. Nobody knows whether it was written */
    bool stray_is_unknown;  /* the tensors are too large to look for them: the three above are 0 */
    bool is_relocated; /* tensors lie at other addresses than in the run: the dump does not tell
                          them, or no chip of ours has them. Views of a buffer still share it */
} gbx_replay_outcome;

/* Where an argument of the last request lies: a tensor's descriptor as its kernels get it. */
const gbx_tensor *gbx_replay_placed_tensor(const gbx_replay_engine *engine, uint32_t argument);

/*
 * Restores the memory and makes the calls. A kernel that crashes, hangs or exits is an outcome, not
 * a failure; one that cannot be loaded is GBX_BAD_KERNEL, with what dlerror said. Subtasks of a
 * block run together, as do blocks as far as the chip of the run had that many.
 */
GBX_MUST_USE gbx_status gbx_replay_run(gbx_replay_engine *engine, const gbx_replay_request *request,
                                       gbx_replay_outcome *out_outcome);

/*
 * The same in two steps, with something else done between them: the first does not wait for the
 * calls. What the request points at has to live until the second. What does not fit into memory,
 * GBX_OUT_OF_RANGE or GBX_EXHAUSTED, is said without naming the task.
 */
GBX_MUST_USE gbx_status gbx_replay_begin(gbx_replay_engine *engine,
                                         const gbx_replay_request *request);
GBX_MUST_USE gbx_status gbx_replay_end(gbx_replay_engine *engine, gbx_replay_outcome *out_outcome);

/* What an argument of the last request holds now, row-major; gbx_tensor_payload_bytes of it. */
GBX_MUST_USE gbx_status gbx_replay_output(const gbx_replay_engine *engine, uint32_t argument,
                                          void *out_payload);

/* The payload of an entry of a task, all gbx_tensor_payload_bytes of its tensor. */
GBX_MUST_USE gbx_status gbx_replay_read_payload(gbx_entries *entries, uint64_t entry,
                                                const gbx_tensor *tensor, void *out_payload);

/* For saved programs: what the calls are made with, without bytes. The caller frees the dispatches.
 */
GBX_MUST_USE gbx_status gbx_replay_describe_call(const gbx_replay_engine *engine,
                                                 const gbx_replay_request *request,
                                                 gbx_call_file *out_file,
                                                 gbx_call_dispatch **out_dispatches);

/*
 * For debuggers: the file that makes glassbox-call do the same calls, watched by nobody. It
 * restores the memory itself, makes the calls once, and ends. The file stays until the caller
 * removes it. docs/replay.md has its form.
 */
GBX_MUST_USE gbx_status gbx_replay_write_call(gbx_replay_engine *engine,
                                              const gbx_replay_request *request, const char *path);

#endif
