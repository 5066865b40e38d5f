#include "dump/filter_values.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/select.h"

const gbx_filter_word gbx_filter_roles[] = {{"input", GBX_ROLE_INPUT}, {"output", GBX_ROLE_OUTPUT},
                                            {"inout", GBX_ROLE_INOUT}, {"in", GBX_ROLE_INPUT},
                                            {"out", GBX_ROLE_OUTPUT},  {NULL, 0}};
const gbx_filter_word gbx_filter_stages[] = {
    {"before_dispatch", 0}, {"after_completion", 1}, {"before", 0}, {"after", 1}, {NULL, 0}};
const gbx_filter_word gbx_filter_kinds[] = {
    {"tensor", GBX_KIND_TENSOR}, {"scalar", GBX_KIND_SCALAR}, {NULL, 0}};

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

bool gbx_filter_find_word(const gbx_filter_word *words, const char *text, uint32_t *out_number,
                          char out_known[GBX_FILTER_WORDS_BYTES]) {
    size_t used = 0;
    for (const gbx_filter_word *w = words; w->word; ++w) {
        if (strcmp(w->word, text) == 0) {
            *out_number = w->number;
            return true;
        }
        used += (size_t)snprintf(out_known + used, GBX_FILTER_WORDS_BYTES - used, "%s%s",
                                 used ? ", " : "", w->word);
    }
    return false;
}
