/* sum = x + addend, one element at a time, in double, wherever the views' strides lead. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *x = gbx_arg_tensor(args, 0);
    const gbx_tensor *sum = gbx_arg_tensor(args, 1);
    double addend = gbx_arg_f32(args, 2);
    for (int64_t i = 0; i < sum->shape[0]; ++i) {
        double element = gbx_tensor_f32(x)[i * x->strides[0]];
        gbx_tensor_f32(sum)[i * sum->strides[0]] = (float)(element + addend);
    }
}
