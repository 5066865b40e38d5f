/*
 * bench_capture: what a dump costs, compared with what the disk and the memory can do, measured by
 * the same program. Every run of a chip has a process of its own.
 */
#ifndef GBX_BENCH_CAPTURE_H
#define GBX_BENCH_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/glassbox.h>

#include "base/status.h"

enum { MAX_TENSORS_A_TASK = 4, SHIFT_BYTES = 64, SCALARS_A_TASK = 32, PATH_BYTES = 4096 };

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)

/* Settings of the program. */
typedef struct setting {
    char work[PATH_BYTES];   /* a temporary directory, removed at the end */
    char beside[PATH_BYTES]; /* where this program lies, and the command */
    const char *scenes;
    uint64_t total_bytes;    /* of payload in a run */
    uint64_t scalar_records; /* a multiple of SCALARS_A_TASK */
    unsigned char *source;   /* random bytes, source_bytes and a page, shared by all processes */
    uint64_t source_bytes;
    bool has_large;
} setting;

/* --- limits.c: GB/s, 0 after a message --- */

double measure_disk(const setting *how);
double measure_memcpy(const setting *how);

/* --- runs.c --- */

typedef struct plan {
    const char *platform;
    uint32_t threads;      /* AICPU threads */
    uint64_t tensor_bytes; /* 0: scalars */
    uint64_t total_bytes;
    uint64_t kernel_ns;   /* how long a kernel takes; 0: no time, and four tensors a task */
    gbx_dump_level level; /* GBX_DUMP_OFF: without a dump */
    uint64_t final_bytes; /* of one more tensor of the run, the source, which no task touches */
    gbx_role final_role;  /* a result of the run unless it is an input */
} plan;

static inline uint64_t tensors_a_task(const plan *what) {
    return what->kernel_ns ? 1 : MAX_TENSORS_A_TASK;
}

/* Of one run. */
typedef struct outcome {
    double whole_s;      /* from the call of gbx_chip_run to its return */
    double device_s;     /* of the graph on the chip */
    uint64_t peak_bytes; /* peak memory of the host without that of the chip */
    gbx_dump_totals totals;
} outcome;

/* Runs and checks what was dumped against the source; false after a message on stderr. */
bool run_apart(const setting *how, const plan *what, outcome *out_outcome);

/* --- check.c --- */

/* Whether the dump in `directory` is that of `what`: it has all records, and a sample of them
 * equals the source byte for byte. */
gbx_status check_dump(const setting *how, const plan *what, const char *directory);

/* Where a tensor lies in the source. */
static inline uint64_t window_offset(const setting *how, uint64_t tensor_bytes, uint64_t index) {
    uint64_t in_pass = how->source_bytes / tensor_bytes;
    return index % in_pass * tensor_bytes + index / in_pass * SHIFT_BYTES;
}

/* --- memory.c --- */

/* Watches the memory of this process that is not shared with the chip, from start to stop. */
typedef struct memory_watch memory_watch;
memory_watch *memory_watch_start(void);
uint64_t memory_watch_stop(memory_watch *watch);

/* --- record_cost.c --- */

/* What one record of a scalar costs the thread that captures it, in ns: the time of the hooks
 * without that of emptying buffers. 0 after a message. */
double measure_record_ns(void);

/* The same for a dispatch: two readings of the clock, its hooks, its record. */
double measure_dispatch_ns(void);

/* --- scenes.c --- */

/* Paged attention, run by the command. */
bool print_scenes(const setting *how);

/* What red zones, poison and checks of arguments cost it, without a dump and with one. */
bool print_guard(const setting *how, uint32_t rounds);

/* --- tables.c: false when something failed or was wrong --- */

/* Sorts them. */
double median(double *values, uint32_t count);

bool print_tensor_table(const setting *how, uint32_t repeats);
bool print_holding_table(const setting *how);
bool print_record_table(const setting *how);
bool print_result_table(const setting *how, uint32_t repeats);

/* --- main.c --- */

/* Removes what a run left in the work directory. */
void empty_work(const setting *how);

/* Prints a goal, what was reached and whether the goal is met; returns whether. */
bool print_goal(const char *name, double reached, bool is_at_least, double goal, const char *unit);

#endif
