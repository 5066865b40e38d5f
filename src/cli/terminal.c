#include "cli/terminal.h"

#include <ctype.h>
#include <langinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

#include "base/plain_text.h"

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

bool gbx_terminal_has_colour(void) {
    const char *no_colour = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && !(no_colour && *no_colour);
}

bool gbx_terminal_is_unicode(void) {
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* The bytes of the first character, or of the first byte that is of none, and its columns. */
static size_t first_character(const char *text, size_t *out_columns) {
    mbstate_t state = {0};
    wchar_t character = 0;
    size_t bytes = mbrtowc(&character, text, MB_CUR_MAX, &state);
    bool is_bad = bytes == (size_t)-1 || bytes == (size_t)-2;
    int columns = is_bad || !iswprint((wint_t)character) ? -1 : wcwidth(character);
    bytes = is_bad ? 1 : bytes;
    *out_columns = columns < 0 ? ESCAPED_WIDTH * bytes : (size_t)columns;
    return bytes;
}

/* Of text with other bytes than those of ASCII. */
static size_t wide_width(const char *text) {
    size_t width = 0;
    while (*text) {
        size_t columns;
        text += first_character(text, &columns);
        width += columns;
    }
    return width;
}

const char *gbx_terminal_cut(const char *text, size_t width, char *out_text, size_t capacity) {
    const char *mark = gbx_terminal_is_unicode() ? "\u2026" : "~";
    size_t used = 0;
    size_t columns = 0;
    if (strlen(text) < capacity && gbx_terminal_text_width(text) <= width)
        return text;
    for (size_t left = width - 1; *text; left -= columns) {
        size_t bytes = first_character(text, &columns);
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
        if ((unsigned char)text[length] >= 0x7f || (unsigned char)text[length] < 0x20)
            return wide_width(text);
    return length;
}

void gbx_terminal_put(const char *text) {
    while (*text) {
        const unsigned char *bytes = (const unsigned char *)text;
        size_t size = *bytes < 0x80 ? 1 : gbx_utf8_sequence_bytes(bytes, strlen(text));
        bool is_control = *bytes < 0x20 || *bytes == 0x7f || (*bytes == 0xc2 && bytes[1] < 0xa0);
        if (size > 0 && !is_control)
            printf("%.*s", (int)size, text);
        for (size_t i = 0; is_control && i < size; ++i)
            printf("\\x%02x", bytes[i]);
        if (size == 0)
            printf("\\x%02x", *bytes);
        text += size > 0 ? size : 1;
    }
}
