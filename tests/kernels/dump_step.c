/*
 * A task of dump_plan.h: its first tensor says what to do with the others. Every value depends on
 * all inputs, on its position and, for an inout, on the old value. The dispatches of a task share
 * its elements.
 */
#include <unistd.h>

#include "dump_plan.h"

/* Set by a model that calls this in its own process: a crash or a hang becomes a return. */
__attribute__((visibility("default"))) int dump_step_returns;

static volatile uintptr_t low_page;

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint32_t bits_of(const gbx_tensor *tensor) {
    switch (tensor->dtype) {
    case GBX_INT4:
    case GBX_FLOAT4_E2M1:
        return 4;
    case GBX_INT8:
    case GBX_UINT8:
    case GBX_BOOL:
    case GBX_FLOAT8_E4M3:
    case GBX_FLOAT8_E5M2:
    case GBX_FLOAT8_E8M0:
        return 8;
    case GBX_FLOAT16:
    case GBX_BFLOAT16:
    case GBX_INT16:
    case GBX_UINT16:
        return 16;
    case GBX_FLOAT32:
    case GBX_INT32:
    case GBX_UINT32:
        return 32;
    default:
        return 64;
    }
}

static int64_t place_of(const gbx_tensor *tensor, int64_t number) {
    int64_t at = tensor->start_offset;
    for (uint32_t d = tensor->ndims; d-- > 0;) {
        at += number % tensor->shape[d] * tensor->strides[d];
        number /= tensor->shape[d];
    }
    return at;
}

static uint64_t load(const gbx_tensor *tensor, int64_t number) {
    const uint8_t *bytes = (const uint8_t *)(uintptr_t)tensor->data;
    uint32_t bits = bits_of(tensor);
    int64_t at = place_of(tensor, number);
    uint64_t value = 0;
    if (bits == 4)
        return (uint64_t)(bytes[at >> 1] >> (at & 1) * 4 & 15);
    memcpy(&value, bytes + at * (int64_t)(bits / 8), bits / 8);
    return value;
}

static void store(const gbx_tensor *tensor, int64_t number, uint64_t value) {
    uint8_t *bytes = (uint8_t *)(uintptr_t)tensor->data;
    uint32_t bits = bits_of(tensor);
    int64_t at = place_of(tensor, number);
    if (bits == 4) {
        uint8_t other = bytes[at >> 1] & (uint8_t)(0xf0u >> (at & 1) * 4);
        bytes[at >> 1] = (uint8_t)(other | (value & 15) << (at & 1) * 4);
        return;
    }
    memcpy(bytes + at * (int64_t)(bits / 8), &value, bits / 8);
}

static int fail(const step_control *control) {
    if (!dump_step_returns && control->mode == STEP_CRASH)
        *(volatile int *)(low_page + 0x10) = 1;
    if (!dump_step_returns && control->mode == STEP_EXIT)
        _exit(9);
    while (!dump_step_returns && control->mode == STEP_HANG)
        sched_yield();
    return 1;
}

static uint64_t hash_of_inputs(const uint64_t *args, const step_control *control) {
    uint64_t hash = mix(1, control->seed);
    for (uint32_t k = 1; k < control->tensor_count; ++k) {
        const gbx_tensor *tensor = gbx_arg_tensor(args, k);
        int64_t count = gbx_tensor_numel(tensor);
        for (int64_t e = 0; !(control->written >> k & 1) && e < count; ++e)
            hash = mix(hash, load(tensor, e));
    }
    return hash;
}

/* Not 0 if the task ends here. */
static int write_tensor(const uint64_t *args, const step_control *control, uint32_t k,
                        uint64_t hash, int64_t first, int64_t step) {
    const gbx_tensor *tensor = gbx_arg_tensor(args, k);
    int64_t count = gbx_tensor_numel(tensor);
    int stops = control->mode >= STEP_CRASH && control->stop_tensor == k;
    for (int64_t e = first; e < count; e += step) {
        if (stops && e >= (int64_t)control->stop_element)
            return fail(control);
        uint64_t old = control->inouts >> k & 1 ? load(tensor, e) : 0;
        uint64_t value = mix(mix(mix(hash, k), (uint64_t)e), old) >> 3;
        store(tensor, e, control->mode == STEP_COPY ? load(gbx_arg_tensor(args, 1), e) : value);
    }
    return 0;
}

void kernel_entry(const uint64_t *args) {
    const step_control *control = (const step_control *)(uintptr_t)gbx_arg_tensor(args, 0)->data +
                                  gbx_arg_tensor(args, 0)->start_offset / STEP_CONTROL_WORDS;
    const gbx_local_context *local = gbx_local(args);
    if (control->mode == STEP_NOTHING)
        return;
    uint32_t subtasks = (uint32_t)control->subtasks;
    uint32_t rank = (uint32_t)__builtin_popcount(subtasks & ((1u << local->subtask) - 1));
    int64_t step = (int64_t)__builtin_popcount(subtasks) * local->block_num;
    int64_t first = (int64_t)rank * local->block_num + local->block_idx;
    uint64_t hash = hash_of_inputs(args, control);
    for (uint32_t k = 1; k < control->tensor_count; ++k)
        if (control->written >> k & 1 && write_tensor(args, control, k, hash, first, step))
            return;
}
