/*
 * The chip itself: cores, the workers that run kernels on them, the orchestrator, and the control
 * thread that talks to the host. All but starting, loading and ending is device code: no malloc, no
 * stdio, no locks.
 */
#ifndef GBX_CHIP_DEVICE_H
#define GBX_CHIP_DEVICE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/doorbell.h"
#include "chip/abi.h"
#include "chip/program.h"
#include "hal/hal.h"

/*
 * A core is a place to run a kernel, on any worker. Faults and the watchdog read here what it runs,
 * where kernels cannot reach it.
 */
typedef struct gbx_core {
    gbx_device *device;
    uint32_t id;
    _Alignas(64) _Atomic uint64_t runs; /* odd while a kernel runs; its worker counts */
    _Atomic uint64_t task_id;           /* worker, before it runs */
    _Atomic uint32_t func_id;
    _Atomic uint32_t block_idx;
    _Atomic uint32_t block_num;
    /* Watchdog: the value of `runs` it saw last, and since when. */
    uint64_t seen_runs;
    int64_t seen_ns;
} gbx_core;

/* A thread that runs kernels, and between them the scheduler. */
typedef struct gbx_worker {
    _Alignas(64) gbx_doorbell bell;
    gbx_device *device;
    uint32_t id;
    _Atomic bool is_inside; /* not asleep: it cannot be joined until its kernel ends */
    pthread_t thread;
    bool has_thread;
} gbx_worker;

/* The thread that runs orchestrations. */
typedef struct gbx_orchestrator {
    _Alignas(64) gbx_doorbell bell;
    _Atomic uint32_t asked;  /* runs requested; the control thread counts */
    _Atomic uint32_t served; /* runs that have ended */
    pthread_t thread;
    bool has_thread;
} gbx_orchestrator;

typedef struct gbx_loaded_kernel {
    gbx_kernel_function entry; /* NULL: not registered */
    void *shared_object;       /* of dlopen, or NULL */
    gbx_core_type core;
} gbx_loaded_kernel;

struct gbx_device {
    gbx_link_boot boot;
    int link_socket;
    int gm_fd;
    int doorbell_fd;
    int host_fd;      /* of the host process, for the lifeline */
    int attention_fd; /* wakes the control thread after a fault */

    /* The control thread writes these before the program starts. */
    gbx_control_block *control;
    gbx_launch_args launch;
    const gbx_program *program;
    int64_t start_ns;
    uint64_t payload[GBX_MAX_PAYLOAD_BYTES / sizeof(uint64_t)]; /* kernels cannot write here */

    _Atomic bool is_stopping;
    _Atomic bool is_fault_claimed; /* by the thread that fills in the fault */
    _Atomic uint32_t fault_core;   /* a copy of the fault that kernels cannot reach */
    _Atomic uint32_t fault_kind;
    _Atomic bool has_failed;   /* the fault is filled in: take no other launch */
    _Atomic bool is_running;   /* a launch is under way */
    _Atomic bool is_finishing; /* a thread has begun to report its end */

    /* Watchdog, on the control thread. */
    uint64_t seen_progress;
    int64_t progress_ns;
    int64_t looked_ns;

    gbx_program_set programs;
    void *program_state;
    gbx_loaded_kernel kernels[GBX_MAX_KERNELS]; /* control thread, between launches */
    uint32_t core_count;
    gbx_core cores[GBX_MAX_CORES];
    gbx_worker workers[GBX_MAX_CORES];
    gbx_orchestrator orchestrator;
};

/* --- device_main.c --- */

/*
 * Runs a chip until the host closes the link; consumes the socket. `programs`, which is copied, is
 * what it can launch beside its own entry. False when a kernel did not end: the memory that it
 * uses must then stay.
 */
bool gbx_device_main(int link_socket, const gbx_program_set *programs);

/*
 * Reports the end of the launch: code and counts in the control block, then the host's doorbell.
 * Only the first call of a launch counts.
 */
void gbx_device_finish(gbx_device *device, gbx_code code, uint64_t tasks, uint64_t dispatches);

/* Rings the host's doorbell. Any thread. */
void gbx_device_ring(gbx_device *device);

/* A fault is recorded: stops the program and calls the control thread. Signal handlers too. */
void gbx_device_fail(gbx_device *device);

/* --- core.c --- */

/* Runs a kernel on the calling thread, as this core. A full fence follows it. */
void gbx_core_run(gbx_core *core, uint64_t task_id, uint32_t func_id,
                  const gbx_local_context *local, const uint64_t *args);

static inline bool gbx_core_is_busy(gbx_core *core) {
    return atomic_load_explicit(&core->runs, memory_order_acquire) & 1;
}

/* --- worker.c --- */

gbx_status gbx_worker_start(gbx_worker *worker);
gbx_status gbx_orchestrator_start(gbx_device *device);

/* Makes the orchestrator thread run the program's orchestration. Control thread. */
void gbx_orchestrator_call(gbx_device *device);
bool gbx_orchestrator_is_inside(gbx_device *device);

/* --- watchdog.c --- */

/* A launch begins. */
void gbx_watchdog_begin(gbx_device *device);

/* Called now and then while it runs: reports a hang when there was no progress for too long. */
void gbx_watchdog_look(gbx_device *device);

/* --- fault.c --- */

/* Catches fatal signals in all of the process. */
gbx_status gbx_fault_catch_signals(gbx_device *device);

/* Notes what the calling thread is doing, for the report of a signal. */
void gbx_fault_enter_core(gbx_core *core);
void gbx_fault_enter_orchestration(gbx_device *device);
void gbx_fault_enter_loading(const gbx_device *device);
void gbx_fault_leave(void);

/* Gives the calling thread a stack for signals; returns it, NULL when memory is out. */
void *gbx_fault_stack_create(void);
void gbx_fault_stack_destroy(void *stack);

/* Each records a fault, unless one was recorded before, and ends the launch. */
/* `core` is NULL where no kernel runs: GBX_FAULT_ORCHESTRATION_HANG, or GBX_FAULT_HANG for the
 * scheduler. */
void gbx_fault_record_hang(gbx_device *device, gbx_fault_kind kind, int64_t running_ns,
                           gbx_core *core, uint32_t other_cores);
/* The calling thread is ending, out of a kernel or an orchestration. */
void gbx_fault_record_thread_end(gbx_device *device);

/* A guard ends the launch because of what this task did. */
void gbx_fault_record_guard(gbx_device *device, uint64_t task_id, uint32_t func_id);

/* Records that the link is closed. Does not end the launch: no host is left to hear of it. */
void gbx_fault_record_link(gbx_device *device);

/* --- lifeline.c --- */

/*
 * Starts the thread that ends the chip process, and all that its kernels have started, when the
 * host closes the link or dies, whatever the other threads do. It never allocates.
 */
gbx_status gbx_lifeline_start(gbx_device *device);

/* --- kernel_loader.c --- */

/* Runs GBX_ENTRY_LOAD_KERNEL; on failure the reason is in the control block's message. */
gbx_code gbx_kernel_load(gbx_device *device);
void gbx_kernel_unload_all(gbx_device *device);

/*
 * Loads a shared object, which runs its constructors, and finds a symbol in it; the caller owns the
 * object and calls dlclose. On failure the reason is in the control block's message. Control
 * thread.
 */
gbx_code gbx_object_load(gbx_device *device, const char *path, const char *symbol,
                         const char *definition, void **out_object, void **out_symbol);

#endif
