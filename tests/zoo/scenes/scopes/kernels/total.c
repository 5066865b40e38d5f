/* The sum of all elements, in four lanes. */
#include <glassbox/kernel.h>

enum { LANES = 4 };

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *b = gbx_arg_tensor(args, 0);
    const float *from = gbx_tensor_f32(b);
    float lanes[LANES] = {0};
    for (int64_t i = 0; i < b->shape[0]; ++i)
        lanes[i % LANES] += from[i];
    float sum = 0.0f;
    for (int lane = 0; lane < LANES; ++lane)
        sum += lanes[lane];
    *gbx_tensor_f32(gbx_arg_tensor(args, 1)) = sum;
}
