#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/internal.h"

enum {
    KEY_ATOL = 0x100, /* no letters: the long names alone */
    KEY_RTOL,
    KEY_ULP,
    KEY_STRICT_NAN,
    KEY_JSON
};

static const struct argp_option options[] = {
    {"atol", KEY_ATOL, "X", 0, "Elements are near when |a - b| <= X + rtol * |b|", 0},
    {"rtol", KEY_RTOL, "X", 0, "Of float elements: see --atol", 0},
    {"ulp", KEY_ULP, "N", 0, "Float elements are near, too, when at most N steps apart", 0},
    {"strict-nan", KEY_STRICT_NAN, NULL, 0, "NaN differs from NaN", 0},
    {"json", KEY_JSON, NULL, 0, "Print one JSON document, with every record that is not equal", 0},
    {0}};

typedef struct command_line {
    const char *dumps[2];
    gbx_selection selection;
    gbx_diff_options options;
    bool as_json;
} command_line;

/* --- options --- */

static double parse_tolerance(struct argp_state *state, const char *option, const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || value < 0.0)
        argp_error(state, "%s: \"%s\" is no finite number of 0 or more", option, text);
    return value;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    command_line *line = state->input;
    gbx_tolerance *tolerance = &line->options.tolerance;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &line->selection;
        return 0;
    case ARGP_KEY_ARG:
        if (line->dumps[1])
            argp_error(state, "\"%s\" is not expected; two dumps are compared", argument);
        line->dumps[line->dumps[0] ? 1 : 0] = argument;
        return 0;
    case ARGP_KEY_END:
        if (!line->dumps[1])
            argp_error(state, "%s missing; two dumps are compared",
                       line->dumps[0] ? "a second dump is" : "two dumps are");
        return 0;
    case KEY_STRICT_NAN:
        line->options.is_strict_nan = true;
        return 0;
    case KEY_JSON:
        line->as_json = true;
        return 0;
    case KEY_ATOL:
        tolerance->atol = parse_tolerance(state, "--atol", argument);
        break;
    case KEY_RTOL:
        tolerance->rtol = parse_tolerance(state, "--rtol", argument);
        break;
    case KEY_ULP:
        tolerance->ulp = gbx_option_integer(state, "--ulp", argument, 0, UINT64_MAX - 1);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    line->options.has_tolerance = true;
    return 0;
}

static const struct argp_child children[] = {{&gbx_selection_argp, 0, "Filters:", 1}, {0}};

static const struct argp parser = {
    .options = options,
    .parser = parse,
    .children = children,
    .args_doc = "A B",
    .doc =
        "Compares two dumps: of two runs, platforms or runtimes, from before and after a change, "
        "or of another tool. Names the first task in graph order that differs, and whether it "
        "introduced the difference or inherited it from its inputs; then how much every record "
        "differs. A and B are dump directories, their parents or their tensor_dump. Without "
        "--atol, --rtol and --ulp each float dtype has a tolerance of its own; where one is given, "
        "those that are not are 0. Integers have --atol alone, bool none. A record is compared "
        "where it matches the filters in A or in B.\v"
        "exit codes: 0 everything compared is equal within tolerance; 1 something differs, is in "
        "one dump alone, or nothing was compared; 2 usage, or a dump that cannot be read.\n\n"
        "examples:\n  glassbox diff outputs/before outputs/after\n"
        "  glassbox diff outputs/before outputs/after --kernel 'softmax*' --stage after\n"
        "  glassbox diff outputs/before outputs/after --ulp 0\n"
        "  glassbox diff outputs/before outputs/after --rtol 1e-3 --atol 1e-6 --json",
};

/* --- comparing --- */

typedef struct comparison {
    const command_line *line;
    gbx_diff_dumps dumps;
    gbx_selected selected[2];
    gbx_diff_text text;
    gbx_json_writer json;
    gbx_progress *progress;
} comparison;

static gbx_status on_record(void *context, const gbx_diff_record *record) {
    comparison *c = context;
    if (!c->line->as_json)
        return gbx_diff_text_add(&c->text, &c->dumps, record);
    if (!gbx_json_has_failed(&c->json)) /* gbx_json_finish tells why */
        gbx_diff_json_add(&c->json, &c->dumps, record);
    return NULL;
}

static void on_progress(void *context, uint64_t tasks, uint64_t all_tasks, uint64_t bytes) {
    comparison *c = context;
    char text[128], done[GBX_COUNT_TEXT_BYTES], all[GBX_COUNT_TEXT_BYTES],
        read[GBX_COUNT_TEXT_BYTES];
    snprintf(text, sizeof text, "comparing task %s of %s, %s of each dump read",
             gbx_text_count(tasks, done), gbx_text_count(all_tasks, all),
             gbx_text_bytes(bytes, read));
    gbx_progress_phase(c->progress, NULL, text);
}

/* Nothing that is selected is no NULL, which stands for all. */
static gbx_diff_side side_of(const comparison *c, const gbx_opened_dump *dump,
                             const gbx_selected *selected) {
    static const uint64_t nothing;
    bool is_given = gbx_selection_is_given(&c->line->selection);
    const uint64_t *indices = selected->indices ? selected->indices : &nothing;
    return (gbx_diff_side){dump->entries, is_given ? indices : NULL, selected->count};
}

static gbx_status compare(comparison *c, gbx_diff_result *result) {
    gbx_diff_side a = side_of(c, &c->dumps.a, &c->selected[0]);
    gbx_diff_side b = side_of(c, &c->dumps.b, &c->selected[1]);
    c->progress = gbx_progress_start();
    gbx_diff_observer observer = {
        .context = c, .on_record = on_record, .on_progress = c->progress ? on_progress : NULL};
    gbx_status status = gbx_diff_run(&a, &b, &c->line->options, &observer, result);
    gbx_progress_stop(c->progress);
    return status;
}

static bool has_names(const gbx_opened_dump *dump) {
    return gbx_reader_run(dump->reader)->kernel_count > 0;
}

/* None where names are asked for, which the other dump alone tells. */
static gbx_status select_entries(const comparison *c, const gbx_opened_dump *dump,
                                 const gbx_opened_dump *other, gbx_selected *out_selected) {
    const gbx_selection *selection = &c->line->selection;
    bool is_by_name = selection->kernels.count + selection->arg_names.count > 0;
    if (is_by_name && !has_names(dump) && has_names(other))
        return NULL;
    return gbx_selection_options_apply(selection, dump->entries, out_selected);
}

static gbx_status report(comparison *c, int *out_exit_code) {
    gbx_diff_result result = {0};
    char counts[2][GBX_COUNT_TEXT_BYTES];
    c->dumps.shows_b = !has_names(&c->dumps.a) && has_names(&c->dumps.b);
    bool is_given = gbx_selection_is_given(&c->line->selection);
    if (is_given) {
        GBX_TRY(select_entries(c, &c->dumps.a, &c->dumps.b, &c->selected[0]));
        GBX_TRY(select_entries(c, &c->dumps.b, &c->dumps.a, &c->selected[1]));
    }
    bool is_nothing = is_given && c->selected[0].count + c->selected[1].count == 0;
    if (is_nothing)
        gbx_command_say(
            "diff", "none of the %s entries of %s and the %s of %s matches the filters",
            gbx_text_count(gbx_entries_count(c->dumps.a.entries), counts[0]), c->dumps.a.directory,
            gbx_text_count(gbx_entries_count(c->dumps.b.entries), counts[1]), c->dumps.b.directory);
    if (c->line->as_json) {
        GBX_TRY(gbx_diff_check(c->dumps.a.entries));
        GBX_TRY(gbx_diff_check(c->dumps.b.entries));
        gbx_diff_json_begin(&c->json, &c->dumps);
        gbx_status status = compare(c, &result);
        GBX_TRY(gbx_diff_json_end(&c->json, &c->dumps, &result, status));
    } else if (!is_nothing) {
        GBX_TRY(compare(c, &result));
        GBX_TRY(gbx_diff_text_print(&c->text, &c->dumps, &result));
    }
    *out_exit_code = gbx_diff_is_alike(&result) ? GBX_EXIT_OK : GBX_EXIT_DIFFERS;
    return NULL;
}

static gbx_status diff(comparison *c, int *out_exit_code) {
    gbx_status status = gbx_opened_dump_open(c->line->dumps[0], GBX_INDEX_GRAPH, &c->dumps.a);
    if (!status)
        status = gbx_opened_dump_open(c->line->dumps[1], GBX_INDEX_GRAPH, &c->dumps.b);
    if (!status)
        status = report(c, out_exit_code);
    free(c->selected[0].indices);
    free(c->selected[1].indices);
    gbx_opened_dump_close(&c->dumps.a);
    gbx_opened_dump_close(&c->dumps.b);
    gbx_diff_text_free(&c->text);
    return status;
}

/* Large tensors are mapped: where a file becomes shorter, or the disk fails, that is a signal. */
static void end_unreadable(int signal_number) {
    static const char text[] = "glassbox diff: reading the payload of a dump: the file has become "
                               "shorter since it was opened, or the disk failed\n";
    (void)signal_number;
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    _exit(GBX_EXIT_USAGE);
}

int gbx_command_diff(int argc, char **argv) {
    static command_line line; /* too large for a stack, like the next */
    static comparison compared;
    line = (command_line){0};
    compared = (comparison){.line = &line};
    gbx_command_parse(&parser, "diff", argc, argv, &line);
    signal(SIGBUS, end_unreadable);
    int exit_code = GBX_EXIT_OK;
    gbx_status status = diff(&compared, &exit_code);
    return gbx_command_end("diff", status, exit_code);
}
