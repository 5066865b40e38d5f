/* Variables of kernels that live from one task to the next: they explain findings, and tasks that
 * run at once share them. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diagnose/internal.h"
#include "diagnose/statics.h"
#include "store/run/kept_run.h"

static const char doing[] = "looking for variables";

/* A path in the scene as its user knows it; freed by the caller. */
static char *own_path(const gbx_kept_run *kept, const char *origin) {
    size_t length = kept->scene_path ? strlen(kept->scene_path) : 0;
    bool is_inside =
        length > 0 && strncmp(origin, kept->scene_path, length) == 0 && origin[length] == '/';
    return strdup(is_inside ? origin + length + 1 : origin);
}

/* Of a kernel whose copy the dump lacks, nothing is known. */
static gbx_status find_variable(const gbx_kept_kernel *kernel, gbx_static *out_found) {
    *out_found = (gbx_static){0};
    if (!kernel || !kernel->object)
        return NULL;
    gbx_status status = gbx_static_find(kernel->object, kernel->source, out_found);
    if (!status || gbx_status_code(status) == GBX_EXHAUSTED)
        return status;
    gbx_status_free(status);
    *out_found = (gbx_static){0};
    return NULL;
}

/* *out_kept is NULL if nothing is known of the run. */
static gbx_status read_kept(const gbx_inquiry *q, gbx_kept_run **out_kept) {
    *out_kept = NULL;
    gbx_status status = gbx_kept_run_read(q->request->directory, out_kept);
    if (gbx_status_code(status) != GBX_NOT_FOUND)
        return status;
    gbx_status_free(status);
    return NULL;
}

/* --- one that explains a finding --- */

static bool may_be_explained(const gbx_diagnosis_finding *finding) {
    return finding->task != GBX_DIAGNOSIS_NOBODY &&
           (finding->kind == GBX_DIAGNOSIS_NOT_REPEATED ||
            finding->kind == GBX_DIAGNOSIS_NOT_DETERMINISTIC ||
            finding->kind == GBX_DIAGNOSIS_UNDECLARED_READ ||
            (finding->kind == GBX_DIAGNOSIS_DATA_RACE && finding->slot == GBX_NO_ARGUMENT) ||
            finding->kind == GBX_DIAGNOSIS_UNWRITTEN_READ ||
            finding->kind == GBX_DIAGNOSIS_WRONG_OUTPUT ||
            finding->kind == GBX_DIAGNOSIS_WRONG_RESULT);
}

static gbx_status explain(const gbx_kept_run *kept, const gbx_kept_kernel *kernel,
                          gbx_diagnosis_finding *finding) {
    gbx_static found;
    GBX_TRY(find_variable(kernel, &found));
    if (!found.name[0])
        return NULL;
    finding->variable = strdup(found.name);
    finding->variable_line = found.line;
    if (found.line > 0 && kernel->origin)
        finding->variable_file = own_path(kept, kernel->origin);
    return finding->variable ? NULL : gbx_fail_memory("%s", doing);
}

gbx_status gbx_inquiry_find_variable(const gbx_inquiry *q, gbx_diagnosis_finding *finding) {
    gbx_kept_run *kept;
    if (!may_be_explained(finding))
        return NULL;
    gbx_status status = read_kept(q, &kept);
    for (int i = 0; i < GBX_SUBTASK_COUNT && kept && !status && !finding->variable; ++i)
        status = explain(kept, gbx_kept_run_kernel(kept, finding->func_ids[i]), finding);
    gbx_kept_run_free(kept);
    return status;
}

/* --- those that tasks share --- */

/* Calls of one task at a time do not see them. */
gbx_status gbx_inquiry_note_variables(gbx_inquiry *q) {
    gbx_kept_run *kept;
    gbx_status status = read_kept(q, &kept);
    for (size_t i = 0; kept && i < kept->kernel_count && !status; ++i) {
        const gbx_kept_kernel *kernel = &kept->kernels[i];
        gbx_static found;
        status = find_variable(kernel, &found);
        if (!status && found.name[0])
            status = gbx_inquiry_lack(q, GBX_ASKED_RACES,
                                      "tasks of kernel %s that run at once share its variable %s",
                                      kernel->name ? kernel->name : "without name", found.name);
    }
    gbx_kept_run_free(kept);
    return status;
}
