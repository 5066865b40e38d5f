#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"

enum { PIECE_BYTES = 16384 };

typedef struct text {
    char *bytes;
    uint64_t size;
    uint64_t capacity;
} text;

/* Appends what a pipe has now; false at its end. */
static bool take(int fd, text *into, bool *out_is_out_of_memory) {
    if (!gbx_array_grow(&into->bytes, &into->capacity, into->size + PIECE_BYTES + 1, 1)) {
        *out_is_out_of_memory = true;
        return false;
    }
    ssize_t count = gbx_read_some(fd, into->bytes + into->size, PIECE_BYTES);
    if (count <= 0)
        return false;
    into->size += (size_t)count;
    return true;
}

static gbx_status drain(int out_fd, int err_fd, text *out, text *err) {
    struct pollfd pipes[2] = {{.fd = out_fd, .events = POLLIN}, {.fd = err_fd, .events = POLLIN}};
    text *const texts[2] = {out, err};
    bool is_out_of_memory = false;
    while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
        if (gbx_poll(pipes, 2, INT64_MAX) < 0)
            return gbx_fail(GBX_IO, "reading the output of a program: %s", strerror(errno));
        for (int i = 0; i < 2; ++i)
            if (pipes[i].fd >= 0 && pipes[i].revents &&
                !take(pipes[i].fd, texts[i], &is_out_of_memory))
                pipes[i].fd = -1;
    }
    if (is_out_of_memory || !out->bytes || !err->bytes)
        return gbx_fail_memory("reading the output of a program");
    out->bytes[out->size] = '\0';
    err->bytes[err->size] = '\0';
    return NULL;
}

/* A child has default signal handling, whatever is blocked or ignored here. */
static void init_attributes(posix_spawnattr_t *attributes, int flags) {
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(attributes);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
    posix_spawnattr_setflags(attributes,
                             (short)(flags | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
}

static int spawn_with_pipes(const char *directory, char *const *arguments, int out_fd, int err_fd,
                            pid_t *out_pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err_fd, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    if (directory)
        posix_spawn_file_actions_addchdir_np(&actions, directory);
    init_attributes(&attributes, 0);
    int error = posix_spawnp(out_pid, arguments[0], &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static gbx_status collect(const char *program, pid_t pid, gbx_process_result *out_result) {
    int status;
    pid_t ended = (pid_t)TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
    if (ended < 0 && errno == ECHILD)
        return gbx_fail(
            GBX_IO,
            "waiting for %s: this program ignores SIGCHLD or reaps all children, so its exit "
            "status is unknown; set SIGCHLD to its default meanwhile",
            program);
    if (ended < 0)
        return gbx_fail(GBX_IO, "waiting for %s: %s", program, strerror(errno));
    out_result->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    out_result->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return NULL;
}

/* Consumes the pipes. */
static gbx_status run_with_pipes(const char *directory, char *const *arguments,
                                 const int out_pipe[2], const int err_pipe[2],
                                 gbx_process_result *out_result) {
    pid_t pid;
    int error = spawn_with_pipes(directory, arguments, out_pipe[1], err_pipe[1], &pid);
    close(out_pipe[1]);
    close(err_pipe[1]);
    if (error) {
        close(out_pipe[0]);
        close(err_pipe[0]);
        return gbx_fail(GBX_NOT_FOUND, "running %s: %s", arguments[0], strerror(error));
    }
    text out = {0};
    text err = {0};
    gbx_status status = drain(out_pipe[0], err_pipe[0], &out, &err);
    close(out_pipe[0]); /* before waiting: a program must not block on a pipe without a reader */
    close(err_pipe[0]);
    out_result->out_text = out.bytes;
    out_result->out_size = out.size;
    out_result->err_text = err.bytes;
    return gbx_status_first(status, collect(arguments[0], pid, out_result));
}

/* False, with errno set and nothing open, when it cannot. */
static bool open_pipe(int ends[2]) {
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    ends[0] = gbx_above_standard_streams(ends[0]);
    ends[1] = gbx_above_standard_streams(ends[1]);
    if (ends[0] >= 0 && ends[1] >= 0)
        return true;
    int error = errno;
    close(ends[0] >= 0 ? ends[0] : ends[1]);
    errno = error;
    return false;
}

gbx_status gbx_process_run(char *const *arguments, gbx_process_result *out_result) {
    return gbx_process_run_in(NULL, arguments, out_result);
}

gbx_status gbx_process_run_in(const char *directory, char *const *arguments,
                              gbx_process_result *out_result) {
    *out_result = (gbx_process_result){.exit_code = -1};
    int out_pipe[2];
    int err_pipe[2];
    if (!open_pipe(out_pipe))
        return gbx_fail(GBX_IO, "running %s: %s", arguments[0], strerror(errno));
    if (!open_pipe(err_pipe)) {
        int error = errno;
        close(out_pipe[0]);
        close(out_pipe[1]);
        return gbx_fail(GBX_IO, "running %s: %s", arguments[0], strerror(error));
    }
    gbx_status status = run_with_pipes(directory, arguments, out_pipe, err_pipe, out_result);
    if (status)
        gbx_process_result_free(out_result);
    return status;
}

void gbx_process_result_free(gbx_process_result *result) {
    free(result->out_text);
    free(result->err_text);
    *result = (gbx_process_result){.exit_code = -1};
}

/* --- our own programs --- */

/* `descriptors` are above all the numbers they get in the child. */
static int spawn(const gbx_spawn_order *order, const int *descriptors, pid_t *out_pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    if (order->is_output_ours || order->is_silent)
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (order->is_silent) {
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    } else if (order->is_output_ours) {
        if (fcntl(STDERR_FILENO, F_GETFD) >= 0)
            posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
        else
            posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    }
    if (order->error_fd)
        posix_spawn_file_actions_adddup2(&actions, *order->error_fd, STDERR_FILENO);
    int next_fd = GBX_SPAWN_FIRST_FD;
    for (size_t i = 0; i < order->descriptor_count; ++i)
        posix_spawn_file_actions_adddup2(&actions, descriptors[i], next_fd++);
    posix_spawn_file_actions_addclosefrom_np(&actions, next_fd);
    init_attributes(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    int error = posix_spawn(out_pid, order->path, &actions, &attributes, order->arguments,
                            order->environment ? order->environment : environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Copies first, so that no descriptor sits on a number that another one is about to get. */
int gbx_spawn(const gbx_spawn_order *order, pid_t *out_pid) {
    int copies[GBX_SPAWN_MAX_DESCRIPTORS];
    size_t count = 0;
    int error = order->descriptor_count > GBX_SPAWN_MAX_DESCRIPTORS ? E2BIG : 0;
    while (!error && count < order->descriptor_count) {
        copies[count] = fcntl(order->descriptors[count], F_DUPFD_CLOEXEC,
                              GBX_SPAWN_FIRST_FD + GBX_SPAWN_MAX_DESCRIPTORS);
        if (copies[count] < 0)
            error = errno;
        else
            ++count;
    }
    if (!error)
        error = spawn(order, copies, out_pid);
    while (count > 0)
        close(copies[--count]);
    return error;
}
