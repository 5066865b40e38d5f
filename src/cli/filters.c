#include "cli/filters.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "tensor/dtype_table.h"
#include "text/filter_values.h"

static void add_range(struct argp_state *state, const gbx_option *option, const char *text,
                      gbx_selection_ranges *ranges, const char *expected) {
    gbx_selection_range range;
    if (!gbx_filter_read_range(text, UINT64_MAX, &range.first, &range.last))
        argp_error(state, "--%s: unknown value \"%s\"; expected %s", option->name, text, expected);
    else if (ranges->count == GBX_SELECTION_VALUES_MAX)
        argp_error(state, "--%s: more than %d values; use a range", option->name,
                   GBX_SELECTION_VALUES_MAX);
    else
        ranges->items[ranges->count++] = range;
}

static void add_name(struct argp_state *state, const gbx_option *option, const char *text,
                     gbx_selection_names *names) {
    if (names->count == GBX_SELECTION_VALUES_MAX)
        argp_error(state, "--%s: more than %d values; use a glob such as 'soft*'", option->name,
                   GBX_SELECTION_VALUES_MAX);
    else
        names->items[names->count++] = text;
}

void gbx_filter_read_name(struct argp_state *state, const gbx_option *option, const char *text,
                          void *group) {
    add_name(state, option, text, (void *)((char *)group + option->offset));
}

void gbx_filter_read_task(struct argp_state *state, const gbx_option *option, const char *text,
                          void *group) {
    gbx_selection_ranges *numbers = (void *)((char *)group + option->offset);
    bool is_id = strncasecmp(text, "0x", 2) == 0;
    add_range(state, option, text, is_id ? numbers + 1 : numbers,
              "a number such as 17, a range such as 10..20, or an id such as 0x11");
}

static void read_func(struct argp_state *state, const gbx_option *option, const char *text,
                      void *group) {
    gbx_selection *selection = group;
    add_range(state, option, text, &selection->funcs,
              "a func_id such as 3 or a range such as 0..3");
}

/* What begins like a number is one. */
static void read_arg(struct argp_state *state, const gbx_option *option, const char *text,
                     void *group) {
    gbx_selection *selection = group;
    if (text[0] >= '0' && text[0] <= '9')
        add_range(state, option, text, &selection->args,
                  "a slot such as 2, a range such as 0..3, or a name");
    else
        add_name(state, option, text, &selection->arg_names);
}

/* A word that sets its bit. */
static void read_word(struct argp_state *state, const gbx_option *option, const char *text,
                      void *group) {
    uint32_t *bits = (void *)((char *)group + option->offset);
    *bits |= 1u << gbx_option_choice(state, option, text);
}

static void read_dtype(struct argp_state *state, const gbx_option *option, const char *text,
                       void *group) {
    gbx_selection *selection = group;
    uint32_t dtype;
    if (!gbx_dtype_read(text, &dtype))
        argp_error(state,
                   "--%s: unknown dtype \"%s\"; expected one such as float32, bfloat16 or "
                   "int8, or unknown",
                   option->name, text);
    selection->dtypes |= 1u << dtype;
}

static_assert(offsetof(gbx_selection, task_ids) ==
                  offsetof(gbx_selection, task_numbers) + sizeof(gbx_selection_ranges),
              "gbx_filter_read_task stores into both");

const gbx_option gbx_filter_options[] = {
    {"kernel", "NAME", .help = "Tasks with a kernel of this name or glob: 'softmax*'",
     GBX_STORE(CUSTOM, gbx_selection, kernels), .read = gbx_filter_read_name, .may_repeat = true,
     .completion = GBX_COMPLETE_KERNEL},
    {"func", "N", .help = "Tasks with a kernel of this func_id or range: 0..3",
     GBX_STORE(CUSTOM, gbx_selection, funcs), .read = read_func, .may_repeat = true},
    {"task", "TASK",
     .help = "Tasks of this number in order of submission (17), range (10..20) or id (0x11)",
     GBX_STORE(CUSTOM, gbx_selection, task_numbers), .read = gbx_filter_read_task,
     .may_repeat = true},
    {"arg", "ARG", .help = "The argument in this slot or range, or of this name or glob",
     GBX_STORE(CUSTOM, gbx_selection, args), .read = read_arg, .may_repeat = true},
    {"role", "ROLE", .help = "input, output or inout", GBX_STORE(CUSTOM, gbx_selection, roles),
     .read = read_word, .names = &gbx_roles, .may_repeat = true},
    {"stage", "STAGE", .help = "before_dispatch or after_completion (before, after)",
     GBX_STORE(CUSTOM, gbx_selection, stages), .read = read_word, .names = &gbx_stages,
     .may_repeat = true},
    {"kind", "KIND", .help = "tensor or scalar; of a dispatch also word",
     GBX_STORE(CUSTOM, gbx_selection, kinds), .read = read_word, .names = &gbx_slot_kinds,
     .may_repeat = true},
    {"dtype", "DTYPE", .help = "float32, bfloat16...; unknown: undeclared scalars",
     GBX_STORE(CUSTOM, gbx_selection, dtypes), .read = read_dtype, .completion = GBX_COMPLETE_DTYPE,
     .may_repeat = true},
    {0}};

static gbx_status fail_no_names(const gbx_reader *reader, const char *option, const char *what,
                                const char *instead) {
    return gbx_fail(GBX_INVALID_ARGUMENT, "%s: %s has no names of %s; use %s, or omit the option",
                    option, gbx_reader_get_origin(reader)->records_path, what, instead);
}

static gbx_status check_names(const gbx_selection *selection, const gbx_reader *reader) {
    switch (gbx_selection_find_lack(selection, gbx_reader_run(reader))) {
    case GBX_SELECTION_LACKS_KERNEL_NAMES:
        return fail_no_names(reader, "--kernel", "kernels", "--func with a func_id");
    case GBX_SELECTION_LACKS_ARG_NAMES:
        return fail_no_names(reader, "--arg", "arguments", "the slot's number");
    case GBX_SELECTION_LACKS_NOTHING:
        break;
    }
    return NULL;
}

gbx_status gbx_filter_apply(const gbx_selection *selection, gbx_entries *entries,
                            gbx_selected *out_selected) {
    *out_selected = (gbx_selected){0};
    GBX_TRY(check_names(selection, gbx_entries_reader(entries)));
    return gbx_selection_apply(selection, entries, out_selected);
}

gbx_status gbx_filter_apply_dispatches(const gbx_selection *selection,
                                       const gbx_dispatches *dispatches,
                                       gbx_selected *out_selected) {
    *out_selected = (gbx_selected){0};
    GBX_TRY(check_names(selection, dispatches->reader));
    return gbx_selection_apply_dispatches(selection, dispatches, out_selected);
}
