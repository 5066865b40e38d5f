/* Shared by the files of blame. */
#ifndef GBX_ANALYSIS_BLAME_INTERNAL_H
#define GBX_ANALYSIS_BLAME_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/audit/internal.h"
#include "analysis/blame/blame.h"

/* The audit's tasks and accesses are the memory that is asked. */
struct gbx_blame {
    gbx_audit_state state;
    gbx_audit audit;
};

/* Whether the first task, an index in `tasks`, is known to have completed before the second began.
 */
bool gbx_blame_is_before(const gbx_blame *blame, uint64_t first, uint64_t second);

#endif
