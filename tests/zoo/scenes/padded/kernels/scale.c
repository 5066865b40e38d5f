/* c = factor * a, padding included */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *a = gbx_arg_tensor(args, 0), *c = gbx_arg_tensor(args, 1);
    float factor = gbx_arg_f32(args, 2);
    for (int64_t i = 0; i < a->shape[0]; ++i)
        for (int64_t j = 0; j < a->shape[1]; ++j)
            gbx_tensor_f32(c)[i * c->strides[0] + j] =
                factor * gbx_tensor_f32(a)[i * a->strides[0] + j];
}
