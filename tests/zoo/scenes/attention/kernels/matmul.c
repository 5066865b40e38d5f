/* c = a . b */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *a = gbx_arg_tensor(args, 0), *b = gbx_arg_tensor(args, 1);
    const gbx_tensor *c = gbx_arg_tensor(args, 2);
    int64_t depth = a->shape[1];
    for (int64_t i = 0; i < c->shape[0]; ++i) {
        const float *row = gbx_tensor_f32(a) + i * a->strides[0];
        float *to = gbx_tensor_f32(c) + i * c->strides[0];
        for (int64_t j = 0; j < c->shape[1]; ++j) {
            const float *column = gbx_tensor_f32(b) + j;
            float sum = 0.0f;
            for (int64_t k = 0; k < depth; ++k)
                sum += row[k] * column[k * b->strides[0]];
            to[j] = sum;
        }
    }
}
