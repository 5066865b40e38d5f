#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chip/host/chip.h"

gbx_status gbx_chip_check_kernel(const gbx_chip *chip, uint32_t func_id, const char *name,
                                 gbx_core_type core, gbx_kernel_function function) {
    GBX_TRY(gbx_chip_check_alive(chip, "registering a kernel"));
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
    if (core != GBX_CORE_AIC && core != GBX_CORE_AIV)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "registering kernel %s: core type %d is neither AIC nor AIV", name,
                        (int)core);
    if (function && chip->device != GBX_DEVICE_THREAD)
        return gbx_fail(GBX_UNSUPPORTED,
                        "registering kernel %s: a function pointer has no meaning in the chip's "
                        "own process; open the chip with GBX_DEVICE_THREAD or give a source",
                        name);
    return NULL;
}

gbx_status gbx_chip_load_kernel(gbx_chip *chip, uint32_t func_id, const char *name,
                                gbx_core_type core, const char *path,
                                gbx_kernel_function function) {
    gbx_load_block block = {.func_id = func_id, .core = (uint32_t)core};
    if (function)
        memcpy(&block.function, &function, sizeof function);
    else if ((size_t)snprintf(block.path, sizeof block.path, "%s", path) >= sizeof block.path)
        return gbx_fail(GBX_OUT_OF_RANGE, "registering kernel %s: the path %s is too long", name,
                        path);
    gbx_chip_launch_config launch = {.entry = GBX_ENTRY_LOAD_KERNEL,
                                     .timeout_ms = GBX_DEFAULT_TIMEOUT_MS,
                                     .payload = &block,
                                     .payload_bytes = sizeof block};
    gbx_status status = gbx_chip_launch(chip, &launch, NULL);
    if (gbx_status_code(status) == GBX_DEVICE_HUNG)
        return gbx_status_annotate(
            status, "registering kernel %s, of which a constructor may never end", name);
    if (status)
        return gbx_status_annotate(status, "registering kernel %s", name);
    gbx_kernel_entry *entry = &chip->kernels[func_id];
    snprintf(entry->name, sizeof entry->name, "%s", name);
    entry->core = core;
    return NULL;
}
