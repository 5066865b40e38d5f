/* What `view --export` and `export` share. */
#ifndef GBX_CLI_EXPORT_H
#define GBX_CLI_EXPORT_H

#include "analysis/export/export.h"
#include "analysis/selection.h"
#include "cli/command.h"
#include "report/dump.h"

/* Reads the value of --as, a dtype of numpy, into a uint32_t. */
void gbx_export_read_as(struct argp_state *state, const gbx_option *option, const char *text,
                        void *line);

/*
 * Writes the selected entries to `place`, a file or directory, as dtype `as` or as they are
 * (GBX_DTYPE_NONE), and prints the report. The exit code is 1 where there was nothing to write. A
 * signal ends the program here, with nothing left behind.
 */
GBX_MUST_USE gbx_status gbx_export_selected(gbx_invocation *invocation, const gbx_opened_dump *dump,
                                            const gbx_selected *selected, gbx_export_format format,
                                            uint32_t as, const char *place);

#endif
