#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "chip/device/device.h"

gbx_core_activity *gbx_core_activity_of(const gbx_core *core) {
    return &core->device->control->cores[core->id];
}

void gbx_core_post(gbx_core *core, gbx_kernel_function entry, uint32_t func_id,
                   const gbx_local_context *local, const uint64_t *args) {
    gbx_mailbox *mailbox = &core->mailbox;
    mailbox->entry = entry;
    atomic_store_explicit(&mailbox->func_id, func_id, memory_order_relaxed);
    atomic_store_explicit(&mailbox->block_idx, local->block_idx, memory_order_relaxed);
    atomic_store_explicit(&mailbox->block_num, local->block_num, memory_order_relaxed);
    mailbox->args = args;
    /* Pairs with the acquire in next_dispatch. */
    atomic_fetch_add_explicit(&mailbox->posted, 1, memory_order_release);
    gbx_doorbell_ring(&mailbox->bell);
}

/* Sleeps until there is a dispatch; false when the chip stops. */
static bool next_dispatch(gbx_core *core) {
    gbx_mailbox *mailbox = &core->mailbox;
    for (;;) {
        uint32_t seen = gbx_doorbell_read(&mailbox->bell);
        /* Pairs with the release in gbx_core_post: entry and args are there. */
        if (atomic_load_explicit(&mailbox->posted, memory_order_acquire) !=
            atomic_load_explicit(&mailbox->completed, memory_order_relaxed))
            return true;
        if (atomic_load_explicit(&core->device->is_stopping, memory_order_acquire))
            return false;
        gbx_doorbell_wait(&mailbox->bell, seen, GBX_FOREVER);
    }
}

/* For the watchdog in the core itself; for the host, should the process end, in global memory. */
static void note_start(gbx_core *core) {
    gbx_mailbox *mailbox = &core->mailbox;
    gbx_core_activity *activity = gbx_core_activity_of(core);
    uint32_t func_id = atomic_load_explicit(&mailbox->func_id, memory_order_relaxed);
    uint32_t block_idx = atomic_load_explicit(&mailbox->block_idx, memory_order_relaxed);
    uint32_t block_num = atomic_load_explicit(&mailbox->block_num, memory_order_relaxed);
    atomic_store_explicit(&core->start_ns, gbx_clock_ns(), memory_order_relaxed);
    atomic_store_explicit(&activity->func_id, func_id, memory_order_relaxed);
    atomic_store_explicit(&activity->block_idx, block_idx, memory_order_relaxed);
    atomic_store_explicit(&activity->block_num, block_num, memory_order_relaxed);
    /* The rest is there before it counts, should the host look at what is left. */
    atomic_store_explicit(&activity->is_running, 1, memory_order_release);
}

static void run_dispatch(gbx_core *core) {
    gbx_mailbox *mailbox = &core->mailbox;
    note_start(core);
    gbx_fault_enter_core(core);
    mailbox->entry(mailbox->args);
    gbx_fault_leave();
    /* The kernel's stores, streaming ones too, come before everything that follows its end. */
    atomic_thread_fence(memory_order_seq_cst);
    atomic_store_explicit(&gbx_core_activity_of(core)->is_running, 0, memory_order_relaxed);
    /* Pairs with the acquire in gbx_core_is_busy. */
    atomic_fetch_add_explicit(&mailbox->completed, 1, memory_order_release);
    gbx_doorbell_ring(core->owner_bell);
}

/* Runs when a kernel calls pthread_exit: the core is gone, and its dispatch will never complete. */
static void on_thread_end(void *argument) {
    gbx_fault_record_thread_end(argument);
}

static void *core_main(void *argument) {
    gbx_core *core = argument;
    char name[16];
    snprintf(name, sizeof name, "%s-%u", core->id % GBX_CORES_PER_BLOCK ? "aiv" : "aic", core->id);
    pthread_setname_np(pthread_self(), name);
    void *signal_stack = gbx_fault_stack_create();
    pthread_cleanup_push(on_thread_end, core);
    while (next_dispatch(core))
        run_dispatch(core);
    pthread_cleanup_pop(0);
    gbx_fault_stack_destroy(signal_stack);
    return NULL;
}

gbx_status gbx_core_start(gbx_core *core) {
    int error = pthread_create(&core->thread, NULL, core_main, core);
    if (error)
        return gbx_fail(GBX_EXHAUSTED,
                        "starting core %u of %u: %s; open fewer blocks, or raise the limits of "
                        "memory and threads (ulimit)",
                        core->id + 1, core->device->core_count, strerror(error));
    core->has_thread = true;
    return NULL;
}
