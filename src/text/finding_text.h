/* One sentence for a finding of a run. */
#ifndef GBX_TEXT_FINDING_TEXT_H
#define GBX_TEXT_FINDING_TEXT_H

#include <stddef.h>

#include <glassbox/finding.h>

enum { GBX_FINDING_TEXT_BYTES = 2048 };

/* Names that only the caller knows; each function may return NULL. `func_id` may be any number. */
typedef struct gbx_finding_names {
    const void *context;
    const char *(*kernel)(const void *context, uint32_t func_id);
    /* The name of an argument of a kernel, and how many bytes it has. */
    const char *(*argument)(const void *context, uint32_t func_id, uint32_t index,
                            size_t *out_size);
    const char *(*run_argument)(const void *context, uint32_t index);
} gbx_finding_names;

/* The name at an index of "query,state,output"; NULL for none. */
const char *gbx_name_in_list(const char *list, uint32_t index, size_t *out_size);

/* "task 12, kernel gelu, wrote 64 bytes past the end of its argument 1 (out): ..." */
void gbx_finding_text(const gbx_run_finding *finding, const gbx_finding_names *names,
                      char out_text[GBX_FINDING_TEXT_BYTES]);

#endif
