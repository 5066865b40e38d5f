#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "store/import/internal.h"
#include "text/plain_text.h"

enum { MESSAGE_BYTES = 512, PLACE_BYTES = 96 };

#define NAMED(name, ...) {#name, sizeof(#name) - 1},

static const struct {
    const char *text;
    size_t size;
} names[GBX_FIELD_COUNT] = {GBX_TENSOR_FIELDS(NAMED) GBX_FOREIGN_TENSOR_FIELDS(NAMED)
                                GBX_RESULT_ONLY_FIELDS(NAMED)};

/* --- messages --- */

gbx_status gbx_import_fail(const gbx_import_fields *fields, gbx_import_field field,
                           const char *format, ...) {
    char message[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    gbx_text_make_plain(message); /* it quotes the file */
    return gbx_fail(GBX_BAD_FORMAT, "%s: %s[%" PRIu64 "].%s: %s", fields->path, fields->array,
                    fields->position, names[field].text, message);
}

void gbx_import_show(const gbx_scan_value *value, char out_text[GBX_IMPORT_SHOWN_BYTES]) {
    const char *quote = value->kind == GBX_SCAN_STRING ? "\"" : "";
    int room = GBX_IMPORT_SHOWN_BYTES - 8;
    bool is_cut = value->size > (size_t)room;
    if (value->kind == GBX_SCAN_OBJECT)
        snprintf(out_text, GBX_IMPORT_SHOWN_BYTES, "an object");
    else if (value->kind == GBX_SCAN_ARRAY)
        snprintf(out_text, GBX_IMPORT_SHOWN_BYTES, "an array");
    else
        snprintf(out_text, GBX_IMPORT_SHOWN_BYTES, "%s%.*s%s%s", quote,
                 is_cut ? room : (int)value->size, value->text, is_cut ? "..." : "", quote);
    gbx_text_make_plain(out_text);
}

gbx_status gbx_import_fail_expected(const gbx_import_fields *fields, gbx_import_field field,
                                    int element, const gbx_scan_value *got, const char *expected) {
    char shown[GBX_IMPORT_SHOWN_BYTES], place[PLACE_BYTES];
    gbx_import_show(got, shown);
    snprintf(place, sizeof place, element < 0 ? "%s" : "%s[%d]", names[field].text, element);
    return gbx_fail(GBX_BAD_FORMAT, "%s: %s[%" PRIu64 "].%s: expected %s, got %s", fields->path,
                    fields->array, fields->position, place, expected, shown);
}

/* --- taking an entry apart --- */

/* GBX_FIELD_COUNT for an unknown one. */
static uint8_t find_field(const gbx_scan_value *key, uint8_t expected) {
    if (expected < GBX_FIELD_COUNT && gbx_scan_is(key, names[expected].text, names[expected].size))
        return expected;
    for (size_t i = 0; i < GBX_FIELD_COUNT; ++i)
        if (gbx_scan_is(key, names[i].text, names[i].size))
            return (uint8_t)i;
    return GBX_FIELD_COUNT;
}

static gbx_status fail_entry(const gbx_import_fields *fields, const char *what) {
    return gbx_fail(GBX_BAD_FORMAT, "%s: %s[%" PRIu64 "]: %s", fields->path, fields->array,
                    fields->position, what);
}

gbx_status gbx_import_fields_take(gbx_import_fields *fields, const gbx_scan_value *entry) {
    gbx_scan scan = gbx_scan_start(entry->text, entry->size);
    gbx_scan_value key, value;
    bool has_one = true;
    fields->seen = 0;
    if (entry->kind != GBX_SCAN_OBJECT || !gbx_scan_begin(&scan, '{'))
        return fail_entry(fields, "expected an object");
    for (size_t i = 0;; ++i) {
        if (!gbx_scan_next_member(&scan, &key, &value, &has_one))
            return fail_entry(fields, "is not valid JSON");
        if (!has_one)
            return NULL;
        uint8_t *order = i < GBX_IMPORT_ORDER_MAX ? &fields->order[i] : NULL;
        uint8_t field = find_field(&key, order ? *order : GBX_FIELD_COUNT);
        if (order)
            *order = field;
        if (field == GBX_FIELD_COUNT)
            continue;
        if (fields->seen >> field & 1)
            return gbx_import_fail(fields, field, "appears twice");
        fields->seen |= UINT64_C(1) << field;
        fields->values[field] = value;
    }
}

/* --- getting --- */

gbx_status gbx_import_require(const gbx_import_fields *fields, gbx_import_field field) {
    if (gbx_import_has(fields, field))
        return NULL;
    char what[PLACE_BYTES];
    snprintf(what, sizeof what, "\"%s\" is missing", names[field].text);
    return fail_entry(fields, what);
}

bool gbx_import_is_integer(const gbx_scan_value *value, int64_t min, int64_t max,
                           int64_t *out_value) {
    uint64_t magnitude;
    bool is_negative;
    if (!gbx_scan_integer(value, &magnitude, &is_negative) ||
        magnitude > (uint64_t)INT64_MAX + is_negative)
        return false;
    int64_t number = is_negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    *out_value = number;
    return number >= min && number <= max;
}

static gbx_status fail_integer(const gbx_import_fields *fields, gbx_import_field field, int element,
                               const gbx_scan_value *got, int64_t min, int64_t max) {
    char expected[PLACE_BYTES];
    if (min == INT64_MIN)
        snprintf(expected, sizeof expected, "a 64-bit integer");
    else
        snprintf(expected, sizeof expected, "an integer from %" PRId64 " to %" PRId64, min, max);
    return gbx_import_fail_expected(fields, field, element, got, expected);
}

gbx_status gbx_import_get_integer(const gbx_import_fields *fields, gbx_import_field field,
                                  int64_t min, int64_t max, int64_t *out_value) {
    const gbx_scan_value *value = &fields->values[field];
    int64_t number;
    if (!gbx_import_has(fields, field))
        return NULL;
    if (!gbx_import_is_integer(value, min, max, &number))
        return fail_integer(fields, field, -1, value, min, max);
    *out_value = number;
    return NULL;
}

gbx_status gbx_import_get_hex(const gbx_import_fields *fields, gbx_import_field field,
                              uint64_t *out_value) {
    if (!gbx_import_has(fields, field) || gbx_scan_hex(&fields->values[field], out_value))
        return NULL;
    return gbx_import_fail_expected(fields, field, -1, &fields->values[field],
                                    "a string \"0x...\" of up to 16 hexadecimal digits");
}

gbx_status gbx_import_get_bool(const gbx_import_fields *fields, gbx_import_field field,
                               bool *out_value) {
    const gbx_scan_value *value = &fields->values[field];
    if (!gbx_import_has(fields, field))
        return NULL;
    if (value->kind != GBX_SCAN_TRUE && value->kind != GBX_SCAN_FALSE)
        return gbx_import_fail_expected(fields, field, -1, value, "true or false");
    *out_value = value->kind == GBX_SCAN_TRUE;
    return NULL;
}

uint32_t gbx_import_find_name(const gbx_scan_value *value, const gbx_name_set *set) {
    uint32_t number = 0;
    while (number < set->count &&
           !gbx_scan_is(value, set->rows[number].name, strlen(set->rows[number].name)))
        ++number;
    return number;
}

gbx_status gbx_import_get_name(const gbx_import_fields *fields, gbx_import_field field,
                               const gbx_name_set *set, uint8_t *out_number) {
    const gbx_scan_value *value = &fields->values[field];
    char expected[PLACE_BYTES] = "";
    size_t used = 0;
    if (!gbx_import_has(fields, field))
        return NULL;
    uint32_t number = gbx_import_find_name(value, set);
    if (number < set->count) {
        *out_number = (uint8_t)number;
        return NULL;
    }
    for (uint32_t i = 0; i < set->count && used < sizeof expected; ++i)
        used += (size_t)snprintf(expected + used, sizeof expected - used, "%s\"%s\"",
                                 i ? " or " : "", gbx_name_of(set, i));
    return gbx_import_fail_expected(fields, field, -1, value, expected);
}

gbx_status gbx_import_get_array(const gbx_import_fields *fields, gbx_import_field field,
                                gbx_scan_value *out_values, uint32_t capacity,
                                uint32_t *out_count) {
    const gbx_scan_value *value = &fields->values[field];
    gbx_scan scan = gbx_scan_start(value->text, value->size);
    uint32_t count = 0;
    if (!gbx_import_has(fields, field))
        return NULL;
    if (value->kind != GBX_SCAN_ARRAY || !gbx_scan_begin(&scan, '['))
        return gbx_import_fail_expected(fields, field, -1, value, "an array");
    for (;;) {
        gbx_scan_value element;
        bool has_one;
        if (!gbx_scan_next_element(&scan, &element, &has_one))
            return gbx_import_fail(fields, field, "is not valid JSON");
        if (!has_one)
            break;
        if (count == capacity)
            return gbx_import_fail(fields, field, "has more than %u elements", capacity);
        out_values[count++] = element;
    }
    *out_count = count;
    return NULL;
}

gbx_status gbx_import_get_integers(const gbx_import_fields *fields, gbx_import_field field,
                                   int64_t min, int64_t max, int64_t out_values[GBX_MAX_DIMS],
                                   uint32_t *out_count) {
    gbx_scan_value elements[GBX_MAX_DIMS];
    uint32_t count = 0;
    if (!gbx_import_has(fields, field))
        return NULL;
    GBX_TRY(gbx_import_get_array(fields, field, elements, GBX_MAX_DIMS, &count));
    for (uint32_t i = 0; i < count; ++i)
        if (!gbx_import_is_integer(&elements[i], min, max, &out_values[i]))
            return fail_integer(fields, field, (int)i, &elements[i], min, max);
    *out_count = count;
    return NULL;
}
