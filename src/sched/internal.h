/* What the parts of the scheduler share. */
#ifndef GBX_SCHED_INTERNAL_H
#define GBX_SCHED_INTERNAL_H

#include "sched/sched.h"

enum { GBX_SCHED_AWAKE = GBX_SCHED_BUILDING - 1 }; /* the part of `active` that counts workers */

/* The probe of a dump; a build that measures the cost of the hooks has none. */
#ifndef GBX_SCHED_HAS_PROBE
#    define GBX_SCHED_HAS_PROBE 1
#endif
static inline const gbx_probe *gbx_sched_probe(const gbx_sched *sched) {
    return GBX_SCHED_HAS_PROBE ? sched->config.probe : NULL;
}

/* A worker while it is awake; on its own stack. */
typedef struct gbx_sched_worker {
    gbx_sched *sched;
    uint32_t id;
    uint32_t thread;      /* the AICPU thread it is, or was last */
    uint32_t held_core;   /* a core kept from one dispatch to the next, or GBX_NO_FREE_CORE */
    uint32_t first_class; /* which queue it looks into first */
    gbx_sched_task *next; /* a task that its last completion released */
} gbx_sched_worker;

/* Pairs with the release at the start of a kernel: the end belongs to the same kernel. */
static inline gbx_sched_span gbx_sched_span_of(const gbx_sched *sched, uint32_t core_id) {
    const gbx_sched_times *times = &sched->times[core_id];
    uint64_t start = atomic_load_explicit(&times->start_ticks, memory_order_acquire);
    return (gbx_sched_span){.start_ticks = start,
                            .end_ticks =
                                atomic_load_explicit(&times->end_ticks, memory_order_relaxed)};
}

static inline uint32_t gbx_sched_index(const gbx_sched *sched, const gbx_sched_task *task) {
    return (uint32_t)(task - sched->config.tasks);
}

static inline void gbx_sched_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* More workers than processors: those woken for a gang take no plain tasks. */
static inline bool gbx_sched_is_surplus(gbx_sched *sched) {
    uint32_t awake = atomic_load_explicit(&sched->active, memory_order_relaxed) & GBX_SCHED_AWAKE;
    return awake > atomic_load_explicit(&sched->limit, memory_order_relaxed);
}

/* --- dispatch.c: with a role --- */

/* The next dispatch for this worker; NULL when there is none for it. */
gbx_sched_dispatch *gbx_sched_take(gbx_sched_worker *worker);

/* The kernel of the dispatch has ended. */
void gbx_sched_complete(gbx_sched_worker *worker, gbx_sched_dispatch *dispatch);

/* Whether there is something that a worker could take now. Any thread. */
bool gbx_sched_has_work(gbx_sched *sched);

/* The same, for a worker that looks again and again: cheap when there is nothing, but may miss what
 * is just being pushed. */
bool gbx_sched_sees_work(gbx_sched *sched);

/* --- gang.c: with a role --- */

/* Whether a gang must be spread over cores. */
bool gbx_sched_has_gang(gbx_sched *sched);

/* Gives cores and workers to the blocks of the gangs that are ready, as far as cores are free. */
void gbx_sched_spread(gbx_sched_worker *worker);

/* Fills in the dispatch of a core that was taken. */
gbx_sched_dispatch *gbx_sched_start(gbx_sched_worker *worker, gbx_sched_task *task,
                                    uint32_t core_id, uint32_t subtask, uint32_t block_idx);

/* --- wake.c: any thread --- */

/* Wakes a worker when there is work and a processor for it. */
void gbx_sched_wake_for_work(gbx_sched *sched);

/*
 * Called by a worker that is about to run a kernel: the remaining dispatches of a gang need other
 * workers now, beyond the limit if necessary. Each woken worker wakes the next before it runs a
 * kernel.
 */
void gbx_sched_wake_for_gang(gbx_sched *sched);

/* Wakes a worker that is already counted in `active`. */
void gbx_sched_wake_counted(gbx_sched *sched);

/* How long to wait for another thread after a fault: as long as it makes progress, because it may
 * copy large tensors or wait for room. A thread that makes none will not come back. */
typedef struct gbx_sched_patience {
    uint64_t progress;
    int64_t since_ns;
} gbx_sched_patience;
gbx_sched_patience gbx_sched_be_patient(gbx_sched *sched);
bool gbx_sched_has_patience(gbx_sched *sched, gbx_sched_patience *patience);

/* Takes the role of an AICPU thread after a fault. */
void gbx_sched_seize_role(gbx_sched *sched, uint32_t thread);

/* Gives a role back, and wakes workers that wait for one. */
void gbx_sched_free_role(gbx_sched *sched, uint32_t thread);

/* The last worker ends the run. Returns false when there is work after all: the run then continues,
 * with one worker counted. */
bool gbx_sched_end(gbx_sched *sched);

#endif
