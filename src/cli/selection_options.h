/* The filters of commands that read dumps: --kernel, --func, --task, --arg, --role, --stage,
 * --kind,
 * --dtype. */
#ifndef GBX_CLI_SELECTION_OPTIONS_H
#define GBX_CLI_SELECTION_OPTIONS_H

#include <argp.h>

#include "analysis/selection.h"

/* A child of a command's argp; its input is the gbx_selection, zero before parsing. */
extern const struct argp gbx_selection_argp;

/* gbx_selection_apply; fails with GBX_INVALID_ARGUMENT, and says which option, where this dump does
 * not tell what is asked for. */
GBX_MUST_USE gbx_status gbx_selection_options_apply(const gbx_selection *selection,
                                                    gbx_entries *entries,
                                                    gbx_selected *out_selected);

#endif
