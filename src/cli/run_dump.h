/* The options of glassbox run that are about dumps: a parser of its own, child of the command's. */
#ifndef GBX_CLI_RUN_DUMP_H
#define GBX_CLI_RUN_DUMP_H

#include <argp.h>
#include <stdbool.h>

#include "scene/runner.h"

/* What the parser gets as its input, with `run` set and all else zero. */
typedef struct gbx_run_dump {
    gbx_scene_options *run; /* what the options go into */
    const char *filters[GBX_MAX_DUMP_FILTERS];
    const char *needs_dump;   /* an option that was given and means nothing without a dump */
    const char *needs_tensor; /* ...without --dump-tensor */
} gbx_run_dump;

extern const struct argp gbx_run_dump_parser;

/* Whether a word is a level of --dump-tensor, which takes it after a "=" alone. */
bool gbx_run_dump_is_level(const char *text);

/* The command line as it can be given to a shell again: "glassbox run ..."; the caller frees it,
 * NULL when memory is out. */
char *gbx_run_command_text(int argc, char **argv);

#endif
