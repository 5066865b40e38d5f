/*
 * The chip itself: cores with mailboxes, AICPU threads, the control thread that talks to the host.
 * Code here but for starting, loading and ending is device code: no malloc, no stdio, no locks.
 */
#ifndef GBX_CHIP_DEVICE_H
#define GBX_CHIP_DEVICE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/doorbell.h"
#include "chip/abi.h"
#include "hal/hal.h"

typedef struct gbx_device gbx_device;

/* One dispatch at a time: the AICPU posts, the core completes. Empty when the counts are equal. */
typedef struct gbx_mailbox {
    _Alignas(64) _Atomic uint64_t posted; /* AICPU: dispatches posted */
    gbx_kernel_function entry;            /* AICPU, before posted */
    const uint64_t *args;                 /* AICPU, before posted */
    _Atomic uint32_t func_id; /* AICPU, before posted; the watchdog reads these three too */
    _Atomic uint32_t block_idx;
    _Atomic uint32_t block_num;
    gbx_doorbell bell;                       /* AICPU rings, the core sleeps */
    _Alignas(64) _Atomic uint64_t completed; /* core: dispatches completed */
} gbx_mailbox;

typedef struct gbx_core {
    gbx_mailbox mailbox;
    gbx_device *device;
    gbx_doorbell *owner_bell; /* of the AICPU thread that looks after this core */
    uint32_t id;
    _Atomic int64_t start_ns; /* core: when its kernel started; what the watchdog goes by */
    pthread_t thread;
    bool has_thread;
} gbx_core;

typedef struct gbx_aicpu {
    _Alignas(64) gbx_doorbell bell; /* cores and the control thread ring, this thread sleeps */
    gbx_device *device;
    uint32_t id;
    pthread_t thread;
    bool has_thread;
} gbx_aicpu;

typedef struct gbx_loaded_kernel {
    gbx_kernel_function entry; /* NULL: not registered */
    void *shared_object;       /* of dlopen, or NULL */
} gbx_loaded_kernel;

struct gbx_device {
    gbx_link_boot boot;
    int link_socket;
    int gm_fd;
    int doorbell_fd;
    int host_fd; /* of the host process, for the lifeline */

    /* The control thread writes these before it publishes a launch by counting launch_seq up. */
    gbx_control_block *control;
    gbx_launch_args launch;
    gbx_call_block call; /* of a call: a copy that no kernel can write to */
    _Atomic uint64_t launch_seq;
    _Atomic bool is_stopping;

    /* One launch. */
    _Atomic uint32_t next_block;     /* AICPU threads: block indices handed out */
    _Atomic uint32_t threads_inside; /* AICPU threads that have not left the launch yet */
    _Atomic int64_t progress_ns;     /* time of the last dispatch or completion */
    _Atomic int64_t first_ns;        /* time of the first dispatch */
    _Atomic bool is_fault_claimed;   /* by the thread that fills in the fault */
    _Atomic bool has_failed;         /* the fault is filled in: leave the launch, take no other */
    _Atomic bool is_running;         /* a launch is under way */

    gbx_loaded_kernel kernels[GBX_MAX_KERNELS]; /* control thread, between launches */
    uint32_t core_count;
    gbx_core cores[GBX_MAX_CORES];
    gbx_aicpu aicpus[GBX_MAX_AICPU_THREADS];
};

/* --- device_main.c --- */

/*
 * Runs a chip until the host closes the link; consumes the socket. False when a kernel did not end,
 * and so the memory it uses must stay.
 */
bool gbx_device_main(int link_socket);

/* Reports the end of the launch: code and time in the control block, then the host's doorbell. */
void gbx_device_finish(gbx_device *device, gbx_code code, int64_t device_ns);

/* Makes all AICPU threads leave the launch. Signal handlers too. */
void gbx_device_fail(gbx_device *device);

/* --- core.c --- */

/* Starts the thread of a core. */
gbx_status gbx_core_start(gbx_core *core);

static inline bool gbx_core_is_busy(gbx_core *core) {
    /* Pairs with the release in the core: what the kernel wrote is visible once it is not busy. */
    return atomic_load_explicit(&core->mailbox.completed, memory_order_acquire) !=
           atomic_load_explicit(&core->mailbox.posted, memory_order_relaxed);
}

/* Hands a dispatch to a core that is not busy. Called by its AICPU thread alone. */
void gbx_core_post(gbx_core *core, gbx_kernel_function entry, uint32_t func_id,
                   const gbx_local_context *local, const uint64_t *args);

gbx_core_activity *gbx_core_activity_of(const gbx_core *core);

/* --- aicpu.c --- */

gbx_status gbx_aicpu_start(gbx_aicpu *aicpu);

/* --- fault.c --- */

/* Catches fatal signals for the whole process. */
gbx_status gbx_fault_catch_signals(gbx_device *device);

/* Says what the calling thread is doing, so that a signal can name it. NULL: nothing of ours. */
void gbx_fault_enter_core(gbx_core *core);
void gbx_fault_enter_loading(const gbx_device *device);
void gbx_fault_leave(void);

/* Gives the calling thread a stack for signals; returns its memory, NULL when there is none. */
void *gbx_fault_stack_create(void);
void gbx_fault_stack_destroy(void *stack);

/* Each records a fault, unless one was recorded before, and ends the launch. */
void gbx_fault_record_hang(gbx_core *core, uint32_t other_cores);
void gbx_fault_record_thread_end(gbx_core *core);

/* Records that the link is closed; nobody is left to end the launch for. */
void gbx_fault_record_link(gbx_device *device);

/* --- lifeline.c --- */

/*
 * Starts the thread that ends the chip process, and all that its kernels have started, when the
 * host closes the link or dies: whatever the other threads do. It never allocates.
 */
gbx_status gbx_lifeline_start(gbx_device *device);

/* --- kernel_loader.c --- */

/* Runs GBX_ENTRY_LOAD_KERNEL; the reason of a failure goes to the control block's message. */
gbx_code gbx_kernel_load(gbx_device *device);
void gbx_kernel_unload_all(gbx_device *device);

#endif
