/* Directories and disks for tests: they vanish when the test is over. */
#ifndef GBX_TESTS_SCRATCH_H
#define GBX_TESTS_SCRATCH_H

#include "checks.h"

#include <stddef.h>
#include <stdint.h>

/* Setup and teardown of a group or a test: a directory of its own below `parent` ("/tmp" for NULL)
 * is the current one. False when it cannot be made. */
bool scratch_enter(const char *parent);
bool scratch_leave(void);

/*
 * A file system of a type ("tmpfs", "ramfs") at a directory below the current one, which only this
 * process sees. False, with a line that says why, where that is not allowed.
 */
bool scratch_mount(const char *type, const char *name, const char *options);
void scratch_unmount(const char *name);

/* Limits the size of files that this process writes; UINT64_MAX for no limit. The signal that
 * comes with it is ignored. */
void scratch_limit_files(uint64_t bytes);

/* All bytes of a file, freed by the caller; fails the test when it cannot be read. */
unsigned char *scratch_read(const char *path, size_t *out_size);
/* The same file byte for byte. */
void scratch_write(const char *path, const void *bytes, size_t size);
bool scratch_exists(const char *path);

#endif
