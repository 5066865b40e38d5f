#include "chip/device/device.h"

/* In the core itself, for faults and the watchdog; in GM, for the host if the process ends. */
static gbx_core_activity *note_start(gbx_core *core, uint64_t task_id, uint32_t func_id,
                                     const gbx_local_context *local) {
    gbx_core_activity *activity = &core->device->control->cores[core->id];
    atomic_store_explicit(&core->task_id, task_id, memory_order_relaxed);
    atomic_store_explicit(&core->func_id, func_id, memory_order_relaxed);
    atomic_store_explicit(&core->block_idx, local->block_idx, memory_order_relaxed);
    atomic_store_explicit(&core->block_num, local->block_num, memory_order_relaxed);
    atomic_store_explicit(&core->runs, atomic_load_explicit(&core->runs, memory_order_relaxed) + 1,
                          memory_order_release);
    atomic_store_explicit(&activity->task_id, task_id, memory_order_relaxed);
    atomic_store_explicit(&activity->func_id, func_id, memory_order_relaxed);
    atomic_store_explicit(&activity->block_idx, local->block_idx, memory_order_relaxed);
    atomic_store_explicit(&activity->block_num, local->block_num, memory_order_relaxed);
    /* Release: a host that sees is_running after the process has ended finds the rest filled in. */
    atomic_store_explicit(&activity->is_running, 1, memory_order_release);
    return activity;
}

void gbx_core_run(gbx_core *core, uint64_t task_id, uint32_t func_id,
                  const gbx_local_context *local, const uint64_t *args) {
    gbx_core_activity *activity = note_start(core, task_id, func_id, local);
    gbx_fault_enter_core(core);
    core->device->kernels[func_id].entry(args);
    gbx_fault_leave();
    /* The kernel's stores, streaming ones too, come before everything that follows its end. */
    atomic_thread_fence(memory_order_seq_cst);
    atomic_store_explicit(&activity->is_running, 0, memory_order_relaxed);
    atomic_store_explicit(&core->runs, atomic_load_explicit(&core->runs, memory_order_relaxed) + 1,
                          memory_order_release);
}
