/* What a dump says of its run: run.json, and the RUN record of the journal. */
#ifndef GBX_DUMP_HOST_RUN_FILE_H
#define GBX_DUMP_HOST_RUN_FILE_H

#include "dump/host/kernel_copies.h"

/* What is decided when the run begins. */
typedef struct gbx_run_identity {
    char run_id[17];
    char started_at[32]; /* UTC: "2026-01-31T12:00:00Z" */
} gbx_run_identity;

void gbx_run_identity_make(gbx_run_identity *identity);

/* The text of the RUN record (docs/format.md); the caller frees it. */
GBX_MUST_USE gbx_status gbx_run_record_make(const gbx_dump_session_config *config,
                                            const gbx_run_identity *identity, char **out_text);

/* Writes or replaces DIRECTORY/run.json; `ending` is NULL while the run goes on. */
GBX_MUST_USE gbx_status gbx_run_file_write(const gbx_dump_session_config *config,
                                           const gbx_run_identity *identity,
                                           const gbx_kernel_copy *copies,
                                           const gbx_dump_ending *ending,
                                           const gbx_dump_totals *totals);

#endif
