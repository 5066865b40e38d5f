/* What a user has to know of an export beside where it is. */
#ifndef GBX_CLI_EXPORT_NOTES_H
#define GBX_CLI_EXPORT_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/export/export_source.h"

/* Some entries: how many, and the names of the first. */
typedef struct gbx_export_names {
    uint64_t count;
    size_t used;
    char text[512];
} gbx_export_names;

typedef struct gbx_export_notes {
    uint64_t written;
    uint64_t bytes; /* of what was written */
    uint64_t raw[GBX_DTYPE_COUNT];
    gbx_export_names skipped; /* without payload */
    gbx_export_names overwritten;
    gbx_export_names cut; /* truncated */
    gbx_export_names in_flight;
} gbx_export_notes;

/* One that has no values. */
void gbx_export_note_skipped(gbx_export_notes *notes, const char *name, const gbx_entry *entry);

/* An entry that was written, as numbers of numpy where `is_numpy`. */
void gbx_export_note_written(gbx_export_notes *notes, const char *name, const gbx_entry *entry,
                             const gbx_export_source *source, bool is_numpy);

/* On stdout, a line each. `is_flat`: truncated ones were written as one dimension. */
void gbx_export_notes_print(const gbx_export_notes *notes, bool is_flat);

#endif
