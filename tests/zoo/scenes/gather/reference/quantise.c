#include <math.h>

#include "bytes.h"

void kernel_entry(const uint64_t *args) {
    for (int64_t i = 0; i < extent(args, 1, 0); ++i)
        for (int64_t j = 0; j < extent(args, 1, 1); ++j) {
            float value = rintf(gbx_bf16_to_f32(*u16(args, 0, i, j)) / gbx_arg_f32(args, 2));
            *i8(args, 1, i, j) = (int8_t)fminf(fmaxf(value, -128.0f), 127.0f);
        }
}
