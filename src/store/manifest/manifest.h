/*
 * The JSON files of a dump, made from its journal: tensor_dump.json, args_dump.json,
 * kernel_args_dump.json. docs/format.md has every field.
 */
#ifndef GBX_STORE_MANIFEST_MANIFEST_H
#define GBX_STORE_MANIFEST_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "store/reader.h"

/*
 * Reads the journal of the dump in `directory`, as far as it is good, and writes tensor_dump.json
 * (has_tensors), args_dump.json and kernel_args_dump.json (has_args) beside it. Each is written to
 * a temporary file, synced and renamed, so that a name that is there is a whole file. Takes 16
 * bytes of memory for each task, argument and dispatch, and about 15 MiB besides. Fails with what
 * gbx_reader_open fails with, with GBX_IO, and with GBX_OUT_OF_RANGE where a number reaches 2^53,
 * beyond which readers of JSON are not exact. May start a thread, which ends before it returns.
 */
GBX_MUST_USE gbx_status gbx_manifest_write(const char *directory, bool has_tensors, bool has_args);

/* One entry of tensor_dump.json. */
typedef struct gbx_manifest_choice {
    uint64_t index;    /* in the manifest */
    uint64_t position; /* in the index of the reader */
} gbx_manifest_choice;

/* Which entries are printed. All is borrowed. */
typedef struct gbx_manifest_chosen {
    const char *run_directory;          /* as `run_dir` */
    const gbx_manifest_choice *choices; /* in the order in which they are printed */
    uint64_t count;

    /* Statistics of an entry, for one that has none recorded; NULL for none. May use the reader. */
    gbx_status (*statistics)(void *context, uint64_t index, gbx_record_stats *out_stats,
                             bool *out_is_there);
    void *context;
} gbx_manifest_chosen;

/*
 * Writes the text of tensor_dump.json to a descriptor, with some of its entries alone; what the
 * dump does not tell (gbx_reader_get_origin) is left out. The reader has GBX_INDEX_ARGUMENTS.
 */
GBX_MUST_USE gbx_status gbx_manifest_print(gbx_reader *reader, const gbx_manifest_chosen *chosen,
                                           int fd, const char *name);

#endif
