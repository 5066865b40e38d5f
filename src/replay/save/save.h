/* A task as a C program that makes the same call without glassbox. */
#ifndef GBX_REPLAY_SAVE_SAVE_H
#define GBX_REPLAY_SAVE_SAVE_H

#include "replay/engine/engine.h"
#include "store/run/kept_run.h"

typedef struct gbx_replay_saving {
    gbx_replay_engine *engine;
    gbx_entries *entries;
    const gbx_replay_task *task;
    int64_t dispatch; /* -1 for all */
    const gbx_kept_run *kept;
    const char *dump_directory;
} gbx_replay_saving;

enum { GBX_SAVE_NAME_BYTES = 96, GBX_SAVE_PATH_BYTES = 512 };

/* A kernel in the saved program. */
typedef struct gbx_saved_kernel {
    uint32_t func_id;
    const gbx_kept_kernel *kept;
    char name[GBX_SAVE_NAME_BYTES];       /* what may stand in names of files and in C */
    char source[GBX_SAVE_PATH_BYTES];     /* path in the folder; "" where the object is saved */
    char why_object[GBX_SAVE_PATH_BYTES]; /* why it is: one sentence; "" */
} gbx_saved_kernel;

typedef struct gbx_saved_kernels {
    gbx_saved_kernel items[GBX_SUBTASK_COUNT];
    size_t count;
} gbx_saved_kernels;

/*
 * Writes the program, its data and a Makefile to a new or empty directory, whole or not at all, and
 * tells how it has the kernels. Nothing of the dump is run. Fails with GBX_IO where there are files
 * already, GBX_LOST where the disk fails.
 */
GBX_MUST_USE gbx_status gbx_replay_save(const gbx_replay_saving *saving, const char *directory,
                                        gbx_saved_kernels *out_kernels);

#endif
