/* Finds the dump that a command is about. */
#ifndef GBX_STORE_DUMP_PATH_H
#define GBX_STORE_DUMP_PATH_H

#include "base/status.h"

/* Used when no dump is named: the newest one, below the current directory. */
#define GBX_DUMP_PATH_DEFAULT "outputs/latest"

/*
 * `given` is a dump directory (it contains tensor_dump/, or tensor_dump.json or args_dump.json with
 * bin_file, as other tools write them), tensor_dump/ itself, a directory that contains `latest` or
 * exactly one dump, or NULL for GBX_DUMP_PATH_DEFAULT. *out_directory is the dump directory, freed
 * by the caller; NULL on failure. GBX_NOT_FOUND when there is none, GBX_INVALID_ARGUMENT when there
 * are several, GBX_IO when the system refuses access.
 */
GBX_MUST_USE gbx_status gbx_dump_path_find(const char *given, char **out_directory);

/* DIRECTORY/NAME, freed by the caller; NULL when out of memory. */
char *gbx_dump_path_join(const char *directory, const char *name);

#endif
