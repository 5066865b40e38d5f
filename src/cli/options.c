#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "cli/internal.h"
#include "text/filter_values.h"

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

bool gbx_option_is_id(const char *text) {
    return text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
}

void gbx_option_dump(struct argp_state *state, const char **dump, const char *argument,
                     const char *done) {
    if (*dump)
        argp_error(state, "\"%s\" is not expected; one dump is %s at a time", argument, done);
    *dump = argument;
}

/* --- filters --- */

enum { NAMES_BYTES = 128 };

enum {
    KEY_KERNEL = 0x300, /* apart from those of commands */
    KEY_FUNC,
    KEY_TASK,
    KEY_ARG,
    KEY_ROLE,
    KEY_STAGE,
    KEY_KIND,
    KEY_DTYPE
};

static const struct argp_option options[] = {
    {"kernel", KEY_KERNEL, "NAME", 0, "Tasks with a kernel of this name or glob: 'softmax*'", 1},
    {"func", KEY_FUNC, "N", 0, "Tasks with a kernel of this func_id, or range: 0..3", 1},
    {"task", KEY_TASK, "TASK", 0,
     "The task of this number in order of submission, or range: 17, 10..20; or of this id: 0x11",
     1},
    {"arg", KEY_ARG, "ARG", 0, "The argument in this slot, or range, or of this name or glob", 1},
    {"role", KEY_ROLE, "ROLE", 0, "input, output or inout", 1},
    {"stage", KEY_STAGE, "STAGE", 0, "before_dispatch or after_completion (before, after)", 1},
    {"kind", KEY_KIND, "KIND", 0, "tensor or scalar", 1},
    {"dtype", KEY_DTYPE, "DTYPE", 0, "float32, bfloat16...", 1},
    {0}};

static void add_range(struct argp_state *state, const char *option, const char *text,
                      gbx_selection_ranges *ranges, const char *expected) {
    gbx_selection_range range;
    if (!gbx_filter_read_range(text, UINT64_MAX, &range.first, &range.last))
        argp_error(state, "%s: \"%s\" is not expected; %s", option, text, expected);
    else if (ranges->count == GBX_SELECTION_VALUES_MAX)
        argp_error(state, "%s: more than %d values; take a range", option,
                   GBX_SELECTION_VALUES_MAX);
    else
        ranges->items[ranges->count++] = range;
}

static void add_name(struct argp_state *state, const char *option, const char *text,
                     gbx_selection_names *names) {
    if (names->count == GBX_SELECTION_VALUES_MAX)
        argp_error(state, "%s: more than %d values; take a glob such as 'soft*'", option,
                   GBX_SELECTION_VALUES_MAX);
    else
        names->items[names->count++] = text;
}

static void add_word(struct argp_state *state, const char *option, const char *text,
                     const gbx_name_set *names, uint32_t *bits) {
    char known[NAMES_BYTES];
    uint32_t number = 0;
    if (!gbx_name_find(names, text, &number)) {
        gbx_name_list(names, known, sizeof known);
        argp_error(state, "%s: \"%s\" is none of %s", option, text, known);
    }
    *bits |= 1u << number;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    gbx_selection *selection = state->input;
    gbx_dtype dtype;
    switch (key) {
    case KEY_KERNEL:
        add_name(state, "--kernel", argument, &selection->kernels);
        return 0;
    case KEY_FUNC:
        add_range(state, "--func", argument, &selection->funcs,
                  "a func_id such as 3 or a range such as 0..3 is");
        return 0;
    case KEY_TASK:
        add_range(state, "--task", argument,
                  gbx_option_is_id(argument) ? &selection->task_ids : &selection->task_numbers,
                  "a number such as 17, a range such as 10..20, or an id such as 0x11 is");
        return 0;
    case KEY_ARG: /* what begins like a number is one */
        if (argument[0] >= '0' && argument[0] <= '9')
            add_range(state, "--arg", argument, &selection->args,
                      "a slot such as 2, a range such as 0..3, or a name is");
        else
            add_name(state, "--arg", argument, &selection->arg_names);
        return 0;
    case KEY_ROLE:
        add_word(state, "--role", argument, &gbx_roles, &selection->roles);
        return 0;
    case KEY_STAGE:
        add_word(state, "--stage", argument, &gbx_stages, &selection->stages);
        return 0;
    case KEY_KIND:
        add_word(state, "--kind", argument, &gbx_kinds, &selection->kinds);
        return 0;
    case KEY_DTYPE:
        dtype = gbx_dtype_parse(argument);
        if (dtype == GBX_DTYPE_NONE)
            argp_error(
                state,
                "--dtype: \"%s\" is none; float32, bfloat16, int8 and their like are expected",
                argument);
        selection->dtypes |= 1u << dtype;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp gbx_selection_argp = {.options = options, .parser = parse};

static gbx_status fail_no_names(const gbx_entries *entries, const char *option, const char *what,
                                const char *instead) {
    return gbx_fail(
        GBX_INVALID_ARGUMENT, "%s: %s tells no names of %s; take %s, or leave the option out",
        option, gbx_reader_get_origin(gbx_entries_reader(entries))->records_path, what, instead);
}

gbx_status gbx_selection_options_apply(const gbx_selection *selection, gbx_entries *entries,
                                       gbx_selected *out_selected) {
    *out_selected = (gbx_selected){0};
    switch (gbx_selection_find_lack(selection, gbx_reader_run(gbx_entries_reader(entries)))) {
    case GBX_SELECTION_LACKS_KERNEL_NAMES:
        return fail_no_names(entries, "--kernel", "kernels", "--func with a func_id");
    case GBX_SELECTION_LACKS_ARG_NAMES:
        return fail_no_names(entries, "--arg", "arguments", "the slot's number");
    case GBX_SELECTION_LACKS_NOTHING:
        break;
    }
    return gbx_selection_apply(selection, entries, out_selected);
}
