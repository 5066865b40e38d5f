#include "analysis/array_text.h"

#include <errno.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/internal.h"
#include "base/numbers.h"

enum {
    SUMMARY_THRESHOLD = 1000, /* numpy's: arrays of more elements show their edges */
    EDGE_ITEMS = 3,
    WINDOW_COUNT = 4096
};

/* The elements last read. In a summary, a window is one edge of a row, or a complete short row. */
typedef struct element_window {
    size_t capacity;
    uint64_t first;
    size_t count;
    uint64_t bits[WINDOW_COUNT];
} element_window;

typedef struct array_printer {
    FILE *to;
    const gbx_elements *elements;
    bool is_summary;
    int64_t line_width;
    int64_t column;
    size_t blank_count; /* pending blanks: written before the next word, dropped at a line break */
    gbx_array_format format;
    element_window window;
} array_printer;

static gbx_status read_window(array_printer *printer, uint64_t index) {
    element_window *window = &printer->window;
    if (ferror(printer->to))
        return gbx_fail(GBX_IO, "cannot write the elements of an array: %s", strerror(errno));
    window->first = index;
    window->count = (size_t)gbx_min_u64(printer->elements->stored - index, window->capacity);
    return gbx_elements_read(printer->elements, index, window->count, window->bits);
}

/* The element at `index` is stored. */
static gbx_status read_element(array_printer *printer, uint64_t index, uint64_t *out_bits) {
    const element_window *window = &printer->window;
    if (index < window->first || index - window->first >= window->count)
        GBX_TRY(read_window(printer, index));
    *out_bits = window->bits[index - window->first];
    return NULL;
}

/* The next index after `at` that is shown along an axis. */
static int64_t next_shown(const array_printer *printer, uint32_t axis, int64_t at) {
    if (at == EDGE_ITEMS - 1 && printer->is_summary &&
        printer->elements->shape[axis] > 2 * EDGE_ITEMS)
        return printer->elements->shape[axis] - EDGE_ITEMS;
    return at + 1;
}

/* --- the first pass --- */

static gbx_status note_shown(array_printer *printer, uint32_t axis, uint64_t index) {
    const gbx_elements *elements = printer->elements;
    if (index >= elements->stored)
        return NULL;
    if (axis == elements->ndims) {
        uint64_t bits;
        GBX_TRY(read_element(printer, index, &bits));
        gbx_array_format_note(&printer->format, bits);
        return NULL;
    }
    for (int64_t i = 0; i < elements->shape[axis]; i = next_shown(printer, axis, i))
        GBX_TRY(
            note_shown(printer, axis + 1, index * (uint64_t)elements->shape[axis] + (uint64_t)i));
    return NULL;
}

static gbx_status note_all(array_printer *printer) {
    const element_window *window = &printer->window;
    for (uint64_t at = 0; at < printer->elements->stored; at += window->count) {
        GBX_TRY(read_window(printer, at));
        for (size_t i = 0; i < window->count; ++i)
            gbx_array_format_note(&printer->format, window->bits[i]);
    }
    return NULL;
}

/* --- the second pass --- */

static void put_character(array_printer *printer, char character) {
    for (; printer->blank_count > 0; --printer->blank_count)
        putc_unlocked(' ', printer->to);
    putc_unlocked(character, printer->to);
}

/* Blanks stay pending until another character follows. */
static void put_word(array_printer *printer, const char *word, size_t length) {
    for (size_t i = 0; i < length; ++i) {
        if (word[i] == ' ')
            ++printer->blank_count;
        else
            put_character(printer, word[i]);
    }
    printer->column += (int64_t)length;
}

static void break_line(array_printer *printer, uint32_t axis, uint32_t count) {
    printer->blank_count = 0;
    for (uint32_t i = 0; i < count; ++i)
        put_character(printer, '\n');
    printer->blank_count = axis + 1;
    printer->column = axis + 1;
}

/* Starts a new line when the word and all closing brackets do not fit, unless the word is the first
 * of its line. */
static void put_wrapped(array_printer *printer, uint32_t axis, const char *word, size_t length) {
    const int64_t end = printer->line_width - (int64_t)axis - 1;
    const bool is_first = printer->column <= (int64_t)axis + 1;
    if (!is_first && printer->column + (int64_t)length > end)
        break_line(printer, axis, 1);
    put_word(printer, word, length);
}

static gbx_status make_word(array_printer *printer, uint64_t index, char *out_word,
                            size_t *out_length) {
    if (index >= printer->elements->stored) {
        *out_length = gbx_array_format_write_missing(&printer->format, out_word);
        return NULL;
    }
    uint64_t bits;
    GBX_TRY(read_element(printer, index, &bits));
    *out_length = gbx_array_format_write(&printer->format, bits, out_word);
    return NULL;
}

/* The last axis. */
static gbx_status print_row(array_printer *printer, uint32_t axis, uint64_t first) {
    const int64_t count = printer->elements->shape[axis];
    char word[GBX_ARRAY_WORD_BYTES];
    put_character(printer, '[');
    printer->column = (int64_t)axis + 1;
    for (int64_t i = 0; i < count;) {
        size_t length;
        GBX_TRY(make_word(printer, first + (uint64_t)i, word, &length));
        put_wrapped(printer, axis, word, length);
        const int64_t next = next_shown(printer, axis, i);
        if (next != i + 1) {
            put_word(printer, " ", 1);
            put_wrapped(printer, axis, "...", 3);
        }
        if (next < count)
            put_word(printer, " ", 1);
        i = next;
    }
    put_character(printer, ']');
    return NULL;
}

/* The more dimensions blocks have, the more empty lines separate them. */
static gbx_status print_axis(array_printer *printer, uint32_t axis, uint64_t index) {
    const gbx_elements *elements = printer->elements;
    const uint64_t count = (uint64_t)elements->shape[axis];
    const uint32_t axes_left = elements->ndims - axis;
    if (axes_left == 1)
        return print_row(printer, axis, index * count);
    put_character(printer, '[');
    for (int64_t i = 0; i < (int64_t)count;) {
        GBX_TRY(print_axis(printer, axis + 1, index * count + (uint64_t)i));
        const int64_t next = next_shown(printer, axis, i);
        if (next != i + 1) {
            break_line(printer, axis, axes_left - 1);
            put_word(printer, "...", 3);
        }
        if (next < (int64_t)count)
            break_line(printer, axis, axes_left - 1);
        i = next;
    }
    put_character(printer, ']');
    return NULL;
}

static gbx_status print_scalar(array_printer *printer) {
    char word[GBX_ARRAY_WORD_BYTES];
    size_t length;
    GBX_TRY(make_word(printer, 0, word, &length));
    put_word(printer, word, length);
    for (; printer->blank_count > 0; --printer->blank_count)
        putc_unlocked(' ', printer->to);
    return NULL;
}

gbx_status gbx_array_print(FILE *to, const gbx_elements *elements,
                           const gbx_array_text_options *options) {
    if (!gbx_dtype_is_valid(elements->dtype) || elements->ndims > GBX_MAX_DIMS)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "printing an array: unsupported dtype %u or %u dimensions", elements->dtype,
                        elements->ndims);
    array_printer printer = {.to = to, .elements = elements};
    printer.line_width = (int64_t)gbx_min_u64(options->line_width, INT32_MAX);
    printer.is_summary = !options->is_full && elements->count > SUMMARY_THRESHOLD;
    printer.window.capacity = printer.is_summary ? 2 * EDGE_ITEMS : WINDOW_COUNT;
    if (elements->count == 0) {
        fputs("[]", to);
    } else {
        gbx_array_format_begin(&printer.format, elements->dtype, elements->ndims == 0);
        GBX_TRY(printer.is_summary ? note_shown(&printer, 0, 0) : note_all(&printer));
        gbx_array_format_end(&printer.format);
        GBX_TRY(elements->ndims == 0 ? print_scalar(&printer) : print_axis(&printer, 0, 0));
    }
    putc('\n', to);
    if (ferror(to))
        return gbx_fail(GBX_IO, "cannot write the elements of an array: %s", strerror(errno));
    return NULL;
}
