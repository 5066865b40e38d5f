#include "store/manifest/manifest_names.h"

#include <stdlib.h>
#include <string.h>

#include "text/json_writer.h"

static gbx_status append(void *context, const void *bytes, size_t size) {
    gbx_quoted *quoted = context;
    char *text = realloc(quoted->text, quoted->size + size);
    if (!text)
        return gbx_fail(GBX_EXHAUSTED, "no memory for a name of %zu bytes", size);
    memcpy(text + quoted->size, bytes, size);
    quoted->text = text;
    quoted->size += size;
    return NULL;
}

gbx_status gbx_quote(const char *text, gbx_quoted *out_quoted) {
    gbx_json_writer *json = malloc(sizeof *json);
    if (!json)
        return gbx_fail(GBX_EXHAUSTED, "no memory for writing JSON");
    gbx_quoted quoted = {0};
    gbx_json_start(json, append, &quoted, GBX_JSON_ONE_LINE);
    gbx_json_string(json, text);
    gbx_status status = gbx_json_finish(json);
    free(json);
    if (status) {
        free(quoted.text);
        return status;
    }
    quoted.size--; /* the document's newline */
    *out_quoted = quoted;
    return NULL;
}

gbx_status gbx_manifest_names_fill(gbx_manifest_names *names, const gbx_run_info *run) {
    names->kernels = calloc(run->kernel_count + 1, sizeof *names->kernels);
    if (!names->kernels)
        return gbx_fail(GBX_EXHAUSTED, "no memory for the names of %zu kernels", run->kernel_count);
    for (size_t i = 0; i < run->kernel_count; ++i) {
        const gbx_run_kernel *kernel = &run->kernels[i];
        struct gbx_kernel_names *to = &names->kernels[i];
        names->kernel_count = i + 1;
        GBX_TRY(gbx_quote(kernel->name, &to->name));
        for (size_t slot = 0; slot < GBX_RUN_KERNEL_SLOTS; ++slot)
            if (kernel->slot_names[slot])
                GBX_TRY(gbx_quote(kernel->slot_names[slot], &to->slots[slot]));
        if (!names->by_func_id[kernel->func_id])
            names->by_func_id[kernel->func_id] = to;
    }
    return NULL;
}

void gbx_manifest_names_free(gbx_manifest_names *names) {
    for (size_t i = 0; i < names->kernel_count; ++i) {
        free(names->kernels[i].name.text);
        for (size_t slot = 0; slot < GBX_RUN_KERNEL_SLOTS; ++slot)
            free(names->kernels[i].slots[slot].text);
    }
    free(names->kernels);
    memset(names, 0, sizeof *names);
}

gbx_quoted gbx_manifest_kernel_name(const gbx_manifest_names *names, uint32_t func_id) {
    static char null[] = "null";
    const gbx_quoted none = {null, sizeof null - 1};
    bool is_known = func_id < GBX_MAX_KERNELS && names->by_func_id[func_id];
    return is_known ? names->by_func_id[func_id]->name : none;
}
