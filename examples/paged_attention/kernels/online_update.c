/*
 * Takes one block into the running softmax of a row, and divides by the sum after the last.
 *
 * in block_max [group], in block_sum [group], in partial [group, head_dim]: float32
 * inout running_max [group], inout running_sum [group], inout out [group, head_dim]: float32; not
 * read at the first block
 * scalar is_first, scalar is_last: bool
 */
#include <math.h>

#include "rows.h"

/* What up to 16 rows are multiplied with; `sum` is the new running sum. */
typedef struct factors {
    float old_part[LANES];
    float new_part[LANES];
    float sum[LANES];
} factors;

static void update_state(const uint64_t *args, int64_t row, int is_first, factors *out) {
    const gbx_tensor *block_max = gbx_arg_tensor(args, 0), *block_sum = gbx_arg_tensor(args, 1);
    const gbx_tensor *running_max = gbx_arg_tensor(args, 3), *running_sum = gbx_arg_tensor(args, 4);
    int64_t rows = block_max->shape[0];
    float *max_row = gbx_tensor_f32(running_max), *sum_row = gbx_tensor_f32(running_sum);
    f32x16 new_max = load_row(gbx_tensor_f32(block_max), block_max->strides[0], row, rows, 0);
    f32x16 sum = load_row(gbx_tensor_f32(block_sum), block_sum->strides[0], row, rows, 1);
    f32x16 max = new_max, old_part = splat(0), new_part = splat(1);
    if (!is_first) {
        f32x16 old_max = load_row(max_row, running_max->strides[0], row, rows, 0);
        f32x16 old_sum = load_row(sum_row, running_sum->strides[0], row, rows, 0);
        max = larger(old_max, new_max);
        old_part = exp_of_nonpositive(old_max - max);
        new_part = exp_of_nonpositive(new_max - max);
        sum = old_part * old_sum + new_part * sum;
    }
    store_row(max_row, running_max->strides[0], row, rows, max);
    store_row(sum_row, running_sum->strides[0], row, rows, sum);
    store_f32x16(out->old_part, old_part);
    store_f32x16(out->new_part, new_part);
    store_f32x16(out->sum, sum);
}

static void update_row(const uint64_t *args, int64_t row, const factors *with, int lane) {
    const gbx_tensor *partial = gbx_arg_tensor(args, 2), *out = gbx_arg_tensor(args, 5);
    int is_first = gbx_arg_u32(args, 6) != 0, is_last = gbx_arg_u32(args, 7) != 0;
    const float *from = gbx_tensor_f32(partial) + row * partial->strides[0];
    float *to = gbx_tensor_f32(out) + row * out->strides[0];
    int64_t columns = partial->shape[1];
    for (int64_t column = 0; column < columns; column += LANES) {
        f32x16 value = load_row(from, partial->strides[1], column, columns, 0);
        if (!is_first)
            value = load_row(to, out->strides[1], column, columns, 0) * with->old_part[lane] +
                    value * with->new_part[lane];
        if (is_last)
            value = value / with->sum[lane];
        store_row(to, out->strides[1], column, columns, value);
    }
}

void kernel_entry(const uint64_t *args) {
    int64_t rows = gbx_arg_tensor(args, 0)->shape[0];
    int is_first = gbx_arg_u32(args, 6) != 0;
    for (int64_t row = 0; row < rows; row += LANES) {
        factors with;
        update_state(args, row, is_first, &with);
        for (int lane = 0; lane < LANES && row + lane < rows; ++lane)
            update_row(args, row + lane, &with, lane);
    }
}
