/* What a dump can be relied on to hold, from what it says of itself. */
#ifndef GBX_ANALYSIS_COMPLETENESS_H
#define GBX_ANALYSIS_COMPLETENESS_H

#include <stdbool.h>

#include "store/reader.h"

/* Whether the run was to record every argument of every task, filters or not, if only its form. */
bool gbx_run_has_all_metadata(const gbx_run_info *run);

/* Whether the dump has a record of every argument of the tasks that it has records of. */
bool gbx_dump_has_whole_tasks(gbx_reader *reader);

/* Whether it has a record of every argument of every task that was run. */
bool gbx_dump_has_whole_graph(gbx_reader *reader);

#endif
