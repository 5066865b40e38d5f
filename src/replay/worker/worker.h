/* The process that calls kernels again: shared by the files of this folder. */
#ifndef GBX_REPLAY_WORKER_WORKER_H
#define GBX_REPLAY_WORKER_WORKER_H

#include <stdbool.h>
#include <sys/types.h>

#include <glassbox/orchestration.h>

#include "replay/worker/order.h"
#include "replay/worker/picture.h"

typedef struct gbx_screens gbx_screens;

typedef struct gbx_loaded_object {
    char *path;
    void (*entry)(const uint64_t *args);
    bool may_wait; /* for a flag: it calls sched_yield somewhere */
} gbx_loaded_object;

typedef struct gbx_worker {
    pid_t pid;
    gbx_worker_board *board;
    gbx_batch *batches[GBX_BATCH_SLOTS];
    gbx_payloads payloads;
    gbx_kernel_call call; /* of the task that is asked about */
    uint32_t used_slots;  /* of the call: those above are empty */
    bool may_wait;        /* one of its kernels: see gbx_loaded_object */
    gbx_loaded_object objects[GBX_BATCH_OBJECTS];
    uint32_t object_count;
    unsigned char *scratch; /* holds the largest payload of the task */
    uint64_t scratch_bytes;
    gbx_screens *screens;
} gbx_worker;

/* --- worker.c --- */

/* Loads the kernels of an order. Sets answer->state and returns false if one cannot be loaded. */
bool gbx_worker_load(gbx_worker *worker, const gbx_batch *batch, const gbx_order *order,
                     gbx_answer *answer);

/* False, with the answer set, if memory is out. */
bool gbx_worker_reserve(gbx_worker *worker, const gbx_order *order, gbx_answer *answer);

/* Sets the arguments of the call: a kernel may have changed its descriptors. */
void gbx_worker_set_arguments(gbx_worker *worker, const gbx_order *order,
                              const gbx_tensor *tensors);

/* Makes all calls of a task. False, with the answer set, if threads cannot be started. */
bool gbx_worker_call(gbx_worker *worker, const gbx_order *order, const gbx_picture *picture,
                     gbx_call_step step, gbx_answer *answer);

/* Calls one dispatch; false if it waits for others: it is then left in the middle of its work. */
bool gbx_worker_call_one(gbx_worker *worker, const gbx_order *order, const gbx_picture *picture,
                         gbx_call_step step, uint32_t dispatch);

/* Answers all tasks of a batch that was ordered with a message. */
void gbx_worker_answer(gbx_worker *worker, const gbx_worker_message *message);

/* Keeps a failed system call as the answer. */
void gbx_answer_fail(gbx_answer *answer, gbx_answer_state state, const char *what);

/* --- waits.c: kernels that wait for each other --- */

/* Instead of sched_yield, in every kernel. */
int gbx_waits_yield(void);

/* Watches the calls that follow, `wave` of them at a time: when all of them wait and nothing
 * changes, the process ends with GBX_CALL_STUCK. */
void gbx_waits_watch(gbx_worker_board *board, const gbx_picture *picture, uint32_t dispatch_count,
                     uint32_t wave);

/* For gbx_kernel_call_catch_faults. */
void gbx_waits_on_fault(uint64_t address);

/* --- screen.c: many tasks quickly, in memory that stays --- */

gbx_screens *gbx_screens_create(void); /* NULL when memory is out */

/* CLEAN, LOOK, or a failure. A stray write may show only in a later task, or in _verify. */
void gbx_screen(gbx_worker *worker, const gbx_batch *batch, uint32_t task);

/* After the last task of a batch: tasks whose memory was written to become LOOK. */
void gbx_screens_verify(gbx_worker *worker, const gbx_batch *batch);

/* --- examine.c, apart.c, blocks.c, flags.c: everything about one task --- */

/* Payloads by argument; NULL for none. */
typedef struct gbx_examining {
    gbx_worker *worker;
    const gbx_order *order;
    const gbx_order_argument *arguments;
    gbx_answer *answer;
    gbx_picture picture;
    gbx_strays strays;
    unsigned char *first[GBX_CALL_SLOTS]; /* left by the first run */
    unsigned char *other[GBX_CALL_SLOTS]; /* by the run with the other pattern */
    unsigned char *start[GBX_CALL_SLOTS]; /* before them, of outputs */
    unsigned char *other_start[GBX_CALL_SLOTS];
} gbx_examining;

void gbx_examine(gbx_worker *worker, const gbx_order *order, gbx_answer *answer);

/* In the handler of a SIGSEGV: notes what the task has changed outside of its outputs. */
void gbx_examine_on_fault(void);

/* The same for references: are the outputs of the dump near theirs? */
void gbx_examine_want(gbx_worker *worker, const gbx_order *order, gbx_answer *answer);

static inline bool gbx_is_output(const gbx_order_argument *argument) {
    return argument->kind == GBX_CALL_TENSOR && argument->role != GBX_ROLE_INPUT;
}

void gbx_examining_prepare(gbx_examining *e, int pattern);
/* Counts what has no place. Findings go before notes. */
void gbx_examining_add(gbx_examining *e, const gbx_task_finding *finding);
/* An undeclared read, where elements of an output differ between the patterns. */
void gbx_examining_add_unstable(gbx_examining *e, uint32_t argument,
                                const gbx_bits_comparison *bits);

/* Asks what follows, of a task with several dispatches, and why a dispatch fails alone. */
void gbx_examine_apart(gbx_examining *e);

/* Calls dispatches one at a time, in both orders: races inside the task. Sets answer->order when
 * done. */
void gbx_examine_blocks(gbx_examining *e);

/* Waits that only an earlier task's value satisfies. Clears answer->flags_are_unknown if all were
 * asked. */
void gbx_examine_flags(gbx_examining *e);

/* Whether there is something to ask: an input or inout that may hold flags. */
bool gbx_may_wait_for_flags(const gbx_examining *e);

#endif
