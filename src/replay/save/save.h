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
    char name[GBX_SAVE_NAME_BYTES];       /* valid in file names and in C */
    char source[GBX_SAVE_PATH_BYTES];     /* path in the folder; "" if the object is saved */
    char why_object[GBX_SAVE_PATH_BYTES]; /* why the object is saved: one sentence, or "" */
} gbx_saved_kernel;

typedef struct gbx_saved_kernels {
    gbx_saved_kernel items[GBX_SUBTASK_COUNT];
    size_t count;
} gbx_saved_kernels;

/*
 * Writes the program, its data and a Makefile to a new or empty directory, completely or not at
 * all, and reports how it has the kernels. Runs no code of the dump. Fails with GBX_IO if the
 * directory has files, GBX_LOST if the disk fails.
 */
GBX_MUST_USE gbx_status gbx_replay_save(const gbx_replay_saving *saving, const char *directory,
                                        gbx_saved_kernels *out_kernels);

#endif
