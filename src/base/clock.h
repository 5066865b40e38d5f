/* Time in nanoseconds since an arbitrary point; the same for all processes of a machine. */
#ifndef GBX_BASE_CLOCK_H
#define GBX_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define GBX_NS_PER_SECOND INT64_C(1000000000)
#define GBX_NS_PER_MS INT64_C(1000000)

/* Costs about 20 ns. Any thread, signal handlers too. */
static inline int64_t gbx_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * GBX_NS_PER_SECOND + now.tv_nsec;
}

static inline struct timespec gbx_timespec_of_ns(int64_t duration_ns) {
    struct timespec spec = {.tv_sec = duration_ns / GBX_NS_PER_SECOND,
                            .tv_nsec = duration_ns % GBX_NS_PER_SECOND};
    return spec;
}

#endif
