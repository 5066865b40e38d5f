#include "scene/golden.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scene/guard.h"
#include "toolchain/kernel_compiler.h"

static bool is_python(const gbx_scene_program *program) {
    const char *suffix = strrchr(program->source, '.');
    return suffix && strcmp(suffix, ".py") == 0;
}

static gbx_status load(const char *path, gbx_golden *golden) {
    const gbx_scene_program *program = golden->program;
    golden->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!golden->library)
        return gbx_fail(GBX_BAD_KERNEL, "loading the golden %s: %s", program->source, dlerror());
    void *symbol = dlsym(golden->library, program->entry);
    if (!symbol)
        return gbx_fail(GBX_BAD_KERNEL,
                        "%s has no function %s; int %s(const gbx_run_args *run) is expected",
                        program->source, program->entry, program->entry);
    memcpy(&golden->function, &symbol, sizeof symbol);
    return NULL;
}

gbx_status gbx_golden_open(const gbx_scene_program *program, gbx_golden *out_golden) {
    *out_golden = (gbx_golden){.program = program};
    if (is_python(program))
        return NULL;
    char *path;
    GBX_TRY(gbx_kernel_compile(program->source, NULL, NULL, &path));
    gbx_status status = load(path, out_golden);
    free(path);
    if (status)
        gbx_golden_close(out_golden);
    return status;
}

void gbx_golden_close(gbx_golden *golden) {
    if (golden->library)
        dlclose(golden->library);
    *golden = (gbx_golden){0};
}

static gbx_status run_c(const gbx_golden *golden, const gbx_case_data *data) {
    char what[256];
    gbx_guard guard;
    gbx_run_args args = {.tensors = data->golden,
                         .scalars = data->scalars,
                         .tensor_count = data->tensor_count,
                         .scalar_count = data->scalar_count};
    snprintf(what, sizeof what, "%s: %s()", golden->program->source, golden->program->entry);
    GBX_TRY(gbx_guard_begin(&guard, what));
    int result = golden->function(&args);
    gbx_guard_end(&guard);
    if (result == 0)
        return NULL;
    return gbx_fail(GBX_INVALID_ARGUMENT, "%s returned %d; 0 is expected of a golden that is done",
                    what, result);
}

gbx_status gbx_golden_run(const gbx_golden *golden, gbx_case_data *data) {
    if (golden->function)
        return run_c(golden, data);
    return gbx_golden_run_python(golden->program, data);
}
