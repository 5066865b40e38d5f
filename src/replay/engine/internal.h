/* Shared by the files of the engine. */
#ifndef GBX_REPLAY_ENGINE_INTERNAL_H
#define GBX_REPLAY_ENGINE_INTERNAL_H

#include <sys/types.h>

#include "replay/engine/call_file.h"
#include "replay/engine/engine.h"

/* --- engine.c --- */

/* How many dispatches a request makes, and the first one's number in the task. */
static inline uint32_t gbx_replay_request_count(const gbx_replay_request *request) {
    return request->dispatch < 0 ? request->task->dispatch_count : 1;
}

static inline uint32_t gbx_replay_request_first(const gbx_replay_request *request) {
    return request->dispatch < 0 ? 0 : (uint32_t)request->dispatch;
}

/* --- engine_memory.c: the addresses of a task's tensors when it is called again --- */

typedef struct gbx_replay_layout {
    uint64_t gm_base;
    uint64_t gm_bytes;    /* complete pages */
    uint64_t touch_bytes; /* at most, of memory that the elements of all tensors take */
    bool is_relocated;
    uint32_t count;                               /* arguments of the task */
    gbx_tensor tensors[GBX_REPLAY_MAX_ARGUMENTS]; /* of those that are tensors */
    bool is_tensor[GBX_REPLAY_MAX_ARGUMENTS];
    uint32_t roles[GBX_REPLAY_MAX_ARGUMENTS];
} gbx_replay_layout;

/*
 * Keeps the addresses of the run if a chip of ours can have them; else places tensors anew in the
 * first slot of addresses. Fails with GBX_OUT_OF_RANGE if they do not fit, and with GBX_EXHAUSTED
 * if they need more memory than the machine has.
 */
GBX_MUST_USE gbx_status gbx_replay_layout_make(const gbx_replay_task *task, uint64_t gm_bytes,
                                               gbx_replay_layout *out_layout);

/* --- engine_memory.c: the global memory of a call, a memfd that takes memory only where it is
 * touched, and a mirror with its expected content, to find stray writes --- */

typedef struct gbx_replay_memory {
    int fd;
    uint64_t bytes;        /* of the file and of both mappings */
    unsigned char *gm;     /* its mapping in this process */
    unsigned char *mirror; /* may be NULL */
    bool is_mirrored;      /* the mirror is used: the tensors are not too large */
    unsigned char *scratch;
    uint64_t scratch_bytes;
} gbx_replay_memory;

GBX_MUST_USE gbx_status gbx_replay_memory_open(gbx_replay_memory *memory);
void gbx_replay_memory_close(gbx_replay_memory *memory);

/* Restores memory as before the dispatch: zeros, then poison in outputs, then inputs and inouts,
 * which win where views overlap. */
GBX_MUST_USE gbx_status gbx_replay_memory_restore(gbx_replay_memory *memory,
                                                  const gbx_replay_layout *layout,
                                                  const gbx_replay_request *request);

/* Finds bytes that changed outside of all outputs and inouts; only once after each restore. */
GBX_MUST_USE gbx_status gbx_replay_memory_find_strays(gbx_replay_memory *memory,
                                                      const gbx_replay_layout *layout,
                                                      gbx_replay_outcome *outcome);

/* Reads the payload of a tensor. */
void gbx_replay_memory_gather(const gbx_replay_memory *memory, const gbx_replay_layout *layout,
                              const gbx_tensor *tensor, void *out_payload);

/* The next part of the file that takes memory, from `offset` on; false if there is none. */
bool gbx_replay_memory_next(const gbx_replay_memory *memory, uint64_t offset, uint64_t *out_offset,
                            uint64_t *out_bytes);

/* --- engine_child.c: the process that calls kernels, glassbox-call --- */

typedef struct gbx_replay_child {
    pid_t pid; /* 0: not running */
    int pid_fd;
    int socket;
    int file_fd; /* the call file */
    int board_fd;
    gbx_call_board *board;
    uint64_t number;  /* of the last order */
    int64_t order_ns; /* its time */
} gbx_replay_child;

/* How a call ended. */
typedef enum gbx_replay_ending {
    GBX_REPLAY_ANSWERED = 0,
    GBX_REPLAY_SILENT = 1, /* no answer in time */
    GBX_REPLAY_EXITED = 2, /* the process ended with an exit code */
    GBX_REPLAY_KILLED = 3  /* the process was killed by a signal that it did not note */
} gbx_replay_ending;

typedef struct gbx_replay_reply {
    gbx_replay_ending ending;
    int value; /* the exit code (-1 if unknown), or the signal */
    gbx_call_answer answer;
} gbx_replay_reply;

/* All descriptors of the child are -1 before, and the rest is zero. */
GBX_MUST_USE gbx_status gbx_replay_child_open(gbx_replay_child *child);
void gbx_replay_child_close(gbx_replay_child *child);

/* Orders the call in child->file_fd; starts the process if necessary. `program` may be NULL. */
GBX_MUST_USE gbx_status gbx_replay_child_order(gbx_replay_child *child, const char *program,
                                               int gm_fd, uint32_t dispatch_count);

/* Waits for the ordered call until the timeout. Without an answer the process is not running
 * afterwards. */
GBX_MUST_USE gbx_status gbx_replay_child_wait(gbx_replay_child *child, int64_t timeout_ns,
                                              gbx_replay_reply *out_reply);

/* Describes the fault of a call that was not answered. Fails with GBX_BAD_KERNEL if a kernel was
 * being loaded. */
GBX_MUST_USE gbx_status gbx_replay_fault_describe(const gbx_replay_request *request,
                                                  const gbx_replay_child *child,
                                                  const gbx_replay_reply *reply, int64_t timeout_ns,
                                                  gbx_replay_fault *out_fault);

#endif
