/*
 * A scene: the kernels, orchestrations, arguments, cases and golden of a scene.json. docs/scenes.md
 * is the reference of the file. Read once, then constant: any thread may use it.
 */
#ifndef GBX_SCENE_SCENE_H
#define GBX_SCENE_SCENE_H

#include <glassbox/chip.h>
#include <jansson.h>

#include "base/status.h"
#include "scene/fill.h"
#include "tensor/signature.h"

enum { GBX_SCENE_MAX_RUNTIMES = 8, GBX_SCENE_MAX_BYTES = 16 << 20 };

/* One argument of a kernel. */
typedef struct gbx_scene_parameter {
    gbx_parameter is;
    const char *name; /* NULL where the scene does not name it */
} gbx_scene_parameter;

typedef struct gbx_scene_kernel {
    uint32_t func_id;
    gbx_core_type core;
    const char *name;
    char *source;    /* all paths can be used from the working directory */
    char *reference; /* NULL when there is none */
    gbx_scene_parameter *signature;
    size_t parameter_count;
    double rtol; /* negative where the scene has none */
    double atol;
    const char *compile_flags; /* NULL when there are none */
    const char *link_flags;
} gbx_scene_kernel;

typedef struct gbx_scene_program {
    char *source; /* NULL: there is none */
    const char *entry;
} gbx_scene_program;

/* An argument of the orchestration, as one case has it. */
typedef struct gbx_scene_arg {
    const char *name;
    uint32_t role;     /* of gbx_parameters */
    gbx_tensor tensor; /* row-major, without data; for a scalar only dtype */
    gbx_fill fill;     /* for a scalar only value_bits */
    char *file;        /* owns fill.file */
    double rtol;       /* from the scene, else the default of the dtype */
    double atol;
} gbx_scene_arg;

typedef struct gbx_scene_case {
    const char *name;
    const char *description; /* NULL when there is none */
    gbx_scene_arg *args;     /* as many as the scene has, in its order */
} gbx_scene_case;

typedef struct gbx_scene {
    char *path;      /* of scene.json */
    char *directory; /* what its paths are relative to */
    json_t *document;
    const char *name;
    const char *description; /* NULL when there is none */
    gbx_scene_kernel *kernels;
    size_t kernel_count;
    gbx_scene_program orchestrations[GBX_SCENE_MAX_RUNTIMES]; /* by index of gbx_runtime_name */
    size_t arg_count;
    gbx_scene_case *cases;
    size_t case_count; /* 1 and up; the first is the default */
    gbx_scene_program golden;
} gbx_scene;

/*
 * Reads a scene from its directory or its scene.json. An error names the file, the field and what
 * was expected; a missing file that the scene names is an error, too. The caller frees the scene.
 */
GBX_MUST_USE gbx_status gbx_scene_load(const char *path, gbx_scene **out_scene);
void gbx_scene_free(gbx_scene *scene);

/* NULL when no case has that name. */
const gbx_scene_case *gbx_scene_find_case(const gbx_scene *scene, const char *name);

#endif
