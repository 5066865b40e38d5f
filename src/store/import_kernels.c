#include "store/import_kernels.h"

#include <stdlib.h>
#include <string.h>

#include "store/run_info.h"

typedef struct gbx_import_kernel {
    char *name; /* NULL where no entry tells it */
    char *slot_names[GBX_RUN_KERNEL_SLOTS];
    uint64_t unclear; /* a bit a slot: entries gave it different names */
} gbx_import_kernel;

static gbx_status fail_memory(void) {
    return gbx_fail(GBX_EXHAUSTED, "reading a manifest: no memory for the names of kernels");
}

/* --- learning --- */

static gbx_status copy_name(const gbx_import_fields *fields, gbx_import_field field,
                            const gbx_scan_value *value, char **out_name) {
    char *name = gbx_scan_decode(value);
    json_t *string = name ? json_string(name) : NULL;
    bool is_text = string != NULL;
    json_decref(string);
    if (!is_text) {
        free(name);
        return gbx_import_fail_expected(fields, field, -1, value, "text in UTF-8");
    }
    *out_name = name;
    return NULL;
}

static bool is_name(const gbx_scan_value *value, const char *name) {
    return gbx_scan_is(value, name, strlen(name));
}

static gbx_status find_kernel(gbx_import_kernels *kernels, const gbx_import_fields *fields,
                              uint32_t func_id, gbx_import_kernel **out_kernel) {
    if (func_id >= GBX_MAX_KERNELS)
        return gbx_status_never_null(gbx_import_fail(fields, GBX_FIELD_FUNC_ID,
                                                     "%u has a name, and is not below %d", func_id,
                                                     GBX_MAX_KERNELS));
    if (!kernels->by_func_id[func_id])
        kernels->by_func_id[func_id] = calloc(1, sizeof(gbx_import_kernel));
    *out_kernel = kernels->by_func_id[func_id];
    return *out_kernel ? NULL : fail_memory();
}

static gbx_status learn_name(gbx_import_kernels *kernels, const gbx_import_fields *fields,
                             uint32_t func_id, const gbx_scan_value *name) {
    gbx_import_kernel *kernel = NULL;
    GBX_TRY(find_kernel(kernels, fields, func_id, &kernel));
    if (!kernel->name)
        return copy_name(fields, GBX_FIELD_KERNEL, name, &kernel->name);
    if (is_name(name, kernel->name))
        return NULL;
    char shown[GBX_IMPORT_SHOWN_BYTES];
    gbx_import_show(name, shown);
    return gbx_import_fail(fields, GBX_FIELD_KERNEL,
                           "%s is not the name \"%.64s\" that an earlier entry gives func_id %u",
                           shown, kernel->name, func_id);
}

/* The first kernel of the task gets the name, unless one of the others has it already. */
static gbx_status learn_slot(gbx_import_kernels *kernels, const gbx_import_fields *fields,
                             const gbx_import_entry *entry) {
    uint8_t slot = entry->record.head.arg_index;
    gbx_import_kernel *first = NULL;
    for (size_t i = 0; i < GBX_IMPORT_KERNELS_MAX; ++i) {
        gbx_import_kernel *kernel = NULL;
        if (entry->func_ids[i] == UINT32_MAX)
            continue;
        GBX_TRY(find_kernel(kernels, fields, entry->func_ids[i], &kernel));
        first = first ? first : kernel;
        if (kernel->slot_names[slot] && is_name(&entry->arg_name, kernel->slot_names[slot]))
            return NULL;
    }
    if (!first || first->unclear >> slot & 1)
        return NULL;
    if (!first->slot_names[slot])
        return copy_name(fields, GBX_FIELD_ARG_NAME, &entry->arg_name, &first->slot_names[slot]);
    free(first->slot_names[slot]);
    first->slot_names[slot] = NULL;
    first->unclear |= UINT64_C(1) << slot;
    return NULL;
}

gbx_status gbx_import_kernels_learn(gbx_import_kernels *kernels, const gbx_import_fields *fields,
                                    const gbx_import_entry *entry) {
    for (size_t i = 0; i < GBX_IMPORT_KERNELS_MAX; ++i)
        if (entry->kernels[i].kind == GBX_SCAN_STRING)
            GBX_TRY(learn_name(kernels, fields, entry->func_ids[i], &entry->kernels[i]));
    return entry->arg_name.kind == GBX_SCAN_STRING ? learn_slot(kernels, fields, entry) : NULL;
}

void gbx_import_kernels_free(gbx_import_kernels *kernels) {
    for (size_t i = 0; i < GBX_MAX_KERNELS; ++i) {
        gbx_import_kernel *kernel = kernels->by_func_id[i];
        if (!kernel)
            continue;
        for (size_t slot = 0; slot < GBX_RUN_KERNEL_SLOTS; ++slot)
            free(kernel->slot_names[slot]);
        free(kernel->name);
        free(kernel);
    }
    memset(kernels, 0, sizeof *kernels);
}

/* --- telling --- */

static void add_slot_names(const gbx_import_kernel *kernel, json_t *to) {
    size_t count = 0;
    json_t *names = json_array();
    for (size_t slot = 0; slot < GBX_RUN_KERNEL_SLOTS; ++slot)
        count = kernel->slot_names[slot] ? slot + 1 : count;
    for (size_t slot = 0; slot < count; ++slot)
        json_array_append_new(
            names, kernel->slot_names[slot] ? json_string(kernel->slot_names[slot]) : json_null());
    json_object_set_new(to, "slot_names", names);
}

/* One of the table: whatever is wrong with its form is found when the run is read. */
static gbx_status merge_one(const gbx_import_kernels *kernels, const char *path, size_t position,
                            json_t *to, bool out_is_in_table[GBX_MAX_KERNELS]) {
    const json_t *func_id = json_object_get(to, "func_id");
    json_int_t number = json_is_integer(func_id) ? json_integer_value(func_id) : -1;
    if (json_is_object(to) && !json_object_get(to, "core_type"))
        json_object_set_new(to, "core_type", json_null());
    json_object_del(to, "slot_names");
    if (number < 0 || number >= GBX_MAX_KERNELS)
        return NULL;
    out_is_in_table[number] = true;
    const gbx_import_kernel *kernel = kernels->by_func_id[number];
    if (!kernel)
        return NULL;
    const char *name = json_string_value(json_object_get(to, "name"));
    if (name && kernel->name && strcmp(name, kernel->name) != 0)
        return gbx_fail(GBX_BAD_FORMAT,
                        "%s: kernels[%zu].name: \"%.64s\" is not the \"%.64s\" that entries give "
                        "func_id %d",
                        path, position, name, kernel->name, (int)number);
    add_slot_names(kernel, to);
    return NULL;
}

static gbx_status merge_into(const gbx_import_kernels *kernels, const char *path, json_t *merged) {
    bool is_in_table[GBX_MAX_KERNELS] = {false};
    for (size_t i = 0; i < json_array_size(merged); ++i)
        GBX_TRY(merge_one(kernels, path, i, json_array_get(merged, i), is_in_table));
    for (size_t i = 0; i < GBX_MAX_KERNELS && json_is_array(merged); ++i) {
        const gbx_import_kernel *kernel = kernels->by_func_id[i];
        if (!kernel || !kernel->name || is_in_table[i])
            continue;
        json_t *object =
            json_pack("{s:i,s:s,s:n}", "func_id", (int)i, "name", kernel->name, "core_type");
        if (!object || json_array_append_new(merged, object) != 0)
            return fail_memory();
        add_slot_names(kernel, object);
    }
    return NULL;
}

gbx_status gbx_import_kernels_merge(const gbx_import_kernels *kernels, const char *path,
                                    const json_t *table, json_t **out_merged) {
    json_t *merged = table ? json_deep_copy(table) : json_array();
    if (!merged)
        return fail_memory();
    gbx_status status = merge_into(kernels, path, merged);
    if (status)
        json_decref(merged);
    else
        *out_merged = merged;
    return status;
}
