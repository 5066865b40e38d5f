/* The positive elements of y, packed, and how many there are; behind them nothing is written. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *y = gbx_arg_tensor(args, 0);
    float *packed = gbx_tensor_f32(gbx_arg_tensor(args, 1));
    int32_t *count = gbx_tensor_origin(gbx_arg_tensor(args, 2), sizeof *count), found = 0;
    for (int64_t i = 0; i < y->shape[0]; ++i)
        for (int64_t j = 0; j < y->shape[1]; ++j) {
            float value = gbx_tensor_f32(y)[i * y->strides[0] + j];
            if (value > 0.0f)
                packed[found++] = value;
        }
    *count = found;
}
