#include "report/sink.h"

#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <math.h>
#include <stdarg.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

#include "analysis/array_text.h"
#include "base/status.h"
#include "store/manifest/manifest_text.h"
#include "tensor/compare/compare.h"
#include "text/float_text.h"

enum {
    DEFAULT_WIDTH = 80,
    ESCAPED_WIDTH = 4,
    CHARACTER_BYTES = 4,
    ZERO_WIDTH_BYTES = 1024,                    /* of characters without a width in a cut text */
    SHOWN_BYTES_MAX = GBX_TEXT_BYTES_MAX - 1024 /* words and colours around it have room */
};

/* --- texts of numbers --- */

/* Room for a text of `bytes`, its end included. */
static char *reserve(gbx_texts *texts, size_t bytes) {
    if (texts->used + bytes > sizeof texts->bytes)
        texts->used = 0;
    char *text = texts->bytes + texts->used;
    texts->used += bytes;
    return text;
}

/* Ends a text in its room, and gives back the rest. */
static const char *end_text(gbx_texts *texts, const char *text, char *end) {
    *end = '\0';
    texts->used = (size_t)(end + 1 - texts->bytes);
    return text;
}

const char *gbx_text_format(gbx_texts *texts, const char *format, ...) {
    char *text = reserve(texts, GBX_TEXT_BYTES_MAX);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, GBX_TEXT_BYTES_MAX, format, arguments);
    va_end(arguments);
    size_t kept = length < 0 ? 0 : (size_t)length;
    return end_text(texts, text,
                    text + (kept < GBX_TEXT_BYTES_MAX ? kept : GBX_TEXT_BYTES_MAX - 1));
}

const char *gbx_text_join(gbx_texts *texts, const char *first, const char *between,
                          const char *second) {
    const char *const parts[] = {first, between, second};
    char *text = reserve(texts, GBX_TEXT_BYTES_MAX);
    size_t used = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; ++i) {
        size_t length = strnlen(parts[i], GBX_TEXT_BYTES_MAX - 1 - used);
        memcpy(text + used, parts[i], length);
        used += length;
    }
    return end_text(texts, text, text + used);
}

const char *gbx_text_number(gbx_texts *texts, uint64_t number) {
    char *text = reserve(texts, GBX_VALUE_TEXT_BYTES);
    return end_text(texts, text, gbx_put_u64(text, number));
}

const char *gbx_text_count(gbx_texts *texts, uint64_t count) {
    char digits[GBX_VALUE_TEXT_BYTES];
    int length = (int)(gbx_put_u64(digits, count) - digits);
    char *text = reserve(texts, (size_t)length + (size_t)(length - 1) / 3 + 1);
    char *at = text;
    for (int i = 0; i < length; ++i) {
        if (i > 0 && (length - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    return end_text(texts, text, at);
}

const char *gbx_text_counted(gbx_texts *texts, uint64_t count, const char *noun) {
    size_t length = strlen(noun);
    bool ends_in_y = length > 1 && noun[length - 1] == 'y' && !strchr("aeiou", noun[length - 2]);
    bool ends_in_ch = length > 1 && strcmp(noun + length - 2, "ch") == 0;
    const char *number = gbx_text_count(texts, count);
    if (count == 1)
        return gbx_text_format(texts, "%s %s", number, noun);
    return gbx_text_format(texts, "%s %.*s%s", number, (int)(length - ends_in_y), noun,
                           ends_in_y    ? "ies"
                           : ends_in_ch ? "es"
                                        : "s");
}

const char *gbx_text_verb(uint64_t count, const char *one, const char *many) {
    return count == 1 ? one : many;
}

const char *gbx_text_bytes(gbx_texts *texts, uint64_t bytes) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024)
        return gbx_text_counted(texts, bytes, "byte");
    double value = (double)bytes / 1024;
    size_t unit = 0;
    for (; value >= 1023.95 && unit + 1 < sizeof units / sizeof units[0]; ++unit)
        value /= 1024;
    return gbx_text_format(texts, "%.1f %s", value, units[unit]);
}

/* Three digits are shown: what rounds to 1000 of a unit is 1 of the next. */
const char *gbx_text_ns(gbx_texts *texts, uint64_t ns) {
    double value = (double)ns;
    if (ns < 1000)
        return gbx_text_format(texts, "%" PRIu64 " ns", ns);
    if (value < 999.5e3)
        return gbx_text_format(texts, "%.3g us", value / 1e3);
    if (value < 999.5e6)
        return gbx_text_format(texts, "%.3g ms", value / 1e6);
    return gbx_text_format(texts, "%.2f s", value / 1e9);
}

const char *gbx_text_real(gbx_texts *texts, double value, int digits) {
    return gbx_text_format(texts, "%.*g", digits, value);
}

const char *gbx_text_short(gbx_texts *texts, double value) {
    const char *text = gbx_text_real(texts, value, 6);
    return strlen(text) > GBX_SHORT_WIDTH ? gbx_text_real(texts, value, 5) : text;
}

const char *gbx_text_exact(gbx_texts *texts, double value) {
    char *text = reserve(texts, GBX_FLOAT_TEXT_BYTES);
    gbx_f64_format(value, text);
    return text;
}

const char *gbx_text_numbers(gbx_texts *texts, const int64_t *numbers, uint32_t count) {
    enum { NUMBER_BYTES = 22 }; /* "-9223372036854775808, " */
    char *text = reserve(texts, (size_t)count * NUMBER_BYTES + sizeof "[]");
    char *at = GBX_PUT(text, "[");
    for (uint32_t i = 0; i < count; ++i) {
        at = i > 0 ? GBX_PUT(at, ", ") : at;
        at = gbx_put_i64(at, numbers[i]);
    }
    return end_text(texts, text, GBX_PUT(at, "]"));
}

const char *gbx_text_index(gbx_texts *texts, const gbx_tensor *tensor, uint64_t number) {
    int64_t index[GBX_MAX_DIMS];
    gbx_compare_index(tensor, number, index);
    return gbx_text_numbers(texts, index, tensor->ndims);
}

const char *gbx_text_element(gbx_texts *texts, uint32_t dtype, uint64_t bits) {
    if (dtype == GBX_DTYPE_NONE)
        return gbx_text_format(texts, "0x%" PRIx64, bits);
    char *text = reserve(texts, GBX_ELEMENT_TEXT_BYTES);
    gbx_element_format(dtype, bits, text);
    return text;
}

const char *gbx_text_value(gbx_texts *texts, uint32_t dtype, uint64_t bits) {
    const char *value = gbx_text_element(texts, dtype, bits);
    int digits = (int)(gbx_dtype_bits(dtype) + 3) / 4;
    bool has_twins = gbx_dtype_is_float(dtype) && isnan(gbx_dtype_to_f64(dtype, bits));
    if (!has_twins && !(dtype == GBX_BOOL && bits > 1))
        return value;
    return gbx_text_format(texts, "%s (0x%0*" PRIx64 ")", value, digits, bits);
}

const char *gbx_text_readings(gbx_texts *texts, uint64_t bits) {
    return gbx_text_format(texts, "float32 %s, int32 %s",
                           gbx_text_element(texts, GBX_FLOAT32, bits & UINT32_MAX),
                           gbx_text_element(texts, GBX_INT32, bits & UINT32_MAX));
}

/* --- texts of others --- */

/* Characters that change the direction of what follows, or end a line: they would make a text look
 * like another one. */
static bool is_misleading(uint32_t character) {
    return character == 0x061c || character == 0x200e || character == 0x200f ||
           (character >= 0x2028 && character <= 0x202e) ||
           (character >= 0x2066 && character <= 0x2069);
}

/* The bytes of the first character, or of a first byte that belongs to none, its columns, and
 * whether it is shown as \xNN. */
static size_t first_character(const char *text, size_t *out_columns, bool *out_is_escaped) {
    mbstate_t state = {0};
    wchar_t character = 0;
    size_t bytes = mbrtowc(&character, text, MB_CUR_MAX, &state);
    bool is_bad = bytes == (size_t)-1 || bytes == (size_t)-2;
    bool is_shown = !is_bad && iswprint((wint_t)character) && !is_misleading((uint32_t)character) &&
                    !(text[0] == '\\' && text[1] == 'x');
    int columns = is_shown ? wcwidth(character) : -1;
    bytes = is_bad ? 1 : bytes;
    *out_is_escaped = columns < 0;
    *out_columns = columns < 0 ? ESCAPED_WIDTH * bytes : (size_t)columns;
    return bytes;
}

/* Printable ASCII without a backslash, which is shown as it is. */
static bool is_plain(const char *text, size_t *out_length) {
    size_t length = 0;
    while (text[length] >= ' ' && text[length] <= '~' && text[length] != '\\')
        ++length;
    *out_length = length;
    return !text[length];
}

const char *gbx_text_shown(gbx_texts *texts, const char *text) {
    size_t length;
    if (is_plain(text, &length) && length < SHOWN_BYTES_MAX)
        return text;
    char *shown = reserve(texts, GBX_TEXT_BYTES_MAX);
    size_t used = 0;
    while (*text) {
        size_t columns;
        bool is_escaped;
        size_t bytes = first_character(text, &columns, &is_escaped);
        if (used + (is_escaped ? ESCAPED_WIDTH * bytes : bytes) + sizeof "..." > SHOWN_BYTES_MAX) {
            memcpy(shown + used, "...", 3);
            used += 3;
            break;
        }
        for (size_t i = 0; is_escaped && i < bytes; ++i, used += ESCAPED_WIDTH)
            snprintf(shown + used, ESCAPED_WIDTH + 1, "\\x%02x", (unsigned char)text[i]);
        if (!is_escaped) {
            memcpy(shown + used, text, bytes);
            used += bytes;
        }
        text += bytes;
    }
    return end_text(texts, shown, shown + used);
}

size_t gbx_text_width(const char *text) {
    size_t width;
    if (is_plain(text, &width))
        return width;
    width = 0;
    for (size_t columns; *text; width += columns) {
        bool is_escaped;
        text += first_character(text, &columns, &is_escaped);
    }
    return width;
}

const char *gbx_text_cut(gbx_texts *texts, const char *text, size_t width) {
    size_t columns, used = 0;
    bool is_escaped;
    size_t most = CHARACTER_BYTES * width + ZERO_WIDTH_BYTES;
    if (most > GBX_TEXT_BYTES_MAX)
        most = GBX_TEXT_BYTES_MAX;
    if (gbx_text_width(text) <= width && strlen(text) < most)
        return text;
    const char *mark = strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? "\u2026" : "~";
    char *cut = reserve(texts, GBX_TEXT_BYTES_MAX);
    for (size_t left = width - 1; *text; left -= columns) {
        size_t bytes = first_character(text, &columns, &is_escaped);
        if (columns > left || used + bytes + strlen(mark) >= most)
            break;
        memcpy(cut + used, text, bytes);
        used += bytes;
        text += bytes;
    }
    return end_text(texts, cut, stpcpy(cut + used, mark));
}

char *gbx_shell_quote(const char *text, bool is_shown) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./-+=:,@%";
    bool is_escaped = false;
    if (text[0] && !text[strspn(text, plain)])
        return strdup(text);
    char *quoted = malloc(4 * strlen(text) + 4);
    if (!quoted)
        return NULL;
    for (const char *at = text; is_shown && *at && !is_escaped;) {
        size_t columns;
        at += first_character(at, &columns, &is_escaped);
    }
    char *at = stpcpy(quoted, is_escaped ? "$'" : "'");
    for (; *text; ++text) {
        bool is_own = *text == '\'' || *text == '\\';
        if (is_escaped && (*text < ' ' || *text > '~' || is_own))
            at += sprintf(at, "\\%03o", (unsigned char)*text);
        else if (!is_escaped && *text == '\'')
            at = stpcpy(at, "'\\''");
        else
            *at++ = *text;
    }
    memcpy(at, "'", 2);
    return quoted;
}

const char *gbx_text_word(gbx_texts *texts, const char *word) {
    char *quoted = gbx_shell_quote(word, true);
    const char *text = gbx_text_format(texts, "%s", quoted ? quoted : word);
    free(quoted);
    return text;
}

/* --- sinks --- */

static size_t columns_of(int fd) {
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    const char *columns = getenv("COLUMNS");
    unsigned long width = columns ? strtoul(columns, NULL, 10) : 0;
    return width > 0 ? width : DEFAULT_WIDTH;
}

void gbx_sink_open(gbx_sink *sink, FILE *stream) {
    const char *no_colour = getenv("NO_COLOR");
    int fd = fileno(stream); /* -1 for a string */
    bool is_terminal = fd >= 0 && isatty(fd);
    sink->out = stream;
    sink->name = stream == stdout ? "stdout" : "the report";
    sink->width = is_terminal ? columns_of(fd) : SIZE_MAX;
    sink->has_colour = is_terminal && !(no_colour && *no_colour);
    sink->is_unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    sink->texts.used = 0;
}

void gbx_sink_print(gbx_sink *sink, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(sink->out, format, arguments);
    va_end(arguments);
}

void gbx_sink_count(gbx_sink *sink, const char *before, uint64_t count, const char *noun,
                    const char *after) {
    if (count > 0)
        gbx_sink_print(sink, "%s%s%s\n", before, gbx_text_counted(&sink->texts, count, noun),
                       after);
}

void gbx_sink_more(gbx_sink *sink, const char *before, uint64_t all, uint64_t shown,
                   const char *after) {
    if (all > shown)
        gbx_sink_print(sink, "%sand %s more%s", before, gbx_text_count(&sink->texts, all - shown),
                       after);
}

const char *gbx_sink_colour(gbx_sink *sink, const char *colour, const char *text) {
    return sink->has_colour ? gbx_text_format(&sink->texts, "%s%s\x1b[0m", colour, text) : text;
}

gbx_status gbx_sink_write(void *context, const void *bytes, size_t size) {
    gbx_sink *sink = context;
    if (fwrite(bytes, 1, size, sink->out) == size && fflush(sink->out) == 0)
        return NULL;
    gbx_status failure = gbx_fail(GBX_IO, "writing to %s: %s", sink->name, strerror(errno));
    __fpurge(sink->out); /* reported here: nothing is left to fail at the end */
    clearerr(sink->out);
    return failure;
}

gbx_json_writer *gbx_sink_json_begin(gbx_sink *sink) {
    gbx_json_start(&sink->json, gbx_sink_write, sink, GBX_JSON_PRETTY);
    gbx_json_begin_object(&sink->json);
    return &sink->json;
}

gbx_status gbx_sink_json_end(gbx_sink *sink, gbx_status status) {
    if (!status)
        gbx_json_end_object(&sink->json);
    gbx_status finished = gbx_json_finish(&sink->json);
    return gbx_status_first(status, finished);
}
