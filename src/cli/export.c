#include "cli/export.h"

#include <stdlib.h>

#include "cli/filters.h"
#include "report/ending.h"
#include "report/progress.h"
#include "report/reports.h"

typedef struct command_line {
    const char *dump;
    const char *output;
    uint32_t format; /* from GBX_EXPORT_NPZ on; FORMAT_NONE */
    uint32_t as;
    gbx_selection selection;
} command_line;

enum { FORMAT_NPZ, FORMAT_SIMPLER, FORMAT_NONE };

/* --- what view --export uses, too --- */

void gbx_export_read_as(struct argp_state *state, const gbx_option *option, const char *text,
                        void *line) {
    uint32_t dtype = gbx_dtype_parse(text);
    if (!gbx_export_is_target(dtype))
        argp_error(state, "--%s: \"%s\" is not a dtype of numpy; expected " GBX_EXPORT_TARGETS,
                   option->name, text);
    *(uint32_t *)(void *)((char *)line + option->offset) = dtype;
}

gbx_status gbx_export_selected(gbx_invocation *invocation, const gbx_opened_dump *dump,
                               const gbx_selected *selected, gbx_export_format format, uint32_t as,
                               const char *place) {
    gbx_held_signals signals;
    gbx_export_notes notes = {0};
    gbx_simpler_report report = {0};
    gbx_status status;
    gbx_signals_hold(&signals); /* before the thread of the progress is there */
    gbx_progress *progress = gbx_progress_start("exporting");
    const gbx_export_job job = {.entries = dump->entries,
                                .indices = selected->indices,
                                .count = selected->count,
                                .as = as,
                                .signals = &signals,
                                .on_progress = progress ? gbx_progress_entries : NULL,
                                .context = progress};
    if (format == GBX_EXPORT_SIMPLER)
        status = gbx_export_simpler(&job, place, &report);
    else if (format == GBX_EXPORT_NPZ)
        status = gbx_export_npz(&job, place, &notes);
    else
        status = gbx_export_files(&job, format, place, &notes);
    gbx_progress_stop(progress);
    gbx_signals_release(&signals);
    if (!status && format == GBX_EXPORT_SIMPLER)
        gbx_simpler_print(invocation->sink, &report, dump->reader, selected->count, place);
    else if (!status)
        gbx_export_print(invocation->sink, &notes, selected->count, format, place);
    bool is_any = notes.written > 0 || report.arguments > 0;
    invocation->exit_code = is_any ? GBX_EXIT_OK : GBX_EXIT_DIFFERS;
    return status;
}

/* --- glassbox export --- */

static void check(struct argp_state *state, void *context) {
    const command_line *line = context;
    if (line->format == FORMAT_NONE)
        argp_error(state, "missing --format: expected npz or simpler");
    if (!line->output)
        argp_error(state, "missing -o: name the %s to write",
                   line->format == FORMAT_NPZ ? "file" : "directory");
    if (line->format == FORMAT_SIMPLER && line->as != GBX_DTYPE_NONE)
        argp_error(state, "--as cannot be combined with --format simpler, which keeps every dtype");
}

static gbx_status run(void *context, gbx_invocation *invocation) {
    const command_line *line = context;
    gbx_opened_dump dump;
    gbx_selected selected = {0};
    GBX_TRY(gbx_opened_dump_open(line->dump, GBX_INDEX_NOTHING, &dump));
    gbx_status status = gbx_filter_apply(&line->selection, dump.entries, &selected);
    const char *unknown =
        gbx_text_unknown_kernel(&invocation->sink->texts, &dump, &line->selection.kernels);
    if (!status && selected.count == 0 && *unknown)
        gbx_command_say("export", "no entry of %s matches the filters%s", dump.directory, unknown);
    if (!status)
        status = gbx_export_selected(invocation, &dump, &selected,
                                     (gbx_export_format)(GBX_EXPORT_NPZ + line->format), line->as,
                                     line->output);
    free(selected.indices);
    gbx_opened_dump_close(&dump);
    return status;
}

static const gbx_option options[] = {
    {"format", "FORMAT",
     .help = "npz: one archive that numpy.load reads; simpler: the directory that the tools of "
             "hw-native-sys/simpler read",
     .manual = "It must be given.", .choices = (const char *const[]){"npz", "simpler", NULL},
     GBX_STORE(CHOICE, command_line, format)},
    {"output", "PATH",
     .help = "npz: the file, replaced if it exists; simpler: the directory, which must be new",
     .manual = "It must be given.", .letter = 'o', .completion = GBX_COMPLETE_FILE,
     GBX_STORE(TEXT, command_line, output)},
    {"as", "DTYPE", .help = "npz: convert all values: float32, int64... (default: as they are)",
     .manual =
         "Takes every dtype of numpy. Without it, values of a dtype that numpy does not have, "
         "such as bfloat16, are written as raw integers, and the report says so.",
     .completion = GBX_COMPLETE_NUMPY_DTYPE, .read = gbx_export_read_as,
     GBX_STORE(CUSTOM, command_line, as)},
    {0}};

static const command_line defaults = {.format = FORMAT_NONE};

const gbx_command gbx_command_export = {
    .name = "export",
    .summary = "write values to one archive, or for another tool",
    GBX_TAKES_DUMP(command_line, dump),
    .defaults = &defaults,
    .groups = {{NULL, options, 0},
               {"Filters:", gbx_filter_options, offsetof(command_line, selection)}},
    .description =
        "Write the tensors and scalars of a dump, or those that match the filters, for other "
        "tools, and say what the format has no place for. " GBX_DUMP_IS
        ". The output appears when it is complete; Ctrl-C leaves nothing behind.",
    .examples = "glassbox export --format npz -o run.npz\n"
                "glassbox export --arg weights --as float32 --format npz -o weights.npz\n"
                "glassbox export --format simpler -o args_dump\n",
    .exits = {{GBX_EXIT_OK, "written"},
              {GBX_EXIT_DIFFERS, "there was nothing to write"},
              {GBX_EXIT_USAGE, "usage, or a dump that cannot be read or a place that cannot be "
                               "written to"},
              {GBX_EXIT_LOST, "the disk failed"}},
    .check = check,
    .run = run,
};
