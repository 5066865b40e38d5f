/* The product of two vectors. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *high = gbx_arg_tensor(args, 0), *state = gbx_arg_tensor(args, 1);
    float sum = 0.0f;
    for (int64_t i = 0; i < high->shape[0]; ++i)
        sum += gbx_tensor_f32(high)[i] * gbx_tensor_f32(state)[i];
    *gbx_tensor_f32(gbx_arg_tensor(args, 2)) = sum;
}
