#include <sched.h>

#include "sched/internal.h"

/* --- the run --- */

static void init_roles(gbx_sched *sched) {
    for (uint32_t t = 0; t < GBX_SCHED_MAX_THREADS; ++t) {
        atomic_store_explicit(&sched->roles[t].is_taken, 0, memory_order_relaxed);
        atomic_store_explicit(&sched->roles[t].completed, 0, memory_order_relaxed);
        atomic_store_explicit(&sched->roles[t].dispatched, 0, memory_order_relaxed);
    }
}

/* While it builds, the builder has a processor of its own. */
static uint32_t limit_beside_builder(const gbx_sched *sched) {
    uint32_t processors = sched->config.processor_count;
    return processors > 1 ? processors - 1 : 1;
}

void gbx_sched_begin(gbx_sched *sched, const gbx_sched_config *config) {
    sched->config = *config;
    uint32_t worker_count = config->blocks * GBX_SUBTASK_COUNT;
    atomic_store_explicit(&sched->worker_count, worker_count, memory_order_relaxed);
    /* Never count more workers than can be woken. */
    if (sched->config.processor_count > worker_count)
        sched->config.processor_count = worker_count;
    sched->gang = NULL;
    for (uint32_t i = 0; i < GBX_SCHED_MAX_CORES; ++i)
        atomic_store_explicit(&sched->times[i].start_ticks, 0, memory_order_relaxed);
    gbx_core_set_init(&sched->cores, config->blocks);
    for (uint32_t c = 0; c < GBX_CLASS_COUNT; ++c)
        gbx_ready_queue_init(&sched->ready[c], config->cells + (size_t)c * config->task_capacity,
                             config->task_capacity);
    for (uint32_t i = 0; i < GBX_SCHED_ASSIGNED_CELLS; ++i)
        atomic_store_explicit(&sched->assigned_cells[i].turn, 0, memory_order_relaxed);
    gbx_ready_queue_init(&sched->assigned, sched->assigned_cells, GBX_SCHED_ASSIGNED_CELLS);
    init_roles(sched);
    atomic_store_explicit(&sched->reserved, 0, memory_order_relaxed);
    atomic_store_explicit(&sched->is_spreading, 0, memory_order_relaxed);
    atomic_store_explicit(&sched->spread_again, 0, memory_order_relaxed);
    atomic_store_explicit(&sched->is_gang_waiting, 0, memory_order_relaxed);
    atomic_store_explicit(&sched->role_waiters, 0, memory_order_relaxed);
    atomic_store_explicit(&sched->awaited, NULL, memory_order_relaxed);
    atomic_store_explicit(&sched->is_cancelled, 0, memory_order_relaxed);
    atomic_store_explicit(&sched->end_report, GBX_SCHED_UNREPORTED, memory_order_relaxed);
    atomic_store_explicit(&sched->limit, config->is_gated ? 0 : limit_beside_builder(sched),
                          memory_order_relaxed);
    /* Last: a worker of the previous run that is about to sleep reads this first. */
    atomic_store_explicit(&sched->active, GBX_SCHED_BUILDING, memory_order_seq_cst);
}

/* --- the builder --- */

void gbx_sched_prepare(gbx_sched_task *task, uint64_t id, const gbx_task_kernels *kernels,
                       const gbx_task_arguments *arguments) {
    uint32_t count = arguments->word_count;
    task->id = id;
    task->block_num = kernels->block_num;
    task->next_block = 0;
    task->subtask_count = 0;
    for (uint32_t s = GBX_SUBTASK_COUNT; s-- > 0;) {
        task->func_ids[s] = kernels->func_ids[s];
        if (kernels->func_ids[s] == GBX_NO_KERNEL)
            continue;
        task->first_subtask = (uint8_t)s;
        ++task->subtask_count;
    }
    uint32_t dispatch_count = task->subtask_count * task->block_num;
    task->class_of = dispatch_count > 1                       ? GBX_CLASS_GANG
                     : task->first_subtask == GBX_SUBTASK_AIC ? GBX_CLASS_AIC
                                                              : GBX_CLASS_AIV;
    task->word_count = (uint8_t)count;
    task->words = count <= GBX_INLINE_WORDS ? task->inline_words : arguments->words;
    for (uint32_t i = 0; count <= GBX_INLINE_WORDS && i < count; ++i)
        task->inline_words[i] = arguments->words[i];
    task->arguments = arguments;
    task->inputs = NULL;
    atomic_store_explicit(&task->left, dispatch_count, memory_order_relaxed);
    atomic_store_explicit(&task->pending, 1, memory_order_relaxed);
    atomic_store_explicit(&task->successors, NULL, memory_order_relaxed);
}

bool gbx_sched_link(gbx_sched_task *predecessor, gbx_sched_edge *edge) {
    gbx_sched_edge *head = atomic_load_explicit(&predecessor->successors, memory_order_acquire);
    if (head == GBX_SCHED_COMPLETED)
        return false;
    /* First: the predecessor may complete as soon as it has the edge. */
    atomic_fetch_add_explicit(&edge->successor->pending, 1, memory_order_relaxed);
    do {
        if (head == GBX_SCHED_COMPLETED) {
            atomic_fetch_sub_explicit(&edge->successor->pending, 1, memory_order_relaxed);
            return false;
        }
        edge->next = head;
        /* Pairs with the exchange that completes the predecessor: the edge is filled in. */
    } while (!atomic_compare_exchange_weak_explicit(&predecessor->successors, &head, edge,
                                                    memory_order_acq_rel, memory_order_acquire));
    return true;
}

void gbx_sched_release(gbx_sched *sched, gbx_sched_task *task) {
    /* Acquire: what completed predecessors wrote. Release: the task is filled in. */
    if (atomic_fetch_sub_explicit(&task->pending, 1, memory_order_acq_rel) != 1)
        return;
    gbx_ready_queue_push(&sched->ready[task->class_of], gbx_sched_index(sched, task));
    gbx_sched_wake_for_work(sched);
}

enum { AWAIT_SPINS = 200 };

static void sleep_until_completed(gbx_sched *sched, gbx_sched_task *task) {
    atomic_store_explicit(&sched->awaited, task, memory_order_seq_cst);
    /* The processor of the builder is free for a worker. */
    uint32_t limit = atomic_load_explicit(&sched->limit, memory_order_relaxed);
    atomic_store_explicit(&sched->limit, sched->config.processor_count, memory_order_seq_cst);
    gbx_sched_wake_for_work(sched);
    for (;;) {
        uint32_t seen = gbx_doorbell_read(&sched->builder_bell);
        if (gbx_sched_task_is_completed(task) || gbx_sched_is_cancelled(sched))
            break;
        gbx_doorbell_wait(&sched->builder_bell, seen, GBX_FOREVER);
    }
    atomic_store_explicit(&sched->limit, limit, memory_order_seq_cst);
    atomic_store_explicit(&sched->awaited, NULL, memory_order_relaxed);
}

bool gbx_sched_await(gbx_sched *sched, gbx_sched_task *task) {
    for (uint32_t spins = 0; spins < AWAIT_SPINS && !gbx_sched_task_is_completed(task); ++spins)
        gbx_sched_relax();
    if (!gbx_sched_task_is_completed(task))
        sleep_until_completed(sched, task);
    return gbx_sched_task_is_completed(task);
}

void gbx_sched_seal(gbx_sched *sched) {
    atomic_store_explicit(&sched->limit, sched->config.processor_count, memory_order_seq_cst);
    gbx_sched_wake_for_work(sched);
    if (atomic_fetch_sub_explicit(&sched->active, GBX_SCHED_BUILDING, memory_order_seq_cst) ==
            GBX_SCHED_BUILDING &&
        !gbx_sched_end(sched))
        gbx_sched_wake_counted(sched);
}

/* --- any thread --- */

void gbx_sched_cancel(gbx_sched *sched) {
    atomic_store_explicit(&sched->is_cancelled, 1, memory_order_seq_cst);
    gbx_doorbell_ring(&sched->builder_bell);
}

uint64_t gbx_sched_completed(gbx_sched *sched) {
    uint64_t sum = 0;
    for (uint32_t t = 0; t < GBX_SCHED_MAX_THREADS; ++t)
        sum += atomic_load_explicit(&sched->roles[t].completed, memory_order_relaxed);
    return sum;
}

uint64_t gbx_sched_dispatched(gbx_sched *sched) {
    uint64_t sum = 0;
    for (uint32_t t = 0; t < GBX_SCHED_MAX_THREADS; ++t)
        sum += atomic_load_explicit(&sched->roles[t].dispatched, memory_order_relaxed);
    return sum;
}

uint32_t gbx_sched_awake(gbx_sched *sched) {
    return atomic_load_explicit(&sched->active, memory_order_seq_cst) & GBX_SCHED_AWAKE;
}

/* The last worker may be reporting, if a hung kernel has ended after all: then waits for it. */
static bool claim_report(gbx_sched *sched) {
    uint32_t found = GBX_SCHED_UNREPORTED;
    gbx_sched_patience patience = gbx_sched_be_patient(sched);
    if (atomic_compare_exchange_strong_explicit(&sched->end_report, &found, GBX_SCHED_REPORTING,
                                                memory_order_acq_rel, memory_order_acquire))
        return true;
    while (atomic_load_explicit(&sched->end_report, memory_order_acquire) != GBX_SCHED_REPORTED &&
           gbx_sched_has_patience(sched, &patience))
        sched_yield();
    return false;
}

void gbx_sched_report_fault(gbx_sched *sched, uint32_t core_id) {
    const gbx_probe *probe = gbx_sched_probe(sched);
    if (!probe || !claim_report(sched))
        return;
    for (uint32_t t = 0; t < sched->config.thread_count; ++t)
        gbx_sched_seize_role(sched, t);
    if (core_id < atomic_load_explicit(&sched->worker_count, memory_order_relaxed)) {
        const gbx_sched_dispatch *dispatch = &sched->dispatches[core_id];
        if (dispatch->task && !gbx_sched_task_is_completed(dispatch->task))
            probe->on_fault(probe->context, 0, dispatch);
    }
    for (uint32_t i = 0; i < GBX_SCHED_MAX_CORES; ++i) {
        gbx_sched_span span = gbx_sched_span_of(sched, i);
        if (span.start_ticks)
            probe->after_dispatch(probe->context, 0, &sched->dispatches[i], span);
    }
    for (uint32_t t = 0; t < sched->config.thread_count; ++t) {
        probe->end_of_thread(probe->context, t);
        gbx_sched_free_role(sched, t);
    }
    atomic_store_explicit(&sched->end_report, GBX_SCHED_REPORTED, memory_order_release);
}
