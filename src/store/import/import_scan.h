/*
 * JSON text in memory, walked over where it lies: for the entries of a manifest, of which there may
 * be millions, and for which building a document takes five times as long as all the rest. Strict:
 * what is no JSON in UTF-8 is refused.
 */
#ifndef GBX_STORE_IMPORT_IMPORT_SCAN_H
#define GBX_STORE_IMPORT_IMPORT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum gbx_scan_kind {
    GBX_SCAN_NULL = 0,
    GBX_SCAN_TRUE,
    GBX_SCAN_FALSE,
    GBX_SCAN_NUMBER,
    GBX_SCAN_STRING,
    GBX_SCAN_ARRAY,
    GBX_SCAN_OBJECT
} gbx_scan_kind;

/* Points into the text. */
typedef struct gbx_scan_value {
    gbx_scan_kind kind;
    bool has_escape;  /* a string with a backslash */
    const char *text; /* of a string what is between the quotes, of others all of it */
    size_t size;
} gbx_scan_value;

/* The fields are the functions'. */
typedef struct gbx_scan {
    const char *at;
    const char *end;
    bool is_first;
} gbx_scan;

static inline gbx_scan gbx_scan_start(const char *text, size_t size) {
    gbx_scan scan = {text, text + size, true};
    return scan;
}

/* All return false, and leave their out_ parameters unspecified, where the text is no JSON. */

/* Goes into an object ('{') or array ('['). */
bool gbx_scan_begin(gbx_scan *scan, char bracket);

/* *out_has_one false at the end of the object or array, which is left by then. */
bool gbx_scan_next_member(gbx_scan *scan, gbx_scan_value *out_key, gbx_scan_value *out_value,
                          bool *out_has_one);
bool gbx_scan_next_element(gbx_scan *scan, gbx_scan_value *out_value, bool *out_has_one);

/* One value, whatever it is, and nothing after it. */
bool gbx_scan_whole(const char *text, size_t size, gbx_scan_value *out_value);

/* --- values --- */

/* Whether a number is written without fraction and exponent and its magnitude fits in 64 bits. */
bool gbx_scan_integer(const gbx_scan_value *value, uint64_t *out_magnitude, bool *out_is_negative);

/* "0x" and 1 to 16 hexadecimal digits. */
bool gbx_scan_hex(const gbx_scan_value *value, uint64_t *out_value);

/* The text of a string, zero terminated, without escapes; freed by the caller. NULL when memory is
 * out, or an escape gives a zero byte or half of a surrogate pair. */
char *gbx_scan_decode(const gbx_scan_value *value);

/* Whether a string is that one. */
bool gbx_scan_is_slow(const gbx_scan_value *value, const char *text, size_t size);
static inline bool gbx_scan_is(const gbx_scan_value *value, const char *text, size_t size) {
    if (value->has_escape)
        return gbx_scan_is_slow(value, text, size);
    return value->kind == GBX_SCAN_STRING && value->size == size &&
           memcmp(value->text, text, size) == 0;
}

#endif
