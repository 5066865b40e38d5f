/*
 * Copies of the kernels that ran, beside the dump, so that it can be replayed wherever it goes: the
 * shared object, and the source with the files that it includes with "".
 */
#ifndef GBX_DUMP_HOST_KERNEL_COPIES_H
#define GBX_DUMP_HOST_KERNEL_COPIES_H

#include "base/hash.h"
#include "dump/host/session.h"

enum { GBX_KERNEL_COPY_BYTES = 512 };

/* Paths below DIRECTORY/kernels; empty where there is none. */
typedef struct gbx_kernel_copy {
    char object[GBX_KERNEL_COPY_BYTES];
    char source[GBX_KERNEL_COPY_BYTES];
    gbx_hash128 object_hash; /* of the object, where there is one */
} gbx_kernel_copy;

/*
 * Copies the kernels of a session to DIRECTORY/kernels, by name and content: NAME_HASH.so and
 * NAME_HASH.c; a source that includes others gets a folder NAME_HASH, in which they lie to each
 * other as they did. Included files that are not found beside the one that names them are left out.
 * `out_copies` has one entry for each kernel.
 */
GBX_MUST_USE gbx_status gbx_kernel_copies_make(const gbx_dump_session_config *config,
                                               gbx_kernel_copy *out_copies);

#endif
