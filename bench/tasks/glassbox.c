/* glassbox: tensormap_and_ringbuffer on a chip in a process, all other settings default. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/glassbox.h>

#include "base/clock.h"
#include "base/status.h"
#include "chip/host/chip.h"
#include "hal/sim.h"
#include "tasks.h"

/* The texts of noop.c and orchestration.c. */
extern const char bench_tasks_noop[];
extern const char bench_tasks_orchestration[];

enum { PATH_BYTES = 4096 };

static gbx_status write_source(const setting *how, const char *name, const char *text,
                               char path[PATH_BYTES]) {
    snprintf(path, PATH_BYTES, "%s/%s", how->scratch, name);
    FILE *file = fopen(path, "w");
    if (!file)
        return gbx_fail(GBX_IO, "cannot write %s", path);
    int written = fputs(text, file);
    if (fclose(file) != 0 || written < 0)
        return gbx_fail(GBX_IO, "cannot write %s", path);
    return NULL;
}

/* Peak memory of the chip process; 0 when unknown. */
static uint64_t peak_bytes(const gbx_chip *chip) {
    char path[64];
    char line[256];
    unsigned long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)((const gbx_sim *)chip->hal)->pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    while (kib == 0 && fgets(line, sizeof line, file))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtoul(line + 6, NULL, 10);
    fclose(file);
    return (uint64_t)kib << 10;
}

static gbx_status run_once(gbx_chip *chip, const gbx_run *run, double *out_run_ns,
                           double *out_host_ns) {
    gbx_call_result result;
    int64_t start_ns = gbx_clock_ns();
    GBX_TRY(gbx_chip_run(chip, run, NULL, &result));
    *out_host_ns = (double)(gbx_clock_ns() - start_ns);
    *out_run_ns = (double)result.device_ns;
    if (result.tasks != run->scalars[0])
        return gbx_fail(GBX_INTERNAL, "%llu of %llu tasks completed",
                        (unsigned long long)result.tasks, (unsigned long long)run->scalars[0]);
    return NULL;
}

static gbx_status run_all(gbx_chip *chip, const gbx_run *run, const setting *how,
                          timing *out_timing) {
    double run_ns[MAX_REPEATS];
    double host_ns[MAX_REPEATS];
    GBX_TRY(run_once(chip, run, &run_ns[0], &host_ns[0]));
    for (uint32_t i = 0; i < how->repeats; ++i)
        GBX_TRY(run_once(chip, run, &run_ns[i], &host_ns[i]));
    out_timing->run_ns = median(run_ns, how->repeats);
    out_timing->host_ns = median(host_ns, how->repeats);
    out_timing->peak_bytes = peak_bytes(chip);
    return NULL;
}

static gbx_status run_graph(gbx_chip *chip, const setting *how, const workload *work, float *memory,
                            timing *out_timing) {
    char kernel_path[PATH_BYTES];
    char path[PATH_BYTES];
    GBX_TRY(write_source(how, "noop.c", bench_tasks_noop, kernel_path));
    GBX_TRY(write_source(how, "orchestration.c", bench_tasks_orchestration, path));
    gbx_kernel kernel = {.name = "noop", .core = GBX_CORE_AIV, .source = kernel_path};
    GBX_TRY(gbx_kernel_register(chip, &kernel));

    gbx_run_tensor tensors[2] = {{.name = "inputs", .role = GBX_ROLE_INPUT},
                                 {.name = "memory", .role = GBX_ROLE_OUTPUT}};
    const int64_t inputs_shape[] = {work->rows, MAX_INPUTS};
    const int64_t memory_shape[] = {work->rows, TENSOR_ELEMENTS};
    GBX_TRY(gbx_tensor_contiguous((uintptr_t)work->inputs, GBX_INT32, 2, inputs_shape,
                                  &tensors[0].tensor));
    GBX_TRY(
        gbx_tensor_contiguous((uintptr_t)memory, GBX_FLOAT32, 2, memory_shape, &tensors[1].tensor));
    gbx_run run = {.runtime = "tensormap_and_ringbuffer",
                   .source = path,
                   .tensors = tensors,
                   .tensor_count = 2,
                   .scalars = &work->tasks,
                   .scalar_count = 1};
    return run_all(chip, &run, how, out_timing);
}

bool measure_glassbox(const setting *how, const workload *work, timing *out_timing) {
    gbx_chip *chip = NULL;
    float *memory = calloc((size_t)work->rows * TENSOR_ELEMENTS, sizeof *memory);
    gbx_status status =
        memory ? NULL : gbx_fail(GBX_EXHAUSTED, "no memory for %u tensors", work->rows);
    if (!status)
        status = gbx_chip_open(NULL, &chip);
    if (!status)
        status = run_graph(chip, how, work, memory, out_timing);
    gbx_chip_close(chip);
    free(memory);
    bool is_right = !status;
    if (status)
        fprintf(stderr, "bench_tasks: %s: %s\n", work->name, gbx_status_message(status));
    gbx_status_free(status);
    return is_right;
}
