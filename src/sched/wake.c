#include "base/clock.h"
#include "sched/internal.h"

enum { MAX_COMING = 2 };

/*
 * A worker that goes to sleep first sets its bit, then leaves the count; a thread that wakes one
 * first counts it, then takes a bit. So there is always a bit for every worker counted.
 */
static uint32_t claim_parked(gbx_sched *sched) {
    for (uint32_t half = 0;; half ^= 1) {
        uint64_t bits = atomic_load_explicit(&sched->parked[half], memory_order_seq_cst);
        if (!bits)
            continue;
        uint64_t bit = bits & -bits;
        if (atomic_fetch_and_explicit(&sched->parked[half], ~bit, memory_order_seq_cst) & bit)
            return half * 64 + (uint32_t)__builtin_ctzll(bit);
    }
}

/* Counts one more worker in a run that is not over; false when `limit` are counted already. */
static bool count_up(gbx_sched *sched, uint32_t limit) {
    uint32_t active = atomic_load_explicit(&sched->active, memory_order_seq_cst);
    while (active != 0 && (active & GBX_SCHED_AWAKE) < limit)
        if (atomic_compare_exchange_weak_explicit(&sched->active, &active, active + 1,
                                                  memory_order_seq_cst, memory_order_seq_cst))
            return true;
    return false;
}

void gbx_sched_wake_counted(gbx_sched *sched) {
    atomic_fetch_add_explicit(&sched->coming, 1, memory_order_seq_cst);
    sched->config.machine.wake(sched->config.machine.context, claim_parked(sched));
}

void gbx_sched_wake_for_work(gbx_sched *sched) {
    uint32_t awake = atomic_load_explicit(&sched->active, memory_order_seq_cst) & GBX_SCHED_AWAKE;
    uint32_t limit = atomic_load_explicit(&sched->limit, memory_order_seq_cst);
    if (awake < limit && gbx_sched_has_work(sched) && count_up(sched, limit))
        gbx_sched_wake_counted(sched);
}

/*
 * Short kernels are done before a woken worker arrives, so only a few are woken at a time. A worker
 * that arrives first leaves `coming`, then looks for a dispatch; one that leaves a dispatch behind
 * then looks at `coming`: one of them sees the other.
 */
void gbx_sched_wake_for_gang(gbx_sched *sched) {
    while (!gbx_ready_queue_is_empty(&sched->assigned) &&
           atomic_load_explicit(&sched->coming, memory_order_seq_cst) < MAX_COMING &&
           count_up(sched, atomic_load_explicit(&sched->worker_count, memory_order_relaxed)))
        gbx_sched_wake_counted(sched);
}

static void end_threads(gbx_sched *sched) {
    const gbx_probe *probe = gbx_sched_probe(sched);
    uint32_t unreported = GBX_SCHED_UNREPORTED;
    if (!probe || !atomic_compare_exchange_strong_explicit(
                      &sched->end_report, &unreported, GBX_SCHED_REPORTING, memory_order_acq_rel,
                      memory_order_acquire))
        return;
    for (uint32_t t = 0; t < sched->config.thread_count; ++t)
        probe->end_of_thread(probe->context, t);
    atomic_store_explicit(&sched->end_report, GBX_SCHED_REPORTED, memory_order_release);
}

bool gbx_sched_end(gbx_sched *sched) {
    if (gbx_sched_has_work(sched)) {
        /* Only the caller can count up from 0. */
        atomic_store_explicit(&sched->active, 1, memory_order_seq_cst);
        return false;
    }
    end_threads(sched);
    sched->config.machine.finish(sched->config.machine.context);
    return true;
}

/* --- workers --- */

enum {
    LOOKS = 50,
    LOOKS_PER_YIELD = 4,
    PAUSES_PER_LOOK = 128,
    ROLE_SPINS = 256,
};

/* How long to wait for a thread that shows no progress. */
#define PATIENCE_NS (2 * GBX_NS_PER_SECOND)

static void take_role(gbx_sched_worker *worker) {
    gbx_sched *sched = worker->sched;
    uint32_t count = sched->config.thread_count;
    for (uint32_t spins = 0;; ++spins) {
        uint32_t seen = gbx_doorbell_read(&sched->role_bell);
        for (uint32_t i = 0; i < count; ++i) {
            gbx_sched_role *role = &sched->roles[worker->thread];
            if (!atomic_load_explicit(&role->is_taken, memory_order_seq_cst) &&
                !atomic_exchange_explicit(&role->is_taken, 1, memory_order_seq_cst))
                return;
            worker->thread = worker->thread + 1 == count ? 0 : worker->thread + 1;
        }
        gbx_sched_relax();
        if (spins < ROLE_SPINS)
            continue;
        /* The holder takes long: a probe may copy large tensors. */
        atomic_fetch_add_explicit(&sched->role_waiters, 1, memory_order_seq_cst);
        bool is_free = false;
        for (uint32_t i = 0; i < count; ++i)
            is_free |= !atomic_load_explicit(&sched->roles[i].is_taken, memory_order_seq_cst);
        if (!is_free)
            gbx_doorbell_wait(&sched->role_bell, seen, GBX_FOREVER);
        atomic_fetch_sub_explicit(&sched->role_waiters, 1, memory_order_seq_cst);
    }
}

gbx_sched_patience gbx_sched_be_patient(gbx_sched *sched) {
    const gbx_probe *probe = gbx_sched_probe(sched);
    return (gbx_sched_patience){.progress = probe ? probe->progress(probe->context) : 0,
                                .since_ns = gbx_clock_ns()};
}

bool gbx_sched_has_patience(gbx_sched *sched, gbx_sched_patience *patience) {
    gbx_sched_patience now = gbx_sched_be_patient(sched);
    if (now.progress != patience->progress)
        *patience = now;
    return now.since_ns - patience->since_ns < PATIENCE_NS;
}

void gbx_sched_seize_role(gbx_sched *sched, uint32_t thread) {
    gbx_sched_patience patience = gbx_sched_be_patient(sched);
    while (atomic_exchange_explicit(&sched->roles[thread].is_taken, 1, memory_order_seq_cst) &&
           gbx_sched_has_patience(sched, &patience))
        sched_yield();
}

void gbx_sched_free_role(gbx_sched *sched, uint32_t thread) {
    atomic_store_explicit(&sched->roles[thread].is_taken, 0, memory_order_seq_cst);
    if (atomic_load_explicit(&sched->role_waiters, memory_order_seq_cst))
        gbx_doorbell_ring(&sched->role_bell);
}

void gbx_sched_park(gbx_sched *sched, uint32_t worker) {
    atomic_fetch_or_explicit(&sched->parked[worker / 64], UINT64_C(1) << worker % 64,
                             memory_order_seq_cst);
}

/* False when another thread has taken the bit to wake this worker. */
static bool hide_parked(gbx_sched *sched, uint32_t worker) {
    uint64_t bit = UINT64_C(1) << worker % 64;
    return atomic_fetch_and_explicit(&sched->parked[worker / 64], ~bit, memory_order_seq_cst) & bit;
}

bool gbx_sched_is_parked(gbx_sched *sched, uint32_t worker) {
    return atomic_load_explicit(&sched->parked[worker / 64], memory_order_seq_cst) >> worker % 64 &
           1;
}

/*
 * Leaves the count of workers awake; true when the worker must continue after all. It leaves and
 * then looks for work; others push work and then look at the count: at least one of the two sees
 * the other.
 */
static bool is_needed_after_all(gbx_sched *sched, uint32_t worker) {
    gbx_sched_park(sched, worker);
    if (atomic_fetch_sub_explicit(&sched->active, 1, memory_order_seq_cst) == 1) {
        if (gbx_sched_end(sched))
            return false;
        /* A worker that left before may be back, and have counted and claimed this one: uncounts
         * it. */
        if (!hide_parked(sched, worker)) {
            atomic_fetch_sub_explicit(&sched->active, 1, memory_order_seq_cst);
            atomic_fetch_sub_explicit(&sched->coming, 1, memory_order_seq_cst);
        }
        return true;
    }
    /* A dispatch of a gang gets a worker beyond the limit. */
    uint32_t limit = gbx_ready_queue_is_empty(&sched->assigned)
                         ? atomic_load_explicit(&sched->limit, memory_order_seq_cst)
                         : atomic_load_explicit(&sched->worker_count, memory_order_relaxed);
    if (!gbx_sched_has_work(sched))
        return false;
    /* The thread that took the bit has counted this worker. It must never be counted twice: a gang
     * would believe that all workers are awake. */
    if (!hide_parked(sched, worker)) {
        atomic_fetch_sub_explicit(&sched->coming, 1, memory_order_seq_cst);
        return true;
    }
    if (count_up(sched, limit))
        return true;
    gbx_sched_park(sched, worker);
    return false;
}

/* No need to wait for work: there are too many workers, or no one else is active to make some. */
static bool is_superfluous(gbx_sched *sched) {
    uint32_t active = atomic_load_explicit(&sched->active, memory_order_relaxed);
    return gbx_sched_is_surplus(sched) ||
           active == atomic_load_explicit(&sched->idle, memory_order_relaxed) ||
           gbx_sched_is_cancelled(sched);
}

/*
 * Looks for work for a while; false when none came. Pauses between two looks: what a builder
 * submits meanwhile is then taken at once, and its cache lines travel once.
 */
static bool spin_for_work(gbx_sched *sched) {
    bool has_work = false;
    atomic_fetch_add_explicit(&sched->idle, 1, memory_order_relaxed);
    for (uint32_t looks = 0; looks < LOOKS && !is_superfluous(sched); ++looks) {
        has_work = gbx_sched_sees_work(sched);
        if (has_work)
            break;
        for (uint32_t i = 0; i < PAUSES_PER_LOOK; ++i)
            gbx_sched_relax();
        if (looks % LOOKS_PER_YIELD == LOOKS_PER_YIELD - 1)
            sched_yield();
    }
    atomic_fetch_sub_explicit(&sched->idle, 1, memory_order_relaxed);
    return has_work;
}

__attribute__((noinline, cold)) static void run_timed(gbx_sched *sched,
                                                      gbx_sched_dispatch *dispatch) {
    const gbx_sched_machine *machine = &sched->config.machine;
    const gbx_probe *probe = gbx_sched_probe(sched);
    gbx_sched_times *times = &sched->times[dispatch->core_id];
    atomic_store_explicit(&times->end_ticks, 0, memory_order_relaxed);
    atomic_store_explicit(&times->start_ticks, probe->ticks(), memory_order_release);
    machine->run(machine->context, dispatch);
    atomic_store_explicit(&times->end_ticks, probe->ticks(), memory_order_relaxed);
}

/* Runs kernels as long as the next one can be taken at once. */
static void run_chain(gbx_sched_worker *worker) {
    gbx_sched *sched = worker->sched;
    const gbx_sched_machine *machine = &sched->config.machine;
    take_role(worker);
    gbx_sched_dispatch *dispatch = gbx_sched_take(worker);
    gbx_sched_free_role(sched, worker->thread);
    while (dispatch) {
        if (gbx_sched_probe(sched))
            run_timed(sched, dispatch);
        else
            machine->run(machine->context, dispatch);
        take_role(worker);
        gbx_sched_complete(worker, dispatch);
        dispatch = gbx_sched_take(worker);
        gbx_sched_free_role(sched, worker->thread);
    }
}

void gbx_sched_work(gbx_sched *sched, uint32_t worker_id) {
    gbx_sched_worker worker = {.sched = sched,
                               .id = worker_id,
                               .thread = worker_id % sched->config.thread_count,
                               .held_core = GBX_NO_FREE_CORE};
    atomic_fetch_sub_explicit(&sched->coming, 1, memory_order_seq_cst);
    do {
        do
            run_chain(&worker);
        while (spin_for_work(sched));
    } while (is_needed_after_all(sched, worker_id));
}
