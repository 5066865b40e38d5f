/* y = (1 - alpha) * x + alpha * o */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *x = gbx_arg_tensor(args, 0), *o = gbx_arg_tensor(args, 1);
    const gbx_tensor *y = gbx_arg_tensor(args, 2);
    float alpha = gbx_arg_f32(args, 3);
    for (int64_t i = 0; i < y->shape[0]; ++i) {
        const float *left = gbx_tensor_f32(x) + i * x->strides[0];
        const float *right = gbx_tensor_f32(o) + i * o->strides[0];
        float *to = gbx_tensor_f32(y) + i * y->strides[0];
        for (int64_t j = 0; j < y->shape[1]; ++j)
            to[j] = (1.0f - alpha) * left[j] + alpha * right[j];
    }
}
