/* The process in which kernels are called, glassbox-call. */
#ifndef GBX_REPLAY_ENGINE_ENGINE_CHILD_H
#define GBX_REPLAY_ENGINE_ENGINE_CHILD_H

#include <sys/types.h>

#include "replay/engine/call_link.h"
#include "replay/engine/engine.h"

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

#endif
