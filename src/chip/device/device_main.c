#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "chip/device/device.h"

enum { HEARTBEAT_MS = 50, STOP_GRACE_MS = 200 };

static bool is_process(const gbx_device *device) {
    return device->boot.flags & GBX_BOOT_IS_PROCESS;
}

void gbx_device_finish(gbx_device *device, gbx_code code, int64_t device_ns) {
    gbx_control_block *control = device->control;
    uint64_t launch_id = device->launch.launch_id;
    control->code = (uint32_t)code;
    control->device_ns = device_ns;
    /* First, for the host may launch again as soon as it sees the next. */
    atomic_store_explicit(&device->is_running, false, memory_order_release);
    /* Pairs with the host's look at the control block: the rest is filled in. */
    atomic_store_explicit(&control->finished_launch, launch_id, memory_order_release);
    uint64_t one = 1;
    ssize_t rung = write(device->doorbell_fd, &one, sizeof one);
    (void)rung; /* a host that does not hear it, for a kernel has closed it, looks by itself */
}

void gbx_device_fail(gbx_device *device) {
    /* Pairs with the acquire in the AICPU threads: the fault is filled in. */
    atomic_store_explicit(&device->has_failed, true, memory_order_release);
    for (uint32_t i = 0; i < device->boot.aicpu_threads; ++i)
        gbx_doorbell_ring(&device->aicpus[i].bell);
}

/* --- launching, on the control thread --- */

static bool owns(const gbx_device *device, uint64_t address, uint64_t bytes) {
    return address >= device->boot.gm_base && address % 64 == 0 &&
           gbx_range_is_inside(address - device->boot.gm_base, bytes, device->boot.gm_bytes);
}

/*
 * Takes the call out of global memory, where any kernel can write. The host has checked all this
 * before; a call that does not hold here is a defect of it.
 */
static bool take_call(gbx_device *device) {
    if (device->launch.payload_bytes != sizeof(gbx_call_block))
        return false;
    gbx_call_block *call = &device->call;
    memcpy(call, (const void *)(uintptr_t)device->launch.payload, sizeof *call);
    if (call->tensor_count > GBX_MAX_TENSOR_ARGS || call->scalar_count > GBX_MAX_SCALAR_ARGS ||
        call->block_num == 0)
        return false;
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s) {
        uint32_t func_id = call->kernels[s];
        if (func_id != GBX_NO_KERNEL &&
            (func_id >= GBX_MAX_KERNELS || !device->kernels[func_id].entry))
            return false;
    }
    return true;
}

static void start_call(gbx_device *device) {
    int64_t now_ns = gbx_clock_ns();
    atomic_store_explicit(&device->next_block, 0, memory_order_relaxed);
    atomic_store_explicit(&device->progress_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&device->first_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&device->threads_inside, device->boot.aicpu_threads,
                          memory_order_relaxed);
    /* Pairs with the acquire in the AICPU threads: the launch is filled in. */
    atomic_fetch_add_explicit(&device->launch_seq, 1, memory_order_release);
    for (uint32_t i = 0; i < device->boot.aicpu_threads; ++i)
        gbx_doorbell_ring(&device->aicpus[i].bell);
}

static void start_launch(gbx_device *device, const gbx_launch_args *launch) {
    if (!owns(device, launch->control_block, sizeof(gbx_control_block)) ||
        !owns(device, launch->payload, launch->payload_bytes)) {
        gbx_log_error("chip: launch %" PRIu64 " points outside of global memory; ignored",
                      launch->launch_id);
        return;
    }
    /* Pairs with the release in gbx_device_finish: nobody reads the previous launch any more. */
    if (atomic_load_explicit(&device->is_running, memory_order_acquire)) {
        gbx_log_error("chip: launch %" PRIu64 " came while another runs; ignored",
                      launch->launch_id);
        return;
    }
    device->launch = *launch;
    device->control = (gbx_control_block *)(uintptr_t)launch->control_block;
    atomic_store_explicit(&device->is_running, true, memory_order_relaxed);
    if (atomic_load_explicit(&device->has_failed, memory_order_acquire))
        gbx_device_finish(device, GBX_DEVICE_LOST, 0);
    else if (launch->entry == GBX_ENTRY_LOAD_KERNEL)
        gbx_device_finish(device, gbx_kernel_load(device), 0);
    else if (launch->entry == GBX_ENTRY_CALL && take_call(device))
        start_call(device);
    else
        gbx_device_finish(device, GBX_INTERNAL, 0);
}

/*
 * Serves the host until it closes the link. While a launch runs the thread wakes up now and then to
 * show that the chip is alive; between launches it sleeps.
 */
static void serve(gbx_device *device) {
    struct pollfd link = {.fd = device->link_socket, .events = POLLIN};
    for (;;) {
        bool is_running = atomic_load_explicit(&device->is_running, memory_order_acquire);
        int ready = poll(&link, 1, is_running ? HEARTBEAT_MS : -1);
        if (ready < 0 && errno != EINTR)
            return;
        if (ready > 0) {
            gbx_launch_args launch;
            /* Plain recv: a status would be allocated, and a kernel may have broken the heap. */
            ssize_t received = recv(device->link_socket, &launch, sizeof launch, MSG_TRUNC);
            if (received < 0 && errno == EBADF)
                gbx_fault_record_link(device);
            if (received != (ssize_t)sizeof launch)
                return;
            start_launch(device, &launch);
        } else if (is_running) {
            atomic_fetch_add_explicit(&device->control->heartbeat, 1, memory_order_relaxed);
        }
    }
}

/* --- starting --- */

static gbx_status receive_boot(gbx_device *device) {
    int fds[2];
    GBX_TRY(gbx_link_receive(device->link_socket, &device->boot, sizeof device->boot, fds, 2));
    device->gm_fd = fds[0];
    device->doorbell_fd = fds[1];
    const gbx_link_boot *boot = &device->boot;
    if (boot->magic != GBX_LINK_MAGIC || boot->version != GBX_LINK_VERSION)
        return gbx_fail(GBX_BAD_FORMAT,
                        "the host speaks version %" PRIu32 " of the link, this chip %" PRIu32,
                        boot->version, GBX_LINK_VERSION);
    if (boot->blocks == 0 || boot->blocks > GBX_MAX_BLOCKS || boot->aicpu_threads == 0 ||
        boot->aicpu_threads > GBX_MAX_AICPU_THREADS)
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "%" PRIu32 " blocks and %" PRIu32 " AICPU threads were asked for",
                        boot->blocks, boot->aicpu_threads);
    return NULL;
}

static gbx_status map_gm(gbx_device *device) {
    if (!is_process(device))
        return NULL; /* the host has mapped it */
    void *wanted = (void *)(uintptr_t)device->boot.gm_base;
    void *window = mmap(wanted, device->boot.gm_bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, device->gm_fd, 0);
    if (window != wanted)
        return gbx_fail(GBX_EXHAUSTED,
                        "mapping %" PRIu64 " bytes of global memory at 0x%" PRIx64
                        " on the chip: %s",
                        device->boot.gm_bytes, device->boot.gm_base,
                        window == MAP_FAILED ? strerror(errno) : "the address is taken");
    return NULL;
}

static gbx_status start_threads(gbx_device *device) {
    uint32_t thread_count = device->boot.aicpu_threads;
    device->core_count = device->boot.blocks * GBX_CORES_PER_BLOCK;
    for (uint32_t i = 0; i < thread_count; ++i) {
        gbx_aicpu *aicpu = &device->aicpus[i];
        aicpu->device = device;
        aicpu->id = i;
        GBX_TRY(gbx_aicpu_start(aicpu));
    }
    /* Block b belongs to AICPU thread b modulo their number, as aicpu.c walks them. */
    uint32_t owner = 0;
    for (uint32_t i = 0; i < device->core_count; ++i) {
        gbx_core *core = &device->cores[i];
        core->device = device;
        core->id = i;
        core->owner_bell = &device->aicpus[owner].bell;
        GBX_TRY(gbx_core_start(core));
        if (i % GBX_CORES_PER_BLOCK == GBX_CORES_PER_BLOCK - 1 && ++owner == thread_count)
            owner = 0;
    }
    return NULL;
}

static gbx_status start(gbx_device *device) {
    GBX_TRY(receive_boot(device));
    if (is_process(device)) {
        gbx_log_set_level((gbx_log_level)device->boot.log_level);
        GBX_TRY(gbx_lifeline_start(device));
        GBX_TRY(gbx_fault_catch_signals(device));
    }
    GBX_TRY(map_gm(device));
    return start_threads(device);
}

/* --- ending --- */

static bool any_core_is_busy(gbx_device *device) {
    for (uint32_t i = 0; i < device->core_count; ++i)
        if (gbx_core_is_busy(&device->cores[i]))
            return true;
    return false;
}

/* Joins the thread of a core, or leaves one alone that is still in a kernel; false then. */
static bool join_core(gbx_core *core) {
    if (!core->has_thread)
        return true;
    if (gbx_core_is_busy(core)) {
        pthread_detach(core->thread);
        return false;
    }
    pthread_join(core->thread, NULL);
    return true;
}

/* False when a core is still in a kernel after a grace time: its thread cannot be ended. */
static bool stop_threads(gbx_device *device) {
    atomic_store_explicit(&device->is_stopping, true, memory_order_release);
    for (uint32_t i = 0; i < GBX_MAX_AICPU_THREADS; ++i)
        gbx_doorbell_ring(&device->aicpus[i].bell);
    for (uint32_t i = 0; i < device->core_count; ++i)
        gbx_doorbell_ring(&device->cores[i].mailbox.bell);
    for (uint32_t i = 0; i < GBX_MAX_AICPU_THREADS; ++i)
        if (device->aicpus[i].has_thread)
            pthread_join(device->aicpus[i].thread, NULL);
    for (int waited_ms = 0; any_core_is_busy(device) && waited_ms < STOP_GRACE_MS; ++waited_ms)
        poll(NULL, 0, 1);
    bool is_clean = true;
    for (uint32_t i = 0; i < device->core_count; ++i)
        is_clean = join_core(&device->cores[i]) && is_clean;
    return is_clean;
}

/* Of a chip inside the host, which keeps the mapping of global memory. */
static void destroy(gbx_device *device) {
    gbx_kernel_unload_all(device);
    close(device->gm_fd);
    close(device->doorbell_fd);
    close(device->link_socket);
    munmap(device, sizeof *device);
}

static void answer(const gbx_device *device, gbx_status status) {
    gbx_link_ready ready = {.magic = GBX_LINK_MAGIC,
                            .version = GBX_LINK_VERSION,
                            .code = (uint32_t)gbx_status_code(status)};
    snprintf(ready.message, sizeof ready.message, "%s", gbx_status_message(status));
    gbx_status sent = gbx_link_send(device->link_socket, &ready, sizeof ready, NULL, 0);
    gbx_status_free(sent); /* a host that is gone needs no answer */
}

bool gbx_device_main(int link_socket) {
    /* Not from the heap: a kernel that corrupts the heap leaves the chip's own state alone. */
    gbx_device *device =
        mmap(NULL, sizeof *device, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (device == MAP_FAILED) {
        close(link_socket);
        return true;
    }
    device->link_socket = link_socket;
    device->gm_fd = device->doorbell_fd = -1;
    gbx_status status = start(device);
    answer(device, status);
    if (!status)
        serve(device);
    gbx_status_free(status);
    if (is_process(device))
        return true; /* it ends with all that is in it */
    if (!stop_threads(device))
        return false;
    destroy(device);
    return true;
}
