#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/import/internal.h"
#include "store/run/run_info.h"
#include "text/json_reader.h"

typedef struct gbx_import_kernel {
    char *name; /* NULL when no entry gives it */
    char *slot_names[GBX_RUN_KERNEL_SLOTS];
    uint64_t unclear; /* a bit per slot: entries gave it different names, or one gave it none */
} gbx_import_kernel;

static gbx_status fail_memory(void) {
    return gbx_fail_memory("reading the names of kernels");
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
        return gbx_import_fail_expected(fields, field, -1, value, "UTF-8 text");
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
        return gbx_status_never_null(gbx_import_fail(fields, GBX_FIELD_func_id,
                                                     "%u has a name, but is not below %d", func_id,
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
        return copy_name(fields, GBX_FIELD_kernel, name, &kernel->name);
    if (is_name(name, kernel->name))
        return NULL;
    char shown[GBX_IMPORT_SHOWN_BYTES];
    gbx_import_show(name, shown);
    return gbx_import_fail(fields, GBX_FIELD_kernel,
                           "%s differs from \"%.64s\", which an earlier entry gives func_id %u",
                           shown, kernel->name, func_id);
}

static void forget_slot(gbx_import_kernel *kernel, uint8_t slot) {
    free(kernel->slot_names[slot]);
    kernel->slot_names[slot] = NULL;
    kernel->unclear |= UINT64_C(1) << slot;
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
        return copy_name(fields, GBX_FIELD_arg_name, &entry->arg_name, &first->slot_names[slot]);
    forget_slot(first, slot);
    return NULL;
}

/* An argument without a name: none of its kernels names the slot. */
static gbx_status learn_nameless(gbx_import_kernels *kernels, const gbx_import_fields *fields,
                                 const gbx_import_entry *entry) {
    for (size_t i = 0; i < GBX_IMPORT_KERNELS_MAX; ++i) {
        gbx_import_kernel *kernel = NULL;
        if (entry->func_ids[i] >= GBX_MAX_KERNELS)
            continue;
        GBX_TRY(find_kernel(kernels, fields, entry->func_ids[i], &kernel));
        forget_slot(kernel, entry->record.head.arg_index);
    }
    return NULL;
}

gbx_status gbx_import_kernels_learn(gbx_import_kernels *kernels, const gbx_import_fields *fields,
                                    const gbx_import_entry *entry) {
    for (size_t i = 0; i < GBX_IMPORT_KERNELS_MAX; ++i)
        if (entry->kernels[i].kind == GBX_SCAN_STRING)
            GBX_TRY(learn_name(kernels, fields, entry->func_ids[i], &entry->kernels[i]));
    return entry->arg_name.kind == GBX_SCAN_STRING ? learn_slot(kernels, fields, entry)
                                                   : learn_nameless(kernels, fields, entry);
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

/* --- merging --- */

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

static gbx_status merge_one(const gbx_import_kernels *kernels, const gbx_cursor *element,
                            bool out_is_in_table[GBX_MAX_KERNELS]) {
    json_t *to = element->value;
    size_t number = (size_t)json_integer_value(json_object_get(to, "func_id"));
    const gbx_import_kernel *kernel = kernels->by_func_id[number];
    const char *name = json_string_value(json_object_get(to, "name"));
    gbx_cursor member;
    if (!json_object_get(to, "core_type"))
        json_object_set_new(to, "core_type", json_null());
    json_object_del(to, "slot_names");
    out_is_in_table[number] = true;
    if (!kernel)
        return NULL;
    GBX_TRY(gbx_cursor_member(element, "name", &member));
    if (kernel->name && strcmp(name, kernel->name) != 0)
        return gbx_cursor_fail(&member,
                               "\"%.64s\" differs from \"%.64s\", which entries give func_id %zu",
                               name, kernel->name, number);
    add_slot_names(kernel, to);
    return NULL;
}

/* Kernels that no table has. */
static gbx_status add_others(const gbx_import_kernels *kernels,
                             const bool is_in_table[GBX_MAX_KERNELS], json_t *merged) {
    for (size_t i = 0; i < GBX_MAX_KERNELS; ++i) {
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

/* Checks one kernel of the table, and against the earlier ones, whose `names` are by func_id. */
static gbx_status check_one(const gbx_cursor *element, const char *names[GBX_MAX_KERNELS]) {
    gbx_cursor member;
    int64_t number = 0;
    const char *name = NULL;
    GBX_TRY(gbx_cursor_member(element, "func_id", &member));
    GBX_TRY(gbx_cursor_integer(&member, 0, GBX_MAX_KERNELS - 1, &number));
    GBX_TRY(gbx_cursor_member(element, "name", &member));
    GBX_TRY(gbx_cursor_string(&member, &name));
    if (names[number] && strcmp(names[number], name) != 0)
        return gbx_cursor_fail(
            &member,
            "\"%.64s\" differs from \"%.64s\", the name of an earlier kernel with func_id %d", name,
            names[number], (int)number);
    names[number] = name;
    return NULL;
}

static gbx_status merge_table(const gbx_import_kernels *kernels, const gbx_cursor *table,
                              bool out_is_in_table[GBX_MAX_KERNELS]) {
    const char *names[GBX_MAX_KERNELS] = {NULL};
    size_t count = 0;
    GBX_TRY(gbx_cursor_count(table, &count));
    if (count > GBX_MAX_KERNELS)
        return gbx_cursor_fail(table, "has %zu kernels, more than %d", count, GBX_MAX_KERNELS);
    for (size_t i = 0; i < count; ++i) {
        gbx_cursor element;
        GBX_TRY(gbx_cursor_element(table, i, &element));
        GBX_TRY(check_one(&element, names));
        GBX_TRY(merge_one(kernels, &element, out_is_in_table));
    }
    return NULL;
}

gbx_status gbx_import_kernels_merge(const gbx_import_kernels *kernels, const char *path,
                                    json_t *members) {
    bool is_in_table[GBX_MAX_KERNELS] = {false};
    gbx_cursor root = gbx_cursor_root(members, path);
    gbx_cursor table;
    GBX_TRY(gbx_cursor_optional(&root, "kernels", &table));
    if (!table.value && json_object_set_new(members, "kernels", json_array()) != 0)
        return fail_memory();
    if (table.value)
        GBX_TRY(merge_table(kernels, &table, is_in_table));
    return add_others(kernels, is_in_table, json_object_get(members, "kernels"));
}
