/* sum = x + addend, of contiguous vectors. Scalars follow the tensors: the addend is slot 2. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const float *x = gbx_tensor_f32(gbx_arg_tensor(args, 0));
    float *sum = gbx_tensor_f32(gbx_arg_tensor(args, 1));
    float addend = gbx_arg_f32(args, 2);
    int64_t count = gbx_tensor_numel(gbx_arg_tensor(args, 1));
    for (int64_t i = 0; i < count; ++i)
        sum[i] = x[i] + addend;
}
