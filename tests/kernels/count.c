/* Adds one to cell block_idx * 3 + subtask of tensor 0 (uint32), to show what ran twice or
 * never. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_local_context *local = gbx_local(args);
    uint32_t *cells = (uint32_t *)gbx_tensor_origin(gbx_arg_tensor(args, 0), sizeof(uint32_t));
    cells[local->block_idx * GBX_SUBTASK_COUNT + local->subtask] += 1;
}
