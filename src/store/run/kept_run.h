/*
 * run.json of a dump that is there: the scene's directory, the chip, and the copies of kernels that
 * the run kept. Untrusted input: every field is checked.
 */
#ifndef GBX_STORE_RUN_KEPT_RUN_H
#define GBX_STORE_RUN_KEPT_RUN_H

#include "store/run/run_info.h"

/* Has what run.json has beyond the journal, and func_id and name of its kernels. */
typedef gbx_run_info gbx_kept_run;
typedef gbx_run_kernel gbx_kept_kernel;

/* `directory` is that of the dump. GBX_NOT_FOUND where there is no run.json (another tool's dump),
 * GBX_BAD_FORMAT with the field where it is not what is expected. */
GBX_MUST_USE gbx_status gbx_kept_run_read(const char *directory, gbx_kept_run **out_run);
void gbx_kept_run_free(gbx_kept_run *run); /* takes NULL */

/* NULL for none. */
static inline const gbx_kept_kernel *gbx_kept_run_kernel(const gbx_kept_run *run,
                                                         uint32_t func_id) {
    return gbx_run_info_kernel(run, func_id);
}

/* Whether the copy of the shared object is there and has its hash. GBX_NOT_FOUND, GBX_BAD_FORMAT.
 */
GBX_MUST_USE gbx_status gbx_kept_kernel_verify(const gbx_kept_kernel *kernel);

/*
 * Says "killed" in DIRECTORY/run.json where it says that the run goes on, and removes what a
 * killed process left of it. *out_has_changed tells whether anything was done. A run.json that is
 * missing or that cannot be understood stays as it is: the journal has all that matters.
 */
GBX_MUST_USE gbx_status gbx_recover_run_file(const char *directory, bool *out_has_changed);

#endif
