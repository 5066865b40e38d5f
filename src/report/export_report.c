#include "report/reports.h"
#include "tensor/npy.h"

/* "skipped: 12 tensors without payload: NAME, NAME and 10 more" */
static void print_names(gbx_sink *sink, const gbx_export_names *names, const char *before,
                        const char *after) {
    if (names->count == 0)
        return;
    gbx_sink_print(sink, "%s%s%s: %s", before,
                   gbx_text_counted(&sink->texts, names->count, "tensor"), after, names->text);
    gbx_sink_more(sink, " ", names->count, GBX_EXPORT_NAMES_SHOWN, "");
    gbx_sink_print(sink, "\n");
}

static void print_raw(gbx_sink *sink, uint32_t dtype, uint64_t count) {
    gbx_texts *t = &sink->texts;
    const char *noun = gbx_text_join(t, gbx_dtype_name(dtype), " ", "tensor");
    gbx_sink_print(sink, "%s %s written as raw %s%s; --as %s converts %s\n",
                   gbx_text_counted(t, count, noun), gbx_text_verb(count, "was", "were"),
                   gbx_dtype_name(gbx_npy_stored_dtype(dtype)),
                   gbx_dtype_is_packed(dtype) ? ", two elements a byte" : "",
                   gbx_dtype_name(gbx_npy_number_dtype(dtype)), gbx_text_verb(count, "it", "them"));
}

static void print_written(gbx_sink *sink, uint64_t written, const char *what, uint64_t bytes,
                          const char *of_what, const char *place) {
    gbx_texts *t = &sink->texts;
    gbx_sink_print(sink, "wrote %s, %s%s, to %s\n", gbx_text_counted(t, written, what),
                   gbx_text_bytes(t, bytes), of_what, gbx_text_shown(t, place));
}

static void print_nothing(gbx_sink *sink, uint64_t selected, const char *why) {
    gbx_sink_print(sink, "wrote nothing: %s\n", selected == 0 ? "nothing is selected" : why);
}

void gbx_export_print(gbx_sink *sink, const gbx_export_notes *notes, uint64_t selected,
                      gbx_export_format format, const char *place) {
    if (notes->written == 0)
        print_nothing(sink, selected, "no selected entry has values in this dump");
    else
        print_written(sink, notes->written, format == GBX_EXPORT_NPZ ? "array" : "file",
                      notes->bytes, "", place);
    for (uint32_t dtype = 0; dtype < GBX_DTYPE_COUNT; ++dtype)
        if (notes->raw[dtype] > 0)
            print_raw(sink, dtype, notes->raw[dtype]);
    print_names(sink, &notes->cut, "truncated: ",
                format == GBX_EXPORT_TXT
                    ? ", written with the elements that were kept"
                    : ", written in one dimension with the elements that were kept");
    print_names(sink, &notes->in_flight, "not completed: ", " of tasks that crashed or hung");
    print_names(sink, &notes->skipped, "skipped: ", " without payload");
    print_names(sink, &notes->overwritten,
                "skipped: ", " whose bytes were overwritten before they were captured");
}

/* --- the layout of hw-native-sys/simpler --- */

static void print_losses(gbx_sink *sink, const gbx_simpler_report *report,
                         const gbx_reader *reader) {
    const gbx_import_totals *imported = gbx_reader_get_import_totals(reader);
    gbx_sink_count(sink, "left out ", report->in_flight, "entry",
                   " of tasks that did not complete: this layout cannot mark that");
    gbx_sink_count(sink, "", report->made_up_ids, "entry",
                   " with the id 0xffffffff00000000 + task_seq: the record of the task was lost");
    gbx_sink_count(sink, "", report->not_numbers, "scalar",
                   " written as \"nan\", \"inf\" or \"-inf\"");
    gbx_sink_count(sink, "", report->foreign_dtypes, "entry",
                   " with a dtype that the tools of simpler show as bytes");
    gbx_sink_count(sink, "left out ", gbx_reader_get_totals(reader)->skipped, "note",
                   " about what the run could not describe");
    gbx_sink_count(sink, "", imported ? imported->ambiguous : 0, "entry",
                   " with an uncertain arg_index written without the mark arg_index_ambiguous");
    if (!report->has_level)
        gbx_sink_print(sink, "left out dump_args_level: the level of the dump is unknown\n");
    if (gbx_reader_get_origin(reader)->is_journal || gbx_reader_run(reader)->kernel_count > 0)
        gbx_sink_print(sink, "left out, because this layout has no place for them: names of "
                             "kernels and arguments, hashes, addresses, times, statistics, the "
                             "graph\n");
}

void gbx_simpler_print(gbx_sink *sink, const gbx_simpler_report *report, const gbx_reader *reader,
                       uint64_t selected, const char *place) {
    if (report->arguments == 0) {
        print_nothing(sink, selected,
                      "all selected entries belong to tasks that did not complete, and this layout "
                      "cannot mark that");
        return;
    }
    print_written(sink, report->arguments, "argument", report->payload_bytes, " of payload", place);
    print_losses(sink, report, reader);
}
