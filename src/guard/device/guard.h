/*
 * The guard on the chip: which tasks ran when (history.c), the way of findings to the host
 * (channel.c), red zones around buffers (zones.c), and the hooks of the scheduler (probe.c). Device
 * code: no malloc, no stdio, no locks.
 */
#ifndef GBX_GUARD_DEVICE_GUARD_H
#define GBX_GUARD_DEVICE_GUARD_H

#include "guard/abi.h"
#include "sched/finding.h"
#include "sched/probe.h"

enum { GBX_HISTORY_ENTRIES = 4096 };

/* --- history.c --- */

/* A dispatch that has ended. `stamp` is 1 + its number, written last, 0 while it is filled in. */
typedef struct gbx_history_entry {
    _Atomic uint64_t stamp;
    _Atomic uint64_t task;
    _Atomic uint32_t func_id;
} gbx_history_entry;

/* What a core runs, until the whole task is complete; `task` is GBX_NO_TASK where it runs nothing.
 */
typedef struct gbx_history_core {
    _Alignas(64) _Atomic uint64_t task;
    _Atomic uint32_t func_id;
    _Atomic(const gbx_sched_task *) what;
} gbx_history_core;

/* The core whose dispatch an AICPU thread has ended last. */
typedef struct gbx_history_thread {
    _Alignas(64) uint32_t core;
} gbx_history_thread;

/*
 * The dispatches that ended last, in order, and those that run: what may have written since a
 * moment. A moment is the number of dispatches that had ended.
 */
typedef struct gbx_history {
    _Alignas(64) _Atomic uint64_t ended;
    /* Threads that look at tasks that run now. All read it, and it hardly ever changes. */
    _Alignas(64) _Atomic uint32_t holders;
    _Alignas(64) gbx_history_entry entries[GBX_HISTORY_ENTRIES];
    gbx_history_core cores[GBX_SCHED_MAX_CORES];
    gbx_history_thread threads[GBX_SCHED_MAX_THREADS];
} gbx_history;

void gbx_history_init(gbx_history *history);
void gbx_history_start(gbx_history *history, const gbx_sched_dispatch *dispatch);
void gbx_history_end(gbx_history *history, uint32_t thread, const gbx_sched_dispatch *dispatch);

/* When all of it has been checked: it no longer counts as running. By the thread that ended its
 * last dispatch. */
void gbx_history_complete(gbx_history *history, uint32_t thread, const gbx_sched_task *task);

/* Between these the tasks that run stay in memory: those that complete wait. */
void gbx_history_hold(gbx_history *history);
void gbx_history_let_go(gbx_history *history);

/* The task that a core runs, its number and kernel; NULL: none. Between those two. */
const gbx_sched_task *gbx_history_running(gbx_history *history, uint32_t core, uint64_t *out_id,
                                          uint32_t *out_func);

static inline uint64_t gbx_history_moment(gbx_history *history) {
    return atomic_load_explicit(&history->ended, memory_order_acquire);
}

/* Adds the tasks that ran since `moment` to the candidates, each once. Those of the finding stay
 * first; its finder, if it ran since, comes next. */
void gbx_history_add_candidates(gbx_history *history, uint64_t moment, gbx_run_finding *finding);

/* --- arguments.c --- */

/* Compares the arguments of tasks in global memory with the private copies. */
typedef struct gbx_arguments_check {
    const gbx_finding_sink *findings;
    uint64_t shown;   /* as in gbx_probe_request */
    const void *kept; /* NULL: there is nothing to compare */
} gbx_arguments_check;

/* Before the first dispatch of a task, or when it has run. What changed is reported and restored.
 */
void gbx_arguments_check_task(const gbx_arguments_check *check, gbx_sched_task *task, bool has_run);

/* --- channel.c --- */

typedef struct gbx_guard_channel {
    gbx_guard_findings *shared; /* in global memory */
    _Atomic uint64_t count;     /* all; kernels cannot write here */
    _Atomic bool is_stopped;    /* the run has been ended because of a finding */
    int64_t start_ns;
    gbx_history *history;
    gbx_probe_request request;
    bool stops;
    gbx_finding_sink sink;
} gbx_guard_channel;

void gbx_guard_channel_init(gbx_guard_channel *channel, gbx_guard_findings *shared,
                            gbx_history *history, const gbx_probe_request *request, bool stops);

#endif
