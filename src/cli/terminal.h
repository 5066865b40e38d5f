/* What stdout is able to show. */
#ifndef GBX_CLI_TERMINAL_H
#define GBX_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* Columns of the terminal; SIZE_MAX where stdout is none. */
size_t gbx_terminal_width(void);

/* On a terminal, and not with NO_COLOR. */
bool gbx_terminal_has_colour(void);

/* The locale's characters are UTF-8. After setlocale. */
bool gbx_terminal_is_unicode(void);

/* Columns that a text takes once it is escaped. */
size_t gbx_terminal_text_width(const char *text);

/*
 * The text with the bytes of some characters as \xNN: of those that the locale cannot show, of
 * controls, of those that turn the direction of what follows, and of a backslash before an x. Ends
 * where `capacity` does not hold more.
 */
void gbx_terminal_escape(const char *text, char *out_text, size_t capacity);

/* The text, or its beginning and a mark where it takes more than `width` columns, at least 1, or
 * `capacity` bytes, at least 8; `out_text` may be used for it. Always shorter than `capacity`. */
const char *gbx_terminal_cut(const char *text, size_t width, char *out_text, size_t capacity);

/* Prints text that a file gave to stdout: controls, and what turns the direction of what follows,
 * do not reach the terminal. */
void gbx_terminal_put(const char *text);

#endif
