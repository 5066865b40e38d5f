/* Directories and disks for tests, removed when the test ends. */
#ifndef GBX_TESTS_SCRATCH_H
#define GBX_TESTS_SCRATCH_H

#include "checks.h"

#include <stddef.h>
#include <stdint.h>

/* Setup and teardown of a group or a test: makes a new directory below `parent` ("/tmp" for NULL)
 * the current one, and removes it. False on failure. */
bool scratch_enter(const char *parent);
bool scratch_leave(void);

/*
 * Mounts a file system of a type ("tmpfs", "ramfs") at a directory below the current one, visible
 * only to this process. False, with a line that says why, if that is not allowed.
 */
bool scratch_mount(const char *type, const char *name, const char *options);
void scratch_unmount(const char *name);

/* Limits the size of files that this process writes; UINT64_MAX for no limit. Ignores SIGXFSZ. */
void scratch_limit_files(uint64_t bytes);

/* All bytes of a file, freed by the caller; fails the test when it cannot be read. */
unsigned char *scratch_read(const char *path, size_t *out_size);
/* Writes a file with exactly these bytes. */
void scratch_write(const char *path, const void *bytes, size_t size);
bool scratch_exists(const char *path);

#endif
