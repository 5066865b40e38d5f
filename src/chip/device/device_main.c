#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "chip/device/device.h"

enum { HEARTBEAT_MS = 50, STOP_GRACE_MS = 200, FAULT_GRACE_MS = 200 };

static bool is_process(const gbx_device *device) {
    return device->boot.flags & GBX_BOOT_IS_PROCESS;
}

/* Writes what kernels printed without a newline. Waits for no lock: a kernel that never returned
 * in an earlier launch may hold it. */
static void flush_prints(void) {
    if (__fpending(stdout) == 0 || ftrylockfile(stdout) != 0)
        return;
    fflush_unlocked(stdout);
    funlockfile(stdout);
}

void gbx_device_finish(gbx_device *device, gbx_code code, uint64_t tasks, uint64_t dispatches) {
    gbx_control_header *header = &device->control->header;
    uint64_t launch_id = device->launch.launch_id;
    if (atomic_exchange_explicit(&device->is_finishing, true, memory_order_acq_rel))
        return;
    header->code = (uint32_t)code;
    header->device_ns = gbx_clock_ns() - device->start_ns;
    header->task_count = tasks;
    header->dispatch_count = dispatches;
    if (code == GBX_OK && is_process(device))
        flush_prints();
    /* First: the host may launch again as soon as it sees the store below. */
    atomic_store_explicit(&device->is_running, false, memory_order_release);
    /* Pairs with the host's look at the control block: the rest is filled in. */
    atomic_store_explicit(&header->finished_launch, launch_id, memory_order_release);
    gbx_device_ring(device);
}

void gbx_device_ring(gbx_device *device) {
    uint64_t one = 1;
    ssize_t rung = write(device->doorbell_fd, &one, sizeof one);
    (void)rung; /* if a kernel has closed it, the host looks by itself, a little later */
}

void gbx_device_fail(gbx_device *device) {
    /* Pairs with the acquire in the control thread: the fault is filled in. */
    atomic_store_explicit(&device->has_failed, true, memory_order_release);
    if (device->program)
        device->program->cancel(device);
    int saved_errno = errno;
    uint64_t one = 1;
    ssize_t rung = write(device->attention_fd, &one, sizeof one);
    (void)rung; /* the control thread looks by itself too, a little later */
    errno = saved_errno;
}

/* --- launching, on the control thread --- */

static bool owns(const gbx_device *device, uint64_t address, uint64_t bytes) {
    return address >= device->boot.gm_base && address % 64 == 0 &&
           gbx_range_is_inside(address - device->boot.gm_base, bytes, device->boot.gm_bytes);
}

static void start_program(gbx_device *device) {
    device->program = device->programs.find(device->launch.entry);
    if (!device->program) {
        gbx_device_finish(device, GBX_INTERNAL, 0, 0);
        return;
    }
    gbx_watchdog_begin(device);
    gbx_code code = device->program->start(device, device->payload, device->launch.payload_bytes);
    if (code != GBX_OK)
        gbx_device_finish(device, code, 0, 0);
}

static void start_launch(gbx_device *device, const gbx_launch_args *launch) {
    if (!owns(device, launch->control_block, sizeof(gbx_control_block)) ||
        !owns(device, launch->payload, launch->payload_bytes) ||
        launch->payload_bytes > sizeof device->payload) {
        gbx_log_error("chip: launch %" PRIu64 " points outside of global memory; ignored",
                      launch->launch_id);
        return;
    }
    /* Pairs with the release in gbx_device_finish: no thread reads the previous launch any more. */
    if (atomic_load_explicit(&device->is_running, memory_order_acquire)) {
        gbx_log_error("chip: launch %" PRIu64 " arrived while another was running; ignored",
                      launch->launch_id);
        return;
    }
    device->launch = *launch;
    device->control = (gbx_control_block *)(uintptr_t)launch->control_block;
    device->start_ns = gbx_clock_ns();
    /* Out of global memory, where any kernel can write. */
    memcpy(device->payload, (const void *)(uintptr_t)launch->payload, launch->payload_bytes);
    atomic_store_explicit(&device->is_finishing, false, memory_order_relaxed);
    atomic_store_explicit(&device->is_running, true, memory_order_relaxed);
    if (atomic_load_explicit(&device->has_failed, memory_order_acquire))
        gbx_device_finish(device, GBX_DEVICE_LOST, 0, 0);
    else if (launch->entry == GBX_ENTRY_LOAD_KERNEL)
        gbx_device_finish(device, gbx_kernel_load(device), 0, 0);
    else
        start_program(device);
}

static gbx_code fault_code(gbx_device *device) {
    uint32_t kind = atomic_load_explicit(&device->fault_kind, memory_order_relaxed);
    bool is_hang = kind == GBX_FAULT_HANG || kind == GBX_FAULT_ORCHESTRATION_HANG;
    return is_hang ? GBX_DEVICE_HUNG : GBX_DEVICE_FAULT;
}

/* Ends a launch that has failed: gives the other kernels a moment to end, then reports. */
static void end_failed_launch(gbx_device *device) {
    const gbx_program *program = device->program;
    uint32_t core_id = atomic_load_explicit(&device->fault_core, memory_order_relaxed);
    uint32_t lost_count = core_id < device->core_count; /* the worker that never returns */
    for (int waited_ms = 0;
         program && waited_ms < FAULT_GRACE_MS && program->awake(device) > lost_count; ++waited_ms)
        poll(NULL, 0, 1);
    if (program)
        program->report_fault(device, core_id);
    gbx_device_finish(device, fault_code(device), program ? program->tasks_completed(device) : 0,
                      0);
}

/* While a launch runs: shows that the chip is alive, and looks for hangs and faults. */
static void attend(gbx_device *device) {
    if (device->program) {
        uint64_t completed = device->program->tasks_completed(device);
        atomic_store_explicit(&device->control->tasks_so_far, completed, memory_order_relaxed);
        if (!atomic_load_explicit(&device->has_failed, memory_order_acquire))
            gbx_watchdog_look(device);
    }
    atomic_fetch_add_explicit(&device->control->heartbeat, 1, memory_order_relaxed);
    if (atomic_load_explicit(&device->has_failed, memory_order_acquire) &&
        atomic_load_explicit(&device->is_running, memory_order_acquire))
        end_failed_launch(device);
}

/* False when the descriptor is no longer usable. */
static bool hear_attention(const gbx_device *device) {
    uint64_t rings;
    return read(device->attention_fd, &rings, sizeof rings) == (ssize_t)sizeof rings ||
           errno == EAGAIN || errno == EINTR;
}

/* Serves the host until it closes the link. Wakes up in a launch, to show that it is alive. */
static void serve(gbx_device *device) {
    struct pollfd watched[2] = {{.fd = device->link_socket, .events = POLLIN},
                                {.fd = device->attention_fd, .events = POLLIN}};
    for (;;) {
        bool is_running = atomic_load_explicit(&device->is_running, memory_order_acquire);
        int ready = poll(watched, 2, is_running ? HEARTBEAT_MS : -1);
        if (ready < 0 && errno != EINTR)
            return;
        if (ready > 0 && watched[1].revents && !hear_attention(device))
            watched[1].fd = -1; /* closed by a kernel: the heartbeat still looks now and then */
        if (ready > 0 && watched[0].revents) {
            gbx_launch_args launch;
            /* Plain recv: a status would be allocated, and a kernel may have broken the heap. */
            ssize_t received = recv(device->link_socket, &launch, sizeof launch, MSG_TRUNC);
            if (received < 0 && errno == EBADF)
                gbx_fault_record_link(device);
            if (received != (ssize_t)sizeof launch)
                return;
            start_launch(device, &launch);
        } else if (is_running) {
            attend(device);
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
                        "the host speaks version %" PRIu32
                        " of the link, this chip speaks %" PRIu32,
                        boot->version, GBX_LINK_VERSION);
    if (boot->blocks == 0 || boot->blocks > GBX_MAX_BLOCKS || boot->aicpu_threads == 0 ||
        boot->aicpu_threads > GBX_MAX_AICPU_THREADS)
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "unsupported number of blocks (%" PRIu32 ") or AICPU threads (%" PRIu32 ")",
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
    device->core_count = device->boot.blocks * GBX_CORES_PER_BLOCK;
    device->attention_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (device->attention_fd < 0)
        return gbx_fail(GBX_IO, "making the chip's event: %s", strerror(errno));
    /* Not from the heap, which a kernel may corrupt. */
    device->program_state = mmap(NULL, device->programs.state_bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (device->program_state == MAP_FAILED) {
        device->program_state = NULL;
        return gbx_fail_memory("starting the chip");
    }
    device->programs.init(device->program_state, device->core_count, device->programs.context);
    for (uint32_t i = 0; i < device->core_count; ++i) {
        device->cores[i].device = device->workers[i].device = device;
        device->cores[i].id = device->workers[i].id = i;
    }
    for (uint32_t i = 0; i < device->core_count; ++i)
        GBX_TRY(gbx_worker_start(&device->workers[i]));
    return gbx_orchestrator_start(device);
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

static bool is_anyone_inside(gbx_device *device) {
    for (uint32_t i = 0; i < device->core_count; ++i)
        if (atomic_load_explicit(&device->workers[i].is_inside, memory_order_acquire))
            return true;
    return gbx_orchestrator_is_inside(device);
}

/* Joins a thread; detaches one that is still in a kernel and returns false. */
static bool join(pthread_t thread, bool has_thread, bool is_inside) {
    if (has_thread && is_inside)
        pthread_detach(thread);
    else if (has_thread)
        pthread_join(thread, NULL);
    return !has_thread || !is_inside;
}

/* False when a kernel has not ended after a grace time: its thread cannot be ended. */
static bool stop_threads(gbx_device *device) {
    atomic_store_explicit(&device->is_stopping, true, memory_order_release);
    if (device->program)
        device->program->cancel(device);
    for (uint32_t i = 0; i < device->core_count; ++i)
        gbx_doorbell_ring(&device->workers[i].bell);
    gbx_doorbell_ring(&device->orchestrator.bell);
    for (int waited_ms = 0; is_anyone_inside(device) && waited_ms < STOP_GRACE_MS; ++waited_ms)
        poll(NULL, 0, 1);
    bool is_clean = join(device->orchestrator.thread, device->orchestrator.has_thread,
                         gbx_orchestrator_is_inside(device));
    for (uint32_t i = 0; i < device->core_count; ++i) {
        gbx_worker *worker = &device->workers[i];
        bool is_inside = atomic_load_explicit(&worker->is_inside, memory_order_acquire);
        is_clean = join(worker->thread, worker->has_thread, is_inside) && is_clean;
    }
    return is_clean;
}

/* Only for a chip inside the host, which keeps the mapping of global memory. */
static void destroy(gbx_device *device) {
    gbx_kernel_unload_all(device);
    device->programs.destroy(device->program_state);
    if (device->program_state)
        munmap(device->program_state, device->programs.state_bytes);
    if (device->attention_fd >= 0)
        close(device->attention_fd);
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

bool gbx_device_main(int link_socket, const gbx_program_set *programs) {
    /* Not from the heap, which a kernel may corrupt. */
    gbx_device *device =
        mmap(NULL, sizeof *device, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (device == MAP_FAILED) {
        close(link_socket);
        return true;
    }
    device->programs = *programs;
    device->link_socket = link_socket;
    device->gm_fd = device->doorbell_fd = device->attention_fd = -1;
    gbx_status status = start(device);
    answer(device, status);
    if (!status)
        serve(device);
    gbx_status_free(status);
    if (is_process(device))
        return true; /* the process ends now, and frees everything */
    if (!stop_threads(device))
        return false;
    destroy(device);
    return true;
}
