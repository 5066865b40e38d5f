#include "bytes.h"

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *packed = gbx_arg_tensor(args, 0);
    const int8_t *bytes = gbx_tensor_origin(packed, 1);
    int64_t row_bytes = (packed->shape[1] + 1) / 2;
    for (int64_t i = 0; i < packed->shape[0]; ++i)
        for (int64_t j = 0; j < packed->shape[1]; ++j) {
            int byte = bytes[i * row_bytes + j / 2];
            int value = j % 2 ? byte >> 4 : (int8_t)(byte * 16) >> 4;
            *u16(args, 1, i, j) = gbx_f32_to_f16(gbx_arg_f32(args, 2) * (float)value);
        }
}
