#include "chip_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chip/host/chip.h"
#include "hal/sim.h"
#include "toolchain/kernel_compiler.h"

static const chip_variant variants[] = {
    {"a2a3sim", GBX_DEVICE_PROCESS, "a2a3sim in a process"},
    {"a5sim", GBX_DEVICE_PROCESS, "a5sim in a process"},
    {"a2a3sim", GBX_DEVICE_THREAD, "a2a3sim in a thread"},
    {"a5sim", GBX_DEVICE_THREAD, "a5sim in a thread"},
};

static int run_over(const chip_variant *variant, const struct CMUnitTest *tests, size_t count) {
    struct CMUnitTest bound[64];
    if (count > sizeof bound / sizeof bound[0])
        return 1;
    for (size_t i = 0; i < count; ++i) {
        bound[i] = tests[i];
        bound[i].initial_state = (void *)(uintptr_t)variant;
    }
    return _cmocka_run_group_tests(variant->name, bound, count, NULL, NULL);
}

int run_over_all_variants(const struct CMUnitTest *tests, size_t count) {
    int failed = 0;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; ++i)
        failed += run_over(&variants[i], tests, count);
    return failed;
}

int run_over_process_variants(const struct CMUnitTest *tests, size_t count) {
    int failed = 0;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; ++i)
        if (variants[i].device == GBX_DEVICE_PROCESS)
            failed += run_over(&variants[i], tests, count);
    return failed;
}

gbx_chip *open_chip(const chip_variant *variant, uint32_t blocks) {
    gbx_chip_config config = {.platform = variant->platform,
                              .device = variant->device,
                              .blocks = blocks,
                              .gm_bytes = 64 << 20};
    gbx_chip *chip;
    assert_ok(gbx_chip_open(&config, &chip));
    return chip;
}

gbx_kernel test_kernel(uint32_t func_id, gbx_core_type core, const char *file, char path[4096]) {
    const char *directory = getenv("GLASSBOX_TEST_KERNELS");
    snprintf(path, 4096, "%s/%s", directory ? directory : "tests/kernels", file);
    gbx_kernel kernel = {.func_id = func_id, .name = file, .core = core, .source = path};
    return kernel;
}

const char *compiled_object(const char *file) {
    static struct {
        char name[32];
        char *path;
    } known[16];
    char path[4096];
    size_t i = 0;
    while (known[i].path && strcmp(known[i].name, file) != 0)
        ++i;
    if (!known[i].path) {
        gbx_kernel kernel = test_kernel(0, GBX_CORE_AIV, file, path);
        assert_ok(gbx_kernel_compile(kernel.source, NULL, NULL, &known[i].path));
        snprintf(known[i].name, sizeof known[i].name, "%s", file);
    }
    return known[i].path;
}

void register_kernel(gbx_chip *chip, uint32_t func_id, gbx_core_type core, const char *file) {
    gbx_kernel kernel = {
        .func_id = func_id, .name = file, .core = core, .shared_object = compiled_object(file)};
    assert_ok(gbx_kernel_register(chip, &kernel));
}

uint64_t put(gbx_chip *chip, const void *bytes, size_t size) {
    uint64_t address;
    assert_ok(gbx_gm_alloc(chip, size, &address));
    assert_ok(gbx_gm_copy_in(chip, address, bytes, size));
    return address;
}

gbx_tensor vector_at(uint64_t address, gbx_dtype dtype, int64_t count) {
    gbx_tensor tensor;
    assert_ok(gbx_tensor_contiguous(address, dtype, 1, &count, &tensor));
    return tensor;
}

gbx_call call_of(uint32_t func_id, gbx_core_type core, uint32_t block_num,
                 const gbx_tensor *tensors, uint32_t tensor_count) {
    gbx_call call = core == GBX_CORE_AIC ? gbx_call_aic(func_id) : gbx_call_aiv(func_id);
    call.block_num = block_num;
    call.tensors = tensors;
    call.tensor_count = tensor_count;
    return call;
}

int chip_pid(const gbx_chip *chip) {
    return (int)((const gbx_sim *)chip->hal)->pid;
}
