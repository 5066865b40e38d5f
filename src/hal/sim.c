#include "hal/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/log.h"

#define BOOT_TIMEOUT_NS (10 * GBX_NS_PER_SECOND)

static gbx_sim *sim_of(gbx_hal *hal) {
    return (gbx_sim *)hal;
}

/* --- opening --- */

static void *thread_main(void *argument) {
    gbx_sim *sim = argument;
    bool is_clean = sim->device_main(sim->device_socket);
    return is_clean ? NULL : sim;
}

static gbx_status start_thread(gbx_sim *sim, int device_socket) {
    sim->device_socket = device_socket;
    /* Signals of the host are for its own threads, but those that an instruction raises are not. */
    static const int own_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    sigset_t others;
    sigset_t previous;
    sigfillset(&others);
    for (size_t i = 0; i < sizeof own_signals / sizeof own_signals[0]; ++i)
        sigdelset(&others, own_signals[i]);
    pthread_sigmask(SIG_SETMASK, &others, &previous);
    int error = pthread_create(&sim->thread, NULL, thread_main, sim);
    pthread_sigmask(SIG_SETMASK, &previous, NULL);
    if (error) {
        close(device_socket);
        return gbx_fail(GBX_IO, "starting the chip's thread: %s", strerror(error));
    }
    sim->has_thread = true;
    return NULL;
}

static gbx_status start_device(gbx_sim *sim, const gbx_hal_config *config) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return gbx_fail(GBX_IO, "making the link to the chip: %s", strerror(errno));
    sim->link_socket = gbx_above_standard_streams(ends[0]);
    ends[1] = gbx_above_standard_streams(ends[1]);
    if (sim->link_socket < 0 || ends[1] < 0) {
        gbx_status status = gbx_fail(GBX_IO, "making the link to the chip: %s", strerror(errno));
        if (ends[1] >= 0)
            close(ends[1]);
        return status;
    }
    if (config->device == GBX_DEVICE_THREAD)
        return start_thread(sim, ends[1]);
    return gbx_sim_spawn(sim, config->chip_program, ends[1]);
}

static gbx_status describe_early_end(gbx_sim *sim, gbx_status cause) {
    if (gbx_status_code(cause) != GBX_DEVICE_LOST || sim->device != GBX_DEVICE_PROCESS)
        return cause;
    gbx_sim_reap(sim);
    gbx_status_free(cause);
    if (sim->ending.exit_signal)
        return gbx_fail(GBX_DEVICE_LOST,
                        "starting the chip: its process was ended by signal %d (%s)",
                        sim->ending.exit_signal, strsignal(sim->ending.exit_signal));
    if (sim->ending.exit_code < 0)
        return gbx_fail(GBX_DEVICE_LOST,
                        "starting the chip: its process ended before it answered; is "
                        "GLASSBOX_CHIP a glassbox-chip?");
    return gbx_fail(GBX_DEVICE_LOST,
                    "starting the chip: its process ended with code %d before it answered; is "
                    "GLASSBOX_CHIP a glassbox-chip?",
                    sim->ending.exit_code);
}

/* A program that is not a chip may never answer. */
static gbx_status await_answer(const gbx_sim *sim) {
    struct pollfd answer = {.fd = sim->link_socket, .events = POLLIN};
    int ready = gbx_poll(&answer, 1, BOOT_TIMEOUT_NS);
    if (ready < 0)
        return gbx_fail(GBX_IO, "starting the chip: waiting for its answer: %s", strerror(errno));
    if (ready == 0)
        return gbx_fail(GBX_DEVICE_HUNG,
                        "starting the chip: no answer within %d s; is GLASSBOX_CHIP a "
                        "glassbox-chip?",
                        (int)(BOOT_TIMEOUT_NS / GBX_NS_PER_SECOND));
    return NULL;
}

static gbx_status boot(gbx_sim *sim, const gbx_hal_config *config) {
    bool is_process = config->device == GBX_DEVICE_PROCESS;
    gbx_link_boot message = {
        .magic = GBX_LINK_MAGIC,
        .version = GBX_LINK_VERSION,
        .gm_base = sim->gm_base,
        .gm_bytes = sim->gm_bytes,
        .blocks = config->blocks,
        .aicpu_threads = config->aicpu_threads,
        .flags = is_process ? GBX_BOOT_IS_PROCESS : 0,
        .log_level = gbx_log_get_level(),
        .host_pid = (uint32_t)getpid(),
    };
    int fds[2] = {sim->gm_fd, sim->doorbell_fd};
    gbx_link_ready ready;
    gbx_status status = gbx_link_send(sim->link_socket, &message, sizeof message, fds, 2);
    if (!status)
        status = await_answer(sim);
    if (!status)
        status = gbx_link_receive(sim->link_socket, &ready, sizeof ready, NULL, 0);
    if (status)
        return describe_early_end(sim, status);
    ready.message[sizeof ready.message - 1] = '\0';
    if (ready.magic != GBX_LINK_MAGIC || ready.version != GBX_LINK_VERSION)
        return gbx_fail(GBX_BAD_FORMAT,
                        "starting the chip: it speaks version %" PRIu32
                        " of the link and this library %" PRIu32
                        "; GLASSBOX_CHIP is of another build",
                        ready.version, GBX_LINK_VERSION);
    if (ready.code != GBX_OK)
        return gbx_fail((gbx_code)ready.code, "starting the chip: %s", ready.message);
    return NULL;
}

static gbx_status open_parts(gbx_sim *sim, const gbx_hal_config *config) {
    GBX_TRY(gbx_sim_gm_create(sim));
    sim->doorbell_fd = gbx_above_standard_streams(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (sim->doorbell_fd < 0)
        return gbx_fail(GBX_IO, "making the chip's doorbell: %s", strerror(errno));
    GBX_TRY(start_device(sim, config));
    return boot(sim, config);
}

gbx_status gbx_sim_open(const gbx_hal_ops *ops, bool maps_gm, const gbx_hal_config *config,
                        gbx_hal **out_hal) {
    *out_hal = NULL;
    gbx_sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return gbx_fail(GBX_EXHAUSTED, "opening a chip: the host is out of memory");
    sim->hal.ops = ops;
    sim->device = config->device;
    /* A chip inside this process needs the mapping, whatever the platform lets the host do. */
    sim->is_mapped = maps_gm || config->device == GBX_DEVICE_THREAD;
    sim->device_main = config->device_main;
    sim->gm_bytes = config->gm_bytes;
    sim->gm_fd = sim->link_socket = sim->doorbell_fd = sim->pid_fd = -1;
    gbx_status status = open_parts(sim, config);
    if (status) {
        gbx_sim_close(&sim->hal);
        return status;
    }
    *out_hal = &sim->hal;
    return NULL;
}

void gbx_sim_close(gbx_hal *hal) {
    gbx_sim *sim = sim_of(hal);
    if (sim->link_socket >= 0) {
        shutdown(sim->link_socket, SHUT_RDWR); /* ends the chip, also where a fork has a copy */
        close(sim->link_socket);
    }
    gbx_sim_reap(sim);
    void *still_running = NULL;
    if (sim->has_thread)
        pthread_join(sim->thread, &still_running);
    if (sim->doorbell_fd >= 0)
        close(sim->doorbell_fd);
    if (still_running) {
        gbx_log_warning("a kernel on a thread of this process does not end: its thread and %" PRIu64
                        " bytes of global memory stay until the process ends",
                        sim->gm_bytes);
        sim->gm_base = 0;
    }
    gbx_sim_gm_destroy(sim);
    free(sim);
}

/* --- memory --- */

gbx_status gbx_sim_alloc(gbx_hal *hal, uint64_t bytes, uint64_t alignment, uint64_t *out_address) {
    return gbx_gm_allocator_alloc(sim_of(hal)->allocator, bytes, alignment, out_address);
}

gbx_status gbx_sim_free(gbx_hal *hal, uint64_t address) {
    return gbx_gm_allocator_free(sim_of(hal)->allocator, address);
}

gbx_status gbx_sim_check_range(gbx_sim *sim, const char *doing, uint64_t address, uint64_t bytes) {
    return gbx_gm_allocator_check(sim->allocator, doing, address, bytes);
}

void gbx_sim_caps(const gbx_hal *hal, gbx_hal_caps *out_caps) {
    const gbx_sim *sim = (const gbx_sim *)hal;
    *out_caps = (gbx_hal_caps){.can_map = hal->ops->map != NULL,
                               .gm_base = sim->gm_base,
                               .gm_bytes = sim->gm_bytes,
                               .gm_free = gbx_gm_allocator_free_bytes(sim->allocator),
                               .gm_largest = gbx_gm_allocator_largest_piece(sim->allocator)};
}

/* --- running --- */

gbx_status gbx_sim_launch(gbx_hal *hal, const gbx_launch_args *args) {
    gbx_sim *sim = sim_of(hal);
    if (gbx_sim_has_ended(sim))
        return gbx_fail(GBX_DEVICE_LOST, "launching: the chip process has ended");
    return gbx_link_send(sim->link_socket, args, sizeof *args, NULL, 0);
}

gbx_status gbx_sim_wait(gbx_hal *hal, int64_t timeout_ns, gbx_hal_event *out_event) {
    gbx_sim *sim = sim_of(hal);
    struct pollfd watched[2] = {{.fd = sim->doorbell_fd, .events = POLLIN},
                                {.fd = sim->pid_fd, .events = POLLIN}};
    if (gbx_poll(watched, 2, timeout_ns) < 0)
        return gbx_fail(GBX_IO, "waiting for the chip: %s", strerror(errno));
    /* A ring first: what the chip said before it ended is still to be heard. */
    if (watched[0].revents & POLLIN) {
        uint64_t rings;
        ssize_t taken = read(sim->doorbell_fd, &rings, sizeof rings);
        *out_event = (gbx_hal_event){.kind = GBX_HAL_RUNG};
        if (taken == (ssize_t)sizeof rings)
            return NULL;
    }
    if (gbx_sim_has_ended(sim))
        *out_event = sim->ending;
    else
        *out_event = (gbx_hal_event){.kind = GBX_HAL_TIMED_OUT};
    return NULL;
}
