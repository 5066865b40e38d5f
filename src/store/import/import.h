/*
 * A manifest made into a journal in memory: one of ours whose journal is gone, or one of another
 * tool that writes the same JSON. docs/format.md says which members are read, and what is taken
 * for those that are missing.
 *
 * A manifest is untrusted input: whatever is wrong with it is an error that names the entry and the
 * field. It is read entry by entry; memory is taken for the journal, about 24 bytes for each
 * payload and 70 for each task.
 */
#ifndef GBX_STORE_IMPORT_IMPORT_H
#define GBX_STORE_IMPORT_IMPORT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* Totals that a manifest tells of its entries. */
typedef enum gbx_import_total {
    GBX_SAID_RECORDS,
    GBX_SAID_BEFORE,
    GBX_SAID_AFTER,
    GBX_SAID_INPUTS,
    GBX_SAID_OUTPUTS,
    GBX_SAID_INOUTS,
    GBX_SAID_IN_FLIGHT,
    GBX_SAID_TRUNCATED,
    GBX_SAID_DEDUPLICATED,
    GBX_SAID_PAYLOAD_BYTES,
    GBX_SAID_STORED_BYTES,
    GBX_SAID_DROPPED,
    GBX_SAID_OVERWRITTEN,
    GBX_SAID_STALL_NS,
    GBX_SAID_COUNT
} gbx_import_total;

typedef struct gbx_import_said {
    const char *names[GBX_SAID_COUNT]; /* of the member; NULL where it is not there */
    uint64_t values[GBX_SAID_COUNT];
    bool has_losses;    /* it lists what GBX_SAID_DROPPED counts */
    uint64_t ambiguous; /* entries that say that their arg_index may be another one; records do not
                           tell which */
} gbx_import_said;

typedef struct gbx_import {
    int fd;         /* of the journal; the caller closes it */
    uint64_t bytes; /* of it */
    unsigned told;  /* GBX_TOLD_... of store/reader.h */
    gbx_import_said said;
    char path[PATH_MAX];         /* of the manifest */
    char payload_path[PATH_MAX]; /* "" where it has none */
} gbx_import;

/*
 * The manifest of a dump directory: tensor_dump/tensor_dump.json, tensor_dump.json, or, where it
 * has a member bin_file, args_dump.json or tensor_dump/args_dump.json. *out_is_there false where
 * there is none of them. Reads no more than the beginning and the end of a file.
 */
GBX_MUST_USE gbx_status gbx_import_find(const char *directory, char out_path[PATH_MAX],
                                        bool *out_is_there);

/* The same of the two that lie in the directory itself. */
GBX_MUST_USE gbx_status gbx_import_find_beside(const char *directory, bool *out_is_there);

/* Reads the manifest at import->path. Nothing is open when it fails. */
GBX_MUST_USE gbx_status gbx_import_read(gbx_import *import);

#endif
