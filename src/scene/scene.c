#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "scene/internal.h"

static const char *const scene_members[] = {
    "name", "description", "kernels", "orchestrations", "args", "cases", "golden",
};
static const char *const program_members[] = {"source", "entry"};

gbx_status gbx_field_text(const gbx_cursor *object, const char *name, const char **out_text) {
    gbx_cursor field;
    GBX_TRY(gbx_cursor_optional(object, name, &field));
    *out_text = NULL;
    return field.value ? gbx_cursor_string(&field, out_text) : NULL;
}

gbx_status gbx_field_tolerance(const gbx_cursor *object, const char *name, double *out_value) {
    gbx_cursor field;
    GBX_TRY(gbx_cursor_optional(object, name, &field));
    *out_value = -1.0;
    if (!field.value)
        return NULL;
    GBX_TRY(gbx_cursor_number(&field, out_value));
    if (*out_value >= 0.0)
        return NULL;
    return gbx_cursor_fail(&field, "expected a tolerance of 0 or more, got %g", *out_value);
}

gbx_status gbx_field_name(const gbx_cursor *field, const char **out_text) {
    GBX_TRY(gbx_cursor_string(field, out_text));
    if ((*out_text)[0])
        return NULL;
    return gbx_cursor_fail(field, "expected a name, got an empty string");
}

gbx_status gbx_field_file(const gbx_cursor *field, const gbx_scene *scene, char **out_path) {
    const char *given = NULL;
    GBX_TRY(gbx_field_name(field, &given));
    int length = given[0] == '/' ? asprintf(out_path, "%s", given)
                                 : asprintf(out_path, "%s/%s", scene->directory, given);
    if (length < 0) {
        *out_path = NULL;
        return gbx_fail_memory("reading %s", scene->path);
    }
    struct stat about;
    if (stat(*out_path, &about) != 0)
        return gbx_cursor_fail(field, "%s: %s", *out_path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return gbx_cursor_fail(field, "%s is not a regular file", *out_path);
    return NULL;
}

gbx_status gbx_field_allocate(size_t count, size_t size, const char *what, void *out_pointer) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        return gbx_fail_memory("reading %zu %s", count, what);
    memcpy(out_pointer, &memory, sizeof memory);
    return NULL;
}

gbx_status gbx_field_choice(const gbx_cursor *field, const gbx_name_set *set,
                            uint32_t *out_number) {
    const char *names[GBX_PARAMETER_COUNT];
    size_t number = 0;
    for (uint32_t i = 0; i < set->count; ++i)
        names[i] = gbx_name_brief(set, i);
    GBX_TRY(gbx_cursor_choice(field, names, set->count, &number));
    *out_number = (uint32_t)number;
    return NULL;
}

/* --- kernels --- */

static const char *const kernel_members[] = {
    "func_id",   "name", "source", "core",          "signature",  "arg_names",
    "reference", "rtol", "atol",   "compile_flags", "link_flags",
};

/* "in", "out:bfloat16[2]", "scalar:float32" */
static gbx_status read_parameter(const gbx_cursor *at, gbx_scene_parameter *out) {
    const char *text = NULL;
    uint32_t ignored;
    GBX_TRY(gbx_cursor_string(at, &text));
    const char *form = strchr(text, ':');
    switch (gbx_parameter_read(text, strlen(text), &out->is)) {
    case GBX_PARAMETER_OK:
        return NULL;
    case GBX_PARAMETER_DTYPE:
        return gbx_cursor_fail(at, "\"%s\": unknown dtype \"%.*s\"", text,
                               (int)strcspn(form + 1, "["), form + 1);
    case GBX_PARAMETER_RANK:
        return gbx_cursor_fail(
            at,
            "\"%s\": unknown rank; expected [0] to [%d] at the end of in, out or "
            "inout, as in in:float32[2] or in:[2]",
            text, GBX_MAX_DIMS);
    default:
        return gbx_field_choice(at, &gbx_parameters, &ignored); /* fails, and lists the words */
    }
}

static gbx_status check_counts(const gbx_cursor *at, const gbx_scene_kernel *kernel) {
    size_t scalars = 0;
    for (size_t i = 0; i < kernel->parameter_count; ++i)
        scalars += kernel->signature[i].is.kind == GBX_PARAMETER_SCALAR;
    if (scalars <= GBX_MAX_SCALAR_ARGS && kernel->parameter_count - scalars <= GBX_MAX_TENSOR_ARGS)
        return NULL;
    return gbx_cursor_fail(at, "%zu tensors and %zu scalars; at most %d and %d are possible",
                           kernel->parameter_count - scalars, scalars, GBX_MAX_TENSOR_ARGS,
                           GBX_MAX_SCALAR_ARGS);
}

static gbx_status read_signature(const gbx_cursor *kernel_at, gbx_scene_kernel *kernel) {
    gbx_cursor all;
    gbx_cursor one;
    size_t count = 0;
    GBX_TRY(gbx_cursor_member(kernel_at, "signature", &all));
    GBX_TRY(gbx_cursor_count(&all, &count));
    GBX_TRY(gbx_field_allocate(count, sizeof *kernel->signature, "parameters", &kernel->signature));
    kernel->parameter_count = count;
    for (size_t i = 0; i < count; ++i) {
        GBX_TRY(gbx_cursor_element(&all, i, &one));
        GBX_TRY(read_parameter(&one, &kernel->signature[i]));
    }
    return check_counts(&all, kernel);
}

static gbx_status read_arg_names(const gbx_cursor *kernel_at, gbx_scene_kernel *kernel) {
    gbx_cursor all;
    gbx_cursor one;
    size_t count = 0;
    GBX_TRY(gbx_cursor_optional(kernel_at, "arg_names", &all));
    if (!all.value)
        return NULL;
    GBX_TRY(gbx_cursor_count(&all, &count));
    if (count != kernel->parameter_count)
        return gbx_cursor_fail(&all, "%zu names; expected %zu, one for each word of the signature",
                               count, kernel->parameter_count);
    for (size_t i = 0; i < count; ++i) {
        GBX_TRY(gbx_cursor_element(&all, i, &one));
        GBX_TRY(gbx_field_name(&one, &kernel->signature[i].name));
    }
    return NULL;
}

static gbx_status read_identity(const gbx_cursor *at, gbx_scene_kernel *kernel) {
    gbx_cursor field;
    int64_t func_id = 0;
    uint32_t core = 0;
    GBX_TRY(gbx_cursor_member(at, "func_id", &field));
    GBX_TRY(gbx_cursor_integer(&field, 0, GBX_MAX_KERNELS - 1, &func_id));
    kernel->func_id = (uint32_t)func_id;
    GBX_TRY(gbx_cursor_member(at, "core", &field));
    GBX_TRY(gbx_field_choice(&field, &gbx_core_types, &core));
    kernel->core = (gbx_core_type)core;
    GBX_TRY(gbx_cursor_member(at, "name", &field));
    GBX_TRY(gbx_field_name(&field, &kernel->name));
    if (strlen(kernel->name) <= GBX_MAX_KERNEL_NAME)
        return NULL;
    return gbx_cursor_fail(&field, "a name of %zu bytes; at most %d are possible",
                           strlen(kernel->name), GBX_MAX_KERNEL_NAME);
}

static gbx_status read_kernel(const gbx_cursor *at, const gbx_scene *scene,
                              gbx_scene_kernel *kernel) {
    gbx_cursor field;
    GBX_TRY(gbx_cursor_only(at, kernel_members, GBX_COUNT_OF(kernel_members)));
    GBX_TRY(read_identity(at, kernel));
    GBX_TRY(gbx_cursor_member(at, "source", &field));
    GBX_TRY(gbx_field_file(&field, scene, &kernel->source));
    GBX_TRY(gbx_cursor_optional(at, "reference", &field));
    if (field.value)
        GBX_TRY(gbx_field_file(&field, scene, &kernel->reference));
    GBX_TRY(read_signature(at, kernel));
    GBX_TRY(read_arg_names(at, kernel));
    GBX_TRY(gbx_field_tolerance(at, "rtol", &kernel->rtol));
    GBX_TRY(gbx_field_tolerance(at, "atol", &kernel->atol));
    GBX_TRY(gbx_field_text(at, "compile_flags", &kernel->compile_flags));
    return gbx_field_text(at, "link_flags", &kernel->link_flags);
}

static gbx_status check_unique(const gbx_cursor *at, const gbx_scene_kernel *kernels, size_t last) {
    gbx_cursor field;
    for (size_t i = 0; i < last; ++i) {
        bool is_same_id = kernels[i].func_id == kernels[last].func_id;
        if (!is_same_id && strcmp(kernels[i].name, kernels[last].name) != 0)
            continue;
        GBX_TRY(gbx_cursor_member(at, is_same_id ? "func_id" : "name", &field));
        if (is_same_id)
            return gbx_cursor_fail(&field, "%u is already used by kernels[%zu]",
                                   kernels[last].func_id, i);
        return gbx_cursor_fail(&field, "\"%s\" is already used by kernels[%zu]", kernels[last].name,
                               i);
    }
    return NULL;
}

static gbx_status read_kernels(const gbx_cursor *root, gbx_scene *scene) {
    gbx_cursor all;
    gbx_cursor one;
    size_t count = 0;
    GBX_TRY(gbx_cursor_member(root, "kernels", &all));
    GBX_TRY(gbx_cursor_count(&all, &count));
    if (count == 0)
        return gbx_cursor_fail(&all, "expected at least one kernel");
    GBX_TRY(gbx_field_allocate(count, sizeof *scene->kernels, "kernels", &scene->kernels));
    scene->kernel_count = count;
    for (size_t i = 0; i < count; ++i) {
        GBX_TRY(gbx_cursor_element(&all, i, &one));
        GBX_TRY(read_kernel(&one, scene, &scene->kernels[i]));
        GBX_TRY(check_unique(&one, scene->kernels, i));
    }
    return NULL;
}

static void free_kernels(gbx_scene *scene) {
    for (size_t i = 0; i < scene->kernel_count; ++i) {
        free(scene->kernels[i].source);
        free(scene->kernels[i].reference);
        free(scene->kernels[i].signature);
    }
    free(scene->kernels);
}

/* --- programs --- */

static gbx_status read_program(const gbx_cursor *at, const gbx_scene *scene,
                               const char *default_entry, gbx_scene_program *out_program) {
    gbx_cursor source;
    GBX_TRY(gbx_cursor_only(at, program_members, GBX_COUNT_OF(program_members)));
    GBX_TRY(gbx_cursor_member(at, "source", &source));
    GBX_TRY(gbx_field_file(&source, scene, &out_program->source));
    GBX_TRY(gbx_field_text(at, "entry", &out_program->entry));
    if (!out_program->entry)
        out_program->entry = default_entry;
    return NULL;
}

static gbx_status read_orchestrations(const gbx_cursor *root, gbx_scene *scene) {
    const char *names[GBX_SCENE_MAX_RUNTIMES];
    uint32_t count = 0;
    while (count < GBX_SCENE_MAX_RUNTIMES && gbx_runtime_name(count)) {
        names[count] = gbx_runtime_name(count);
        ++count;
    }
    gbx_cursor all;
    GBX_TRY(gbx_cursor_member(root, "orchestrations", &all));
    GBX_TRY(gbx_cursor_only(&all, names, count));
    bool has_any = false;
    for (uint32_t i = 0; i < count; ++i) {
        gbx_cursor one;
        GBX_TRY(gbx_cursor_optional(&all, names[i], &one));
        if (!one.value)
            continue;
        has_any = true;
        GBX_TRY(read_program(&one, scene, "orchestrate", &scene->orchestrations[i]));
    }
    if (has_any)
        return NULL;
    return gbx_cursor_fail(&all, "expected at least one runtime");
}

/* The suffix says which language it is. */
static gbx_status read_golden(const gbx_cursor *root, gbx_scene *scene) {
    gbx_cursor golden;
    gbx_cursor source;
    GBX_TRY(gbx_cursor_optional(root, "golden", &golden));
    if (!golden.value)
        return NULL;
    GBX_TRY(read_program(&golden, scene, "golden", &scene->golden));
    GBX_TRY(gbx_cursor_member(&golden, "source", &source));
    const char *given = "";
    GBX_TRY(gbx_cursor_string(&source, &given));
    const char *suffix = strrchr(given, '.');
    if (suffix && (strcmp(suffix, ".c") == 0 || strcmp(suffix, ".py") == 0))
        return NULL;
    return gbx_cursor_fail(&source, "%s is neither a .c nor a .py file", given);
}

/* --- the file --- */

static gbx_status read_scene(gbx_scene *scene) {
    GBX_TRY(gbx_json_load(scene->path, GBX_SCENE_MAX_BYTES, &scene->document));
    gbx_cursor root = gbx_cursor_root(scene->document, scene->path);
    gbx_cursor name;
    GBX_TRY(gbx_cursor_only(&root, scene_members, GBX_COUNT_OF(scene_members)));
    GBX_TRY(gbx_cursor_member(&root, "name", &name));
    GBX_TRY(gbx_field_name(&name, &scene->name));
    GBX_TRY(gbx_field_text(&root, "description", &scene->description));
    GBX_TRY(read_kernels(&root, scene));
    GBX_TRY(read_orchestrations(&root, scene));
    GBX_TRY(gbx_scene_read_cases(&root, scene));
    return read_golden(&root, scene);
}

/* Finds scene.json, and the directory that it lies in. */
static gbx_status locate(const char *path, gbx_scene *scene) {
    struct stat about;
    if (stat(path, &about) != 0)
        return gbx_fail(errno == ENOENT ? GBX_NOT_FOUND : GBX_IO,
                        "cannot open %s: %s; expected a directory with a scene.json, or that file",
                        path, strerror(errno));
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        --length;
    const char *slash = memrchr(path, '/', length);
    if (S_ISDIR(about.st_mode))
        scene->directory = strndup(path, length);
    else
        scene->directory = slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
    if (S_ISDIR(about.st_mode) && scene->directory) {
        if (asprintf(&scene->path, "%s/scene.json", scene->directory) < 0)
            scene->path = NULL;
    } else {
        scene->path = strdup(path);
    }
    if (!scene->path || !scene->directory)
        return gbx_fail_memory("reading %s", path);
    return NULL;
}

gbx_status gbx_scene_load(const char *path, gbx_scene **out_scene) {
    gbx_scene *scene = NULL;
    *out_scene = NULL;
    GBX_TRY(gbx_field_allocate(1, sizeof *scene, "scene", &scene));
    gbx_status status = locate(path, scene);
    if (!status)
        status = read_scene(scene);
    if (status) {
        gbx_scene_free(scene);
        return status;
    }
    *out_scene = scene;
    return NULL;
}

void gbx_scene_free(gbx_scene *scene) {
    if (!scene)
        return;
    free_kernels(scene);
    gbx_scene_free_cases(scene);
    for (size_t i = 0; i < GBX_SCENE_MAX_RUNTIMES; ++i)
        free(scene->orchestrations[i].source);
    free(scene->golden.source);
    json_decref(scene->document);
    free(scene->directory);
    free(scene->path);
    free(scene);
}

const gbx_scene_case *gbx_scene_find_case(const gbx_scene *scene, const char *name) {
    for (size_t i = 0; i < scene->case_count; ++i)
        if (strcmp(scene->cases[i].name, name) == 0)
            return &scene->cases[i];
    return NULL;
}
