#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chip/host/chip.h"
#include "toolchain/kernel_compiler.h"

static gbx_status check_one_form(const gbx_kernel *kernel) {
    int forms =
        (kernel->source != NULL) + (kernel->shared_object != NULL) + (kernel->function != NULL);
    if (forms == 1)
        return NULL;
    return gbx_fail(
        GBX_INVALID_ARGUMENT,
        "registering kernel %s: %d of source, shared_object and function are set; set exactly one",
        kernel->name, forms);
}

gbx_status gbx_kernel_register(gbx_chip *chip, const gbx_kernel *kernel) {
    GBX_TRY(gbx_chip_check_kernel(chip, kernel));
    GBX_TRY(check_one_form(kernel));
    char *path = NULL;
    gbx_status status = NULL;
    if (kernel->source) {
        status =
            gbx_kernel_compile(kernel->source, kernel->compile_flags, kernel->link_flags, &path);
    } else if (kernel->shared_object) {
        /* Absolute: the chip may be in another directory, and dlopen searches for a bare name. */
        path = realpath(kernel->shared_object, NULL);
        if (!path)
            status = gbx_fail(GBX_NOT_FOUND, "registering kernel %s: %s: %s", kernel->name,
                              kernel->shared_object, strerror(errno));
    }
    if (!status)
        status = gbx_chip_load_kernel(chip, kernel, path);
    free(path);
    return status;
}
