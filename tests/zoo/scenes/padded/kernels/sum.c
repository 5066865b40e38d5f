/* s = the sum of the packed elements */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const float *packed = gbx_tensor_f32(gbx_arg_tensor(args, 0));
    const int32_t *count = gbx_tensor_origin(gbx_arg_tensor(args, 1), sizeof *count);
    float sum = 0.0f;
    for (int32_t i = 0; i < *count; ++i)
        sum += packed[i];
    *gbx_tensor_f32(gbx_arg_tensor(args, 2)) = sum;
}
