/* The root of the mean of squared steps from each element to the next of its row. */
#include <math.h>

#include <glassbox/kernel.h>

enum { LONGEST = 32 };

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *x = gbx_arg_tensor(args, 0), *rough = gbx_arg_tensor(args, 1);
    float squares[LONGEST];
    int64_t rows = x->shape[0], steps = x->shape[1] - 1;
    float total = 0.0f;
    for (int64_t i = 0; i < rows; ++i) {
        const float *from = gbx_tensor_f32(x) + i * x->strides[0];
        for (int64_t j = 0; j < steps; ++j)
            squares[j] = (from[j + 1] - from[j]) * (from[j + 1] - from[j]);
        for (int64_t j = 0; j < steps; ++j)
            total += squares[j];
    }
    *gbx_tensor_f32(rough) = sqrtf(total / (float)(rows * steps));
}
