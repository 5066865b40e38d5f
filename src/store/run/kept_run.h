/*
 * What run.json of a dump tells beyond the journal: the scene's directory, the chip, and the copies
 * of kernels that the run kept. Untrusted input: every field is checked.
 */
#ifndef GBX_STORE_RUN_KEPT_RUN_H
#define GBX_STORE_RUN_KEPT_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"

typedef struct gbx_kept_kernel {
    uint32_t func_id;
    char *name;
    char *object;            /* path of the copy; NULL where the kernel was no shared object */
    gbx_hash128 object_hash; /* XXH3-128 of the shared object that ran */
    char *source; /* path of the copy of its source; NULL where there is none. Headers that it
                     includes with "" lie where it finds them */
    char *origin; /* absolute path of the source at the time of the run; NULL */
    char *compile_flags; /* by blanks, as in scene.json; NULL */
    char *link_flags;
} gbx_kept_kernel;

typedef struct gbx_kept_run {
    char *path;       /* of run.json */
    char *scene_path; /* absolute path of the scene's directory at the time of the run; NULL */
    uint32_t blocks;  /* of the chip; 0 where it is not told, like the next */
    uint64_t gm_bytes;
    gbx_kept_kernel *kernels;
    size_t kernel_count;
} gbx_kept_run;

/* `directory` is that of the dump. GBX_NOT_FOUND where there is no run.json (another tool's dump),
 * GBX_BAD_FORMAT with the field where it is not what is expected. */
GBX_MUST_USE gbx_status gbx_kept_run_read(const char *directory, gbx_kept_run **out_run);
void gbx_kept_run_free(gbx_kept_run *run); /* takes NULL */

/* NULL for none. */
const gbx_kept_kernel *gbx_kept_run_kernel(const gbx_kept_run *run, uint32_t func_id);

/* Whether the copy of the shared object is there and has its hash. GBX_NOT_FOUND, GBX_BAD_FORMAT.
 */
GBX_MUST_USE gbx_status gbx_kept_kernel_verify(const gbx_kept_kernel *kernel);

#endif
