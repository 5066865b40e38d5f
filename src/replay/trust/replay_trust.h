/*
 * Shared objects of a dump are code, and a dump may come from anybody. What a dump keeps is run
 * without asking only when the same bytes are found outside of it, where this user's own runs left
 * them.
 */
#ifndef GBX_REPLAY_TRUST_REPLAY_TRUST_H
#define GBX_REPLAY_TRUST_REPLAY_TRUST_H

#include <stdbool.h>

#include "base/status.h"
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

/* --- replay_flags.c --- */

/*
 * Whether flags, by blanks, only choose how a source is translated: levels, warnings, the
 * instruction set, some of -f; of link flags, libraries of the system. Others can name files and
 * plugins, or bring code of their own into a source (-D, -include). NULL is harmless.
 */
bool gbx_flags_are_harmless(const char *compile_flags, const char *link_flags);

#endif
