/* y = (b + e) / 2 */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const float *b = gbx_tensor_f32(gbx_arg_tensor(args, 0));
    const float *e = gbx_tensor_f32(gbx_arg_tensor(args, 1));
    const gbx_tensor *y = gbx_arg_tensor(args, 2);
    for (int64_t i = 0; i < y->shape[0]; ++i)
        gbx_tensor_f32(y)[i] = 0.5f * (b[i] + e[i]);
}
