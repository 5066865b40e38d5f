#include <inttypes.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "base/checked.h"
#include "chip/host/chip.h"

static const char *const core_type_names[] = {"AIC", "AIV"};

static gbx_core_type core_of_subtask(uint32_t subtask) {
    return subtask == GBX_SUBTASK_AIC ? GBX_CORE_AIC : GBX_CORE_AIV;
}

static gbx_status check_kernels(const gbx_chip *chip, const gbx_call *call) {
    bool is_any = false;
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s) {
        uint32_t func_id = call->kernels[s];
        if (func_id == GBX_NO_KERNEL)
            continue;
        if (func_id >= GBX_MAX_KERNELS || !chip->kernels[func_id].name[0])
            return gbx_fail(GBX_NOT_FOUND,
                            "calling func %" PRIu32 ": no kernel is registered by "
                            "this number",
                            func_id);
        const gbx_kernel_entry *kernel = &chip->kernels[func_id];
        gbx_core_type core = core_of_subtask(s);
        if (kernel->core != core)
            return gbx_fail(GBX_INVALID_ARGUMENT,
                            "calling kernel %s: it is registered for %s cores and named for an %s "
                            "core",
                            kernel->name, core_type_names[kernel->core], core_type_names[core]);
        is_any = true;
    }
    return is_any ? NULL
                  : gbx_fail(GBX_INVALID_ARGUMENT, "calling: none of the three subtasks names a "
                                                   "kernel");
}

static gbx_status check_counts(const gbx_call *call) {
    if (call->tensor_count > GBX_MAX_TENSOR_ARGS || call->scalar_count > GBX_MAX_SCALAR_ARGS)
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "calling with %" PRIu32 " tensors and %" PRIu32
                        " scalars: at most %d of each are possible",
                        call->tensor_count, call->scalar_count, GBX_MAX_TENSOR_ARGS);
    if ((call->tensor_count && !call->tensors) || (call->scalar_count && !call->scalars))
        return gbx_fail(GBX_INVALID_ARGUMENT, "calling: arguments are counted but not given");
    return NULL;
}

/* Every element of a tensor lies in global memory. */
static gbx_status check_tensor(const gbx_hal_caps *caps, uint32_t index, const gbx_tensor *tensor) {
    gbx_status status = gbx_tensor_validate(tensor);
    if (status)
        return gbx_status_annotate(status, "calling: tensor %" PRIu32, index);
    int64_t first;
    int64_t end;
    gbx_tensor_extent(tensor, &first, &end);
    if (first == end)
        return NULL; /* no elements, so they may be anywhere */
    uint64_t offset = tensor->data + (uint64_t)first - caps->gm_base;
    if (tensor->data >= caps->gm_base &&
        gbx_range_is_inside(offset, (uint64_t)(end - first), caps->gm_bytes))
        return NULL;
    return gbx_fail(GBX_OUT_OF_RANGE,
                    "calling: tensor %" PRIu32 ": its elements from 0x%" PRIx64 " to 0x%" PRIx64
                    " are not in the chip's global memory (0x%" PRIx64 " to 0x%" PRIx64 ")",
                    index, tensor->data + (uint64_t)first, tensor->data + (uint64_t)end,
                    caps->gm_base, caps->gm_base + caps->gm_bytes);
}

static void fill_block(const gbx_chip *chip, const gbx_call *call, const gbx_hal_caps *caps,
                       gbx_call_block *out_block) {
    memset(out_block, 0, sizeof *out_block);
    memcpy(out_block->kernels, call->kernels, sizeof out_block->kernels);
    out_block->block_num = call->block_num ? call->block_num : 1;
    out_block->tensor_count = call->tensor_count;
    out_block->scalar_count = call->scalar_count;
    out_block->global = (gbx_global_context){
        .gm_base = caps->gm_base, .gm_bytes = caps->gm_bytes, .blocks = chip->blocks};
    if (call->tensor_count)
        memcpy(out_block->tensors, call->tensors, call->tensor_count * sizeof *call->tensors);
    if (call->scalar_count)
        memcpy(out_block->scalars, call->scalars, call->scalar_count * sizeof *call->scalars);
}

gbx_status gbx_chip_call(gbx_chip *chip, const gbx_call *call, const gbx_call_config *config,
                         gbx_call_result *out_result) {
    gbx_hal_caps caps;
    gbx_call_block block;
    int64_t device_ns = 0;
    uint32_t timeout_ms =
        config && config->timeout_ms ? config->timeout_ms : GBX_DEFAULT_TIMEOUT_MS;
    GBX_TRY(gbx_chip_check_alive(chip, "calling"));
    GBX_TRY(check_kernels(chip, call));
    GBX_TRY(check_counts(call));
    gbx_chip_ops(chip)->caps(chip->hal, &caps);
    for (uint32_t i = 0; i < call->tensor_count; ++i)
        GBX_TRY(check_tensor(&caps, i, &call->tensors[i]));
    fill_block(chip, call, &caps, &block);
    GBX_TRY(gbx_chip_launch(chip, GBX_ENTRY_CALL, &block, sizeof block, timeout_ms, &device_ns));
    if (out_result)
        out_result->device_ns = device_ns;
    return NULL;
}
