#include "replay/engine/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/process.h"
#include "base/program_path.h"

/* --- what both share --- */

gbx_status gbx_replay_child_open(gbx_replay_child *child) {
    *child = (gbx_replay_child){.pid_fd = -1, .socket = -1, .file_fd = -1, .board_fd = -1};
    child->file_fd = gbx_above_standard_streams(memfd_create("glassbox-call", MFD_CLOEXEC));
    child->board_fd =
        gbx_above_standard_streams(memfd_create("glassbox-board", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (child->file_fd < 0 || child->board_fd < 0 ||
        ftruncate(child->board_fd, sizeof *child->board) != 0 ||
        fcntl(child->board_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return gbx_fail(GBX_IO, "creating what a call is told in: %s", strerror(errno));
    void *board =
        mmap(NULL, sizeof *child->board, PROT_READ | PROT_WRITE, MAP_SHARED, child->board_fd, 0);
    if (board == MAP_FAILED)
        return gbx_fail(GBX_IO, "mapping what a call tells: %s", strerror(errno));
    child->board = board;
    return NULL;
}

/* --- ending --- */

static int wait_for(const gbx_replay_child *child, siginfo_t *out_info, int options) {
    int result;
    do
        result = waitid(P_PID, (id_t)child->pid, out_info, WEXITED | options);
    while (result != 0 && errno == EINTR);
    return result;
}

/* Ends it, if it has not ended by itself, and all that kernels started; tells how it ended. */
static void reap(gbx_replay_child *child, gbx_replay_reply *out_reply) {
    siginfo_t info = {0};
    if (child->pid == 0)
        return;
    /* Not reaped yet, so the number of the group is still its own. */
    kill(-child->pid, SIGKILL);
    int result = wait_for(child, &info, 0);
    if (out_reply) {
        bool was_killed = result == 0 && info.si_code != CLD_EXITED;
        out_reply->ending = was_killed ? GBX_REPLAY_KILLED : GBX_REPLAY_EXITED;
        out_reply->value = result == 0 ? info.si_status : -1;
    }
    child->pid = 0;
    close(child->socket);
    child->socket = -1;
    if (child->pid_fd >= 0)
        close(child->pid_fd);
    child->pid_fd = -1;
}

void gbx_replay_child_close(gbx_replay_child *child) {
    reap(child, NULL);
    if (child->board)
        munmap(child->board, sizeof *child->board);
    if (child->board_fd >= 0)
        close(child->board_fd);
    if (child->file_fd >= 0)
        close(child->file_fd);
}

/* --- starting --- */

/* What kernels print goes to our standard error, for our standard output is ours. */
static int spawn(const gbx_replay_child *child, const char *path, int socket, int gm_fd,
                 pid_t *out_pid) {
    char name[] = "glassbox-call";
    char serve[] = GBX_CALL_SERVE;
    char *const arguments[] = {name, serve, NULL};
    const int descriptors[] = {[GBX_CALL_SOCKET_FD - GBX_SPAWN_FIRST_FD] = socket,
                               [GBX_CALL_GM_FD - GBX_SPAWN_FIRST_FD] = gm_fd,
                               [GBX_CALL_FILE_FD - GBX_SPAWN_FIRST_FD] = child->file_fd,
                               [GBX_CALL_BOARD_FD - GBX_SPAWN_FIRST_FD] = child->board_fd};
    gbx_spawn_order order = {.path = path,
                             .arguments = arguments,
                             .descriptors = descriptors,
                             .descriptor_count = sizeof descriptors / sizeof descriptors[0],
                             .is_output_ours = true};
    return gbx_spawn(&order, out_pid);
}

static gbx_status watch(gbx_replay_child *child) {
    child->pid_fd = gbx_above_standard_streams((int)syscall(SYS_pidfd_open, child->pid, 0));
    if (child->pid_fd >= 0)
        return NULL;
    gbx_status status = gbx_fail(GBX_IO, "watching the process of a call: %s", strerror(errno));
    reap(child, NULL);
    return status;
}

static gbx_status spawn_with_socket(gbx_replay_child *child, const char *path, int gm_fd) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
        return gbx_fail(GBX_IO, "starting %s: %s", path, strerror(errno));
    child->socket = gbx_above_standard_streams(sockets[0]);
    int theirs = gbx_above_standard_streams(sockets[1]);
    int error = child->socket < 0 || theirs < 0 ? errno : 0;
    if (!error)
        error = spawn(child, path, theirs, gm_fd, &child->pid);
    if (theirs >= 0)
        close(theirs);
    if (!error)
        return watch(child);
    if (child->socket >= 0)
        close(child->socket);
    child->socket = -1;
    child->pid = 0;
    return gbx_fail(GBX_IO, "starting %s: %s", path, strerror(error));
}

static gbx_status start(gbx_replay_child *child, const char *program, int gm_fd) {
    char path[PATH_MAX];
    gbx_program_path_query name = {.program = "glassbox-call",
                                   .variable = "GLASSBOX_CALL",
                                   .doing = "calling kernels",
                                   .configured = program};
    GBX_TRY(gbx_program_path_find(&name, path));
    GBX_TRY(spawn_with_socket(child, path, gm_fd));
    gbx_log_debug("process %d runs %s", (int)child->pid, path);
    return NULL;
}

/* --- calling --- */

static void clear_board(gbx_call_board *board, uint32_t dispatch_count) {
    board->fault = (gbx_call_fault){0};
    atomic_store_explicit(&board->is_loading, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < dispatch_count; ++i)
        atomic_store_explicit(&board->states[i], 0, memory_order_relaxed);
}

static bool send_order(gbx_replay_child *child) {
    gbx_call_order order = {.magic = GBX_CALL_LINK_MAGIC, .number = ++child->number};
    return send(child->socket, &order, sizeof order, MSG_NOSIGNAL) == (ssize_t)sizeof order;
}

/* One that ended since the last call, by something that a kernel left behind, is not missed. */
gbx_status gbx_replay_child_order(gbx_replay_child *child, const char *program, int gm_fd,
                                  uint32_t dispatch_count) {
    struct pollfd ended = {.fd = child->pid_fd, .events = POLLIN};
    if (child->pid > 0 && gbx_poll(&ended, 1, 0) != 0)
        reap(child, NULL);
    for (int attempt = 0; attempt < 2; ++attempt) {
        if (child->pid == 0)
            GBX_TRY(start(child, program, gm_fd));
        clear_board(child->board, dispatch_count);
        child->order_ns = gbx_clock_ns();
        if (send_order(child))
            return NULL;
        reap(child, NULL);
    }
    return gbx_fail(GBX_IO, "calling kernels: glassbox-call ends before it is asked; is "
                            "GLASSBOX_CALL of this build?");
}

/* False where what came is no answer to the last order. */
static bool receive_answer(gbx_replay_child *child, gbx_call_answer *out_answer) {
    ssize_t bytes = recv(child->socket, out_answer, sizeof *out_answer, MSG_DONTWAIT);
    out_answer->error[sizeof out_answer->error - 1] = '\0';
    return bytes == (ssize_t)sizeof *out_answer && out_answer->magic == GBX_CALL_LINK_MAGIC &&
           out_answer->number == child->number;
}

/* An answer that is there counts, however late somebody looks. */
static int wait_until(const gbx_replay_child *child, int64_t timeout_ns) {
    struct pollfd watched[2] = {{.fd = child->socket, .events = POLLIN},
                                {.fd = child->pid_fd, .events = POLLIN}};
    int64_t left_ns = timeout_ns - (gbx_clock_ns() - child->order_ns);
    return gbx_poll(watched, 2, left_ns > 0 ? left_ns : 0);
}

gbx_status gbx_replay_child_wait(gbx_replay_child *child, int64_t timeout_ns,
                                 gbx_replay_reply *out_reply) {
    memset(out_reply, 0, sizeof *out_reply);
    int ready = wait_until(child, timeout_ns);
    if (ready < 0) {
        gbx_status status = gbx_fail(GBX_IO, "waiting for a call: %s", strerror(errno));
        reap(child, NULL);
        return status;
    }
    if (ready > 0 && receive_answer(child, &out_reply->answer))
        return NULL;
    if (ready > 0) {
        /* It is ending, or its socket was closed by a kernel. */
        struct pollfd ended = {.fd = child->pid_fd, .events = POLLIN};
        gbx_poll(&ended, 1, GBX_NS_PER_SECOND);
    }
    reap(child, out_reply);
    if (ready == 0)
        out_reply->ending = GBX_REPLAY_SILENT;
    return NULL;
}
