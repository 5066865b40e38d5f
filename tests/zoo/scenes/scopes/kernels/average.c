/* The sum of totals by a count. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *totals = gbx_arg_tensor(args, 0);
    float sum = 0.0f;
    for (int64_t i = 0; i < totals->shape[0]; ++i)
        sum += gbx_tensor_f32(totals)[i];
    *gbx_tensor_f32(gbx_arg_tensor(args, 1)) = sum / (float)gbx_arg_i32(args, 2);
}
