/*
 * The file of a scene: the input is scene.json. A few files that it can name exist; nothing is
 * compiled or run. Small tensors of a valid scene are filled.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/scene.h"
#include "target.h"

enum { FILLED_BYTES = 4096 };

/* The contents of `files`; the .npy holds the float32 numbers 1 and 2. */
static const char npy[] = "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, "
                          "'shape': (2,), }"
                          "                                                           \n"
                          "\x00\x00\x80\x3f\x00\x00\x00\x40";

static void prepare(void) {
    static const char *const files[] = {"k.c", "o.c", "g.c", "g.py"};
    static bool is_done;
    if (is_done)
        return;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; ++i)
        fuzz_write_file(files[i], "", 0);
    fuzz_write_file("x.npy", npy, sizeof npy - 1);
    is_done = true;
}

static void check_kernels(const gbx_scene *scene) {
    FUZZ_CHECK(scene->kernel_count > 0);
    for (size_t i = 0; i < scene->kernel_count; ++i) {
        const gbx_scene_kernel *kernel = &scene->kernels[i];
        FUZZ_CHECK(kernel->func_id < GBX_MAX_KERNELS && kernel->source);
        FUZZ_CHECK(kernel->name[0]);
        FUZZ_CHECK(kernel->parameter_count <= GBX_MAX_TENSOR_ARGS + GBX_MAX_SCALAR_ARGS);
        for (size_t k = 0; k < kernel->parameter_count; ++k) {
            FUZZ_CHECK(kernel->signature[k].is.kind <= GBX_PARAMETER_SCALAR);
            fuzz_touch_text(kernel->signature[k].name);
        }
        for (size_t k = 0; k < i; ++k) {
            FUZZ_CHECK(scene->kernels[k].func_id != kernel->func_id);
            FUZZ_CHECK(strcmp(scene->kernels[k].name, kernel->name) != 0);
        }
    }
}

static void check_programs(const gbx_scene *scene) {
    size_t count = 0;
    for (size_t i = 0; i < GBX_SCENE_MAX_RUNTIMES; ++i) {
        const gbx_scene_program *program = &scene->orchestrations[i];
        FUZZ_CHECK(!program->source || program->entry);
        count += program->source != NULL;
    }
    FUZZ_CHECK(count > 0);
    FUZZ_CHECK(!scene->golden.source || scene->golden.entry);
}

static void check_arg(const gbx_scene_arg *arg) {
    FUZZ_CHECK(arg->name[0] && gbx_dtype_is_valid(arg->tensor.dtype));
    if (arg->role == GBX_PARAMETER_SCALAR)
        return;
    FUZZ_CHECK(arg->rtol >= 0.0 && arg->atol >= 0.0);
    gbx_status status = gbx_tensor_validate(&arg->tensor);
    FUZZ_CHECK(status == NULL);
    uint64_t bytes = gbx_tensor_payload_bytes(&arg->tensor);
    FUZZ_CHECK(bytes <= GBX_MAX_GM_BYTES);
    if (bytes > FILLED_BYTES)
        return;
    unsigned char *memory = malloc((size_t)bytes + 1);
    FUZZ_CHECK(memory);
    status = gbx_fill_tensor(&arg->fill, &arg->tensor, memory);
    if (status)
        fuzz_check_failure(status);
    free(memory);
}

static void check_cases(const gbx_scene *scene) {
    FUZZ_CHECK(scene->case_count > 0);
    for (size_t i = 0; i < scene->case_count; ++i) {
        const gbx_scene_case *one = &scene->cases[i];
        FUZZ_CHECK(gbx_scene_find_case(scene, one->name) == one);
        for (size_t k = 0; k < scene->arg_count; ++k) {
            check_arg(&one->args[k]);
            FUZZ_CHECK(strcmp(one->args[k].name, scene->cases[0].args[k].name) == 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    prepare();
    int descriptor = fuzz_next_descriptor();
    fuzz_write_file("scene.json", data, size);
    gbx_scene *scene = NULL;
    gbx_status failure = gbx_scene_load(fuzz_directory(), &scene);
    if (failure) {
        fuzz_check_failure(failure);
        FUZZ_CHECK(scene == NULL);
    } else {
        FUZZ_CHECK(scene->name[0]);
        check_kernels(scene);
        check_programs(scene);
        check_cases(scene);
    }
    gbx_scene_free(scene);
    FUZZ_CHECK(fuzz_next_descriptor() == descriptor);
    return 0;
}
