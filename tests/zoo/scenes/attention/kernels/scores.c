/* s = scale * q . k^T */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *q = gbx_arg_tensor(args, 0), *k = gbx_arg_tensor(args, 1);
    const gbx_tensor *s = gbx_arg_tensor(args, 2);
    float scale = gbx_arg_f32(args, 3);
    for (int64_t i = 0; i < q->shape[0]; ++i) {
        const float *query = gbx_tensor_f32(q) + i * q->strides[0];
        float *to = gbx_tensor_f32(s) + i * s->strides[0];
        for (int64_t j = 0; j < k->shape[0]; ++j)
            to[j] = 0.0f;
        for (int64_t j = 0; j < k->shape[0]; ++j) {
            const float *key = gbx_tensor_f32(k) + j * k->strides[0];
            for (int64_t d = 0; d < q->shape[1]; ++d)
                to[j] += scale * query[d] * key[d];
        }
    }
}
