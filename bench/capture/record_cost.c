/*
 * The cost of a metadata record for the thread that captures it: the hooks of the device writer,
 * called for a task of 32 scalars, or for a dispatch, again and again, in memory of this process.
 * Another thread copies the lines out and gives the buffers back, as the host does, so that cache
 * lines travel.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "capture.h"
#include "dump/abi.h"
#include "dump/device/probe_source.h"

enum {
    BUFFERS = GBX_DEFAULT_DUMP_BUFFERS,
    BUFFER_BYTES = GBX_DUMP_BUFFER_LINES * GBX_DUMP_LINE_BYTES,
    ROUNDS = 41,
    RECORDS_A_ROUND = 68000,
    RECORDS_A_TASK = SCALARS_A_TASK + 2, /* the task and its end are records too */
    TASK_BYTES = 1024
};

/* What lies in global memory. */
typedef struct memory {
    gbx_dump_setup setup;
    gbx_dump_lane lane;
    gbx_dump_scalar_dtypes scalar_dtypes[GBX_MAX_KERNELS];
    _Alignas(4096) unsigned char buffers[BUFFERS][BUFFER_BYTES];
    _Alignas(4096) unsigned char arena[GBX_MIN_DUMP_ARENA_BYTES];
    _Alignas(64) unsigned char arguments[TASK_BYTES];
} memory;

typedef struct host {
    memory *device;
    uint64_t lines; /* copied so far */
    _Atomic bool is_stopping;
    unsigned char copy[BUFFER_BYTES];
} host;

static void *copy_lines(void *context) {
    host *h = context;
    gbx_dump_lane *lane = &h->device->lane;
    uint64_t item;
    for (;;) {
        bool is_last = atomic_load_explicit(&h->is_stopping, memory_order_acquire);
        if (gbx_spsc_try_pop(&lane->ready, lane->ready_slots, BUFFERS, &item)) {
            uint32_t buffer = gbx_dump_item_buffer(item);
            h->lines += gbx_dump_item_lines(item);
            memcpy(h->copy, h->device->buffers[buffer], sizeof h->copy);
            gbx_spsc_try_push(&lane->free, lane->free_slots, BUFFERS, buffer);
        } else if (is_last) {
            return NULL;
        } else {
            sched_yield();
        }
    }
}

static void set_up(memory *m) {
    gbx_dump_setup *setup = &m->setup;
    setup->magic = GBX_DUMP_MAGIC;
    setup->flags = GBX_DUMP_HAS_TENSORS;
    setup->level = GBX_DUMP_FULL;
    setup->lane_count = 1;
    setup->buffer_count = BUFFERS;
    setup->lanes = (uintptr_t)&m->lane;
    setup->buffers = (uintptr_t)m->buffers;
    setup->arenas = (uintptr_t)m->arena;
    setup->arena_bytes = sizeof m->arena;
    setup->stall_timeout_ns = 10 * (uint64_t)GBX_NS_PER_SECOND;
    setup->scalar_dtypes = (uintptr_t)m->scalar_dtypes;
    gbx_spsc_init(&m->lane.free);
    gbx_spsc_init(&m->lane.ready);
    for (uint32_t i = 0; i < BUFFERS; ++i)
        gbx_spsc_try_push(&m->lane.free, m->lane.free_slots, BUFFERS, i);
    atomic_init(&m->lane.open_item, GBX_DUMP_NO_ITEM);
}

static gbx_sched_task make_task(memory *m) {
    gbx_task_arguments *arguments = (gbx_task_arguments *)m->arguments;
    arguments->word_count = SCALARS_A_TASK;
    arguments->is_described = 1;
    memset(arguments->kinds, GBX_UINT64, SCALARS_A_TASK);
    gbx_sched_task task = {.words = arguments->words,
                           .func_ids = {GBX_NO_KERNEL, 0, GBX_NO_KERNEL},
                           .block_num = 1,
                           .word_count = SCALARS_A_TASK,
                           .first_subtask = GBX_SUBTASK_AIV0,
                           .subtask_count = 1,
                           .arguments = arguments};
    return task;
}

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Only of this thread: other threads on its processor, and late buffers, do not count. */
static int64_t processor_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * GBX_NS_PER_SECOND + now.tv_nsec;
}

static void capture_tasks(const gbx_probe *probe, gbx_sched_task *task) {
    for (int i = 0; i < RECORDS_A_ROUND; i += RECORDS_A_TASK) {
        probe->before_dispatch(probe->context, 0, task);
        probe->after_completion(probe->context, 0, task);
        ++task->id;
    }
}

/* With the two readings of the clock that a worker makes around a kernel. */
static void capture_dispatches(const gbx_probe *probe, gbx_sched_task *task) {
    gbx_sched_dispatch dispatch = {.task = task, .core_id = 1, .subtask = GBX_SUBTASK_AIV0};
    for (int i = 0; i < RECORDS_A_ROUND; ++i) {
        gbx_sched_span span = {.start_ticks = probe->ticks()};
        span.end_ticks = probe->ticks();
        probe->at_dispatch(probe->context, 0, &dispatch);
        probe->after_dispatch(probe->context, 0, &dispatch, span);
    }
}

typedef void (*capture_round)(const gbx_probe *probe, gbx_sched_task *task);

static double measure(const gbx_probe *probe, gbx_sched_task *task, capture_round capture) {
    double times[ROUNDS];
    for (int r = 0; r < ROUNDS; ++r) {
        int64_t start_ns = processor_ns();
        capture(probe, task);
        times[r] = (double)(processor_ns() - start_ns) / RECORDS_A_ROUND;
    }
    probe->end_of_thread(probe->context, 0);
    qsort(times, ROUNDS, sizeof times[0], compare);
    return times[ROUNDS / 2];
}

/* The thread of the host only copies. */
static void do_nothing(void *machine) {
    (void)machine;
}

static void *map(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static double measure_in(memory *m, void *state, host *h, capture_round capture) {
    gbx_probe_request request = {.data_base = (uintptr_t)&m->setup,
                                 .flags = GBX_DUMP_HAS_TENSORS,
                                 .thread_count = 1,
                                 .gm_base = (uintptr_t)m,
                                 .gm_bytes = sizeof *m,
                                 .ring = do_nothing,
                                 .show_life = do_nothing};
    pthread_t thread;
    set_up(m);
    h->device = m;
    const gbx_probe *probe = gbx_dump_probe_source.attach(state, &request);
    if (!probe || pthread_create(&thread, NULL, copy_lines, h) != 0)
        return 0;
    gbx_sched_task task = make_task(m);
    double record_ns = measure(probe, &task, capture);
    atomic_store_explicit(&h->is_stopping, true, memory_order_release);
    pthread_join(thread, NULL);
    /* A record is one line. There may be samples of waits as well. */
    return h->lines >= (uint64_t)ROUNDS * RECORDS_A_ROUND ? record_ns : 0;
}

static double measure_with(capture_round capture) {
    memory *m = map(sizeof *m);
    void *state = map(gbx_dump_probe_source.state_bytes(NULL));
    host *h = map(sizeof *h);
    double record_ns = m && state && h ? measure_in(m, state, h, capture) : 0;
    if (record_ns == 0)
        fprintf(stderr, "bench_capture: the hooks of the writer did not record all of a task\n");
    if (m)
        munmap(m, sizeof *m);
    if (state)
        munmap(state, gbx_dump_probe_source.state_bytes(NULL));
    if (h)
        munmap(h, sizeof *h);
    return record_ns;
}

double measure_record_ns(void) {
    return measure_with(capture_tasks);
}

double measure_dispatch_ns(void) {
    return measure_with(capture_dispatches);
}
