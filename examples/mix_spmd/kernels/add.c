/* sum = x + y, of matrices whose rows may lie anywhere. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *x = gbx_arg_tensor(args, 0);
    const gbx_tensor *y = gbx_arg_tensor(args, 1);
    const gbx_tensor *sum = gbx_arg_tensor(args, 2);
    for (int64_t i = 0; i < sum->shape[0]; ++i) {
        const float *left = gbx_tensor_f32(x) + i * x->strides[0];
        const float *right = gbx_tensor_f32(y) + i * y->strides[0];
        float *to = gbx_tensor_f32(sum) + i * sum->strides[0];
        for (int64_t j = 0; j < sum->shape[1]; ++j)
            to[j] = left[j] + right[j];
    }
}
