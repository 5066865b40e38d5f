/* Which tasks are checked: --kernel and --task. */
#ifndef GBX_CLI_CHECK_FILTER_H
#define GBX_CLI_CHECK_FILTER_H

#include <argp.h>

#include "analysis/selection.h"

/* Zero before parsing. Values of one option widen the choice, the two options narrow it. */
typedef struct gbx_check_filter {
    gbx_selection_names kernels;
    gbx_selection_ranges task_numbers;
    gbx_selection_ranges task_ids;
} gbx_check_filter;

/* Each ends the command with one sentence where the text is not what is expected. */
void gbx_check_filter_add_kernel(gbx_check_filter *filter, struct argp_state *state,
                                 const char *text);
void gbx_check_filter_add_task(gbx_check_filter *filter, struct argp_state *state,
                               const char *text);

/* Fails with GBX_INVALID_ARGUMENT where the dump does not tell numbers of tasks and they are asked
 * for. */
GBX_MUST_USE gbx_status gbx_check_filter_check(const gbx_check_filter *filter,
                                               const gbx_reader *reader);

/* Whether a task is chosen; one without record has no kernel and no id. */
GBX_MUST_USE gbx_status gbx_check_filter_matches(const gbx_check_filter *filter, gbx_reader *reader,
                                                 uint64_t task, bool *out_is_chosen);

#endif
