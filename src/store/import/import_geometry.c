#include "store/import/import_geometry.h"

#include <inttypes.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "base/checked.h"
#include "tensor/view.h"

/* False where the size overflows; an empty dimension counts as one of one element. */
static bool set_row_major(uint32_t ndims, const int64_t *shape, int64_t *out_strides) {
    int64_t stride = 1;
    bool is_fitting = true;
    for (uint32_t d = ndims; d-- > 0;) {
        out_strides[d] = stride;
        if (is_fitting && shape[d] != 0)
            is_fitting = gbx_checked_mul_i64(stride, shape[d], &stride);
    }
    return is_fitting;
}

static gbx_status check_ndims(const gbx_import_fields *fields, gbx_import_field field,
                              uint32_t count, uint32_t ndims) {
    if (count == ndims)
        return NULL;
    return gbx_import_fail(fields, field, "has %u elements, but \"shape\" has %u", count, ndims);
}

static bool has_window(const gbx_import_fields *fields) {
    return gbx_import_has(fields, GBX_FIELD_RAW_SHAPE) || gbx_import_has(fields, GBX_FIELD_OFFSETS);
}

/* A view of the shape at `offsets` in a row-major buffer of `raw_shape`. */
static gbx_status get_window(const gbx_import_fields *fields, gbx_tensor *view) {
    int64_t raw[GBX_MAX_DIMS], offsets[GBX_MAX_DIMS];
    uint32_t raw_count = 0, offset_count = 0;
    GBX_TRY(gbx_import_require(fields, GBX_FIELD_RAW_SHAPE));
    GBX_TRY(gbx_import_require(fields, GBX_FIELD_OFFSETS));
    GBX_TRY(gbx_import_get_integers(fields, GBX_FIELD_RAW_SHAPE, 0, INT64_MAX, raw, &raw_count));
    GBX_TRY(
        gbx_import_get_integers(fields, GBX_FIELD_OFFSETS, 0, INT64_MAX, offsets, &offset_count));
    GBX_TRY(check_ndims(fields, GBX_FIELD_RAW_SHAPE, raw_count, view->ndims));
    GBX_TRY(check_ndims(fields, GBX_FIELD_OFFSETS, offset_count, view->ndims));
    if (!set_row_major(raw_count, raw, view->strides))
        return gbx_import_fail(fields, GBX_FIELD_RAW_SHAPE, "its size overflows 64 bits");
    for (uint32_t d = 0; d < view->ndims; ++d) {
        int64_t step;
        if (!gbx_range_is_inside((uint64_t)offsets[d], (uint64_t)view->shape[d], (uint64_t)raw[d]))
            return gbx_import_fail(fields, GBX_FIELD_OFFSETS,
                                   "dimension %u: %" PRId64 " from %" PRId64
                                   " on do not lie inside of the %" PRId64 " of raw_shape",
                                   d, view->shape[d], offsets[d], raw[d]);
        if (!gbx_checked_mul_i64(offsets[d], view->strides[d], &step) ||
            !gbx_checked_add_i64(view->start_offset, step, &view->start_offset))
            return gbx_import_fail(fields, GBX_FIELD_RAW_SHAPE, "its size overflows 64 bits");
    }
    return NULL;
}

static gbx_status get_strides(const gbx_import_fields *fields, gbx_tensor *view) {
    uint32_t count = view->ndims;
    (void)set_row_major(view->ndims, view->shape, view->strides); /* whose size was checked */
    GBX_TRY(gbx_import_get_integers(fields, GBX_FIELD_STRIDES, INT64_MIN, INT64_MAX, view->strides,
                                    &count));
    GBX_TRY(check_ndims(fields, GBX_FIELD_STRIDES, count, view->ndims));
    return gbx_import_get_integer(fields, GBX_FIELD_START_OFFSET, INT64_MIN, INT64_MAX,
                                  &view->start_offset);
}

static gbx_status check_numel(const gbx_import_fields *fields, const gbx_tensor *view) {
    int64_t told = 0;
    uint64_t count = 1;
    bool is_empty = false, is_fitting = true;
    for (uint32_t d = 0; d < view->ndims; ++d) {
        is_empty |= view->shape[d] == 0;
        is_fitting &=
            view->shape[d] == 0 || gbx_checked_mul_u64(count, (uint64_t)view->shape[d], &count);
    }
    if (!is_fitting || count > INT64_MAX / 8) /* also of an empty one: strides are made of it */
        return gbx_import_fail(fields, GBX_FIELD_SHAPE, "its size overflows 64 bits");
    count = is_empty ? 0 : count;
    GBX_TRY(gbx_import_get_integer(fields, GBX_FIELD_NUMEL, 0, INT64_MAX, &told));
    if (gbx_import_has(fields, GBX_FIELD_NUMEL) && (uint64_t)told != count)
        return gbx_import_fail(fields, GBX_FIELD_NUMEL,
                               "%" PRId64 " is not the %" PRIu64 " elements of the shape", told,
                               count);
    return NULL;
}

/* Whether two views of one shape have the same elements at the same places. */
static bool is_same_view(const gbx_tensor *a, const gbx_tensor *b) {
    bool is_same = a->start_offset == b->start_offset;
    for (uint32_t d = 0; d < a->ndims; ++d) {
        if (a->shape[d] == 0)
            return true;
        is_same &= a->shape[d] == 1 || a->strides[d] == b->strides[d];
    }
    return is_same;
}

/* Where a window stands beside strides or start_offset, it has to be what they say; it tells what
 * is missing of them. */
static gbx_status get_view(const gbx_import_fields *fields, gbx_tensor *view) {
    gbx_tensor window = *view;
    if (!has_window(fields))
        return get_strides(fields, view);
    GBX_TRY(get_window(fields, &window));
    GBX_TRY(get_strides(fields, view));
    if (!gbx_import_has(fields, GBX_FIELD_START_OFFSET))
        view->start_offset = window.start_offset;
    if (!gbx_import_has(fields, GBX_FIELD_STRIDES))
        memcpy(view->strides, window.strides, sizeof view->strides);
    if (is_same_view(view, &window))
        return NULL;
    return gbx_import_fail(fields, GBX_FIELD_RAW_SHAPE,
                           "with offsets it is not the view that strides and start_offset tell");
}

/* Tools differ in what they call not contiguous: a view at an offset, a dimension of 1. */
static gbx_status check_contiguous(const gbx_import_fields *fields, const gbx_tensor *view) {
    bool is_told = false;
    GBX_TRY(gbx_import_get_bool(fields, GBX_FIELD_IS_CONTIGUOUS, &is_told));
    if (!is_told || gbx_tensor_is_contiguous(view))
        return NULL;
    return gbx_import_fail(fields, GBX_FIELD_IS_CONTIGUOUS,
                           "is true, but shape and strides are not those of a row-major tensor "
                           "without gaps");
}

gbx_status gbx_import_get_geometry(const gbx_import_fields *fields, uint8_t dtype,
                                   gbx_tensor *out_view) {
    int64_t first, end;
    *out_view = (gbx_tensor){.dtype = dtype};
    GBX_TRY(gbx_import_get_integers(fields, GBX_FIELD_SHAPE, 0, INT64_MAX, out_view->shape,
                                    &out_view->ndims));
    GBX_TRY(check_numel(fields, out_view));
    GBX_TRY(get_view(fields, out_view));
    if (gbx_tensor_is_valid(out_view, &first, &end))
        return check_contiguous(fields, out_view);
    gbx_status why = gbx_tensor_validate(out_view);
    gbx_status status = gbx_import_fail(fields, GBX_FIELD_SHAPE,
                                        "with strides and start_offset it is no tensor: %s",
                                        why ? gbx_status_message(why) : "it does not fit");
    gbx_status_free(why);
    return status;
}
