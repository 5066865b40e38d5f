/*
 * Where a report goes: a terminal, a file or a string. Every function of src/report writes to a
 * sink, never to stdout, so that any front end can use it.
 *
 * A sink also holds the texts of numbers and names while a line is put together, and the writer of
 * a JSON document. It is large (128 KiB): keep it out of small stacks. One thread at a time.
 */
#ifndef GBX_REPORT_SINK_H
#define GBX_REPORT_SINK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <glassbox/tensor.h>

#include "text/json_writer.h"

/* --- texts for people --- */

enum { GBX_TEXTS_BYTES = 65536, GBX_TEXT_BYTES_MAX = 16384 };

/*
 * Short texts for the arguments of one print call; one that is longer than GBX_TEXT_BYTES_MAX is
 * cut there. Of texts that long, the last three are valid. All zero before use.
 */
typedef struct gbx_texts {
    size_t used;
    char bytes[GBX_TEXTS_BYTES];
} gbx_texts;

/* As printf. */
const char *gbx_text_format(gbx_texts *texts, const char *format, ...) GBX_PRINTF(2, 3);

/* Three texts in one, as "%s%s%s" and several times as fast. */
const char *gbx_text_join(gbx_texts *texts, const char *first, const char *between,
                          const char *second);

/* "1024" */
const char *gbx_text_number(gbx_texts *texts, uint64_t number);

/* "1,024" */
const char *gbx_text_count(gbx_texts *texts, uint64_t count);

/* "1 record", "1,024 records", "2 dispatches", "0 entries". */
const char *gbx_text_counted(gbx_texts *texts, uint64_t count, const char *noun);

/* The verb that fits: one for 1, many for all others. */
const char *gbx_text_verb(uint64_t count, const char *one, const char *many);

/* "17 bytes", "3.2 MiB" */
const char *gbx_text_bytes(gbx_texts *texts, uint64_t bytes);

/* "412 ns", "1.25 ms", "83.20 s" */
const char *gbx_text_ns(gbx_texts *texts, uint64_t ns);

/* A float with so many significant digits: "0.38", "1.2346e+300". The one printer of rounded
 * floats; text/float_text.h has exact ones. */
const char *gbx_text_real(gbx_texts *texts, double value, int digits);

/* 6 significant digits, or 5 where the text would be wider than this: "-1.2346e+300". */
enum { GBX_SHORT_WIDTH = 12 };
const char *gbx_text_short(gbx_texts *texts, double value);

/* The shortest text that reads back as the same float: "0.001". */
const char *gbx_text_exact(gbx_texts *texts, double value);

/* "[3, 17]" of a shape or an index, "[]" without dimensions. */
const char *gbx_text_numbers(gbx_texts *texts, const int64_t *numbers, uint32_t count);

/* The same for the row-major number of an element. */
const char *gbx_text_index(gbx_texts *texts, const gbx_tensor *tensor, uint64_t number);

/* The value of an element; of an unknown dtype its bits, "0xbdcccccd". */
const char *gbx_text_element(gbx_texts *texts, uint32_t dtype, uint64_t bits);

/* The same, with its bits where several have the same text: NaN, and bools above 1. */
const char *gbx_text_value(gbx_texts *texts, uint32_t dtype, uint64_t bits);

/* What a word of unknown dtype may be: "float32 -0.1, int32 -1110651699", of its low half. */
const char *gbx_text_readings(gbx_texts *texts, uint64_t bits);

/*
 * A text that comes from a file or a user, safe to print: controls, characters that the locale
 * cannot show, those that change the direction of what follows, and a backslash before an x become
 * \xNN. A text that is too long ends with "...", with room for words around it.
 */
const char *gbx_text_shown(gbx_texts *texts, const char *text);

/* The columns that gbx_text_shown(text) takes. */
size_t gbx_text_width(const char *text);

/* The beginning of a text and a mark, where it is wider than `width` columns, at least 1, or has
 * more than 1 KiB of characters without a width. Not escaped: gbx_text_shown comes after it. */
const char *gbx_text_cut(gbx_texts *texts, const char *text, size_t width);

/* One word of a shell's command line, in quotes where needed; freed by the caller, NULL when memory
 * is out. `is_shown`: as $'...' where a terminal could not show it as it is. */
char *gbx_shell_quote(const char *text, bool is_shown);

/* The same for a person: as $'...' where a terminal could not show it. */
const char *gbx_text_word(gbx_texts *texts, const char *word);

/* --- sinks --- */

typedef struct gbx_sink {
    FILE *out;        /* borrowed */
    const char *name; /* of `out`, in messages */
    size_t width;     /* columns; SIZE_MAX where lines may have any length */
    bool has_colour;  /* on a terminal, and NO_COLOR is not set */
    bool is_unicode;  /* the locale's characters are UTF-8 */
    gbx_texts texts;
    gbx_json_writer json;
} gbx_sink;

/* A stream of the caller's: a file, or a string of open_memstream. A terminal gets its width and
 * colours. Call after setlocale. */
void gbx_sink_open(gbx_sink *sink, FILE *stream);

/* As printf. */
void gbx_sink_print(gbx_sink *sink, const char *format, ...) GBX_PRINTF(2, 3);

/* A line with "3 records" between two texts; nothing where there are none. */
void gbx_sink_count(gbx_sink *sink, const char *before, uint64_t count, const char *noun,
                    const char *after);

/* "and 1,024 more" between two texts, where not all are shown. */
void gbx_sink_more(gbx_sink *sink, const char *before, uint64_t all, uint64_t shown,
                   const char *after);

/* A text in a colour, where the sink has colours. */
#define GBX_RED "\x1b[31m"
#define GBX_GREEN "\x1b[32m"
#define GBX_YELLOW "\x1b[33m"
const char *gbx_sink_colour(gbx_sink *sink, const char *colour, const char *text);

/* Writes bytes, all of them and at once, to `sink`, a gbx_sink; fails with GBX_IO. */
GBX_MUST_USE gbx_status gbx_sink_write(void *sink, const void *bytes, size_t size);

/* Begins one JSON document, an object; the writer is the sink's. */
gbx_json_writer *gbx_sink_json_begin(gbx_sink *sink);

/* Ends the object and the document. `status` is what happened before: the first failure is
 * returned. */
GBX_MUST_USE gbx_status gbx_sink_json_end(gbx_sink *sink, gbx_status status);

#endif
