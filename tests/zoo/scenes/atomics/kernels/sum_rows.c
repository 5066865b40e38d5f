/* y += the rows of this block, whose additions meet those of other blocks. */
#include <glassbox/kernel.h>

static inline void add(float *to, float value) {
    uint32_t *word = (uint32_t *)to, old = __atomic_load_n(word, __ATOMIC_RELAXED), next;
    float sum;
    do {
        memcpy(&sum, &old, sizeof sum);
        sum += value;
        memcpy(&next, &sum, sizeof next);
    } while (!__atomic_compare_exchange_n(word, &old, next, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *x = gbx_arg_tensor(args, 0), *y = gbx_arg_tensor(args, 1);
    const gbx_local_context *local = gbx_local(args);
    for (int64_t i = local->block_idx; i < x->shape[0]; i += local->block_num)
        for (int64_t j = 0; j < x->shape[1]; ++j)
            add(&gbx_tensor_f32(y)[j], gbx_tensor_f32(x)[i * x->strides[0] + j]);
}
