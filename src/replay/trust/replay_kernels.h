/* Which shared object runs as a kernel of a task: what the run kept, or what the user gives. */
#ifndef GBX_REPLAY_TRUST_REPLAY_KERNELS_H
#define GBX_REPLAY_TRUST_REPLAY_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "replay/task.h"
#include "store/run/kept_run.h"

enum { GBX_REPLAY_KERNEL_FILES = 16 };

/* What --kernel says: "FILE", or "NAME=FILE". */
typedef struct gbx_replay_kernel_files {
    const char *items[GBX_REPLAY_KERNEL_FILES];
    size_t count;
} gbx_replay_kernel_files;

typedef struct gbx_replay_kernels gbx_replay_kernels;

/* `kept` is NULL where the dump has no run.json. All is borrowed. */
GBX_MUST_USE gbx_status gbx_replay_kernels_create(const char *dump_directory,
                                                  const gbx_kept_run *kept, bool is_trusted,
                                                  const gbx_replay_kernel_files *files,
                                                  gbx_replay_kernels **out_kernels);
void gbx_replay_kernels_destroy(gbx_replay_kernels *kernels); /* takes NULL */

/*
 * The objects of a task's kernels, by subtask, NULL where it has none; they live as long as
 * `kernels`. Fails with GBX_UNSUPPORTED where one is code of the dump that is not found outside of
 * it and nobody said --trust, with GBX_BAD_KERNEL where a file of --kernel does not compile, and
 * with GBX_INVALID_ARGUMENT where it names no kernel of the task.
 */
GBX_MUST_USE gbx_status gbx_replay_kernels_find(gbx_replay_kernels *kernels,
                                                const gbx_replay_task *task,
                                                const char *out_objects[GBX_SUBTASK_COUNT]);

#endif
