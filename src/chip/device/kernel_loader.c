#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "chip/device/device.h"

static gbx_code fail(gbx_device *device, const char *format, const char *what, const char *why) {
    snprintf(device->control->message, sizeof device->control->message, format, what, why);
    return GBX_BAD_KERNEL;
}

static gbx_code load_shared_object(gbx_device *device, const char *path,
                                   gbx_loaded_kernel *kernel) {
    gbx_fault_enter_loading(device);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    gbx_fault_leave();
    if (!object)
        return fail(device, "loading %s: %s", path, dlerror());
    void *symbol = dlsym(object, "kernel_entry");
    if (!symbol) {
        dlclose(object);
        return fail(device, "%s has no kernel_entry; a kernel defines %s", path,
                    "void kernel_entry(const uint64_t *args), in C++ with extern \"C\"");
    }
    kernel->shared_object = object;
    memcpy(&kernel->entry, &symbol, sizeof symbol); /* ISO C has no cast from data to function */
    return GBX_OK;
}

gbx_code gbx_kernel_load(gbx_device *device) {
    if (device->launch.payload_bytes != sizeof(gbx_load_block))
        return fail(device, "loading a kernel: %s%s", "the payload has the wrong size", "");
    gbx_load_block block;
    memcpy(&block, (const void *)(uintptr_t)device->launch.payload, sizeof block);
    block.path[sizeof block.path - 1] = '\0';
    if (block.func_id >= GBX_MAX_KERNELS || device->kernels[block.func_id].entry)
        return fail(device, "loading a kernel: %s%s", "its func_id is taken or out of range", "");
    gbx_loaded_kernel kernel = {0};
    if (block.function) {
        uintptr_t function = (uintptr_t)block.function;
        memcpy(&kernel.entry, &function, sizeof function);
    } else {
        gbx_code code = load_shared_object(device, block.path, &kernel);
        if (code != GBX_OK)
            return code;
    }
    device->kernels[block.func_id] = kernel;
    return GBX_OK;
}

void gbx_kernel_unload_all(gbx_device *device) {
    for (size_t i = 0; i < GBX_MAX_KERNELS; ++i)
        if (device->kernels[i].shared_object)
            dlclose(device->kernels[i].shared_object);
}
