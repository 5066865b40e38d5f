/*
 * bench_replay: how fast tasks of a dump are called again. The limit is a bare loop in this
 * program, which restores inputs and calls kernels, and does nothing else; `glassbox replay` and
 * `glassbox check` are measured on the same dump.
 */
#ifndef GBX_BENCH_REPLAY_H
#define GBX_BENCH_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/kernel.h>

#include "base/status.h"

enum { PATH_BYTES = 4096, MAX_ROUNDS = 9, NAME_BYTES = 64, MAX_KERNELS = 64 };

/* --- plan.c: all that the loop needs to know about a dump, read before the clock starts --- */

#define NOWHERE UINT64_MAX

/* Which functions the loop calls. */
typedef enum plan_functions { KERNELS, REFERENCES } plan_functions;

typedef struct plan_kernel {
    uint32_t func_id;
    void (*entries[2])(const uint64_t *args); /* by plan_functions */
} plan_kernel;

/* A scalar or a tensor of a task. Offsets are those of the payload file. */
typedef struct plan_argument {
    gbx_tensor tensor;
    uint64_t word;    /* for args[], of a scalar */
    uint64_t address; /* of a contiguous tensor: its first byte; 0 if it is strided */
    uint64_t bytes;   /* of payload; 0 for a scalar */
    uint64_t before;  /* offset of what it holds before the call; NOWHERE for an output */
    uint64_t after;   /* offset of what it holds after the call; NOWHERE for an input */
    uint32_t slot;    /* of args[] */
    bool is_tensor;
} plan_argument;

typedef struct plan_call {
    gbx_local_context local;
    uint32_t kernel; /* of plan.kernels */
} plan_call;

typedef struct plan_task {
    uint64_t number; /* for --task */
    uint64_t first_argument;
    uint64_t first_call;
    uint32_t argument_count;
    uint32_t call_count;
} plan_task;

typedef struct plan {
    char scene[NAME_BYTES];
    char case_name[NAME_BYTES];
    plan_kernel kernels[MAX_KERNELS];
    size_t kernel_count;
    bool has_references; /* of every kernel */
    plan_task *tasks;
    uint64_t task_count;
    uint64_t task_room;
    plan_argument *arguments;
    uint64_t argument_count;
    uint64_t argument_room;
    plan_call *calls;
    uint64_t call_count;
    uint64_t call_room;
    gbx_global_context global;
    const unsigned char *payload; /* the file, mapped */
    uint64_t payload_bytes;
    uint64_t largest_bytes;  /* of any tensor */
    uint64_t restored_bytes; /* of all tasks */
} plan;

/*
 * Reads all tasks of a dump, maps its payload, and loads kernels and, if they are wanted,
 * references; says on stderr why these cannot be used. Fails if a task cannot be called, or if it
 * has several kernels: they may wait for each other, and the loop makes one call at a time. Process
 * exit frees the plan.
 */
GBX_MUST_USE gbx_status make_plan(const char *directory, bool wants_references, plan *out_plan);

/* --- loop.c --- */

typedef struct pace {
    double median_s;
    double best_s;
} pace;

typedef struct loop_figures {
    char scene[NAME_BYTES];
    char case_name[NAME_BYTES];
    uint64_t task_count;
    uint64_t call_count;
    uint64_t middle_task; /* for --task */
    uint64_t restored_bytes;
    unsigned processes;
    pace loop;  /* restore inputs and inouts, and call */
    pace calls; /* only call */
    uint64_t output_count;
    uint64_t different_count; /* outputs that are not those of the dump: must be 0 */
    bool has_references;
    pace references; /* the same loop with references instead of kernels */
} loop_figures;

/* Measures in processes of their own, so that this one stays small; false after a message.
 * References only if they are wanted: they are slow. */
bool measure_loop(const char *directory, unsigned rounds, bool wants_references,
                  loop_figures *out_figures);

/* Of `count` values, which it sorts. */
double median(double *values, unsigned count);

/* --- command.c: other programs --- */

typedef struct outcome {
    double seconds;  /* from fork to end, the median */
    double peak_mib; /* the highest */
} outcome;

/* Runs a program `rounds` times, with its output discarded; false after a message if it does not
 * end with 0. */
bool measure_program(const char *const *arguments, unsigned rounds, outcome *out_outcome);

/* Waits for a child, and ends it when a signal came; false if so. out_usage may be NULL. */
struct rusage;
bool wait_for(int pid, int *out_status, struct rusage *out_usage);

/* In a new child: it has no handlers, and ends when its parent ends. */
void begin_child(void);

#endif
