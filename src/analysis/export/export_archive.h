/*
 * The zip archive of an export, whose members are written through a stream. Memory grows by the
 * directory alone, see cli/zip_writer.h.
 */
#ifndef GBX_ANALYSIS_EXPORT_EXPORT_ARCHIVE_H
#define GBX_ANALYSIS_EXPORT_EXPORT_ARCHIVE_H

#include <stdint.h>
#include <stdio.h>

#include "base/held_signals.h"
#include "base/status.h"

typedef struct gbx_archive gbx_archive;

/* Takes the descriptor, of an empty file. `signals` may be NULL; once one has come, writing fails.
 * `name` is what messages call the file; borrowed, like the signals. */
GBX_MUST_USE gbx_status gbx_archive_create(int fd, const char *name,
                                           const gbx_held_signals *signals,
                                           gbx_archive **out_archive);

/* Begins a member that is going to have exactly `bytes`, to be put into *out_stream, which is the
 * archive's. Its failures are told by the end of the member. */
GBX_MUST_USE gbx_status gbx_archive_begin(gbx_archive *archive, const char *name, uint64_t bytes,
                                          FILE **out_stream);

/* Consumes `status`, what failed meanwhile; returns the write that failed, or else it. */
GBX_MUST_USE gbx_status gbx_archive_end(gbx_archive *archive, gbx_status status);

/* Ends the archive and frees it, after a failure too, which it consumes and returns; *out_bytes is
 * 0 then. GBX_LOST where the disk failed. */
GBX_MUST_USE gbx_status gbx_archive_close(gbx_archive *archive, gbx_status status,
                                          uint64_t *out_bytes);

#endif
