#include "replay/check/check.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "replay/internal.h"
#include "replay/trust/replay_trust.h"
#include "tensor/signature.h"
#include "toolchain/kernel_compiler.h"

enum { THREADS_MAX = 8 };

/* Come after the flags of a kernel, and override them. */
static const char exact_flags[] = "-fno-fast-math -ffp-contract=off";

/* --- finding the scene --- */

static gbx_status find_scene(const char *dump_directory, const gbx_kept_run *kept,
                             const char **out_path, gbx_scene_trouble *trouble) {
    *trouble = GBX_SCENE_UNKNOWN;
    if (!kept)
        return gbx_fail(GBX_NOT_FOUND, "%s has no run.json that names its scene", dump_directory);
    /* A run writes an absolute path; any other would depend on the current directory. */
    if (!kept->scene_path || kept->scene_path[0] != '/')
        return gbx_fail(GBX_NOT_FOUND, "%s does not have the absolute path of the scene",
                        kept->path);
    if (access(kept->scene_path, F_OK) != 0)
        return gbx_fail(GBX_NOT_FOUND, "the scene of the dump, %s, no longer exists",
                        kept->scene_path);
    *trouble = GBX_SCENE_FOREIGN;
    if (gbx_scene_is_foreign(&(gbx_trust){dump_directory, kept}))
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "not running the references of %s: the scene or a reference lies inside "
                        "the dump, belongs to another user, or is writable by everyone",
                        kept->scene_path);
    *trouble = GBX_SCENE_USABLE;
    *out_path = kept->scene_path;
    return NULL;
}

/* --- whether it is the scene of the dump --- */

/* Whether an argument is declared as this kind; a word of another tool may mean any. */
static bool has_kind(const char *declared, uint32_t kind) {
    uint32_t own = gbx_parameter_kind(declared);
    return own == GBX_PARAMETER_COUNT || own == kind;
}

/* Whether a kernel is declared with the same arguments, or one of both has no signature. */
static bool has_signature(const gbx_scene_kernel *own, const gbx_run_kernel *kernel) {
    if (own->parameter_count == 0 || kernel->signature_count == 0)
        return true;
    if (own->parameter_count != kernel->signature_count)
        return false;
    for (size_t i = 0; i < own->parameter_count; ++i)
        if (!has_kind(kernel->signature[i], own->signature[i].is.kind))
            return false;
    return true;
}

static gbx_status match_kernel(const gbx_scene *scene, const gbx_scene_kernel *own,
                               const gbx_run_kernel *kernel, gbx_scene_trouble *trouble) {
    *trouble = GBX_SCENE_OTHER;
    if (strcmp(own->name, kernel->name) != 0)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "%s is not the scene of the dump: func_id %" PRIu32
                        " is kernel %s there but %s in the dump",
                        scene->path, kernel->func_id, own->name, kernel->name);
    *trouble = GBX_SCENE_CHANGED;
    if (!has_signature(own, kernel))
        return gbx_fail(
            GBX_INVALID_ARGUMENT,
            "%s has changed since the run: kernel %s has another signature in the dump, "
            "so its reference expects other arguments",
            scene->path, own->name);
    *trouble = GBX_SCENE_USABLE;
    return NULL;
}

static gbx_status match_scene(const gbx_scene *scene, const gbx_run_info *run,
                              gbx_scene_trouble *trouble) {
    size_t found = 0;
    for (size_t i = 0; i < run->kernel_count; ++i) {
        const gbx_run_kernel *kernel = &run->kernels[i];
        const gbx_scene_kernel *own = NULL;
        for (size_t k = 0; !own && k < scene->kernel_count; ++k)
            if (scene->kernels[k].func_id == kernel->func_id)
                own = &scene->kernels[k];
        if (own)
            GBX_TRY(match_kernel(scene, own, kernel, trouble));
        found += own != NULL;
    }
    if (run->kernel_count == 0 || found > 0)
        return NULL;
    *trouble = GBX_SCENE_OTHER;
    return gbx_fail(GBX_INVALID_ARGUMENT,
                    "%s is not the scene of the dump: it has none of the dump's %zu kernels",
                    scene->path, run->kernel_count);
}

/* --- compiling --- */

/* Shared by the threads that compile kernels. */
typedef struct work {
    gbx_references *references;
    pthread_mutex_t lock; /* protects the rest */
    size_t next;
    size_t failed; /* the kernel of `status` */
    gbx_status status;
} work;

/* NULL when memory is out. */
static char *make_exact(const char *flags) {
    char *text;
    return asprintf(&text, "%s %s", flags ? flags : "", exact_flags) < 0 ? NULL : text;
}

static gbx_status compile(const gbx_scene *scene, const gbx_scene_kernel *kernel, char **out_path) {
    if (!kernel->reference)
        return NULL;
    char *flags = make_exact(kernel->compile_flags);
    char *link_flags = make_exact(kernel->link_flags);
    gbx_status status = flags && link_flags
                            ? gbx_kernel_compile_in(scene->directory, kernel->reference, flags,
                                                    link_flags, out_path)
                            : gbx_fail_memory("compiling references");
    free(flags);
    free(link_flags);
    return status ? gbx_status_annotate(status, "the reference of kernel %s", kernel->name) : NULL;
}

static void *compile_some(void *context) {
    work *w = context;
    for (;;) {
        pthread_mutex_lock(&w->lock);
        size_t number = w->next++;
        pthread_mutex_unlock(&w->lock);
        if (number >= w->references->count)
            return NULL;
        const gbx_scene *scene = w->references->scene;
        gbx_status status =
            compile(scene, &scene->kernels[number], &w->references->objects[number]);
        if (status) {
            /* If several fail, the first kernel counts, whatever the order of completion. */
            pthread_mutex_lock(&w->lock);
            if (!w->status || number < w->failed) {
                gbx_status_free(w->status);
                w->status = status;
                w->failed = number;
                status = NULL;
            }
            pthread_mutex_unlock(&w->lock);
            gbx_status_free(status);
        }
    }
}

/* This thread works too. */
static gbx_status compile_all(gbx_references *references) {
    work w = {.references = references, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[THREADS_MAX - 1];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t wanted = processors > 1 ? (size_t)processors - 1 : 0;
    size_t started = 0;
    wanted = wanted < THREADS_MAX - 1 ? wanted : THREADS_MAX - 1;
    while (started < wanted && started + 1 < references->count &&
           pthread_create(&threads[started], NULL, compile_some, &w) == 0)
        ++started;
    compile_some(&w);
    for (size_t i = 0; i < started; ++i)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&w.lock);
    return w.status;
}

/* --- opening --- */

static gbx_status open_scene(const char *path, const gbx_run_info *run, gbx_references *references,
                             gbx_scene_trouble *trouble) {
    *trouble = GBX_SCENE_BROKEN;
    GBX_TRY(gbx_scene_load(path, &references->scene));
    *trouble = GBX_SCENE_USABLE;
    GBX_TRY(match_scene(references->scene, run, trouble));
    *trouble = GBX_SCENE_BROKEN;
    const gbx_scene *scene = references->scene;
    references->items = calloc(scene->kernel_count + 1, sizeof *references->items);
    references->objects = calloc(scene->kernel_count + 1, sizeof *references->objects);
    if (!references->items || !references->objects)
        return gbx_fail_memory("compiling references");
    references->count = scene->kernel_count;
    GBX_TRY(compile_all(references));
    for (size_t i = 0; i < references->count; ++i)
        references->items[i] = (gbx_check_reference){.func_id = scene->kernels[i].func_id,
                                                     .object = references->objects[i],
                                                     .rtol = scene->kernels[i].rtol,
                                                     .atol = scene->kernels[i].atol};
    *trouble = GBX_SCENE_USABLE;
    return NULL;
}

gbx_status gbx_references_open(const char *scene, const char *dump_directory,
                               const gbx_kept_run *kept, const gbx_run_info *run,
                               gbx_references **out_references, gbx_scene_trouble *out_trouble) {
    const char *path = scene;
    *out_references = NULL;
    *out_trouble = GBX_SCENE_USABLE;
    if (!path)
        GBX_TRY(find_scene(dump_directory, kept, &path, out_trouble));
    gbx_references *references = calloc(1, sizeof *references);
    if (!references)
        return gbx_fail_memory("compiling references");
    gbx_status status = open_scene(path, run, references, out_trouble);
    if (status)
        gbx_references_close(references);
    else
        *out_references = references;
    return status;
}

void gbx_references_close(gbx_references *references) {
    if (!references)
        return;
    for (size_t i = 0; references->objects && i < references->count; ++i)
        free(references->objects[i]);
    free(references->objects);
    free(references->items);
    if (references->scene)
        gbx_scene_free(references->scene);
    free(references);
}
