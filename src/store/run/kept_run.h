/*
 * Reading run.json of a dump: the scene's directory, the chip, and the kernels kept with the dump.
 * Untrusted input: every field is checked.
 */
#ifndef GBX_STORE_RUN_KEPT_RUN_H
#define GBX_STORE_RUN_KEPT_RUN_H

#include "store/run/run_info.h"

/* Has what run.json adds to the journal, and func_id and name of its kernels. */
typedef gbx_run_info gbx_kept_run;
typedef gbx_run_kernel gbx_kept_kernel;

/* `directory` is the dump's. GBX_NOT_FOUND when there is no run.json (another tool's dump),
 * GBX_BAD_FORMAT naming the field when it is invalid. */
GBX_MUST_USE gbx_status gbx_kept_run_read(const char *directory, gbx_kept_run **out_run);
void gbx_kept_run_free(gbx_kept_run *run); /* takes NULL */

/* NULL for none. */
static inline const gbx_kept_kernel *gbx_kept_run_kernel(const gbx_kept_run *run,
                                                         uint32_t func_id) {
    return gbx_run_info_kernel(run, func_id);
}

/* Checks that the copy of the shared object exists and has its hash. GBX_NOT_FOUND,
 * GBX_BAD_FORMAT. */
GBX_MUST_USE gbx_status gbx_kept_kernel_verify(const gbx_kept_kernel *kernel);

/*
 * Changes the status in DIRECTORY/run.json from "running" to "killed", and removes its temporary
 * file. *out_has_changed says whether anything was done. A missing or unreadable run.json stays as
 * it is: the journal has all that matters.
 */
GBX_MUST_USE gbx_status gbx_recover_run_file(const char *directory, bool *out_has_changed);

#endif
