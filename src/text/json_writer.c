#include "text/json_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/decimal.h"
#include "text/float_text.h"
#include "text/plain_text.h"

enum { LEVEL_OBJECT = 1, LEVEL_INLINE = 2, LEVEL_FILLED = 4, DECIMAL_BYTES = 20 };

static const uint64_t exact_end = UINT64_C(1) << 53;

static void flush(gbx_json_writer *json) {
    if (!json->status && json->used > 0)
        json->status = json->write(json->context, json->buffer, json->used);
    json->used = 0;
}

/* After a failure this still fills the buffer, within bounds, but nothing leaves it. */
static void put_across(gbx_json_writer *json, const char *bytes, size_t size) {
    while (size > 0) {
        size_t room = sizeof json->buffer - json->used;
        size_t part = size < room ? size : room;
        memcpy(json->buffer + json->used, bytes, part);
        json->used += part;
        bytes += part;
        size -= part;
        if (json->used == sizeof json->buffer)
            flush(json);
    }
}

static inline void put(gbx_json_writer *json, const char *bytes, size_t size) {
    if (size >= sizeof json->buffer - json->used) {
        put_across(json, bytes, size);
        return;
    }
    memcpy(json->buffer + json->used, bytes, size);
    json->used += size;
}

static inline void put_byte(gbx_json_writer *json, char byte) {
    put(json, &byte, 1);
}

static void misuse(gbx_json_writer *json, const char *what) {
    json->status =
        gbx_fail(GBX_INTERNAL, "writing JSON: %s, last key \"%s\"", what, json->last_key);
}

static inline bool is_stopped(const gbx_json_writer *json) {
    return json->status || !json->write;
}

static void put_line_break(gbx_json_writer *json, size_t depth) {
    static const char indent[] = "\n                                "
                                 "                                ";
    _Static_assert(sizeof indent == 2 + 2 * GBX_JSON_DEPTH_MAX, "two spaces for each level");
    put(json, indent, 1 + 2 * depth);
}

/* The comma and white space before a member, an element or the document's one value. */
static void put_separator(gbx_json_writer *json) {
    uint8_t *level = &json->levels[json->depth];
    bool is_first = !(*level & LEVEL_FILLED);
    *level |= LEVEL_FILLED;
    if (!is_first)
        put_byte(json, ',');
    if (!json->is_pretty || json->depth == 0)
        return;
    if (!(*level & LEVEL_INLINE))
        put_line_break(json, json->depth);
    else if (!is_first)
        put_byte(json, ' ');
}

/* Whether a value may come here; writes what goes before it. */
static bool begin_value(gbx_json_writer *json) {
    if (is_stopped(json))
        return false;
    uint8_t level = json->levels[json->depth];
    if (level & LEVEL_OBJECT) {
        if (!json->has_key)
            misuse(json, "a value without a key in an object");
        json->has_key = false;
        return !json->status;
    }
    if (json->depth == 0 && (level & LEVEL_FILLED)) {
        misuse(json, "a second value at the top");
        return false;
    }
    put_separator(json);
    return true;
}

static void put_value(gbx_json_writer *json, const char *text, size_t size) {
    if (begin_value(json))
        put(json, text, size);
}

static void begin_level(gbx_json_writer *json, char bracket, uint8_t flags) {
    if (!begin_value(json))
        return;
    if (json->depth == GBX_JSON_DEPTH_MAX) {
        misuse(json, "nested too deeply");
        return;
    }
    uint8_t inherited = json->levels[json->depth] & LEVEL_INLINE;
    put_byte(json, bracket);
    json->levels[++json->depth] = flags | inherited;
}

static void end_level(gbx_json_writer *json, char bracket, uint8_t kind) {
    if (is_stopped(json))
        return;
    uint8_t level = json->levels[json->depth];
    if (json->depth == 0 || (level & LEVEL_OBJECT) != kind) {
        misuse(json, kind ? "the end of an object that was not begun"
                          : "the end of an array that was not begun");
        return;
    }
    if (json->has_key) {
        misuse(json, "the end of an object after a key without a value");
        return;
    }
    --json->depth;
    if (json->is_pretty && (level & LEVEL_FILLED) && !(level & LEVEL_INLINE))
        put_line_break(json, json->depth);
    put_byte(json, bracket);
}

/* Bytes that go out as they are: up to a quote, a backslash, a control or an invalid byte. */
static size_t plain_bytes(const unsigned char *text, size_t size) {
    size_t at = 0;
    while (at < size) {
        unsigned char byte = text[at];
        if (byte < 0x20 || byte == '"' || byte == '\\')
            break;
        size_t length = byte < 0x80 ? 1 : gbx_utf8_sequence_bytes(text + at, size - at);
        if (length == 0)
            break;
        at += length;
    }
    return at;
}

static void put_special(gbx_json_writer *json, unsigned char byte) {
    static const char hex[] = "0123456789abcdef";
    static const char named[0x20] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    if (byte >= 0x80) {
        put(json, "\xef\xbf\xbd", 3); /* U+FFFD */
        return;
    }
    char short_form = byte >= 0x20 ? (char)byte : named[byte];
    if (short_form) {
        put(json, (char[2]){'\\', short_form}, 2);
        return;
    }
    put(json, (char[6]){'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]}, 6);
}

static void put_quoted(gbx_json_writer *json, const char *text, size_t size) {
    put_byte(json, '"');
    while (size > 0) {
        size_t plain = plain_bytes((const unsigned char *)text, size);
        put(json, text, plain);
        if (plain < size)
            put_special(json, (unsigned char)text[plain++]);
        text += plain;
        size -= plain;
    }
    put_byte(json, '"');
}

/* A decimal, in `quote`s when that is not 0. */
static void put_decimal(gbx_json_writer *json, bool is_negative, uint64_t magnitude, char quote) {
    char text[DECIMAL_BYTES + 3]; /* two quotes and a sign */
    char *end = text + sizeof text;
    if (quote)
        *--end = quote;
    char *start = gbx_digits_before(end, magnitude);
    if (is_negative)
        *--start = '-';
    if (quote)
        *--start = quote;
    put_value(json, start, (size_t)(end - start) + (quote ? 1 : 0));
}

static void put_number(gbx_json_writer *json, bool is_negative, uint64_t magnitude) {
    if (is_stopped(json))
        return;
    if (magnitude >= exact_end) {
        json->status = gbx_fail(GBX_OUT_OF_RANGE,
                                "writing JSON: %s%" PRIu64 " is not below 2^53, last key \"%s\"",
                                is_negative ? "-" : "", magnitude, json->last_key);
        return;
    }
    put_decimal(json, is_negative, magnitude, 0);
}

static uint64_t magnitude_of(int64_t value) {
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

void gbx_json_start(gbx_json_writer *json, gbx_json_sink write, void *context,
                    gbx_json_style style) {
    json->write = write;
    json->context = context;
    json->status = NULL;
    json->used = 0;
    json->depth = 0;
    json->is_pretty = style == GBX_JSON_PRETTY;
    json->has_key = false;
    json->levels[0] = 0;
    json->last_key[0] = '\0';
}

void gbx_json_fail(gbx_json_writer *json, gbx_status status) {
    json->status = gbx_status_first(json->status, status);
}

gbx_status gbx_json_finish(gbx_json_writer *json) {
    if (!json->write)
        return gbx_fail(GBX_INTERNAL, "writing JSON: finished twice");
    if (!json->status && json->depth > 0)
        misuse(json, "finished inside an object or array");
    if (!json->status && !(json->levels[0] & LEVEL_FILLED))
        misuse(json, "finished without a value");
    if (!json->status)
        put_byte(json, '\n');
    flush(json);
    gbx_status status = json->status;
    json->status = NULL;
    json->write = NULL;
    return status;
}

gbx_status gbx_json_to_stream(void *stream, const void *bytes, size_t size) {
    if (fwrite(bytes, 1, size, stream) == size)
        return NULL;
    return gbx_fail(GBX_IO, "writing JSON: %s", strerror(errno));
}

bool gbx_json_has_failed(const gbx_json_writer *json) {
    return json->status != NULL;
}

void gbx_json_begin_object(gbx_json_writer *json) {
    begin_level(json, '{', LEVEL_OBJECT);
}

void gbx_json_begin_object_inline(gbx_json_writer *json) {
    begin_level(json, '{', LEVEL_OBJECT | LEVEL_INLINE);
}

void gbx_json_end_object(gbx_json_writer *json) {
    end_level(json, '}', LEVEL_OBJECT);
}

void gbx_json_begin_array(gbx_json_writer *json) {
    begin_level(json, '[', 0);
}

void gbx_json_begin_array_inline(gbx_json_writer *json) {
    begin_level(json, '[', LEVEL_INLINE);
}

void gbx_json_end_array(gbx_json_writer *json) {
    end_level(json, ']', 0);
}

void gbx_json_key(gbx_json_writer *json, const char *key) {
    if (is_stopped(json))
        return;
    if (!(json->levels[json->depth] & LEVEL_OBJECT) || json->has_key) {
        misuse(json, json->has_key ? "a key after a key" : "a key outside an object");
        return;
    }
    size_t size = strlen(key);
    size_t shown = size < sizeof json->last_key ? size : sizeof json->last_key - 1;
    memcpy(json->last_key, key, shown);
    json->last_key[shown] = '\0';
    put_separator(json);
    put_quoted(json, key, size);
    put(json, ": ", json->is_pretty ? 2 : 1);
    json->has_key = true;
}

void gbx_json_string(gbx_json_writer *json, const char *text) {
    if (text)
        gbx_json_string_of(json, text, strlen(text));
    else
        gbx_json_null(json);
}

void gbx_json_string_of(gbx_json_writer *json, const char *text, size_t size) {
    if (begin_value(json))
        put_quoted(json, text, size);
}

void gbx_json_null(gbx_json_writer *json) {
    put_value(json, "null", 4);
}

void gbx_json_bool(gbx_json_writer *json, bool value) {
    put_value(json, value ? "true" : "false", value ? 4 : 5);
}

void gbx_json_i64(gbx_json_writer *json, int64_t value) {
    put_number(json, value < 0, magnitude_of(value));
}

void gbx_json_u64(gbx_json_writer *json, uint64_t value) {
    put_number(json, false, value);
}

void gbx_json_hex_text(gbx_json_writer *json, uint64_t value) {
    static const char hex[] = "0123456789abcdef";
    char text[] = "\"0x0000000000000000\"";
    for (size_t i = 0; i < 16; ++i)
        text[18 - i] = hex[value >> (4 * i) & 15];
    put_value(json, text, sizeof text - 1);
}

void gbx_json_i64_text(gbx_json_writer *json, int64_t value) {
    put_decimal(json, value < 0, magnitude_of(value), '"');
}

void gbx_json_u64_text(gbx_json_writer *json, uint64_t value) {
    put_decimal(json, false, value, '"');
}

static void put_float(gbx_json_writer *json, const char *text, size_t size, bool is_finite) {
    if (!begin_value(json))
        return;
    if (is_finite)
        put(json, text, size);
    else
        put_quoted(json, text, size);
}

void gbx_json_f64(gbx_json_writer *json, double value) {
    char text[GBX_FLOAT_TEXT_BYTES];
    put_float(json, text, gbx_f64_format(value, text), isfinite(value));
}

void gbx_json_f32(gbx_json_writer *json, float value) {
    char text[GBX_FLOAT_TEXT_BYTES];
    put_float(json, text, gbx_f32_format(value, text), isfinite(value));
}

void gbx_json_put_string(gbx_json_writer *json, const char *key, const char *text) {
    gbx_json_key(json, key);
    gbx_json_string(json, text);
}

void gbx_json_put_null(gbx_json_writer *json, const char *key) {
    gbx_json_key(json, key);
    gbx_json_null(json);
}

void gbx_json_put_bool(gbx_json_writer *json, const char *key, bool value) {
    gbx_json_key(json, key);
    gbx_json_bool(json, value);
}

void gbx_json_put_i64(gbx_json_writer *json, const char *key, int64_t value) {
    gbx_json_key(json, key);
    gbx_json_i64(json, value);
}

void gbx_json_put_u64(gbx_json_writer *json, const char *key, uint64_t value) {
    gbx_json_key(json, key);
    gbx_json_u64(json, value);
}

void gbx_json_put_hex_text(gbx_json_writer *json, const char *key, uint64_t value) {
    gbx_json_key(json, key);
    gbx_json_hex_text(json, value);
}

void gbx_json_put_f64(gbx_json_writer *json, const char *key, double value) {
    gbx_json_key(json, key);
    gbx_json_f64(json, value);
}
