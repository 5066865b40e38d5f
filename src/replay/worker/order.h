/*
 * What an engine and a worker (glassbox-call --serve) share: batches of tasks to call again, and
 * the answers.
 *
 * A batch is a memfd that both map. The engine writes the tasks, the worker the answers. The worker
 * runs kernels, which may write anywhere: the engine checks every number that it reads there.
 *
 *     gbx_batch                               the header
 *     gbx_order, its arguments and dispatches at the offsets in `orders`
 *     gbx_answer                              at GBX_BATCH_ANSWERS, one a task
 */
#ifndef GBX_REPLAY_WORKER_ORDER_H
#define GBX_REPLAY_WORKER_ORDER_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>

#include "replay/bits.h"
#include "replay/call.h"
#include "replay/findings.h"
#include "tensor/compare/compare.h"

#define GBX_NO_PAYLOAD UINT64_MAX
#define GBX_NO_OBJECT UINT32_MAX

enum {
    GBX_BATCH_TASKS = 128,
    GBX_BATCH_OBJECTS = 64,
    GBX_BATCH_PATH_BYTES = 4096,
    GBX_BATCH_SLOTS = 2, /* of a worker: one runs while the engine fills the other */
    GBX_MAX_DISPATCHES = 65536 * GBX_SUBTASK_COUNT
};

/* What is asked of a task. */
typedef enum gbx_question {
    GBX_ASK_NOTHING = 0,
    GBX_ASK_SCREEN = 1,      /* is it bit exact, without a finding? Quick, among others */
    GBX_ASK_EXAMINE = 2,     /* everything about it, alone, at the addresses of the run */
    GBX_ASK_SCREEN_WANT = 3, /* are the outputs near those of the references? Quick */
    GBX_ASK_WANT = 4         /* likewise, alone, with all doubts */
} gbx_question;

/* Questions that ended the process before. */
enum { GBX_SKIP_ORDER = 1, GBX_SKIP_FLAGS = 2 };

typedef struct gbx_order_argument {
    gbx_tensor tensor; /* at the addresses of the run, or where the engine placed it */
    uint64_t bits;     /* of a scalar */
    uint64_t before;   /* offset of its payload, or GBX_NO_PAYLOAD; likewise `after` */
    uint64_t after;
    uint64_t kept; /* where the worker keeps what the calls left, in the kept file */
    uint32_t slot;
    uint32_t kind; /* gbx_call_slot_kind */
    uint32_t role;
    uint32_t is_before_kept; /* `before` is an offset in the kept file; likewise `after` */
    uint32_t is_after_kept;
    uint32_t padding;
    gbx_tolerance tolerance;
} gbx_order_argument;

/* gbx_order_argument x argument_count and gbx_call_dispatch x dispatch_count follow. */
typedef struct gbx_order {
    uint64_t gm_base;
    uint64_t gm_bytes;
    uint64_t runs; /* GBX_ASK_EXAMINE: how often the first pattern is called and timed */
    uint32_t question;
    uint32_t argument_count;
    uint32_t dispatch_count;
    uint32_t block_num;
    uint32_t chip_blocks;
    uint32_t is_one_dispatch; /* others of the task are left out: what they write is missing */
    uint32_t is_in_flight;    /* the run did not complete it: only the call itself is asked for */
    uint32_t skips;           /* GBX_SKIP_... */
    uint32_t objects[GBX_SUBTASK_COUNT]; /* in the batch; GBX_NO_OBJECT for none */
    uint32_t padding;
} gbx_order;
static_assert(sizeof(gbx_order) % 8 == 0, "arguments follow");

/* --- answers --- */

typedef enum gbx_answer_state {
    GBX_ANSWER_NONE = 0,
    GBX_ANSWER_CLEAN = 1, /* of a screen: bit exact or near, and nothing to report */
    GBX_ANSWER_LOOK = 2,  /* of a screen: it has to be asked alone */
    GBX_ANSWER_FULL = 3,  /* alone: everything below is set */
    GBX_ANSWER_NOT_LOADED = 4,
    GBX_ANSWER_NOT_MADE = 5 /* a system call failed */
} gbx_answer_state;

/* One output or inout, by argument. */
typedef struct gbx_answer_output {
    gbx_bits_comparison bits;
    gbx_comparison comparison;  /* of GBX_ASK_WANT: got the dump, want the references */
    uint64_t not_written;       /* of GBX_ASK_WANT */
    gbx_task_finding unwritten; /* where bits.not_written > 0: all such elements */
} gbx_answer_output;

typedef struct gbx_answer {
    _Atomic uint32_t state; /* gbx_answer_state; written last */
    uint32_t is_unsteady;   /* of GBX_ASK_WANT: references left different results */
    uint64_t ns;            /* of the first call, or the median of `runs` */
    uint64_t min_ns;
    uint64_t max_ns;
    uint64_t runs;
    uint64_t different;   /* runs with another result than the first */
    uint64_t unchanged;   /* a bit an argument: its bytes are the same as before the calls */
    uint64_t stray_bytes; /* also those before a crash, like the next two */
    uint64_t stray_address;
    uint64_t stray_end;
    uint32_t stray_is_unknown;
    uint32_t order; /* gbx_order_state */
    uint32_t finding_count;
    uint32_t findings_left_out;
    uint32_t notes_left_out;
    uint32_t flags_are_unknown; /* not all waits that an earlier task may satisfy were asked */
    uint32_t range_count;       /* of stray bytes: the first of them, if it is GBX_STRAY_RANGES */
    uint32_t gap_count;
    uint64_t unlisted; /* a bit an argument: not all its gaps are listed */
    /* From here on only as much is set as the fields above say. */
    gbx_answer_output outputs[GBX_CALL_SLOTS]; /* by argument */
    char error[GBX_CALL_ERROR_BYTES];
    gbx_task_finding findings[GBX_TASK_FINDINGS];
    gbx_stray_range ranges[GBX_STRAY_RANGES];
    gbx_written_gap gaps[GBX_WRITTEN_GAPS];
} gbx_answer;

/* --- a batch --- */

typedef struct gbx_batch {
    uint32_t task_count;
    uint32_t object_count;
    _Atomic uint64_t answered; /* the number of the last message that was answered */
    uint64_t orders[GBX_BATCH_TASKS];
    char objects[GBX_BATCH_OBJECTS][GBX_BATCH_PATH_BYTES];
} gbx_batch;

/* The largest task has 64 arguments and GBX_MAX_DISPATCHES dispatches. */
#define GBX_BATCH_ANSWERS ((uint64_t)8 << 20)
enum { GBX_ANSWER_STRIDE = 64 * 1024 };
#define GBX_BATCH_BYTES (GBX_BATCH_ANSWERS + (uint64_t)GBX_BATCH_TASKS * GBX_ANSWER_STRIDE)
static_assert(sizeof(gbx_answer) <= GBX_ANSWER_STRIDE, "an answer fits its place");

static inline gbx_order *gbx_batch_order(const gbx_batch *batch, uint32_t task) {
    return (gbx_order *)((char *)(uintptr_t)batch + batch->orders[task]);
}

static inline gbx_order_argument *gbx_order_arguments(const gbx_order *order) {
    return (gbx_order_argument *)((gbx_order *)(uintptr_t)order + 1);
}

static inline gbx_call_dispatch *gbx_order_dispatches(const gbx_order *order) {
    return (gbx_call_dispatch *)(gbx_order_arguments(order) + order->argument_count);
}

static inline gbx_answer *gbx_batch_answer(const gbx_batch *batch, uint32_t task) {
    return (gbx_answer *)((char *)(uintptr_t)batch + GBX_BATCH_ANSWERS +
                          (uint64_t)task * GBX_ANSWER_STRIDE);
}

/* --- the link --- */

/* Descriptors of a worker, besides the standard streams. */
enum {
    GBX_WORKER_SOCKET_FD = 3, /* sequenced packets; the worker ends when it is closed */
    GBX_WORKER_BOARD_FD = 4,
    GBX_WORKER_BATCH_FD = 5, /* GBX_BATCH_SLOTS of them */
    GBX_WORKER_KEPT_FD = 7,
    GBX_WORKER_PAYLOAD_FD = 8 /* tensor_dump.bin, or an empty file */
};

#define GBX_WORKER_SERVE "--serve"
#define GBX_WORKER_MAGIC UINT32_C(0x4b524f57)

/* Engine to worker: answer the batch in this slot; and back: it is answered. */
typedef struct gbx_worker_message {
    uint32_t magic;
    uint32_t slot;
    uint64_t number; /* counts up */
} gbx_worker_message;

/* What a worker does now, in memory that outlives it. */
typedef struct gbx_worker_board {
    gbx_call_fault fault;
    _Atomic uint32_t is_loading; /* kernels are being loaded, their constructors run */
    _Atomic uint32_t slot;       /* of the batch */
    _Atomic uint32_t task;       /* in the batch */
    _Atomic uint32_t step;       /* gbx_call_step */
    _Atomic uint32_t run;        /* of GBX_STEP_RUN: from 1 */
    _Atomic uint64_t began_ns;   /* the call that is made now; 0: none */
    _Atomic uint32_t wait_count; /* of gbx_call_wait below: no dispatch will ever continue */
    gbx_call_wait waits[GBX_CALL_WAITING];
    _Atomic uint32_t states[GBX_MAX_DISPATCHES]; /* gbx_call_state */
} gbx_worker_board;

/* Which of the calls of a task. */
typedef enum gbx_call_step {
    GBX_STEP_RUN = 0,     /* with the first pattern */
    GBX_STEP_AGAIN = 1,   /* with the same pattern */
    GBX_STEP_OTHER = 2,   /* with the other pattern */
    GBX_STEP_ORDERED = 3, /* one dispatch at a time */
    GBX_STEP_FLAGS = 4    /* likewise, with flags cleared */
} gbx_call_step;

#endif
