#include "replay/engine/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
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
#include "text/names.h"
#include "text/plain_text.h"

/* --- shared memory --- */

gbx_status gbx_replay_child_open(gbx_replay_child *child) {
    child->file_fd = gbx_above_standard_streams(memfd_create("glassbox-call", MFD_CLOEXEC));
    child->board_fd =
        gbx_above_standard_streams(memfd_create("glassbox-board", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (child->file_fd < 0 || child->board_fd < 0 ||
        ftruncate(child->board_fd, sizeof *child->board) != 0 ||
        fcntl(child->board_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return gbx_fail(GBX_IO, "creating memory shared with glassbox-call: %s", strerror(errno));
    void *board =
        mmap(NULL, sizeof *child->board, PROT_READ | PROT_WRITE, MAP_SHARED, child->board_fd, 0);
    if (board == MAP_FAILED)
        return gbx_fail(GBX_IO, "mapping memory shared with glassbox-call: %s", strerror(errno));
    child->board = board;
    return NULL;
}

/* --- ending --- */

/* Kills the child, if it has not ended, and all that kernels started; reports how it ended. */
static void reap(gbx_replay_child *child, gbx_replay_reply *out_reply) {
    siginfo_t info = {0};
    if (child->pid == 0)
        return;
    /* Not reaped yet, so the group still has its number. */
    kill(-child->pid, SIGKILL);
    int result;
    do
        result = waitid(P_PID, (id_t)child->pid, &info, WEXITED);
    while (result != 0 && errno == EINTR);
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

static gbx_status spawn_with_socket(gbx_replay_child *child, const char *path, int gm_fd) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
        return gbx_fail(GBX_IO, "starting %s: %s", path, strerror(errno));
    child->socket = gbx_above_standard_streams(sockets[0]);
    int theirs = gbx_above_standard_streams(sockets[1]);
    int error = child->socket < 0 || theirs < 0 ? errno : 0;
    if (!error) {
        /* Output of kernels goes to our standard error: standard output is for glassbox. */
        char name[] = "glassbox-call";
        char serve[] = GBX_CALL_SERVE;
        char *const arguments[] = {name, serve, NULL};
        const int descriptors[] = {[GBX_CALL_SOCKET_FD - GBX_SPAWN_FIRST_FD] = theirs,
                                   [GBX_CALL_GM_FD - GBX_SPAWN_FIRST_FD] = gm_fd,
                                   [GBX_CALL_FILE_FD - GBX_SPAWN_FIRST_FD] = child->file_fd,
                                   [GBX_CALL_BOARD_FD - GBX_SPAWN_FIRST_FD] = child->board_fd};
        gbx_spawn_order order = {.path = path,
                                 .arguments = arguments,
                                 .descriptors = descriptors,
                                 .descriptor_count = sizeof descriptors / sizeof descriptors[0],
                                 .is_output_ours = true};
        error = gbx_spawn(&order, &child->pid);
    }
    if (theirs >= 0)
        close(theirs);
    if (!error) {
        child->pid_fd = gbx_above_standard_streams((int)syscall(SYS_pidfd_open, child->pid, 0));
        if (child->pid_fd >= 0)
            return NULL;
        gbx_status status = gbx_fail(GBX_IO, "watching glassbox-call: %s", strerror(errno));
        reap(child, NULL);
        return status;
    }
    if (child->socket >= 0)
        close(child->socket);
    child->socket = -1;
    child->pid = 0;
    return gbx_fail(GBX_IO, "starting %s: %s", path, strerror(error));
}

/* --- calling --- */

/* A child that something left behind by a kernel has ended since the last call is restarted. */
gbx_status gbx_replay_child_order(gbx_replay_child *child, const char *program, int gm_fd,
                                  uint32_t dispatch_count) {
    struct pollfd ended = {.fd = child->pid_fd, .events = POLLIN};
    if (child->pid > 0 && gbx_poll(&ended, 1, 0) != 0)
        reap(child, NULL);
    for (int attempt = 0; attempt < 2; ++attempt) {
        if (child->pid == 0) {
            char path[PATH_MAX];
            gbx_program_path_query name = {.program = "glassbox-call",
                                           .variable = "GLASSBOX_CALL",
                                           .doing = "calling kernels",
                                           .configured = program};
            GBX_TRY(gbx_program_path_find(&name, path));
            GBX_TRY(spawn_with_socket(child, path, gm_fd));
            gbx_log_debug("process %d runs %s", (int)child->pid, path);
        }
        child->board->fault = (gbx_call_fault){0};
        atomic_store_explicit(&child->board->is_loading, 0, memory_order_relaxed);
        for (uint32_t i = 0; i < dispatch_count; ++i)
            atomic_store_explicit(&child->board->states[i], 0, memory_order_relaxed);
        child->order_ns = gbx_clock_ns();
        gbx_call_order order = {.magic = GBX_CALL_LINK_MAGIC, .number = ++child->number};
        if (send(child->socket, &order, sizeof order, MSG_NOSIGNAL) == (ssize_t)sizeof order)
            return NULL;
        reap(child, NULL);
    }
    return gbx_fail(GBX_IO,
                    "calling kernels: glassbox-call exits at once; check that GLASSBOX_CALL "
                    "belongs to this build");
}

/* False if what arrived is not an answer to the last order. */
static bool receive_answer(gbx_replay_child *child, gbx_call_answer *out_answer) {
    ssize_t bytes = recv(child->socket, out_answer, sizeof *out_answer, MSG_DONTWAIT);
    out_answer->error[sizeof out_answer->error - 1] = '\0';
    return bytes == (ssize_t)sizeof *out_answer && out_answer->magic == GBX_CALL_LINK_MAGIC &&
           out_answer->number == child->number;
}

gbx_status gbx_replay_child_wait(gbx_replay_child *child, int64_t timeout_ns,
                                 gbx_replay_reply *out_reply) {
    memset(out_reply, 0, sizeof *out_reply);
    /* An answer that has arrived counts, however late it is read. */
    struct pollfd watched[2] = {{.fd = child->socket, .events = POLLIN},
                                {.fd = child->pid_fd, .events = POLLIN}};
    int64_t left_ns = timeout_ns - (gbx_clock_ns() - child->order_ns);
    int ready = gbx_poll(watched, 2, left_ns > 0 ? left_ns : 0);
    if (ready < 0) {
        gbx_status status = gbx_fail(GBX_IO, "waiting for a call: %s", strerror(errno));
        reap(child, NULL);
        return status;
    }
    if (ready > 0 && receive_answer(child, &out_reply->answer))
        return NULL;
    if (ready > 0) {
        /* The child is ending, or a kernel closed its socket. */
        struct pollfd ended = {.fd = child->pid_fd, .events = POLLIN};
        gbx_poll(&ended, 1, GBX_NS_PER_SECOND);
    }
    reap(child, out_reply);
    if (ready == 0)
        out_reply->ending = GBX_REPLAY_SILENT;
    return NULL;
}

/* --- faults --- */

enum { SIGNAL_TEXT_BYTES = 24, HOW_BYTES = 96, PLACE_BYTES = 112 };

static const char *signal_name(int number, char buffer[SIGNAL_TEXT_BYTES]) {
    const char *abbreviation = number > 0 && number < NSIG ? sigabbrev_np(number) : NULL;
    if (abbreviation)
        snprintf(buffer, SIGNAL_TEXT_BYTES, "SIG%s", abbreviation);
    else
        snprintf(buffer, SIGNAL_TEXT_BYTES, "signal %d", number);
    return buffer;
}

/* The dispatch that a fault is reported for, in words. */
typedef struct culprit {
    const char *kernel;
    char place[PLACE_BYTES]; /* "block 0, aiv0" */
} culprit;

static void describe_signal(const culprit *at, const gbx_call_fault *noted, bool is_of_dispatch,
                            gbx_replay_fault *fault) {
    char name[SIGNAL_TEXT_BYTES];
    char where[HOW_BYTES] = "";
    fault->signal = (int)noted->signal;
    fault->has_address = noted->has_address != 0;
    fault->address = fault->has_address ? noted->address : 0;
    if (fault->has_address)
        snprintf(where, sizeof where, " at 0x%" PRIx64, fault->address);
    else if (fault->signal == SIGSEGV)
        snprintf(where, sizeof where, " at an invalid address, or sent by another process");
    const char *form =
        is_of_dispatch ? "kernel %.96s crashed (%s): %s%s"
                       : "a thread started by a kernel crashed while kernel %.96s ran (%s): %s%s";
    snprintf(fault->text, sizeof fault->text, form, at->kernel, at->place,
             signal_name(fault->signal, name), where);
}

static void describe_ending(const culprit *at, const gbx_replay_reply *reply,
                            uint32_t running_count, gbx_replay_fault *fault) {
    char how[HOW_BYTES];
    char name[SIGNAL_TEXT_BYTES];
    if (reply->ending == GBX_REPLAY_KILLED) {
        fault->signal = reply->value;
        snprintf(how, sizeof how, "with %s", signal_name(reply->value, name));
    } else {
        snprintf(how, sizeof how, "with exit code %d", reply->value);
    }
    if (running_count > 1)
        snprintf(fault->text, sizeof fault->text,
                 "one of %" PRIu32
                 " running calls ended the process %s (the first: kernel %.96s, %s)",
                 running_count, how, at->kernel, at->place);
    else
        snprintf(fault->text, sizeof fault->text, "kernel %.96s ended the process %s (%s)",
                 at->kernel, how, at->place);
}

static gbx_status fail_loading(const gbx_replay_request *request, const gbx_replay_reply *reply,
                               const gbx_call_fault *noted) {
    char name[SIGNAL_TEXT_BYTES];
    bool is_noted = atomic_load_explicit(&noted->kind, memory_order_acquire) == GBX_CALL_SIGNAL;
    int number = is_noted ? (int)noted->signal : reply->value;
    const char *how = "it ended the process";
    if (reply->ending == GBX_REPLAY_SILENT)
        how = "it did not return in time";
    else if (is_noted || reply->ending == GBX_REPLAY_KILLED)
        how = signal_name(number, name);
    return gbx_fail(GBX_BAD_KERNEL,
                    "loading the kernels of task %" PRIu64
                    ": a constructor of a shared object failed: %s",
                    request->task->task, how);
}

/* A kernel may have overwritten the board: its numbers are checked. */
gbx_status gbx_replay_fault_describe(const gbx_replay_request *request,
                                     const gbx_replay_child *child, const gbx_replay_reply *reply,
                                     int64_t timeout_ns, gbx_replay_fault *out_fault) {
    const gbx_call_fault *noted = &child->board->fault;
    uint32_t count = gbx_replay_request_count(request);
    uint32_t kind = atomic_load_explicit(&noted->kind, memory_order_acquire);
    uint32_t first = UINT32_MAX; /* of the dispatches that ran when it ended */
    uint32_t running_count = 0;
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t state = atomic_load_explicit(&child->board->states[i], memory_order_acquire);
        if (state == GBX_CALL_RUNS && running_count++ == 0)
            first = i;
    }
    if (atomic_load_explicit(&child->board->is_loading, memory_order_relaxed))
        return fail_loading(request, reply, noted);
    bool has_note = reply->ending == GBX_REPLAY_EXITED && reply->value == GBX_CALL_FAULT_EXIT &&
                    (kind == GBX_CALL_SIGNAL || kind == GBX_CALL_THREAD_END);
    bool is_of_dispatch = has_note && noted->dispatch < count;
    uint32_t exiting = atomic_load_explicit(&noted->exiting, memory_order_relaxed) - 1;
    if (reply->ending == GBX_REPLAY_EXITED && !has_note && exiting < count) {
        first = exiting;
        running_count = 1;
    }
    uint32_t dispatch = is_of_dispatch ? noted->dispatch : first < count ? first : 0;
    *out_fault = (gbx_replay_fault){.is_there = true,
                                    .is_hang = reply->ending == GBX_REPLAY_SILENT,
                                    .dispatch = gbx_replay_request_first(request) + dispatch};
    const gbx_replay_dispatch *from = &request->task->dispatches[out_fault->dispatch];
    culprit at = {.kernel = request->task->kernel_names[from->subtask]};
    int used = snprintf(at.place, PLACE_BYTES, "block %" PRIu32 ", %s", from->block_idx,
                        gbx_name_of(&gbx_subtasks, from->subtask));
    if (out_fault->is_hang && running_count > 1)
        snprintf(at.place + used, PLACE_BYTES - (size_t)used, ", while %" PRIu32 " more ran",
                 running_count - 1);
    if (has_note && kind == GBX_CALL_SIGNAL)
        describe_signal(&at, noted, is_of_dispatch, out_fault);
    else if (has_note)
        snprintf(out_fault->text, sizeof out_fault->text,
                 "kernel %.96s ended its thread (%s): pthread_exit; it must return instead",
                 at.kernel, at.place);
    else if (out_fault->is_hang)
        snprintf(out_fault->text, sizeof out_fault->text,
                 "kernel %.96s did not return within %.6g s (%s)", at.kernel,
                 (double)timeout_ns / 1e9, at.place);
    else
        describe_ending(&at, reply, running_count, out_fault);
    gbx_text_make_plain(out_fault->text);
    return NULL;
}
