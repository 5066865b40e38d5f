/* p = the sum of the rows of all up to `row` */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *all = gbx_arg_tensor(args, 0), *p = gbx_arg_tensor(args, 1);
    for (int64_t j = 0; j < p->shape[0]; ++j) {
        float sum = 0.0f;
        for (int32_t i = 0; i <= gbx_arg_i32(args, 2); ++i)
            sum += gbx_tensor_f32(all)[i * all->strides[0] + j];
        gbx_tensor_f32(p)[j] = sum;
    }
}
