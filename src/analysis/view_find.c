#include "analysis/view_find.h"

#include <stdlib.h>

#include <glassbox/tensor.h>

#include "tensor/compare/compare.h"

/* Steps of one search; views that are tiles, slices or steps need a few for each dimension. */
enum { STEPS_MAX = 1 << 16 };

typedef struct dimension {
    int64_t stride;
    int64_t length;
    uint32_t number; /* in the view */
    int64_t least;   /* what this and the smaller strides add at least, and at most */
    int64_t most;
} dimension;

typedef struct search {
    dimension dimensions[GBX_MAX_DIMS]; /* by |stride|, the largest first */
    uint32_t count;
    int64_t first; /* the offset must lie in [first, last] */
    int64_t last;
    uint32_t steps;
    int64_t index[GBX_MAX_DIMS];
} search;

static int compare_strides(const void *a, const void *b) {
    int64_t left = llabs(((const dimension *)a)->stride);
    int64_t right = llabs(((const dimension *)b)->stride);
    return left < right ? 1 : left > right ? -1 : 0;
}

static int64_t floor_divide(int64_t a, int64_t b) {
    int64_t quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/* False if the view has no elements. */
static bool prepare(const gbx_tensor *view, search *s) {
    for (uint32_t i = 0; i < view->ndims; ++i) {
        if (view->shape[i] == 0)
            return false;
        /* Any index of a dimension that does not move is as good as 0. */
        if (view->shape[i] > 1 && view->strides[i] != 0)
            s->dimensions[s->count++] =
                (dimension){.stride = view->strides[i], .length = view->shape[i], .number = i};
    }
    qsort(s->dimensions, s->count, sizeof *s->dimensions, compare_strides);
    int64_t least = 0, most = 0;
    for (uint32_t i = s->count; i-- > 0;) {
        dimension *d = &s->dimensions[i];
        int64_t reach = d->stride * (d->length - 1);
        least += reach < 0 ? reach : 0;
        most += reach > 0 ? reach : 0;
        d->least = least;
        d->most = most;
    }
    return true;
}

/* The indices of a dimension with which the smaller ones can still reach the offset. */
static void bound(const search *s, uint32_t level, int64_t offset, int64_t *out_first,
                  int64_t *out_last) {
    const dimension *d = &s->dimensions[level];
    bool is_innermost = level + 1 == s->count;
    int64_t least = is_innermost ? 0 : d[1].least, most = is_innermost ? 0 : d[1].most;
    /* s->first - most <= offset + index * stride <= s->last - least */
    int64_t low = s->first - most - offset, high = s->last - least - offset;
    if (d->stride < 0) {
        int64_t swapped = -low;
        low = -high;
        high = swapped;
    }
    int64_t step = llabs(d->stride);
    int64_t first = -floor_divide(-low, step), last = floor_divide(high, step);
    *out_first = first > 0 ? first : 0;
    *out_last = last < d->length - 1 ? last : d->length - 1;
}

static gbx_view_found search_from(search *s, uint32_t level, int64_t offset) {
    if (level == s->count)
        return s->first <= offset && offset <= s->last ? GBX_VIEW_HAS_IT : GBX_VIEW_LACKS_IT;
    int64_t first, last;
    bound(s, level, offset, &first, &last);
    for (int64_t i = first; i <= last; ++i) {
        if (++s->steps > STEPS_MAX)
            return GBX_VIEW_UNDECIDED;
        s->index[s->dimensions[level].number] = i;
        gbx_view_found found = search_from(s, level + 1, offset + i * s->dimensions[level].stride);
        if (found != GBX_VIEW_LACKS_IT)
            return found;
    }
    return GBX_VIEW_LACKS_IT;
}

gbx_view_found gbx_view_find(const gbx_tensor *view, int64_t begin_bit, int64_t end_bit,
                             gbx_view_element *out_element) {
    int64_t bits = gbx_dtype_bits(view->dtype);
    search s = {.first = floor_divide(begin_bit - bits, bits) + 1,
                .last = floor_divide(end_bit - 1, bits)};
    if (!prepare(view, &s))
        return GBX_VIEW_LACKS_IT;
    gbx_view_found found = search_from(&s, 0, view->start_offset);
    if (found != GBX_VIEW_HAS_IT)
        return found;
    int64_t position = view->start_offset;
    *out_element = (gbx_view_element){0};
    for (uint32_t i = 0; i < view->ndims; ++i) {
        out_element->number = out_element->number * (uint64_t)view->shape[i] + (uint64_t)s.index[i];
        position += s.index[i] * view->strides[i];
    }
    out_element->begin_bit = position * bits;
    out_element->end_bit = (position + 1) * bits;
    return found;
}

bool gbx_view_find_bytes(const gbx_tensor *view, uint64_t begin, uint64_t end,
                         gbx_view_element *out_element) {
    int64_t first = (int64_t)(begin - view->data) * 8, last = (int64_t)(end - view->data) * 8;
    return gbx_view_find(view, first, last, out_element) == GBX_VIEW_HAS_IT;
}

/* Narrows the view, dimension by dimension, to the least index with which there is one. */
bool gbx_view_find_first(const gbx_tensor *view, uint64_t begin, uint64_t end,
                         uint64_t *out_number) {
    gbx_tensor part = *view;
    gbx_view_element element;
    int64_t index[GBX_MAX_DIMS];
    if (!gbx_view_find_bytes(view, begin, end, &element))
        return false;
    gbx_compare_index(view, element.number, index);
    *out_number = 0;
    for (uint32_t d = 0; d < view->ndims; ++d) {
        int64_t start = part.start_offset, low = 0, high = index[d];
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            part.start_offset = start + low * view->strides[d];
            part.shape[d] = middle - low + 1;
            if (gbx_view_find_bytes(&part, begin, end, &element)) {
                gbx_compare_index(&part, element.number, index);
                index[d] += low;
                high = index[d];
            } else {
                low = middle + 1;
            }
        }
        part.start_offset = start + high * view->strides[d];
        part.shape[d] = 1;
        *out_number = *out_number * (uint64_t)view->shape[d] + (uint64_t)high;
    }
    return true;
}

void gbx_view_widen(const gbx_tensor *view, gbx_view_element *element) {
    int64_t bits = gbx_dtype_bits(view->dtype), index[GBX_MAX_DIMS];
    gbx_compare_index(view, element->number, index);
    for (uint32_t d = 0; d < view->ndims; ++d) {
        if (view->strides[d] != 1 || view->shape[d] == 1)
            continue;
        element->begin_bit -= index[d] * bits;
        element->end_bit += (view->shape[d] - 1 - index[d]) * bits;
        return;
    }
}
