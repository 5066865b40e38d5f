/* What the commands that export have in common: an option, progress, and the report. */
#ifndef GBX_CLI_EXPORT_REPORT_H
#define GBX_CLI_EXPORT_REPORT_H

#include <argp.h>

#include <glassbox/kernel.h>

#include "analysis/export/export.h"
#include "analysis/selection.h"
#include "cli/open_dump.h"

/* The value of --as; ends the command with code 2 where numpy has no such dtype. */
gbx_dtype gbx_export_parse_as(struct argp_state *state, const char *text);

/* on_progress of a gbx_export_job; the context is a gbx_progress. */
void gbx_export_show_progress(void *context, uint64_t done, uint64_t all);

/* On stdout: how many files ("file", "array") went to `place`, of so many selected, and what there
 * is to know of them. `is_flat`: truncated ones were written as one dimension. */
void gbx_export_print_report(const gbx_export_notes *notes, uint64_t selected, const char *what,
                             const char *place, bool is_flat);

/*
 * glassbox view --export: writes the selected entries to the directory txt/, npy/ or csv/ of the
 * dump, and prints the report. *out_exit_code is 1 where there was nothing to write. Fails as
 * gbx_export_files does: gbx_code_exit tells the exit code. A signal ends the program here, with
 * nothing left behind.
 */
GBX_MUST_USE gbx_status gbx_view_export(const gbx_opened_dump *dump, const gbx_selected *selected,
                                        gbx_export_format format, gbx_dtype as, int *out_exit_code);

#endif
