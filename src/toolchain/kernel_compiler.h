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

#include <stdbool.h>

#include "base/hash.h"
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

/* What else than a kernel with the usual compiler can be made; all is borrowed. */
typedef struct gbx_build {
    const char *compiler;      /* its words; NULL: $CC, else cc */
    const char *directory;     /* of paths in the flags; NULL: the current one */
    const char *source;        /* relative to the current directory */
    const char *compile_flags; /* as above */
    const char *link_flags;
    const char *first_header;   /* included before the source; NULL: none */
    bool is_program;            /* an executable file instead of a shared object */
    const gbx_hash128 *content; /* of all sources, which then need not be preprocessed to find the
                                   result in the cache; NULL: unknown */
} gbx_build;

GBX_MUST_USE gbx_status gbx_build_make(const gbx_build *build, char **out_path);

#endif
