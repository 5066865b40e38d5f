#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

static void redirect_streams(posix_spawn_file_actions_t *actions) {
    posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (fcntl(STDERR_FILENO, F_GETFD) >= 0)
        posix_spawn_file_actions_adddup2(actions, STDERR_FILENO, STDOUT_FILENO);
    else
        posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
}

static void give_own_signals_and_group(posix_spawnattr_t *attributes) {
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
    posix_spawnattr_setpgroup(attributes, 0);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                             POSIX_SPAWN_SETPGROUP);
}

/* `descriptors` lie beyond all places that they get. */
static int spawn(const gbx_spawn_order *order, const int *descriptors, pid_t *out_pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    if (order->is_output_ours)
        redirect_streams(&actions);
    int next_fd = GBX_SPAWN_FIRST_FD;
    for (size_t i = 0; i < order->descriptor_count; ++i)
        posix_spawn_file_actions_adddup2(&actions, descriptors[i], next_fd++);
    posix_spawn_file_actions_addclosefrom_np(&actions, next_fd);
    give_own_signals_and_group(&attributes);
    int error = posix_spawn(out_pid, order->path, &actions, &attributes, order->arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Copies, so that no descriptor lies where another one, or a stream, goes before its turn. */
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
