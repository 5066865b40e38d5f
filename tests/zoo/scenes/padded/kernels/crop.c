/* y = c without padding, plus b where it is used */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *c = gbx_arg_tensor(args, 0), *y = gbx_arg_tensor(args, 2);
    const float *b = gbx_tensor_f32(gbx_arg_tensor(args, 1));
    int32_t uses_bias = gbx_arg_i32(args, 3);
    for (int64_t i = 0; i < y->shape[0]; ++i)
        for (int64_t j = 0; j < y->shape[1]; ++j)
            gbx_tensor_f32(y)[i * y->strides[0] + j] =
                gbx_tensor_f32(c)[i * c->strides[0] + j] + (uses_bias ? b[j] : 0.0f);
}
