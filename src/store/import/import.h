/*
 * Converts a manifest into a journal in memory: one of ours whose journal is gone, or that of
 * another tool that writes the same JSON. docs/format.md says which members are read, and what
 * replaces missing ones.
 *
 * A manifest is untrusted input: anything wrong is an error that names the entry and the field. It
 * is read entry by entry; it needs memory for the journal, about 24 bytes for each payload and 70
 * for each task.
 */
#ifndef GBX_STORE_IMPORT_IMPORT_H
#define GBX_STORE_IMPORT_IMPORT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* Totals that a manifest states. */
typedef enum gbx_import_total {
    GBX_TOTAL_RECORDS,
    GBX_TOTAL_BEFORE,
    GBX_TOTAL_AFTER,
    GBX_TOTAL_INPUTS,
    GBX_TOTAL_OUTPUTS,
    GBX_TOTAL_INOUTS,
    GBX_TOTAL_IN_FLIGHT,
    GBX_TOTAL_TRUNCATED,
    GBX_TOTAL_DEDUPLICATED,
    GBX_TOTAL_PAYLOAD_BYTES,
    GBX_TOTAL_STORED_BYTES,
    GBX_TOTAL_RESULTS,
    GBX_TOTAL_RESULT_PAYLOAD_BYTES,
    GBX_TOTAL_RESULT_STORED_BYTES,
    GBX_TOTAL_DROPPED,
    GBX_TOTAL_OVERWRITTEN,
    GBX_TOTAL_STALL_NS,
    GBX_TOTAL_COUNT
} gbx_import_total;

typedef struct gbx_import_totals {
    const char *names[GBX_TOTAL_COUNT]; /* of the member; NULL when absent */
    uint64_t values[GBX_TOTAL_COUNT];
    bool has_losses;    /* it lists the losses that GBX_TOTAL_DROPPED counts */
    uint64_t ambiguous; /* entries whose arg_index may be wrong; records do not keep which */
} gbx_import_totals;

typedef struct gbx_import {
    int fd;            /* of the journal; the caller closes it */
    uint64_t bytes;    /* of it */
    unsigned known;    /* GBX_KNOWN_... of store/reader.h */
    bool has_findings; /* it lists those of the run */
    gbx_import_totals totals;
    char path[PATH_MAX];         /* of the manifest */
    char payload_path[PATH_MAX]; /* "" when it has none */
} gbx_import;

/*
 * Finds the manifest of a dump directory: tensor_dump/tensor_dump.json, tensor_dump.json, or, if it
 * has a member bin_file, args_dump.json or tensor_dump/args_dump.json. *out_is_there is false when
 * there is none. Reads only the beginning and the end of a file.
 */
GBX_MUST_USE gbx_status gbx_import_find(const char *directory, char out_path[PATH_MAX],
                                        bool *out_is_there);

/* The same for the two in the directory itself. */
GBX_MUST_USE gbx_status gbx_import_find_beside(const char *directory, bool *out_is_there);

/* Reads the manifest at import->path. Nothing is open after a failure. */
GBX_MUST_USE gbx_status gbx_import_read(gbx_import *import);

#endif
