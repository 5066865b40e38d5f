/* y = x . w: float16 in, summed in float32, bfloat16 out. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *x = gbx_arg_tensor(args, 0), *w = gbx_arg_tensor(args, 1);
    const gbx_tensor *y = gbx_arg_tensor(args, 2);
    const uint16_t *left = gbx_tensor_origin(x, sizeof *left);
    const uint16_t *right = gbx_tensor_origin(w, sizeof *right);
    uint16_t *to = gbx_tensor_origin(y, sizeof *to);
    for (int64_t i = 0; i < y->shape[0]; ++i)
        for (int64_t j = 0; j < y->shape[1]; ++j) {
            float sum = 0.0f;
            for (int64_t k = 0; k < x->shape[1]; ++k)
                sum += gbx_f16_to_f32(left[i * x->strides[0] + k]) *
                       gbx_f16_to_f32(right[k * w->strides[0] + j]);
            to[i * y->strides[0] + j] = gbx_f32_to_bf16(sum);
        }
}
