#include "guard/device/guard.h"

#include <string.h>

void gbx_history_init(gbx_history *history) {
    for (uint32_t i = 0; i < GBX_HISTORY_CORES; ++i)
        atomic_init(&history->cores[i].task, GBX_NO_TASK);
}

void gbx_history_start(gbx_history *history, const gbx_sched_dispatch *dispatch) {
    gbx_history_core *core = &history->cores[dispatch->core_id % GBX_HISTORY_CORES];
    atomic_store_explicit(&core->func_id, dispatch->func_id, memory_order_relaxed);
    atomic_store_explicit(&core->what, dispatch->task, memory_order_relaxed);
    /* Pairs with the acquire in add_running: the rest is filled in. */
    atomic_store_explicit(&core->task, dispatch->task->id, memory_order_release);
}

/* The entry first, then the core: a task that ends meanwhile is seen in at least one of them. */
void gbx_history_end(gbx_history *history, const gbx_sched_dispatch *dispatch) {
    uint64_t number = atomic_fetch_add_explicit(&history->ended, 1, memory_order_acq_rel);
    gbx_history_entry *entry = &history->entries[number % GBX_HISTORY_ENTRIES];
    gbx_history_core *core = &history->cores[dispatch->core_id % GBX_HISTORY_CORES];
    atomic_store_explicit(&entry->stamp, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&entry->task, dispatch->task->id, memory_order_relaxed);
    atomic_store_explicit(&entry->func_id, dispatch->func_id, memory_order_relaxed);
    /* Pairs with the acquire in add_ended: the entry is filled in. */
    atomic_store_explicit(&entry->stamp, number + 1, memory_order_release);
    atomic_store_explicit(&core->task, GBX_NO_TASK, memory_order_release);
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
    for (uint32_t i = 0; i < GBX_HISTORY_CORES; ++i) {
        gbx_history_core *core = &history->cores[i];
        uint64_t task = atomic_load_explicit(&core->task, memory_order_acquire);
        if (task != GBX_NO_TASK)
            add(finding, task, atomic_load_explicit(&core->func_id, memory_order_relaxed));
    }
}

void gbx_history_add_candidates(gbx_history *history, uint64_t moment, gbx_run_finding *finding) {
    uint64_t now = gbx_history_moment(history);
    if (finding->candidate_total < finding->candidate_count)
        finding->candidate_total = finding->candidate_count;
    add_running(history, finding);
    if (moment <= now)
        add_ended(history, moment, now, finding);
}
