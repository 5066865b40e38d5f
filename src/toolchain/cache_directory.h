/* Where compiled kernels are kept between runs. */
#ifndef GBX_TOOLCHAIN_CACHE_DIRECTORY_H
#define GBX_TOOLCHAIN_CACHE_DIRECTORY_H

#include <stddef.h>

#include "base/status.h"

/* Makes <cache>/<name> with its parents and gives its absolute path; the caller frees it. */
GBX_MUST_USE gbx_status gbx_cache_directory(const char *name, char **out_path);

/* Writes a file under its final name in one step: others see it whole or not at all. */
GBX_MUST_USE gbx_status gbx_cache_write(const char *path, const void *bytes, size_t size);

#endif
