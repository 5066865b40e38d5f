#include "text/filter_values.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

/* Decimal, or hexadecimal after 0x, up to the end of the text or "..". */
static bool read_number(const char *text, uint64_t *out_value, const char **out_end) {
    bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = is_hex ? text + 2 : text;
    if (is_hex ? !isxdigit((unsigned char)digits[0]) : !isdigit((unsigned char)digits[0]))
        return false;
    char *end;
    errno = 0;
    *out_value = strtoull(digits, &end, is_hex ? 16 : 10);
    *out_end = end;
    return errno == 0;
}

bool gbx_filter_read_range(const char *text, uint64_t max, uint64_t *out_first,
                           uint64_t *out_last) {
    const char *end;
    if (!read_number(text, out_first, &end))
        return false;
    *out_last = *out_first;
    if (end[0] == '.' && end[1] == '.' && !read_number(end + 2, out_last, &end))
        return false;
    return *end == '\0' && *out_first <= *out_last && *out_last <= max;
}
