#include "hal/sim.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/program_path.h"

#define BOOT_TIMEOUT_NS (10 * GBX_NS_PER_SECOND)

/* A running chip ends at once, or soon on a busy machine; a stopped one must be killed. */
#define END_GRACE_NS (5 * GBX_NS_PER_SECOND)

static gbx_sim *sim_of(gbx_hal *hal) {
    return (gbx_sim *)hal;
}

/* --- global memory --- */

/*
 * Each open chip of a host takes one slot of addresses. The first works in plain, address sanitizer
 * and thread sanitizer programs alike; the last ends below where Linux puts shared libraries.
 */
#define FIRST_SLOT UINT64_C(0x7e9000000000)
#define SLOT_BYTES GBX_MAX_GM_BYTES
enum { SLOT_COUNT = 13 };

/*
 * Global memory has more addresses than can be allocated: zones behind allocations take none of the
 * size that was asked for. As many again, as far as the slot has them. The file is sparse: they
 * cost nothing.
 */
#define MOST_ZONES (UINT64_C(4) << 30)
#define LEAST_ZONES (UINT64_C(1) << 20)

static uint64_t zone_space(uint64_t bytes) {
    uint64_t zones = bytes < MOST_ZONES ? bytes : MOST_ZONES;
    if (zones < LEAST_ZONES)
        zones = LEAST_ZONES;
    return zones < SLOT_BYTES - bytes ? zones : SLOT_BYTES - bytes;
}

/*
 * The table of mappings of this process says which slots are taken. A host that cannot map global
 * memory reserves the slot all the same: a device pointer that it follows then always faults.
 */
static gbx_status take_slot(gbx_sim *sim) {
    int protection = sim->is_mapped ? PROT_READ | PROT_WRITE : PROT_NONE;
    int flags = MAP_FIXED_NOREPLACE | MAP_NORESERVE;
    flags |= sim->is_mapped ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    int fd = sim->is_mapped ? sim->gm_fd : -1;
    for (uint64_t slot = 0; slot < SLOT_COUNT; ++slot) {
        uint64_t base = FIRST_SLOT + slot * SLOT_BYTES;
        void *wanted = (void *)(uintptr_t)base;
        void *window = mmap(wanted, sim->gm_space, protection, flags, fd, 0);
        if (window == wanted) {
            sim->gm_base = base;
            return NULL;
        }
        if (window == MAP_FAILED && errno != EEXIST)
            return gbx_fail(GBX_IO,
                            "mapping %" PRIu64 " bytes of global memory at 0x%" PRIx64 ": %s",
                            sim->gm_space, base, strerror(errno));
        if (window != MAP_FAILED)
            munmap(window, sim->gm_space); /* a Linux that takes the address for a hint */
    }
    return gbx_fail(GBX_EXHAUSTED,
                    "opening a chip: all %d address slots for global memory are taken; close "
                    "another chip first",
                    (int)SLOT_COUNT);
}

static gbx_status create_gm(gbx_sim *sim, uint64_t bytes) {
    uint64_t zones = zone_space(bytes);
    sim->gm_bytes = bytes;
    sim->gm_fd =
        gbx_above_standard_streams(memfd_create("glassbox-gm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (sim->gm_fd < 0)
        return gbx_fail(GBX_IO, "creating global memory: %s", strerror(errno));
    int error;
    do { /* fewer zones where the size of files is limited */
        sim->gm_space = bytes + zones;
        error = ftruncate(sim->gm_fd, (off_t)sim->gm_space) == 0 ? 0 : errno;
        zones = zones / 2 & ~UINT64_C(4095);
    } while (error == EFBIG && sim->gm_space > bytes);
    if (error)
        return gbx_fail(GBX_IO, "sizing global memory to %" PRIu64 " bytes: %s", sim->gm_space,
                        strerror(error));
    /* A kernel that got hold of the descriptor cannot shrink the file under the host's mapping. */
    if (fcntl(sim->gm_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return gbx_fail(GBX_IO, "sealing the size of global memory: %s", strerror(errno));
    GBX_TRY(take_slot(sim));
    return gbx_gm_allocator_create(sim->gm_base, bytes, sim->gm_space, &sim->allocator);
}

/* --- the chip process --- */

static gbx_status start_process(gbx_sim *sim, const char *chip_program, int device_socket) {
    char path[PATH_MAX];
    gbx_program_path_query name = {.program = "glassbox-chip",
                                   .variable = "GLASSBOX_CHIP",
                                   .doing = "starting the chip",
                                   .configured = chip_program};
    gbx_status status = gbx_program_path_find(&name, path);
    if (status) {
        close(device_socket);
        return status;
    }
    static_assert(GBX_LINK_SOCKET_FD == GBX_SPAWN_FIRST_FD, "where the chip looks for it");
    char program[] = "glassbox-chip";
    char *const arguments[] = {program, NULL};
    gbx_spawn_order order = {
        .path = path, .arguments = arguments, .descriptors = &device_socket, .descriptor_count = 1};
    int error = gbx_spawn(&order, &sim->pid);
    close(device_socket);
    if (error) {
        sim->pid = 0;
        return gbx_fail(GBX_IO, "starting the chip %s: %s", path, strerror(error));
    }
    /* Our child and not reaped: no other process can have this number. */
    sim->pid_fd = gbx_above_standard_streams((int)syscall(SYS_pidfd_open, sim->pid, 0));
    if (sim->pid_fd < 0)
        return gbx_fail(GBX_IO, "watching the chip process %d: %s", (int)sim->pid, strerror(errno));
    fcntl(sim->pid_fd, F_SETFD, FD_CLOEXEC);
    gbx_log_debug("chip process %d runs %s", (int)sim->pid, path);
    return NULL;
}

static int wait_for_chip(const gbx_sim *sim, siginfo_t *info, int options) {
    return (int)TEMP_FAILURE_RETRY(waitid(P_PID, (id_t)sim->pid, info, WEXITED | options));
}

static void note_ending(gbx_sim *sim, int wait_options) {
    siginfo_t info = {0};
    int result = wait_for_chip(sim, &info, wait_options | WNOWAIT);
    if (result == 0 && info.si_pid == 0)
        return; /* still running */
    if (result == 0) {
        /* Not reaped yet, so the number is still its own. Ends what kernels have started, too. */
        kill(-sim->pid, SIGKILL);
        result = wait_for_chip(sim, &info, 0);
    }
    sim->ending = (gbx_hal_event){.kind = GBX_HAL_LOST, .exit_code = -1};
    if (result == 0 && info.si_code == CLD_EXITED)
        sim->ending.exit_code = info.si_status;
    else if (result == 0)
        sim->ending.exit_signal = info.si_status;
    /* ECHILD: the host reaps all its children itself, and how this one ended is unknown. */
    sim->pid = 0;
}

static bool has_ended(gbx_sim *sim) {
    if (sim->device == GBX_DEVICE_PROCESS && sim->ending.kind != GBX_HAL_LOST && sim->pid > 0)
        note_ending(sim, WNOHANG);
    return sim->ending.kind == GBX_HAL_LOST;
}

static void reap(gbx_sim *sim) {
    if (sim->pid > 0) {
        struct pollfd ended = {.fd = sim->pid_fd, .events = POLLIN};
        if (sim->pid_fd >= 0 && gbx_poll(&ended, 1, END_GRACE_NS) == 0)
            gbx_log_warning("chip process %d does not end by itself; killing it", (int)sim->pid);
        kill(sim->pid, SIGKILL); /* no effect on one that has ended and is not reaped */
        note_ending(sim, 0);
    }
    if (sim->pid_fd >= 0)
        close(sim->pid_fd);
    sim->pid_fd = -1;
}

/* --- opening --- */

static void *thread_main(void *argument) {
    gbx_sim *sim = argument;
    bool is_clean = sim->device_main(sim->device_socket);
    return is_clean ? NULL : sim;
}

static gbx_status start_thread(gbx_sim *sim, int device_socket) {
    sim->device_socket = device_socket;
    /* Only signals that an instruction raises; all others are for the host's own threads. */
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
    sim->doorbell_fd = gbx_above_standard_streams(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (sim->doorbell_fd < 0)
        return gbx_fail(GBX_IO, "making the chip's doorbell: %s", strerror(errno));
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
    return start_process(sim, config->chip_program, ends[1]);
}

static gbx_status describe_early_end(gbx_sim *sim, gbx_status cause) {
    if (gbx_status_code(cause) != GBX_DEVICE_LOST || sim->device != GBX_DEVICE_PROCESS)
        return cause;
    reap(sim);
    gbx_status_free(cause);
    if (sim->ending.exit_signal)
        return gbx_fail(GBX_DEVICE_LOST,
                        "starting the chip: its process was killed by signal %d (%s)",
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

/* Bounded: a program that is not a chip may never answer. */
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
        .gm_bytes = sim->gm_space,
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
                        " of the link, this library speaks %" PRIu32
                        "; GLASSBOX_CHIP is from another build",
                        ready.version, GBX_LINK_VERSION);
    if (ready.code != GBX_OK)
        return gbx_fail((gbx_code)ready.code, "starting the chip: %s", ready.message);
    return NULL;
}

gbx_status gbx_sim_open(const gbx_hal_ops *ops, bool maps_gm, const gbx_hal_config *config,
                        gbx_hal **out_hal) {
    *out_hal = NULL;
    gbx_sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return gbx_fail_memory("opening a chip");
    sim->hal.ops = ops;
    sim->device = config->device;
    /* A chip inside this process needs the mapping on every platform. */
    sim->is_mapped = maps_gm || config->device == GBX_DEVICE_THREAD;
    sim->device_main = config->device_main;
    sim->gm_fd = sim->link_socket = sim->doorbell_fd = sim->pid_fd = -1;
    gbx_status status = create_gm(sim, config->gm_bytes);
    if (!status)
        status = start_device(sim, config);
    if (!status)
        status = boot(sim, config);
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
        shutdown(sim->link_socket, SHUT_RDWR); /* ends the chip, even if a fork has a copy */
        close(sim->link_socket);
    }
    reap(sim);
    void *still_running = NULL;
    if (sim->has_thread)
        pthread_join(sim->thread, &still_running);
    if (sim->doorbell_fd >= 0)
        close(sim->doorbell_fd);
    if (still_running) {
        gbx_log_warning("a kernel does not end: its thread and %" PRIu64
                        " bytes of global memory stay until this process ends",
                        sim->gm_space);
        sim->gm_base = 0;
    }
    gbx_gm_allocator_destroy(sim->allocator);
    if (sim->gm_base)
        munmap((void *)(uintptr_t)sim->gm_base, sim->gm_space);
    if (sim->gm_fd >= 0)
        close(sim->gm_fd);
    free(sim);
}

/* --- memory --- */

gbx_status gbx_sim_alloc(gbx_hal *hal, uint64_t bytes, uint64_t alignment, uint64_t *out_address) {
    return gbx_sim_alloc_with(hal, &(gbx_hal_memory){.bytes = bytes, .alignment = alignment},
                              out_address);
}

gbx_status gbx_sim_alloc_with(gbx_hal *hal, gbx_hal_memory *wanted, uint64_t *out_address) {
    return gbx_gm_allocator_alloc(sim_of(hal)->allocator, wanted, out_address);
}

void gbx_sim_visit(gbx_hal *hal, gbx_hal_visit visit, void *context) {
    gbx_gm_allocator_visit(sim_of(hal)->allocator, visit, context);
}

gbx_status gbx_sim_free(gbx_hal *hal, uint64_t address) {
    return gbx_gm_allocator_free(sim_of(hal)->allocator, address);
}

void gbx_sim_caps(const gbx_hal *hal, gbx_hal_caps *out_caps) {
    const gbx_sim *sim = (const gbx_sim *)hal;
    *out_caps = (gbx_hal_caps){
        .gm_base = sim->gm_base, .gm_bytes = sim->gm_bytes, .gm_space = sim->gm_space};
    gbx_gm_allocator_room(sim->allocator, &out_caps->gm_free, &out_caps->gm_largest);
}

/* --- running --- */

gbx_status gbx_sim_launch(gbx_hal *hal, const gbx_launch_args *args) {
    gbx_sim *sim = sim_of(hal);
    if (has_ended(sim))
        return gbx_fail(GBX_DEVICE_LOST, "launching: the chip process has ended");
    return gbx_link_send(sim->link_socket, args, sizeof *args, NULL, 0);
}

gbx_status gbx_sim_wait(gbx_hal *hal, int64_t timeout_ns, gbx_hal_event *out_event) {
    gbx_sim *sim = sim_of(hal);
    struct pollfd watched[2] = {{.fd = sim->doorbell_fd, .events = POLLIN},
                                {.fd = sim->pid_fd, .events = POLLIN}};
    if (gbx_poll(watched, 2, timeout_ns) < 0)
        return gbx_fail(GBX_IO, "waiting for the chip: %s", strerror(errno));
    /* The doorbell first: the chip may have reported something before it ended. */
    if (watched[0].revents & POLLIN) {
        uint64_t rings;
        ssize_t taken = read(sim->doorbell_fd, &rings, sizeof rings);
        *out_event = (gbx_hal_event){.kind = GBX_HAL_RUNG};
        if (taken == (ssize_t)sizeof rings)
            return NULL;
    }
    if (has_ended(sim))
        *out_event = sim->ending;
    else
        *out_event = (gbx_hal_event){.kind = GBX_HAL_TIMED_OUT};
    return NULL;
}
