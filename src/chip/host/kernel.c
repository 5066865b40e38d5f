#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "chip/host/chip.h"

static gbx_status check_identity(const gbx_chip *chip, const gbx_kernel *kernel) {
    const char *name = kernel->name;
    uint32_t func_id = kernel->func_id;
    if (!name || !name[0] || strlen(name) > GBX_MAX_KERNEL_NAME)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "registering func %" PRIu32 ": a kernel needs a name of 1 to %d bytes",
                        func_id, GBX_MAX_KERNEL_NAME);
    if (func_id >= GBX_MAX_KERNELS)
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "registering kernel %s: func_id %" PRIu32 " is not below %d", name, func_id,
                        GBX_MAX_KERNELS);
    if (chip->kernels[func_id].name[0])
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "registering kernel %s: func_id %" PRIu32 " is taken by kernel %s", name,
                        func_id, chip->kernels[func_id].name);
    if (kernel->core != GBX_CORE_AIC && kernel->core != GBX_CORE_AIV)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "registering kernel %s: core type %d is neither AIC nor AIV", name,
                        (int)kernel->core);
    return NULL;
}

/* --- signature and names --- */

static gbx_status check_signature(const gbx_kernel *kernel, size_t *out_count) {
    /* A kernel without arguments has an empty signature. */
    const char *rest = kernel->signature[0] ? kernel->signature : NULL;
    const char *word;
    size_t length = 0;
    size_t tensors = 0;
    size_t scalars = 0;
    while ((word = gbx_list_next(&rest, &length))) {
        gbx_parameter parameter;
        if (gbx_parameter_read(word, length, &parameter) != GBX_PARAMETER_OK)
            return gbx_fail(GBX_INVALID_ARGUMENT,
                            "registering kernel %s: signature \"%s\": unknown word \"%.*s\"; "
                            "expected " GBX_SIGNATURE_WORDS,
                            kernel->name, kernel->signature, (int)length, word);
        ++*(parameter.kind == GBX_PARAMETER_SCALAR ? &scalars : &tensors);
    }
    *out_count = tensors + scalars;
    if (tensors <= GBX_MAX_TENSOR_ARGS && scalars <= GBX_MAX_SCALAR_ARGS)
        return NULL;
    return gbx_fail(GBX_INVALID_ARGUMENT,
                    "registering kernel %s: its signature has %zu tensors and %zu scalars, at most "
                    "%d and %d are possible",
                    kernel->name, tensors, scalars, GBX_MAX_TENSOR_ARGS, GBX_MAX_SCALAR_ARGS);
}

static gbx_status check_names(const gbx_kernel *kernel, size_t expected) {
    const char *rest = kernel->arg_names[0] ? kernel->arg_names : NULL;
    size_t length = 0;
    size_t count = 0;
    while (gbx_list_next(&rest, &length)) {
        ++count;
        if (length == 0)
            return gbx_fail(GBX_INVALID_ARGUMENT,
                            "registering kernel %s: arg_names \"%s\": a name is empty",
                            kernel->name, kernel->arg_names);
    }
    if (count == expected)
        return NULL;
    return gbx_fail(
        GBX_INVALID_ARGUMENT,
        "registering kernel %s: arg_names \"%s\" has %zu names, the signature %zu words; give one "
        "name for each, separated by commas",
        kernel->name, kernel->arg_names, count, expected);
}

gbx_status gbx_chip_check_kernel(const gbx_chip *chip, const gbx_kernel *kernel) {
    GBX_TRY(gbx_chip_check_alive(chip, "registering a kernel"));
    GBX_TRY(check_identity(chip, kernel));
    if (kernel->function && chip->device != GBX_DEVICE_THREAD)
        return gbx_fail(GBX_UNSUPPORTED,
                        "registering kernel %s: a function pointer has no meaning in the chip's "
                        "own process; open the chip with GBX_DEVICE_THREAD or give a source",
                        kernel->name);
    size_t count = 0;
    if (kernel->signature)
        GBX_TRY(check_signature(kernel, &count));
    else if (kernel->arg_names)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "registering kernel %s: arg_names is set without a signature; set both",
                        kernel->name);
    return kernel->arg_names ? check_names(kernel, count) : NULL;
}

/* --- loading and keeping --- */

static gbx_status load(gbx_chip *chip, const gbx_kernel *kernel, const char *path,
                       const gbx_signature *signature) {
    gbx_load_block block = {
        .func_id = kernel->func_id, .core = (uint32_t)kernel->core, .signature = *signature};
    if (kernel->function)
        memcpy(&block.function, &kernel->function, sizeof kernel->function);
    else if ((size_t)snprintf(block.path, sizeof block.path, "%s", path) >= sizeof block.path)
        return gbx_fail(GBX_OUT_OF_RANGE, "registering kernel %s: the path %s is too long",
                        kernel->name, path);
    gbx_chip_launch_config launch = {.entry = GBX_ENTRY_LOAD_KERNEL,
                                     .timeout_ms = GBX_DEFAULT_TIMEOUT_MS,
                                     .payload = &block,
                                     .payload_bytes = sizeof block};
    gbx_status status = gbx_chip_launch(chip, &launch, NULL);
    if (gbx_status_code(status) == GBX_DEVICE_HUNG)
        return gbx_status_annotate(status, "registering kernel %s, whose constructor may never end",
                                   kernel->name);
    return gbx_status_annotate(status, "registering kernel %s", kernel->name);
}

static void forget(gbx_kernel_entry *entry) {
    free(entry->signature);
    free(entry->arg_names);
    free(entry->object_path);
    free(entry->origin);
    free(entry->compile_flags);
    free(entry->link_flags);
    *entry = (gbx_kernel_entry){0};
}

/* True for NULL, too. */
static bool copy_text(const char *text, char **out_copy) {
    *out_copy = text ? strdup(text) : NULL;
    return !text || *out_copy;
}

static gbx_status keep(gbx_kernel_entry *entry, const gbx_kernel *kernel, const char *path) {
    const char *origin = kernel->source ? kernel->source : kernel->origin;
    *entry = (gbx_kernel_entry){.core = kernel->core};
    if (!copy_text(kernel->signature, &entry->signature) ||
        !copy_text(kernel->arg_names, &entry->arg_names) || !copy_text(path, &entry->object_path) ||
        !copy_text(origin, &entry->origin) ||
        !copy_text(kernel->compile_flags, &entry->compile_flags) ||
        !copy_text(kernel->link_flags, &entry->link_flags)) {
        forget(entry);
        return gbx_fail_memory("registering kernel %s", kernel->name);
    }
    return NULL;
}

gbx_status gbx_chip_load_kernel(gbx_chip *chip, const gbx_kernel *kernel, const char *path) {
    gbx_kernel_entry *entry = &chip->kernels[kernel->func_id];
    gbx_signature signature;
    GBX_TRY(keep(entry, kernel, path));
    (void)gbx_signature_read(kernel->signature, &signature); /* it was checked */
    gbx_status status = load(chip, kernel, path, &signature);
    if (status) {
        forget(entry);
        return status;
    }
    chip->signatures[kernel->func_id] = signature;
    /* A kernel with a name is registered. */
    snprintf(entry->name, sizeof entry->name, "%s", kernel->name);
    return NULL;
}

void gbx_chip_forget_kernels(gbx_chip *chip) {
    for (size_t i = 0; i < GBX_MAX_KERNELS; ++i)
        forget(&chip->kernels[i]);
}

void gbx_chip_describe_argument(const gbx_chip *chip, uint32_t func_id, uint32_t slot,
                                char out_text[GBX_ARGUMENT_BYTES]) {
    const gbx_kernel_entry *entry = func_id < GBX_MAX_KERNELS ? &chip->kernels[func_id] : NULL;
    size_t length = 0;
    const char *name =
        entry ? gbx_signature_name(entry->signature, entry->arg_names, slot, &length) : NULL;
    if (name)
        snprintf(out_text, GBX_ARGUMENT_BYTES, "argument %" PRIu32 " (%.*s%s)", slot,
                 length > GBX_MAX_KERNEL_NAME ? GBX_MAX_KERNEL_NAME : (int)length, name,
                 length > GBX_MAX_KERNEL_NAME ? "..." : "");
    else
        snprintf(out_text, GBX_ARGUMENT_BYTES, "argument %" PRIu32, slot);
}
