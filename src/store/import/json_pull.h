/*
 * A JSON file read value by value, so that a large one takes no more memory than its largest value:
 * the caller walks through the objects and arrays that it wants to see the inside of, and takes
 * what is in them whole.
 *
 *     begin '{', then next_key -> value or begin..., until there is none
 *     begin '[', then next_element -> value or begin..., until there is none
 *
 * All fail with GBX_BAD_FORMAT, naming file and line, where the file is no JSON or not what was
 * asked for, and with GBX_IO where it cannot be read.
 */
#ifndef GBX_STORE_IMPORT_JSON_PULL_H
#define GBX_STORE_IMPORT_JSON_PULL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "base/status.h"

enum { GBX_JSON_PULL_KEY_BYTES = 64 };

/* The fields are the functions'. */
typedef struct gbx_json_pull {
    FILE *file;
    const char *name;      /* for messages; borrowed */
    unsigned char *buffer; /* what was read of the file */
    size_t buffer_bytes;
    size_t buffer_at; /* the next byte */
    char *text;       /* of the value that is being taken */
    size_t size;
    size_t capacity;
    uint64_t buffer_start; /* of the buffer in the file */
    uint64_t line;
    uint64_t text_line; /* where the text begins */
    bool is_first;      /* nothing was taken yet of what was begun last */
} gbx_json_pull;

/* `name` stands for the file in messages. *out_is_there false, and nothing is open, where there is
 * no such file. GBX_BAD_FORMAT where it is a directory, a pipe or a device. */
GBX_MUST_USE gbx_status gbx_json_pull_open(gbx_json_pull *pull, const char *path, const char *name,
                                           bool *out_is_there);
/* For progress: of the file, and of what was taken of it. */
uint64_t gbx_json_pull_size(const gbx_json_pull *pull);
uint64_t gbx_json_pull_offset(const gbx_json_pull *pull);
void gbx_json_pull_close(gbx_json_pull *pull);

/* '{' or '['. */
GBX_MUST_USE gbx_status gbx_json_pull_begin(gbx_json_pull *pull, char bracket);

/* *out_has_one false at the end of the object, which is left by then. */
GBX_MUST_USE gbx_status gbx_json_pull_next_key(gbx_json_pull *pull,
                                               char out_key[GBX_JSON_PULL_KEY_BYTES],
                                               bool *out_has_one);
GBX_MUST_USE gbx_status gbx_json_pull_next_element(gbx_json_pull *pull, bool *out_has_one);

/* The value that comes next, whole; the caller json_decrefs it. */
GBX_MUST_USE gbx_status gbx_json_pull_value(gbx_json_pull *pull, json_t **out_value);

/* The same in two steps: its text, at pull->text, pull->size bytes, until the next call; then the
 * value, where it is wanted. */
GBX_MUST_USE gbx_status gbx_json_pull_text(gbx_json_pull *pull);
GBX_MUST_USE gbx_status gbx_json_pull_parse(gbx_json_pull *pull, json_t **out_value);

/* Nothing but white space may follow. */
GBX_MUST_USE gbx_status gbx_json_pull_end(gbx_json_pull *pull);

#endif
