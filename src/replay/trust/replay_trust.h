/*
 * Shared objects of a dump are code, and a dump may come from anybody. Such code runs without
 * --trust only if the same bytes are found outside the dump, where this user's own runs left them.
 */
#ifndef GBX_REPLAY_TRUST_REPLAY_TRUST_H
#define GBX_REPLAY_TRUST_REPLAY_TRUST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "replay/task.h"
#include "store/run/kept_run.h"

/* Untrusted data; all of it is borrowed. */
typedef struct gbx_trust {
    const char *dump_directory;
    const gbx_kept_run *kept; /* may be NULL */
} gbx_trust;

/*
 * Finds a file outside the dump with the same bytes as the kernel's kept object: in the cache of
 * compiled kernels or, if it is no longer there, recompiled from its original source. The caller
 * must run that file, not the dump's. If the dump has lost its copy, the source must compile to the
 * hash of what ran. If there is none, *out_path is NULL and `out_reason` says why. The caller frees
 * *out_path.
 */
enum { GBX_TRUST_REASON_BYTES = 512 };
GBX_MUST_USE gbx_status gbx_trusted_object_find(const gbx_trust *trust,
                                                const gbx_kept_kernel *kernel, char **out_path,
                                                char out_reason[GBX_TRUST_REASON_BYTES]);

/*
 * Whether the scene named by run.json exists, but its file, a reference, or the directory of one of
 * them lies in the dump, belongs to a user other than this one and root, or is writable by
 * everyone: references are code, too.
 */
bool gbx_scene_is_foreign(const gbx_trust *trust);

/* Whether the flags of a kernel may be passed to a compiler: they are harmless, or equal to those
 * in the scene, which is this user's and outside the dump. */
bool gbx_trusted_flags(const gbx_trust *trust, const gbx_kept_kernel *kernel);

/* What relative paths in flags are relative to: the scene's directory; NULL if it is not there.
 * Borrowed from the dump. */
const char *gbx_flags_directory(const gbx_trust *trust);

/*
 * The directory of a kernel's original source, if it is this user's and outside the dump: files
 * included with "" are found there. NULL if there is none, or if its path has blanks; the caller
 * frees it.
 */
char *gbx_trusted_source_directory(const gbx_trust *trust, const gbx_kept_kernel *kernel);

/*
 * Finds the kernel's original source if it is this user's, outside the dump, and has the same bytes
 * as the copy in the dump; its flags must be trusted, too. If there is none, *out_path is NULL and
 * `out_reason` says why. The caller frees *out_path.
 */
GBX_MUST_USE gbx_status gbx_trusted_source_find(const gbx_trust *trust,
                                                const gbx_kept_kernel *kernel, char **out_path,
                                                char out_reason[GBX_TRUST_REASON_BYTES]);

/*
 * Whether flags, separated by blanks, only choose how a source is compiled: levels, warnings, the
 * instruction set, some of -f; for link flags, system libraries. Other flags can name files and
 * plugins, or add code to a source (-D, -include). NULL is harmless.
 */
bool gbx_flags_are_harmless(const char *compile_flags, const char *link_flags);

/* --- the shared objects to run: kept by the run, or given by the user --- */

enum { GBX_REPLAY_KERNEL_FILES = 16 };

/* Values of --kernel: "FILE" or "NAME=FILE". */
typedef struct gbx_replay_kernel_files {
    const char *items[GBX_REPLAY_KERNEL_FILES];
    size_t count;
} gbx_replay_kernel_files;

typedef struct gbx_replay_kernels gbx_replay_kernels;

/* `kept` is NULL if the dump has no run.json. All is borrowed. */
GBX_MUST_USE gbx_status gbx_replay_kernels_create(const char *dump_directory,
                                                  const gbx_kept_run *kept, bool is_trusted,
                                                  const gbx_replay_kernel_files *files,
                                                  gbx_replay_kernels **out_kernels);
void gbx_replay_kernels_destroy(gbx_replay_kernels *kernels); /* takes NULL */

/*
 * The objects of a task's kernels, by subtask, or NULL; they live as long as `kernels`. Fails with
 * GBX_UNSUPPORTED if one is only found in the dump and --trust is not given, with GBX_BAD_KERNEL if
 * a file of --kernel does not compile, and with GBX_INVALID_ARGUMENT if --kernel names a kernel
 * that the task does not have.
 */
GBX_MUST_USE gbx_status gbx_replay_kernels_find(gbx_replay_kernels *kernels,
                                                const gbx_replay_task *task,
                                                const char *out_objects[GBX_SUBTASK_COUNT]);

/* Whether each file of --kernel is there and is for one kernel of the task; fails as above. */
GBX_MUST_USE gbx_status gbx_replay_kernels_check(const gbx_replay_kernels *kernels,
                                                 const gbx_replay_task *task);

/* A source of a kernel, to be compiled again. */
typedef struct gbx_replay_source {
    char *path;             /* absolute */
    char *compile_flags;    /* with what finds the files that it includes */
    const char *link_flags; /* NULL; borrowed from the dump, like the next two */
    const char *directory;  /* of paths in flags; NULL */
    const char *origin;     /* where `path` was at the time of the run; NULL: at `path` */
} gbx_replay_source;

/*
 * The source of one of a task's kernels: a file of --kernel, else the original source, else with
 * --trust the copy in the dump. Fails with GBX_NOT_FOUND if there is none, and with GBX_UNSUPPORTED
 * if it came with the dump and --trust is not given. The caller frees it after a success.
 */
GBX_MUST_USE gbx_status gbx_replay_source_find(const gbx_replay_kernels *kernels,
                                               const gbx_replay_task *task, size_t subtask,
                                               gbx_replay_source *out_source);
void gbx_replay_source_free(gbx_replay_source *source);

#endif
