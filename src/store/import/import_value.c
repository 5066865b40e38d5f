#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include <jansson.h>

#include <glassbox/tensor.h>

#include "base/checked.h"
#include "base/float_bits.h"
#include "store/import/internal.h"
#include "tensor/dtype_table.h"
#include "tensor/view.h"

enum { EXPECTED_BYTES = 96, NUMBER_BYTES_MAX = 1024 };

static uint64_t low_bits(uint64_t bits, uint32_t width) {
    return width < 64 ? bits & ((UINT64_C(1) << width) - 1) : bits;
}

/* --- integers --- */

/* A string of digits is a number, too. */
static bool take_integer(const gbx_scan_value *value, uint64_t *out_magnitude,
                         bool *out_is_negative) {
    gbx_scan_value number;
    if (value->kind != GBX_SCAN_STRING)
        return gbx_scan_integer(value, out_magnitude, out_is_negative);
    if (value->has_escape || !gbx_scan_whole(value->text, value->size, &number) ||
        number.size != value->size)
        return false;
    return gbx_scan_integer(&number, out_magnitude, out_is_negative);
}

/* Two's complement of 64 bits. */
static bool take_fitting(const gbx_scan_value *value, uint32_t dtype, uint64_t *out_bits) {
    uint64_t magnitude;
    bool is_negative;
    uint32_t width = gbx_dtype_bits(dtype);
    if (!take_integer(value, &magnitude, &is_negative))
        return false;
    uint64_t end = UINT64_C(1) << (width - 1); /* end of the positive numbers of a signed type */
    bool is_fitting = gbx_dtype_is_signed(dtype) ? magnitude < end + is_negative
                                                 : low_bits(magnitude, width) == magnitude &&
                                                       (!is_negative || magnitude == 0);
    *out_bits = is_negative ? 0 - magnitude : magnitude;
    return is_fitting;
}

static bool take_bool(const gbx_scan_value *value, uint64_t *out_bits) {
    uint64_t magnitude = 0;
    bool is_negative = false;
    if (value->kind == GBX_SCAN_TRUE || value->kind == GBX_SCAN_FALSE) {
        *out_bits = value->kind == GBX_SCAN_TRUE;
        return true;
    }
    bool is_integer = gbx_scan_integer(value, &magnitude, &is_negative);
    *out_bits = magnitude;
    return is_integer && !is_negative && magnitude <= 1;
}

/* --- floats --- */

static bool take_double(const gbx_scan_value *value, double *out_value) {
    static const struct {
        const char *name;
        double value;
    } words[] = {{"nan", NAN},
                 {"inf", INFINITY},
                 {"infinity", INFINITY},
                 {"-inf", -INFINITY},
                 {"-infinity", -INFINITY}};
    for (size_t i = 0; value->kind == GBX_SCAN_STRING && i < sizeof words / sizeof words[0]; ++i) {
        if (strlen(words[i].name) == value->size &&
            strncasecmp(words[i].name, value->text, value->size) == 0) {
            *out_value = words[i].value;
            return true;
        }
    }
    if (value->kind != GBX_SCAN_NUMBER || value->size > NUMBER_BYTES_MAX)
        return false;
    /* jansson handles locales. */
    json_t *number =
        json_loadb(value->text, value->size, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
    if (!number)
        return false;
    *out_value = json_number_value(number);
    json_decref(number);
    return true;
}

/* A number as a float dtype holds it; false when out of range. */
static bool take_float(const gbx_scan_value *value, uint32_t dtype, uint64_t *out_bits) {
    double number;
    if (!take_double(value, &number))
        return false;
    *out_bits = gbx_dtype_from_f64(dtype, number);
    return gbx_dtype_holds_f64(dtype, number);
}

/* --- scalars --- */

static gbx_status fail_value(const gbx_import_fields *fields, gbx_import_field field,
                             const gbx_scan_value *value, uint32_t dtype) {
    char expected[EXPECTED_BYTES];
    const char *kind = gbx_dtype_is_float(dtype) ? "a number, \"nan\", \"inf\" or \"-inf\""
                       : dtype == GBX_BOOL       ? "true or false"
                                                 : "an integer";
    snprintf(expected, sizeof expected, "%s that %s holds", kind, gbx_dtype_name(dtype));
    return gbx_import_fail_expected(fields, field, -1, value, expected);
}

static bool take_value(const gbx_scan_value *value, uint32_t dtype, uint64_t *out_bits) {
    if (gbx_dtype_is_float(dtype))
        return take_float(value, dtype, out_bits);
    return dtype == GBX_BOOL ? take_bool(value, out_bits) : take_fitting(value, dtype, out_bits);
}

/* Whether the raw word has that value; bits beyond the dtype are ignored. */
static bool is_same_value(uint32_t dtype, uint64_t word, uint64_t bits) {
    uint32_t width = gbx_dtype_bits(dtype);
    uint64_t a = low_bits(word, width);
    uint64_t b = low_bits(bits, width);
    if (dtype == GBX_BOOL)
        return (a != 0) == (b != 0);
    if (gbx_dtype_is_float(dtype) && isnan(gbx_dtype_to_f64(dtype, a)))
        return isnan(gbx_dtype_to_f64(dtype, b));
    return a == b;
}

/* Reads one of the members that give the value into *out_bits. When *has_bits, an earlier member
 * gave it, and both must agree. */
static gbx_status join_value(const gbx_import_fields *fields, gbx_import_field field,
                             uint32_t dtype, bool *has_bits, uint64_t *out_bits) {
    const gbx_scan_value *value = &fields->values[field];
    uint64_t bits = 0;
    if (!gbx_import_has(fields, field))
        return NULL;
    if (!take_value(value, dtype, &bits))
        return fail_value(fields, field, value, dtype);
    if (*has_bits && !is_same_value(dtype, *out_bits, bits)) {
        bool is_word = gbx_import_has(fields, GBX_FIELD_bits);
        char shown[GBX_IMPORT_SHOWN_BYTES];
        gbx_import_show(value, shown);
        return gbx_import_fail(fields, field, "%s does not match the %s of \"%s\", 0x%" PRIx64,
                               shown, gbx_dtype_name(dtype), is_word ? "bits" : "value", *out_bits);
    }
    *out_bits = *has_bits ? *out_bits : low_bits(bits, gbx_dtype_bits(dtype));
    *has_bits = true;
    return NULL;
}

gbx_status gbx_import_get_scalar(const gbx_import_fields *fields, uint32_t dtype,
                                 uint64_t *out_bits) {
    bool has_bits = gbx_import_has(fields, GBX_FIELD_bits);
    uint64_t bits = 0;
    GBX_TRY(gbx_import_get_hex(fields, GBX_FIELD_bits, &bits));
    if (dtype == GBX_DTYPE_NONE && gbx_import_has(fields, GBX_FIELD_value))
        return gbx_import_fail(fields, GBX_FIELD_value,
                               "a scalar of unknown dtype has bits and no value");
    if (dtype == GBX_DTYPE_NONE && !has_bits)
        return gbx_import_require(fields, GBX_FIELD_bits);
    /* Without a dtype, `scalar_value` is the raw word. */
    uint32_t read_as = dtype == GBX_DTYPE_NONE ? GBX_UINT64 : dtype;
    GBX_TRY(join_value(fields, GBX_FIELD_value, read_as, &has_bits, &bits));
    GBX_TRY(join_value(fields, GBX_FIELD_scalar_value, read_as, &has_bits, &bits));
    if (!has_bits)
        return gbx_import_require(fields, GBX_FIELD_value);
    *out_bits = bits;
    return NULL;
}

/* --- statistics --- */

#define STAT_ROW(name, ...) STAT_##name,
#define STAT_NAME(name, ...) #name,
enum { GBX_STATS_FIELDS(STAT_ROW) STAT_COUNT };
static const char *const stat_names[STAT_COUNT] = {GBX_STATS_FIELDS(STAT_NAME)};

static gbx_status take_stats(const gbx_import_fields *fields, gbx_scan_value out_values[STAT_COUNT],
                             bool out_has[STAT_COUNT]) {
    const gbx_scan_value *object = &fields->values[GBX_FIELD_stats];
    gbx_scan scan = gbx_scan_start(object->text, object->size);
    if (object->kind != GBX_SCAN_OBJECT || !gbx_scan_begin(&scan, '{'))
        return gbx_import_fail_expected(fields, GBX_FIELD_stats, -1, object, "an object");
    for (;;) {
        gbx_scan_value key, value;
        bool has_one;
        if (!gbx_scan_next_member(&scan, &key, &value, &has_one))
            return gbx_import_fail(fields, GBX_FIELD_stats, "is not valid JSON");
        if (!has_one)
            return NULL;
        for (size_t i = 0; i < STAT_COUNT; ++i) {
            if (!gbx_scan_is(&key, stat_names[i], strlen(stat_names[i])))
                continue;
            if (out_has[i])
                return gbx_import_fail(fields, GBX_FIELD_stats, "\"%s\" appears twice",
                                       stat_names[i]);
            out_has[i] = true;
            out_values[i] = value;
        }
    }
}

/* As records hold it: a double, an int64_t or a uint64_t. NaN, also of a float dtype without NaN,
 * says that no element counts. */
static bool take_extreme(const gbx_scan_value *value, uint32_t dtype, uint64_t *out_bits) {
    double extreme;
    if (!gbx_dtype_is_float(dtype))
        return take_value(value, dtype, out_bits);
    if (!take_double(value, &extreme))
        return false;
    const double held = gbx_dtype_to_f64(dtype, gbx_dtype_from_f64(dtype, extreme));
    *out_bits = gbx_f64_bits(isnan(extreme) ? (double)NAN : held);
    return isnan(extreme) || gbx_dtype_holds_f64(dtype, extreme);
}

static gbx_status fail_stat(const gbx_import_fields *fields, size_t stat,
                            const gbx_scan_value *value) {
    const char *expected = stat < STAT_mean    ? "a value of the dtype"
                           : stat == STAT_mean ? "a number"
                                               : "an integer that is not negative";
    char shown[GBX_IMPORT_SHOWN_BYTES];
    gbx_import_show(value, shown);
    return gbx_import_fail(fields, GBX_FIELD_stats, "%s: expected %s, got %s", stat_names[stat],
                           expected, shown);
}

gbx_status gbx_import_get_stats(const gbx_import_fields *fields, uint32_t dtype,
                                gbx_record_stats *out_stats) {
    gbx_scan_value values[STAT_COUNT] = {0};
    bool has[STAT_COUNT] = {false};
    GBX_TRY(take_stats(fields, values, has));
    for (size_t i = 0; i < STAT_subnormal; ++i)
        if (!has[i])
            return gbx_import_fail(fields, GBX_FIELD_stats, "\"%s\" is missing", stat_names[i]);
    if (!take_extreme(&values[STAT_min], dtype, &out_stats->min_bits))
        return fail_stat(fields, STAT_min, &values[STAT_min]);
    if (!take_extreme(&values[STAT_max], dtype, &out_stats->max_bits))
        return fail_stat(fields, STAT_max, &values[STAT_max]);
    if (!take_double(&values[STAT_mean], &out_stats->mean))
        return fail_stat(fields, STAT_mean, &values[STAT_mean]);
    uint64_t *const counts[] = {&out_stats->nan_count, &out_stats->inf_count,
                                &out_stats->zero_count, &out_stats->subnormal_count};
    for (size_t i = STAT_nan; i < STAT_COUNT; ++i) {
        int64_t count = 0;
        if (has[i] && !gbx_import_is_integer(&values[i], 0, INT64_MAX, &count))
            return fail_stat(fields, i, &values[i]);
        *counts[i - STAT_nan] = (uint64_t)count;
    }
    return NULL;
}

/* --- shape and strides --- */

/* False when the size overflows; an empty dimension counts as one element. */
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
    return gbx_import_has(fields, GBX_FIELD_raw_shape) || gbx_import_has(fields, GBX_FIELD_offsets);
}

/* A view of the shape at `offsets` in a row-major buffer of `raw_shape`. */
static gbx_status get_window(const gbx_import_fields *fields, gbx_tensor *view) {
    int64_t raw[GBX_MAX_DIMS], offsets[GBX_MAX_DIMS];
    uint32_t raw_count = 0, offset_count = 0;
    GBX_TRY(gbx_import_require(fields, GBX_FIELD_raw_shape));
    GBX_TRY(gbx_import_require(fields, GBX_FIELD_offsets));
    GBX_TRY(gbx_import_get_integers(fields, GBX_FIELD_raw_shape, 0, INT64_MAX, raw, &raw_count));
    GBX_TRY(
        gbx_import_get_integers(fields, GBX_FIELD_offsets, 0, INT64_MAX, offsets, &offset_count));
    GBX_TRY(check_ndims(fields, GBX_FIELD_raw_shape, raw_count, view->ndims));
    GBX_TRY(check_ndims(fields, GBX_FIELD_offsets, offset_count, view->ndims));
    if (!set_row_major(raw_count, raw, view->strides))
        return gbx_import_fail(fields, GBX_FIELD_raw_shape, "its size overflows 64 bits");
    for (uint32_t d = 0; d < view->ndims; ++d) {
        int64_t step;
        if (!gbx_range_is_inside((uint64_t)offsets[d], (uint64_t)view->shape[d], (uint64_t)raw[d]))
            return gbx_import_fail(fields, GBX_FIELD_offsets,
                                   "dimension %u: %" PRId64 " from %" PRId64
                                   " on lie outside the %" PRId64 " of raw_shape",
                                   d, view->shape[d], offsets[d], raw[d]);
        if (!gbx_checked_mul_i64(offsets[d], view->strides[d], &step) ||
            !gbx_checked_add_i64(view->start_offset, step, &view->start_offset))
            return gbx_import_fail(fields, GBX_FIELD_raw_shape, "its size overflows 64 bits");
    }
    return NULL;
}

static gbx_status get_strides(const gbx_import_fields *fields, gbx_tensor *view) {
    uint32_t count = view->ndims;
    (void)set_row_major(view->ndims, view->shape, view->strides); /* its size was checked */
    GBX_TRY(gbx_import_get_integers(fields, GBX_FIELD_strides, INT64_MIN, INT64_MAX, view->strides,
                                    &count));
    GBX_TRY(check_ndims(fields, GBX_FIELD_strides, count, view->ndims));
    return gbx_import_get_integer(fields, GBX_FIELD_start_offset, INT64_MIN, INT64_MAX,
                                  &view->start_offset);
}

static gbx_status check_numel(const gbx_import_fields *fields, const gbx_tensor *view) {
    int64_t stated = 0;
    uint64_t count = 1;
    bool is_empty = false, is_fitting = true;
    for (uint32_t d = 0; d < view->ndims; ++d) {
        is_empty |= view->shape[d] == 0;
        is_fitting &=
            view->shape[d] == 0 || gbx_checked_mul_u64(count, (uint64_t)view->shape[d], &count);
    }
    if (!is_fitting || count > INT64_MAX / 8) /* even if it is empty: strides are made from it */
        return gbx_import_fail(fields, GBX_FIELD_shape, "its size overflows 64 bits");
    count = is_empty ? 0 : count;
    GBX_TRY(gbx_import_get_integer(fields, GBX_FIELD_numel, 0, INT64_MAX, &stated));
    if (gbx_import_has(fields, GBX_FIELD_numel) && (uint64_t)stated != count)
        return gbx_import_fail(fields, GBX_FIELD_numel,
                               "%" PRId64 " differs from the %" PRIu64 " elements of the shape",
                               stated, count);
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

/* A window beside strides or start_offset must match them; it provides what they lack. */
static gbx_status get_view(const gbx_import_fields *fields, gbx_tensor *view) {
    gbx_tensor window = *view;
    if (!has_window(fields))
        return get_strides(fields, view);
    GBX_TRY(get_window(fields, &window));
    GBX_TRY(get_strides(fields, view));
    if (!gbx_import_has(fields, GBX_FIELD_start_offset))
        view->start_offset = window.start_offset;
    if (!gbx_import_has(fields, GBX_FIELD_strides))
        memcpy(view->strides, window.strides, sizeof view->strides);
    if (is_same_view(view, &window))
        return NULL;
    return gbx_import_fail(fields, GBX_FIELD_raw_shape,
                           "with offsets, it does not match strides and start_offset");
}

/* Tools differ in what they call contiguous: a view at an offset, a dimension of 1. */
static gbx_status check_contiguous(const gbx_import_fields *fields, const gbx_tensor *view) {
    bool is_stated = false;
    GBX_TRY(gbx_import_get_bool(fields, GBX_FIELD_is_contiguous, &is_stated));
    if (!is_stated || gbx_tensor_is_contiguous(view))
        return NULL;
    return gbx_import_fail(fields, GBX_FIELD_is_contiguous,
                           "is true, but shape and strides are not those of a row-major tensor "
                           "without gaps");
}

gbx_status gbx_import_get_geometry(const gbx_import_fields *fields, uint8_t dtype,
                                   gbx_tensor *out_view) {
    int64_t first, end;
    *out_view = (gbx_tensor){.dtype = dtype};
    GBX_TRY(gbx_import_get_integers(fields, GBX_FIELD_shape, 0, INT64_MAX, out_view->shape,
                                    &out_view->ndims));
    GBX_TRY(check_numel(fields, out_view));
    GBX_TRY(get_view(fields, out_view));
    if (gbx_tensor_is_valid(out_view, &first, &end))
        return check_contiguous(fields, out_view);
    gbx_status why = gbx_tensor_validate(out_view);
    gbx_status status = gbx_import_fail(
        fields, GBX_FIELD_shape, "with strides and start_offset, it is not a valid tensor: %s",
        why ? gbx_status_message(why) : "it does not fit");
    gbx_status_free(why);
    return status;
}
