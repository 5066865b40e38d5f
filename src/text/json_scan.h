/*
 * JSON scanned in place, for files with millions of entries, where building documents would take
 * five times as long as everything else. Strict: anything but UTF-8 JSON is refused.
 *
 * A scan is over text in memory. A gbx_json_file reads a file value by value, so that a large one
 * takes no more memory than its largest value: the caller walks into the objects and arrays it
 * wants to look into, and takes each value in them as one piece.
 *
 *     begin '{', then next_key -> take or begin..., until there are no more
 *     begin '[', then next_element -> take or begin..., until there are no more
 */
#ifndef GBX_TEXT_JSON_SCAN_H
#define GBX_TEXT_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <jansson.h>

#include "base/status.h"

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
    const char *text; /* of a string, what is between the quotes; of others, all of it */
    size_t size;
} gbx_scan_value;

/* Private to the functions. */
typedef struct gbx_scan {
    const char *at;
    const char *end;
    const char *expected; /* after a failure: what was expected at `at` */
    bool is_first;
} gbx_scan;

static inline gbx_scan gbx_scan_start(const char *text, size_t size) {
    gbx_scan scan = {text, text + size, NULL, true};
    return scan;
}

/* All return false, and leave their out_ parameters unspecified, when the text is not JSON. */

/* Goes into an object ('{') or array ('['). */
bool gbx_scan_begin(gbx_scan *scan, char bracket);

/* *out_has_one is false at the end of the object or array; the scan is then behind it. */
bool gbx_scan_next_member(gbx_scan *scan, gbx_scan_value *out_key, gbx_scan_value *out_value,
                          bool *out_has_one);
bool gbx_scan_next_element(gbx_scan *scan, gbx_scan_value *out_value, bool *out_has_one);

/* One value of any kind, and nothing after it. */
bool gbx_scan_whole(const char *text, size_t size, gbx_scan_value *out_value);

/* --- values --- */

/* Whether a number has no fraction or exponent and its magnitude fits in 64 bits. */
bool gbx_scan_integer(const gbx_scan_value *value, uint64_t *out_magnitude, bool *out_is_negative);

/* "0x" and 1 to 16 hexadecimal digits. */
bool gbx_scan_hex(const gbx_scan_value *value, uint64_t *out_value);

/* The text of a string, zero terminated, without escapes; freed by the caller. NULL when out of
 * memory, or when an escape gives a zero byte or half of a surrogate pair. */
char *gbx_scan_decode(const gbx_scan_value *value);

/* Whether a string equals `text`. */
bool gbx_scan_is_slow(const gbx_scan_value *value, const char *text, size_t size);
static inline bool gbx_scan_is(const gbx_scan_value *value, const char *text, size_t size) {
    if (value->has_escape)
        return gbx_scan_is_slow(value, text, size);
    return value->kind == GBX_SCAN_STRING && value->size == size &&
           memcmp(value->text, text, size) == 0;
}

/* --- files --- */

enum { GBX_JSON_KEY_BYTES = 64 };

/* Private to the functions. */
typedef struct gbx_json_file {
    int fd;           /* -1: none is open */
    const char *name; /* for messages; borrowed */
    char *buffer;     /* what was read of the file */
    uint64_t capacity;
    size_t at; /* the next byte of the buffer */
    size_t end;
    uint64_t start; /* of the buffer in the file */
    bool is_whole;  /* the buffer reaches the end of the file */
    bool is_first;  /* nothing was taken yet from what was begun last */
} gbx_json_file;

/*
 * All fail with GBX_BAD_FORMAT, naming file, line and byte, when the file is not JSON or not what
 * was asked for, and with GBX_IO when it cannot be read.
 *
 * `name` stands for the file in messages. *out_is_there is false, and nothing is open, when there
 * is no such file. GBX_BAD_FORMAT for a directory, a pipe or a device.
 */
GBX_MUST_USE gbx_status gbx_json_file_open(gbx_json_file *file, const char *path, const char *name,
                                           bool *out_is_there);
void gbx_json_file_close(gbx_json_file *file); /* a zeroed one, too */

/* For progress: bytes in the file, and bytes taken so far. */
uint64_t gbx_json_file_size(const gbx_json_file *file);
uint64_t gbx_json_file_offset(const gbx_json_file *file);

/* '{' or '['. */
GBX_MUST_USE gbx_status gbx_json_file_begin(gbx_json_file *file, char bracket);

/* *out_has_one is false at the end of the object; the file is then behind it. A longer key is
 * cut. */
GBX_MUST_USE gbx_status gbx_json_file_next_key(gbx_json_file *file,
                                               char out_key[GBX_JSON_KEY_BYTES], bool *out_has_one);
GBX_MUST_USE gbx_status gbx_json_file_next_element(gbx_json_file *file, bool *out_has_one);

/* The next value, at most 64 MiB; it stays in the file's memory until the next call. */
GBX_MUST_USE gbx_status gbx_json_file_take(gbx_json_file *file, gbx_scan_value *out_value);

/* The same as a document, which the caller json_decrefs. A repeated member is refused. */
GBX_MUST_USE gbx_status gbx_json_file_document(gbx_json_file *file, json_t **out_value);

/* Takes the next value if it is byte for byte this object or array. */
GBX_MUST_USE gbx_status gbx_json_file_take_same(gbx_json_file *file, const char *text, size_t size,
                                                bool *out_is_same);

/* Nothing but white space may follow. */
GBX_MUST_USE gbx_status gbx_json_file_end(gbx_json_file *file);

#endif
