/*
 * A mix: in each round, the cube core of a block writes a number and its two vector cores answer
 * with the double, through flags in global memory. Tensor 0: flags (uint32), 16 per block; tensor
 * 1: sums (int64), 3 per block; scalar 2: rounds.
 */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_local_context *local = gbx_local(args);
    uint32_t *flags =
        (uint32_t *)gbx_tensor_origin(gbx_arg_tensor(args, 0), 4) + local->block_idx * 16;
    int64_t *sums = (int64_t *)gbx_tensor_origin(gbx_arg_tensor(args, 1), 8) + local->block_idx * 3;
    uint32_t rounds = (uint32_t)gbx_arg_i64(args, 2);
    uint32_t *request = &flags[0];
    uint32_t *value = &flags[1];
    for (uint32_t round = 1; round <= rounds; ++round) {
        if (local->subtask == GBX_SUBTASK_AIC) {
            *value = round * (local->block_idx + 1);
            gbx_flag_set(request, round);
            for (int v = 0; v < 2; ++v) {
                gbx_flag_wait(&flags[2 + 2 * v], round);
                sums[0] += flags[3 + 2 * v];
            }
        } else {
            uint32_t *reply = &flags[2 * local->subtask];
            gbx_flag_wait(request, round);
            reply[1] = 2 * *value;
            sums[local->subtask] += *value;
            gbx_flag_set(reply, round);
        }
    }
}
