/*
 * Repairs the dump of a killed run: keeps every complete block of the journal, adds END, and writes
 * the manifests that the run could not write.
 */
#ifndef GBX_STORE_RECOVER_H
#define GBX_STORE_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "store/reader.h"
#include "store/verify/findings.h"

typedef struct gbx_recovery {
    bool was_whole; /* nothing needed to be done */

    /* What is in the dump. */
    uint64_t records; /* tensors and scalars, including those in flight */
    uint64_t tasks;
    uint64_t dispatches;
    uint64_t payload_bytes;
    uint64_t newer_records; /* of unknown types: kept in the journal */
    bool is_complete;       /* the run had ended by itself: only manifests were missing */

    /* What was done. */
    uint64_t cut_bytes;                  /* cut off the journal */
    char stop_text[GBX_STOP_TEXT_BYTES]; /* why; "" when nothing was cut off */
    char *tail_path;          /* the file that keeps these bytes; NULL when there are none */
    bool has_ended;           /* an END record was appended */
    bool has_tensor_manifest; /* written */
    bool has_args_manifests;  /* written */
    uint64_t kept_entries; /* of tensor_dump.json, when it was kept because it has more entries than
                              the journal; else 0 */
    bool has_kept_args;    /* the same for the two manifests of --dump-args */
    uint64_t removed_files; /* temporary ones */

    gbx_findings findings; /* records whose payload lies outside the file */
} gbx_recovery;

/*
 * `directory` is a dump directory. The broken end of a journal is cut off only after a copy of it
 * is on disk beside it. A manifest with more entries than the journal stays. May be called again at
 * any time, even after it was killed itself.
 *
 * Fails, with nothing to free, with GBX_UNSUPPORTED while the run goes on or when only a newer
 * version can read the journal, GBX_NOT_FOUND or GBX_BAD_FORMAT when no record can be kept, GBX_IO
 * when the system refuses. Only with GBX_IO may something have changed.
 */
GBX_MUST_USE gbx_status gbx_dump_recover(const char *directory, gbx_recovery *out_recovery);
void gbx_recovery_free(gbx_recovery *recovery);

#endif
