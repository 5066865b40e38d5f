/*
 * Compiles a C source to a shared object with the system's compiler. The result is cached by
 * content: the preprocessed source (with all that it includes), the flags and the files that they
 * name, the compiler and its target. Threads and processes may compile at the same time: files
 * appear in the cache complete or not at all.
 *
 * Compiler: $CC, split at blanks, else cc. Cache: $GLASSBOX_CACHE, else $XDG_CACHE_HOME/glassbox,
 * else $HOME/.cache/glassbox.
 */
#ifndef GBX_TOOLCHAIN_KERNEL_COMPILER_H
#define GBX_TOOLCHAIN_KERNEL_COMPILER_H

#include "base/status.h"

/*
 * *out_path is the absolute path of the shared object; the caller frees it. `compile_flags` come
 * after the default flags and before the source, `link_flags` after it; both are split at blanks
 * and may be NULL. The message of GBX_BAD_KERNEL includes that of the compiler, unchanged.
 */
GBX_MUST_USE gbx_status gbx_kernel_compile(const char *source, const char *compile_flags,
                                           const char *link_flags, char **out_path);

/* The same, with paths in the flags relative to `directory` (NULL: the current one). */
GBX_MUST_USE gbx_status gbx_kernel_compile_in(const char *directory, const char *source,
                                              const char *compile_flags, const char *link_flags,
                                              char **out_path);

#endif
