#include "runtime/tensormap_and_ringbuffer/region.h"

#include <glassbox/tensor.h>

/* --- from tensors to regions --- */

static void insert_dim(gbx_region_form *form, uint64_t stride, uint64_t count) {
    uint32_t at = form->dim_count++;
    for (; at > 0 && form->dims[at - 1].stride > stride; --at)
        form->dims[at] = form->dims[at - 1];
    form->dims[at] = (gbx_region_dim){stride, count};
}

/* Merges dimensions that continue or cover each other; strides ascend. Sets the span. */
static void fold_dims(gbx_region_form *form) {
    uint16_t kept = 0;
    form->span = form->run;
    form->is_nested = true;
    for (uint32_t k = 0; k < form->dim_count; ++k) {
        gbx_region_dim dim = form->dims[k];
        gbx_region_dim *inner = &form->dims[kept - (kept > 0)];
        uint64_t reach = dim.stride * (dim.count - 1);
        if (kept == 0 && dim.stride <= form->run) {
            form->run += reach;
        } else if (kept > 0 && dim.stride <= inner->stride * inner->count &&
                   dim.stride % inner->stride == 0) {
            inner->count += reach / inner->stride;
        } else {
            form->is_nested &= dim.stride >= form->span;
            form->dims[kept++] = dim;
        }
        form->span += reach;
    }
    form->dim_count = kept;
}

/* A form in halves of bytes becomes one of bytes where every row begins in the same half. */
static void fold_halves(gbx_region_form *form, uint64_t parity) {
    uint64_t odd = 0;
    for (uint32_t k = 0; k < form->dim_count; ++k)
        odd |= form->dims[k].stride & 1;
    if (odd) {
        form->span = (parity + form->span + 1) / 2;
        form->is_nested = false;
        form->halves = (uint8_t)(1 + parity);
        return;
    }
    form->run = (parity + form->run + 1) / 2;
    for (uint32_t k = 0; k < form->dim_count; ++k)
        form->dims[k].stride /= 2;
    fold_dims(form);
}

bool gbx_region_of_tensor(const gbx_tensor *tensor, gbx_region *out_region) {
    gbx_region_form *form = &out_region->form;
    uint64_t bytes = (gbx_dtype_bits(tensor->dtype) + 4) / 8; /* 4 bits count in halves: 1 */
    uint64_t low = (uint64_t)tensor->start_offset * bytes;
    form->run = bytes;
    form->dim_count = 0;
    form->halves = 0;
    for (uint32_t d = tensor->ndims; d-- > 0;) {
        uint64_t count = (uint64_t)tensor->shape[d];
        uint64_t stride = (uint64_t)tensor->strides[d] * bytes;
        if (count == 0)
            return false;
        if (count == 1 || stride == 0)
            continue;
        if (tensor->strides[d] < 0) {
            low += stride * (count - 1);
            stride = -stride;
        }
        insert_dim(form, stride, count);
    }
    fold_dims(form);
    if (gbx_dtype_is_packed(tensor->dtype)) {
        fold_halves(form, low & 1);
        low >>= 1;
    }
    out_region->first = tensor->data + low;
    return true;
}

bool gbx_region_form_equals(const gbx_region_form *a, const gbx_region_form *b) {
    if (a->run != b->run || a->span != b->span || a->dim_count != b->dim_count ||
        a->halves != b->halves)
        return false;
    for (uint32_t k = 0; k < a->dim_count; ++k)
        if (a->dims[k].stride != b->dims[k].stride || a->dims[k].count != b->dims[k].count)
            return false;
    return true;
}

/* --- overlap --- */

/* With 8 dimensions left nothing was folded into the run: it is an element. */
static gbx_tensor tensor_of_region(uint64_t first, const gbx_region_form *form) {
    static const uint8_t dtypes[9] = {
        [1] = GBX_UINT8, [2] = GBX_UINT16, [4] = GBX_UINT32, [8] = GBX_UINT64};
    gbx_tensor tensor = {.data = first, .dtype = GBX_UINT8, .ndims = form->dim_count};
    uint64_t unit = 1;
    if (form->halves) {
        tensor.dtype = GBX_INT4; /* any dtype of 4 bits */
        tensor.start_offset = form->halves - 1;
    } else if (form->dim_count == GBX_MAX_DIMS) {
        unit = form->run;
        tensor.dtype = dtypes[unit & 15];
    }
    for (uint32_t k = 0; k < form->dim_count; ++k) {
        tensor.shape[k] = (int64_t)form->dims[k].count;
        tensor.strides[k] = (int64_t)(form->dims[k].stride / unit);
    }
    if (form->dim_count < GBX_MAX_DIMS) {
        tensor.shape[tensor.ndims] = (int64_t)form->run;
        tensor.strides[tensor.ndims++] = 1;
    }
    return tensor;
}

/* Whether a nested form at offset 0 has a byte in [low, high), which overlaps its span. Looks for
 * the first byte at or after `low`. */
static bool has_byte_in(const gbx_region_form *form, int64_t low, int64_t high) {
    if (low <= 0)
        return true;
    uint64_t rest = (uint64_t)low, at = 0, span = form->span;
    for (uint32_t k = form->dim_count; k-- > 0;) {
        gbx_region_dim dim = form->dims[k];
        uint64_t index = rest / dim.stride;
        rest -= index * dim.stride;
        at += index * dim.stride;
        span -= dim.stride * (dim.count - 1);
        if (rest >= span)
            return at + dim.stride < (uint64_t)high;
    }
    return true;
}

static int64_t floor_divide(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

/*
 * Whether two nested forms with equal strides overlap, the second `distance` bytes after the first;
 * only the dimensions below `level` count. Along a dimension at most two differences of the indices
 * bring the rest near enough.
 */
static bool grids_overlap(const gbx_region_form *a, int64_t a_span, const gbx_region_form *b,
                          int64_t b_span, uint32_t level, int64_t distance) {
    if (level == 0)
        return distance < a_span && -distance < b_span;
    int64_t stride = (int64_t)a->dims[level - 1].stride;
    int64_t a_last = (int64_t)a->dims[level - 1].count - 1;
    int64_t b_last = (int64_t)b->dims[level - 1].count - 1;
    a_span -= stride * a_last;
    b_span -= stride * b_last;
    int64_t k = floor_divide(-b_span - distance, stride) + 1;
    for (k = k < -a_last ? -a_last : k; k <= b_last && distance + stride * k < a_span; ++k)
        if (grids_overlap(a, a_span, b, b_span, level - 1, distance + stride * k))
            return true;
    return false;
}

static bool have_equal_strides(const gbx_region_form *a, const gbx_region_form *b) {
    if (a->dim_count != b->dim_count)
        return false;
    for (uint32_t k = 0; k < a->dim_count; ++k)
        if (a->dims[k].stride != b->dims[k].stride)
            return false;
    return true;
}

bool gbx_region_overlaps(uint64_t a_first, const gbx_region_form *a, uint64_t b_first,
                         const gbx_region_form *b) {
    if (a_first + a->span <= b_first || b_first + b->span <= a_first)
        return false;
    int64_t distance = (int64_t)(b_first - a_first);
    if (b->dim_count == 0 && a->is_nested)
        return has_byte_in(a, distance, distance + (int64_t)b->span);
    if (a->dim_count == 0 && b->is_nested)
        return has_byte_in(b, -distance, (int64_t)a->span - distance);
    if (a->is_nested && b->is_nested && have_equal_strides(a, b))
        return grids_overlap(a, (int64_t)a->span, b, (int64_t)b->span, a->dim_count, distance);
    gbx_tensor a_tensor = tensor_of_region(a_first, a), b_tensor = tensor_of_region(b_first, b);
    return gbx_tensor_overlaps(&a_tensor, &b_tensor);
}

/* --- grids --- */

bool gbx_region_place(const gbx_region_form *form, uint64_t offset, uint64_t *out_home) {
    uint64_t rest = offset, span = form->span, home = 0;
    if (!form->is_nested)
        return false;
    for (uint32_t k = form->dim_count; k-- > 0;) {
        gbx_region_dim dim = form->dims[k];
        uint64_t digit = rest / dim.stride;
        rest -= digit * dim.stride;
        span -= dim.stride * (dim.count - 1);
        if (rest + span > dim.stride)
            return false;
        home += (digit - digit % dim.count) * dim.stride;
    }
    *out_home = home + rest - rest % form->run;
    return true;
}

/* Level 0 is single bytes, level k + 1 dimension k. */
static gbx_region_dim level_of(const gbx_region_form *form, uint32_t level) {
    return level == 0 ? (gbx_region_dim){1, form->run} : form->dims[level - 1];
}

/* Adds `count` times the digits of an offset. */
static void add_digits(const gbx_region_form *form, uint64_t offset, uint64_t count,
                       uint64_t *digits) {
    for (uint32_t level = form->dim_count; level > 0; --level) {
        uint64_t stride = form->dims[level - 1].stride;
        if (offset < stride)
            continue;
        digits[level] += offset / stride * count;
        offset %= stride;
    }
    digits[0] += offset * count;
}

/* Adds the greatest digits of the offsets from 0 to `last`. */
static void add_run(const gbx_region_form *form, uint64_t last, uint64_t *digits) {
    for (uint32_t level = form->dim_count; level > 0; --level) {
        uint64_t stride = form->dims[level - 1].stride;
        if (last < stride)
            continue;
        digits[level] += last / stride;
        last = stride - 1;
    }
    digits[0] += last;
}

/* Bounds of the digits of a region's bytes: exact or wider. A digit that may carry into the next
 * can have any value, and so can all below it. */
static void bound_digits(const gbx_region_form *form, uint64_t offset,
                         const gbx_region_form *region, uint64_t *low, uint64_t *high) {
    add_digits(form, offset, 1, low);
    for (uint32_t level = 0; level <= form->dim_count; ++level)
        high[level] = low[level];
    if (region->halves) {
        add_run(form, region->span - 1, high);
    } else {
        for (uint32_t k = 0; k < region->dim_count; ++k)
            add_digits(form, region->dims[k].stride, region->dims[k].count - 1, high);
        add_run(form, region->run - 1, high);
    }
    uint64_t sum = 0;
    for (uint32_t level = 0; level < form->dim_count; ++level) {
        uint64_t next = form->dims[level].stride;
        sum += high[level] * level_of(form, level).stride;
        if (sum < next)
            continue;
        high[level + 1] += sum / next;
        sum = next - 1;
        for (uint32_t k = 0; k <= level; ++k) {
            low[k] = 0;
            high[k] = (form->dims[k].stride - 1) / level_of(form, k).stride;
        }
    }
}

bool gbx_region_find_tiles(const gbx_region_form *form, bool is_aligned, uint64_t offset,
                           const gbx_region_form *region, uint64_t limit,
                           gbx_region_tiles *out_tiles) {
    uint64_t low[GBX_MAX_DIMS + 1] = {0}, high[GBX_MAX_DIMS + 1];
    uint64_t total = 1;
    bound_digits(form, offset, region, low, high);
    out_tiles->level_count = form->dim_count + 1u;
    for (uint32_t level = 0; level <= form->dim_count; ++level) {
        gbx_region_dim dim = level_of(form, level);
        uint64_t most = is_aligned ? 0 : dim.count - 1;
        uint64_t before = low[level] < most ? low[level] : most;
        out_tiles->low[level] = (low[level] - before) / dim.count;
        out_tiles->high[level] = high[level] / dim.count;
        out_tiles->bytes[level] = dim.count * dim.stride;
        uint64_t tiles = out_tiles->high[level] - out_tiles->low[level] + 1;
        if (tiles > limit / total)
            return false;
        total *= tiles;
    }
    return true;
}
