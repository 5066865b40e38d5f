/*
 * Saves what kernel_entry received: row block_idx * 3 + subtask of the first tensor gets the slots
 * of args[], then the bytes of the local and the global context, then the tensors of the first
 * arguments, as many as fit.
 */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *out = gbx_arg_tensor(args, 0);
    const gbx_local_context *local = gbx_local(args);
    uint64_t *row = (uint64_t *)gbx_tensor_origin(out, sizeof(uint64_t)) +
                    (local->block_idx * GBX_SUBTASK_COUNT + local->subtask) * out->strides[0];
    memcpy(row, args, GBX_ARG_SLOTS * sizeof *args);
    memcpy(row + GBX_ARG_SLOTS, local, sizeof *local);
    memcpy(row + GBX_ARG_SLOTS + 2, gbx_global(args), sizeof(gbx_global_context));
    uint64_t *tensors = row + GBX_ARG_SLOTS + 2 + 3;
    size_t tensor_words = sizeof(gbx_tensor) / sizeof *tensors;
    for (unsigned i = 0; tensors + tensor_words <= row + out->strides[0]; ++i) {
        memcpy(tensors, gbx_arg_tensor(args, i), sizeof(gbx_tensor));
        tensors += tensor_words;
    }
}
