/*
 * glassbox-call makes the calls of one task, in a process that may crash.
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
#include <unistd.h>

#include "replay/engine/call_file.h"

enum { EXIT_USAGE = 2, STACK_BYTES = 8 << 20 };

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
    struct pollfd watched = {.fd = GBX_CALL_SOCKET_FD, .events = POLLRDHUP};
    (void)unused;
    while (poll(&watched, 1, -1) < 0 && errno == EINTR)
        ;
    if (getpgrp() == getpid())
        kill(0, SIGKILL);
    _exit(0);
}

/* Maps pages with content before the time is measured. */
static void touch_memory(const gbx_kernel_call *call) {
    off_t end = 0;
    for (;;) {
        off_t start = lseek(GBX_CALL_GM_FD, end, SEEK_DATA);
        if (start < 0 || (uint64_t)start >= call->gm_bytes)
            return;
        end = lseek(GBX_CALL_GM_FD, start, SEEK_HOLE);
        if (end < 0 || (uint64_t)end > call->gm_bytes)
            return;
        madvise((void *)(uintptr_t)(call->gm_base + (uint64_t)start), (size_t)(end - start),
                MADV_POPULATE_WRITE);
    }
}

/* State between calls. */
typedef struct server {
    gbx_call_board *board;
    gbx_kernel_call mapped; /* gm_base and gm_bytes of the mapping; 0 bytes: none */
} server;

/* Most calls need the same memory as the previous one. */
static int map_memory(server *s, gbx_kernel_call *call) {
    if (call->gm_base == s->mapped.gm_base && call->gm_bytes == s->mapped.gm_bytes)
        return 0;
    if (s->mapped.gm_bytes > 0)
        gbx_kernel_call_unmap(&s->mapped);
    s->mapped.gm_bytes = 0;
    if (gbx_kernel_call_map(call, GBX_CALL_GM_FD))
        return -1;
    s->mapped.gm_base = call->gm_base;
    s->mapped.gm_bytes = call->gm_bytes;
    return 0;
}

static int serve_call(server *s, gbx_loaded_call *loaded, gbx_call_answer *answer) {
    gbx_kernel_call *call = &loaded->call;
    gbx_call_board *board = s->board;
    answer->code = GBX_CALL_NOT_MADE;
    if (gbx_loaded_call_read(GBX_CALL_FILE_FD, loaded) || map_memory(s, call))
        return -1;
    touch_memory(call);
    call->states = board->states;
    answer->code = GBX_CALL_NOT_LOADED;
    atomic_store(&board->is_loading, 1);
    int result = gbx_kernel_call_load(call);
    atomic_store(&board->is_loading, 0);
    if (!result) {
        answer->code = GBX_CALL_NOT_MADE;
        result = gbx_kernel_call_run(call);
    }
    return result;
}

static int serve(void) {
    static server s; /* too large for the stack */
    gbx_call_order order;
    pthread_t lifeline;
    s.board = mmap(NULL, sizeof *s.board, PROT_READ | PROT_WRITE, MAP_SHARED, GBX_CALL_BOARD_FD, 0);
    if (s.board == MAP_FAILED)
        return complain(GBX_CALL_SERVE, "only glassbox starts it like this");
    for (int fd = GBX_CALL_SOCKET_FD; fd <= GBX_CALL_BOARD_FD; ++fd)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (pthread_create(&lifeline, NULL, lifeline_main, NULL) != 0)
        return complain(GBX_CALL_SERVE, "cannot start a thread");
    pthread_detach(lifeline);
    gbx_kernel_call_catch_faults(&s.board->fault);
    for (;;) {
        ssize_t bytes = recv(GBX_CALL_SOCKET_FD, &order, sizeof order, 0);
        if (bytes < 0 && errno == EINTR)
            continue;
        if (bytes != (ssize_t)sizeof order || order.magic != GBX_CALL_LINK_MAGIC)
            _exit(0);
        gbx_loaded_call loaded;
        gbx_call_answer answer = {.magic = GBX_CALL_LINK_MAGIC, .number = order.number};
        if (serve_call(&s, &loaded, &answer) == 0)
            answer.code = GBX_CALL_DONE;
        answer.ns = loaded.call.ns;
        memcpy(answer.error, loaded.call.error, sizeof answer.error);
        gbx_loaded_call_free(&loaded);
        fflush(NULL); /* output of kernels must appear before the engine goes on */
        send(GBX_CALL_SOCKET_FD, &answer, sizeof answer, MSG_NOSIGNAL);
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
    return strcmp(arguments[1], GBX_CALL_SERVE) == 0 ? serve() : call_file(arguments[1]);
}
