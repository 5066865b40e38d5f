#include <stdio.h>

#include <glassbox/runtime.h>

#include "chip/host/chip.h"
#include "text/finding_text.h"

/* Names for a sentence. */
typedef struct known {
    const gbx_chip *chip;
    const gbx_run *run;
} known;

static const gbx_kernel_entry *kernel_of(const known *known_names, uint32_t func_id) {
    const gbx_kernel_entry *entry =
        func_id < GBX_MAX_KERNELS ? &known_names->chip->kernels[func_id] : NULL;
    return entry && entry->name[0] ? entry : NULL;
}

static const char *kernel_name(const void *context, uint32_t func_id) {
    const gbx_kernel_entry *kernel = kernel_of(context, func_id);
    return kernel ? kernel->name : NULL;
}

static const char *argument_name(const void *context, uint32_t func_id, uint32_t index,
                                 size_t *out_size) {
    const gbx_kernel_entry *kernel = kernel_of(context, func_id);
    return gbx_name_in_list(kernel ? kernel->arg_names : NULL, index, out_size);
}

static const char *run_argument_name(const void *context, uint32_t index) {
    const gbx_run *run = ((const known *)context)->run;
    return run && index < run->tensor_count ? run->tensors[index].name : NULL;
}

void gbx_finding_describe(const gbx_chip *chip, const gbx_run *run, const gbx_run_finding *finding,
                          char *out_text, size_t bytes) {
    char text[GBX_FINDING_TEXT_BYTES];
    const known known_names = {chip, run};
    const gbx_finding_names names = {&known_names, kernel_name, argument_name, run_argument_name};
    gbx_finding_text(finding, &names, text);
    snprintf(out_text, bytes, "%s", text);
}
