/* StarPU: implicit dependencies by the modes of registered vectors, default scheduler. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <starpu.h>

#include "base/clock.h"
#include "tasks.h"

static void no_op(void *buffers[], void *arguments) {
    (void)buffers;
    (void)arguments;
}

/* By the number of inputs; the output comes last. */
static struct starpu_codelet codelets[MAX_INPUTS + 1] = {
    {.cpu_funcs = {no_op}, .nbuffers = 1, .modes = {STARPU_W}},
    {.cpu_funcs = {no_op}, .nbuffers = 2, .modes = {STARPU_R, STARPU_W}},
    {.cpu_funcs = {no_op}, .nbuffers = 3, .modes = {STARPU_R, STARPU_R, STARPU_W}},
};

static int submit(const starpu_data_handle_t *tensors, const int32_t *row, uint32_t index) {
    uint32_t input_count = row_input_count(row);
    struct starpu_task *task = starpu_task_create();
    task->cl = &codelets[input_count];
    for (uint32_t i = 0; i < input_count; ++i)
        task->handles[i] = tensors[row[i]];
    task->handles[input_count] = tensors[index];
    return starpu_task_submit(task);
}

/* Negative when a task was refused. */
static double run_once(const workload *work, const starpu_data_handle_t *tensors) {
    int64_t start_ns = gbx_clock_ns();
    uint32_t row = 0;
    for (uint64_t i = 0; i < work->tasks; ++i) {
        if (submit(tensors, work->inputs + (size_t)row * MAX_INPUTS, row) != 0)
            return -1;
        row = row + 1 < work->rows ? row + 1 : 0;
    }
    starpu_task_wait_for_all();
    return (double)(gbx_clock_ns() - start_ns);
}

static bool run_all(const workload *work, uint32_t repeats, const starpu_data_handle_t *tensors,
                    timing *out_timing) {
    double times_ns[MAX_REPEATS];
    bool is_right = run_once(work, tensors) >= 0;
    for (uint32_t i = 0; i < repeats && is_right; ++i) {
        times_ns[i] = run_once(work, tensors);
        is_right = times_ns[i] >= 0;
    }
    if (is_right)
        out_timing->run_ns = median(times_ns, repeats);
    else
        fprintf(stderr, "bench_tasks: StarPU refused a task\n");
    return is_right;
}

/* No accelerators, no calibration, no output; its files in the scratch directory. */
static bool start(const char *home) {
    setenv("STARPU_HOME", home, 1);
    setenv("STARPU_SILENT", "1", 1);
    setenv("STARPU_NCUDA", "0", 1);
    setenv("STARPU_NOPENCL", "0", 1);
    setenv("STARPU_CALIBRATE", "0", 1);
    setenv("STARPU_BUS_CALIBRATE", "0", 1);
    int error = starpu_init(NULL);
    if (error != 0)
        fprintf(stderr, "bench_tasks: StarPU does not start: error %d\n", error);
    return error == 0;
}

static bool register_all(const workload *work, float *memory, starpu_data_handle_t *tensors) {
    if (!memory || !tensors) {
        fprintf(stderr, "bench_tasks: StarPU: no memory for %u tensors\n", work->rows);
        return false;
    }
    for (uint32_t i = 0; i < work->rows; ++i)
        starpu_vector_data_register(&tensors[i], STARPU_MAIN_RAM,
                                    (uintptr_t)(memory + (size_t)i * TENSOR_ELEMENTS),
                                    TENSOR_ELEMENTS, sizeof(float));
    return true;
}

bool measure_starpu(const setting *how, const workload *work, timing *out_timing) {
    if (!start(how->scratch))
        return false;
    float *memory = calloc((size_t)work->rows * TENSOR_ELEMENTS, sizeof *memory);
    starpu_data_handle_t *tensors = calloc(work->rows, sizeof(starpu_data_handle_t));
    bool is_right =
        register_all(work, memory, tensors) && run_all(work, how->repeats, tensors, out_timing);
    for (uint32_t i = 0; is_right && i < work->rows; ++i)
        starpu_data_unregister(tensors[i]);
    starpu_shutdown();
    free(tensors);
    free(memory);
    return is_right;
}
