/* OpenMP: one thread submits tasks with `depend` clauses, all run them. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tasks.h"

/* Called and not inlined, as a kernel is. */
__attribute__((noinline)) static void no_op(const float *own) {
    __asm__ volatile("" : : "r"(own) : "memory");
}

typedef float tensor[TENSOR_ELEMENTS];

static void submit(tensor *tensors, const int32_t *row, uint32_t index) {
    float *own = tensors[index];
    switch (row_input_count(row)) {
    case 0:
#pragma omp task depend(out : own[0])
        no_op(own);
        break;
    case 1:
#pragma omp task depend(in : tensors[row[0]][0]) depend(out : own[0])
        no_op(own);
        break;
    default:
#pragma omp task depend(in : tensors[row[0]][0], tensors[row[1]][0]) depend(out : own[0])
        no_op(own);
        break;
    }
}

static double run_once(const workload *work, tensor *tensors) {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
#pragma omp parallel
#pragma omp single
    {
        start_ns = gbx_clock_ns();
        uint32_t row = 0;
        for (uint64_t i = 0; i < work->tasks; ++i) {
            submit(tensors, work->inputs + (size_t)row * MAX_INPUTS, row);
            row = row + 1 < work->rows ? row + 1 : 0;
        }
#pragma omp taskwait
        end_ns = gbx_clock_ns();
    }
    return (double)(end_ns - start_ns);
}

bool measure_openmp(const setting *how, const workload *work, timing *out_timing) {
    tensor *tensors = calloc(work->rows, sizeof *tensors);
    double times_ns[MAX_REPEATS];
    if (!tensors) {
        fprintf(stderr, "bench_tasks: OpenMP: no memory for %u tensors\n", work->rows);
        return false;
    }
    run_once(work, tensors);
    for (uint32_t i = 0; i < how->repeats; ++i)
        times_ns[i] = run_once(work, tensors);
    out_timing->run_ns = median(times_ns, how->repeats);
    free(tensors);
    return true;
}
