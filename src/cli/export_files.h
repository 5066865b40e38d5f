/* glassbox view --export: a file an entry. */
#ifndef GBX_CLI_EXPORT_FILES_H
#define GBX_CLI_EXPORT_FILES_H

#include <argp.h>

#include <glassbox/kernel.h>

#include "analysis/selection.h"
#include "cli/open_dump.h"

typedef enum gbx_export_format {
    GBX_EXPORT_TXT = 0,
    GBX_EXPORT_NPY = 1,
    GBX_EXPORT_CSV = 2
} gbx_export_format;

/* The value of --as; ends the command with code 2 where numpy has no such dtype. */
gbx_dtype gbx_export_parse_as(struct argp_state *state, const char *text);

/*
 * Writes the selected entries, in any order, to the directory txt/, npy/ or csv/ of the dump, all
 * or none, and prints where and what there is to know of it. A symbolic link in the place of that
 * directory is refused. `as` is a dtype of numpy to convert to, or GBX_DTYPE_NONE. *out_exit_code
 * is 1 where there was nothing to write. Fails with GBX_IO where the directory cannot be written
 * to, GBX_LOST where the disk failed: gbx_code_exit tells the exit code. A signal ends the program
 * here, with nothing left behind.
 */
GBX_MUST_USE gbx_status gbx_export_files(const gbx_opened_dump *dump, const gbx_selected *selected,
                                         gbx_export_format format, gbx_dtype as,
                                         int *out_exit_code);

#endif
