/* c = a + b; each block computes its share; any strides. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *a = gbx_arg_tensor(args, 0);
    const gbx_tensor *b = gbx_arg_tensor(args, 1);
    const gbx_tensor *c = gbx_arg_tensor(args, 2);
    const gbx_local_context *local = gbx_local(args);
    int64_t begin = c->shape[0] * local->block_idx / local->block_num;
    int64_t end = c->shape[0] * (local->block_idx + 1) / local->block_num;
    for (int64_t i = begin; i < end; ++i)
        gbx_tensor_f32(c)[i * c->strides[0]] =
            gbx_tensor_f32(a)[i * a->strides[0]] + gbx_tensor_f32(b)[i * b->strides[0]];
}
