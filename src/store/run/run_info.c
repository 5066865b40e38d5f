#include "store/run/run_info.h"

#include <stdlib.h>
#include <string.h>

#include <glassbox/chip.h>
#include <glassbox/tensor.h>

#include "text/json_reader.h"

static const char *const signature_words[] = {"in", "inout", "out"};

static gbx_status get_string(const gbx_cursor *object, const char *name, const char **out_text) {
    gbx_cursor member;
    GBX_TRY(gbx_cursor_member(object, name, &member));
    return gbx_cursor_string(&member, out_text);
}

/* A string that has to be there, but may be null. */
static gbx_status get_string_or_null(const gbx_cursor *object, const char *name,
                                     const char **out_text) {
    gbx_cursor member;
    GBX_TRY(gbx_cursor_member(object, name, &member));
    return json_is_null(member.value) ? NULL : gbx_cursor_string(&member, out_text);
}

static gbx_status get_optional_string(const gbx_cursor *object, const char *name,
                                      const char **out_text) {
    gbx_cursor member;
    GBX_TRY(gbx_cursor_optional(object, name, &member));
    return member.value ? gbx_cursor_string(&member, out_text) : NULL;
}

static gbx_status get_optional_integer(const gbx_cursor *object, const char *name, int64_t max,
                                       int64_t *out_value) {
    gbx_cursor member;
    GBX_TRY(gbx_cursor_optional(object, name, &member));
    return member.value ? gbx_cursor_integer(&member, 0, max, out_value) : NULL;
}

static gbx_status get_optional_bool(const gbx_cursor *object, const char *name, bool *out_value) {
    gbx_cursor member;
    GBX_TRY(gbx_cursor_optional(object, name, &member));
    return member.value ? gbx_cursor_bool(&member, out_value) : NULL;
}

/* An array that may be absent, with a zeroed element of `size` bytes for each of its own. */
static gbx_status get_array(const gbx_cursor *object, const char *name, size_t size,
                            gbx_cursor *out_array, size_t *out_count, void *out_elements) {
    GBX_TRY(gbx_cursor_optional(object, name, out_array));
    if (!out_array->value)
        return NULL;
    size_t count = 0;
    GBX_TRY(gbx_cursor_count(out_array, &count));
    void *elements = calloc(count + 1, size);
    if (!elements)
        return gbx_fail(GBX_EXHAUSTED, "no memory for the %zu elements of %s", count, name);
    memcpy(out_elements, &elements, sizeof elements);
    *out_count = count;
    return NULL;
}

static gbx_status get_run(const gbx_cursor *root, gbx_run_info *info) {
    gbx_cursor run;
    GBX_TRY(gbx_cursor_member(root, "run", &run));
    GBX_TRY(get_optional_string(&run, "run_id", &info->run_id));
    GBX_TRY(get_optional_string(&run, "scene", &info->scene));
    GBX_TRY(get_optional_string(&run, "case", &info->case_name));
    GBX_TRY(get_optional_string(&run, "platform", &info->platform));
    GBX_TRY(get_optional_string(&run, "runtime", &info->runtime));
    GBX_TRY(get_optional_string(&run, "started_at", &info->started_at));
    GBX_TRY(get_optional_integer(&run, "rank", UINT32_MAX, &info->rank));
    return get_optional_integer(&run, "round", UINT32_MAX, &info->round);
}

static bool is_signature_word(const char *text) {
    for (size_t i = 0; i < sizeof signature_words / sizeof signature_words[0]; ++i)
        if (strcmp(text, signature_words[i]) == 0)
            return true;
    return false;
}

static bool is_scalar(const char *text) {
    static const char declared[] = "scalar:";
    size_t size = sizeof declared - 1;
    return strcmp(text, "scalar") == 0 ||
           (strncmp(text, declared, size) == 0 && gbx_dtype_parse(text + size) != GBX_DTYPE_NONE);
}

static gbx_status get_signature(const gbx_cursor *object, gbx_run_kernel *kernel) {
    gbx_cursor array;
    GBX_TRY(gbx_cursor_optional(object, "signature", &array));
    if (!array.value)
        return NULL;
    GBX_TRY(gbx_cursor_count(&array, &kernel->signature_count));
    if (kernel->signature_count > GBX_RUN_KERNEL_SLOTS)
        return gbx_cursor_fail(&array, "has %zu arguments, more than %d", kernel->signature_count,
                               GBX_RUN_KERNEL_SLOTS);
    for (size_t i = 0; i < kernel->signature_count; ++i) {
        gbx_cursor word;
        GBX_TRY(gbx_cursor_element(&array, i, &word));
        GBX_TRY(gbx_cursor_string(&word, &kernel->signature[i]));
        if (!is_signature_word(kernel->signature[i]) && !is_scalar(kernel->signature[i]))
            return gbx_cursor_fail(&word, "is none of in, inout, out, scalar, scalar:DTYPE");
    }
    return NULL;
}

/* Names come in the order of the signature; slots have tensors first, then scalars. */
static gbx_status get_slot_names(const gbx_cursor *object, gbx_run_kernel *kernel) {
    gbx_cursor array;
    GBX_TRY(gbx_cursor_optional(object, "arg_names", &array));
    if (!array.value)
        return NULL;
    size_t count = 0;
    GBX_TRY(gbx_cursor_count(&array, &count));
    if (count > kernel->signature_count)
        return gbx_cursor_fail(&array, "has %zu names for a signature of %zu", count,
                               kernel->signature_count);
    size_t scalar_slot = 0;
    for (size_t i = 0; i < kernel->signature_count; ++i)
        scalar_slot += !is_scalar(kernel->signature[i]);
    size_t tensor_slot = 0;
    for (size_t i = 0; i < count; ++i) {
        size_t slot = is_scalar(kernel->signature[i]) ? scalar_slot++ : tensor_slot++;
        gbx_cursor name;
        GBX_TRY(gbx_cursor_element(&array, i, &name));
        if (!json_is_null(name.value))
            GBX_TRY(gbx_cursor_string(&name, &kernel->slot_names[slot]));
    }
    return NULL;
}

/* What a manifest tells entry by entry; no run writes this. */
static gbx_status get_names_by_slot(const gbx_cursor *object, gbx_run_kernel *kernel) {
    gbx_cursor array;
    GBX_TRY(gbx_cursor_optional(object, "slot_names", &array));
    if (!array.value)
        return NULL;
    size_t count = 0;
    GBX_TRY(gbx_cursor_count(&array, &count));
    if (count > GBX_RUN_KERNEL_SLOTS)
        return gbx_cursor_fail(&array, "has %zu names, more than %d", count, GBX_RUN_KERNEL_SLOTS);
    for (size_t i = 0; i < count; ++i) {
        gbx_cursor name;
        GBX_TRY(gbx_cursor_element(&array, i, &name));
        if (!json_is_null(name.value))
            GBX_TRY(gbx_cursor_string(&name, &kernel->slot_names[i]));
    }
    return NULL;
}

static gbx_status get_kernel(const gbx_cursor *object, gbx_run_kernel *kernel) {
    static const char *const core_types[] = {"aic", "aiv"};
    gbx_cursor func_id;
    gbx_cursor core_type;
    int64_t number = 0;
    size_t choice = 0;
    GBX_TRY(gbx_cursor_member(object, "func_id", &func_id));
    GBX_TRY(gbx_cursor_integer(&func_id, 0, GBX_MAX_KERNELS - 1, &number));
    kernel->func_id = (uint32_t)number;
    GBX_TRY(get_string(object, "name", &kernel->name));
    GBX_TRY(gbx_cursor_member(object, "core_type", &core_type));
    if (!json_is_null(core_type.value)) {
        GBX_TRY(gbx_cursor_choice(&core_type, core_types, sizeof core_types / sizeof core_types[0],
                                  &choice));
        kernel->core_type = core_types[choice];
    }
    GBX_TRY(get_signature(object, kernel));
    GBX_TRY(get_slot_names(object, kernel));
    return get_names_by_slot(object, kernel);
}

static gbx_status get_kernels(const gbx_cursor *root, gbx_run_info *info) {
    gbx_cursor array;
    GBX_TRY(get_array(root, "kernels", sizeof *info->kernels, &array, &info->kernel_count,
                      &info->kernels));
    if (info->kernel_count > GBX_MAX_KERNELS)
        return gbx_cursor_fail(&array, "has %zu kernels, more than %d", info->kernel_count,
                               GBX_MAX_KERNELS);
    for (size_t i = 0; i < info->kernel_count; ++i) {
        gbx_cursor kernel;
        GBX_TRY(gbx_cursor_element(&array, i, &kernel));
        GBX_TRY(get_kernel(&kernel, &info->kernels[i]));
    }
    return NULL;
}

static gbx_status get_filters(const gbx_cursor *root, gbx_run_info *info) {
    gbx_cursor array;
    GBX_TRY(get_array(root, "filters", sizeof *info->filters, &array, &info->filter_count,
                      &info->filters));
    for (size_t i = 0; i < info->filter_count; ++i) {
        gbx_cursor filter;
        GBX_TRY(gbx_cursor_element(&array, i, &filter));
        GBX_TRY(gbx_cursor_string(&filter, &info->filters[i]));
    }
    return NULL;
}

static gbx_status get_arguments(const gbx_cursor *root, gbx_run_info *info) {
    gbx_cursor array;
    GBX_TRY(get_array(root, "run_args", sizeof *info->arguments, &array, &info->argument_count,
                      &info->arguments));
    for (size_t i = 0; i < info->argument_count; ++i) {
        gbx_cursor argument;
        GBX_TRY(gbx_cursor_element(&array, i, &argument));
        GBX_TRY(get_optional_string(&argument, "name", &info->arguments[i].name));
        GBX_TRY(get_string(&argument, "role", &info->arguments[i].role));
    }
    return NULL;
}

static gbx_status get_all(const gbx_cursor *root, gbx_run_info *info) {
    GBX_TRY(get_string_or_null(root, "generator", &info->generator));
    GBX_TRY(get_run(root, info));
    GBX_TRY(get_optional_string(root, "dump_level", &info->dump_level));
    GBX_TRY(get_optional_bool(root, "has_args", &info->has_args));
    GBX_TRY(get_filters(root, info));
    GBX_TRY(get_kernels(root, info));
    return get_arguments(root, info);
}

gbx_status gbx_run_info_parse(const char *name, const char *text, size_t size,
                              gbx_run_info *out_info) {
    gbx_run_info info = {0};
    GBX_TRY(gbx_json_parse(name, text, size, &info.document));
    gbx_cursor root = gbx_cursor_root(info.document, name);
    gbx_status status = get_all(&root, &info);
    if (status)
        gbx_run_info_free(&info);
    else
        *out_info = info;
    return status;
}

void gbx_run_info_free(gbx_run_info *info) {
    free(info->filters);
    free(info->kernels);
    free(info->arguments);
    json_decref(info->document);
    memset(info, 0, sizeof *info);
}

const gbx_run_kernel *gbx_run_info_kernel(const gbx_run_info *info, uint32_t func_id) {
    for (size_t i = 0; i < info->kernel_count; ++i)
        if (info->kernels[i].func_id == func_id)
            return &info->kernels[i];
    return NULL;
}

const char *gbx_run_info_slot_name(const gbx_run_info *info, const uint32_t func_ids[3],
                                   uint32_t arg_index) {
    for (size_t i = 0; i < 3 && arg_index < GBX_RUN_KERNEL_SLOTS; ++i) {
        const gbx_run_kernel *kernel = gbx_run_info_kernel(info, func_ids[i]);
        if (kernel && kernel->slot_names[arg_index])
            return kernel->slot_names[arg_index];
    }
    return NULL;
}
