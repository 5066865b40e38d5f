/*
 * Reading JSON files, on jansson, with errors that name the file, the field and what was expected:
 * `scene.json: kernels[2].signature[1]: unknown value "inn"; expected in, out, inout or scalar`.
 *
 * A cursor is a value and the path to it. It borrows the document, the names it was made with and
 * the cursor it was made from: all of them must outlive it. Every getter fails with GBX_BAD_FORMAT,
 * and leaves its `out_` parameters untouched, when the value is not what was asked for.
 */
#ifndef GBX_TEXT_JSON_READER_H
#define GBX_TEXT_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/status.h"

typedef struct gbx_cursor {
    json_t *value; /* NULL for an optional member that is absent */
    const struct gbx_cursor *parent;
    const char *name; /* of the member; of the file at the root; NULL for an array's element */
    size_t index;     /* of the element */
} gbx_cursor;

/*
 * Reads a file of at most `max_bytes`, one JSON object or array; the caller json_decrefs the
 * document. GBX_NOT_FOUND when there is no such file, GBX_IO when it cannot be read,
 * GBX_OUT_OF_RANGE when it is larger, GBX_BAD_FORMAT with line and column when it is not JSON or
 * repeats a key.
 */
GBX_MUST_USE gbx_status gbx_json_load(const char *path, size_t max_bytes, json_t **out_document);

/* The same from memory; `name` stands for the file in messages. */
GBX_MUST_USE gbx_status gbx_json_parse(const char *name, const char *text, size_t size,
                                       json_t **out_document);

gbx_cursor gbx_cursor_root(json_t *document, const char *name);

/* A member that must be there. */
GBX_MUST_USE gbx_status gbx_cursor_member(const gbx_cursor *object, const char *name,
                                          gbx_cursor *out_member);

/* A member that may be absent or null: out_member->value is NULL then. */
GBX_MUST_USE gbx_status gbx_cursor_optional(const gbx_cursor *object, const char *name,
                                            gbx_cursor *out_member);

/* Fails at the first member that is not in `names`, and lists them. */
GBX_MUST_USE gbx_status gbx_cursor_only(const gbx_cursor *object, const char *const *names,
                                        size_t count);

GBX_MUST_USE gbx_status gbx_cursor_count(const gbx_cursor *array, size_t *out_count);
GBX_MUST_USE gbx_status gbx_cursor_element(const gbx_cursor *array, size_t index,
                                           gbx_cursor *out_element);

/* The text lives as long as the document; it holds no zero byte. */
GBX_MUST_USE gbx_status gbx_cursor_string(const gbx_cursor *cursor, const char **out_text);

/* A string that is one of `names`: its index. */
GBX_MUST_USE gbx_status gbx_cursor_choice(const gbx_cursor *cursor, const char *const *names,
                                          size_t count, size_t *out_index);

/* A string "0x" and 1 to 16 hexadecimal digits. */
GBX_MUST_USE gbx_status gbx_cursor_hex(const gbx_cursor *cursor, uint64_t *out_value);

/* A number without fraction or exponent, from `min` to `max`. */
GBX_MUST_USE gbx_status gbx_cursor_integer(const gbx_cursor *cursor, int64_t min, int64_t max,
                                           int64_t *out_value);

/* Any number, or one of the strings "nan", "inf", "-inf" that the writer puts for them. */
GBX_MUST_USE gbx_status gbx_cursor_number(const gbx_cursor *cursor, double *out_value);

GBX_MUST_USE gbx_status gbx_cursor_bool(const gbx_cursor *cursor, bool *out_value);

/* A GBX_BAD_FORMAT at the cursor's place, for the caller's own checks: "file: path: ...". */
GBX_MUST_USE gbx_status gbx_cursor_fail(const gbx_cursor *cursor, const char *format, ...)
    GBX_PRINTF(2, 3);

#endif
