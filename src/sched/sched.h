/*
 * The scheduler of all runtimes. Device code: no malloc, no stdio, no locks; the caller gives all
 * memory.
 *
 * Tasks wait for their predecessors, then in a ready queue for a core. *Workers* are threads that
 * the chip lends. A worker that has run a kernel runs the scheduler's step itself: it completes the
 * task, releases its successors and takes the next dispatch. So nothing between a kernel's end and
 * its successor's start waits for another thread. A worker makes the step as one of the chip's
 * AICPU threads: a *role*, held by one worker at a time, whose number the probe gets.
 *
 * Only as many workers are awake as there are processors, except for gangs (a mix, or a task of
 * several blocks): their kernels may wait for each other, so every dispatch of a gang gets a worker
 * at once. One gang at a time is spread over the cores, and the next one only when all blocks of
 * the first have cores: two gangs never wait for cores that the other holds.
 */
#ifndef GBX_SCHED_SCHED_H
#define GBX_SCHED_SCHED_H

#include "base/doorbell.h"
#include "sched/core_set.h"
#include "sched/probe.h"
#include "sched/ready_queue.h"
#include "sched/task.h"

enum { GBX_SCHED_ASSIGNED_CELLS = 128 };

/* What the scheduler needs from the chip. */
typedef struct gbx_sched_machine {
    void *context;
    /* Runs the kernel of a dispatch on the calling thread; a full fence follows the kernel. */
    void (*run)(void *context, const gbx_sched_dispatch *dispatch);
    /* Wakes a parked worker, which then calls gbx_sched_work. */
    void (*wake)(void *context, uint32_t worker);
    /* The run is over: called once, by the last thread in it, as its last step. */
    void (*finish)(void *context);
} gbx_sched_machine;

typedef struct gbx_sched_config {
    gbx_sched_machine machine;
    const gbx_probe *probe;  /* NULL: no dump */
    uint64_t global_context; /* its address in global memory */
    uint32_t blocks;
    uint32_t thread_count;    /* AICPU threads */
    uint32_t processor_count; /* how many workers make sense at a time */
    bool is_gated;            /* nothing runs before gbx_sched_seal */
    gbx_sched_task *tasks;    /* memory for all tasks in flight */
    uint32_t task_capacity;   /* how many tasks; a power of two */
    gbx_ready_cell *cells;    /* GBX_CLASS_COUNT * task_capacity, zero */
} gbx_sched_config;

typedef struct gbx_sched_role {
    _Alignas(64) _Atomic uint32_t is_taken;
    _Atomic uint64_t completed;  /* tasks; the holder adds */
    _Atomic uint64_t dispatched; /* dispatches; the holder adds */
} gbx_sched_role;

/* With a probe: the gbx_sched_span of the dispatch that a core runs, both 0 where there is none.
 * The worker that runs it writes; after a fault another thread reads. */
typedef struct gbx_sched_times {
    _Alignas(64) _Atomic uint64_t start_ticks;
    _Atomic uint64_t end_ticks;
} gbx_sched_times;

typedef struct gbx_sched {
    gbx_sched_config config;
    _Atomic uint32_t worker_count; /* the same in all runs; a late worker reads it, too */

    /* Workers awake in the low half; GBX_SCHED_BUILDING in the high one. 0: no run. */
    _Alignas(64) _Atomic uint32_t active;
    _Atomic uint32_t idle;   /* workers awake that look for work */
    _Atomic uint32_t coming; /* workers that were woken and have not looked for work yet */
    _Atomic uint32_t limit;  /* how many workers may be awake for plain tasks */
    _Atomic uint32_t is_cancelled;
    _Atomic uint32_t end_report;             /* of the end of all threads, to the probe */
    _Alignas(64) _Atomic uint64_t parked[2]; /* a bit for each worker that sleeps; over all runs */

    _Alignas(64) gbx_core_set cores;
    _Atomic uint32_t reserved; /* blocks whose cores only a gang may take */
    gbx_ready_queue ready[GBX_CLASS_COUNT];
    gbx_ready_queue assigned; /* cores of gangs that wait for a worker */
    gbx_ready_cell assigned_cells[GBX_SCHED_ASSIGNED_CELLS];

    _Alignas(64) _Atomic uint32_t is_spreading; /* the worker that set it owns `gang` */
    _Atomic uint32_t spread_again;              /* cores or gangs may have changed since */
    _Atomic uint32_t is_gang_waiting;           /* for cores */
    gbx_sched_task *gang;                       /* the one that is being spread */
    bool is_gang_reported;                      /* before_dispatch was called for it */

    _Alignas(64) _Atomic uint32_t role_waiters;
    gbx_doorbell role_bell;
    gbx_sched_role roles[GBX_SCHED_MAX_THREADS];

    _Alignas(64) _Atomic(gbx_sched_task *) awaited; /* by the builder */
    gbx_doorbell builder_bell;

    gbx_sched_dispatch dispatches[GBX_SCHED_MAX_CORES]; /* of each core; args and local are given */
    gbx_sched_times times[GBX_SCHED_MAX_CORES];
} gbx_sched;

enum { GBX_SCHED_BUILDING = 1u << 16 };
enum { GBX_SCHED_UNREPORTED = 0, GBX_SCHED_REPORTING = 1, GBX_SCHED_REPORTED = 2 };

/* --- a run, by the thread that starts it --- */

/*
 * Prepares a run; the caller is its builder until it calls gbx_sched_seal. The args and local of
 * all dispatches are set before, and the workers are parked (gbx_sched_park).
 */
void gbx_sched_begin(gbx_sched *sched, const gbx_sched_config *config);

/* --- the builder: one thread at a time --- */

/* Fills in the scheduler's part of a task; it does not run before it is released. */
void gbx_sched_prepare(gbx_sched_task *task, uint64_t id, const gbx_task_kernels *kernels,
                       const gbx_task_arguments *arguments);

/*
 * Makes `edge->successor`, which is not released yet, wait for the predecessor. False when that one
 * has completed already; the edge is then not used.
 */
bool gbx_sched_link(gbx_sched_task *predecessor, gbx_sched_edge *edge);

/* The task has all its edges: it runs when its last predecessor has completed. */
void gbx_sched_release(gbx_sched *sched, gbx_sched_task *task);

/* Sleeps until a task that was released has completed; false when the run is cancelled. */
bool gbx_sched_await(gbx_sched *sched, gbx_sched_task *task);

/* No task will follow. The run ends when all tasks that can run have completed. */
void gbx_sched_seal(gbx_sched *sched);

/* --- workers --- */

/* Takes work until there is none. Called by a worker that was woken. */
void gbx_sched_work(gbx_sched *sched, uint32_t worker);

/* Marks a worker as asleep, before it sleeps. */
void gbx_sched_park(gbx_sched *sched, uint32_t worker);

/* Whether this worker has not been woken yet. */
bool gbx_sched_is_parked(gbx_sched *sched, uint32_t worker);

/* --- any thread --- */

/* Starts no further dispatch. Signal handlers may call it, too. */
void gbx_sched_cancel(gbx_sched *sched);

static inline bool gbx_sched_is_cancelled(gbx_sched *sched) {
    return atomic_load_explicit(&sched->is_cancelled, memory_order_acquire);
}

uint64_t gbx_sched_completed(gbx_sched *sched);
uint64_t gbx_sched_dispatched(gbx_sched *sched);

/* Workers that are awake. */
uint32_t gbx_sched_awake(gbx_sched *sched);

/*
 * Called after a kernel has crashed or hung, by a thread that is not a worker: reports it to the
 * probe (`core_id` of the dispatch; none if out of range), and then the end of all threads.
 */
void gbx_sched_report_fault(gbx_sched *sched, uint32_t core_id);

#endif
