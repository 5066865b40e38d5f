/* sum = x + y, of contiguous vectors. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const float *x = gbx_tensor_f32(gbx_arg_tensor(args, 0));
    const float *y = gbx_tensor_f32(gbx_arg_tensor(args, 1));
    float *sum = gbx_tensor_f32(gbx_arg_tensor(args, 2));
    int64_t count = gbx_tensor_numel(gbx_arg_tensor(args, 2));
    for (int64_t i = 0; i < count; ++i)
        sum[i] = x[i] + y[i];
}
