/*
 * Shared objects of a dump are code, and a dump may come from anybody. What a dump keeps is run
 * without asking only when the same bytes are found outside of it, where this user's own runs left
 * them.
 */
#ifndef GBX_REPLAY_TRUST_REPLAY_TRUST_H
#define GBX_REPLAY_TRUST_REPLAY_TRUST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "replay/task.h"
#include "store/run/kept_run.h"

/* What is not to be believed; all of it is borrowed. */
typedef struct gbx_trust {
    const char *dump_directory;
    const gbx_kept_run *kept; /* NULL: there is none */
} gbx_trust;

/*
 * The file outside of the dump that has the bytes of the kernel's kept object: in the cache of
 * compiled kernels, or, where it has been lost there, made anew from the source that it came from.
 * That file, and not the dump's, is what is to be run. Where the dump has lost its copy, the source
 * has to give the hash of what ran. *out_path is NULL where there is none, and `out_reason` says
 * why; the caller frees it.
 */
enum { GBX_TRUST_REASON_BYTES = 512 };
GBX_MUST_USE gbx_status gbx_trusted_object_find(const gbx_trust *trust,
                                                const gbx_kept_kernel *kernel, char **out_path,
                                                char out_reason[GBX_TRUST_REASON_BYTES]);

/*
 * Whether the scene that run.json names is there, but its file, a reference, or the directory of
 * one of them lies in the dump, belongs to somebody else than this user and root, or can be written
 * by everybody: references are code, too.
 */
bool gbx_scene_is_foreign(const gbx_trust *trust);

/* Whether flags of a kernel may be given to a compiler: they are harmless, or those that the scene
 * has, where it is this user's and outside of the dump. */
bool gbx_trusted_flags(const gbx_trust *trust, const gbx_kept_kernel *kernel);

/*
 * The directory of the source that a kernel was made of, where it is this user's and outside of the
 * dump: what that source includes with "" is found there. NULL where there is none, and where its
 * path has blanks; the caller frees it.
 */
char *gbx_trusted_source_directory(const gbx_trust *trust, const gbx_kept_kernel *kernel);

/*
 * Whether flags, by blanks, only choose how a source is translated: levels, warnings, the
 * instruction set, some of -f; of link flags, libraries of the system. Others can name files and
 * plugins, or bring code of their own into a source (-D, -include). NULL is harmless.
 */
bool gbx_flags_are_harmless(const char *compile_flags, const char *link_flags);

/* --- which shared object runs: what the run kept, or what the user gives --- */

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
