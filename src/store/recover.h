/*
 * Makes a dump whole whose run was killed: keeps every whole block of the journal, ends it, and
 * writes the manifests that the run could not.
 */
#ifndef GBX_STORE_RECOVER_H
#define GBX_STORE_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "store/reader.h"
#include "store/verify/findings.h"

typedef struct gbx_recovery {
    bool was_whole; /* there was nothing to do, and nothing was done */

    /* What is in the dump. */
    uint64_t records; /* tensors and scalars, those in flight included */
    uint64_t tasks;
    uint64_t dispatches;
    uint64_t payload_bytes;
    uint64_t newer_records; /* of types that this version does not know: kept in the journal */
    bool is_complete;       /* the run had ended by itself: only manifests were missing */

    /* What was done. */
    uint64_t cut_bytes;                  /* taken off the journal */
    char stop_text[GBX_STOP_TEXT_BYTES]; /* why; "" where nothing was */
    char *tail_path;                     /* the file that keeps them; NULL where there are none */
    bool has_ended;                      /* an END record was appended */
    bool has_tensor_manifest;            /* written */
    bool has_args_manifests;             /* written */
    uint64_t kept_entries;  /* of tensor_dump.json, which was not written because it has
                               more than the journal; 0 where it was, or had no need */
    bool has_kept_args;     /* likewise the two of --dump-args */
    uint64_t removed_files; /* temporary ones */

    gbx_findings findings; /* records whose payload lies outside of the file */
} gbx_recovery;

/*
 * `directory` is that of a dump. The broken end of a journal is cut off only once a copy of it is
 * on the disk, beside it. A manifest that has more than can be read of the journal stays. May be
 * called again at any time, also after it was killed itself.
 *
 * Fails, with nothing to free, with GBX_UNSUPPORTED while the run goes on or when it takes a newer
 * version to understand the journal, GBX_NOT_FOUND or GBX_BAD_FORMAT when there is no record to
 * keep, GBX_IO when the system refuses. Nothing is changed but with GBX_IO.
 */
GBX_MUST_USE gbx_status gbx_dump_recover(const char *directory, gbx_recovery *out_recovery);
void gbx_recovery_free(gbx_recovery *recovery);

#endif
