/* What a dump is, in one line. */
#ifndef GBX_CLI_VIEW_HEAD_H
#define GBX_CLI_VIEW_HEAD_H

#include "cli/open_dump.h"

/* Scene and case, platform, runtime, level, totals, and what was lost or skipped: in colour where
 * that is something. */
void gbx_view_head_print(const gbx_opened_dump *dump);

#endif
