/* The filters of commands that read dumps: --kernel, --func, --task, --arg, --role, --stage,
 * --kind, --dtype. */
#ifndef GBX_CLI_FILTERS_H
#define GBX_CLI_FILTERS_H

#include "analysis/selection.h"
#include "cli/command.h"

/* A list of options whose struct is a gbx_selection, zero before. */
extern const gbx_option gbx_filter_options[];

/* For other options of the same kinds. The first stores into a gbx_selection_names; the second into
 * two gbx_selection_ranges, one behind the other: numbers and ids. */
void gbx_filter_read_name(struct argp_state *state, const gbx_option *option, const char *text,
                          void *group);
void gbx_filter_read_task(struct argp_state *state, const gbx_option *option, const char *text,
                          void *group);

/* gbx_selection_apply; fails with GBX_INVALID_ARGUMENT, and names the option, where this dump lacks
 * the names that are asked for. */
GBX_MUST_USE gbx_status gbx_filter_apply(const gbx_selection *selection, gbx_entries *entries,
                                         gbx_selected *out_selected);

/* The same of dispatches, with gbx_selection_apply_dispatches. */
GBX_MUST_USE gbx_status gbx_filter_apply_dispatches(const gbx_selection *selection,
                                                    const gbx_dispatches *dispatches,
                                                    gbx_selected *out_selected);

#endif
