#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "chip/device/device.h"

/* The AICPU threads share the chip's blocks: thread t looks after blocks t, t + n, t + 2n... */
static uint32_t first_block(const gbx_aicpu *aicpu) {
    return aicpu->id;
}

static uint32_t next_block(const gbx_aicpu *aicpu, uint32_t block) {
    return block + aicpu->device->boot.aicpu_threads;
}

static gbx_core *core_of(gbx_device *device, uint32_t block, uint32_t subtask) {
    return &device->cores[block * GBX_CORES_PER_BLOCK + subtask];
}

static bool block_is_busy(gbx_device *device, uint32_t block) {
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s)
        if (gbx_core_is_busy(core_of(device, block, s)))
            return true;
    return false;
}

/*
 * Fills in what the kernel receives. Tensors are passed by their address in global memory; all that
 * decides what runs comes from the copy that kernels cannot write to.
 */
static void build_payload(gbx_device *device, const gbx_local_context *local,
                          gbx_dispatch_payload *payload) {
    const gbx_call_block *call = &device->call;
    uint64_t in_gm = device->launch.payload;
    uint32_t slot = 0;
    for (uint32_t i = 0; i < call->tensor_count; ++i)
        payload->args[slot++] = in_gm + offsetof(gbx_call_block, tensors) + i * sizeof(gbx_tensor);
    for (uint32_t i = 0; i < call->scalar_count; ++i)
        payload->args[slot++] = call->scalars[i];
    payload->local = *local;
    payload->args[GBX_ARG_LOCAL_CONTEXT] = (uint64_t)(uintptr_t)&payload->local;
    payload->args[GBX_ARG_GLOBAL_CONTEXT] = in_gm + offsetof(gbx_call_block, global);
}

static void dispatch_block(gbx_device *device, uint32_t block, uint32_t block_idx) {
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s) {
        uint32_t func_id = device->call.kernels[s];
        if (func_id == GBX_NO_KERNEL)
            continue;
        gbx_core *core = core_of(device, block, s);
        gbx_dispatch_payload *payload = &device->control->dispatches[core->id];
        gbx_local_context local = {.block_idx = block_idx,
                                   .block_num = device->call.block_num,
                                   .subtask = s,
                                   .core_id = core->id};
        build_payload(device, &local, payload);
        gbx_core_post(core, device->kernels[func_id].entry, func_id, &local, payload->args);
    }
}

/* False when all blocks of the task are handed out. Looks before it takes: the count stays near. */
static bool take_block_idx(gbx_device *device, uint32_t *out_block_idx) {
    uint32_t block_num = device->call.block_num;
    if (atomic_load_explicit(&device->next_block, memory_order_relaxed) >= block_num)
        return false;
    *out_block_idx = atomic_fetch_add_explicit(&device->next_block, 1, memory_order_relaxed);
    return *out_block_idx < block_num;
}

/* One look at all blocks of this thread: fills the idle ones. Returns how many are busy after it.
 */
static uint32_t step(const gbx_aicpu *aicpu) {
    gbx_device *device = aicpu->device;
    uint32_t busy_count = 0;
    for (uint32_t b = first_block(aicpu); b < device->boot.blocks; b = next_block(aicpu, b)) {
        uint32_t block_idx;
        if (!block_is_busy(device, b)) {
            if (!take_block_idx(device, &block_idx))
                continue;
            dispatch_block(device, b, block_idx);
        }
        ++busy_count;
    }
    return busy_count;
}

/* --- watchdog --- */

static void report_hang(gbx_device *device) {
    gbx_core *oldest = NULL;
    int64_t oldest_ns = INT64_MAX;
    uint32_t busy_count = 0;
    for (uint32_t i = 0; i < device->core_count; ++i) {
        gbx_core *core = &device->cores[i];
        if (!gbx_core_is_busy(core))
            continue;
        ++busy_count;
        int64_t start_ns = atomic_load_explicit(&core->start_ns, memory_order_relaxed);
        if (start_ns < oldest_ns) {
            oldest_ns = start_ns;
            oldest = core;
        }
    }
    if (oldest)
        gbx_fault_record_hang(oldest, busy_count - 1);
    else
        /* All have completed in this moment: look again. */
        atomic_store_explicit(&device->progress_ns, gbx_clock_ns(), memory_order_relaxed);
}

/* Sleeps until a core completes; finds out when nothing has completed for too long. */
static void await_completion(gbx_aicpu *aicpu, uint32_t seen) {
    gbx_device *device = aicpu->device;
    int64_t timeout_ns = (int64_t)device->launch.timeout_ms * GBX_NS_PER_MS;
    int64_t progress_ns = atomic_load_explicit(&device->progress_ns, memory_order_relaxed);
    int64_t left_ns = progress_ns + timeout_ns - gbx_clock_ns();
    if (left_ns <= 0)
        report_hang(device);
    else if (gbx_doorbell_wait(&aicpu->bell, seen, left_ns))
        atomic_store_explicit(&device->progress_ns, gbx_clock_ns(), memory_order_relaxed);
}

/* --- one launch --- */

static bool has_failed(gbx_device *device) {
    return atomic_load_explicit(&device->has_failed, memory_order_acquire);
}

static bool is_stopping(gbx_device *device) {
    return atomic_load_explicit(&device->is_stopping, memory_order_acquire);
}

static void run_call(gbx_aicpu *aicpu) {
    gbx_device *device = aicpu->device;
    for (;;) {
        uint32_t seen = gbx_doorbell_read(&aicpu->bell);
        if (has_failed(device) || is_stopping(device) || step(aicpu) == 0)
            return;
        await_completion(aicpu, seen);
    }
}

static gbx_code fault_code(gbx_device *device) {
    uint32_t kind = atomic_load_explicit(&device->control->fault.kind, memory_order_acquire);
    return kind == GBX_FAULT_HANG ? GBX_DEVICE_HUNG : GBX_DEVICE_FAULT;
}

/* The last thread out reports. Its acquire sees what all the others did before they left. */
static void leave_launch(gbx_device *device) {
    if (atomic_fetch_sub_explicit(&device->threads_inside, 1, memory_order_acq_rel) != 1)
        return;
    int64_t device_ns =
        gbx_clock_ns() - atomic_load_explicit(&device->first_ns, memory_order_relaxed);
    gbx_device_finish(device, has_failed(device) ? fault_code(device) : GBX_OK, device_ns);
}

static void *aicpu_main(void *argument) {
    gbx_aicpu *aicpu = argument;
    gbx_device *device = aicpu->device;
    char name[16];
    snprintf(name, sizeof name, "aicpu-%u", aicpu->id);
    pthread_setname_np(pthread_self(), name);
    uint64_t done_seq = 0;
    for (;;) {
        uint32_t seen = gbx_doorbell_read(&aicpu->bell);
        /* Pairs with the release of the control thread: the launch is filled in. */
        uint64_t launch_seq = atomic_load_explicit(&device->launch_seq, memory_order_acquire);
        if (launch_seq != done_seq) {
            done_seq = launch_seq;
            run_call(aicpu);
            leave_launch(device);
            continue;
        }
        if (is_stopping(device))
            return NULL;
        gbx_doorbell_wait(&aicpu->bell, seen, GBX_FOREVER);
    }
}

gbx_status gbx_aicpu_start(gbx_aicpu *aicpu) {
    int error = pthread_create(&aicpu->thread, NULL, aicpu_main, aicpu);
    if (error)
        return gbx_fail(GBX_EXHAUSTED, "starting AICPU thread %u of %u: %s", aicpu->id + 1,
                        aicpu->device->boot.aicpu_threads, strerror(error));
    aicpu->has_thread = true;
    return NULL;
}
