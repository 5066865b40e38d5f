/* joined = mix * low + (1 - mix) * high */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const float *low = gbx_tensor_f32(gbx_arg_tensor(args, 0));
    const float *high = gbx_tensor_f32(gbx_arg_tensor(args, 1));
    const gbx_tensor *joined = gbx_arg_tensor(args, 2);
    float mix = gbx_arg_f32(args, 3);
    for (int64_t i = 0; i < joined->shape[0]; ++i)
        gbx_tensor_f32(joined)[i] = mix * low[i] + (1.0f - mix) * high[i];
}
