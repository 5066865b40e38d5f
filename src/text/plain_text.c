#include "text/plain_text.h"

#include <string.h>

enum { UTF8_MAX = 4 }; /* bytes of a character */

size_t gbx_utf8_sequence_bytes(const unsigned char *bytes, size_t left) {
    unsigned char lead = bytes[0];
    if (lead < 0xc2 || lead > 0xf4)
        return 0;
    size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (left < size)
        return 0;
    for (size_t i = 1; i < size; ++i) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    }
    bool is_overlong = (lead == 0xe0 && bytes[1] < 0xa0) || (lead == 0xf0 && bytes[1] < 0x90);
    bool is_surrogate = lead == 0xed && bytes[1] > 0x9f;
    bool is_beyond = lead == 0xf4 && bytes[1] > 0x8f;
    return is_overlong || is_surrogate || is_beyond ? 0 : size;
}

/* U+0080 to U+009F are controls, too. */
static bool is_control(const unsigned char *bytes, size_t size) {
    return size == 1 ? bytes[0] < 0x20 || bytes[0] == 0x7f : bytes[0] == 0xc2 && bytes[1] < 0xa0;
}

/* Bytes of the plain character at `bytes`; 0 when there is none. */
static size_t plain_bytes(const unsigned char *bytes, size_t left) {
    size_t size = bytes[0] < 0x80 ? 1 : gbx_utf8_sequence_bytes(bytes, left);
    return size && !is_control(bytes, size) ? size : 0;
}

/* Bytes from the start of a text that are plain. */
static size_t plain_length(const char *text) {
    size_t length = 0;
    for (size_t size = 1; size > 0 && text[length]; length += size)
        size = plain_bytes((const unsigned char *)text + length, strnlen(text + length, UTF8_MAX));
    return length;
}

void gbx_text_make_plain(char *text) {
    /* Continuation bytes after a byte that is not plain are not plain either. */
    for (text += plain_length(text); *text; text += plain_length(text))
        *text = '?';
}

bool gbx_text_is_plain(const char *text) {
    return text[plain_length(text)] == '\0';
}
