/* A task as a C program that makes the same call without glassbox. */
#ifndef GBX_CLI_REPLAY_SAVE_H
#define GBX_CLI_REPLAY_SAVE_H

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

/*
 * Writes the program, its data and a Makefile to a new or empty directory, whole or not at all, and
 * says so on stdout. Nothing of the dump is run. Fails with GBX_IO where there are files already,
 * GBX_LOST where the disk fails.
 */
GBX_MUST_USE gbx_status gbx_replay_save(const gbx_replay_saving *saving, const char *directory);

#endif
