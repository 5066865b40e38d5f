/* run.json of a dump whose run was killed. */
#ifndef GBX_STORE_RUN_RECOVER_RUN_H
#define GBX_STORE_RUN_RECOVER_RUN_H

#include <stdbool.h>

#include "base/status.h"

/*
 * Says "killed" in DIRECTORY/run.json where it says that the run goes on, and removes what a
 * killed process left of it. *out_has_changed tells whether anything was done. A run.json that is
 * missing or that cannot be understood stays as it is: the journal has all that matters.
 */
GBX_MUST_USE gbx_status gbx_recover_run_file(const char *directory, bool *out_has_changed);

#endif
