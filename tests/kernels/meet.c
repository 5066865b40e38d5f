/*
 * Meets other kernels at flags, which are cells (int64) of the buffer of tensor 0: increments the
 * first cell of its view, then waits until cell number scalar 1 of the buffer has reached scalar 2.
 * The second cell of the view gets the result: 1 if they met, 2 if the other did not come within
 * scalar 3 milliseconds (0: waits forever). All subtasks and blocks of a task use the same flag.
 */
#define _GNU_SOURCE
#include <time.h>

#include <glassbox/kernel.h>

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *mine = gbx_arg_tensor(args, 0);
    int64_t *buffer = (int64_t *)(uintptr_t)mine->data;
    int64_t *cells = buffer + mine->start_offset;
    const uint32_t *other = (const uint32_t *)&buffer[args[1]];
    int64_t end_ms = args[3] ? now_ms() + gbx_arg_i64(args, 3) : INT64_MAX;
    gbx_flag_add((uint32_t *)&cells[0], 1);
    while (__atomic_load_n(other, __ATOMIC_ACQUIRE) < args[2] && now_ms() < end_ms)
        sched_yield();
    int64_t found = __atomic_load_n(other, __ATOMIC_ACQUIRE) < args[2] ? 2 : 1;
    if (found == 2 || __atomic_load_n(&cells[1], __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&cells[1], found, __ATOMIC_RELAXED);
}
