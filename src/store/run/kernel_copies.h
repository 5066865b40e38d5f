/*
 * Copies the kernels that ran into the dump, so that it can be replayed anywhere: the shared
 * object, and the source with the files that it includes with "".
 */
#ifndef GBX_STORE_RUN_KERNEL_COPIES_H
#define GBX_STORE_RUN_KERNEL_COPIES_H

#include "store/run/run_info.h"

/*
 * Copies the kernels of a run to DIRECTORY/kernels, by name and content: NAME_HASH.so and
 * NAME_HASH.c; a source that includes others gets a folder NAME_HASH, which keeps their relative
 * places. Included files that are not found beside the including one are left out. Sets object,
 * object_hash and source of each kernel that has an object_path or an origin.
 */
GBX_MUST_USE gbx_status gbx_kernel_copies_make(const char *directory, gbx_run_info *info);

#endif
