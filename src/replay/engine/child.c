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

const gbx_replay_child gbx_replay_no_child = {
    .pid_fd = -1, .socket = -1, .board_fd = -1, .batch_fds = {-1, -1}, .kept_fd = -1};

/* --- shared memory --- */

/* A file in memory that a kernel with its descriptor cannot shrink under our mapping. */
static gbx_status share(const char *name, uint64_t bytes, int *out_fd, void **out_mapped) {
    *out_fd = gbx_above_standard_streams(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (*out_fd < 0 || ftruncate(*out_fd, (off_t)bytes) != 0 ||
        fcntl(*out_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return gbx_fail(GBX_IO, "creating memory shared with glassbox-call: %s", strerror(errno));
    *out_mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *out_fd, 0);
    if (*out_mapped == MAP_FAILED) {
        *out_mapped = NULL;
        return gbx_fail(GBX_IO, "mapping memory shared with glassbox-call: %s", strerror(errno));
    }
    return NULL;
}

static gbx_status share_all(gbx_replay_child *child) {
    void *mapped;
    GBX_TRY(share("glassbox-board", sizeof *child->board, &child->board_fd, &mapped));
    child->board = mapped;
    for (int i = 0; i < GBX_BATCH_SLOTS; ++i) {
        GBX_TRY(share("glassbox-batch", GBX_BATCH_BYTES, &child->batch_fds[i], &mapped));
        child->batches[i] = mapped;
    }
    child->kept_fd = gbx_above_standard_streams(memfd_create("glassbox-kept", MFD_CLOEXEC));
    if (child->kept_fd < 0)
        return gbx_fail(GBX_IO, "creating memory shared with glassbox-call: %s", strerror(errno));
    return NULL;
}

gbx_status gbx_replay_child_open(gbx_replay_child *child) {
    gbx_status status = share_all(child);
    if (status)
        gbx_replay_child_close(child);
    return status;
}

/* --- ending --- */

void gbx_replay_child_reap(gbx_replay_child *child, gbx_replay_end *out_end) {
    siginfo_t info = {0};
    if (child->pid == 0)
        return;
    /* Not reaped yet, so the group still has its number. */
    kill(-child->pid, SIGKILL);
    int result;
    do
        result = waitid(P_PID, (id_t)child->pid, &info, WEXITED);
    while (result != 0 && errno == EINTR);
    if (out_end) {
        bool was_killed = result == 0 && info.si_code != CLD_EXITED;
        out_end->ending = was_killed ? GBX_REPLAY_KILLED : GBX_REPLAY_EXITED;
        out_end->value = result == 0 ? info.si_status : -1;
    }
    child->pid = 0;
    close(child->socket);
    child->socket = -1;
    if (child->pid_fd >= 0)
        close(child->pid_fd);
    child->pid_fd = -1;
}

void gbx_replay_child_close(gbx_replay_child *child) {
    gbx_replay_child_reap(child, NULL);
    if (child->board)
        munmap(child->board, sizeof *child->board);
    if (child->board_fd >= 0)
        close(child->board_fd);
    for (int i = 0; i < GBX_BATCH_SLOTS; ++i) {
        if (child->batches[i])
            munmap(child->batches[i], GBX_BATCH_BYTES);
        if (child->batch_fds[i] >= 0)
            close(child->batch_fds[i]);
    }
    if (child->kept_fd >= 0)
        close(child->kept_fd);
    const bool is_silent = child->is_silent;
    *child = gbx_replay_no_child;
    child->is_silent = is_silent;
}

/* --- starting --- */

static gbx_status spawn_with_socket(gbx_replay_child *child, const char *path, int payload_fd) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
        return gbx_fail(GBX_IO, "starting %s: %s", path, strerror(errno));
    child->socket = gbx_above_standard_streams(sockets[0]);
    int theirs = gbx_above_standard_streams(sockets[1]);
    int error = child->socket < 0 || theirs < 0 ? errno : 0;
    if (!error) {
        /* Output of kernels goes to our standard error, if anywhere: standard output is for
         * glassbox.
         */
        char name[] = "glassbox-call";
        char serve[] = GBX_WORKER_SERVE;
        char *const arguments[] = {name, serve, NULL};
        const int descriptors[] = {[GBX_WORKER_SOCKET_FD - GBX_SPAWN_FIRST_FD] = theirs,
                                   [GBX_WORKER_BOARD_FD - GBX_SPAWN_FIRST_FD] = child->board_fd,
                                   [GBX_WORKER_BATCH_FD - GBX_SPAWN_FIRST_FD] = child->batch_fds[0],
                                   [GBX_WORKER_BATCH_FD + 1 - GBX_SPAWN_FIRST_FD] =
                                       child->batch_fds[1],
                                   [GBX_WORKER_KEPT_FD - GBX_SPAWN_FIRST_FD] = child->kept_fd,
                                   [GBX_WORKER_PAYLOAD_FD - GBX_SPAWN_FIRST_FD] = payload_fd};
        gbx_spawn_order order = {.path = path,
                                 .arguments = arguments,
                                 .descriptors = descriptors,
                                 .descriptor_count = sizeof descriptors / sizeof descriptors[0],
                                 .is_output_ours = true,
                                 .is_silent = child->is_silent};
        error = gbx_spawn(&order, &child->pid);
    }
    if (theirs >= 0)
        close(theirs);
    if (!error) {
        child->pid_fd = gbx_above_standard_streams((int)syscall(SYS_pidfd_open, child->pid, 0));
        if (child->pid_fd >= 0)
            return NULL;
        gbx_status status = gbx_fail(GBX_IO, "watching glassbox-call: %s", strerror(errno));
        gbx_replay_child_reap(child, NULL);
        return status;
    }
    if (child->socket >= 0)
        close(child->socket);
    child->socket = -1;
    child->pid = 0;
    return gbx_fail(GBX_IO, "starting %s: %s", path, strerror(error));
}

static gbx_status start(gbx_replay_child *child, const char *program, int payload_fd) {
    char path[PATH_MAX];
    gbx_program_path_query name = {.program = "glassbox-call",
                                   .variable = "GLASSBOX_CALL",
                                   .doing = "calling kernels",
                                   .configured = program};
    gbx_worker_board *board = child->board;
    GBX_TRY(gbx_program_path_find(&name, path));
    /* A board of the process before must not be taken for that of the next. */
    board->fault = (gbx_call_fault){0};
    atomic_store_explicit(&board->is_loading, 0, memory_order_relaxed);
    atomic_store_explicit(&board->slot, UINT32_MAX, memory_order_relaxed);
    atomic_store_explicit(&board->began_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&board->wait_count, 0, memory_order_relaxed);
    GBX_TRY(spawn_with_socket(child, path, payload_fd));
    gbx_log_debug("process %d runs %s", (int)child->pid, path);
    return NULL;
}

/* --- talking --- */

/* A process that has ended does not get the message; it is missed when its end is noticed, with all
 * others that it did not answer. */
gbx_status gbx_replay_child_order(gbx_replay_child *child, const char *program, int payload_fd,
                                  uint32_t slot) {
    if (child->pid == 0)
        GBX_TRY(start(child, program, payload_fd));
    gbx_worker_message message = {
        .magic = GBX_WORKER_MAGIC, .slot = slot, .number = ++child->number};
    child->numbers[slot] = message.number;
    (void)send(child->socket, &message, sizeof message, MSG_NOSIGNAL);
    return NULL;
}

bool gbx_replay_child_receive(gbx_replay_child *child, gbx_worker_message *out_message) {
    ssize_t bytes = recv(child->socket, out_message, sizeof *out_message, MSG_DONTWAIT);
    return bytes == (ssize_t)sizeof *out_message && out_message->magic == GBX_WORKER_MAGIC &&
           out_message->slot < GBX_BATCH_SLOTS;
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
        snprintf(where, sizeof where, " at 0x%" PRIx64 "%s", fault->address,
                 noted->access == GBX_CALL_ACCESS_STACK ? ": its stack is full" : "");
    else if (fault->signal == SIGSEGV)
        snprintf(where, sizeof where, " at an invalid address, or sent by another process");
    const char *form =
        is_of_dispatch ? "kernel %.96s crashed (%s): %s%s"
                       : "a thread started by a kernel crashed while kernel %.96s ran (%s): %s%s";
    snprintf(fault->text, sizeof fault->text, form, at->kernel, at->place,
             signal_name(fault->signal, name), where);
}

static void describe_ending(const culprit *at, const gbx_replay_end *end, uint32_t running_count,
                            gbx_replay_fault *fault) {
    char how[HOW_BYTES];
    char name[SIGNAL_TEXT_BYTES];
    if (end->ending == GBX_REPLAY_KILLED) {
        fault->signal = end->value;
        snprintf(how, sizeof how, "with %s", signal_name(end->value, name));
    } else {
        snprintf(how, sizeof how, "with exit code %d", end->value);
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

static gbx_status fail_loading(const gbx_replay_request *request, const gbx_replay_end *end,
                               const gbx_call_fault *noted) {
    char name[SIGNAL_TEXT_BYTES];
    bool is_noted = atomic_load_explicit(&noted->kind, memory_order_acquire) == GBX_CALL_SIGNAL;
    int number = is_noted ? (int)noted->signal : end->value;
    const char *how = "it ended the process";
    if (end->ending == GBX_REPLAY_SILENT)
        how = "it did not return in time";
    else if (is_noted || end->ending == GBX_REPLAY_KILLED)
        how = signal_name(number, name);
    return gbx_fail(GBX_BAD_KERNEL,
                    "loading the kernels of task %" PRIu64
                    ": a constructor of a shared object failed: %s",
                    request->task->task, how);
}

/* Where dispatches wait, as dispatches of the task. */
static void take_waits(const gbx_replay_request *request, const gbx_worker_board *board,
                       gbx_replay_fault *fault) {
    uint32_t count = atomic_load_explicit(&board->wait_count, memory_order_acquire);
    for (uint32_t i = 0; i < count && i < GBX_CALL_WAITING; ++i) {
        gbx_call_wait wait = board->waits[i];
        if (wait.dispatch >= gbx_replay_request_count(request))
            continue;
        wait.dispatch += gbx_replay_request_first(request);
        fault->waits[fault->wait_count++] = wait;
    }
}

/* How a process ended, as far as it noted it itself. */
typedef struct note {
    const gbx_call_fault *fault;
    uint32_t kind;          /* gbx_call_fault_kind */
    uint32_t first;         /* of the dispatches that ran; UINT32_MAX if none did */
    uint32_t running_count; /* of them */
    bool is_between;        /* no call was being made */
} note;

/* A kernel may have overwritten the board: its numbers are checked. */
static note read_note(const gbx_replay_request *request, const gbx_worker_board *board,
                      const gbx_replay_end *end) {
    uint32_t count = gbx_replay_request_count(request);
    note n = {.fault = &board->fault, .first = UINT32_MAX};
    n.is_between = atomic_load_explicit(&board->began_ns, memory_order_acquire) == 0;
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t state = atomic_load_explicit(&board->states[i], memory_order_acquire);
        if (state == GBX_CALL_RUNS && n.running_count++ == 0)
            n.first = i;
    }
    if (end->ending != GBX_REPLAY_EXITED)
        return n;
    uint32_t kind = atomic_load_explicit(&n.fault->kind, memory_order_acquire);
    bool is_known =
        kind == GBX_CALL_SIGNAL || kind == GBX_CALL_THREAD_END || kind == GBX_CALL_STUCK;
    if (end->value == GBX_CALL_FAULT_EXIT && is_known)
        n.kind = kind;
    uint32_t exiting = atomic_load_explicit(&n.fault->exiting, memory_order_relaxed) - 1;
    if (!n.kind && exiting < count) {
        n.first = exiting;
        n.running_count = 1;
    }
    return n;
}

/* The process failed although no call was being made. */
static gbx_status describe_between(const culprit *at, const note *n, const gbx_replay_end *end,
                                   const gbx_replay_request *request, gbx_replay_fault *fault) {
    char name[SIGNAL_TEXT_BYTES];
    bool is_noted = n->kind == GBX_CALL_SIGNAL;
    const char *how = end->ending == GBX_REPLAY_STUCK ? "it does not go on" : "it ended";
    if (is_noted || end->ending == GBX_REPLAY_KILLED)
        how = signal_name(is_noted ? (int)n->fault->signal : end->value, name);
    if (is_noted && n->fault->signal == SIGBUS)
        return gbx_fail(GBX_BAD_FORMAT,
                        "reading the payload of task %" PRIu64
                        ": the file has become shorter, or cannot be read (SIGBUS); run glassbox "
                        "verify",
                        request->task->task);
    fault->signal = is_noted ? (int)n->fault->signal : 0;
    snprintf(fault->text, sizeof fault->text,
             "after kernel %.96s had returned (%s), its process failed: %s; the kernel damaged "
             "memory of the process, or left a thread behind",
             at->kernel, at->place, how);
    return NULL;
}

static gbx_status describe(const culprit *at, const note *n, const gbx_replay_end *end,
                           const gbx_replay_request *request, int64_t timeout_ns,
                           gbx_replay_fault *fault) {
    bool is_of_dispatch = n->kind && n->fault->dispatch < gbx_replay_request_count(request);
    if (end->ending == GBX_REPLAY_STUCK || (n->is_between && end->ending != GBX_REPLAY_SILENT))
        return describe_between(at, n, end, request, fault);
    if (n->kind == GBX_CALL_SIGNAL)
        describe_signal(at, n->fault, is_of_dispatch, fault);
    else if (n->kind == GBX_CALL_THREAD_END)
        snprintf(fault->text, sizeof fault->text,
                 "kernel %.96s ended its thread (%s): pthread_exit; it must return instead",
                 at->kernel, at->place);
    else if (n->kind == GBX_CALL_STUCK)
        snprintf(fault->text, sizeof fault->text,
                 "kernel %.96s waits for a flag that nothing sets (%s)", at->kernel, at->place);
    else if (fault->is_hang)
        snprintf(fault->text, sizeof fault->text, "kernel %.96s did not return within %.6g s (%s)",
                 at->kernel, (double)timeout_ns / 1e9, at->place);
    else if (end->ending == GBX_REPLAY_UNLINKED)
        snprintf(fault->text, sizeof fault->text,
                 "kernel %.96s closed descriptors of its process that it did not open (%s)",
                 at->kernel, at->place);
    else
        describe_ending(at, end, n->running_count, fault);
    return NULL;
}

gbx_status gbx_replay_fault_describe(const gbx_replay_request *request,
                                     const gbx_replay_child *child, const gbx_replay_end *end,
                                     int64_t timeout_ns, gbx_replay_fault *out_fault) {
    uint32_t count = gbx_replay_request_count(request);
    const note n = read_note(request, child->board, end);
    if (atomic_load_explicit(&child->board->is_loading, memory_order_relaxed))
        return fail_loading(request, end, n.fault);
    bool is_of_dispatch = n.kind && n.kind != GBX_CALL_STUCK && n.fault->dispatch < count;
    uint32_t dispatch = is_of_dispatch ? n.fault->dispatch : n.first < count ? n.first : 0;
    *out_fault = (gbx_replay_fault){
        .is_hang = end->ending == GBX_REPLAY_SILENT || n.kind == GBX_CALL_STUCK,
        .is_stuck = n.kind == GBX_CALL_STUCK,
        .access = n.kind == GBX_CALL_SIGNAL ? n.fault->access : GBX_CALL_ACCESS_UNKNOWN,
        .step = atomic_load(&child->board->step),
        .run = atomic_load(&child->board->run),
        .dispatch = gbx_replay_request_first(request) + dispatch};
    take_waits(request, child->board, out_fault);
    const gbx_replay_dispatch *from = &request->task->dispatches[out_fault->dispatch];
    culprit at = {.kernel = request->task->kernel_names[from->subtask]};
    int used = snprintf(at.place, PLACE_BYTES, "block %" PRIu32 ", %s", from->block_idx,
                        gbx_name_of(&gbx_subtasks, from->subtask));
    if (out_fault->is_hang && n.running_count > 1)
        snprintf(at.place + used, PLACE_BYTES - (size_t)used, ", while %" PRIu32 " more ran",
                 n.running_count - 1);
    GBX_TRY(describe(&at, &n, end, request, timeout_ns, out_fault));
    gbx_text_make_plain(out_fault->text);
    return NULL;
}
