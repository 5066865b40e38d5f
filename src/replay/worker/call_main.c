/*
 * glassbox-call calls kernels, in a process that may crash.
 *
 *     glassbox-call FILE       once, from a call file; catches no faults, so that a debugger can
 *     glassbox-call --serve    as often as the engine that started it asks
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "replay/engine/call_file.h"
#include "replay/worker/pattern.h"
#include "replay/worker/worker.h"

enum { EXIT_USAGE = 2, STACK_BYTES = 8 << 20 };

/* Kernels that wait for each other call it: gbx_flag_wait yields. */
__attribute__((visibility("default"))) int sched_yield(void) {
    return gbx_waits_yield();
}

static int complain(const char *path, const char *what) {
    fprintf(stderr, "glassbox-call: %s: %s\n", path, what);
    return EXIT_USAGE;
}

/* --- a file --- */

static int call_file(const char *path) {
    gbx_loaded_call loaded;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return complain(path, strerror(errno));
    bool is_made = !gbx_loaded_call_read(fd, &loaded) && !gbx_kernel_call_map(&loaded.call, -1) &&
                   !gbx_loaded_call_fill(&loaded, fd) && !gbx_kernel_call_load(&loaded.call) &&
                   !gbx_kernel_call_run(&loaded.call);
    if (!is_made)
        complain(path, loaded.call.error);
    gbx_loaded_call_free(&loaded);
    close(fd);
    return is_made ? 0 : EXIT_USAGE;
}

/* --- an engine --- */

/* Kills this process, and those that kernels started, when the engine is gone. */
static void *lifeline_main(void *unused) {
    struct pollfd watched = {.fd = GBX_WORKER_SOCKET_FD, .events = POLLRDHUP};
    (void)unused;
    while (poll(&watched, 1, -1) < 0 && errno == EINTR)
        ;
    if (getpgrp() == getpid())
        kill(0, SIGKILL);
    _exit(0);
}

static void *map_file(int fd, uint64_t bytes, int protection) {
    void *mapped = bytes > 0 ? mmap(NULL, bytes, protection, MAP_SHARED, fd, 0) : MAP_FAILED;
    return mapped == MAP_FAILED ? NULL : mapped;
}

static uint64_t size_of(int fd) {
    struct stat about;
    return fstat(fd, &about) == 0 && about.st_size > 0 ? (uint64_t)about.st_size : 0;
}

/* False if something else than an engine started this program. */
static bool open_worker(gbx_worker *worker) {
    const int both = PROT_READ | PROT_WRITE;
    worker->board = map_file(GBX_WORKER_BOARD_FD, sizeof *worker->board, both);
    for (int i = 0; i < GBX_BATCH_SLOTS; ++i)
        worker->batches[i] = map_file(GBX_WORKER_BATCH_FD + i, GBX_BATCH_BYTES, both);
    worker->payloads.dump_bytes = size_of(GBX_WORKER_PAYLOAD_FD);
    worker->payloads.dump = map_file(GBX_WORKER_PAYLOAD_FD, worker->payloads.dump_bytes, PROT_READ);
    worker->screens = gbx_screens_create();
    return worker->board && worker->batches[0] && worker->batches[1] && worker->screens &&
           (worker->payloads.dump || worker->payloads.dump_bytes == 0);
}

/* The engine resizes the file of kept payloads between batches. */
static void map_kept(gbx_worker *worker) {
    uint64_t bytes = size_of(GBX_WORKER_KEPT_FD);
    if (bytes == worker->payloads.kept_bytes)
        return;
    if (worker->payloads.kept)
        munmap(worker->payloads.kept, worker->payloads.kept_bytes);
    worker->payloads.kept = map_file(GBX_WORKER_KEPT_FD, bytes, PROT_READ | PROT_WRITE);
    worker->payloads.kept_bytes = worker->payloads.kept ? bytes : 0;
}

static void on_fault(uint64_t address) {
    gbx_waits_on_fault(address);
    gbx_examine_on_fault();
}

static int serve(void) {
    static gbx_worker worker; /* too large for the stack */
    pthread_t lifeline;
    if (!open_worker(&worker))
        return complain(GBX_WORKER_SERVE, "only glassbox starts it like this");
    for (int fd = GBX_WORKER_SOCKET_FD; fd <= GBX_WORKER_PAYLOAD_FD; ++fd)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (pthread_create(&lifeline, NULL, lifeline_main, NULL) != 0)
        return complain(GBX_WORKER_SERVE, "cannot start a thread");
    pthread_detach(lifeline);
    worker.pid = getpid();
    gbx_kernel_call_catch_faults(&worker.board->fault, on_fault);
    for (;;) {
        gbx_worker_message message;
        ssize_t bytes = recv(GBX_WORKER_SOCKET_FD, &message, sizeof message, 0);
        if (bytes < 0 && errno == EINTR)
            continue;
        if (bytes != (ssize_t)sizeof message || message.magic != GBX_WORKER_MAGIC ||
            message.slot >= GBX_BATCH_SLOTS)
            _exit(0);
        map_kept(&worker);
        gbx_worker_answer(&worker, &message);
        fflush(NULL); /* output of kernels must appear before the engine goes on */
        send(GBX_WORKER_SOCKET_FD, &message, sizeof message, MSG_NOSIGNAL);
    }
}

/* Kernels also run on this thread: endless recursion must reach the end of the stack. */
static void bound_stack(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY)
        return;
    limit.rlim_cur = STACK_BYTES;
    setrlimit(RLIMIT_STACK, &limit);
}

int main(int argument_count, char **arguments) {
    if (argument_count != 2) {
        fputs("usage: glassbox-call FILE\n", stderr);
        return EXIT_USAGE;
    }
    bound_stack();
    setvbuf(stdout, NULL, _IOLBF, 0); /* so that output of a kernel survives its crash */
    return strcmp(arguments[1], GBX_WORKER_SERVE) == 0 ? serve() : call_file(arguments[1]);
}
