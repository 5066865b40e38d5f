/* raw = gain * frame */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *frame = gbx_arg_tensor(args, 0), *raw = gbx_arg_tensor(args, 1);
    float gain = gbx_arg_f32(args, 2);
    for (int64_t i = 0; i < raw->shape[0]; ++i)
        gbx_tensor_f32(raw)[i] = gain * gbx_tensor_f32(frame)[i];
}
