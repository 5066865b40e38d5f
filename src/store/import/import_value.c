#include "store/import/import_value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include <jansson.h>

#include <glassbox/tensor.h>

#include "base/float_bits.h"

enum { EXPECTED_BYTES = 96, NUMBER_BYTES_MAX = 1024 };

/* Half a step beyond the largest number. */
#define E4M3_END 464.0

static uint64_t low_bits(uint64_t bits, uint32_t width) {
    return width < 64 ? bits & ((UINT64_C(1) << width) - 1) : bits;
}

/* --- integers --- */

/* Digits in a string are a number as well. */
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
    uint64_t end = UINT64_C(1) << (width - 1); /* of the positive ones of a signed type */
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
    /* The library knows about locales. */
    json_t *number =
        json_loadb(value->text, value->size, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
    if (!number)
        return false;
    *out_value = json_number_value(number);
    json_decref(number);
    return true;
}

/* What a float dtype holds of a number; false where it is beyond its range. */
static bool take_float(const gbx_scan_value *value, uint32_t dtype, uint64_t *out_bits) {
    double number;
    if (!take_double(value, &number))
        return false;
    *out_bits = gbx_dtype_from_f64(dtype, number);
    double held = gbx_dtype_to_f64(dtype, *out_bits);
    if (isnan(number))
        return true;
    if (dtype == GBX_FLOAT8_E4M3) /* has no infinity and saturates instead */
        return fabs(number) <= E4M3_END;
    return isfinite(held) || isinf(number);
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

/* Whether the raw word has that value: the bits beyond the dtype's do not count. */
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

/* One of the members that tell the value: *out_bits is what it says, and has to be that of the one
 * before where *has_bits says that there was one. */
static gbx_status join_value(const gbx_import_fields *fields, gbx_import_field field,
                             uint32_t dtype, bool *has_bits, uint64_t *out_bits) {
    const gbx_scan_value *value = &fields->values[field];
    uint64_t bits = 0;
    if (!gbx_import_has(fields, field))
        return NULL;
    if (!take_value(value, dtype, &bits))
        return fail_value(fields, field, value, dtype);
    if (*has_bits && !is_same_value(dtype, *out_bits, bits)) {
        bool is_word = gbx_import_has(fields, GBX_FIELD_BITS);
        char shown[GBX_IMPORT_SHOWN_BYTES];
        gbx_import_show(value, shown);
        return gbx_import_fail(fields, field, "%s is not the %s of \"%s\", 0x%" PRIx64, shown,
                               gbx_dtype_name(dtype), is_word ? "bits" : "value", *out_bits);
    }
    *out_bits = *has_bits ? *out_bits : low_bits(bits, gbx_dtype_bits(dtype));
    *has_bits = true;
    return NULL;
}

gbx_status gbx_import_get_scalar(const gbx_import_fields *fields, uint32_t dtype,
                                 uint64_t *out_bits) {
    bool has_bits = gbx_import_has(fields, GBX_FIELD_BITS);
    uint64_t bits = 0;
    GBX_TRY(gbx_import_get_hex(fields, GBX_FIELD_BITS, &bits));
    GBX_TRY(join_value(fields, GBX_FIELD_VALUE, dtype, &has_bits, &bits));
    GBX_TRY(join_value(fields, GBX_FIELD_SCALAR_VALUE, dtype, &has_bits, &bits));
    if (!has_bits)
        return gbx_import_require(fields, GBX_FIELD_VALUE);
    *out_bits = bits;
    return NULL;
}

/* --- statistics --- */

enum { STAT_MIN, STAT_MAX, STAT_MEAN, STAT_NAN, STAT_INF, STAT_ZERO, STAT_SUBNORMAL, STAT_COUNT };

static const char *const stat_names[STAT_COUNT] = {"min", "max",  "mean",     "nan",
                                                   "inf", "zero", "subnormal"};

static gbx_status take_stats(const gbx_import_fields *fields, gbx_scan_value out_values[STAT_COUNT],
                             bool out_has[STAT_COUNT]) {
    const gbx_scan_value *object = &fields->values[GBX_FIELD_STATS];
    gbx_scan scan = gbx_scan_start(object->text, object->size);
    if (object->kind != GBX_SCAN_OBJECT || !gbx_scan_begin(&scan, '{'))
        return gbx_import_fail_expected(fields, GBX_FIELD_STATS, -1, object, "an object");
    for (;;) {
        gbx_scan_value key, value;
        bool has_one;
        if (!gbx_scan_next_member(&scan, &key, &value, &has_one))
            return gbx_import_fail(fields, GBX_FIELD_STATS, "is no JSON");
        if (!has_one)
            return NULL;
        for (size_t i = 0; i < STAT_COUNT; ++i) {
            if (!gbx_scan_is(&key, stat_names[i], strlen(stat_names[i])))
                continue;
            if (out_has[i])
                return gbx_import_fail(fields, GBX_FIELD_STATS, "\"%s\" is there twice",
                                       stat_names[i]);
            out_has[i] = true;
            out_values[i] = value;
        }
    }
}

/* As records hold it: a double, an int64_t or a uint64_t. */
static bool take_extreme(const gbx_scan_value *value, uint32_t dtype, uint64_t *out_bits) {
    uint64_t bits;
    if (!gbx_dtype_is_float(dtype))
        return take_value(value, dtype, out_bits);
    if (!take_float(value, dtype, &bits))
        return false;
    double extreme = gbx_dtype_to_f64(dtype, bits);
    *out_bits = gbx_f64_bits(isnan(extreme) ? (double)NAN : extreme);
    return true;
}

static gbx_status fail_stat(const gbx_import_fields *fields, size_t stat,
                            const gbx_scan_value *value) {
    const char *expected = stat < STAT_MEAN    ? "a value of the dtype"
                           : stat == STAT_MEAN ? "a number"
                                               : "an integer that is not negative";
    char shown[GBX_IMPORT_SHOWN_BYTES];
    gbx_import_show(value, shown);
    return gbx_import_fail(fields, GBX_FIELD_STATS, "%s: expected %s, got %s", stat_names[stat],
                           expected, shown);
}

gbx_status gbx_import_get_stats(const gbx_import_fields *fields, uint32_t dtype,
                                gbx_record_stats *out_stats) {
    gbx_scan_value values[STAT_COUNT] = {0};
    bool has[STAT_COUNT] = {false};
    GBX_TRY(take_stats(fields, values, has));
    for (size_t i = 0; i < STAT_SUBNORMAL; ++i)
        if (!has[i])
            return gbx_import_fail(fields, GBX_FIELD_STATS, "\"%s\" is missing", stat_names[i]);
    if (!take_extreme(&values[STAT_MIN], dtype, &out_stats->min_bits))
        return fail_stat(fields, STAT_MIN, &values[STAT_MIN]);
    if (!take_extreme(&values[STAT_MAX], dtype, &out_stats->max_bits))
        return fail_stat(fields, STAT_MAX, &values[STAT_MAX]);
    if (!take_double(&values[STAT_MEAN], &out_stats->mean))
        return fail_stat(fields, STAT_MEAN, &values[STAT_MEAN]);
    uint64_t *const counts[] = {&out_stats->nan_count, &out_stats->inf_count,
                                &out_stats->zero_count, &out_stats->subnormal_count};
    for (size_t i = STAT_NAN; i < STAT_COUNT; ++i) {
        int64_t count = 0;
        if (has[i] && !gbx_import_is_integer(&values[i], 0, INT64_MAX, &count))
            return fail_stat(fields, i, &values[i]);
        *counts[i - STAT_NAN] = (uint64_t)count;
    }
    return NULL;
}
