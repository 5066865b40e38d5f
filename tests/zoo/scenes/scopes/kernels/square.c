/* a = x * x */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *x = gbx_arg_tensor(args, 0), *a = gbx_arg_tensor(args, 1);
    const float *from = gbx_tensor_f32(x);
    float *to = gbx_tensor_f32(a);
    for (int64_t i = 0; i < a->shape[0]; ++i)
        to[i] = from[i] * from[i];
}
