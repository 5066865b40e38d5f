/* y = (1 - weight) * x + weight * mean of the four neighbours; x has one element more around. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *x = gbx_arg_tensor(args, 0), *y = gbx_arg_tensor(args, 1);
    float weight = gbx_arg_f32(args, 2);
    int64_t step = x->strides[0];
    for (int64_t i = 0; i < y->shape[0]; ++i) {
        const float *middle = gbx_tensor_f32(x) + (i + 1) * step + 1;
        float *to = gbx_tensor_f32(y) + i * y->strides[0];
        for (int64_t j = 0; j < y->shape[1]; ++j) {
            float around = middle[j - step] + middle[j + step] + middle[j - 1] + middle[j + 1];
            to[j] = (1.0f - weight) * middle[j] + weight * 0.25f * around;
        }
    }
}
