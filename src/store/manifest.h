/*
 * The JSON files of a dump, made from its journal: tensor_dump.json, args_dump.json,
 * kernel_args_dump.json. docs/format.md has every field.
 */
#ifndef GBX_STORE_MANIFEST_H
#define GBX_STORE_MANIFEST_H

#include <stdbool.h>

#include "base/status.h"

/*
 * Reads the journal of the dump in `directory`, as far as it is good, and writes tensor_dump.json
 * (has_tensors), args_dump.json and kernel_args_dump.json (has_args) beside it. Each is written to
 * a temporary file, synced and renamed, so that a name that is there is a whole file. Takes 16
 * bytes of memory for each task, argument and dispatch, and about 15 MiB besides. Fails with what
 * gbx_reader_open fails with, with GBX_IO, and with GBX_OUT_OF_RANGE where a number reaches 2^53,
 * beyond which readers of JSON are not exact. May start a thread, which ends before it returns.
 */
GBX_MUST_USE gbx_status gbx_manifest_write(const char *directory, bool has_tensors, bool has_args);

#endif
