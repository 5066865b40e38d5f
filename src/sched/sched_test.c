/*
 * The scheduler without a chip: threads of this program are its workers, and a kernel does what the
 * table of expectations says. Every run is checked for order, cores, gangs and what probes see.
 */
#include "sched/sched.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "checks.h"

enum {
    MAX_TASKS = 8192,
    MAX_INPUTS = 4,
    MAX_WORDS = 12,
    MAX_BLOCK_NUM = 48,
    GLOBAL_CONTEXT = 0x5150,
    PATIENCE_S = 600,
};

/* What is expected of a task, and what was seen of it. */
typedef struct expectation {
    gbx_task_kernels kernels;
    uint32_t dispatch_count;
    uint32_t inputs[MAX_INPUTS];
    uint32_t input_count;
    bool is_meeting;    /* all of its dispatches wait for each other */
    bool is_cancelling; /* its kernel cancels the run */
    uint32_t delay;     /* of a kernel, in spins */
    uint32_t word_count;
    _Atomic uint32_t met;
    _Atomic uint32_t started;
    _Atomic uint32_t ended;
    _Atomic uint32_t runs[MAX_BLOCK_NUM][GBX_SUBTASK_COUNT];
    _Atomic uint32_t block_of[MAX_BLOCK_NUM]; /* of the chip, plus 1 */
    _Atomic uint32_t met_in_block[MAX_BLOCK_NUM];
    _Atomic uint32_t announced;  /* before_dispatch */
    _Atomic uint32_t dispatched; /* at_dispatch */
    _Atomic uint32_t timed;      /* after_dispatch */
    _Atomic uint32_t completed;  /* after_completion */
} expectation;

typedef struct slot {
    gbx_sched_edge edges[MAX_INPUTS];
    _Alignas(64) char arguments[sizeof(gbx_task_arguments) + MAX_WORDS * sizeof(uint64_t)];
} slot;

typedef struct machine {
    gbx_sched sched;
    uint32_t worker_count;
    pthread_t threads[GBX_SCHED_MAX_CORES];
    gbx_doorbell bells[GBX_SCHED_MAX_CORES];
    _Atomic uint32_t is_stopping;
    uint64_t args[GBX_SCHED_MAX_CORES][GBX_ARG_SLOTS];
    gbx_local_context locals[GBX_SCHED_MAX_CORES];
    _Atomic uint32_t is_busy[GBX_SCHED_MAX_CORES];
    _Atomic uint64_t kernel_start[GBX_SCHED_MAX_CORES]; /* what the clock said inside the kernel */
    _Atomic uint64_t kernel_end[GBX_SCHED_MAX_CORES];
    _Atomic uint32_t thread_in_use[GBX_SCHED_MAX_THREADS];
    _Atomic uint32_t thread_ends[GBX_SCHED_MAX_THREADS];
    _Atomic uint32_t finish_count;
    gbx_doorbell finish_bell;
    gbx_probe probe;
    gbx_sched_config config;
    uint32_t capacity;
    gbx_sched_task tasks[MAX_TASKS];
    gbx_ready_cell cells[GBX_CLASS_COUNT * MAX_TASKS];
    slot slots[MAX_TASKS];
    expectation expected[MAX_TASKS];
    uint32_t task_count;
} machine;

/* --- what goes wrong on any thread --- */

static _Atomic(const char *) first_wrong;
static _Atomic uint64_t wrong_task;
static uint64_t seed;

static void wrong(const char *what, uint64_t task) {
    const char *none = NULL;
    if (atomic_compare_exchange_strong(&first_wrong, &none, what))
        atomic_store(&wrong_task, task);
}

static void check_that(bool is_right, const char *what, uint64_t task) {
    if (!is_right)
        wrong(what, task);
}

static void assert_nothing_wrong(void) {
    const char *what = atomic_load(&first_wrong);
    if (what)
        fail_msg("task %" PRIu64 ": %s (GLASSBOX_SEED=%" PRIu64 ")", atomic_load(&wrong_task), what,
                 seed);
}

/* A run that hangs ends the test: its threads still use it. */
static void give_up(machine *m, const char *what) {
    gbx_sched *sched = &m->sched;
    fprintf(stderr,
            "%s: %u tasks, active %x, limit %u, parked %" PRIx64 " %" PRIx64 ", free %x %x %x, "
            "reserved %x, gang %d waiting %u spreading %u, assigned %d; GLASSBOX_SEED=%" PRIu64
            "\n",
            what, m->task_count, atomic_load(&sched->active), atomic_load(&sched->limit),
            atomic_load(&sched->parked[0]), atomic_load(&sched->parked[1]),
            atomic_load(&sched->cores.free[0]), atomic_load(&sched->cores.free[1]),
            atomic_load(&sched->cores.free[2]), atomic_load(&sched->reserved),
            sched->gang ? (int)sched->gang->id : -1, atomic_load(&sched->is_gang_waiting),
            atomic_load(&sched->is_spreading), !gbx_ready_queue_is_empty(&sched->assigned), seed);
    for (uint32_t i = 0; i < m->task_count; ++i)
        if (atomic_load(&m->expected[i].ended) < m->expected[i].dispatch_count)
            fprintf(stderr, " task %u: %u of %u began, %u ended\n", i,
                    atomic_load(&m->expected[i].started), m->expected[i].dispatch_count,
                    atomic_load(&m->expected[i].ended));
    abort();
}

/* --- random --- */

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state * UINT64_C(2685821657736338717) >> 33) % n);
}

/* How many rounds of a test fit its share of the time. */
static uint32_t rounds(uint32_t plain) {
    if (getenv("GLASSBOX_STRESS"))
        return plain * 50;
    return is_thread_sanitized() ? (plain + 3) / 4 : plain;
}

/* --- kernels --- */

static void spend(uint32_t delay) {
    if (delay % 16 == 1)
        sched_yield();
    for (uint32_t i = 0; i < delay; ++i)
        __asm__ volatile("");
}

static _Atomic uint64_t run_number;

static uint64_t word_of(uint64_t task, uint32_t index) {
    return atomic_load(&run_number) << 32 | (task * 1000 + index + 7);
}

static void check_arguments(const gbx_sched_dispatch *d, const expectation *e) {
    uint64_t id = d->task->id;
    for (uint32_t i = 0; i < e->word_count; ++i)
        check_that(d->args[i] == word_of(id, i), "a word is not the one it was built with", id);
    const gbx_local_context *local = gbx_local(d->args);
    check_that(local == d->local && local->block_idx == d->block_idx &&
                   local->block_num == e->kernels.block_num && local->subtask == d->subtask &&
                   local->core_id == d->core_id,
               "the local context is not that of the dispatch", id);
    check_that(d->args[GBX_ARG_GLOBAL_CONTEXT] == GLOBAL_CONTEXT, "the global context", id);
    check_that(d->func_id == e->kernels.func_ids[d->subtask], "another kernel", id);
}

static void check_order(machine *m, uint64_t id) {
    expectation *e = &m->expected[id];
    for (uint32_t i = 0; i < e->input_count; ++i) {
        expectation *input = &m->expected[e->inputs[i]];
        check_that(atomic_load(&input->ended) == input->dispatch_count,
                   "it runs before a predecessor has ended", id);
        check_that(!m->config.probe || atomic_load(&input->completed) == 1,
                   "it runs before the probe saw a predecessor's end", id);
    }
    check_that(!m->config.probe || atomic_load(&e->announced) == 1,
               "before_dispatch was not called", id);
}

static bool is_mix(const gbx_task_kernels *kernels) {
    uint32_t count = 0;
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s)
        count += kernels->func_ids[s] != GBX_NO_KERNEL;
    return count > 1;
}

static void meet(machine *m, _Atomic uint32_t *met, uint32_t count) {
    int64_t begin = gbx_clock_ns();
    atomic_fetch_add(met, 1);
    while (atomic_load(met) < count) {
        sched_yield();
        if (gbx_clock_ns() - begin > (int64_t)PATIENCE_S * 1000000000)
            give_up(m, "dispatches of a gang never met");
    }
}

static void check_place(machine *m, const gbx_sched_dispatch *d, expectation *e) {
    uint32_t place = d->core_id % GBX_SUBTASK_COUNT;
    if (!is_mix(&e->kernels)) {
        check_that((place == GBX_SUBTASK_AIC) == (d->subtask == GBX_SUBTASK_AIC),
                   "the core is not of the kernel's type", d->task->id);
        return;
    }
    uint32_t none = 0;
    uint32_t block = d->core_id / GBX_SUBTASK_COUNT + 1;
    check_that(place == d->subtask, "a subtask of a mix is not in its place", d->task->id);
    if (!atomic_compare_exchange_strong(&e->block_of[d->block_idx], &none, block))
        check_that(none == block, "a mix is spread over two blocks", d->task->id);
    meet(m, &e->met_in_block[d->block_idx], e->dispatch_count / e->kernels.block_num);
}

/* No two readings are equal. */
static uint64_t ticks(void) {
    static _Atomic uint64_t clock;
    return atomic_fetch_add(&clock, 1) + 1;
}

static void run_kernel(void *context, const gbx_sched_dispatch *d) {
    machine *m = context;
    uint64_t id = d->task->id;
    expectation *e = &m->expected[id];
    atomic_store(&m->kernel_start[d->core_id], ticks());
    check_that(id < MAX_TASKS && d->block_idx < e->kernels.block_num, "no such dispatch", id);
    check_that(!atomic_exchange(&m->is_busy[d->core_id], 1), "a core runs two kernels", id);
    check_that(atomic_fetch_add(&e->runs[d->block_idx][d->subtask], 1) == 0, "it runs twice", id);
    atomic_fetch_add(&e->started, 1);
    check_order(m, id);
    check_arguments(d, e);
    check_place(m, d, e);
    if (e->is_meeting)
        meet(m, &e->met, e->dispatch_count);
    spend(e->delay);
    if (e->is_cancelling)
        gbx_sched_cancel(&m->sched);
    atomic_store(&m->is_busy[d->core_id], 0);
    atomic_fetch_add(&e->ended, 1);
    atomic_store(&m->kernel_end[d->core_id], ticks());
}

/* --- the probe --- */

static void enter_thread(machine *m, uint32_t thread, uint64_t task) {
    check_that(thread < m->config.thread_count, "there is no such AICPU thread", task);
    check_that(!atomic_exchange(&m->thread_in_use[thread], 1), "two callers are one thread", task);
}

static void leave_thread(machine *m, uint32_t thread) {
    atomic_store(&m->thread_in_use[thread], 0);
}

static void before_dispatch(void *context, uint32_t thread, const gbx_sched_task *task) {
    machine *m = context;
    expectation *e = &m->expected[task->id];
    enter_thread(m, thread, task->id);
    check_that(atomic_fetch_add(&e->announced, 1) == 0, "before_dispatch twice", task->id);
    check_that(atomic_load(&e->started) == 0 && atomic_load(&e->dispatched) == 0,
               "before_dispatch after a dispatch", task->id);
    check_order(m, task->id);
    spend(e->delay % 64);
    leave_thread(m, thread);
}

static void at_dispatch(void *context, uint32_t thread, const gbx_sched_dispatch *dispatch) {
    machine *m = context;
    expectation *e = &m->expected[dispatch->task->id];
    enter_thread(m, thread, dispatch->task->id);
    check_that(atomic_fetch_add(&e->dispatched, 1) < e->dispatch_count, "too many dispatches",
               dispatch->task->id);
    check_that(atomic_load(&e->announced) == 1, "a dispatch before before_dispatch",
               dispatch->task->id);
    check_that(atomic_load(&e->runs[dispatch->block_idx][dispatch->subtask]) == 0,
               "at_dispatch after its kernel", dispatch->task->id);
    check_arguments(dispatch, e);
    leave_thread(m, thread);
}

static void after_dispatch(void *context, uint32_t thread, const gbx_sched_dispatch *dispatch,
                           gbx_sched_span span) {
    machine *m = context;
    uint64_t id = dispatch->task->id;
    expectation *e = &m->expected[id];
    uint64_t kernel_start = atomic_load(&m->kernel_start[dispatch->core_id]);
    uint64_t kernel_end = atomic_load(&m->kernel_end[dispatch->core_id]);
    enter_thread(m, thread, id);
    check_that(atomic_load(&e->runs[dispatch->block_idx][dispatch->subtask]) == 1,
               "after_dispatch before its kernel", id);
    check_that(span.start_ticks > 0 && span.start_ticks < kernel_start &&
                   kernel_start < kernel_end && kernel_end < span.end_ticks,
               "the times are not those of its kernel", id);
    check_that(atomic_load(&e->completed) == 0, "after_dispatch after after_completion", id);
    check_that(atomic_fetch_add(&e->timed, 1) < e->dispatch_count, "after_dispatch twice", id);
    check_arguments(dispatch, e);
    leave_thread(m, thread);
}

static void after_completion(void *context, uint32_t thread, const gbx_sched_task *task) {
    machine *m = context;
    expectation *e = &m->expected[task->id];
    enter_thread(m, thread, task->id);
    check_that(atomic_load(&e->ended) == e->dispatch_count, "completed before the last end",
               task->id);
    check_that(atomic_load(&e->dispatched) == e->dispatch_count,
               "at_dispatch was not called for all", task->id);
    check_that(atomic_load(&e->timed) == e->dispatch_count, "dispatches not timed", task->id);
    spend(e->delay % 32);
    check_that(atomic_fetch_add(&e->completed, 1) == 0, "after_completion twice", task->id);
    leave_thread(m, thread);
}

static void end_of_thread(void *context, uint32_t thread) {
    machine *m = context;
    enter_thread(m, thread, UINT64_MAX);
    atomic_fetch_add(&m->thread_ends[thread], 1);
    leave_thread(m, thread);
}

static uint64_t no_progress(void *context) {
    (void)context;
    return 0;
}

static void on_fault(void *context, uint32_t thread, const gbx_sched_dispatch *dispatch) {
    (void)context;
    (void)thread;
    wrong("a fault", dispatch->task->id);
}

/* --- the machine --- */

static void wake(void *context, uint32_t worker) {
    machine *m = context;
    gbx_doorbell_ring(&m->bells[worker]);
}

static void finish(void *context) {
    machine *m = context;
    atomic_fetch_add(&m->finish_count, 1);
    gbx_doorbell_ring(&m->finish_bell);
}

typedef struct worker_start {
    machine *m;
    uint32_t id;
} worker_start;

static void *worker_main(void *argument) {
    worker_start start = *(worker_start *)argument;
    free(argument);
    machine *m = start.m;
    for (;;) {
        uint32_t seen = gbx_doorbell_read(&m->bells[start.id]);
        if (!gbx_sched_is_parked(&m->sched, start.id))
            gbx_sched_work(&m->sched, start.id);
        else if (atomic_load(&m->is_stopping))
            return NULL;
        else
            gbx_doorbell_wait(&m->bells[start.id], seen, GBX_FOREVER);
    }
}

static machine *create_machine(uint32_t blocks, uint32_t threads, uint32_t processors,
                               bool has_probe) {
    machine *m = aligned_alloc(64, (sizeof *m + 63) & ~(size_t)63);
    assert_non_null(m);
    memset(m, 0, sizeof *m);
    m->probe = (gbx_probe){.context = m,
                           .ticks = ticks,
                           .before_dispatch = before_dispatch,
                           .at_dispatch = at_dispatch,
                           .after_dispatch = after_dispatch,
                           .after_completion = after_completion,
                           .end_of_thread = end_of_thread,
                           .on_fault = on_fault,
                           .progress = no_progress};
    m->config = (gbx_sched_config){.machine = {m, run_kernel, wake, finish},
                                   .probe = has_probe ? &m->probe : NULL,
                                   .global_context = GLOBAL_CONTEXT,
                                   .blocks = blocks,
                                   .thread_count = threads,
                                   .processor_count = processors,
                                   .tasks = m->tasks,
                                   .cells = m->cells};
    m->worker_count = blocks * GBX_SUBTASK_COUNT;
    for (uint32_t i = 0; i < m->worker_count; ++i) {
        worker_start *start = malloc(sizeof *start);
        assert_non_null(start);
        *start = (worker_start){m, i};
        m->sched.dispatches[i].args = m->args[i];
        m->sched.dispatches[i].local = &m->locals[i];
        gbx_sched_park(&m->sched, i);
        assert_int_equal(pthread_create(&m->threads[i], NULL, worker_main, start), 0);
    }
    return m;
}

static void destroy_machine(machine *m) {
    atomic_store(&m->is_stopping, 1);
    for (uint32_t i = 0; i < m->worker_count; ++i)
        gbx_doorbell_ring(&m->bells[i]);
    for (uint32_t i = 0; i < m->worker_count; ++i)
        pthread_join(m->threads[i], NULL);
    free(m);
}

/* --- a run --- */

static void begin(machine *m, uint32_t capacity, bool is_gated) {
    m->capacity = m->config.task_capacity = capacity;
    m->config.is_gated = is_gated;
    m->task_count = 0;
    atomic_fetch_add(&run_number, 1);
    memset(m->cells, 0, sizeof m->cells[0] * capacity * GBX_CLASS_COUNT);
    for (uint32_t t = 0; t < GBX_SCHED_MAX_THREADS; ++t)
        atomic_store(&m->thread_ends[t], 0);
    atomic_store(&m->finish_count, 0);
    gbx_sched_begin(&m->sched, &m->config);
}

static expectation *expect(machine *m, gbx_task_kernels kernels) {
    expectation *e = &m->expected[m->task_count];
    memset(e, 0, sizeof *e);
    e->kernels = kernels;
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s)
        e->dispatch_count += (kernels.func_ids[s] != GBX_NO_KERNEL) * kernels.block_num;
    return e;
}

static void depend_on(expectation *e, uint32_t input) {
    for (uint32_t i = 0; i < e->input_count; ++i)
        if (e->inputs[i] == input)
            return;
    if (e->input_count < MAX_INPUTS)
        e->inputs[e->input_count++] = input;
}

static gbx_sched_task *task_of(machine *m, uint32_t id) {
    return &m->tasks[id & (m->capacity - 1)];
}

/* Builds the next task from its expectation, in a place whose last task has completed. */
static bool submit(machine *m) {
    uint32_t id = m->task_count;
    const expectation *e = &m->expected[id];
    gbx_sched_task *task = task_of(m, id);
    slot *place = &m->slots[id & (m->capacity - 1)];
    if (id >= m->capacity && !gbx_sched_await(&m->sched, task))
        return false;
    gbx_task_arguments *arguments = (gbx_task_arguments *)place->arguments;
    arguments->word_count = e->word_count;
    for (uint32_t i = 0; i < e->word_count; ++i)
        arguments->words[i] = word_of(id, i);
    gbx_sched_prepare(task, id, &e->kernels, arguments);
    ++m->task_count;
    for (uint32_t i = 0; i < e->input_count; ++i) {
        place->edges[i] = (gbx_sched_edge){.successor = task, .predecessor = e->inputs[i]};
        if (e->inputs[i] + m->capacity > id)
            gbx_sched_link(task_of(m, e->inputs[i]), &place->edges[i]);
    }
    gbx_sched_release(&m->sched, task);
    return true;
}

static void await_finish(machine *m) {
    for (;;) {
        uint32_t seen = gbx_doorbell_read(&m->finish_bell);
        if (atomic_load(&m->finish_count))
            break;
        if (!gbx_doorbell_wait(&m->finish_bell, seen, (int64_t)PATIENCE_S * 1000000000))
            give_up(m, "the run never ended");
    }
    check_that(atomic_load(&m->finish_count) == 1, "finish twice", UINT64_MAX);
    for (uint32_t t = 0; t < GBX_SCHED_MAX_THREADS; ++t)
        check_that(atomic_load(&m->thread_ends[t]) ==
                       (m->config.probe && t < m->config.thread_count),
                   "end_of_thread is not once a thread", UINT64_MAX);
}

/* Checks all tasks; after a cancel only those that have begun. */
static void check_end(machine *m, bool is_cancelled) {
    uint64_t dispatches = 0, completed = 0;
    for (uint32_t i = 0; i < m->task_count; ++i) {
        expectation *e = &m->expected[i];
        uint32_t ended = atomic_load(&e->ended);
        check_that(ended == e->dispatch_count || (is_cancelled && ended == 0), "it did not run", i);
        check_that(gbx_sched_task_is_completed(task_of(m, i)) || is_cancelled, "not completed", i);
        check_that(atomic_load(&e->completed) == (m->config.probe && ended > 0), "the probe", i);
        dispatches += ended;
        completed += ended > 0;
    }
    check_that(gbx_sched_completed(&m->sched) == completed, "count of tasks", UINT64_MAX);
    check_that(gbx_sched_dispatched(&m->sched) == dispatches, "count of dispatches", UINT64_MAX);
    assert_nothing_wrong();
}

static void end(machine *m) {
    gbx_sched_seal(&m->sched);
    await_finish(m);
    check_end(m, false);
}

/* --- random tasks --- */

static gbx_task_kernels random_kernels(const machine *m) {
    static const uint8_t mixes[] = {3, 5, 6, 7};
    uint32_t kind = random_below(10);
    uint32_t subtasks = kind < 4   ? 1
                        : kind < 8 ? (random_below(8) ? 2 : 4)
                                   : mixes[random_below(4)];
    gbx_task_kernels kernels = {.block_num = 1};
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s)
        kernels.func_ids[s] = subtasks >> s & 1 ? 1 + random_below(100) : GBX_NO_KERNEL;
    if (random_below(6) == 0)
        kernels.block_num = 1 + random_below(2 * m->config.blocks < 12 ? 2 * m->config.blocks : 12);
    return kernels;
}

static void expect_random(machine *m, uint32_t reach) {
    gbx_task_kernels kernels = random_kernels(m);
    expectation *e = expect(m, kernels);
    e->is_meeting = kernels.block_num <= m->config.blocks && random_below(2);
    e->word_count = 1 + random_below(MAX_WORDS);
    e->delay = random_below(4) ? random_below(200) : random_below(4000);
    uint32_t near = m->task_count < reach ? m->task_count : reach;
    for (uint32_t i = random_below(MAX_INPUTS + 1); near && i > 0; --i)
        depend_on(e, m->task_count - 1 - random_below(near));
}

static void run_random_graph(machine *m) {
    static const uint32_t capacities[] = {1, 2, 4, 8, 64, 1024};
    uint32_t count = random_below(150);
    uint32_t reach = 1 + random_below(40);
    bool is_gated = random_below(3) == 0;
    begin(m, is_gated ? 1024 : capacities[random_below(6)], is_gated);
    while (m->task_count < count) {
        expect_random(m, reach);
        assert_true(submit(m));
        if (!is_gated && random_below(40) == 0)
            assert_true(gbx_sched_await(&m->sched, task_of(m, m->task_count - 1)));
    }
    end(m);
}

/* --- tests --- */

/* Calls `visit` with machines that differ in everything a chip can differ in. */
static void over_machines(uint32_t count, void (*visit)(machine *m)) {
    static const uint32_t blocks[] = {1, 2, 3, 8, 24};
    static const uint32_t threads[] = {1, 2, 4, 8};
    static const uint32_t processors[] = {1, 2, 3, 8};
    for (uint32_t i = 0; i < 10; ++i) {
        machine *m = create_machine(blocks[i % 5], threads[random_below(4)],
                                    processors[random_below(4)], i >= 5);
        for (uint32_t k = 0; k < rounds(count); ++k) {
            seed = random_state;
            visit(m);
        }
        destroy_machine(m);
    }
}

static void test_random_graphs(void **state) {
    (void)state;
    over_machines(70, run_random_graph);
}

static void run_nothing(machine *m) {
    begin(m, 1, random_below(2));
    end(m);
}

static void test_no_tasks(void **state) {
    (void)state;
    over_machines(100, run_nothing);
}

/* One gang after the other, each on all cores, whose kernels all wait for each other: each gang
 * needs every worker. */
static void run_full_gangs(machine *m) {
    begin(m, 4, false);
    while (m->task_count < 40) {
        gbx_task_kernels kernels = gbx_spmd(gbx_mix(1, 2, 3), m->config.blocks);
        expect(m, kernels)->is_meeting = true;
        submit(m);
        if (random_below(4) == 0)
            spend(random_below(20000));
    }
    end(m);
}

static void test_gangs_of_all_cores(void **state) {
    (void)state;
    over_machines(8, run_full_gangs);
}

/* Plain tasks keep coming until the gang has run: they do not starve it. */
static void run_beside_stream(machine *m) {
    begin(m, 64, false);
    uint32_t gang = 0;
    bool has_gang = false;
    while (m->task_count < MAX_TASKS) {
        if (!has_gang && m->task_count == 50) {
            gang = m->task_count;
            expect(m, gbx_spmd(gbx_mix(1, 2, 3), m->config.blocks))->is_meeting = true;
            has_gang = true;
        } else {
            expect(m, random_below(2) ? gbx_aic(1) : gbx_aiv(2))->delay = random_below(300);
        }
        submit(m);
        if (has_gang && atomic_load(&m->expected[gang].ended))
            break;
    }
    check_that(m->task_count < MAX_TASKS, "plain tasks starve a gang", gang);
    end(m);
}

static void test_streams_do_not_starve_gangs(void **state) {
    (void)state;
    over_machines(5, run_beside_stream);
}

/* Gangs of different shapes that need each other's cores, and whose kernels wait for each other. */
static void run_gangs_of_different_shapes(machine *m) {
    begin(m, 64, random_below(2));
    while (m->task_count < 60) {
        uint32_t shape = random_below(4);
        gbx_task_kernels kernels = shape == 0   ? gbx_aic(1)
                                   : shape == 1 ? gbx_aiv(2)
                                   : shape == 2 ? gbx_mix(GBX_NO_KERNEL, 3, 4)
                                                : gbx_mix(1, GBX_NO_KERNEL, 4);
        expectation *e = expect(m, gbx_spmd(kernels, m->config.blocks));
        e->is_meeting = true;
        e->delay = random_below(300);
        submit(m);
    }
    end(m);
}

static void test_gangs_of_different_shapes(void **state) {
    (void)state;
    over_machines(4, run_gangs_of_different_shapes);
}

static void run_cancelled(machine *m) {
    uint32_t count = 20 + random_below(100);
    uint32_t cancelling = random_below(count);
    begin(m, random_below(2) ? 8 : 1024, false);
    bool goes_on = true;
    while (goes_on && m->task_count < count) {
        expect_random(m, 10);
        m->expected[m->task_count].is_cancelling = m->task_count == cancelling;
        goes_on = submit(m) && !gbx_sched_is_cancelled(&m->sched);
    }
    if (m->task_count > cancelling)
        check_that(!gbx_sched_await(&m->sched, task_of(m, m->task_count - 1)) ||
                       gbx_sched_task_is_completed(task_of(m, m->task_count - 1)),
                   "await returned before the task completed", m->task_count - 1);
    gbx_sched_seal(&m->sched);
    await_finish(m);
    check_end(m, gbx_sched_is_cancelled(&m->sched));
}

static void test_cancel_in_the_middle(void **state) {
    (void)state;
    over_machines(40, run_cancelled);
}

/* Nothing runs before the seal; everything runs after it. */
static void test_gated_start(void **state) {
    (void)state;
    machine *m = create_machine(2, 2, 2, true);
    begin(m, 64, true);
    for (uint32_t i = 0; i < 50; ++i) {
        expect_random(m, 10);
        submit(m);
    }
    struct timespec moment = {.tv_nsec = 20000000};
    nanosleep(&moment, NULL);
    for (uint32_t i = 0; i < m->task_count; ++i)
        assert_int_equal(atomic_load(&m->expected[i].started), 0);
    assert_int_equal(gbx_sched_awake(&m->sched), 0);
    end(m);
    destroy_machine(m);
}

/* A chain: each task starts when its predecessor has completed, and await sees the last. */
static void test_await_of_a_chain(void **state) {
    (void)state;
    machine *m = create_machine(1, 1, 2, false);
    for (uint32_t k = 0; k < rounds(200); ++k) {
        begin(m, 64, false);
        for (uint32_t i = 0; i < 20; ++i) {
            expectation *e = expect(m, i % 2 ? gbx_aic(1) : gbx_aiv(1));
            if (i > 0)
                depend_on(e, i - 1);
            submit(m);
            if (i % 7 == 6)
                assert_true(gbx_sched_await(&m->sched, task_of(m, i)));
            if (i % 7 == 6)
                assert_int_equal(atomic_load(&m->expected[i].ended), 1);
        }
        end(m);
    }
    destroy_machine(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_tasks),
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_gangs_of_all_cores),
        cmocka_unit_test(test_streams_do_not_starve_gangs),
        cmocka_unit_test(test_gangs_of_different_shapes),
        cmocka_unit_test(test_cancel_in_the_middle),
        cmocka_unit_test(test_gated_start),
        cmocka_unit_test(test_await_of_a_chain),
    };
    const char *given = getenv("GLASSBOX_SEED");
    random_state = given ? strtoull(given, NULL, 0) | 1 : (uint64_t)gbx_clock_ns() | 1;
    return cmocka_run_group_tests_name("sched", tests, NULL, NULL);
}
