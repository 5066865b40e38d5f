/* Where compiled kernels are kept between runs. */
#ifndef GBX_TOOLCHAIN_CACHE_DIRECTORY_H
#define GBX_TOOLCHAIN_CACHE_DIRECTORY_H

#include <stddef.h>

#include "base/status.h"

/* Creates <cache>/<name> with its parents; the caller frees *out_path, its absolute path. */
GBX_MUST_USE gbx_status gbx_cache_directory(const char *name, char **out_path);

/* Writes a file atomically: others see all of it or nothing. */
GBX_MUST_USE gbx_status gbx_cache_write(const char *path, const void *bytes, size_t size);

/* Removes what interrupted compilers left in a directory of the cache a day ago or more:
 * "<hash>.so.XXXXXX" and "<hash>.XXXXXX". */
void gbx_cache_sweep(const char *directory);

#endif
