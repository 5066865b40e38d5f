/* Row i of a tile is token first_row + i: it sees the tokens up to itself, the others weigh 0. */
#include <math.h>

#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *s = gbx_arg_tensor(args, 0), *p = gbx_arg_tensor(args, 1);
    int32_t first_row = gbx_arg_i32(args, 2);
    int64_t tokens = s->shape[1];
    for (int64_t i = 0; i < s->shape[0]; ++i) {
        const float *from = gbx_tensor_f32(s) + i * s->strides[0];
        float *to = gbx_tensor_f32(p) + i * p->strides[0];
        int64_t seen = first_row + i + 1;
        float largest = from[0];
        for (int64_t j = 1; j < seen; ++j)
            largest = from[j] > largest ? from[j] : largest;
        float sum = 0.0f;
        for (int64_t j = 0; j < seen; ++j) {
            to[j] = expf(from[j] - largest);
            sum += to[j];
        }
        for (int64_t j = 0; j < seen; ++j)
            to[j] /= sum;
        for (int64_t j = seen; j < tokens; ++j)
            to[j] = 0.0f;
    }
}
