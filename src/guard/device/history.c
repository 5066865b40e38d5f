#include "guard/device/guard.h"

#include <sched.h>
#include <string.h>

void gbx_history_init(gbx_history *history) {
    for (uint32_t i = 0; i < GBX_SCHED_MAX_CORES; ++i)
        atomic_init(&history->cores[i].task, GBX_NO_TASK);
}

void gbx_history_start(gbx_history *history, const gbx_sched_dispatch *dispatch) {
    gbx_history_core *core = &history->cores[dispatch->core_id];
    /* Another block of a task that is not complete may still stand here: see gbx_history_running.
     */
    atomic_store_explicit(&core->task, GBX_NO_TASK, memory_order_relaxed);
    atomic_store_explicit(&core->func_id, dispatch->func_id, memory_order_release);
    atomic_store_explicit(&core->what, dispatch->task, memory_order_release);
    /* Pairs with the acquire in gbx_history_running: the rest is filled in. */
    atomic_store_explicit(&core->task, dispatch->task->id, memory_order_release);
}

void gbx_history_end(gbx_history *history, uint32_t thread, const gbx_sched_dispatch *dispatch) {
    uint64_t number = atomic_fetch_add_explicit(&history->ended, 1, memory_order_acq_rel);
    gbx_history_entry *entry = &history->entries[number % GBX_HISTORY_ENTRIES];
    atomic_store_explicit(&entry->stamp, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&entry->task, dispatch->task->id, memory_order_relaxed);
    atomic_store_explicit(&entry->func_id, dispatch->func_id, memory_order_relaxed);
    /* Pairs with the acquire in add_ended: the entry is filled in. */
    atomic_store_explicit(&entry->stamp, number + 1, memory_order_release);
    history->threads[thread].core = dispatch->core_id;
}

static void await_holders(gbx_history *history) {
    while (atomic_load_explicit(&history->holders, memory_order_seq_cst) != 0)
        sched_yield();
}

void gbx_history_complete(gbx_history *history, uint32_t thread, const gbx_sched_task *task) {
    /* Who has repaired a zone that this task broke, before the task looked at it, still looks for
     * the task. */
    await_holders(history);
    uint32_t last = history->threads[thread].core;
    if (task->class_of != GBX_CLASS_GANG) {
        atomic_store_explicit(&history->cores[last].task, GBX_NO_TASK, memory_order_seq_cst);
    } else {
        for (uint32_t i = 0; i < GBX_SCHED_MAX_CORES; ++i) {
            _Atomic uint64_t *running = &history->cores[i].task;
            uint64_t id = task->id; /* the core may run another task by now */
            if (atomic_load_explicit(running, memory_order_relaxed) == id)
                atomic_compare_exchange_strong_explicit(running, &id, GBX_NO_TASK,
                                                        memory_order_seq_cst, memory_order_seq_cst);
        }
    }
    /* A later holder does not see the task any more, or this sees the holder. */
    await_holders(history);
}

void gbx_history_hold(gbx_history *history) {
    atomic_fetch_add_explicit(&history->holders, 1, memory_order_seq_cst);
}

void gbx_history_let_go(gbx_history *history) {
    /* Pairs with the load in gbx_history_complete: all looks are over. */
    atomic_fetch_sub_explicit(&history->holders, 1, memory_order_release);
}

const gbx_sched_task *gbx_history_running(gbx_history *history, uint32_t core, uint64_t *out_id,
                                          uint32_t *out_func) {
    gbx_history_core *at = &history->cores[core];
    *out_id = atomic_load_explicit(&at->task, memory_order_seq_cst);
    *out_func = atomic_load_explicit(&at->func_id, memory_order_acquire);
    const gbx_sched_task *task = atomic_load_explicit(&at->what, memory_order_acquire);
    /* Whoever writes those has taken the number away before. */
    bool is_same = atomic_load_explicit(&at->task, memory_order_relaxed) == *out_id;
    return *out_id != GBX_NO_TASK && is_same ? task : NULL;
}

static void add(gbx_run_finding *finding, uint64_t task, uint32_t func_id) {
    for (uint32_t i = 0; i < finding->candidate_count; ++i)
        if (finding->candidates[i].task == task)
            return;
    ++finding->candidate_total;
    if (finding->candidate_count < GBX_FINDING_CANDIDATES)
        finding->candidates[finding->candidate_count++] =
            (gbx_run_finding_task){task, func_id, GBX_FINDING_NO_ARGUMENT};
}

/* The newest first, because they are the most likely. */
static void add_ended(gbx_history *history, uint64_t moment, uint64_t now,
                      gbx_run_finding *finding) {
    uint64_t oldest = now > GBX_HISTORY_ENTRIES ? now - GBX_HISTORY_ENTRIES : 0;
    uint64_t first = moment > oldest ? moment : oldest;
    uint64_t last_task = GBX_NO_TASK;
    for (uint64_t number = now; number-- > first;) {
        gbx_history_entry *entry = &history->entries[number % GBX_HISTORY_ENTRIES];
        uint64_t stamp = atomic_load_explicit(&entry->stamp, memory_order_acquire);
        uint64_t task = atomic_load_explicit(&entry->task, memory_order_relaxed);
        uint32_t func_id = atomic_load_explicit(&entry->func_id, memory_order_relaxed);
        if (stamp != number + 1 || task == last_task)
            continue;
        last_task = task; /* blocks of one task follow each other */
        add(finding, task, func_id);
    }
    /* What the history has forgotten: each dispatch counts as a task. */
    finding->candidate_total += first - moment;
}

static void add_running(gbx_history *history, gbx_run_finding *finding) {
    for (uint32_t i = 0; i < GBX_SCHED_MAX_CORES; ++i) {
        uint64_t id;
        uint32_t func_id;
        if (gbx_history_running(history, i, &id, &func_id))
            add(finding, id, func_id);
    }
}

void gbx_history_add_candidates(gbx_history *history, uint64_t moment, gbx_run_finding *finding) {
    if (finding->candidate_total < finding->candidate_count)
        finding->candidate_total = finding->candidate_count;
    add_running(history, finding);
    /* After the look at what runs: what has ended meanwhile is in the history. */
    uint64_t now = gbx_history_moment(history);
    if (moment <= now)
        add_ended(history, moment, now, finding);
}
