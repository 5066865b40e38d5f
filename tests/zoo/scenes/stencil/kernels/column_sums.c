/* The sum of each column. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *x = gbx_arg_tensor(args, 0), *sums = gbx_arg_tensor(args, 1);
    float *to = gbx_tensor_f32(sums);
    for (int64_t j = 0; j < sums->shape[0]; ++j)
        to[j] = 0.0f;
    for (int64_t i = 0; i < x->shape[0]; ++i) {
        const float *from = gbx_tensor_f32(x) + i * x->strides[0];
        for (int64_t j = 0; j < x->shape[1]; ++j)
            to[j] += from[j];
    }
}
