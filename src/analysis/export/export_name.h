/* What an exported entry is called, without its extension. */
#ifndef GBX_ANALYSIS_EXPORT_EXPORT_NAME_H
#define GBX_ANALYSIS_EXPORT_EXPORT_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/entries.h"
#include "base/held_signals.h"

enum { GBX_EXPORT_NAME_BYTES = 96, GBX_EXPORT_ROLES = 3 };

/* Names entries one after the other. The first two are the caller's to set, the rest is zero. */
typedef struct gbx_export_namer {
    gbx_entries *entries;
    const gbx_held_signals *signals; /* NULL where none is held */
    bool is_any;
    uint64_t last;                     /* the index that was named last, where there is one */
    uint64_t counts[GBX_EXPORT_ROLES]; /* entries of its argument and stage up to it */
} gbx_export_namer;

/*
 * "task_0x0000000100000000_before_in0"; "task_seq17_..." where the record of the task was lost. The
 * second entry of the dump that would have the same name gets "_2" at the end, and so on, whatever
 * is selected. Names of ascending indices take one walk over the dump together; of others, one over
 * all entries of the argument each. Entries handed out before are gone. Fails with GBX_IO once a
 * signal has come.
 */
GBX_MUST_USE gbx_status gbx_export_name(gbx_export_namer *namer, uint64_t index,
                                        char out_name[GBX_EXPORT_NAME_BYTES]);

/* Fails with GBX_BAD_FORMAT where two tasks of these entries have one id, and names would not be
 * unique. Takes 16 bytes a task meanwhile. */
GBX_MUST_USE gbx_status gbx_export_check_names(gbx_entries *entries, const uint64_t *indices,
                                               uint64_t count);

#endif
