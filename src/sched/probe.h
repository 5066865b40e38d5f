/*
 * The hooks through which dump and guard see tasks: one table of functions, NULL without both.
 * Every call runs on an AICPU thread (a number below the chip's count), and each AICPU thread makes
 * one call at a time: data kept per thread needs no protection.
 */
#ifndef GBX_SCHED_PROBE_H
#define GBX_SCHED_PROBE_H

#include "sched/finding.h"
#include "sched/task.h"

/* Cores and AICPU threads have smaller numbers than these. */
#define GBX_SCHED_MAX_CORES (GBX_SCHED_MAX_BLOCKS * GBX_SUBTASK_COUNT)
enum { GBX_SCHED_MAX_BLOCKS = 24, GBX_SCHED_MAX_THREADS = 8 };

/* One subtask of one block on one core: what kernel_entry is called with. */
typedef struct gbx_sched_dispatch {
    gbx_sched_task *task;
    uint64_t *args;           /* GBX_ARG_SLOTS words in global memory */
    gbx_local_context *local; /* in global memory */
    uint32_t func_id;
    uint32_t core_id;
    uint32_t block_idx;
    uint32_t subtask; /* gbx_subtask */
} gbx_sched_dispatch;

/* When the kernel of a dispatch was called and when it returned, by the probe's clock. */
typedef struct gbx_sched_span {
    uint64_t start_ticks;
    uint64_t end_ticks; /* 0: it has not returned */
} gbx_sched_span;

/* Memory that a builder gives to a task or an orchestration, with room for zones around it. */
typedef struct gbx_probe_buffer {
    uint64_t address; /* a multiple of GBX_PROBE_GRANULE, as is zone_end */
    uint64_t bytes;
    uint64_t zone_end; /* the zone behind it goes up to here; 0: there was no room for one */
    uint32_t place;    /* gbx_run_finding_place */
    uint32_t index;
    uint64_t owner_task; /* GBX_NO_TASK: none */
    uint32_t owner_func;
    uint32_t number; /* of the allocation, in the order of the orchestration's calls */
} gbx_probe_buffer;

enum { GBX_PROBE_GRANULE = 512 };

typedef struct gbx_probe {
    void *context;
    /* The clock of dispatches: counts up, never 0. Any thread, about 10 ns. */
    uint64_t (*ticks)(void);
    /* Once a task, before its first dispatch: its inputs are complete, nothing has run. */
    void (*before_dispatch)(void *context, uint32_t thread, const gbx_sched_task *task);
    /* At each dispatch, after its arguments were built, before the kernel runs. */
    void (*at_dispatch)(void *context, uint32_t thread, const gbx_sched_dispatch *dispatch);
    /* Once a dispatch, after its kernel has returned; and after a fault, for each whose kernel
     * crashed, hung, or still ran when the run was given up. */
    void (*after_dispatch)(void *context, uint32_t thread, const gbx_sched_dispatch *dispatch,
                           gbx_sched_span span);
    /* Once a task, after its last dispatch, before any successor or reuse of its memory. A full
     * fence stands between the last write of its kernels and this. */
    void (*after_completion)(void *context, uint32_t thread, const gbx_sched_task *task);
    /* Once an AICPU thread, when the run ends: well, with an error, or after a fault. */
    void (*end_of_thread)(void *context, uint32_t thread);
    /* For a dispatch whose kernel crashed or hung: it may have written some of its outputs. */
    void (*on_fault)(void *context, uint32_t thread, const gbx_sched_dispatch *dispatch);
    /* Grows while one of these calls takes long or waits. Any thread. */
    uint64_t (*progress)(void *context);
    /* Builder, before the tasks that use it: new memory. What lay there before is free. NULL where
     * memory needs no zones. */
    void (*new_buffer)(void *context, const gbx_probe_buffer *buffer);
} gbx_probe;

/* --- where the probe of a run comes from: the layer above passes it in --- */

/* What the probe needs to know of a run. */
typedef struct gbx_probe_request {
    uint64_t data_base;  /* from the launch: an address in global memory; 0: no dump */
    uint64_t guard_base; /* the same; 0: neither dump nor guard */
    uint32_t flags;      /* from the launch */
    uint32_t thread_count;
    uint64_t gm_base;
    uint64_t gm_bytes;
    /* The copies of all arguments in global memory lie in the `shown_bytes` from `shown`; the
     * private copies, which tasks point to, at the same offsets from `kept`. */
    uint64_t shown;
    uint64_t shown_bytes;
    const void *kept;
    /* Any thread. `ring` rings the host's doorbell. `show_life` shows the host that the chip is
     * alive, during a long call that may run on the thread which otherwise does that. */
    void (*ring)(void *context);
    void (*show_life)(void *context);
    /* Ends the run as a fault does; no further task starts. */
    void (*stop)(void *context, uint64_t task, uint32_t func_id);
    void *machine;
    const gbx_finding_sink *findings; /* attach sets it where there is one */
} gbx_probe_request;

typedef struct gbx_probe_source {
    /* Private memory that it needs for a run: zeroed, and mapped as it is touched. */
    uint64_t (*state_bytes)(const gbx_probe_request *request);
    /* NULL when the data in global memory is invalid. `state` is kept until the next run. */
    const gbx_probe *(*attach)(void *state, gbx_probe_request *request);
} gbx_probe_source;

#endif
