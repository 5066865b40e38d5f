/* Where the programs are that glassbox starts: glassbox-chip, glassbox-call. */
#ifndef GBX_BASE_PROGRAM_PATH_H
#define GBX_BASE_PROGRAM_PATH_H

#include <limits.h>

#include "base/status.h"

typedef struct gbx_program_path_query {
    const char *program;    /* "glassbox-chip" */
    const char *variable;   /* of the environment, that may name its path: "GLASSBOX_CHIP" */
    const char *doing;      /* what failures begin with: "starting the chip" */
    const char *configured; /* the path that the caller was given; NULL for none */
} gbx_program_path_query;

/*
 * What is configured counts, then the variable; else it lies beside the library or program that
 * holds this code (a build tree), or in libexec (installed, wherever the prefix is). Fails with
 * GBX_NOT_FOUND.
 */
GBX_MUST_USE gbx_status gbx_program_path_find(const gbx_program_path_query *name,
                                              char out_path[PATH_MAX]);

#endif
