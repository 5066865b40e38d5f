#include "cli/export_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <glassbox/tensor.h>

#include "base/memory.h"
#include "cli/command.h"
#include "cli/dump_text.h"
#include "cli/progress.h"
#include "store/dump_path.h"

gbx_dtype gbx_export_parse_as(struct argp_state *state, const char *text) {
    gbx_dtype dtype = gbx_dtype_parse(text);
    if (!gbx_export_is_target(dtype))
        argp_error(state, "--as: \"%s\" is no dtype of numpy: " GBX_EXPORT_TARGETS " are expected",
                   text);
    return dtype;
}

void gbx_export_show_progress(void *context, uint64_t done, uint64_t all) {
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
           names->count == 1 ? "" : "s", after, names->text);
    if (names->count > GBX_EXPORT_NAMES_SHOWN)
        printf(" and %s more", gbx_text_count(names->count - GBX_EXPORT_NAMES_SHOWN, count));
    putchar('\n');
}

static void print_raw(uint32_t dtype, uint64_t of_it) {
    char count[GBX_COUNT_TEXT_BYTES];
    const char *raw = dtype == GBX_BFLOAT16 ? "uint16" : "uint8";
    printf("%s tensor%s of %s %s written as raw %s%s; --as %s converts\n",
           gbx_text_count(of_it, count), of_it == 1 ? "" : "s", gbx_dtype_name(dtype),
           of_it == 1 ? "was" : "were", raw, dtype == GBX_INT4 ? ", two elements a byte" : "",
           dtype == GBX_INT4 ? "int8" : "float32");
}

void gbx_export_print_report(const gbx_export_notes *notes, uint64_t selected, const char *what,
                             const char *place, bool is_flat) {
    char count[GBX_COUNT_TEXT_BYTES], bytes[GBX_COUNT_TEXT_BYTES];
    if (notes->written == 0)
        printf("wrote nothing: %s\n", selected == 0
                                          ? "nothing is selected"
                                          : "nothing that is selected has values in this dump");
    else
        printf("wrote %s %s%s, %s, to %s\n", gbx_text_count(notes->written, count), what,
               notes->written == 1 ? "" : "s", gbx_text_bytes(notes->bytes, bytes), place);
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
                                .on_progress = progress ? gbx_export_show_progress : NULL,
                                .context = progress};
    gbx_status status = gbx_export_files(&job, format, directory, &notes);
    gbx_progress_stop(progress);
    gbx_signals_release(&signals);
    if (!status)
        gbx_export_print_report(&notes, selected->count, "file", directory,
                                format != GBX_EXPORT_TXT);
    *out_exit_code = notes.written > 0 ? GBX_EXIT_OK : GBX_EXIT_DIFFERS;
    free(directory);
    return status;
}
