/* Shared by the files of the engine. */
#ifndef GBX_REPLAY_ENGINE_INTERNAL_H
#define GBX_REPLAY_ENGINE_INTERNAL_H

#include <sys/types.h>

#include "replay/engine/engine.h"

/* How many dispatches a request makes, and the first one's number in the task. */
static inline uint32_t gbx_replay_request_count(const gbx_replay_request *request) {
    return request->dispatch < 0 ? request->task->dispatch_count : 1;
}

static inline uint32_t gbx_replay_request_first(const gbx_replay_request *request) {
    return request->dispatch < 0 ? 0 : (uint32_t)request->dispatch;
}

/* --- layout.c: the addresses of a task's tensors when it is called again --- */

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

/* --- orders.c: tasks for workers --- */

/* A task that is submitted and not yet taken. */
typedef struct gbx_replay_pending {
    gbx_replay_request request;
    uint32_t question; /* gbx_question */
    uint32_t skips;    /* of gbx_order */
    uint32_t order;    /* gbx_order_state, where the order of dispatches is skipped */
    bool is_large;     /* only one such task is in memory at a time */
    bool is_fresh;     /* asked in a process that has not called its kernels before */
    bool keeps;        /* outputs, in the worker's kept file */
    bool is_done;
    gbx_replay_outcome outcome;
    gbx_status status;
} gbx_replay_pending;

/* GBX_INVALID_ARGUMENT if the request does not fit the task. */
GBX_MUST_USE gbx_status gbx_replay_check_request(const gbx_replay_request *request);

/* A core that the dump does not record is the one that an idle chip would use. */
void gbx_replay_fill_dispatches(const gbx_replay_request *request, uint32_t chip_blocks,
                                gbx_call_dispatch *out_dispatches);

/* What the engine has put into a batch. It does not read this back from the batch, because kernels
 * of another batch run meanwhile, and may write there. */
typedef struct gbx_replay_filling {
    uint32_t task_count;
    uint32_t object_count;
    uint64_t used_bytes;
    uint64_t orders[GBX_BATCH_TASKS];
    const char *objects[GBX_BATCH_OBJECTS]; /* of requests */
} gbx_replay_filling;

void gbx_replay_begin_batch(gbx_batch *batch, gbx_replay_filling *out_filling);

/* Adds a task to a batch; *out_is_added is false if there is no room. */
GBX_MUST_USE gbx_status gbx_replay_add_order(gbx_batch *batch, gbx_replay_filling *filling,
                                             const gbx_replay_pending *pending,
                                             const gbx_replay_layout *layout, uint32_t chip_blocks,
                                             bool *out_is_added);

/* Where the payloads of an argument are kept; GBX_KEPT_COUNT of them, one after the other. */
uint64_t gbx_replay_kept_offset(const gbx_replay_task *task, uint32_t argument);

/* Where the payload that an argument begins with lies behind them, if the request has it. */
uint64_t gbx_replay_start_offset(const gbx_replay_request *request, uint32_t argument);
uint64_t gbx_replay_kept_bytes(const gbx_replay_request *request); /* of all arguments */

/* --- child.c: a worker, the process that calls kernels --- */

typedef struct gbx_replay_child {
    pid_t pid; /* 0: not running */
    int pid_fd;
    int socket;
    int board_fd;
    int batch_fds[GBX_BATCH_SLOTS];
    int kept_fd;
    bool is_silent; /* what it prints is lost */
    gbx_worker_board *board;
    gbx_batch *batches[GBX_BATCH_SLOTS];
    uint64_t number;                   /* of the last message */
    uint64_t numbers[GBX_BATCH_SLOTS]; /* of the last message for each batch */
} gbx_replay_child;

/* How a process ended. */
typedef enum gbx_replay_ending {
    GBX_REPLAY_SILENT = 1,   /* no answer in time */
    GBX_REPLAY_EXITED = 2,   /* with an exit code */
    GBX_REPLAY_KILLED = 3,   /* by a signal that it did not note */
    GBX_REPLAY_UNLINKED = 4, /* a kernel closed its socket */
    GBX_REPLAY_STUCK = 5     /* between two calls: a kernel has damaged the process */
} gbx_replay_ending;

typedef struct gbx_replay_end {
    gbx_replay_ending ending;
    int value; /* the exit code (-1 if unknown), or the signal */
} gbx_replay_end;

extern const gbx_replay_child gbx_replay_no_child;

/* The child is gbx_replay_no_child before, but for is_silent, and again after a failure and when it
 * is closed. */
GBX_MUST_USE gbx_status gbx_replay_child_open(gbx_replay_child *child);
void gbx_replay_child_close(gbx_replay_child *child);

/* Orders the batch of a slot; starts the process if necessary. `program` may be NULL. */
GBX_MUST_USE gbx_status gbx_replay_child_order(gbx_replay_child *child, const char *program,
                                               int payload_fd, uint32_t slot);

/* A message about a batch that has been answered; false if there is none now. */
bool gbx_replay_child_receive(gbx_replay_child *child, gbx_worker_message *out_message);

/* Kills the process and all that kernels started, if it has not ended; reports how it ended. */
void gbx_replay_child_reap(gbx_replay_child *child, gbx_replay_end *out_end);

/* Describes the fault of a call. Fails with GBX_BAD_KERNEL if a kernel was being loaded, and with
 * GBX_BAD_FORMAT if the payload could not be read. */
GBX_MUST_USE gbx_status gbx_replay_fault_describe(const gbx_replay_request *request,
                                                  const gbx_replay_child *child,
                                                  const gbx_replay_end *end, int64_t timeout_ns,
                                                  gbx_replay_fault *out_fault);

/* --- the engine --- */

enum { GBX_REPLAY_PENDING = 2048 }; /* tasks that are submitted and not taken, at most */

typedef struct gbx_replay_settings {
    uint32_t chip_blocks;
    uint64_t gm_bytes;
} gbx_replay_settings;

/* Of a batch of a worker. */
typedef enum gbx_replay_slot_state {
    SLOT_FREE = 0,
    SLOT_FILLING = 1,
    SLOT_SENT = 2
} gbx_replay_slot_state;

/* A batch of a worker, and the tasks in it. */
typedef struct gbx_replay_slot {
    gbx_replay_slot_state state;
    uint64_t sent_at; /* counts up: the smallest is answered next */
    int64_t sent_ns;
    gbx_replay_filling filling;
    gbx_replay_pending *tasks[GBX_BATCH_TASKS];
} gbx_replay_slot;

typedef struct gbx_replay_worker {
    gbx_replay_child child;
    gbx_replay_slot slots[GBX_BATCH_SLOTS];
    uint32_t early_ends; /* of its process in a row, before a task */
    uint64_t seen;       /* what it did when it was last looked at, and since when */
    int64_t seen_ns;
    int64_t answered_ns; /* the last batch */
} gbx_replay_worker;

/* A list of tasks that are asked alone, in order. */
typedef struct gbx_replay_queue {
    gbx_replay_pending *items[GBX_REPLAY_PENDING];
    uint32_t first;
    uint32_t count;
} gbx_replay_queue;

/* Kernels that ran together in a task: which of them is at fault is unknown. */
typedef struct gbx_replay_together {
    const char *objects[GBX_BATCH_OBJECTS][GBX_SUBTASK_COUNT];
    uint32_t count; /* what does not fit is tried again */
} gbx_replay_together;

struct gbx_replay_engine {
    int64_t timeout_ns;
    gbx_replay_settings settings;
    char *child_program; /* may be NULL */
    int payload_fd;
    const unsigned char *payload; /* mapped on demand */
    uint64_t payload_bytes;
    int64_t task_ns; /* how long a task of a batch takes, about; 0: unknown */
    gbx_replay_worker *workers;
    uint32_t worker_count;
    uint64_t sent;
    gbx_replay_worker
        *filling; /* the worker with a batch that is being filled, and its gbx_replay_slot */
    gbx_replay_slot *filled;
    gbx_replay_pending *pendings[GBX_REPLAY_PENDING]; /* in order of submission, a ring */
    uint32_t first;
    uint32_t count;
    gbx_replay_queue alone;
    const gbx_replay_pending *large; /* the large task that is in memory; NULL for none */
    gbx_replay_together spinning;    /* their dispatches do not return alone, and do not yield */
    gbx_replay_together hung;        /* references: they would hang again */
    gbx_replay_layout layout;        /* of the last gbx_replay_run, like the next */
    uint64_t kept[GBX_REPLAY_MAX_ARGUMENTS];
};

/* --- sending.c --- */

static inline bool gbx_replay_is_of_references(const gbx_replay_pending *pending) {
    return pending->request.tolerances != NULL;
}

/* The objects of a request, all of them together. */
void gbx_replay_note_together(const gbx_replay_request *request, gbx_replay_together *together);
bool gbx_replay_are_together(const gbx_replay_request *request,
                             const gbx_replay_together *together);

/* Whether the references of a task hung in another one; then it can only end. */
bool gbx_replay_has_hung(const gbx_replay_engine *engine, const gbx_replay_pending *pending);
GBX_MUST_USE gbx_status gbx_replay_end_hung(gbx_replay_pending *pending);

/* A task that is in no batch any more: it is done, or goes into the queue of those that are asked
 * alone. */
void gbx_replay_end_task(gbx_replay_engine *engine, gbx_replay_pending *pending);
void gbx_replay_ask_alone(gbx_replay_engine *engine, gbx_replay_pending *pending);

/* Sends tasks of that queue to workers that have room. */
GBX_MUST_USE gbx_status gbx_replay_send_waiting(gbx_replay_engine *engine);

/* Puts a task into the batch that is being filled; waits for one if there is none. */
GBX_MUST_USE gbx_status gbx_replay_screen(gbx_replay_engine *engine, gbx_replay_pending *pending,
                                          const gbx_replay_layout *layout);

/* Sends the batch that is being filled. */
GBX_MUST_USE gbx_status gbx_replay_flush(gbx_replay_engine *engine);

/* --- answers.c --- */

/* Waits until something has happened, or a short time: answers, processes that end, calls that take
 * too long. */
GBX_MUST_USE gbx_status gbx_replay_wait(gbx_replay_engine *engine);

/* --- engine.c --- */

const gbx_replay_settings *gbx_replay_engine_settings(const gbx_replay_engine *engine);

/* The mapped payload of the dump; NULL if it cannot be mapped. */
const unsigned char *gbx_replay_engine_payload(gbx_replay_engine *engine, uint64_t *out_bytes);

/* Completes the sentence of a refusal by gbx_replay_layout_make. */
GBX_MUST_USE gbx_status gbx_replay_with_title(gbx_status status);

#endif
