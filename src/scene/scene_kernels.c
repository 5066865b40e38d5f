#include <stdlib.h>
#include <string.h>

#include "scene/scene_fields.h"

static const char *const kernel_members[] = {
    "func_id",   "name", "source", "core",          "signature",  "arg_names",
    "reference", "rtol", "atol",   "compile_flags", "link_flags",
};
static const char *const core_names[] = {"aic", "aiv"};

/* "in", "out", "inout", "scalar" or "scalar:float32" */
static gbx_status read_parameter(const gbx_cursor *at, gbx_scene_parameter *out) {
    static const char prefix[] = "scalar:";
    const char *text = NULL;
    size_t role = 0;
    GBX_TRY(gbx_cursor_string(at, &text));
    if (strncmp(text, prefix, sizeof prefix - 1) == 0) {
        out->role = GBX_SCENE_SCALAR;
        out->dtype = gbx_dtype_parse(text + sizeof prefix - 1);
        if (out->dtype != GBX_DTYPE_NONE)
            return NULL;
        return gbx_cursor_fail(at, "\"%s\": \"%s\" is no dtype", text, text + sizeof prefix - 1);
    }
    GBX_TRY(gbx_cursor_choice(at, gbx_scene_role_names, 4, &role));
    out->role = (gbx_scene_role)role;
    return NULL;
}

static gbx_status check_counts(const gbx_cursor *at, const gbx_scene_kernel *kernel) {
    size_t scalars = 0;
    for (size_t i = 0; i < kernel->parameter_count; ++i)
        scalars += kernel->signature[i].role == GBX_SCENE_SCALAR;
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
        return gbx_cursor_fail(&all, "%zu names; %zu are expected, one for each of the signature",
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
    size_t core = 0;
    GBX_TRY(gbx_cursor_member(at, "func_id", &field));
    GBX_TRY(gbx_cursor_integer(&field, 0, GBX_MAX_KERNELS - 1, &func_id));
    kernel->func_id = (uint32_t)func_id;
    GBX_TRY(gbx_cursor_member(at, "core", &field));
    GBX_TRY(gbx_cursor_choice(&field, core_names, GBX_COUNT_OF(core_names), &core));
    kernel->core = core == 0 ? GBX_CORE_AIC : GBX_CORE_AIV;
    GBX_TRY(gbx_cursor_member(at, "name", &field));
    GBX_TRY(gbx_field_name(&field, &kernel->name));
    if (strlen(kernel->name) <= GBX_MAX_KERNEL_NAME)
        return NULL;
    return gbx_cursor_fail(&field, "%zu bytes; a name of at most %d is expected",
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
            return gbx_cursor_fail(&field, "%u is that of kernels[%zu] already",
                                   kernels[last].func_id, i);
        return gbx_cursor_fail(&field, "\"%s\" is that of kernels[%zu] already", kernels[last].name,
                               i);
    }
    return NULL;
}

gbx_status gbx_scene_read_kernels(const gbx_cursor *root, gbx_scene *scene) {
    gbx_cursor all;
    gbx_cursor one;
    size_t count = 0;
    GBX_TRY(gbx_cursor_member(root, "kernels", &all));
    GBX_TRY(gbx_cursor_count(&all, &count));
    if (count == 0)
        return gbx_cursor_fail(&all, "there is none; at least one kernel is expected");
    GBX_TRY(gbx_field_allocate(count, sizeof *scene->kernels, "kernels", &scene->kernels));
    scene->kernel_count = count;
    for (size_t i = 0; i < count; ++i) {
        GBX_TRY(gbx_cursor_element(&all, i, &one));
        GBX_TRY(read_kernel(&one, scene, &scene->kernels[i]));
        GBX_TRY(check_unique(&one, scene->kernels, i));
    }
    return NULL;
}

void gbx_scene_free_kernels(gbx_scene *scene) {
    for (size_t i = 0; i < scene->kernel_count; ++i) {
        free(scene->kernels[i].source);
        free(scene->kernels[i].reference);
        free(scene->kernels[i].signature);
    }
    free(scene->kernels);
}
