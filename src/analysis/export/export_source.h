/* The elements of an entry as they are exported: of another dtype where that is asked for, and no
 * longer once a signal has come. */
#ifndef GBX_ANALYSIS_EXPORT_EXPORT_SOURCE_H
#define GBX_ANALYSIS_EXPORT_EXPORT_SOURCE_H

#include <stdbool.h>

#include "analysis/entries.h"
#include "base/held_signals.h"

typedef struct gbx_export_source {
    gbx_elements elements; /* its context is this struct: it must not move */
    gbx_entry_values values;
    const gbx_held_signals *signals; /* NULL where none is held */
} gbx_export_source;

/* The entry has values. `as` is the dtype to convert to, or GBX_DTYPE_NONE. */
GBX_MUST_USE gbx_status gbx_export_source_open(const gbx_entry *entry, const gbx_reader *reader,
                                               uint32_t as, const gbx_held_signals *signals,
                                               gbx_export_source *out_source);

/* Not all elements of the shape are there. */
static inline bool gbx_export_source_is_cut(const gbx_export_source *source) {
    return source->elements.stored < source->elements.count;
}

#endif
