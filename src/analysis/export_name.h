/* What an exported entry is called, without its extension. */
#ifndef GBX_ANALYSIS_EXPORT_NAME_H
#define GBX_ANALYSIS_EXPORT_NAME_H

#include "analysis/entries.h"

enum { GBX_EXPORT_NAME_BYTES = 96 };

/*
 * "task_0x0000000100000000_before_in0"; "task_seq17_..." where the record of the task was lost. The
 * second entry of the dump that would have the same name gets "_2" at the end, and so on, whatever
 * is selected. Entries handed out before are gone.
 */
GBX_MUST_USE gbx_status gbx_export_name(gbx_entries *entries, uint64_t index,
                                        char out_name[GBX_EXPORT_NAME_BYTES]);

/* Fails with GBX_BAD_FORMAT where two tasks of these entries have one id, and names would not be
 * unique. Takes 16 bytes a task meanwhile. */
GBX_MUST_USE gbx_status gbx_export_check_names(gbx_entries *entries, const uint64_t *indices,
                                               uint64_t count);

#endif
