#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "chip/device/device.h"

static gbx_code fail(gbx_device *device, const char *format, const char *what, const char *why) {
    snprintf(device->control->message, sizeof device->control->message, format, what, why);
    return GBX_BAD_KERNEL;
}

gbx_code gbx_object_load(gbx_device *device, const char *path, const char *symbol,
                         const char *definition, void **out_object, void **out_symbol) {
    gbx_fault_enter_loading(device);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    gbx_fault_leave();
    if (!object)
        return fail(device, "loading %s: %s", path, dlerror());
    *out_symbol = dlsym(object, symbol);
    if (!*out_symbol) {
        dlclose(object);
        return fail(device, "%s has no %s", path, definition);
    }
    *out_object = object;
    return GBX_OK;
}

gbx_code gbx_kernel_load(gbx_device *device) {
    if (device->launch.payload_bytes != sizeof(gbx_load_block))
        return fail(device, "loading a kernel: %s%s", "the payload has the wrong size", "");
    gbx_load_block block;
    memcpy(&block, device->payload, sizeof block);
    block.path[sizeof block.path - 1] = '\0';
    if (block.func_id >= GBX_MAX_KERNELS || device->kernels[block.func_id].entry)
        return fail(device, "loading a kernel: %s%s", "its func_id is taken or out of range", "");
    if (block.signature.tensor_count > GBX_MAX_TENSOR_ARGS ||
        block.signature.scalar_count > GBX_MAX_SCALAR_ARGS)
        return fail(device, "loading a kernel: %s%s", "its signature is too long", "");
    gbx_loaded_kernel kernel = {.core = (gbx_core_type)block.core};
    if (block.function) {
        uintptr_t function = (uintptr_t)block.function;
        memcpy(&kernel.entry, &function, sizeof function);
    } else {
        void *symbol;
        gbx_code code = gbx_object_load(device, block.path, "kernel_entry",
                                        "kernel_entry; a kernel defines void kernel_entry(const "
                                        "uint64_t *args), in C++ with extern \"C\"",
                                        &kernel.shared_object, &symbol);
        if (code != GBX_OK)
            return code;
        memcpy(&kernel.entry, &symbol, sizeof symbol); /* ISO C has no cast to a function */
    }
    device->kernels[block.func_id] = kernel;
    device->signatures[block.func_id] = block.signature;
    return GBX_OK;
}

void gbx_kernel_unload_all(gbx_device *device) {
    for (size_t i = 0; i < GBX_MAX_KERNELS; ++i)
        if (device->kernels[i].shared_object)
            dlclose(device->kernels[i].shared_object);
}
