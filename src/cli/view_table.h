/* A list of entries as a table that fits the terminal. */
#ifndef GBX_CLI_VIEW_TABLE_H
#define GBX_CLI_VIEW_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/entries.h"
#include "base/status.h"

/*
 * Prints the entries of `indices`, in this order, to stdout. Two passes: the first for the widths,
 * the second writes as it goes. On a terminal the first is over all; long names and shapes are cut,
 * and columns that have no room at all are left out, which is said below the table. Elsewhere it is
 * over the first 65536, so that a reader of the beginning does not wait; a text that is longer than
 * all of those moves the rest of its line.
 */
GBX_MUST_USE gbx_status gbx_view_table_print(gbx_entries *entries, const uint64_t *indices,
                                             uint64_t count, bool has_statistics);

#endif
