/* The reference kernels of the scene that a dump was made with, compiled. */
#ifndef GBX_REPLAY_CHECK_REFERENCES_H
#define GBX_REPLAY_CHECK_REFERENCES_H

#include "replay/check/check.h"
#include "scene/scene.h"
#include "store/run/kept_run.h"

typedef struct gbx_references {
    gbx_scene *scene;
    gbx_check_reference *items; /* one for each kernel of the scene */
    char **objects;
    size_t count;
} gbx_references;

/* What stands in the way of using a scene. */
typedef enum gbx_scene_trouble {
    GBX_SCENE_USABLE = 0,
    GBX_SCENE_UNKNOWN = 1, /* run.json does not tell where it is, or it is gone */
    GBX_SCENE_FOREIGN =
        2,               /* it lies in the dump, or others can write it: the user has to name it */
    GBX_SCENE_OTHER = 3, /* it is not that of the dump */
    GBX_SCENE_CHANGED = 4, /* it was, and its kernels have other arguments now */
    GBX_SCENE_BROKEN = 5   /* it cannot be read, or a reference does not compile */
} gbx_scene_trouble;

/*
 * `scene` is what the user named, NULL: where run.json says that the scene was (`kept` may be NULL,
 * where there is no run.json). Fails with one sentence where there is none, where it is not the
 * scene of the dump (its kernels have other names or signatures at the same func_id, or none of its
 * kernels is one of the dump's), or where a reference does not compile. A scene that lies inside of
 * the dump, or that others can write, is used only when the user names it. *out_trouble tells which
 * of it was so; what to do about it, the caller adds to the sentence.
 *
 * References are compiled with the flags of their kernels, which headers and macros that both use
 * may need, but always with exact arithmetic: flags that loosen it are taken back.
 */
GBX_MUST_USE gbx_status gbx_references_open(const char *scene, const char *dump_directory,
                                            const gbx_kept_run *kept, const gbx_run_info *run,
                                            gbx_references **out_references,
                                            gbx_scene_trouble *out_trouble);
void gbx_references_close(gbx_references *references); /* takes NULL */

#endif
