/*
 * Calls the kernels of one task again, in a child process, on memory as it was before the task was
 * dispatched: tensors at the addresses of the run, inputs restored, outputs poisoned.
 *
 * The memory is a memfd that both processes map, the child at the address of global memory, so its
 * content is readable even after a crash. The first run starts the child, which serves many runs
 * and is restarted after a crash. Kernels are loaded by absolute path and stay loaded as long as
 * the child lives. Only one thread uses an engine.
 */
#ifndef GBX_REPLAY_ENGINE_ENGINE_H
#define GBX_REPLAY_ENGINE_ENGINE_H

#include "replay/engine/call_file.h"
#include "replay/task.h"

typedef struct gbx_replay_engine gbx_replay_engine;

typedef struct gbx_replay_engine_config {
    uint32_t timeout_ms;       /* a run that takes longer counts as a hang; 0: 10 s */
    uint32_t chip_blocks;      /* of the recorded chip: for the global context, and how many blocks
                                  run at a time; 0: 8 */
    uint64_t gm_bytes;         /* of the recorded chip; 0: 8 GiB */
    const char *child_program; /* path of glassbox-call; NULL: $GLASSBOX_CALL, else beside this
                                  program, else in libexec */
} gbx_replay_engine_config;

GBX_MUST_USE gbx_status gbx_replay_engine_open(const gbx_replay_engine_config *config,
                                               gbx_replay_engine **out_engine);
void gbx_replay_engine_close(gbx_replay_engine *engine); /* takes NULL */

typedef struct gbx_replay_fault {
    bool is_there;
    bool is_hang;
    int signal; /* 0 for a hang, or if the child called exit */
    bool has_address;
    uint64_t address;  /* of the signal */
    uint32_t dispatch; /* of the task: the one that crashed, or the first that was still running */
    char text[512];    /* "kernel softmax_prepare crashed (block 0, aiv0): SIGSEGV at 0x7e90..." */
} gbx_replay_fault;

typedef struct gbx_replay_request {
    gbx_entries *entries;
    const gbx_replay_task *task;
    const char *objects[GBX_SUBTASK_COUNT]; /* absolute path of a shared object with kernel_entry;
                                               NULL if the task has no such kernel */
    int64_t dispatch;                       /* one of the task's, or -1 for all */
    unsigned char poison; /* in every byte of outputs before the call; 0xa5 and 0x5a are good */
} gbx_replay_request;

typedef struct gbx_replay_outcome {
    gbx_replay_fault fault;
    uint64_t ns; /* from before the first call to after the last one, by the child's clock */
    uint64_t stray_bytes;   /* that changed outside of outputs and inouts, including inputs */
    uint64_t stray_address; /* of the first one */
    uint64_t unchanged;     /* one bit per argument: an output or inout whose bytes are the same as
                               before the calls; whether it was written is unknown */
    bool stray_is_unknown;  /* the tensors are too large to search: the three above are 0 */
    bool is_relocated; /* tensors lie at other addresses than in the run: the dump does not have
                          these, or no chip of ours uses them. Views still share their buffer */
} gbx_replay_outcome;

/* The descriptor of a tensor of the last request as its kernels get it; NULL for a scalar. */
const gbx_tensor *gbx_replay_placed_tensor(const gbx_replay_engine *engine, uint32_t argument);

/*
 * Restores the memory and makes the calls. A kernel that crashes, hangs or exits is an outcome, not
 * a failure; one that cannot be loaded is GBX_BAD_KERNEL, with the text of dlerror. All subtasks of
 * as many blocks as the recorded chip had run at a time.
 */
GBX_MUST_USE gbx_status gbx_replay_run(gbx_replay_engine *engine, const gbx_replay_request *request,
                                       gbx_replay_outcome *out_outcome);

/*
 * The same in two steps: the first does not wait for the calls. What the request points to must
 * live until the second. If the tensors do not fit into memory, GBX_OUT_OF_RANGE or GBX_EXHAUSTED,
 * the sentence does not name the task.
 */
GBX_MUST_USE gbx_status gbx_replay_begin(gbx_replay_engine *engine,
                                         const gbx_replay_request *request);
GBX_MUST_USE gbx_status gbx_replay_end(gbx_replay_engine *engine, gbx_replay_outcome *out_outcome);

/* The payload of an argument of the last request now: row-major, gbx_tensor_payload_bytes. */
GBX_MUST_USE gbx_status gbx_replay_output(const gbx_replay_engine *engine, uint32_t argument,
                                          void *out_payload);

/* The complete payload of an entry, gbx_tensor_payload_bytes of its tensor. */
GBX_MUST_USE gbx_status gbx_replay_read_payload(gbx_entries *entries, uint64_t entry,
                                                const gbx_tensor *tensor, void *out_payload);

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
