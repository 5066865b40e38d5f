/* The command line of glassbox replay. */
#ifndef GBX_CLI_REPLAY_OPTIONS_H
#define GBX_CLI_REPLAY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/trust/replay_kernels.h"

typedef struct gbx_replay_options {
    const char *dump; /* NULL: the latest */
    const char *task; /* as the user wrote it */
    uint64_t first;   /* task_seq; of an id the id itself */
    uint64_t last;
    bool is_id;
    bool is_list;     /* a range or all: a line a task */
    int64_t dispatch; /* -1 for all */
    gbx_replay_kernel_files kernels;
    uint64_t runs;
    const char *save; /* NULL */
    uint32_t timeout_ms;
    bool has_gdb;
    bool is_trusted;
    bool as_json;
} gbx_replay_options;

/* Ends the program where they are wrong. */
void gbx_replay_options_parse(int argc, char **argv, gbx_replay_options *out_options);

#endif
