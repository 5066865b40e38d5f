/*
 * From C source to a shared object, by the system's compiler, cached by content: the source as
 * preprocessed (so with all that it includes), the flags, the compiler and its target. Runs at the
 * same time, in threads or processes, are safe: files appear in the cache whole or not at all.
 *
 * Compiler: $CC, words by blanks, else cc. Cache: $GLASSBOX_CACHE, else $XDG_CACHE_HOME/glassbox,
 * else $HOME/.cache/glassbox.
 */
#ifndef GBX_TOOLCHAIN_KERNEL_COMPILER_H
#define GBX_TOOLCHAIN_KERNEL_COMPILER_H

#include "base/status.h"

/*
 * Gives the absolute path of the shared object (the caller frees it). `compile_flags` come after
 * the default ones and before the source, `link_flags` after it; both by blanks, both may be NULL.
 * GBX_BAD_KERNEL carries what the compiler said, to the letter.
 */
GBX_MUST_USE gbx_status gbx_kernel_compile(const char *source, const char *compile_flags,
                                           const char *link_flags, char **out_path);

#endif
