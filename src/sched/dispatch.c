#include "sched/internal.h"

/* Only for plain tasks, whose class is that of their cores; a gang takes its cores in gang.c. */
static bool has_core(gbx_sched *sched, uint32_t class_of) {
    uint32_t avoided = atomic_load_explicit(&sched->reserved, memory_order_relaxed);
    uint32_t free = class_of == GBX_CLASS_AIC
                        ? gbx_core_set_free(&sched->cores, GBX_SUBTASK_AIC)
                        : gbx_core_set_free(&sched->cores, GBX_SUBTASK_AIV0) |
                              gbx_core_set_free(&sched->cores, GBX_SUBTASK_AIV1);
    return free & ~avoided;
}

bool gbx_sched_sees_work(gbx_sched *sched) {
    for (uint32_t c = 0; c < GBX_CLASS_COUNT; ++c)
        if (gbx_ready_queue_has_item(&sched->ready[c]))
            return gbx_sched_has_work(sched);
    return gbx_ready_queue_has_item(&sched->assigned);
}

bool gbx_sched_has_work(gbx_sched *sched) {
    if (!gbx_ready_queue_is_empty(&sched->assigned))
        return true;
    if (gbx_sched_is_cancelled(sched))
        return false;
    for (uint32_t c = 0; c < GBX_CLASS_GANG; ++c)
        if (!gbx_ready_queue_is_empty(&sched->ready[c]) && has_core(sched, c))
            return true;
    return !gbx_ready_queue_is_empty(&sched->ready[GBX_CLASS_GANG]) &&
           !atomic_load_explicit(&sched->is_gang_waiting, memory_order_seq_cst);
}

static void give_held_core(gbx_sched_worker *worker) {
    if (worker->held_core == GBX_NO_FREE_CORE)
        return;
    gbx_core_set_give(&worker->sched->cores, worker->held_core);
    worker->held_core = GBX_NO_FREE_CORE;
}

static uint32_t core_class(uint32_t core_id) {
    return core_id % GBX_SUBTASK_COUNT == GBX_SUBTASK_AIC ? GBX_CLASS_AIC : GBX_CLASS_AIV;
}

/* The core that the worker holds if it fits, else any. */
static uint32_t take_core(gbx_sched_worker *worker, uint32_t class_of) {
    gbx_core_set *cores = &worker->sched->cores;
    uint32_t held = worker->held_core;
    if (held != GBX_NO_FREE_CORE && core_class(held) == class_of) {
        worker->held_core = GBX_NO_FREE_CORE;
        return held;
    }
    give_held_core(worker);
    uint32_t avoided = atomic_load_explicit(&worker->sched->reserved, memory_order_relaxed);
    if (class_of == GBX_CLASS_AIC)
        return gbx_core_set_take_any(cores, GBX_SUBTASK_AIC, avoided);
    uint32_t core = gbx_core_set_take_any(cores, GBX_SUBTASK_AIV0, avoided);
    return core != GBX_NO_FREE_CORE ? core
                                    : gbx_core_set_take_any(cores, GBX_SUBTASK_AIV1, avoided);
}

/*
 * Hooks: without a probe each costs one branch, and keeps nothing in registers. For that, the code
 * after a hook exists twice: also in the cold path with a probe.
 */
#define IN_BOTH_PATHS static inline __attribute__((always_inline))
#define PROBED __attribute__((noinline, cold)) static

IN_BOTH_PATHS gbx_sched_dispatch *fill_dispatch(gbx_sched_worker *worker, gbx_sched_task *task,
                                                uint32_t core_id, uint32_t subtask,
                                                uint32_t block_idx) {
    gbx_sched *sched = worker->sched;
    gbx_sched_role *role = &sched->roles[worker->thread];
    gbx_sched_dispatch *dispatch = &sched->dispatches[core_id];
    dispatch->task = task;
    dispatch->func_id = task->func_ids[subtask];
    dispatch->core_id = core_id;
    dispatch->block_idx = block_idx;
    dispatch->subtask = subtask;
    for (uint32_t i = 0; i < task->word_count; ++i)
        dispatch->args[i] = task->words[i];
    *dispatch->local = (gbx_local_context){.block_idx = block_idx,
                                           .block_num = task->block_num,
                                           .subtask = subtask,
                                           .core_id = core_id};
    dispatch->args[GBX_ARG_LOCAL_CONTEXT] = (uint64_t)(uintptr_t)dispatch->local;
    dispatch->args[GBX_ARG_GLOBAL_CONTEXT] = sched->config.global_context;
    atomic_store_explicit(&role->dispatched,
                          atomic_load_explicit(&role->dispatched, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    return dispatch;
}

PROBED gbx_sched_dispatch *start_probed(gbx_sched_worker *worker, gbx_sched_task *task,
                                        uint32_t core_id, uint32_t subtask, uint32_t block_idx) {
    const gbx_probe *probe = gbx_sched_probe(worker->sched);
    gbx_sched_dispatch *dispatch = fill_dispatch(worker, task, core_id, subtask, block_idx);
    probe->at_dispatch(probe->context, worker->thread, dispatch);
    return dispatch;
}

gbx_sched_dispatch *gbx_sched_start(gbx_sched_worker *worker, gbx_sched_task *task,
                                    uint32_t core_id, uint32_t subtask, uint32_t block_idx) {
    if (gbx_sched_probe(worker->sched))
        return start_probed(worker, task, core_id, subtask, block_idx);
    return fill_dispatch(worker, task, core_id, subtask, block_idx);
}

PROBED gbx_sched_dispatch *probe_and_start(gbx_sched_worker *worker, gbx_sched_task *task,
                                           uint32_t core) {
    const gbx_probe *probe = gbx_sched_probe(worker->sched);
    probe->before_dispatch(probe->context, worker->thread, task);
    return gbx_sched_start(worker, task, core, task->first_subtask, 0);
}

/* The dispatch of a plain task; NULL when no core is free for it. */
IN_BOTH_PATHS gbx_sched_dispatch *start_plain(gbx_sched_worker *worker, gbx_sched_task *task) {
    uint32_t core = take_core(worker, task->class_of);
    if (core == GBX_NO_FREE_CORE)
        return NULL;
    if (gbx_sched_probe(worker->sched))
        return probe_and_start(worker, task, core);
    return gbx_sched_start(worker, task, core, task->first_subtask, 0);
}

static void push_ready(gbx_sched *sched, gbx_sched_task *task) {
    gbx_ready_queue_push(&sched->ready[task->class_of], gbx_sched_index(sched, task));
}

/* Takes a core before it pops: a task that is popped runs. */
static gbx_sched_dispatch *take_of_class(gbx_sched_worker *worker, uint32_t class_of) {
    gbx_sched *sched = worker->sched;
    uint32_t index;
    if (!gbx_ready_queue_has_item(&sched->ready[class_of]))
        return NULL;
    uint32_t core = take_core(worker, class_of);
    if (core == GBX_NO_FREE_CORE)
        return NULL;
    worker->held_core = core;
    if (!gbx_ready_queue_pop(&sched->ready[class_of], &index))
        return NULL;
    return start_plain(worker, &sched->config.tasks[index]);
}

static gbx_sched_dispatch *take_next(gbx_sched_worker *worker) {
    gbx_sched_task *task = worker->next;
    worker->next = NULL;
    gbx_sched_dispatch *dispatch = start_plain(worker, task);
    if (!dispatch)
        push_ready(worker->sched, task);
    return dispatch;
}

static gbx_sched_dispatch *take_plain(gbx_sched_worker *worker) {
    gbx_sched_dispatch *dispatch = NULL;
    if (gbx_sched_is_surplus(worker->sched)) {
        if (worker->next)
            push_ready(worker->sched, worker->next);
        worker->next = NULL;
        return NULL;
    }
    if (worker->next)
        dispatch = take_next(worker);
    for (uint32_t i = 0; !dispatch && i < GBX_CLASS_GANG; ++i)
        dispatch = take_of_class(worker, worker->first_class ^ i);
    worker->first_class ^= 1;
    return dispatch;
}

static gbx_sched_dispatch *take_assigned(gbx_sched_worker *worker) {
    uint32_t core_id;
    if (!gbx_ready_queue_pop(&worker->sched->assigned, &core_id))
        return NULL;
    if (worker->next)
        push_ready(worker->sched, worker->next);
    worker->next = NULL;
    return &worker->sched->dispatches[core_id];
}

static gbx_sched_dispatch *take_of_gang(gbx_sched_worker *worker) {
    if (gbx_sched_has_gang(worker->sched)) {
        give_held_core(worker);
        gbx_sched_spread(worker);
    }
    gbx_sched_dispatch *dispatch = take_assigned(worker);
    if (dispatch && worker->held_core != GBX_NO_FREE_CORE) {
        /* The rest of its gang may need the core, and its kernel may wait for the rest. */
        give_held_core(worker);
        if (gbx_sched_has_gang(worker->sched))
            gbx_sched_spread(worker);
    }
    return dispatch;
}

gbx_sched_dispatch *gbx_sched_take(gbx_sched_worker *worker) {
    gbx_sched *sched = worker->sched;
    gbx_sched_dispatch *dispatch = take_of_gang(worker);
    if (gbx_sched_is_cancelled(sched))
        worker->next = NULL; /* never kept: this worker may go on into the next run */
    else if (!dispatch)
        dispatch = take_plain(worker);
    /* A core may have been given back above that a gang has begun to wait for. */
    if (dispatch && atomic_load_explicit(&sched->is_gang_waiting, memory_order_seq_cst))
        gbx_sched_spread(worker);
    if (!dispatch) {
        give_held_core(worker);
        /* A gang that has begun to wait since may need a core that was given back here or above. */
        dispatch = take_of_gang(worker);
    }
    if (dispatch)
        gbx_sched_wake_for_gang(sched);
    gbx_sched_wake_for_work(sched);
    return dispatch;
}

/* One successor stays with the worker that released it, whose cache holds its inputs. */
static void release_successor(gbx_sched_worker *worker, gbx_sched_task *task) {
    /* Release and acquire: the last predecessor passes on what all of them wrote. */
    if (atomic_fetch_sub_explicit(&task->pending, 1, memory_order_acq_rel) != 1)
        return;
    if (!worker->next && task->class_of != GBX_CLASS_GANG)
        worker->next = task;
    else
        push_ready(worker->sched, task);
}

IN_BOTH_PATHS void complete_task(gbx_sched_worker *worker, gbx_sched_task *task) {
    gbx_sched *sched = worker->sched;
    gbx_sched_role *role = &sched->roles[worker->thread];
    /* From here on the builder may reuse the task's memory. */
    gbx_sched_edge *edge =
        atomic_exchange_explicit(&task->successors, GBX_SCHED_COMPLETED, memory_order_seq_cst);
    while (edge) {
        gbx_sched_edge *next =
            edge->next; /* read before the successor can complete and the edge be reused */
        release_successor(worker, edge->successor);
        edge = next;
    }
    atomic_store_explicit(&role->completed,
                          atomic_load_explicit(&role->completed, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    /* Pairs with gbx_sched_await, which has either named the task or sees it completed. */
    if (atomic_load_explicit(&sched->awaited, memory_order_seq_cst) == task)
        gbx_doorbell_ring(&sched->builder_bell);
}

/* Whether it was the last dispatch of its task. If not, the task may complete and be reused. */
IN_BOTH_PATHS bool is_last_dispatch(gbx_sched_task *task) {
    /* Release and acquire: the last dispatch sees what the kernels of all others wrote. */
    return task->class_of != GBX_CLASS_GANG ||
           atomic_fetch_sub_explicit(&task->left, 1, memory_order_acq_rel) == 1;
}

PROBED void complete_probed(gbx_sched_worker *worker, gbx_sched_dispatch *dispatch) {
    const gbx_probe *probe = gbx_sched_probe(worker->sched);
    gbx_sched_task *task = dispatch->task;
    probe->after_dispatch(probe->context, worker->thread, dispatch,
                          gbx_sched_span_of(worker->sched, dispatch->core_id));
    atomic_store_explicit(&worker->sched->times[dispatch->core_id].start_ticks, 0,
                          memory_order_relaxed);
    if (!is_last_dispatch(task))
        return;
    probe->after_completion(probe->context, worker->thread, task);
    complete_task(worker, task);
}

void gbx_sched_complete(gbx_sched_worker *worker, gbx_sched_dispatch *dispatch) {
    gbx_sched_task *task = dispatch->task;
    give_held_core(worker);
    worker->held_core = dispatch->core_id;
    if (gbx_sched_probe(worker->sched))
        complete_probed(worker, dispatch);
    else if (is_last_dispatch(task))
        complete_task(worker, task);
}
