#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/log.h"
#include "base/program_path.h"
#include "base/spawn.h"
#include "hal/sim.h"

/* A chip that runs ends at once, or as soon as a busy machine lets it; one that is stopped needs to
 * be killed. */
#define END_GRACE_NS (5 * GBX_NS_PER_SECOND)

/* --- starting --- */

/* Ctrl-C is for the host, which then ends the chip by closing the link. */
static int spawn(const char *path, int device_socket, pid_t *out_pid) {
    static_assert(GBX_LINK_SOCKET_FD == GBX_SPAWN_FIRST_FD, "where the chip looks for it");
    char name[] = "glassbox-chip";
    char *const arguments[] = {name, NULL};
    gbx_spawn_order order = {
        .path = path, .arguments = arguments, .descriptors = &device_socket, .descriptor_count = 1};
    return gbx_spawn(&order, out_pid);
}

gbx_status gbx_sim_spawn(gbx_sim *sim, const char *chip_program, int device_socket) {
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
    int error = spawn(path, device_socket, &sim->pid);
    close(device_socket);
    if (error) {
        sim->pid = 0;
        return gbx_fail(GBX_IO, "starting the chip %s: %s", path, strerror(error));
    }
    /* Ours and not reaped: the number cannot have been given to another process. */
    sim->pid_fd = gbx_above_standard_streams((int)syscall(SYS_pidfd_open, sim->pid, 0));
    if (sim->pid_fd < 0)
        return gbx_fail(GBX_IO, "watching the chip process %d: %s", (int)sim->pid, strerror(errno));
    fcntl(sim->pid_fd, F_SETFD, FD_CLOEXEC);
    gbx_log_debug("chip process %d runs %s", (int)sim->pid, path);
    return NULL;
}

/* --- ending --- */

static int wait_for_chip(const gbx_sim *sim, siginfo_t *info, int options) {
    int result;
    do
        result = waitid(P_PID, (id_t)sim->pid, info, WEXITED | options);
    while (result != 0 && errno == EINTR);
    return result;
}

static void note_ending(gbx_sim *sim, int wait_options) {
    siginfo_t info = {0};
    int result = wait_for_chip(sim, &info, wait_options | WNOWAIT);
    if (result == 0 && info.si_pid == 0)
        return; /* still running */
    if (result == 0) {
        /* Not reaped yet, so the number is still its own: processes that a kernel started end too.
         */
        kill(-sim->pid, SIGKILL);
        result = wait_for_chip(sim, &info, 0);
    }
    sim->ending = (gbx_hal_event){.kind = GBX_HAL_LOST, .exit_code = -1};
    if (result == 0 && info.si_code == CLD_EXITED)
        sim->ending.exit_code = info.si_status;
    else if (result == 0)
        sim->ending.exit_signal = info.si_status;
    /* ECHILD: the host reaps all its children itself, so nobody knows how this one ended. */
    sim->pid = 0;
}

bool gbx_sim_has_ended(gbx_sim *sim) {
    if (sim->device == GBX_DEVICE_PROCESS && sim->ending.kind != GBX_HAL_LOST && sim->pid > 0)
        note_ending(sim, WNOHANG);
    return sim->ending.kind == GBX_HAL_LOST;
}

void gbx_sim_reap(gbx_sim *sim) {
    if (sim->pid > 0) {
        struct pollfd ended = {.fd = sim->pid_fd, .events = POLLIN};
        if (sim->pid_fd >= 0 && gbx_poll(&ended, 1, END_GRACE_NS) == 0)
            gbx_log_warning("chip process %d does not end by itself; killing it", (int)sim->pid);
        kill(sim->pid, SIGKILL); /* nothing to one that has ended and is not reaped */
        note_ending(sim, 0);
    }
    if (sim->pid_fd >= 0)
        close(sim->pid_fd);
    sim->pid_fd = -1;
}
