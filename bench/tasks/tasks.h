/*
 * bench_tasks: the cost of a task that does nothing, on glassbox and on two peers. Every
 * measurement runs in a process of its own, without the threads of others.
 */
#ifndef GBX_BENCH_TASKS_H
#define GBX_BENCH_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_INPUTS = 2, NO_INPUT = -1, TENSOR_ELEMENTS = 16, MAX_REPEATS = 9 };

/*
 * A graph. Task i reads the tensors of row i % rows and writes tensor i % rows. With as many rows
 * as tasks each has a tensor of its own; with fewer the tensors are used in turn.
 */
typedef struct workload {
    const char *name;
    uint64_t tasks;
    uint32_t rows;
    int32_t *inputs; /* MAX_INPUTS a row, the first ones set; NO_INPUT for none */
} workload;

/* Each makes `tasks` tasks over `rows` tensors; they end the program when memory is out. */
workload workload_independent(uint64_t tasks);
workload workload_chain(uint64_t tasks);

/* Two different inputs of the REACH tensors before, at random, the same ones each time; around the
 * ring where there are fewer rows than tasks. */
workload workload_dag(const char *name, uint64_t tasks, uint32_t rows);
void workload_free(workload *work);

static inline uint32_t row_input_count(const int32_t *row) {
    return (uint32_t)(row[0] != NO_INPUT) + (uint32_t)(row[1] != NO_INPUT);
}

/* Of a run, from the first submit until the last task is done. */
typedef struct timing {
    double run_ns;
    double host_ns;      /* glassbox: of the call on the host; run_ns is that on the chip */
    uint64_t peak_bytes; /* glassbox: peak memory of the chip process */
} timing;

typedef struct setting {
    uint32_t repeats;    /* 1 to MAX_REPEATS */
    const char *scratch; /* a temporary directory, removed at the end */
} setting;

/*
 * Runs a workload once to warm up, then `repeats` times; medians. False after a message on stderr.
 * Called in a process without threads that ends after it.
 */
typedef bool (*measure_function)(const setting *how, const workload *work, timing *out_timing);

bool measure_glassbox(const setting *how, const workload *work, timing *out_timing);
bool measure_openmp(const setting *how, const workload *work, timing *out_timing);
bool measure_starpu(const setting *how, const workload *work, timing *out_timing);

/* Calls `measure` in a process of its own; false when it failed or its process did. */
bool measure_apart(measure_function measure, const setting *how, const workload *work,
                   timing *out_timing);

/* Of up to MAX_REPEATS times, which it sorts. */
double median(double *times_ns, uint32_t count);

#endif
