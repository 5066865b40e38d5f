/* The graphs, made once and the same for all that run them. */
#include <stdio.h>
#include <stdlib.h>

#include "tasks.h"

enum { REACH = 1000 };

static workload workload_make(const char *name, uint64_t tasks, uint32_t rows) {
    workload work = {.name = name, .tasks = tasks, .rows = rows};
    work.inputs = malloc(sizeof(int32_t) * MAX_INPUTS * rows);
    if (!work.inputs) {
        fprintf(stderr, "bench_tasks: no memory for a graph of %u rows\n", rows);
        exit(2);
    }
    for (size_t i = 0; i < (size_t)rows * MAX_INPUTS; ++i)
        work.inputs[i] = NO_INPUT;
    return work;
}

workload workload_independent(uint64_t tasks) {
    return workload_make("independent", tasks, (uint32_t)tasks);
}

workload workload_chain(uint64_t tasks) {
    workload work = workload_make("chain", tasks, (uint32_t)tasks);
    for (uint32_t row = 1; row < work.rows; ++row)
        work.inputs[(size_t)row * MAX_INPUTS] = (int32_t)(row - 1);
    return work;
}

/* xorshift64: below `bound`, even enough for small bounds. */
static uint32_t random_below(uint64_t *state, uint32_t bound) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32) % bound;
}

/* How many rows before this one a task may read. */
static uint32_t reach_of(const workload *work, uint32_t row) {
    if (work->rows < work->tasks) /* around the ring, but not its own tensor */
        return work->rows - 1 < REACH ? work->rows - 1 : REACH;
    return row < REACH ? row : REACH;
}

workload workload_dag(const char *name, uint64_t tasks, uint32_t rows) {
    workload work = workload_make(name, tasks, rows);
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t row = 0; row < rows; ++row) {
        int32_t *inputs = work.inputs + (size_t)row * MAX_INPUTS;
        uint32_t reach = reach_of(&work, row);
        uint32_t distance = 0;
        for (uint32_t i = 0; i < MAX_INPUTS && i < reach; ++i) {
            uint32_t other = distance;
            while (distance == other)
                distance = 1 + random_below(&state, reach);
            inputs[i] = (int32_t)((row + rows - distance) % rows);
        }
    }
    return work;
}

void workload_free(workload *work) {
    free(work->inputs);
    work->inputs = NULL;
}
