#include "replay/trust/replay_trust.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "text/plain_text.h"
#include "toolchain/kernel_compiler.h"

enum { NAME_BYTES = 128, FLAGS_BYTES = 256 };

/* The result of an earlier search for a kernel. */
typedef struct found {
    uint32_t func_id;
    char *object;
    gbx_status refusal; /* why there is no object */
    struct found *next;
} found;

struct gbx_replay_kernels {
    gbx_trust trust;
    bool is_trusted;
    const gbx_replay_kernel_files *files;
    found *objects;
};

gbx_status gbx_replay_kernels_create(const char *dump_directory, const gbx_kept_run *kept,
                                     bool is_trusted, const gbx_replay_kernel_files *files,
                                     gbx_replay_kernels **out_kernels) {
    *out_kernels = malloc(sizeof **out_kernels);
    if (!*out_kernels)
        return gbx_fail_memory("finding kernels");
    **out_kernels = (gbx_replay_kernels){{dump_directory, kept}, is_trusted, files, NULL};
    return NULL;
}

void gbx_replay_kernels_destroy(gbx_replay_kernels *kernels) {
    while (kernels && kernels->objects) {
        found *first = kernels->objects;
        kernels->objects = first->next;
        free(first->object);
        gbx_status_free(first->refusal);
        free(first);
    }
    free(kernels);
}

static const found *find_known(const gbx_replay_kernels *kernels, uint32_t func_id) {
    for (const found *object = kernels->objects; object; object = object->next)
        if (object->func_id == func_id)
            return object;
    return NULL;
}

/* Text of the dump for a message, shortened to `capacity`. */
static const char *plain(const char *text, char *out_text, size_t capacity) {
    snprintf(out_text, capacity, "%s", text);
    gbx_text_make_plain(out_text);
    return out_text;
}

/* --- kept by the run --- */

static gbx_status fail_untrusted(const gbx_kept_kernel *kernel, const char *reason) {
    char name[NAME_BYTES];
    return gbx_fail(
        GBX_UNSUPPORTED,
        "replaying kernel %s would run %s, code that came with the dump: the same bytes "
        "are not in your kernel cache, and %s; if you trust the origin of the dump, "
        "give --trust to run it",
        plain(kernel->name, name, sizeof name), kernel->object, reason);
}

static gbx_status find_kept(const gbx_replay_kernels *kernels, const gbx_kept_kernel *kernel,
                            char **out_path) {
    char reason[GBX_TRUST_REASON_BYTES];
    *out_path = NULL;
    gbx_status status = gbx_kept_kernel_verify(kernel);
    if (status && kernel->object && gbx_status_code(status) == GBX_NOT_FOUND) {
        /* The dump has lost its copy, but the source may exist. */
        char name[NAME_BYTES];
        gbx_status loss = status;
        status = gbx_trusted_object_find(&kernels->trust, kernel, out_path, reason);
        if (!status && !*out_path)
            status = gbx_fail(
                GBX_NOT_FOUND, "%s, and %s; give its source or shared object with --kernel %s=FILE",
                gbx_status_message(loss), reason, plain(kernel->name, name, sizeof name));
        gbx_status_free(loss);
        return status;
    }
    GBX_TRY(status);
    if (kernels->is_trusted) {
        *out_path = realpath(kernel->object, NULL);
        return *out_path
                   ? NULL
                   : gbx_fail(GBX_NOT_FOUND, "kernel %s: %s", kernel->object, strerror(errno));
    }
    GBX_TRY(gbx_trusted_object_find(&kernels->trust, kernel, out_path, reason));
    return *out_path ? NULL : fail_untrusted(kernel, reason);
}

static const gbx_kept_kernel *kept_kernel(const gbx_replay_kernels *kernels, uint32_t func_id) {
    return kernels->trust.kept ? gbx_kept_run_kernel(kernels->trust.kept, func_id) : NULL;
}

/* --- given by the user --- */

static bool is_elf(const char *path) {
    char magic[SELFMAG];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is_so = fd >= 0 && read(fd, magic, SELFMAG) == SELFMAG && !memcmp(magic, ELFMAG, SELFMAG);
    if (fd >= 0)
        close(fd);
    return is_so;
}

/* Flags in the dump would become words of a command line. */
static gbx_status check_flags(const gbx_replay_kernels *kernels, const gbx_kept_kernel *kept) {
    char compile[FLAGS_BYTES], link[FLAGS_BYTES];
    if (!kept || kernels->is_trusted || gbx_trusted_flags(&kernels->trust, kept))
        return NULL;
    return gbx_fail(GBX_UNSUPPORTED,
                    "compiling kernel %s: its flags \"%s\" and \"%s\" came with the dump and could "
                    "do more than compile; give --trust to use them",
                    kept->name,
                    plain(kept->compile_flags ? kept->compile_flags : "", compile, sizeof compile),
                    plain(kept->link_flags ? kept->link_flags : "", link, sizeof link));
}

/* Those of the run, for a file in another place than the source, which may still include the
 * source's neighbours; NULL if out of memory. The caller frees them. */
static char *flags_of(const gbx_replay_kernels *kernels, const gbx_kept_kernel *kept) {
    char *directory = kept ? gbx_trusted_source_directory(&kernels->trust, kept) : NULL;
    const char *own = kept && kept->compile_flags ? kept->compile_flags : "";
    char *flags;
    int length =
        directory ? asprintf(&flags, "%s -iquote %s", own, directory) : asprintf(&flags, "%s", own);
    free(directory);
    return length < 0 ? NULL : flags;
}

static gbx_status find_given(const gbx_replay_kernels *kernels, uint32_t func_id, const char *file,
                             char **out_path) {
    const gbx_kept_kernel *kept = kept_kernel(kernels, func_id);
    *out_path = NULL;
    if (access(file, R_OK) != 0)
        return gbx_fail(GBX_NOT_FOUND, "--kernel: reading %s: %s", file, strerror(errno));
    if (is_elf(file)) {
        *out_path = realpath(file, NULL);
        return *out_path ? NULL : gbx_fail(GBX_IO, "--kernel %s: %s", file, strerror(errno));
    }
    GBX_TRY(check_flags(kernels, kept));
    char *flags = flags_of(kernels, kept);
    if (!flags)
        return gbx_fail_memory("compiling %s", file);
    gbx_status status = gbx_kernel_compile_in(gbx_flags_directory(&kernels->trust), file, flags,
                                              kept ? kept->link_flags : NULL, out_path);
    free(flags);
    return status;
}

static bool has_one_kernel(const gbx_replay_task *task) {
    uint32_t only = UINT32_MAX;
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        if (task->func_ids[i] == UINT32_MAX)
            continue;
        if (only != UINT32_MAX && only != task->func_ids[i])
            return false;
        only = task->func_ids[i];
    }
    return true;
}

/* The file of "NAME=FILE" if NAME is the kernel's, else NULL. */
static const char *file_of(const char *item, const char *name) {
    if (!item || !name || !name[0])
        return NULL;
    size_t length = strlen(name);
    return strncmp(item, name, length) == 0 && item[length] == '=' ? item + length + 1 : NULL;
}

static bool names_kernel(const char *item, const gbx_replay_task *task) {
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i)
        if (file_of(item, task->kernel_names[i]))
            return true;
    return false;
}

/* The file that an item of --kernel, with or without name, gives for a kernel, or NULL. */
static const char *file_for(const char *item, const gbx_replay_task *task, const char *name) {
    return names_kernel(item, task) ? file_of(item, name) : item;
}

/* The file that --kernel gives for a kernel of a task, or NULL. */
static const char *given_file(const gbx_replay_kernels *kernels, const gbx_replay_task *task,
                              size_t subtask) {
    const char *found_file = NULL;
    for (size_t i = 0; i < kernels->files->count; ++i) {
        const char *file = file_for(kernels->files->items[i], task, task->kernel_names[subtask]);
        found_file = file ? file : found_file;
    }
    return found_file;
}

/* Refuses two files for the same kernel. */
static gbx_status check_twice(const gbx_replay_kernel_files *files, const gbx_replay_task *task,
                              size_t last) {
    for (size_t first = 0; first < last; ++first)
        for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i) {
            const char *name = task->kernel_names[i];
            if (name && file_for(files->items[first], task, name) &&
                file_for(files->items[last], task, name))
                return gbx_fail(GBX_INVALID_ARGUMENT,
                                "--kernel %s and --kernel %s replace the same kernel; give one",
                                files->items[first], files->items[last]);
        }
    return NULL;
}

/* --- both --- */

static gbx_status find_object(gbx_replay_kernels *kernels, const gbx_replay_task *task,
                              size_t subtask) {
    uint32_t func_id = task->func_ids[subtask];
    const char *file = given_file(kernels, task, subtask);
    const gbx_kept_kernel *kept = kept_kernel(kernels, func_id);
    char *path = NULL;
    gbx_status refusal;
    if (file) {
        refusal = find_given(kernels, func_id, file, &path);
    } else if (kept) {
        refusal = find_kept(kernels, kept, &path);
    } else {
        char text[NAME_BYTES];
        refusal =
            gbx_fail(GBX_NOT_FOUND,
                     "replaying kernel %s: the dump has %s; give its source or shared object with "
                     "--kernel %s=FILE",
                     plain(task->kernel_names[subtask], text, sizeof text),
                     kernels->trust.kept ? "no copy of it in run.json"
                                         : "no run.json with copies of its kernels",
                     text);
    }
    found *object = malloc(sizeof *object);
    if (!object) {
        free(path);
        return gbx_status_first(refusal, gbx_fail_memory("finding kernels"));
    }
    *object = (found){func_id, path, refusal, kernels->objects};
    kernels->objects = object;
    return NULL;
}

gbx_status gbx_replay_kernels_check(const gbx_replay_kernels *kernels,
                                    const gbx_replay_task *task) {
    char title[GBX_REPLAY_TITLE_BYTES], text[GBX_REPLAY_TITLE_BYTES];
    bool is_one = has_one_kernel(task);
    for (size_t i = 0; i < kernels->files->count; ++i) {
        const char *item = kernels->files->items[i];
        GBX_TRY(check_twice(kernels->files, task, i));
        if (names_kernel(item, task) || (is_one && access(item, F_OK) == 0))
            continue;
        plain(gbx_replay_task_title(task, title), text, sizeof text);
        if (is_one && !strchr(item, '='))
            return gbx_fail(GBX_NOT_FOUND, "--kernel: reading %s: %s", item, strerror(errno));
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "--kernel %s: expected NAME=FILE, where NAME is a kernel of the task (%s)",
                        item, text);
    }
    return NULL;
}

gbx_status gbx_replay_kernels_find(gbx_replay_kernels *kernels, const gbx_replay_task *task,
                                   const char *out_objects[GBX_SUBTASK_COUNT]) {
    GBX_TRY(gbx_replay_kernels_check(kernels, task));
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        out_objects[i] = NULL;
        if (task->func_ids[i] == UINT32_MAX)
            continue;
        if (!find_known(kernels, task->func_ids[i]))
            GBX_TRY(find_object(kernels, task, i));
        const found *known = find_known(kernels, task->func_ids[i]);
        if (known->refusal)
            return gbx_fail(gbx_status_code(known->refusal), "%s",
                            gbx_status_message(known->refusal));
        out_objects[i] = known->object;
    }
    return NULL;
}

/* --- sources --- */

static gbx_status find_kept_source(const gbx_replay_kernels *kernels, const gbx_kept_kernel *kept,
                                   const char *name, gbx_replay_source *source) {
    char reason[GBX_TRUST_REASON_BYTES];
    if (!kept || !kept->source)
        return gbx_fail(GBX_NOT_FOUND, "the dump has no source of kernel %s", name);
    if (access(kept->source, F_OK) != 0)
        return gbx_fail(GBX_NOT_FOUND,
                        "the dump has lost its copy of the source of kernel %s, %s: %s", name,
                        kept->source, strerror(errno));
    GBX_TRY(gbx_trusted_source_find(&kernels->trust, kept, &source->path, reason));
    if (source->path)
        return NULL;
    if (!kernels->is_trusted)
        return gbx_fail(GBX_UNSUPPORTED,
                        "the source of kernel %s came with the dump, and %s; if you trust the "
                        "origin of the dump, give --trust to compile and run it",
                        name, reason);
    source->path = realpath(kept->source, NULL);
    source->origin = kept->origin;
    return source->path ? NULL
                        : gbx_fail(GBX_NOT_FOUND, "reading the source of kernel %s: %s: %s", name,
                                   kept->source, strerror(errno));
}

static gbx_status find_given_source(const gbx_replay_kernels *kernels, const gbx_kept_kernel *kept,
                                    const char *file, gbx_replay_source *source) {
    if (is_elf(file))
        return gbx_fail(GBX_NOT_FOUND, "--kernel %s is a shared object, not a source", file);
    GBX_TRY(check_flags(kernels, kept));
    source->path = realpath(file, NULL);
    return source->path
               ? NULL
               : gbx_fail(GBX_NOT_FOUND, "--kernel: reading %s: %s", file, strerror(errno));
}

gbx_status gbx_replay_source_find(const gbx_replay_kernels *kernels, const gbx_replay_task *task,
                                  size_t subtask, gbx_replay_source *out_source) {
    char name[NAME_BYTES];
    const gbx_kept_kernel *kept = kept_kernel(kernels, task->func_ids[subtask]);
    const char *file = given_file(kernels, task, subtask);
    plain(task->kernel_names[subtask], name, sizeof name);
    *out_source = (gbx_replay_source){.link_flags = kept ? kept->link_flags : NULL,
                                      .directory = gbx_flags_directory(&kernels->trust)};
    gbx_status status = file ? find_given_source(kernels, kept, file, out_source)
                             : find_kept_source(kernels, kept, name, out_source);
    if (!status) {
        out_source->compile_flags = flags_of(kernels, kept);
        if (!out_source->compile_flags)
            status = gbx_fail_memory("finding the source of kernel %s", name);
    }
    if (status)
        gbx_replay_source_free(out_source);
    return status;
}

void gbx_replay_source_free(gbx_replay_source *source) {
    free(source->path);
    free(source->compile_flags);
    *source = (gbx_replay_source){0};
}
