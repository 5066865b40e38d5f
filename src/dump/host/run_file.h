/* What a dump says of its run: run.json, the RUN record of the journal, and copies of kernels. */
#ifndef GBX_DUMP_HOST_RUN_FILE_H
#define GBX_DUMP_HOST_RUN_FILE_H

#include "dump/host/session.h"

/* What is decided when the run begins. */
typedef struct gbx_run_identity {
    char run_id[17];
    char started_at[32]; /* UTC: "2026-01-31T12:00:00Z" */
} gbx_run_identity;

/* The names of the copies of one kernel; empty where there is none. */
enum { GBX_KERNEL_COPY_BYTES = 128 };
typedef struct gbx_kernel_copy {
    char object[GBX_KERNEL_COPY_BYTES];
    char source[GBX_KERNEL_COPY_BYTES];
} gbx_kernel_copy;

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

/* Copies the shared objects and sources of all kernels to DIRECTORY/kernels, by name and content;
 * `out_copies` has one entry for each kernel. */
GBX_MUST_USE gbx_status gbx_run_kernels_copy(const gbx_dump_session_config *config,
                                             gbx_kernel_copy *out_copies);

#endif
