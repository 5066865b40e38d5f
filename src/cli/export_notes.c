#include "cli/export_notes.h"

#include <stdio.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "cli/dump_text.h"
#include "tensor/npy.h"

enum { NAMES_SHOWN = 5 };

static void add(gbx_export_names *names, const char *name) {
    if (names->count++ >= NAMES_SHOWN)
        return;
    int length = snprintf(names->text + names->used, sizeof names->text - names->used, "%s%s",
                          names->used ? ", " : "", name);
    if (length > 0 && (size_t)length < sizeof names->text - names->used)
        names->used += (size_t)length;
    else
        names->text[names->used] = '\0';
}

void gbx_export_note_skipped(gbx_export_notes *notes, const char *name, const gbx_entry *entry) {
    add(gbx_entry_is_overwritten(entry) ? &notes->overwritten : &notes->skipped, name);
}

void gbx_export_note_written(gbx_export_notes *notes, const char *name, const gbx_entry *entry,
                             const gbx_export_source *source, bool is_numpy) {
    notes->written += 1;
    if (is_numpy && gbx_npy_is_raw(source->elements.dtype))
        notes->raw[source->elements.dtype] += 1;
    if (gbx_export_source_is_cut(source))
        add(&notes->cut, name);
    if (entry->head->flags & GBX_FLAG_IN_FLIGHT)
        add(&notes->in_flight, name);
}

/* "12 tensors", and what follows, then the names. */
static void print_names(const gbx_export_names *names, const char *before, const char *after) {
    char count[GBX_COUNT_TEXT_BYTES];
    if (names->count == 0)
        return;
    printf("%s%s tensor%s%s: %s", before, gbx_text_count(names->count, count),
           names->count == 1 ? "" : "s", after, names->text);
    if (names->count > NAMES_SHOWN)
        printf(" and %s more", gbx_text_count(names->count - NAMES_SHOWN, count));
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

void gbx_export_notes_print(const gbx_export_notes *notes, bool is_flat) {
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
