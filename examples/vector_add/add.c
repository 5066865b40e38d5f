/* c = a + b, each block its share of the elements. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const float *a = gbx_tensor_f32(gbx_arg_tensor(args, 0));
    const float *b = gbx_tensor_f32(gbx_arg_tensor(args, 1));
    float *c = gbx_tensor_f32(gbx_arg_tensor(args, 2));
    const gbx_local_context *local = gbx_local(args);
    int64_t count = gbx_tensor_numel(gbx_arg_tensor(args, 2));
    int64_t begin = count * local->block_idx / local->block_num;
    int64_t end = count * (local->block_idx + 1) / local->block_num;
    for (int64_t i = begin; i < end; ++i)
        c[i] = a[i] + b[i];
}
