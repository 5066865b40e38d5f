/* An entry as comma separated values. */
#ifndef GBX_ANALYSIS_EXPORT_EXPORT_CSV_H
#define GBX_ANALYSIS_EXPORT_EXPORT_CSV_H

#include <stdio.h>

#include "analysis/export/export_source.h"

/*
 * A line "# shape (2, 3), float32", then the elements, each the shortest text that reads back as
 * the same element, bool as 0 and 1. One dimension is one element a line; of more, every line is a
 * row of the last dimension. What is left of a tensor that was cut is one element a line. Failures
 * of `to` are its owner's to tell; it stops early at them.
 */
GBX_MUST_USE gbx_status gbx_export_csv(const gbx_export_source *source, FILE *to);

#endif
