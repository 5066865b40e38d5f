#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cli/internal.h"
#include "store/dump_path.h"
#include "tensor/npy.h"

gbx_dtype gbx_export_parse_as(struct argp_state *state, const char *text) {
    gbx_dtype dtype = gbx_dtype_parse(text);
    if (!gbx_export_is_target(dtype))
        argp_error(state, "--as: \"%s\" is no dtype of numpy: " GBX_EXPORT_TARGETS " are expected",
                   text);
    return dtype;
}

/* on_progress of a gbx_export_job; the context is a gbx_progress. */
static void show_progress(void *context, uint64_t done, uint64_t all) {
    char text[80];
    snprintf(text, sizeof text, "exporting, %" PRIu64 " of %" PRIu64, done, all);
    gbx_progress_phase(context, NULL, text);
}

/* "12 tensors", and what follows, then the names. */
static void print_names(const gbx_export_names *names, const char *before, const char *after) {
    char count[GBX_COUNT_TEXT_BYTES];
    if (names->count == 0)
        return;
    printf("%s%s tensor%s%s: %s", before, gbx_text_count(names->count, count),
           gbx_text_plural(names->count), after, names->text);
    if (names->count > GBX_EXPORT_NAMES_SHOWN)
        printf(" and %s more", gbx_text_count(names->count - GBX_EXPORT_NAMES_SHOWN, count));
    putchar('\n');
}

static void print_raw(uint32_t dtype, uint64_t of_it) {
    char count[GBX_COUNT_TEXT_BYTES];
    printf("%s tensor%s of %s %s written as raw %s%s; --as %s converts\n",
           gbx_text_count(of_it, count), gbx_text_plural(of_it), gbx_dtype_name(dtype),
           of_it == 1 ? "was" : "were", gbx_dtype_name(gbx_npy_stored_dtype(dtype)),
           gbx_dtype_is_packed(dtype) ? ", two elements a byte" : "",
           gbx_dtype_name(gbx_npy_number_dtype(dtype)));
}

/* How many files ("file", "array") went to `place`, of so many selected, and what there is to know
 * of them. `is_flat`: truncated ones were written as one dimension. */
static void print_report(const gbx_export_notes *notes, uint64_t selected, const char *what,
                         const char *place, bool is_flat) {
    char count[GBX_COUNT_TEXT_BYTES], bytes[GBX_COUNT_TEXT_BYTES];
    if (notes->written == 0)
        printf("wrote nothing: %s\n", selected == 0
                                          ? "nothing is selected"
                                          : "nothing that is selected has values in this dump");
    else
        printf("wrote %s %s%s, %s, to %s\n", gbx_text_count(notes->written, count), what,
               gbx_text_plural(notes->written), gbx_text_bytes(notes->bytes, bytes), place);
    for (uint32_t dtype = 0; dtype < GBX_DTYPE_COUNT; ++dtype)
        if (notes->raw[dtype] > 0)
            print_raw(dtype, notes->raw[dtype]);
    print_names(&notes->cut, "truncated: ",
                is_flat ? ", written in one dimension with the elements that were kept"
                        : ", written with the elements that were kept");
    print_names(&notes->in_flight, "not completed: ", " of tasks that crashed or hung");
    print_names(&notes->skipped, "skipped: ", " without payload");
    print_names(&notes->overwritten,
                "skipped: ", " with bytes that were overwritten before they were taken");
}

gbx_status gbx_view_export(const gbx_opened_dump *dump, const gbx_selected *selected,
                           gbx_export_format format, gbx_dtype as, int *out_exit_code) {
    gbx_held_signals signals;
    gbx_export_notes notes;
    char *directory = gbx_dump_path_join(dump->directory, gbx_export_extension(format));
    if (!directory)
        return gbx_fail_memory("exporting %s", dump->directory);
    gbx_signals_hold(&signals); /* before the thread of the progress is there */
    gbx_progress *progress = gbx_progress_start();
    const gbx_export_job job = {.entries = dump->entries,
                                .indices = selected->indices,
                                .count = selected->count,
                                .as = as,
                                .signals = &signals,
                                .on_progress = progress ? show_progress : NULL,
                                .context = progress};
    gbx_status status = gbx_export_files(&job, format, directory, &notes);
    gbx_progress_stop(progress);
    gbx_signals_release(&signals);
    if (!status)
        print_report(&notes, selected->count, "file", directory, format != GBX_EXPORT_TXT);
    *out_exit_code = notes.written > 0 ? GBX_EXIT_OK : GBX_EXIT_DIFFERS;
    free(directory);
    return status;
}

/* --- glassbox export: options --- */

enum { KEY_FORMAT = 0x100, KEY_AS }; /* no letters: the long names alone */
enum { FORMAT_NPZ, FORMAT_SIMPLER, FORMAT_NONE };

static const char *const formats[] = {"npz", "simpler", NULL};

typedef struct command_line {
    const char *dump;
    const char *output;
    size_t format;
    uint32_t as;
    gbx_selection selection;
} command_line;

static error_t parse(int key, char *argument, struct argp_state *state) {
    command_line *line = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &line->selection;
        return 0;
    case KEY_FORMAT:
        line->format = gbx_option_choice(state, "--format", argument, formats);
        return 0;
    case KEY_AS:
        line->as = gbx_export_parse_as(state, argument);
        return 0;
    case 'o':
        line->output = argument;
        return 0;
    case ARGP_KEY_ARG:
        gbx_option_dump(state, &line->dump, argument, "exported");
        return 0;
    case ARGP_KEY_END:
        if (line->format == FORMAT_NONE)
            argp_error(state, "which format? --format npz or --format simpler is expected");
        if (!line->output)
            argp_error(state, "where to? -o with the name of a %s is expected",
                       line->format == FORMAT_NPZ ? "file" : "directory");
        if (line->format == FORMAT_SIMPLER && line->as != GBX_DTYPE_NONE)
            argp_error(state, "--as is not possible with --format simpler: it keeps every dtype");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"format", KEY_FORMAT, "FORMAT", 0,
     "npz: one archive that numpy.load reads; simpler: the directory that the tools of "
     "hw-native-sys/simpler read",
     0},
    {"output", 'o', "PATH", 0, "The file of npz, which is replaced; the directory of simpler, new",
     0},
    {"as", KEY_AS, "DTYPE", 0, "npz: convert all values: float32, int64... (default: as they are)",
     0},
    {0}};

static const struct argp_child children[] = {{&gbx_selection_argp, 0, "Filters:", 0}, {0}};

static const struct argp parser = {
    .options = options,
    .parser = parse,
    .args_doc = "[DUMP]",
    .doc = "Writes the tensors and scalars of a dump for other tools. DUMP is a dump directory, "
           "its parent or its tensor_dump (default: " GBX_DUMP_PATH_DEFAULT "). What is written "
           "appears when it is whole; Ctrl-C leaves nothing behind.\v"
           "exit codes: 0 written; 1 there was nothing to write; 2 usage, no dump that can be "
           "read, or a place that cannot be written to; 4 the disk failed.\n\n"
           "examples:\n  glassbox export --format npz -o run.npz\n"
           "  glassbox export --arg weights --as float32 --format npz -o weights.npz\n"
           "  glassbox export --format simpler -o args_dump",
    .children = children,
};

typedef struct whole_export {
    const command_line *line;
    gbx_opened_dump dump;
    gbx_selected selected;
    gbx_held_signals signals; /* while something is being made */
    gbx_progress *progress;
    gbx_export_notes notes;
    gbx_simpler_report report;
} whole_export;

/* --- the report of simpler --- */

/* "3 scalars" and what is so of them; nothing where there are none. */
static void print_count(uint64_t number, const char *what, const char *is_so) {
    char count[GBX_COUNT_TEXT_BYTES];
    if (number > 0)
        printf("%s %s%s %s\n", gbx_text_count(number, count), what, gbx_text_plural(number), is_so);
}

static void print_losses(const whole_export *export) {
    const gbx_simpler_report *report = &export->report;
    const gbx_reader_totals *totals = gbx_reader_get_totals(export->dump.reader);
    print_count(report->in_flight, "record",
                "left out, of tasks that did not complete: this layout does not tell them from "
                "results");
    print_count(report->made_up_ids, "record",
                "of tasks whose own record was lost, with the id 0xffffffff00000000 + task_seq");
    print_count(report->not_numbers, "scalar", "written as \"nan\", \"inf\" or \"-inf\"");
    print_count(report->foreign_dtypes, "record",
                "of dtypes that the tools of simpler do not know and show as bytes");
    print_count(totals->skipped, "note", "left out of what the run could not describe");
    const gbx_import_said *said = gbx_reader_get_said(export->dump.reader);
    if (said)
        print_count(said->ambiguous, "record",
                    "of the dump whose arg_index may be another one, which is not told of them any "
                    "more");
    if (!report->has_level)
        printf("without dump_args_level, for the dump does not tell its level\n");
    if (gbx_reader_get_origin(export->dump.reader)->is_journal ||
        gbx_reader_run(export->dump.reader)->kernel_count > 0)
        printf("without a place in this layout: names of kernels and arguments, hashes, addresses, "
               "times, statistics, the graph\n");
}

static void print_simpler(const whole_export *export) {
    const gbx_simpler_report *report = &export->report;
    char count[GBX_COUNT_TEXT_BYTES], bytes[GBX_COUNT_TEXT_BYTES];
    if (report->arguments == 0) {
        printf("wrote nothing: %s\n", export->selected.count == 0
                                          ? "nothing is selected"
                                          : "all that is selected is of tasks that did not "
                                            "complete, which this layout has no place for");
        return;
    }
    printf("wrote %s argument%s, %s of payload, to %s\n", gbx_text_count(report->arguments, count),
           gbx_text_plural(report->arguments), gbx_text_bytes(report->payload_bytes, bytes),
           export->line->output);
    print_losses(export);
}

/* --- the command --- */

/* While signals are held, writing asks whether one has come. */
static gbx_status export_dump(whole_export *export) {
    const command_line *line = export->line;
    GBX_TRY(gbx_opened_dump_open(line->dump, GBX_INDEX_NOTHING, &export->dump));
    GBX_TRY(gbx_selection_options_apply(&line->selection, export->dump.entries, &export->selected));
    gbx_signals_hold(&export->signals);
    const gbx_export_job job = {.entries = export->dump.entries,
                                .indices = export->selected.indices,
                                .count = export->selected.count,
                                .as = line->as,
                                .signals = &export->signals,
                                .on_progress = export->progress ? show_progress : NULL,
                                .context = export->progress};
    gbx_progress_phase(export->progress, NULL, "exporting");
    gbx_status status = line->format == FORMAT_NPZ
                            ? gbx_export_npz(&job, line->output, &export->notes)
                            : gbx_export_simpler(&job, line->output, &export->report);
    gbx_progress_stop(export->progress);
    export->progress = NULL;
    gbx_signals_release(&export->signals);
    return status;
}

int gbx_command_export(int argc, char **argv) {
    command_line line = {.format = FORMAT_NONE};
    gbx_command_parse(&parser, "export", argc, argv, &line);
    whole_export export = {.line = &line};
    /* Its thread never takes a signal: one that comes while signals are held waits for this one. */
    gbx_signals_hold(&export.signals);
    export.progress = gbx_progress_start();
    gbx_signals_release(&export.signals);
    gbx_progress_phase(export.progress, NULL, "reading the dump");
    gbx_status status = export_dump(&export);
    gbx_progress_stop(export.progress);
    bool is_any = export.notes.written > 0 || export.report.arguments > 0;
    int exit_code = is_any ? GBX_EXIT_OK : GBX_EXIT_DIFFERS;
    if (!status && line.format == FORMAT_NPZ)
        print_report(&export.notes, export.selected.count, "array", line.output, true);
    else if (!status)
        print_simpler(&export);
    free(export.selected.indices);
    gbx_opened_dump_close(&export.dump);
    return gbx_command_end("export", status, exit_code);
}
