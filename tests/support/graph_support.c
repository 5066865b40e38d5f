#include "graph_support.h"

#include <stdio.h>
#include <string.h>

#include "chip/host/chip.h"
#include "kernels/orchestrations.c"

enum { CHIP_BLOCKS = 4 };

const graph_mode graph_modes[GRAPH_MODES] = {
    {"host_build_graph", ON_HOST, GBX_BUILD_CONCURRENT},
    {"aicpu_build_graph", ON_AICPU, GBX_BUILD_CONCURRENT},
    {"aicpu_build_graph", ON_AICPU, GBX_BUILD_SEQUENTIAL},
    {"tensormap_and_ringbuffer", ON_TENSORMAP, GBX_BUILD_CONCURRENT},
};

typedef struct named_entry {
    const char *name;
    gbx_orchestrate_function function;
} named_entry;

#define NAME(name) {#name, name},
static const named_entry entries[] = {ORCHESTRATIONS(NAME)};

static gbx_orchestrate_function find_entry(const char *name) {
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; ++i)
        if (strcmp(entries[i].name, name) == 0)
            return entries[i].function;
    return NULL;
}

graph_run graph_of(int mode, const char *entry, uint64_t before, uint64_t variant, uint64_t count) {
    graph_run run = {.mode = &graph_modes[mode],
                     .entry = entry,
                     .before = before,
                     .variant = variant,
                     .count = count,
                     .config = {.build = graph_modes[mode].build, .timeout_ms = 600000}};
    for (int64_t i = 0; i < CELLS; ++i)
        run.cells[i] = i;
    return run;
}

gbx_status run_graph(gbx_chip *chip, graph_run *run) {
    const uint64_t scalars[RUN_SCALARS] = {run->mode->on, run->before, run->variant, run->count};
    gbx_run_tensor cells = {
        .name = "cells",
        .tensor = vector_at((uint64_t)(uintptr_t)run->cells, GBX_INT64, CELLS),
        .role = GBX_ROLE_INOUT,
    };
    gbx_run request = {.runtime = run->mode->runtime,
                       .tensors = &cells,
                       .tensor_count = 1,
                       .scalars = scalars,
                       .scalar_count = RUN_SCALARS};
    if (chip->device == GBX_DEVICE_THREAD) {
        request.function = find_entry(run->entry);
    } else {
        request.shared_object = compiled_object("orchestrations.c");
        request.entry = run->entry;
    }
    return gbx_chip_run(chip, &request, &run->config, &run->result);
}

gbx_chip *open_graph_chip(const chip_variant *variant, uint64_t gm_bytes) {
    gbx_chip_config config = {.platform = variant->platform,
                              .device = variant->device,
                              .blocks = CHIP_BLOCKS,
                              .gm_bytes = gm_bytes ? gm_bytes : 64 << 20};
    gbx_chip *chip;
    assert_ok(gbx_chip_open(&config, &chip));
    register_kernel(chip, STEP, GBX_CORE_AIV, "step.c");
    register_kernel(chip, STEP_AIC, GBX_CORE_AIC, "step.c");
    register_kernel(chip, MEET, GBX_CORE_AIV, "meet.c");
    register_kernel(chip, MEET_AIC, GBX_CORE_AIC, "meet.c");
    register_kernel(chip, WIDE, GBX_CORE_AIV, "wide.c");
    register_kernel(chip, FAULT, GBX_CORE_AIV, "fault.c");
    return chip;
}

int64_t stepped(int64_t value, uint64_t addend) {
    return (int64_t)(3 * (uint64_t)value + addend);
}

int64_t stepped_often(int64_t value, uint64_t first, uint64_t stride, uint64_t count) {
    for (uint64_t i = first; i < count; i += stride)
        value = stepped(value, i);
    return value;
}

void assert_prelude_is_done(const graph_run *run) {
    for (int64_t i = 0; i < PRELUDE_CELLS; ++i)
        assert_int_equal(run->cells[PRELUDE_AT + i],
                         stepped_often(PRELUDE_AT + i, (uint64_t)i, PRELUDE_CELLS, run->before));
}

void assert_chip_runs_graph(gbx_chip *chip, int mode) {
    graph_run run = graph_of(mode, "chain", 0, 0, 20);
    assert_ok(run_graph(chip, &run));
    assert_int_equal(run.result.tasks, 20);
    assert_int_equal(run.result.dispatches, 20);
    assert_int_equal(run.cells[0], stepped_often(0, 0, 1, 20));
}

void assert_chip_runs_graphs(gbx_chip *chip) {
    for (int mode = 0; mode < GRAPH_MODES; ++mode)
        assert_chip_runs_graph(chip, mode);
}
