#include "cli/option_values.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"

/* Digits alone: no sign, no blank, nothing after them but what *out_end is left at. */
static bool read_digits(const char *text, uint64_t *out_value, const char **out_end) {
    char *end;
    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    *out_value = strtoull(text, &end, 10);
    *out_end = end;
    return errno == 0;
}

uint64_t gbx_option_integer(struct argp_state *state, const char *option, const char *text,
                            uint64_t min, uint64_t max) {
    uint64_t value = 0;
    const char *end = text;
    if (!read_digits(text, &value, &end) || *end || value < min || value > max)
        argp_error(state, "%s: \"%s\" is no integer from %" PRIu64 " to %" PRIu64, option, text,
                   min, max);
    return value;
}

/* The power of two that "", "K", "MiB"... stand for; -1 for anything else. */
static int suffix_shift(const char *suffix) {
    static const char letters[] = "KMGT";
    if (!suffix[0] || strcasecmp(suffix, "B") == 0)
        return 0;
    const char *letter = strchr(letters, toupper((unsigned char)suffix[0]));
    const char *rest = suffix + 1;
    if (!letter || (rest[0] && strcasecmp(rest, "iB") != 0 && strcasecmp(rest, "B") != 0))
        return -1;
    return 10 * (int)(letter - letters + 1);
}

uint64_t gbx_option_size(struct argp_state *state, const char *option, const char *text,
                         uint64_t min, uint64_t max) {
    uint64_t value = 0;
    const char *end = text;
    bool is_number = read_digits(text, &value, &end);
    int shift = is_number ? suffix_shift(end) : -1;
    if (shift < 0 || !gbx_checked_mul_u64(value, UINT64_C(1) << shift, &value) || value < min ||
        value > max)
        argp_error(state,
                   "%s: \"%s\" is no size from %" PRIu64 " to %" PRIu64
                   " bytes; a number is expected, with K, M or G behind it for powers of 1024",
                   option, text, min, max);
    return value;
}

uint32_t gbx_option_seconds(struct argp_state *state, const char *option, const char *text) {
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end || !(seconds >= 0.001 && seconds <= UINT32_MAX / 1000.0))
        argp_error(state, "%s: \"%s\" is no number of seconds from 0.001 to %.0f", option, text,
                   UINT32_MAX / 1000.0);
    return (uint32_t)(seconds * 1000.0);
}

size_t gbx_option_choice(struct argp_state *state, const char *option, const char *text,
                         const char *const *names) {
    char known[256] = "";
    size_t used = 0;
    for (size_t i = 0; names[i]; ++i) {
        if (strcmp(names[i], text) == 0)
            return i;
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                     names[i]);
    }
    argp_error(state, "%s: \"%s\" is none of %s", option, text, known);
    return 0;
}
