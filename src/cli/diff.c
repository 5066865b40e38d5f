#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/filters.h"
#include "report/ending.h"
#include "report/progress.h"
#include "report/reports.h"

typedef struct command_line {
    const char *dumps[2];
    gbx_selection selection;
    gbx_diff_options options;
    bool as_json;
} command_line;

typedef struct comparison {
    const command_line *line;
    gbx_diff_dumps dumps;
    gbx_selected selected[2];
    gbx_diff_report report;
    gbx_progress *progress;
} comparison;

static gbx_status on_record(void *context, const gbx_diff_record *record) {
    comparison *c = context;
    gbx_diff_report_add(&c->report, record);
    return NULL;
}

static void on_progress(void *context, uint64_t tasks, uint64_t all_tasks, uint64_t bytes) {
    comparison *c = context;
    gbx_texts *t = &c->report.sink->texts;
    gbx_progress_phase(
        c->progress, NULL,
        gbx_text_format(t, "comparing, %s of each dump read", gbx_text_bytes(t, bytes)));
    gbx_progress_count(c->progress, tasks, all_tasks, "task");
}

/* Where nothing is selected, `selected` must not be NULL, which stands for all. */
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
    c->progress = gbx_progress_start(NULL);
    gbx_diff_observer observer = {
        .context = c, .on_record = on_record, .on_progress = c->progress ? on_progress : NULL};
    gbx_status status = gbx_diff_run(&a, &b, &c->line->options, &observer, result);
    gbx_progress_stop(c->progress);
    return status;
}

static bool has_names(const gbx_opened_dump *dump) {
    return gbx_reader_run(dump->reader)->kernel_count > 0;
}

/* Nothing where names are asked for that only the other dump has. */
static gbx_status select_entries(const comparison *c, const gbx_opened_dump *dump,
                                 const gbx_opened_dump *other, gbx_selected *out_selected) {
    const gbx_selection *selection = &c->line->selection;
    bool is_by_name = selection->kernels.count + selection->arg_names.count > 0;
    if (is_by_name && !has_names(dump) && has_names(other))
        return NULL;
    return gbx_filter_apply(selection, dump->entries, out_selected);
}

static void say_nothing_matches(const comparison *c, gbx_texts *t) {
    const gbx_opened_dump *a = &c->dumps.a, *b = &c->dumps.b;
    gbx_command_say(
        "diff", "none of the %s entries of %s and the %s of %s matches the filters%s",
        gbx_text_count(t, gbx_entries_count(a->entries)), a->directory,
        gbx_text_count(t, gbx_entries_count(b->entries)), b->directory,
        gbx_text_unknown_kernel(t, c->dumps.shows_b ? b : a, &c->line->selection.kernels));
}

static gbx_status diff(comparison *c, gbx_invocation *invocation) {
    const command_line *line = c->line;
    gbx_diff_result result = {0};
    bool is_given = gbx_selection_is_given(&line->selection);
    GBX_TRY(gbx_opened_dump_open(line->dumps[0], GBX_INDEX_GRAPH, &c->dumps.a));
    GBX_TRY(gbx_opened_dump_open(line->dumps[1], GBX_INDEX_GRAPH, &c->dumps.b));
    c->dumps.shows_b = !has_names(&c->dumps.a) && has_names(&c->dumps.b);
    if (is_given) {
        GBX_TRY(select_entries(c, &c->dumps.a, &c->dumps.b, &c->selected[0]));
        GBX_TRY(select_entries(c, &c->dumps.b, &c->dumps.a, &c->selected[1]));
    }
    bool is_nothing = is_given && c->selected[0].count + c->selected[1].count == 0;
    if (is_nothing)
        say_nothing_matches(c, &invocation->sink->texts);
    /* Before a document is begun. */
    if (line->as_json) {
        GBX_TRY(gbx_diff_check(c->dumps.a.entries));
        GBX_TRY(gbx_diff_check(c->dumps.b.entries));
    }
    if (line->as_json || !is_nothing) {
        gbx_diff_report_begin(invocation->sink, &c->dumps, line->as_json, &c->report);
        gbx_status status = compare(c, &result);
        GBX_TRY(gbx_diff_report_end(&c->report, &result, status));
    }
    invocation->exit_code = gbx_diff_is_alike(&result) ? GBX_EXIT_OK : GBX_EXIT_DIFFERS;
    return NULL;
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

static gbx_status run(void *line, gbx_invocation *invocation) {
    comparison c = {.line = line};
    signal(SIGBUS, end_unreadable);
    gbx_status status = diff(&c, invocation);
    free(c.selected[0].indices);
    free(c.selected[1].indices);
    gbx_opened_dump_close(&c.dumps.a);
    gbx_opened_dump_close(&c.dumps.b);
    return status;
}

/* --- options --- */

static void read_tolerance(struct argp_state *state, const gbx_option *option, const char *text,
                           void *group) {
    command_line *line = group;
    *(double *)(void *)((char *)group + option->offset) = gbx_option_real(state, option, text);
    line->options.has_tolerance = true;
}

static void read_ulp(struct argp_state *state, const gbx_option *option, const char *text,
                     void *group) {
    command_line *line = group;
    line->options.tolerance.ulp = gbx_option_integer(state, option, text, 0, UINT64_MAX - 1);
    line->options.has_tolerance = true;
}

static const gbx_option options[] = {
    {"atol", "X", .help = "Elements are near when |a - b| <= X + rtol * |b|",
     .manual = "For floats and integers; bool is always exact. a is the element of A, b that of B. "
               "Without --atol, --rtol and --ulp each float dtype has its own tolerance, and "
               "integers are exact. When one of the three is given, the others are 0.",
     GBX_STORE(CUSTOM, command_line, options.tolerance.atol), .read = read_tolerance},
    {"rtol", "X", .help = "Only for float elements: see --atol",
     GBX_STORE(CUSTOM, command_line, options.tolerance.rtol), .read = read_tolerance},
    {"ulp", "N", .help = "Float elements are also near when at most N steps apart",
     .manual = "A step leads to the next value of the dtype.",
     GBX_STORE(CUSTOM, command_line, options.tolerance.ulp), .read = read_ulp},
    {"strict-nan", .help = "NaN differs from NaN", .manual = "Without this option NaN equals NaN.",
     GBX_STORE(FLAG, command_line, options.is_strict_nan)},
    {"json", .help = "Print one JSON document, with every entry that is not equal",
     GBX_STORE(FLAG, command_line, as_json)},
    {0}};

const gbx_command gbx_command_diff = {
    .name = "diff",
    .summary = "compare two dumps, task by task",
    .arguments = "A B",
    .takes = "two dumps",
    .least = 2,
    .most = 2,
    .arguments_offset = offsetof(command_line, dumps),
    .line_bytes = sizeof(command_line),
    .groups = {{NULL, options, 0},
               {"Filters:", gbx_filter_options, offsetof(command_line, selection)}},
    .description =
        "Compare two dumps: of two runs, platforms or runtimes, from before and after a change, or "
        "of another tool. Names the first task in graph order that differs, and says whether it "
        "introduced the difference or inherited it from its inputs; then how much every entry "
        "differs. A and B are dump directories, their parents or their tensor_dump. Without "
        "--atol, --rtol and --ulp each float dtype has its own tolerance; when one of them is "
        "given, the others are 0. Integers use only --atol, bool is exact. An entry is compared "
        "when it matches the filters in A or in B; causes do not depend on filters.",
    .examples = "glassbox diff outputs/before outputs/after\n"
                "glassbox diff outputs/before outputs/after --kernel 'softmax*' --stage after\n"
                "glassbox diff outputs/before outputs/after --ulp 0\n"
                "glassbox diff outputs/before outputs/after --rtol 1e-3 --atol 1e-6 --json\n",
    .exits = {{GBX_EXIT_OK, "everything compared is equal within tolerance"},
              {GBX_EXIT_DIFFERS,
               "something differs or is in only one dump, or nothing was compared"},
              {GBX_EXIT_USAGE,
               "usage, a dump that cannot be read, or a report that cannot be written"}},
    .run = run,
};
