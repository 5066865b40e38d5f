/* Text from an untrusted file, on its way into a message. */
#ifndef GBX_TEXT_PLAIN_TEXT_H
#define GBX_TEXT_PLAIN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the valid UTF-8 sequence of two or more bytes at `bytes`; 0 when there is none. */
size_t gbx_utf8_sequence_bytes(const unsigned char *bytes, size_t left);

/*
 * Makes a text one line of valid UTF-8, in place and of the same length: control characters, which
 * can move a terminal's cursor or end the line, and bytes that are not UTF-8, such as half a
 * character at a cut, become question marks.
 */
void gbx_text_make_plain(char *text);

/* Whether that would change nothing. */
bool gbx_text_is_plain(const char *text);

#endif
