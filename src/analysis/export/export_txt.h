/* An entry as text to read and to compare: two of the same values are the same but for what differs
 * between their tasks. */
#ifndef GBX_ANALYSIS_EXPORT_EXPORT_TXT_H
#define GBX_ANALYSIS_EXPORT_EXPORT_TXT_H

#include <stdio.h>

#include "analysis/export/export_source.h"

/*
 * What the entry is ("# key: value"), an overview as gbx_array_print prints it, a row a line,
 * with its edges alone where it is large, and every element on a line of its own, "[0, 3, 17] 0.5",
 * in the shortest text that reads back. Nothing that two runs of one graph differ in: no times,
 * addresses, offsets. Failures of `to` are its owner's to tell; it stops early at them.
 */
GBX_MUST_USE gbx_status gbx_export_txt(const gbx_entry *entry, const gbx_export_source *source,
                                       FILE *to);

#endif
