/* sum = x + addend, one element at a time, in double, wherever the views' strides lead. */
#include <glassbox/kernel.h>

static float *element(const gbx_tensor *tensor, int64_t row, int64_t column) {
    return gbx_tensor_f32(tensor) + row * tensor->strides[0] + column * tensor->strides[1];
}

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *x = gbx_arg_tensor(args, 0);
    const gbx_tensor *sum = gbx_arg_tensor(args, 1);
    double addend = gbx_arg_f32(args, 2);
    for (int64_t i = 0; i < sum->shape[0]; ++i)
        for (int64_t j = 0; j < sum->shape[1]; ++j)
            *element(sum, i, j) = (float)((double)*element(x, i, j) + addend);
}
