/*
 * Fails in the way that scalar 1 gives, on the block that scalar 2 gives; all blocks first write
 * their index + 100 to tensor 0 (int32).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <glassbox/kernel.h>

#include "fault_ways.h"

static volatile int zero;
static volatile uintptr_t low_page; /* 0, hidden from the compiler */

__attribute__((noinline)) static int recurse(volatile int depth) {
    volatile char frame[4096];
    frame[0] = (char)depth;
    return recurse(depth + 1) + frame[0];
}

static void *store_on_thread(void *unused) {
    (void)unused;
    *(volatile int *)(low_page + 0x20) = 1;
    return NULL;
}

/* A page beyond the end of a mapped file. */
static void raise_bus(uint64_t *out) {
    int fd = memfd_create("empty", 0);
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    out[ADDRESS_AT] = (uint64_t)(page + 16);
    page[16] = 1;
}

void kernel_entry(const uint64_t *args) {
    const gbx_local_context *local = gbx_local(args);
    uint64_t *out = (uint64_t *)gbx_tensor_origin(gbx_arg_tensor(args, 0), sizeof *out);
    out[local->block_idx] = 100 + local->block_idx;
    if (local->block_idx != gbx_arg_u32(args, 2) || local->subtask != gbx_arg_u32(args, 3))
        return;
    out[CORE_AT] = local->core_id;
    out[ADDRESS_AT] = (uint64_t)(uintptr_t)&kernel_entry;
    pthread_t thread;
    pid_t child;
    switch (gbx_arg_i64(args, 1)) {
    case FAIL_STORE:
        out[ADDRESS_AT] = 0x10;
        *(volatile int *)(low_page + 0x10) = 1;
        break;
    case FAIL_BUS:
        raise_bus(out);
        break;
    case FAIL_DIVIDE:
        zero = 1000 / zero; /* the compiler turns 1 / x into a comparison */
        break;
    case FAIL_INSTRUCTION:
        __builtin_trap();
        break;
    case FAIL_ABORT:
        abort();
    case FAIL_STACK:
        zero = recurse(0);
        break;
    case FAIL_SIGNALLED_HANG:
        kill(getppid(), SIGUSR1);
        for (;;)
            sched_yield();
    case FAIL_HANG:
        for (;;)
            sched_yield();
    case FAIL_EXIT:
        exit(7);
    case FAIL_THREAD:
        pthread_create(&thread, NULL, store_on_thread, NULL);
        pthread_join(thread, NULL);
        break;
    case FAIL_CONTROL:
        /* The chip's control block is the first thing in global memory. */
        memset((void *)gbx_global(args)->gm_base, 0x5a, 64);
        break;
    case FAIL_KILL:
        kill(getpid(), SIGKILL);
        break;
    case FAIL_FREE:
        free(out);
        break;
    case FAIL_SIGNALLED_SLEEP:
        kill(getppid(), SIGUSR1);
        usleep(300 * 1000);
        break;
    case FAIL_SLEEP:
        usleep(300 * 1000);
        break;
    case FAIL_NOT_CANONICAL:
        *(volatile int *)0xdead000000000000 = 1;
        break;
    case FAIL_SCRIBBLE_CALL:
        /* The host's request is right before the first tensor. */
        memset((char *)(uintptr_t)args[0] - 64, 0xff, 24);
        break;
    case FAIL_FORK:
        child = fork();
        if (child == 0)
            for (;;)
                pause();
        out[ADDRESS_AT] = (uint64_t)child;
        break;
    case FAIL_HEAP:
        memset(malloc(64), 0xff, 4096); /* over the heap's own bookkeeping */
        free(malloc(2000));
        free(malloc(100000));
        abort();
    case FAIL_THREAD_EXIT:
        pthread_exit(NULL);
    case FAIL_ERASE:
        for (uint64_t *word = (uint64_t *)gbx_global(args)->gm_base, *end = word + (1 << 17);
             word < end; ++word)
            *(volatile uint64_t *)word = 0;
        for (;;)
            sched_yield();
    case FAIL_RAISE:
        raise(SIGSEGV);
        break;
    case FAIL_CLOSE:
        close_range(3, 100, 0);
        break;
    }
}
