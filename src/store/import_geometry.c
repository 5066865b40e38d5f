#include "store/import_geometry.h"

#include <inttypes.h>

#include <glassbox/tensor.h>

#include "base/checked.h"
#include "tensor/view.h"

/* False where the size overflows; strides are those of one element where a dimension is empty. */
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

/* A view of the shape at `offsets` in a row-major buffer of `raw_shape`. */
static gbx_status get_window(const gbx_import_fields *fields, gbx_tensor *view) {
    int64_t raw[GBX_MAX_DIMS], offsets[GBX_MAX_DIMS];
    uint32_t raw_count = 0, offset_count = 0;
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
    if (!is_empty && (!is_fitting || count > INT64_MAX / 8))
        return gbx_import_fail(fields, GBX_FIELD_SHAPE, "its size overflows 64 bits");
    count = is_empty ? 0 : count;
    GBX_TRY(gbx_import_get_integer(fields, GBX_FIELD_NUMEL, 0, INT64_MAX, &told));
    if (gbx_import_has(fields, GBX_FIELD_NUMEL) && (uint64_t)told != count)
        return gbx_import_fail(fields, GBX_FIELD_NUMEL,
                               "%" PRId64 " is not the %" PRIu64 " elements of the shape", told,
                               count);
    return NULL;
}

gbx_status gbx_import_get_geometry(const gbx_import_fields *fields, uint8_t dtype,
                                   gbx_tensor *out_view) {
    int64_t first, end;
    *out_view = (gbx_tensor){.dtype = dtype};
    GBX_TRY(gbx_import_get_integers(fields, GBX_FIELD_SHAPE, 0, INT64_MAX, out_view->shape,
                                    &out_view->ndims));
    GBX_TRY(check_numel(fields, out_view));
    if (gbx_import_has(fields, GBX_FIELD_RAW_SHAPE) && !gbx_import_has(fields, GBX_FIELD_STRIDES))
        GBX_TRY(get_window(fields, out_view));
    else
        GBX_TRY(get_strides(fields, out_view));
    if (gbx_tensor_is_valid(out_view, &first, &end))
        return NULL;
    gbx_status why = gbx_tensor_validate(out_view);
    gbx_status status = gbx_import_fail(fields, GBX_FIELD_SHAPE,
                                        "with strides and start_offset it is no tensor: %s",
                                        why ? gbx_status_message(why) : "it does not fit");
    gbx_status_free(why);
    return status;
}
