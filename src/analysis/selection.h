/*
 * A selection of entries of a dump: by kernel, func_id, task, argument, role, stage, kind and
 * dtype. An entry must match one value of each given key.
 */
#ifndef GBX_ANALYSIS_SELECTION_H
#define GBX_ANALYSIS_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/entries.h"
#include "base/status.h"

enum { GBX_SELECTION_VALUES_MAX = 256 }; /* per key */

typedef struct gbx_selection_range {
    uint64_t first;
    uint64_t last; /* included */
} gbx_selection_range;

typedef struct gbx_selection_ranges {
    gbx_selection_range items[GBX_SELECTION_VALUES_MAX];
    size_t count;
} gbx_selection_ranges;

/* Names may be globs; they are borrowed. */
typedef struct gbx_selection_names {
    const char *items[GBX_SELECTION_VALUES_MAX];
    size_t count;
} gbx_selection_names;

bool gbx_selection_has_number(const gbx_selection_ranges *ranges, uint64_t value);
bool gbx_selection_has_name(const gbx_selection_names *names, const char *name);

/* All zero selects everything. */
typedef struct gbx_selection {
    gbx_selection_names kernels;
    gbx_selection_ranges funcs;
    gbx_selection_ranges task_numbers;
    gbx_selection_ranges task_ids;
    gbx_selection_ranges args;
    gbx_selection_names arg_names;
    uint32_t roles; /* one bit per value, like the rest */
    uint32_t stages;
    uint32_t kinds;
    uint32_t dtypes;
} gbx_selection;

/* Whether it selects by anything. */
bool gbx_selection_is_given(const gbx_selection *selection);

/* The entries that match, in ascending order; `indices` is freed by the caller. */
typedef struct gbx_selected {
    uint64_t *indices;
    uint64_t count;
} gbx_selected;

/* Names that a selection needs and the dump lacks: then nothing matches. */
typedef enum gbx_selection_lack {
    GBX_SELECTION_LACKS_NOTHING,
    GBX_SELECTION_LACKS_KERNEL_NAMES,
    GBX_SELECTION_LACKS_ARG_NAMES
} gbx_selection_lack;

gbx_selection_lack gbx_selection_find_lack(const gbx_selection *selection, const gbx_run_info *run);

/* The dispatches of a dump (--dump-args), numbered as in kernel_args_dump.json. */
typedef struct gbx_dispatches {
    gbx_reader *reader;
    uint64_t *positions; /* of each, in the reader's index */
    uint64_t count;
} gbx_dispatches;

/* The reader must be open with GBX_INDEX_DISPATCHES, and is borrowed. */
GBX_MUST_USE gbx_status gbx_dispatches_list(gbx_reader *reader, gbx_dispatches *out_dispatches);
void gbx_dispatches_free(gbx_dispatches *dispatches);

/* `index` is below the count. The record is valid until the next call with the same reader. */
GBX_MUST_USE gbx_status gbx_dispatches_at(const gbx_dispatches *dispatches, uint64_t index,
                                          const gbx_record_dispatch **out_record);

/* The name of an argument of a dispatch, by the signature of its kernel; NULL if it has none. */
const char *gbx_dispatch_arg_name(const gbx_run_info *run, const gbx_record_dispatch *dispatch,
                                  uint32_t arg_index);

/* The dispatches whose own kernel matches, with an argument that matches all keys about arguments.
 * Stages do not count. Succeeds even if nothing matches. */
GBX_MUST_USE gbx_status gbx_selection_apply_dispatches(const gbx_selection *selection,
                                                       const gbx_dispatches *dispatches,
                                                       gbx_selected *out_selected);

/* Succeeds even if nothing matches. */
GBX_MUST_USE gbx_status gbx_selection_apply(const gbx_selection *selection, gbx_entries *entries,
                                            gbx_selected *out_selected);

#endif
