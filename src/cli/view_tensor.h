/* One entry of a dump: what it is, its values, statistics and their spread. */
#ifndef GBX_CLI_VIEW_TENSOR_H
#define GBX_CLI_VIEW_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/entries.h"
#include "base/status.h"

/* Whether its values can be read, so that nothing is printed of one that cannot be shown. With
 * `is_full` no more than 2^32 elements may have been cut off. */
GBX_MUST_USE gbx_status gbx_view_tensor_check(gbx_entries *entries, uint64_t index, bool is_full);

/* `is_full`: all of its elements, however many. */
GBX_MUST_USE gbx_status gbx_view_tensor_print(gbx_entries *entries, uint64_t index, bool is_full);

#endif
