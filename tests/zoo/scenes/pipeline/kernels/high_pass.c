/* What the low pass left out. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const float *raw = gbx_tensor_f32(gbx_arg_tensor(args, 0));
    const float *low = gbx_tensor_f32(gbx_arg_tensor(args, 1));
    const gbx_tensor *high = gbx_arg_tensor(args, 2);
    for (int64_t i = 0; i < high->shape[0]; ++i)
        gbx_tensor_f32(high)[i] = raw[i] - low[i];
}
