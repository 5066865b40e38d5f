/* Finds the dump that a command is about. */
#ifndef GBX_STORE_DUMP_PATH_H
#define GBX_STORE_DUMP_PATH_H

#include "base/status.h"

/* What is taken when no dump is named: the one that was made last, below the current directory. */
#define GBX_DUMP_PATH_DEFAULT "outputs/latest"

/*
 * `given` is a dump directory (with tensor_dump/ inside, or tensor_dump.json, or args_dump.json
 * that has bin_file, as other tools write them), tensor_dump/ itself, a directory with `latest` or
 * exactly one dump inside, or NULL for GBX_DUMP_PATH_DEFAULT. *out_directory is the
 * dump directory, freed by the caller; NULL on failure. GBX_NOT_FOUND when there is none,
 * GBX_INVALID_ARGUMENT when there are several, GBX_IO when the system does not let look.
 */
GBX_MUST_USE gbx_status gbx_dump_path_find(const char *given, char **out_directory);

/* DIRECTORY/NAME, freed by the caller; NULL when memory is out. */
char *gbx_dump_path_join(const char *directory, const char *name);

#endif
