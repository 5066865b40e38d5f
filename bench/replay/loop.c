/*
 * The bare loop. As many processes as processors share the tasks of a dump; each has its own global
 * memory at the address of the run. A process takes batches of tasks until none are left. Before
 * the clock counts, each process has run all tasks once, so that no page is new to it.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glassbox/tensor.h>

#include "base/clock.h"
#include "replay.h"

enum { MAX_WORKERS = 64, BATCH = 64, POISON = 0xa5, ROUND_LIMIT_S = 600, REFERENCE_ROUNDS = 3 };

typedef enum work_kind { WARM_UP, RESTORE_AND_CALL, CALL, COMPARE } work_kind;

/* What a worker does, for all tasks. */
typedef struct order {
    work_kind work;
    plan_functions functions;
} order;

/* What it answers when no tasks are left. */
typedef struct answer {
    uint64_t output_count;
    uint64_t different_count;
} answer;

/* In memory that all processes share. */
typedef struct shared {
    _Atomic uint64_t next_task; /* of the next batch */
    loop_figures figures;
} shared;

typedef struct loop {
    const plan *plan;
    shared *shared;
    unsigned rounds;
    unsigned worker_count;
    int sockets[MAX_WORKERS];
} loop;

typedef struct worker {
    const plan *plan;
    shared *shared;
    order order;
    answer answer;
    unsigned char *poison; /* as much as the largest tensor has */
    unsigned char *scratch;
    uint64_t args[GBX_ARG_SLOTS];
} worker;

/* --- one task --- */

static void put(const plan_argument *argument, const unsigned char *payload) {
    if (argument->address)
        memcpy((void *)(uintptr_t)argument->address, payload, argument->bytes);
    else
        gbx_tensor_scatter(&argument->tensor, payload, (void *)(uintptr_t)argument->tensor.data);
}

static void restore(const worker *w, const plan_task *task) {
    const plan_argument *arguments = &w->plan->arguments[task->first_argument];
    for (uint32_t i = 0; i < task->argument_count; ++i)
        if (arguments[i].before != NOWHERE)
            put(&arguments[i], w->plan->payload + arguments[i].before);
}

static void call(worker *w, const plan_task *task) {
    const plan_argument *arguments = &w->plan->arguments[task->first_argument];
    memset(w->args, 0, sizeof w->args);
    w->args[GBX_ARG_GLOBAL_CONTEXT] = (uint64_t)(uintptr_t)&w->plan->global;
    for (uint32_t i = 0; i < task->argument_count; ++i)
        w->args[arguments[i].slot] =
            arguments[i].is_tensor ? (uint64_t)(uintptr_t)&arguments[i].tensor : arguments[i].word;
    for (uint32_t i = 0; i < task->call_count; ++i) {
        const plan_call *one = &w->plan->calls[task->first_call + i];
        w->args[GBX_ARG_LOCAL_CONTEXT] = (uint64_t)(uintptr_t)&one->local;
        w->plan->kernels[one->kernel].entries[w->order.functions](w->args);
    }
}

/* Else a kernel that writes nothing could be right: another task has the same bytes as input. */
static void poison_outputs(const worker *w, const plan_task *task) {
    const plan_argument *arguments = &w->plan->arguments[task->first_argument];
    for (uint32_t i = 0; i < task->argument_count; ++i)
        if (arguments[i].after != NOWHERE)
            put(&arguments[i], w->poison);
}

static void compare_outputs(worker *w, const plan_task *task) {
    const plan_argument *arguments = &w->plan->arguments[task->first_argument];
    for (uint32_t i = 0; i < task->argument_count; ++i) {
        const plan_argument *a = &arguments[i];
        if (a->after == NOWHERE)
            continue;
        gbx_tensor_gather(&a->tensor, (const void *)(uintptr_t)a->tensor.data, w->scratch);
        w->answer.output_count++;
        w->answer.different_count += memcmp(w->scratch, w->plan->payload + a->after, a->bytes) != 0;
    }
}

static void run_task(worker *w, const plan_task *task) {
    if (w->order.work == COMPARE)
        poison_outputs(w, task);
    if (w->order.work != CALL)
        restore(w, task);
    call(w, task);
    if (w->order.work == COMPARE)
        compare_outputs(w, task);
}

/* --- a worker --- */

static void run_tasks(worker *w) {
    _Atomic uint64_t own = 0;
    _Atomic uint64_t *next = w->order.work == WARM_UP ? &own : &w->shared->next_task;
    const uint64_t count = w->plan->task_count;
    for (;;) {
        uint64_t first = atomic_fetch_add_explicit(next, BATCH, memory_order_relaxed);
        uint64_t end = first + BATCH < count ? first + BATCH : count;
        for (uint64_t i = first; i < end; ++i)
            run_task(w, &w->plan->tasks[i]);
        if (end == count)
            return;
    }
}

static bool map_memory(const plan *p) {
    void *wanted = (void *)(uintptr_t)p->global.gm_base;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    void *mapped = mmap(wanted, p->global.gm_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (mapped == wanted)
        return true;
    fprintf(stderr, "bench_replay: cannot map global memory at %p\n", wanted);
    return false;
}

static void serve(const loop *l, int socket) {
    worker w = {.plan = l->plan, .shared = l->shared};
    w.poison = malloc(l->plan->largest_bytes + 1);
    w.scratch = malloc(l->plan->largest_bytes + 1);
    if (!w.poison || !w.scratch || !map_memory(l->plan))
        _exit(1);
    memset(w.poison, POISON, l->plan->largest_bytes);
    while (read(socket, &w.order, sizeof w.order) == sizeof w.order) {
        w.answer = (answer){0};
        alarm(ROUND_LIMIT_S); /* blocks of a task that wait for each other would never end */
        run_tasks(&w);
        alarm(0);
        if (write(socket, &w.answer, sizeof w.answer) != sizeof w.answer)
            _exit(1);
    }
    _exit(0);
}

static bool start_worker(loop *l) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        begin_child();
        close(pair[0]);
        serve(l, pair[1]);
    }
    close(pair[1]);
    l->sockets[l->worker_count++] = pair[0];
    return pid > 0;
}

static bool start_workers(loop *l) {
    cpu_set_t allowed;
    int count = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
    for (int i = 0; i < count && i < MAX_WORKERS; ++i)
        if (!start_worker(l)) {
            fprintf(stderr, "bench_replay: cannot start a process: %s\n", strerror(errno));
            return false;
        }
    return true;
}

/* --- rounds --- */

/* From the first order to the last answer. */
static bool run_round(loop *l, order what, double *out_seconds, answer *out_sum) {
    *out_sum = (answer){0};
    atomic_store_explicit(&l->shared->next_task, 0, memory_order_relaxed); /* the order follows */
    int64_t start_ns = gbx_clock_ns();
    for (unsigned i = 0; i < l->worker_count; ++i)
        if (write(l->sockets[i], &what, sizeof what) != sizeof what)
            return false;
    for (unsigned i = 0; i < l->worker_count; ++i) {
        answer one;
        if (read(l->sockets[i], &one, sizeof one) != sizeof one) {
            fprintf(stderr, "bench_replay: a process of the loop ended, or took longer than %d s\n",
                    ROUND_LIMIT_S);
            return false;
        }
        out_sum->output_count += one.output_count;
        out_sum->different_count += one.different_count;
    }
    *out_seconds = (double)(gbx_clock_ns() - start_ns) * 1e-9;
    return true;
}

static int compare_numbers(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

double median(double *values, unsigned count) {
    qsort(values, count, sizeof *values, compare_numbers);
    return values[count / 2];
}

static bool run_rounds(loop *l, order what, unsigned rounds, pace *out_pace) {
    double seconds[MAX_ROUNDS];
    answer ignored;
    for (unsigned i = 0; i < rounds; ++i)
        if (!run_round(l, what, &seconds[i], &ignored))
            return false;
    out_pace->median_s = median(seconds, rounds);
    out_pace->best_s = seconds[0];
    return true;
}

/* Calls alone come last: without restored inputs, they work on what the last rounds left. */
static bool run_kernels(loop *l, loop_figures *figures) {
    double ignored_s;
    answer ignored, compared;
    if (!run_round(l, (order){WARM_UP, KERNELS}, &ignored_s, &ignored) ||
        !run_rounds(l, (order){RESTORE_AND_CALL, KERNELS}, l->rounds, &figures->loop) ||
        !run_round(l, (order){COMPARE, KERNELS}, &ignored_s, &compared) ||
        !run_rounds(l, (order){CALL, KERNELS}, l->rounds, &figures->calls))
        return false;
    figures->output_count = compared.output_count;
    figures->different_count = compared.different_count;
    return true;
}

/* References are slow: fewer rounds. The pages are known from the kernels. */
static bool run_references(loop *l, loop_figures *figures) {
    unsigned rounds = l->rounds < REFERENCE_ROUNDS ? l->rounds : REFERENCE_ROUNDS;
    return run_rounds(l, (order){RESTORE_AND_CALL, REFERENCES}, rounds, &figures->references);
}

static bool run_all(loop *l) {
    loop_figures *figures = &l->shared->figures;
    return run_kernels(l, figures) && (!figures->has_references || run_references(l, figures));
}

/* --- the process that has the plan --- */

static void describe(const loop *l) {
    const plan *p = l->plan;
    loop_figures *figures = &l->shared->figures;
    memcpy(figures->scene, p->scene, sizeof figures->scene);
    memcpy(figures->case_name, p->case_name, sizeof figures->case_name);
    figures->task_count = p->task_count;
    figures->call_count = p->call_count;
    figures->middle_task = p->tasks[p->task_count / 2].number;
    figures->restored_bytes = p->restored_bytes;
    figures->has_references = p->has_references;
    figures->processes = l->worker_count;
}

static bool plan_and_run(const char *directory, unsigned rounds, bool wants_references,
                         shared *out_shared) {
    static plan p;
    static loop l;
    gbx_status status = make_plan(directory, wants_references, &p);
    if (status) {
        fprintf(stderr, "bench_replay: %s: %s\n", directory, gbx_status_message(status));
        gbx_status_free(status);
        return false;
    }
    l = (loop){.plan = &p, .shared = out_shared, .rounds = rounds};
    if (!start_workers(&l))
        return false;
    describe(&l);
    return run_all(&l);
}

bool measure_loop(const char *directory, unsigned rounds, bool wants_references,
                  loop_figures *out_figures) {
    int status = 0;
    shared *both =
        mmap(NULL, sizeof *both, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (both == MAP_FAILED)
        return false;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        begin_child();
        signal(SIGPIPE, SIG_IGN); /* a worker that ended is an answer, too */
        _exit(plan_and_run(directory, rounds, wants_references, both) ? 0 : 1);
    }
    bool is_done = pid > 0 && wait_for(pid, &status, NULL);
    is_done = is_done && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    *out_figures = both->figures;
    munmap(both, sizeof *both);
    return is_done;
}
