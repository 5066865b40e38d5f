/* The sum of five vectors, eight elements at a time and then the rest. */
#include <glassbox/kernel.h>

enum { PARTS = 5, LANES = 8 };

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *sum = gbx_arg_tensor(args, PARTS);
    float *to = gbx_tensor_f32(sum);
    int64_t length = sum->shape[0], whole = length / LANES * LANES;
    for (int64_t j = 0; j < whole; j += LANES) {
        float lanes[LANES] = {0};
        for (unsigned part = 0; part < PARTS; ++part)
            for (int64_t lane = 0; lane < LANES; ++lane)
                lanes[lane] += gbx_tensor_f32(gbx_arg_tensor(args, part))[j + lane];
        memcpy(to + j, lanes, sizeof lanes);
    }
    for (int64_t j = whole; j < length; ++j) {
        to[j] = 0.0f;
        for (unsigned part = 0; part < PARTS; ++part)
            to[j] += gbx_tensor_f32(gbx_arg_tensor(args, part))[j];
    }
}
