/*
 * Which cores are free: one word for each place in a block, one bit for each block. Any thread; the
 * thread that clears a bit has taken the core.
 */
#ifndef GBX_SCHED_CORE_SET_H
#define GBX_SCHED_CORE_SET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <glassbox/kernel.h>

#define GBX_NO_FREE_CORE UINT32_MAX

typedef struct gbx_core_set {
    _Alignas(64) _Atomic uint32_t free[GBX_SUBTASK_COUNT]; /* by place: AIC, AIV0, AIV1 */
} gbx_core_set;

static inline void gbx_core_set_init(gbx_core_set *set, uint32_t blocks) {
    for (int place = 0; place < GBX_SUBTASK_COUNT; ++place)
        atomic_store_explicit(&set->free[place], (uint32_t)((UINT64_C(1) << blocks) - 1),
                              memory_order_relaxed);
}

static inline uint32_t gbx_core_set_free(gbx_core_set *set, uint32_t place) {
    /* Sequentially consistent: a thread that gives a core back and then looks for work or a gang,
     * and one that shows work or a gang and then looks for a core, cannot miss each other. */
    return atomic_load_explicit(&set->free[place], memory_order_seq_cst);
}

static inline bool gbx_core_set_take(gbx_core_set *set, uint32_t place, uint32_t block) {
    uint32_t bit = UINT32_C(1) << block;
    /* Acquire pairs with the release below: the core's last dispatch is over. */
    return atomic_fetch_and_explicit(&set->free[place], ~bit, memory_order_acquire) & bit;
}

static inline void gbx_core_set_give(gbx_core_set *set, uint32_t core_id) {
    uint32_t bit = UINT32_C(1) << core_id / GBX_SUBTASK_COUNT;
    atomic_fetch_or_explicit(&set->free[core_id % GBX_SUBTASK_COUNT], bit, memory_order_seq_cst);
}

/* Any core at a place, but for the blocks in `avoided`; GBX_NO_FREE_CORE when there is none. */
static inline uint32_t gbx_core_set_take_any(gbx_core_set *set, uint32_t place, uint32_t avoided) {
    uint32_t free;
    while ((free = gbx_core_set_free(set, place) & ~avoided) != 0) {
        uint32_t block = (uint32_t)__builtin_ctz(free);
        if (gbx_core_set_take(set, place, block))
            return block * GBX_SUBTASK_COUNT + place;
    }
    return GBX_NO_FREE_CORE;
}

#endif
