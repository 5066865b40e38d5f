/* h = gamma * (x - mean) / sqrt(variance + eps) + beta, row by row. */
#include <math.h>

#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *x = gbx_arg_tensor(args, 0), *h = gbx_arg_tensor(args, 3);
    const float *gamma = gbx_tensor_f32(gbx_arg_tensor(args, 1));
    const float *beta = gbx_tensor_f32(gbx_arg_tensor(args, 2));
    float eps = gbx_arg_f32(args, 4);
    int64_t columns = x->shape[1];
    for (int64_t i = 0; i < x->shape[0]; ++i) {
        const float *from = gbx_tensor_f32(x) + i * x->strides[0];
        float *to = gbx_tensor_f32(h) + i * h->strides[0];
        float mean = 0.0f;
        for (int64_t j = 0; j < columns; ++j)
            mean += from[j];
        mean /= (float)columns;
        float variance = 0.0f;
        for (int64_t j = 0; j < columns; ++j)
            variance += (from[j] - mean) * (from[j] - mean);
        float scale = 1.0f / sqrtf(variance / (float)columns + eps);
        for (int64_t j = 0; j < columns; ++j)
            to[j] = gamma[j] * (from[j] - mean) * scale + beta[j];
    }
}
