#include "analysis/byte_runs.h"

#include <glassbox/tensor.h>

#include "base/checked.h"

/* A view from a damaged dump may lead anywhere: then numbers wrap. */
static int64_t add(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t multiply(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* Removes dimensions of one element, and the innermost ones that lie row-major; returns the length
 * of a run, in elements. */
static int64_t fold(gbx_tensor *view) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < view->ndims; ++i) {
        if (view->shape[i] == 1)
            continue;
        view->shape[kept] = view->shape[i];
        view->strides[kept++] = view->strides[i];
    }
    view->ndims = kept;
    int64_t length = 1;
    while (view->ndims > 0 && view->strides[view->ndims - 1] == length) {
        length = multiply(length, view->shape[view->ndims - 1]);
        --view->ndims;
    }
    return length;
}

static uint64_t count_outer(const gbx_tensor *folded) {
    uint64_t count = 1;
    bool is_exact = true;
    for (uint32_t i = 0; i < folded->ndims; ++i)
        is_exact &= gbx_checked_mul_u64(count, (uint64_t)folded->shape[i], &count);
    return is_exact ? count : UINT64_MAX;
}

static bool is_empty(const gbx_tensor *view) {
    for (uint32_t i = 0; i < view->ndims; ++i)
        if (view->shape[i] == 0)
            return true;
    return false;
}

void gbx_byte_runs_begin(const gbx_tensor *view, gbx_byte_runs *out_runs) {
    *out_runs = (gbx_byte_runs){.view = *view, .bits = gbx_dtype_bits(view->dtype)};
    if (is_empty(view))
        return;
    out_runs->run_bits = (uint64_t)fold(&out_runs->view) * out_runs->bits;
    out_runs->left = count_outer(&out_runs->view);
    out_runs->position = multiply(view->start_offset, out_runs->bits);
}

/* The next index, row-major. */
static void advance(gbx_byte_runs *runs) {
    gbx_tensor *view = &runs->view;
    for (uint32_t i = view->ndims; i-- > 0;) {
        int64_t step = multiply(view->strides[i], runs->bits);
        runs->position = add(runs->position, step);
        if (++runs->index[i] < view->shape[i])
            return;
        runs->position = add(runs->position, multiply(step, -view->shape[i]));
        runs->index[i] = 0;
    }
}

bool gbx_byte_runs_next(gbx_byte_runs *runs, gbx_byte_run *out_run) {
    if (runs->left == 0)
        return false;
    /* Half a byte at either end counts as a complete one. */
    int64_t end_bit = add(runs->position, (int64_t)runs->run_bits);
    out_run->begin = runs->view.data + (uint64_t)(runs->position >> 3);
    out_run->end = runs->view.data + (uint64_t)(add(end_bit, 7) >> 3);
    out_run->offset = runs->next_offset;
    runs->next_offset += runs->run_bits / 8;
    --runs->left;
    advance(runs);
    return true;
}
