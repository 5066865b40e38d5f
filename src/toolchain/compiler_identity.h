/* Where a program is, and which compiler it is, without running it. */
#ifndef GBX_TOOLCHAIN_COMPILER_IDENTITY_H
#define GBX_TOOLCHAIN_COMPILER_IDENTITY_H

#include <limits.h>
#include <stdbool.h>

#include "base/hash.h"

/* The real path of a program on PATH, or of one with a slash in its name. */
bool gbx_find_program(const char *program, char out_real[PATH_MAX]);

/*
 * Adds what changes with the compiler `program` (found on PATH), and with the processor that
 * -march=native stands for. False if that cannot be told from its file: it is a script, or runs
 * another compiler as ccache does.
 */
bool gbx_compiler_identify(const char *program, gbx_hash_state *state);

#endif
