/* z = y - mean */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *y = gbx_arg_tensor(args, 0), *z = gbx_arg_tensor(args, 2);
    float mean = *gbx_tensor_f32(gbx_arg_tensor(args, 1));
    for (int64_t i = 0; i < z->shape[0]; ++i)
        gbx_tensor_f32(z)[i] = gbx_tensor_f32(y)[i] - mean;
}
