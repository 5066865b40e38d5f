#include "cli/selection_options.h"

#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "text/filter_values.h"
#include "text/names.h"

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

static void add_dtype(struct argp_state *state, const char *text, uint32_t *bits) {
    gbx_dtype dtype = gbx_dtype_parse(text);
    if (dtype == GBX_DTYPE_NONE)
        argp_error(state,
                   "--dtype: \"%s\" is none; float32, bfloat16, int8 and their like are expected",
                   text);
    *bits |= 1u << dtype;
}

/* "0x..." is an id, anything else the number. */
static void add_task(struct argp_state *state, const char *text, gbx_selection *selection) {
    bool is_id = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    add_range(state, "--task", text, is_id ? &selection->task_ids : &selection->task_numbers,
              "a number such as 17, a range such as 10..20, or an id such as 0x11 is");
}

/* What begins like a number is one. */
static void add_arg(struct argp_state *state, const char *text, gbx_selection *selection) {
    if (text[0] >= '0' && text[0] <= '9')
        add_range(state, "--arg", text, &selection->args,
                  "a slot such as 2, a range such as 0..3, or a name is");
    else
        add_name(state, "--arg", text, &selection->arg_names);
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    gbx_selection *selection = state->input;
    switch (key) {
    case KEY_KERNEL:
        add_name(state, "--kernel", argument, &selection->kernels);
        return 0;
    case KEY_FUNC:
        add_range(state, "--func", argument, &selection->funcs,
                  "a func_id such as 3 or a range such as 0..3 is");
        return 0;
    case KEY_TASK:
        add_task(state, argument, selection);
        return 0;
    case KEY_ARG:
        add_arg(state, argument, selection);
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
        add_dtype(state, argument, &selection->dtypes);
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
