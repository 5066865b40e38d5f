#include "sched/internal.h"

/* A gang that has begun continues after a cancel: its kernels may wait for each other. */
bool gbx_sched_has_gang(gbx_sched *sched) {
    if (atomic_load_explicit(&sched->is_gang_waiting, memory_order_seq_cst))
        return true;
    return !gbx_ready_queue_is_empty(&sched->ready[GBX_CLASS_GANG]) &&
           !gbx_sched_is_cancelled(sched);
}

static bool is_mix(const gbx_sched_task *task) {
    return task->subtask_count > 1;
}

/* The subtasks of a mix run on their own places of one block; all of them, or none. */
static bool take_block(gbx_sched *sched, const gbx_sched_task *task, uint32_t block) {
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s) {
        if (task->func_ids[s] == GBX_NO_KERNEL || gbx_core_set_take(&sched->cores, s, block))
            continue;
        while (s-- > 0)
            if (task->func_ids[s] != GBX_NO_KERNEL)
                gbx_core_set_give(&sched->cores, block * GBX_SUBTASK_COUNT + s);
        return false;
    }
    return true;
}

static uint32_t blocks_free_for(gbx_sched *sched, const gbx_sched_task *task) {
    uint32_t free = (uint32_t)((UINT64_C(1) << sched->config.blocks) - 1);
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s)
        if (task->func_ids[s] != GBX_NO_KERNEL)
            free &= gbx_core_set_free(&sched->cores, s);
    return free;
}

static uint32_t subtasks_of(const gbx_sched_task *task) {
    uint32_t mask = 0;
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s)
        mask |= (uint32_t)(task->func_ids[s] != GBX_NO_KERNEL) << s;
    return mask;
}

/* Places one block of a mix; false when no block of the chip is free for it. */
static bool place_mix(gbx_sched_worker *worker, gbx_sched_task *task) {
    gbx_sched *sched = worker->sched;
    uint32_t free = blocks_free_for(sched, task);
    for (; free; free &= free - 1) {
        uint32_t block = (uint32_t)__builtin_ctz(free);
        if (!take_block(sched, task, block))
            continue;
        /* Read before the last one is pushed: after that the task may complete and be reused. */
        for (uint32_t left = subtasks_of(task); left; left &= left - 1) {
            uint32_t subtask = (uint32_t)__builtin_ctz(left);
            uint32_t core = block * GBX_SUBTASK_COUNT + subtask;
            gbx_sched_start(worker, task, core, subtask, task->next_block);
            gbx_ready_queue_push(&sched->assigned, core);
        }
        return true;
    }
    return false;
}

/* Places one block of a task with one kernel: on any core of the type. */
static bool place_single(gbx_sched_worker *worker, gbx_sched_task *task) {
    gbx_core_set *cores = &worker->sched->cores;
    bool is_aic = task->first_subtask == GBX_SUBTASK_AIC;
    uint32_t core = gbx_core_set_take_any(cores, is_aic ? GBX_SUBTASK_AIC : GBX_SUBTASK_AIV0, 0);
    if (core == GBX_NO_FREE_CORE && !is_aic)
        core = gbx_core_set_take_any(cores, GBX_SUBTASK_AIV1, 0);
    if (core == GBX_NO_FREE_CORE)
        return false;
    gbx_sched_start(worker, task, core, task->first_subtask, task->next_block);
    gbx_ready_queue_push(&worker->sched->assigned, core);
    return true;
}

/* Keeps plain tasks off one block: a gang gets it when the kernels there have ended. */
static void reserve(gbx_sched *sched, const gbx_sched_task *task) {
    uint32_t best_block = 0;
    uint32_t best_free = 0;
    for (uint32_t block = 0; block < sched->config.blocks; ++block) {
        uint32_t free_count = 1;
        for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s)
            if (task->func_ids[s] != GBX_NO_KERNEL)
                free_count += gbx_core_set_free(&sched->cores, s) >> block & 1;
        if (free_count > best_free) {
            best_free = free_count;
            best_block = block;
        }
    }
    atomic_store_explicit(&sched->reserved, UINT32_C(1) << best_block, memory_order_relaxed);
}

/* Places what can be placed; true when the gang has all of its blocks. */
static bool place_blocks(gbx_sched_worker *worker, gbx_sched_task *task) {
    const gbx_probe *probe = gbx_sched_probe(worker->sched);
    /* Read now: when the last block is pushed, the task may complete and be reused. */
    uint32_t block_num = task->block_num;
    while (task->next_block < block_num) {
        if (probe && task->next_block == 0 && !worker->sched->is_gang_reported) {
            probe->before_dispatch(probe->context, worker->thread, task);
            worker->sched->is_gang_reported = true;
        }
        bool is_last = task->next_block + 1 == block_num;
        bool is_placed = is_mix(task) ? place_mix(worker, task) : place_single(worker, task);
        if (!is_placed)
            return false;
        if (is_last)
            break;
        ++task->next_block;
    }
    return true;
}

/* Called by the only worker that spreads: gang after gang, until one must wait for cores. */
static void spread_gangs(gbx_sched_worker *worker) {
    gbx_sched *sched = worker->sched;
    for (;;) {
        uint32_t index;
        if (!sched->gang) {
            if (gbx_sched_is_cancelled(sched) ||
                !gbx_ready_queue_pop(&sched->ready[GBX_CLASS_GANG], &index))
                return;
            sched->gang = &sched->config.tasks[index];
            sched->is_gang_reported = false;
        }
        bool was_waiting = atomic_load_explicit(&sched->is_gang_waiting, memory_order_relaxed);
        if (!place_blocks(worker, sched->gang)) {
            reserve(sched, sched->gang);
            atomic_store_explicit(&sched->is_gang_waiting, 1, memory_order_seq_cst);
            if (was_waiting)
                return;
            /* Again: a core may have come back before others could see that a gang waits for it. */
            continue;
        }
        sched->gang = NULL;
        atomic_store_explicit(&sched->is_gang_waiting, 0, memory_order_seq_cst);
        atomic_store_explicit(&sched->reserved, 0, memory_order_relaxed);
    }
}

/*
 * One worker spreads at a time. Another that comes meanwhile, because it gave a core back or made a
 * gang ready, sets spread_again, which the first one finds before or after it stops.
 */
void gbx_sched_spread(gbx_sched_worker *worker) {
    gbx_sched *sched = worker->sched;
    atomic_store_explicit(&sched->spread_again, 1, memory_order_seq_cst);
    while (atomic_load_explicit(&sched->spread_again, memory_order_seq_cst) &&
           !atomic_exchange_explicit(&sched->is_spreading, 1, memory_order_seq_cst)) {
        while (atomic_exchange_explicit(&sched->spread_again, 0, memory_order_seq_cst))
            spread_gangs(worker);
        atomic_store_explicit(&sched->is_spreading, 0, memory_order_seq_cst);
    }
}
