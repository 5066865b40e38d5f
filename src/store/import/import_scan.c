#include "store/import/import_scan.h"

#include <stdlib.h>

#include <jansson.h>

#include "text/plain_text.h"

enum { DEPTH_MAX = 64, HEX_DIGITS_MAX = 16 };

static bool take_value(gbx_scan *scan, int depth, gbx_scan_value *out_value);

static inline void skip_space(gbx_scan *scan) {
    while (scan->at < scan->end &&
           (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\t' || *scan->at == '\r'))
        ++scan->at;
}

/* The next byte that is no space; 0 at the end. */
static inline char peek(gbx_scan *scan) {
    skip_space(scan);
    return scan->at < scan->end ? *scan->at : '\0';
}

static inline bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

static inline int hex_digit(char byte) {
    if (is_digit(byte))
        return byte - '0';
    if (byte >= 'a' && byte <= 'f')
        return byte - 'a' + 10;
    return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

/* --- taking values --- */

/* Behind a backslash. */
static bool take_escape(gbx_scan *scan) {
    if (scan->at == scan->end)
        return false;
    char byte = *scan->at++;
    if (byte != 'u')
        return byte != '\0' && strchr("\"\\/bfnrt", byte);
    for (int i = 0; i < 4; ++i)
        if (scan->at == scan->end || hex_digit(*scan->at++) < 0)
            return false;
    return true;
}

/* What is no plain ASCII: no control character, and more bytes of UTF-8, the first of which was
 * taken. */
static bool take_wide(gbx_scan *scan) {
    const char *first = scan->at - 1;
    size_t bytes =
        gbx_utf8_sequence_bytes((const unsigned char *)first, (size_t)(scan->end - first));
    scan->at = first + bytes;
    return bytes > 0;
}

/* From the quote on. */
static bool take_string(gbx_scan *scan, gbx_scan_value *out_value) {
    *out_value = (gbx_scan_value){.kind = GBX_SCAN_STRING, .text = ++scan->at};
    while (scan->at < scan->end) {
        char byte = *scan->at++;
        if (byte == '"') {
            out_value->size = (size_t)(scan->at - 1 - out_value->text);
            return true;
        }
        if ((signed char)byte < 0x20 && !take_wide(scan)) /* or from 0x80 on */
            return false;
        if (byte == '\\') {
            out_value->has_escape = true;
            if (!take_escape(scan))
                return false;
        }
    }
    return false;
}

static bool take_digits(gbx_scan *scan) {
    const char *first = scan->at;
    while (scan->at < scan->end && is_digit(*scan->at))
        ++scan->at;
    return scan->at > first;
}

static bool take_number(gbx_scan *scan, gbx_scan_value *out_value) {
    const char *first = scan->at;
    scan->at += *scan->at == '-';
    bool is_zero = scan->at < scan->end && *scan->at == '0';
    if (is_zero)
        ++scan->at;
    else if (!take_digits(scan))
        return false;
    if (scan->at < scan->end && *scan->at == '.') {
        ++scan->at;
        if (!take_digits(scan))
            return false;
    }
    if (scan->at < scan->end && (*scan->at == 'e' || *scan->at == 'E')) {
        ++scan->at;
        if (scan->at < scan->end && (*scan->at == '+' || *scan->at == '-'))
            ++scan->at;
        if (!take_digits(scan))
            return false;
    }
    *out_value = (gbx_scan_value){GBX_SCAN_NUMBER, false, first, (size_t)(scan->at - first)};
    return true;
}

static bool take_word(gbx_scan *scan, const char *word, size_t size, gbx_scan_kind kind,
                      gbx_scan_value *out_value) {
    if ((size_t)(scan->end - scan->at) < size || memcmp(scan->at, word, size) != 0)
        return false;
    *out_value = (gbx_scan_value){kind, false, scan->at, size};
    scan->at += size;
    return true;
}

/* All of an object or array, each value of which is checked as well. */
static bool take_nested(gbx_scan *scan, int depth, gbx_scan_kind kind, gbx_scan_value *out_value) {
    const char *first = scan->at;
    gbx_scan inside = {scan->at, scan->end, true};
    char closing = kind == GBX_SCAN_ARRAY ? ']' : '}';
    gbx_scan_value value;
    ++inside.at;
    for (bool is_first = true;; is_first = false) {
        char next = peek(&inside);
        if (next == closing)
            break;
        if (!is_first) {
            if (next != ',')
                return false;
            ++inside.at;
        }
        if (kind == GBX_SCAN_OBJECT) {
            if (peek(&inside) != '"' || !take_string(&inside, &value) || peek(&inside) != ':')
                return false;
            ++inside.at;
        }
        if (!take_value(&inside, depth - 1, &value))
            return false;
    }
    scan->at = inside.at + 1;
    *out_value = (gbx_scan_value){kind, false, first, (size_t)(scan->at - first)};
    return true;
}

static bool take_value(gbx_scan *scan, int depth, gbx_scan_value *out_value) {
    if (depth == 0)
        return false;
    switch (peek(scan)) {
    case '"':
        return take_string(scan, out_value);
    case '[':
        return take_nested(scan, depth, GBX_SCAN_ARRAY, out_value);
    case '{':
        return take_nested(scan, depth, GBX_SCAN_OBJECT, out_value);
    case 't':
        return take_word(scan, "true", 4, GBX_SCAN_TRUE, out_value);
    case 'f':
        return take_word(scan, "false", 5, GBX_SCAN_FALSE, out_value);
    case 'n':
        return take_word(scan, "null", 4, GBX_SCAN_NULL, out_value);
    case '\0':
        return false;
    default:
        return take_number(scan, out_value);
    }
}

/* --- walking --- */

bool gbx_scan_begin(gbx_scan *scan, char bracket) {
    if (peek(scan) != bracket)
        return false;
    ++scan->at;
    scan->is_first = true;
    return true;
}

/* The comma between two, or the bracket at the end. */
static inline bool next_item(gbx_scan *scan, char closing, bool *out_has_one) {
    char next = peek(scan);
    *out_has_one = next != closing;
    if (next == closing) {
        ++scan->at;
        return true;
    }
    if (scan->is_first) {
        scan->is_first = false;
        return true;
    }
    if (next != ',')
        return false;
    ++scan->at;
    return true;
}

bool gbx_scan_next_member(gbx_scan *scan, gbx_scan_value *out_key, gbx_scan_value *out_value,
                          bool *out_has_one) {
    if (!next_item(scan, '}', out_has_one))
        return false;
    if (!*out_has_one)
        return true;
    if (peek(scan) != '"' || !take_string(scan, out_key) || peek(scan) != ':')
        return false;
    ++scan->at;
    return take_value(scan, DEPTH_MAX, out_value);
}

bool gbx_scan_next_element(gbx_scan *scan, gbx_scan_value *out_value, bool *out_has_one) {
    if (!next_item(scan, ']', out_has_one))
        return false;
    return !*out_has_one || take_value(scan, DEPTH_MAX, out_value);
}

bool gbx_scan_whole(const char *text, size_t size, gbx_scan_value *out_value) {
    gbx_scan scan = gbx_scan_start(text, size);
    if (!take_value(&scan, DEPTH_MAX, out_value))
        return false;
    skip_space(&scan);
    return scan.at == scan.end;
}

/* --- values --- */

bool gbx_scan_integer(const gbx_scan_value *value, uint64_t *out_magnitude, bool *out_is_negative) {
    if (value->kind != GBX_SCAN_NUMBER)
        return false;
    const char *at = value->text;
    const char *end = at + value->size;
    uint64_t magnitude = 0;
    *out_is_negative = *at == '-';
    for (at += *out_is_negative; at < end; ++at) {
        if (!is_digit(*at) || __builtin_mul_overflow(magnitude, 10, &magnitude) ||
            __builtin_add_overflow(magnitude, (uint64_t)(*at - '0'), &magnitude))
            return false;
    }
    *out_magnitude = magnitude;
    return true;
}

bool gbx_scan_hex(const gbx_scan_value *value, uint64_t *out_value) {
    const char *text = value->text;
    uint64_t sum = 0;
    if (value->kind != GBX_SCAN_STRING || value->size < 3 || value->size > 2 + HEX_DIGITS_MAX ||
        text[0] != '0' || text[1] != 'x')
        return false;
    for (size_t i = 2; i < value->size; ++i) {
        int digit = hex_digit(text[i]);
        if (digit < 0)
            return false;
        sum = sum << 4 | (uint64_t)digit;
    }
    *out_value = sum;
    return true;
}

char *gbx_scan_decode(const gbx_scan_value *value) {
    if (!value->has_escape)
        return strndup(value->text, value->size);
    /* With its quotes, which lie around it. */
    json_t *string = json_loadb(value->text - 1, value->size + 2, JSON_DECODE_ANY, NULL);
    char *text = string ? strdup(json_string_value(string)) : NULL;
    json_decref(string);
    return text;
}

bool gbx_scan_is_slow(const gbx_scan_value *value, const char *text, size_t size) {
    char *decoded = gbx_scan_decode(value);
    bool is_same = decoded && strlen(decoded) == size && memcmp(decoded, text, size) == 0;
    free(decoded);
    return is_same;
}
