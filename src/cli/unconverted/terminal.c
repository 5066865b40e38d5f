#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

#include "cli/internal.h"
#include "text/plain_text.h"

enum { DEFAULT_WIDTH = 80, ESCAPED_WIDTH = 4 };

size_t gbx_terminal_width(void) {
    struct winsize size;
    if (!isatty(STDOUT_FILENO))
        return SIZE_MAX;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    const char *columns = getenv("COLUMNS");
    unsigned long width = columns ? strtoul(columns, NULL, 10) : 0;
    return width > 0 ? width : DEFAULT_WIDTH;
}

bool gbx_terminal_is_unicode(void) {
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* Characters that turn the direction of what follows, or end a line: they would make a text look
 * like another one. */
static bool is_misleading(uint32_t character) {
    return character == 0x061c || character == 0x200e || character == 0x200f ||
           (character >= 0x2028 && character <= 0x202e) ||
           (character >= 0x2066 && character <= 0x2069);
}

/* The bytes of the first character, or of the first byte that is of none, its columns, and whether
 * they are shown as \xNN. */
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

const char *gbx_terminal_cut(const char *text, size_t width, char *out_text, size_t capacity) {
    const char *mark = gbx_terminal_is_unicode() ? "\u2026" : "~";
    size_t used = 0;
    size_t columns = 0;
    bool is_escaped;
    if (strlen(text) < capacity && gbx_terminal_text_width(text) <= width)
        return text;
    for (size_t left = width - 1; *text; left -= columns) {
        size_t bytes = first_character(text, &columns, &is_escaped);
        if (columns > left || used + bytes + strlen(mark) >= capacity)
            break;
        memcpy(out_text + used, text, bytes);
        used += bytes;
        text += bytes;
    }
    memcpy(out_text + used, mark, strlen(mark) + 1);
    return out_text;
}

size_t gbx_terminal_text_width(const char *text) {
    size_t length = 0;
    for (; text[length]; ++length)
        if ((unsigned char)text[length] >= 0x7f || (unsigned char)text[length] < 0x20 ||
            text[length] == '\\')
            break;
    if (!text[length])
        return length;
    size_t width = 0;
    for (size_t columns; *text; width += columns) {
        bool is_escaped;
        text += first_character(text, &columns, &is_escaped);
    }
    return width;
}

void gbx_terminal_escape(const char *text, char *out_text, size_t capacity) {
    size_t used = 0;
    while (*text) {
        size_t columns;
        bool is_escaped;
        size_t bytes = first_character(text, &columns, &is_escaped);
        if (used + (is_escaped ? ESCAPED_WIDTH * bytes : bytes) >= capacity)
            break;
        for (size_t i = 0; is_escaped && i < bytes; ++i, used += ESCAPED_WIDTH)
            snprintf(out_text + used, ESCAPED_WIDTH + 1, "\\x%02x", (unsigned char)text[i]);
        if (!is_escaped) {
            memcpy(out_text + used, text, bytes);
            used += bytes;
        }
        text += bytes;
    }
    out_text[used] = '\0';
}

void gbx_terminal_put(const char *text) {
    while (*text) {
        const unsigned char *bytes = (const unsigned char *)text;
        size_t size = *bytes < 0x80 ? 1 : gbx_utf8_sequence_bytes(bytes, strlen(text));
        uint32_t character = 0; /* all misleading ones have two or three bytes */
        if (size == 2)
            character = (bytes[0] & 0x1fu) << 6 | (bytes[1] & 0x3fu);
        else if (size == 3)
            character = (bytes[0] & 0x0fu) << 12 | (bytes[1] & 0x3fu) << 6 | (bytes[2] & 0x3fu);
        bool is_escaped = *bytes < 0x20 || *bytes == 0x7f || (*bytes == 0xc2 && bytes[1] < 0xa0) ||
                          is_misleading(character);
        if (size > 0 && !is_escaped)
            printf("%.*s", (int)size, text);
        for (size_t i = 0; is_escaped && i < size; ++i)
            printf("\\x%02x", bytes[i]);
        if (size == 0)
            printf("\\x%02x", *bytes);
        text += size > 0 ? size : 1;
    }
}

void gbx_terminal_quote(const char *before, const char *text, const char *after) {
    fputs(before, stdout);
    gbx_terminal_put(text);
    fputs(after, stdout);
}

void gbx_terminal_put_coloured(const char *colour, const char *text, const char *more) {
    const char *no_colour = getenv("NO_COLOR");
    bool is_coloured = isatty(STDOUT_FILENO) && !(no_colour && *no_colour);
    gbx_terminal_quote(is_coloured ? colour : "", text, "");
    gbx_terminal_quote("", more, is_coloured ? "\x1b[0m" : "");
}

char *gbx_shell_quote(const char *text, bool is_shown) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./-+=:,@%";
    if (text[0] && !text[strspn(text, plain)])
        return strdup(text);
    size_t capacity = 4 * strlen(text) + 4;
    char *quoted = malloc(capacity);
    if (!quoted)
        return NULL;
    gbx_terminal_escape(text, quoted, capacity);
    bool is_escaped = is_shown && strcmp(quoted, text) != 0;
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
