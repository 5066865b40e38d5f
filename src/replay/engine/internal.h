/* What the files of the engine share among themselves. */
#ifndef GBX_REPLAY_ENGINE_INTERNAL_H
#define GBX_REPLAY_ENGINE_INTERNAL_H

#include <sys/types.h>

#include "replay/engine/call_file.h"
#include "replay/engine/engine.h"

/* --- engine.c --- */

/* How many dispatches a request makes, and which of the task's the first one is. */
static inline uint32_t gbx_replay_request_count(const gbx_replay_request *request) {
    return request->dispatch < 0 ? request->task->dispatch_count : 1;
}

static inline uint32_t gbx_replay_request_first(const gbx_replay_request *request) {
    return request->dispatch < 0 ? 0 : (uint32_t)request->dispatch;
}

/* --- engine_memory.c: where the tensors of a task lie when it is called again. --- */

typedef struct gbx_replay_layout {
    uint64_t gm_base;
    uint64_t gm_bytes;    /* whole pages */
    uint64_t touch_bytes; /* of memory that the elements of all tensors take, at most */
    bool is_relocated;
    uint32_t count;                               /* arguments of the task */
    gbx_tensor tensors[GBX_REPLAY_MAX_ARGUMENTS]; /* of those that are tensors */
    bool is_tensor[GBX_REPLAY_MAX_ARGUMENTS];
    uint32_t roles[GBX_REPLAY_MAX_ARGUMENTS];
} gbx_replay_layout;

/*
 * At the addresses of the run, where they lie in what a chip of ours can have; else anew, in its
 * first slot of addresses. Fails with GBX_OUT_OF_RANGE where they do not fit, and GBX_EXHAUSTED
 * where they take more memory than the machine has.
 */
GBX_MUST_USE gbx_status gbx_replay_layout_make(const gbx_replay_task *task, uint64_t gm_bytes,
                                               gbx_replay_layout *out_layout);

/* --- engine_memory.c: * Global memory of a call: a memfd of which only what is touched takes
 * memory, and beside it a mirror that holds what ought to be there, to find bytes that nobody was
 * allowed to change. --- */

typedef struct gbx_replay_memory {
    int fd;
    uint64_t bytes;        /* of the file and of both mappings */
    unsigned char *gm;     /* where this process sees it */
    unsigned char *mirror; /* NULL where there is none */
    bool is_mirrored;      /* the mirror counts: the tensors are not too large */
    unsigned char *scratch;
    uint64_t scratch_bytes;
} gbx_replay_memory;

GBX_MUST_USE gbx_status gbx_replay_memory_open(gbx_replay_memory *memory);
void gbx_replay_memory_close(gbx_replay_memory *memory);

/* Everything as it was before the dispatch: zeros, then poison in outputs, then inputs and inouts,
 * which win where views overlap. */
GBX_MUST_USE gbx_status gbx_replay_memory_restore(gbx_replay_memory *memory,
                                                  const gbx_replay_layout *layout,
                                                  const gbx_replay_request *request);

/* Bytes that changed since, outside of all outputs and inouts; once after each restore. */
GBX_MUST_USE gbx_status gbx_replay_memory_find_strays(gbx_replay_memory *memory,
                                                      const gbx_replay_layout *layout,
                                                      gbx_replay_outcome *outcome);

/* What a tensor holds. */
void gbx_replay_memory_gather(const gbx_replay_memory *memory, const gbx_replay_layout *layout,
                              const gbx_tensor *tensor, void *out_payload);

/* The next part of the file that takes memory, from `offset` on; false where there is none. */
bool gbx_replay_memory_next(const gbx_replay_memory *memory, uint64_t offset, uint64_t *out_offset,
                            uint64_t *out_bytes);

/* --- engine_child.c: the process in which kernels are called, glassbox-call. --- */

typedef struct gbx_replay_child {
    pid_t pid; /* 0: it does not run */
    int pid_fd;
    int socket;
    int file_fd; /* the call to make */
    int board_fd;
    gbx_call_board *board;
    uint64_t number;  /* of the last order */
    int64_t order_ns; /* when it was given */
} gbx_replay_child;

/* How a call ended. */
typedef enum gbx_replay_ending {
    GBX_REPLAY_ANSWERED = 0,
    GBX_REPLAY_SILENT = 1, /* it did not answer in time */
    GBX_REPLAY_EXITED = 2, /* the process did, with an exit code */
    GBX_REPLAY_KILLED = 3  /* by a signal that it did not note */
} gbx_replay_ending;

typedef struct gbx_replay_reply {
    gbx_replay_ending ending;
    int value; /* the exit code (-1 where nobody knows), or the signal */
    gbx_call_answer answer;
} gbx_replay_reply;

GBX_MUST_USE gbx_status gbx_replay_child_open(gbx_replay_child *child);
void gbx_replay_child_close(gbx_replay_child *child);

/* Has the call made that is in child->file_fd, by a process that is started where none runs.
 * `program` may be NULL. */
GBX_MUST_USE gbx_status gbx_replay_child_order(gbx_replay_child *child, const char *program,
                                               int gm_fd, uint32_t dispatch_count);

/* Waits for the call that was ordered, until it took so long. After all but an answer the process
 * does not run any more. */
GBX_MUST_USE gbx_status gbx_replay_child_wait(gbx_replay_child *child, int64_t timeout_ns,
                                              gbx_replay_reply *out_reply);

/* What went wrong in a call that did not come back, in a sentence. The reply is no answer. Fails
 * with GBX_BAD_KERNEL where a kernel was being loaded. */
GBX_MUST_USE gbx_status gbx_replay_fault_tell(const gbx_replay_request *request,
                                              const gbx_replay_child *child,
                                              const gbx_replay_reply *reply, int64_t timeout_ns,
                                              gbx_replay_fault *out_fault);

#endif
