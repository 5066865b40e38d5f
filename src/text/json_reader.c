#include "text/json_reader.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "text/plain_text.h"

enum { PATH_BYTES = 512, MESSAGE_BYTES = 512, SHOWN_BYTES = 64, HEX_DIGITS_MAX = 16 };
enum { KNOWN_BYTES = MESSAGE_BYTES - SHOWN_BYTES - 48 };

/* Text that is cut at its capacity. */
typedef struct line {
    char *bytes;
    size_t capacity;
    size_t used;
} line;

static GBX_PRINTF(2, 3) void line_add(line *text, const char *format, ...) {
    size_t room = text->capacity - text->used;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text->bytes + text->used, room, format, arguments);
    va_end(arguments);
    if (length > 0)
        text->used += (size_t)length < room ? (size_t)length : room - 1;
}

/* "scene.json: kernels[2].name"; the root is only the file. */
static void line_add_path(line *text, const gbx_cursor *cursor) {
    const gbx_cursor *parent = cursor->parent;
    if (!parent) {
        line_add(text, "%s", cursor->name);
        return;
    }
    line_add_path(text, parent);
    if (!parent->parent)
        line_add(text, ": ");
    if (!cursor->name)
        line_add(text, "[%zu]", cursor->index);
    else
        line_add(text, "%s%s", parent->parent ? "." : "", cursor->name);
}

gbx_status gbx_cursor_fail(const gbx_cursor *cursor, const char *format, ...) {
    char path[PATH_BYTES] = "";
    line text = {path, sizeof path, 0};
    line_add_path(&text, cursor);
    char message[MESSAGE_BYTES] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    gbx_text_make_plain(path);
    gbx_text_make_plain(message);
    return gbx_fail(GBX_BAD_FORMAT, "%s: %s", path, message);
}

/* The value as JSON on one line, cut short; "an object" and "an array" by their names. */
static void show(const json_t *value, char out_text[SHOWN_BYTES]) {
    const char *name = !value                  ? "nothing"
                       : json_is_object(value) ? "an object"
                       : json_is_array(value)  ? "an array"
                                               : NULL;
    char *dumped = name ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    int length = snprintf(out_text, SHOWN_BYTES, "%s", name ? name : dumped ? dumped : "a value");
    if (length >= SHOWN_BYTES)
        memcpy(out_text + SHOWN_BYTES - 4, "...", 4);
    free(dumped);
}

static gbx_status fail_expected(const gbx_cursor *cursor, const char *expected) {
    char shown[SHOWN_BYTES];
    show(cursor->value, shown);
    return gbx_status_never_null(gbx_cursor_fail(cursor, "expected %s, got %s", expected, shown));
}

gbx_status gbx_json_load(const char *path, size_t max_bytes, json_t **out_document) {
    char *bytes = NULL;
    size_t size = 0;
    GBX_TRY(gbx_read_file(path, max_bytes, &bytes, &size));
    gbx_status status = gbx_json_parse(path, bytes, size, out_document);
    free(bytes);
    return status;
}

gbx_status gbx_json_parse(const char *name, const char *text, size_t size, json_t **out_document) {
    json_error_t error;
    json_t *document = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!document) {
        bool is_memory = json_error_code(&error) == json_error_out_of_memory;
        gbx_text_make_plain(error.text);
        return gbx_fail(is_memory ? GBX_EXHAUSTED : GBX_BAD_FORMAT, "%s: line %d, column %d: %s",
                        name, error.line, error.column, error.text);
    }
    *out_document = document;
    return NULL;
}

gbx_cursor gbx_cursor_root(json_t *document, const char *name) {
    gbx_cursor root = {.value = document, .name = name};
    return root;
}

gbx_status gbx_cursor_optional(const gbx_cursor *object, const char *name, gbx_cursor *out_member) {
    if (!json_is_object(object->value))
        return fail_expected(object, "an object");
    json_t *value = json_object_get(object->value, name);
    gbx_cursor member = {json_is_null(value) ? NULL : value, object, name, 0};
    *out_member = member;
    return NULL;
}

gbx_status gbx_cursor_member(const gbx_cursor *object, const char *name, gbx_cursor *out_member) {
    gbx_cursor member;
    GBX_TRY(gbx_cursor_optional(object, name, &member));
    member.value = json_object_get(object->value, name);
    if (!member.value)
        return gbx_cursor_fail(object, "\"%s\" is missing", name);
    *out_member = member;
    return NULL;
}

gbx_status gbx_cursor_count(const gbx_cursor *array, size_t *out_count) {
    if (!json_is_array(array->value))
        return fail_expected(array, "an array");
    *out_count = json_array_size(array->value);
    return NULL;
}

gbx_status gbx_cursor_element(const gbx_cursor *array, size_t index, gbx_cursor *out_element) {
    size_t count = 0;
    GBX_TRY(gbx_cursor_count(array, &count));
    if (index >= count)
        return gbx_cursor_fail(array, "has %zu elements; index %zu does not exist", count, index);
    gbx_cursor element = {json_array_get(array->value, index), array, NULL, index};
    *out_element = element;
    return NULL;
}

gbx_status gbx_cursor_string(const gbx_cursor *cursor, const char **out_text) {
    if (!json_is_string(cursor->value))
        return fail_expected(cursor, "a string");
    *out_text = json_string_value(cursor->value);
    return NULL;
}

/* "in, out or inout" */
static void join(const char *const *names, size_t count, char out_text[KNOWN_BYTES]) {
    out_text[0] = '\0';
    line list = {out_text, KNOWN_BYTES, 0};
    for (size_t i = 0; i < count; ++i)
        line_add(&list, "%s%s", !i ? "" : i + 1 < count ? ", " : " or ", names[i]);
}

/* `count` when it is not in `names`. */
static size_t index_of(const char *text, const char *const *names, size_t count) {
    size_t index = 0;
    while (index < count && strcmp(text, names[index]) != 0)
        ++index;
    return index;
}

gbx_status gbx_cursor_only(const gbx_cursor *object, const char *const *names, size_t count) {
    if (!json_is_object(object->value))
        return fail_expected(object, "an object");
    const char *name;
    json_t *value;
    json_object_foreach(object->value, name, value) {
        if (index_of(name, names, count) < count)
            continue;
        char known[KNOWN_BYTES];
        join(names, count, known);
        return gbx_cursor_fail(object, "unknown member \"%.*s\"; expected %s", SHOWN_BYTES, name,
                               known);
    }
    return NULL;
}

gbx_status gbx_cursor_choice(const gbx_cursor *cursor, const char *const *names, size_t count,
                             size_t *out_index) {
    const char *text = NULL;
    GBX_TRY(gbx_cursor_string(cursor, &text));
    size_t index = index_of(text, names, count);
    if (index < count) {
        *out_index = index;
        return NULL;
    }
    char shown[SHOWN_BYTES];
    show(cursor->value, shown);
    char known[KNOWN_BYTES];
    join(names, count, known);
    return gbx_cursor_fail(cursor, "unknown value %s; expected %s", shown, known);
}

gbx_status gbx_cursor_hex(const gbx_cursor *cursor, uint64_t *out_value) {
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *text = json_string_value(cursor->value);
    bool has_prefix = text && text[0] == '0' && text[1] == 'x';
    size_t length = has_prefix ? strlen(text + 2) : 0;
    if (length == 0 || length > HEX_DIGITS_MAX || strspn(text + 2, digits) != length)
        return fail_expected(cursor, "a string \"0x...\" of up to 16 hexadecimal digits");
    *out_value = strtoull(text + 2, NULL, 16);
    return NULL;
}

gbx_status gbx_cursor_integer(const gbx_cursor *cursor, int64_t min, int64_t max,
                              int64_t *out_value) {
    if (!json_is_integer(cursor->value))
        return fail_expected(cursor, "an integer");
    int64_t value = json_integer_value(cursor->value);
    if (value < min || value > max)
        return gbx_cursor_fail(cursor, "%" PRId64 " is outside %" PRId64 " to %" PRId64, value, min,
                               max);
    *out_value = value;
    return NULL;
}

gbx_status gbx_cursor_number(const gbx_cursor *cursor, double *out_value) {
    static const char *const names[] = {"nan", "inf", "-inf"};
    static const double values[] = {NAN, INFINITY, -INFINITY};
    enum { COUNT = sizeof names / sizeof names[0] };
    const char *text = json_string_value(cursor->value);
    size_t index = text ? index_of(text, names, COUNT) : COUNT;
    if (index < COUNT) {
        *out_value = values[index];
        return NULL;
    }
    if (!json_is_number(cursor->value))
        return fail_expected(cursor, "a number");
    *out_value = json_number_value(cursor->value);
    return NULL;
}

gbx_status gbx_cursor_bool(const gbx_cursor *cursor, bool *out_value) {
    if (!json_is_boolean(cursor->value))
        return fail_expected(cursor, "true or false");
    *out_value = json_is_true(cursor->value);
    return NULL;
}
