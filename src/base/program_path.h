/* Finds the programs that glassbox starts: glassbox-chip, glassbox-call. */
#ifndef GBX_BASE_PROGRAM_PATH_H
#define GBX_BASE_PROGRAM_PATH_H

#include <limits.h>

#include "base/status.h"

typedef struct gbx_program_path_query {
    const char *program;    /* "glassbox-chip" */
    const char *variable;   /* environment variable that may give its path: "GLASSBOX_CHIP" */
    const char *doing;      /* what failures begin with: "starting the chip" */
    const char *configured; /* a path given to the caller; NULL for none */
} gbx_program_path_query;

/*
 * Uses the configured path, then the variable; else looks beside the library or program that holds
 * this code (a build tree) and in libexec (installed, under any prefix). Fails with GBX_NOT_FOUND.
 */
GBX_MUST_USE gbx_status gbx_program_path_find(const gbx_program_path_query *name,
                                              char out_path[PATH_MAX]);

#endif
