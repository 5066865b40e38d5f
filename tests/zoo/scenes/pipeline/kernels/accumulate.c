/* state = decay * state + joined */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const float *joined = gbx_tensor_f32(gbx_arg_tensor(args, 0));
    const gbx_tensor *state = gbx_arg_tensor(args, 1);
    float decay = gbx_arg_f32(args, 2);
    float *to = gbx_tensor_f32(state);
    for (int64_t i = 0; i < state->shape[0]; ++i)
        to[i] = decay * to[i] + joined[i];
}
