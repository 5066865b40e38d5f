/*
 * bench_hooks: what the hooks of the scheduler cost without a dump, by counting instructions.
 */
#ifndef GBX_BENCH_HOOKS_H
#define GBX_BENCH_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

/* What callgrind counted in one run. */
typedef struct counts {
    uint64_t scheduler;    /* instructions of the functions of src/sched, without those they call */
    uint64_t program;      /* of all */
    uint64_t attach_calls; /* of attach_writer, which makes a probe */
    uint64_t mmap_calls;
} counts;

/* Reads a file of callgrind; false when it is not one. */
bool counts_read(const char *path, counts *out_counts);

#endif
