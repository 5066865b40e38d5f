#include "store/verify/findings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { KERNEL_BYTES = 256 };

static const gbx_name kinds[] = {[GBX_FINDING_JOURNAL] = {"journal", NULL, NULL},
                                 [GBX_FINDING_COUNT] = {"count", NULL, NULL},
                                 [GBX_FINDING_TASK] = {"task", NULL, NULL},
                                 [GBX_FINDING_RECORD] = {"record", NULL, NULL},
                                 [GBX_FINDING_SIZE] = {"size", NULL, NULL},
                                 [GBX_FINDING_OFFSET] = {"offset", NULL, NULL},
                                 [GBX_FINDING_OVERLAP] = {"overlap", NULL, NULL},
                                 [GBX_FINDING_HASH] = {"hash", NULL, NULL},
                                 [GBX_FINDING_MANIFEST] = {"manifest", NULL, NULL},
                                 [GBX_FINDING_FILE] = {"file", NULL, NULL}};
const gbx_name_set gbx_finding_kinds = {kinds, GBX_FINDING_KIND_COUNT};

/* Copies a text that may be NULL; notes when out of memory. */
static char *copy(gbx_findings *findings, const char *text) {
    char *copied = text ? strdup(text) : NULL;
    findings->has_failed |= text && !copied;
    return copied;
}

/* The names of the kernels of a task, joined by '+'; "" when the TASK record is missing. */
static gbx_status name_kernels(gbx_reader *reader, uint64_t task, char *out_text, size_t capacity) {
    gbx_record_task about;
    bool is_found;
    size_t used = 0;
    out_text[0] = '\0';
    GBX_TRY(gbx_reader_find_task(reader, task, &about, &is_found));
    for (size_t i = 0; is_found && i < 3 && used < capacity; ++i) {
        if (about.func_ids[i] == UINT32_MAX)
            continue;
        const gbx_run_kernel *kernel =
            gbx_run_info_kernel(gbx_reader_run(reader), about.func_ids[i]);
        const char *plus = used ? "+" : "";
        int length = kernel ? snprintf(out_text + used, capacity - used, "%s%s", plus, kernel->name)
                            : snprintf(out_text + used, capacity - used, "%s#%" PRIu32, plus,
                                       about.func_ids[i]);
        used += (size_t)length;
    }
    return NULL;
}

/* `place` and `kernel` may be NULL. */
static void add(gbx_findings *findings, gbx_finding_kind kind, const gbx_finding_place *place,
                const char *kernel, const char *what, const char *expected, const char *got) {
    if (!gbx_array_grow(&findings->items, &findings->capacity, findings->count + 1,
                        sizeof *findings->items)) {
        findings->has_failed = true;
        return;
    }
    gbx_finding *item = &findings->items[findings->count++];
    *item = (gbx_finding){.kind = kind,
                          .has_place = place != NULL,
                          .kernel = copy(findings, kernel && kernel[0] ? kernel : NULL),
                          .what = copy(findings, what),
                          .expected = copy(findings, expected),
                          .got = copy(findings, got)};
    if (place)
        item->place = *place;
}

void gbx_findings_add(gbx_findings *findings, gbx_finding_kind kind, const char *what) {
    add(findings, kind, NULL, NULL, what, NULL, NULL);
}

gbx_status gbx_findings_add_at(gbx_findings *findings, gbx_finding_kind kind, gbx_reader *reader,
                               const gbx_finding_place *place, const char *what,
                               const char *expected, const char *got) {
    char kernel[KERNEL_BYTES] = "";
    if (place)
        GBX_TRY(name_kernels(reader, place->task, kernel, sizeof kernel));
    add(findings, kind, place, kernel, what, expected, got);
    return NULL;
}

void gbx_findings_add_result(gbx_findings *findings, gbx_finding_kind kind, uint32_t arg_index,
                             const char *what, const char *expected, const char *got) {
    char text[256];
    snprintf(text, sizeof text, "result of argument %" PRIu32 ": %s", arg_index, what);
    add(findings, kind, NULL, NULL, text, expected, got);
}

void gbx_findings_compare(gbx_findings *findings, gbx_finding_kind kind, const char *what,
                          uint64_t expected, uint64_t got) {
    char texts[2][24];
    if (expected == got)
        return;
    snprintf(texts[0], sizeof texts[0], "%" PRIu64, expected);
    snprintf(texts[1], sizeof texts[1], "%" PRIu64, got);
    add(findings, kind, NULL, NULL, what, texts[0], texts[1]);
}

void gbx_findings_free(gbx_findings *findings) {
    for (size_t i = 0; i < findings->count; ++i) {
        free(findings->items[i].kernel);
        free(findings->items[i].what);
        free(findings->items[i].expected);
        free(findings->items[i].got);
    }
    free(findings->items);
    *findings = (gbx_findings){0};
}
