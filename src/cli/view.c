#include <inttypes.h>
#include <stdlib.h>

#include "analysis/entry_order.h"
#include "base/memory.h"
#include "cli/export.h"
#include "cli/filters.h"
#include "report/ending.h"
#include "report/progress.h"
#include "report/reports.h"

/* What was not given; options take smaller values. */
#define NONE UINT64_MAX
enum { FORMAT_NONE = GBX_EXPORT_CSV + 1 };

typedef struct command_line {
    const char *dump;
    gbx_selection selection;
    gbx_entry_order order;
    uint64_t index;
    uint64_t limit;
    uint32_t format; /* gbx_export_format */
    uint32_t as;
    bool is_dispatches;
    bool has_statistics;
    bool is_first_nan;
    bool is_full;
    bool is_export;
    bool as_json;
    bool is_results;
} command_line;

/* --- options --- */

/* The option that is about entries only, and not about dispatches; NULL for none. */
static const char *find_excess(const command_line *line) {
    return line->is_export                                                   ? "--export"
           : line->is_full                                                   ? "--full"
           : line->has_statistics                                            ? "--stats"
           : line->is_first_nan                                              ? "--first-nan"
           : line->is_results                                                ? "--results"
           : line->selection.stages                                          ? "--stage"
           : line->order.key != GBX_ORDER_INDEX || line->order.is_descending ? "--sort"
                                                                             : NULL;
}

static void check(struct argp_state *state, void *context) {
    const command_line *line = context;
    bool has_format = line->format != FORMAT_NONE;
    if ((has_format || line->as != GBX_DTYPE_NONE) && !line->is_export)
        argp_error(state, "%s needs --export", has_format ? "--format" : "--as");
    const char *excess = find_excess(line);
    if (line->is_dispatches && excess)
        argp_error(state, "%s cannot be combined with --dispatches", excess);
    if (line->is_export && line->as_json)
        argp_error(state, "--export cannot be combined with --json");
    bool is_filtered = gbx_selection_is_given(&line->selection);
    if (line->is_results && (line->as_json || line->is_export || is_filtered))
        argp_error(state, "--results cannot be combined with %s",
                   line->as_json     ? "--json, which has them"
                   : line->is_export ? "--export"
                                     : "filters");
    if (line->is_full && (line->as_json || line->is_export))
        argp_error(state, "--full cannot be combined with %s",
                   line->as_json ? "--json" : "--export");
    if (line->is_first_nan && (line->index != NONE || line->is_results))
        argp_error(state, "--first-nan cannot be combined with %s",
                   line->is_results ? "--results" : "--index");
}

/* A key, with a minus before it for the largest first. */
static void read_order(struct argp_state *state, const gbx_option *option, const char *text,
                       void *context) {
    command_line *line = context;
    bool is_descending = text[0] == '-';
    uint32_t key = gbx_option_choice(state, option, text + is_descending);
    line->order = (gbx_entry_order){(gbx_order_key)key, is_descending};
}

static const char *const order_keys[] = {
    [GBX_ORDER_INDEX] = "index",       [GBX_ORDER_TASK] = "task",
    [GBX_ORDER_KERNEL] = "kernel",     [GBX_ORDER_ARG] = "arg",
    [GBX_ORDER_DTYPE] = "dtype",       [GBX_ORDER_BYTES] = "bytes",
    [GBX_ORDER_ELEMENTS] = "elements", [GBX_ORDER_TIME] = "time",
    [GBX_ORDER_MIN] = "min",           [GBX_ORDER_MAX] = "max",
    [GBX_ORDER_MEAN] = "mean",         [GBX_ORDER_NAN] = "nan",
    [GBX_ORDER_INF] = "inf",           NULL};

static const gbx_option options[] = {
    {"index", "N", .help = "Show the values of entry N of the list",
     .manual = "Values are printed as numpy prints arrays: up to 1000 of them all, otherwise the "
               "edges of each dimension.",
     GBX_STORE(INTEGER, command_line, index), .max = NONE - 1},
    {"results", .help = "List the outputs and in-outs of the run at its end; with --index, one",
     .manual = "With --index N, the values of result N. A dump has results at level full or stats, "
               "without filters.",
     GBX_STORE(FLAG, command_line, is_results)},
    {"dispatches", .help = "List what kernels were called with, from a run with --dump-args",
     .manual = "One line for each call of a kernel: task, kernel, core, block and arguments. "
               "--index, --limit, --json and all filters but --stage apply; a dispatch is listed "
               "if its kernel and one of its arguments match. A dump that has only dispatches is "
               "listed like this without the option.",
     GBX_STORE(FLAG, command_line, is_dispatches)},
    {"full", .help = "Print all values of the entry, not only the edges",
     GBX_STORE(FLAG, command_line, is_full)},
    {"first-nan",
     .help = "Show the first output, in the order in which tasks completed, that has a NaN or Inf "
             "and whose task read none",
     .manual = "Of those that match the filters. Without such an output, the first that has any.",
     GBX_STORE(FLAG, command_line, is_first_nan)},
    {"stats", .help = "List min, max, mean and the counts of NaN and infinities, too",
     .manual = "They come from the record or, where it has none, are computed from the payload.",
     GBX_STORE(FLAG, command_line, has_statistics)},
    {"sort", "KEY",
     .help = "By index (default), task, kernel, arg, dtype, bytes, elements, time, min, max, mean, "
             "nan or inf; -KEY: the largest first",
     .choices = order_keys, .read = read_order, .completion = GBX_COMPLETE_SORT,
     GBX_STORE(CUSTOM, command_line, order)},
    {"limit", "N", .help = "Only the first N of the list", GBX_STORE(INTEGER, command_line, limit),
     .min = 1, .max = NONE - 1},
    {"json", .help = "Print one JSON document, in the form of the manifest",
     .manual = "It is tensor_dump.json with only the selected entries in tensors; each keeps its "
               "index.",
     GBX_STORE(FLAG, command_line, as_json)},
    {"export", .help = "Write the selected entries to files, in the directory of the dump",
     .manual = "There is one file for each entry, in the directory txt, npy or csv of the dump. "
               "The files appear when all are complete; Ctrl-C leaves nothing behind.",
     GBX_STORE(FLAG, command_line, is_export)},
    {"format", "FORMAT", .help = "With --export: txt (default), npy or csv",
     .choices = (const char *const[]){"txt", "npy", "csv", NULL},
     GBX_STORE(CHOICE, command_line, format)},
    {"as", "DTYPE", .help = "With --export: convert to float32, float64 or another dtype of numpy",
     .read = gbx_export_read_as, .completion = GBX_COMPLETE_NUMPY_DTYPE,
     GBX_STORE(CUSTOM, command_line, as)},
    {0}};

/* --- running --- */

static gbx_status check_index(const command_line *line, uint64_t count, const char *what) {
    if (line->index == NONE || line->index < count)
        return NULL;
    if (count == 0)
        return gbx_fail(GBX_OUT_OF_RANGE, "--index %" PRIu64 ": the dump has no %s", line->index,
                        what);
    return gbx_fail(GBX_OUT_OF_RANGE,
                    "--index %" PRIu64 ": the dump has %" PRIu64 " %s, 0 to %" PRIu64, line->index,
                    count, what, count - 1);
}

/* Of what filters selected, only what --index names. */
static void keep_index(const command_line *line, gbx_selected *selected) {
    bool is_there = false;
    if (line->index == NONE)
        return;
    for (uint64_t i = 0; i < selected->count && !is_there; ++i)
        is_there = selected->indices[i] == line->index;
    if (is_there)
        selected->indices[0] = line->index;
    selected->count = is_there ? 1 : 0;
}

static gbx_status select_entries(const command_line *line, gbx_entries *entries,
                                 gbx_selected *out_selected) {
    GBX_TRY(check_index(line, gbx_entries_count(entries), "entries"));
    GBX_TRY(gbx_filter_apply(&line->selection, entries, out_selected));
    keep_index(line, out_selected);
    return NULL;
}

/* Leaves only the answer, where there is one; the sentence about it is not part of a document. */
static gbx_status select_first_nan(const command_line *line, gbx_invocation *invocation,
                                   const gbx_opened_dump *dump, gbx_selected *selected) {
    gbx_first_nan found;
    GBX_TRY(gbx_first_nan_search(dump, selected, &found));
    const gbx_nan_output *answer = gbx_first_nan_answer(&found);
    if (!line->as_json && !line->is_export)
        GBX_TRY(gbx_first_nan_print(invocation->sink, dump, line->dump, &found, false));
    if (answer && selected->indices)
        selected->indices[0] = answer->entry;
    selected->count = answer != NULL;
    return NULL;
}

static gbx_status sort_entries(const command_line *line, const gbx_opened_dump *dump,
                               gbx_selected *selected) {
    gbx_progress *progress = gbx_progress_start("sorting");
    gbx_status status = gbx_entries_sort(line->order, dump->entries, selected->indices,
                                         selected->count, gbx_progress_entries, progress);
    gbx_progress_stop(progress);
    return status;
}

static gbx_status export_files(const command_line *line, gbx_invocation *invocation,
                               const gbx_opened_dump *dump, const gbx_selected *selected) {
    gbx_export_format format =
        line->format == FORMAT_NONE ? GBX_EXPORT_TXT : (gbx_export_format)line->format;
    char *directory = gbx_dump_path_join(dump->directory, gbx_export_extension(format));
    const gbx_selected first = {selected->indices,
                                selected->count < line->limit ? selected->count : line->limit};
    if (!directory)
        return gbx_fail_memory("exporting %s", dump->directory);
    gbx_status status = gbx_export_selected(invocation, dump, &first, format, line->as, directory);
    free(directory);
    return status;
}

static gbx_status print_results(const command_line *line, gbx_invocation *invocation,
                                const gbx_opened_dump *dump) {
    uint64_t count = gbx_reader_result_count(dump->reader);
    if (count == 0) {
        invocation->exit_code = GBX_EXIT_DIFFERS;
        gbx_command_say("view",
                        "%s has no results of the run: they are kept at level full or stats "
                        "without filters, when the run was not killed",
                        dump->directory);
        return NULL;
    }
    if (line->index != NONE && line->index >= count)
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "--index %" PRIu64 ": the dump has %" PRIu64 " results, 0 to %" PRIu64,
                        line->index, count, count - 1);
    if (line->index != NONE)
        return gbx_view_print_result(invocation->sink, dump, line->index, line->is_full);
    return gbx_view_print_results(invocation->sink, dump, line->has_statistics);
}

static gbx_status print_text(const command_line *line, gbx_sink *sink, const gbx_opened_dump *dump,
                             const gbx_selected *selected) {
    bool is_filtered = gbx_selection_is_given(&line->selection);
    bool is_one = line->index != NONE || line->is_first_nan;
    if (is_one || (selected->count == 1 && is_filtered))
        return gbx_view_print_entry(sink, dump, selected->indices[0], line->is_full);
    if (line->is_full)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "--full prints the values of one entry, but %" PRIu64
                        " are selected; choose one with --index N",
                        selected->count);
    return gbx_view_print_list(sink, dump, selected, line->limit, is_filtered,
                               line->has_statistics);
}

static void say_nothing_matches(const command_line *line, const gbx_opened_dump *dump) {
    gbx_texts texts = {0};
    if (line->is_first_nan && (line->as_json || line->is_export))
        gbx_command_say("view", "no output that was looked at has a NaN or Inf");
    else if (line->is_first_nan)
        return; /* it was said */
    else if (line->index != NONE)
        gbx_command_say("view", "entry %" PRIu64 " does not match the filters", line->index);
    else
        gbx_command_say("view", "none of the %s entries of %s matches the filters%s",
                        gbx_text_count(&texts, gbx_entries_count(dump->entries)), dump->directory,
                        gbx_text_unknown_kernel(&texts, dump, &line->selection.kernels));
}

static gbx_status show(const command_line *line, gbx_invocation *invocation,
                       const gbx_opened_dump *dump, gbx_selected *selected) {
    bool is_given =
        line->index != NONE || line->is_first_nan || gbx_selection_is_given(&line->selection);
    bool is_nothing = selected->count == 0 && is_given;
    if (is_nothing) {
        invocation->exit_code = GBX_EXIT_DIFFERS;
        say_nothing_matches(line, dump);
    } else {
        GBX_TRY(sort_entries(line, dump, selected));
    }
    if (line->as_json)
        return gbx_view_print_json(invocation->sink, dump, selected, line->limit,
                                   line->has_statistics);
    if (is_nothing)
        return NULL;
    return line->is_export ? export_files(line, invocation, dump, selected)
                           : print_text(line, invocation->sink, dump, selected);
}

/* --- dispatches --- */

static gbx_status select_dispatches(const command_line *line, const gbx_dispatches *dispatches,
                                    gbx_selected *out_selected) {
    GBX_TRY(check_index(line, dispatches->count, "dispatches"));
    GBX_TRY(gbx_filter_apply_dispatches(&line->selection, dispatches, out_selected));
    keep_index(line, out_selected);
    return NULL;
}

static gbx_status print_dispatches(const command_line *line, gbx_sink *sink,
                                   const gbx_opened_dump *dump, const gbx_dispatches *dispatches,
                                   const gbx_selected *selected) {
    bool is_filtered = gbx_selection_is_given(&line->selection);
    if (line->as_json)
        return gbx_dispatches_print_json(sink, dump, dispatches, selected, line->limit);
    if (selected->count == 0)
        return NULL;
    if (line->index != NONE || (selected->count == 1 && is_filtered))
        return gbx_dispatches_print_one(sink, dump, dispatches, selected->indices[0]);
    return gbx_dispatches_print_list(sink, dump, dispatches, selected, line->limit, is_filtered);
}

static gbx_status show_dispatches(const command_line *line, gbx_invocation *invocation,
                                  const gbx_opened_dump *dump) {
    gbx_dispatches dispatches;
    gbx_selected selected = {0};
    gbx_texts texts = {0};
    bool has_any = gbx_reader_get_totals(dump->reader)->dispatches > 0;
    gbx_status status = gbx_dispatches_list(dump->reader, &dispatches);
    if (!status && has_any)
        status = select_dispatches(line, &dispatches, &selected);
    if (!status && !has_any) {
        invocation->exit_code = GBX_EXIT_DIFFERS;
        gbx_command_say("view", "%s has no dispatches; record them with --dump-args",
                        dump->directory);
    } else if (!status && selected.count == 0) {
        invocation->exit_code = GBX_EXIT_DIFFERS;
        gbx_command_say("view", "none of the %s dispatches of %s matches the filters",
                        gbx_text_count(&texts, dispatches.count), dump->directory);
    }
    if (!status)
        status = print_dispatches(line, invocation->sink, dump, &dispatches, &selected);
    free(selected.indices);
    gbx_dispatches_free(&dispatches);
    return status;
}

static bool has_only_dispatches(const gbx_opened_dump *dump) {
    return gbx_entries_count(dump->entries) == 0 &&
           gbx_reader_get_totals(dump->reader)->dispatches > 0;
}

static gbx_status show_entries(const command_line *line, gbx_invocation *invocation,
                               const gbx_opened_dump *dump) {
    gbx_selected selected = {0};
    if (has_only_dispatches(dump)) {
        invocation->exit_code = GBX_EXIT_DIFFERS;
        gbx_command_say("view",
                        "%s: %s has no entries, only dispatches; record entries with "
                        "--dump-tensor",
                        find_excess(line), dump->directory);
        return NULL;
    }
    gbx_status status = select_entries(line, dump->entries, &selected);
    if (!status && line->is_first_nan)
        status = select_first_nan(line, invocation, dump, &selected);
    if (!status)
        status = show(line, invocation, dump, &selected);
    free(selected.indices);
    return status;
}

static gbx_status run(void *context, gbx_invocation *invocation) {
    const unsigned with_dispatches = GBX_INDEX_DISPATCHES | GBX_INDEX_EXECUTIONS;
    const command_line *line = context;
    gbx_opened_dump dump;
    unsigned indexed = line->is_dispatches  ? with_dispatches
                       : line->is_first_nan ? GBX_INDEX_GRAPH
                                            : GBX_INDEX_NOTHING;
    if (line->as_json)
        indexed |= GBX_INDEX_EXECUTIONS;
    GBX_TRY(gbx_opened_dump_open(line->dump, indexed, &dump));
    bool is_dispatches = line->is_dispatches || (has_only_dispatches(&dump) && !find_excess(line));
    if (is_dispatches && !line->is_dispatches) { /* now that it is known what to index */
        gbx_opened_dump_close(&dump);
        GBX_TRY(gbx_opened_dump_open(line->dump, with_dispatches, &dump));
    }
    gbx_status status = is_dispatches      ? show_dispatches(line, invocation, &dump)
                        : line->is_results ? print_results(line, invocation, &dump)
                                           : show_entries(line, invocation, &dump);
    gbx_opened_dump_close(&dump);
    return status;
}

static const command_line defaults = {.index = NONE, .limit = NONE, .format = FORMAT_NONE};

const gbx_command gbx_command_view = {
    .name = "view",
    .summary = "show what a dump holds: a list, or one tensor's values",
    GBX_TAKES_DUMP(command_line, dump),
    .defaults = &defaults,
    .groups = {{NULL, options, 0},
               {"Filters:", gbx_filter_options, offsetof(command_line, selection)}},
    .description =
        "Show what a dump holds: a list of every argument of every task, before it was dispatched "
        "and after it completed; with --index, or a filter that leaves one entry, its values. " GBX_DUMP_IS
        ", or a dump of another tool. With --dispatches, or in a dump that has nothing else: what "
        "kernels were called with. A filter may be given several times: any of its "
        "values may match; the list has what matches all filters.",
    .examples = "glassbox view\n"
                "glassbox view --kernel 'softmax*' --stage after --stats --sort -nan\n"
                "glassbox view --index 17\n"
                "glassbox view --first-nan\n"
                "glassbox view --task 3 --role output --export --format npy\n"
                "glassbox view --dispatches --kernel 'softmax*'\n"
                "glassbox view --json --limit 10\n",
    .exits = {{GBX_EXIT_OK, "done"},
              {GBX_EXIT_DIFFERS,
               "nothing matches, nothing could be exported, or the dump has no dispatches"},
              {GBX_EXIT_USAGE,
               "usage, or a dump that cannot be read or an export that cannot be written"},
              {GBX_EXIT_LOST, "the disk failed while exporting"}},
    .check = check,
    .run = run,
};
