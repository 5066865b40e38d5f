/*
 * Checks every access of a kernel to global memory against the plan of a call, byte by byte, and
 * says each place in the code that breaks it, once. Part of the program that calls kernels, which
 * is compiled without a sanitizer for it; kernels are compiled so that each load and store calls a
 * function of watch_calls.c.
 */
#ifndef GBX_REPLAY_SANITIZE_WATCH_H
#define GBX_REPLAY_SANITIZE_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include "replay/call.h"
#include "replay/sanitize/plan.h"

typedef struct gbx_watch {
    const gbx_kernel_call *call;  /* borrowed until the process ends, like the ranges */
    const gbx_plan_range *ranges; /* in any order */
    size_t range_count;
    void (*say)(const char *format, ...) __attribute__((format(printf, 1, 2))); /* a line */
} gbx_watch;

/* Before the first call; 0, or -1 without memory. Catches fatal signals, too, and says where. */
int gbx_watch_begin(const gbx_watch *watch);

/* Says how often each place was seen that was seen more than once. */
void gbx_watch_end(void);

/* What a kernel does with `bytes` bytes, and the address in its code to which it returns. Any
 * thread, at any time. */
void gbx_watch_read(const volatile void *address, uint64_t bytes, const void *code);
void gbx_watch_write(const volatile void *address, uint64_t bytes, const void *code);

#endif
