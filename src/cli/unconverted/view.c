#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/entry_order.h"
#include "base/memory.h"
#include "cli/internal.h"
#include "store/dump_path.h"
#include "store/manifest/manifest.h"

enum {
    KEY_STATS = 0x100, /* no letters: the long names alone */
    KEY_EXPORT,
    KEY_FORMAT,
    KEY_AS,
    KEY_INDEX,
    KEY_FULL,
    KEY_SORT,
    KEY_LIMIT,
    KEY_JSON
};

static const struct argp_option options[] = {
    {"index", KEY_INDEX, "N", 0, "Show the values of entry N of the list", 0},
    {"full", KEY_FULL, NULL, 0, "All values, not the edges alone", 0},
    {"stats", KEY_STATS, NULL, 0, "With min, max, mean and the counts of NaN and infinities", 0},
    {"sort", KEY_SORT, "KEY", 0,
     "By index (default), task, kernel, arg, dtype, bytes, elements, time, min, max, mean, nan or "
     "inf; -KEY: the largest first",
     0},
    {"limit", KEY_LIMIT, "N", 0, "The first N of the list alone", 0},
    {"json", KEY_JSON, NULL, 0, "Print one JSON document, in the form of the manifest", 0},
    {"export", KEY_EXPORT, NULL, 0, "Write what is selected to files, in the dump's directory", 0},
    {"format", KEY_FORMAT, "FORMAT", 0, "Of --export: txt (default), npy or csv", 0},
    {"as", KEY_AS, "DTYPE", 0, "Of --export: convert to float32, float64...", 0},
    {0}};

typedef struct command_line {
    const char *dump;
    gbx_selection selection;
    gbx_entry_order order;
    uint64_t index; /* UINT64_MAX for none */
    uint64_t limit; /* likewise */
    gbx_export_format format;
    gbx_dtype as_dtype;
    bool has_format;
    bool has_statistics;
    bool is_full;
    bool is_export;
    bool as_json;
} command_line;

/* --- options --- */

/* Options that say nothing together. */
static void check_options(struct argp_state *state, const command_line *line) {
    bool is_of_export = line->has_format || line->as_dtype != GBX_DTYPE_NONE;
    if (is_of_export && !line->is_export)
        argp_error(state, "%s needs --export", line->has_format ? "--format" : "--as");
    if (line->is_export && line->as_json)
        argp_error(state, "--export and --json exclude each other");
    if (line->is_full && (line->as_json || line->is_export))
        argp_error(state, "--full is of the values that are printed, and %s prints none",
                   line->as_json ? "--json" : "--export");
}

/* A key, with a minus before it for the largest first. */
static gbx_entry_order parse_order(struct argp_state *state, const char *text) {
    static const char *const keys[] = {
        [GBX_ORDER_INDEX] = "index",       [GBX_ORDER_TASK] = "task",
        [GBX_ORDER_KERNEL] = "kernel",     [GBX_ORDER_ARG] = "arg",
        [GBX_ORDER_DTYPE] = "dtype",       [GBX_ORDER_BYTES] = "bytes",
        [GBX_ORDER_ELEMENTS] = "elements", [GBX_ORDER_TIME] = "time",
        [GBX_ORDER_MIN] = "min",           [GBX_ORDER_MAX] = "max",
        [GBX_ORDER_MEAN] = "mean",         [GBX_ORDER_NAN] = "nan",
        [GBX_ORDER_INF] = "inf",           NULL};
    bool is_descending = text[0] == '-';
    size_t key = gbx_option_choice(state, "--sort", text + is_descending, keys);
    return (gbx_entry_order){(gbx_order_key)key, is_descending};
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    static const char *const formats[] = {
        [GBX_EXPORT_TXT] = "txt", [GBX_EXPORT_NPY] = "npy", [GBX_EXPORT_CSV] = "csv", NULL};
    command_line *line = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &line->selection;
        return 0;
    case ARGP_KEY_ARG:
        gbx_option_dump(state, &line->dump, argument, "shown");
        return 0;
    case ARGP_KEY_END:
        check_options(state, line);
        return 0;
    case KEY_INDEX:
        line->index = gbx_option_integer(state, "--index", argument, 0, UINT64_MAX - 1);
        return 0;
    case KEY_FULL:
        line->is_full = true;
        return 0;
    case KEY_STATS:
        line->has_statistics = true;
        return 0;
    case KEY_SORT:
        line->order = parse_order(state, argument);
        return 0;
    case KEY_LIMIT:
        line->limit = gbx_option_integer(state, "--limit", argument, 1, UINT64_MAX - 1);
        return 0;
    case KEY_JSON:
        line->as_json = true;
        return 0;
    case KEY_EXPORT:
        line->is_export = true;
        return 0;
    case KEY_FORMAT:
        line->format = (gbx_export_format)gbx_option_choice(state, "--format", argument, formats);
        line->has_format = true;
        return 0;
    case KEY_AS:
        line->as_dtype = gbx_export_parse_as(state, argument);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&gbx_selection_argp, 0, "Filters:", 1}, {0}};

static const struct argp parser = {
    .options = options,
    .parser = parse,
    .children = children,
    .args_doc = "[DUMP]",
    .doc =
        "Shows what a dump holds: a list of every argument of every task before it was "
        "dispatched and after it completed; with --index, or a filter that leaves one, its "
        "values. DUMP is a dump directory, its parent or its tensor_dump (default: " GBX_DUMP_PATH_DEFAULT
        "), or a dump of another tool. A filter may be given several "
        "times: any of its values may match; what is listed matches all filters.\v"
        "exit codes: 0 done; 1 nothing matches, or nothing could be exported; 2 usage, or "
        "there is no dump that can be read, or the export cannot be written; 4 the disk failed "
        "while exporting.\n\n"
        "examples:\n  glassbox view\n"
        "  glassbox view --kernel 'softmax*' --stage after --stats --sort -nan\n"
        "  glassbox view --index 17\n"
        "  glassbox view --task 3 --role output --export --format npy\n"
        "  glassbox view --json --limit 10",
};

/* --- what is shown --- */

static gbx_status select_entries(const command_line *line, gbx_entries *entries,
                                 gbx_selected *out_selected) {
    uint64_t count = gbx_entries_count(entries);
    bool is_there = false;
    if (line->index != UINT64_MAX && count == 0)
        return gbx_fail(GBX_OUT_OF_RANGE, "--index %" PRIu64 ": the dump has no entries",
                        line->index);
    if (line->index != UINT64_MAX && line->index >= count)
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "--index %" PRIu64 ": the dump has %" PRIu64 " entries, 0 to %" PRIu64,
                        line->index, count, count - 1);
    GBX_TRY(gbx_selection_options_apply(&line->selection, entries, out_selected));
    if (line->index == UINT64_MAX)
        return NULL;
    /* Leaves the one that --index names, where it was selected. */
    for (uint64_t i = 0; i < out_selected->count && !is_there; ++i)
        is_there = out_selected->indices[i] == line->index;
    out_selected->indices[0] = line->index;
    out_selected->count = is_there ? 1 : 0;
    return NULL;
}

static gbx_status computed_statistics(void *context, uint64_t index, gbx_record_stats *out_stats,
                                      bool *out_is_there) {
    gbx_entries *entries = context;
    gbx_entry entry;
    gbx_statistics s;
    GBX_TRY(gbx_entries_at(entries, index, &entry));
    GBX_TRY(gbx_entry_statistics(&entry, gbx_entries_reader(entries), &s, out_is_there));
    if (*out_is_there)
        *out_stats = (gbx_record_stats){s.min_bits,  s.max_bits,   s.mean,           s.nan_count,
                                        s.inf_count, s.zero_count, s.subnormal_count};
    return NULL;
}

static gbx_status print_json(const command_line *line, const gbx_opened_dump *dump,
                             const gbx_selected *selected) {
    char real[PATH_MAX];
    const char *name = realpath(dump->directory, real) ? strrchr(real, '/') + 1 : dump->directory;
    gbx_manifest_choice *choices = malloc((selected->count + 1) * sizeof *choices);
    if (!choices)
        return gbx_fail_memory("listing %" PRIu64 " entries", selected->count);
    for (uint64_t i = 0; i < selected->count; ++i)
        choices[i] = (gbx_manifest_choice){
            selected->indices[i], gbx_entries_position(dump->entries, selected->indices[i])};
    gbx_manifest_chosen chosen = {.run_directory = name,
                                  .choices = choices,
                                  .count = selected->count,
                                  .statistics = line->has_statistics ? computed_statistics : NULL,
                                  .context = dump->entries};
    gbx_status status = gbx_manifest_print(dump->reader, &chosen, STDOUT_FILENO, "stdout");
    free(choices);
    return status;
}

static gbx_status print_text(const command_line *line, const gbx_opened_dump *dump,
                             const gbx_selected *selected) {
    char count[GBX_COUNT_TEXT_BYTES], all[GBX_COUNT_TEXT_BYTES];
    bool is_one = line->index != UINT64_MAX ||
                  (selected->count == 1 && gbx_selection_is_given(&line->selection));
    if (line->is_full && !is_one)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "--full prints the values of one entry, and %" PRIu64
                        " are selected; --index N takes one of them",
                        selected->count);
    if (is_one)
        GBX_TRY(gbx_view_tensor_check(dump->entries, selected->indices[0], line->is_full));
    gbx_view_head_print(dump);
    if (is_one)
        return gbx_view_tensor_print(dump->entries, selected->indices[0], line->is_full);
    uint64_t shown = selected->count < line->limit ? selected->count : line->limit;
    GBX_TRY(gbx_view_table_print(dump->entries, selected->indices, shown, line->has_statistics));
    if (gbx_selection_is_given(&line->selection))
        printf("%s of %s entries match\n", gbx_text_count(selected->count, count),
               gbx_text_count(gbx_entries_count(dump->entries), all));
    if (shown < selected->count)
        printf("%s more not shown (--limit %" PRIu64 ")\n",
               gbx_text_count(selected->count - shown, count), shown);
    return NULL;
}

static void on_sorting(void *context, uint64_t done, uint64_t all) {
    char text[96];
    snprintf(text, sizeof text, "sorting, %" PRIu64 " of %" PRIu64 " entries", done, all);
    gbx_progress_phase(context, NULL, text);
}

static gbx_status show(const command_line *line, const gbx_opened_dump *dump,
                       gbx_selected *selected, int *out_exit_code) {
    char count[GBX_COUNT_TEXT_BYTES];
    bool is_given = line->index != UINT64_MAX || gbx_selection_is_given(&line->selection);
    if (selected->count == 0 && is_given) {
        *out_exit_code = GBX_EXIT_DIFFERS;
        if (line->index != UINT64_MAX)
            gbx_command_say("view", "entry %" PRIu64 " does not match the filters", line->index);
        else
            gbx_command_say("view", "none of the %s entries of %s matches the filters",
                            gbx_text_count(gbx_entries_count(dump->entries), count),
                            dump->directory);
        return line->as_json ? print_json(line, dump, selected) : NULL;
    }
    gbx_progress *progress = gbx_progress_start();
    gbx_status status = gbx_entries_sort(line->order, dump->entries, selected->indices,
                                         selected->count, on_sorting, progress);
    gbx_progress_stop(progress);
    GBX_TRY(status);
    if (!line->as_json && !line->is_export)
        return print_text(line, dump, selected);
    selected->count = selected->count < line->limit ? selected->count : line->limit;
    if (line->as_json)
        return print_json(line, dump, selected);
    return gbx_view_export(dump, selected, line->format, line->as_dtype, out_exit_code);
}

static gbx_status view(const command_line *line, int *out_exit_code) {
    gbx_opened_dump dump;
    gbx_selected selected = {0};
    unsigned indexed = line->as_json ? GBX_INDEX_EXECUTIONS : GBX_INDEX_NOTHING;
    GBX_TRY(gbx_opened_dump_open(line->dump, indexed, &dump));
    gbx_status status = select_entries(line, dump.entries, &selected);
    if (!status)
        status = show(line, &dump, &selected, out_exit_code);
    free(selected.indices);
    gbx_opened_dump_close(&dump);
    return status;
}

int gbx_command_view(int argc, char **argv) {
    static command_line line; /* too large for a stack */
    line = (command_line){.index = UINT64_MAX, .limit = UINT64_MAX};
    gbx_command_parse(&parser, "view", argc, argv, &line);
    int exit_code = GBX_EXIT_OK;
    gbx_status status = view(&line, &exit_code);
    return gbx_command_end("view", status, exit_code);
}
