/*
 * Streaming JSON: values go out in the order of the calls, through the writer's own buffer to a
 * callback; nothing is allocated. One thread at a time.
 *
 * The first failure sticks: calls after it do nothing, and gbx_json_finish returns it. Failures are
 * those of the sink, misuse (a key inside an array, an end without its begin: GBX_INTERNAL) and a
 * number that readers could not hold exactly (GBX_OUT_OF_RANGE). Every start needs a finish.
 */
#ifndef GBX_TEXT_JSON_WRITER_H
#define GBX_TEXT_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { GBX_JSON_DEPTH_MAX = 32, GBX_JSON_BUFFER_BYTES = 65536, GBX_JSON_KEY_SHOWN_BYTES = 48 };

/* Takes all of `bytes` (1 to GBX_JSON_BUFFER_BYTES) before it returns, or fails. */
typedef gbx_status (*gbx_json_sink)(void *context, const void *bytes, size_t size);

/* A sink whose context is a FILE *; the stream is the caller's. Fails with GBX_IO. */
GBX_MUST_USE gbx_status gbx_json_to_stream(void *stream, const void *bytes, size_t size);

typedef enum gbx_json_style {
    GBX_JSON_PRETTY,  /* two spaces per level, one member per line, except what is begun inline */
    GBX_JSON_ONE_LINE /* no white space at all */
} gbx_json_style;

/* 64 KiB: mind small stacks. The fields are the writer's. */
typedef struct gbx_json_writer {
    gbx_json_sink write; /* NULL when finished */
    void *context;
    gbx_status status;
    size_t used;
    size_t depth;
    bool is_pretty;
    bool has_key;                            /* a key was written, its value not yet */
    uint8_t levels[GBX_JSON_DEPTH_MAX + 1];  /* flags of each open level; 0 is the document */
    char last_key[GBX_JSON_KEY_SHOWN_BYTES]; /* for messages */
    char buffer[GBX_JSON_BUFFER_BYTES];
} gbx_json_writer;

/* `context` is passed to `write` with every call; the caller owns it. */
void gbx_json_start(gbx_json_writer *json, gbx_json_sink write, void *context,
                    gbx_json_style style);

/* Ends the document with a newline, hands the rest to the sink, and returns the first failure. */
GBX_MUST_USE gbx_status gbx_json_finish(gbx_json_writer *json);

/* Takes a failure of what is to be written, or NULL; it sticks as the writer's own do. */
void gbx_json_fail(gbx_json_writer *json, gbx_status status);

/* The first failure so far, for a long loop to stop early; it stays the writer's. */
bool gbx_json_has_failed(const gbx_json_writer *json);

/* The inline ones stay on one line with everything inside them. */
void gbx_json_begin_object(gbx_json_writer *json);
void gbx_json_begin_object_inline(gbx_json_writer *json);
void gbx_json_end_object(gbx_json_writer *json);
void gbx_json_begin_array(gbx_json_writer *json);
void gbx_json_begin_array_inline(gbx_json_writer *json);
void gbx_json_end_array(gbx_json_writer *json);

/* In an object, before each value. Escaped as strings are; a key written twice is not noticed. */
void gbx_json_key(gbx_json_writer *json, const char *key);

/*
 * Text is taken for UTF-8: each byte that is not part of a valid sequence becomes U+FFFD. A NULL
 * string writes null.
 */
void gbx_json_string(gbx_json_writer *json, const char *text);
void gbx_json_string_of(gbx_json_writer *json, const char *text, size_t size);

void gbx_json_null(gbx_json_writer *json);
void gbx_json_bool(gbx_json_writer *json, bool value);

/* Numbers of magnitude below 2^53; more is a failure, because readers hold numbers as doubles. */
void gbx_json_i64(gbx_json_writer *json, int64_t value);
void gbx_json_u64(gbx_json_writer *json, uint64_t value);

/* Strings, for values of all 64 bits: "0x00000000000000ff", "-255", "255". */
void gbx_json_hex_text(gbx_json_writer *json, uint64_t value);
void gbx_json_i64_text(gbx_json_writer *json, int64_t value);
void gbx_json_u64_text(gbx_json_writer *json, uint64_t value);

/* The shortest number that reads back exactly; the strings "nan", "inf" and "-inf" for the rest. */
void gbx_json_f64(gbx_json_writer *json, double value);
void gbx_json_f32(gbx_json_writer *json, float value);

/* A member of an object: its key, then its value as the function above writes it. */
void gbx_json_put_string(gbx_json_writer *json, const char *key, const char *text);
void gbx_json_put_null(gbx_json_writer *json, const char *key);
void gbx_json_put_bool(gbx_json_writer *json, const char *key, bool value);
void gbx_json_put_i64(gbx_json_writer *json, const char *key, int64_t value);
void gbx_json_put_u64(gbx_json_writer *json, const char *key, uint64_t value);
void gbx_json_put_hex_text(gbx_json_writer *json, const char *key, uint64_t value);
void gbx_json_put_f64(gbx_json_writer *json, const char *key, double value);

#endif
