#include <stdio.h>
#include <string.h>

#include "hal/sim.h"

static const gbx_hal_ops *const platforms[] = {&gbx_a2a3sim_ops, &gbx_a5sim_ops};

enum { PLATFORM_COUNT = sizeof platforms / sizeof platforms[0] };

const gbx_hal_ops *gbx_hal_platform(uint32_t index) {
    return index < PLATFORM_COUNT ? platforms[index] : NULL;
}

gbx_status gbx_hal_find(const char *name, const gbx_hal_ops **out_ops) {
    char names[128] = "";
    for (size_t i = 0; i < PLATFORM_COUNT; ++i) {
        if (strcmp(platforms[i]->name, name) == 0) {
            *out_ops = platforms[i];
            return NULL;
        }
        size_t used = strlen(names);
        const char *separator = i == 0 ? "" : i + 1 < PLATFORM_COUNT ? ", " : " or ";
        snprintf(names + used, sizeof names - used, "%s%s", separator, platforms[i]->name);
    }
    *out_ops = NULL;
    return gbx_fail(GBX_NOT_FOUND, "unknown platform \"%s\"; expected %s", name, names);
}
