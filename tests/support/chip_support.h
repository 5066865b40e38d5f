/* For all suites: the variants of a chip, and kernels of tests/kernels on them. */
#ifndef GBX_TESTS_CHIP_SUPPORT_H
#define GBX_TESTS_CHIP_SUPPORT_H

#include <stdbool.h>

#include <glassbox/glassbox.h>

#include "checks.h"

typedef struct chip_variant {
    const char *platform;
    gbx_device_mode device;
    const char *name;
} chip_variant;

/* Runs the same tests on all variants; each test gets its `const chip_variant *` as *state. */
int run_over_all_variants(const struct CMUnitTest *tests, size_t count);
int run_over_process_variants(const struct CMUnitTest *tests, size_t count);
#define RUN_OVER_ALL_VARIANTS(tests) run_over_all_variants(tests, sizeof(tests) / sizeof(tests)[0])
#define RUN_OVER_PROCESS_VARIANTS(tests)                                                           \
    run_over_process_variants(tests, sizeof(tests) / sizeof(tests)[0])

/* A chip of the variant with little memory; `blocks` 0 for the default. */
gbx_chip *open_chip(const chip_variant *variant, uint32_t blocks);
gbx_kernel test_kernel(uint32_t func_id, gbx_core_type core, const char *file, char path[4096]);

/* The shared object of a file of tests/kernels, compiled once per program. */
const char *compiled_object(const char *file);
void register_kernel(gbx_chip *chip, uint32_t func_id, gbx_core_type core, const char *file);

/* Memory on the chip that holds these bytes. */
uint64_t put(gbx_chip *chip, const void *bytes, size_t size);
gbx_tensor vector_at(uint64_t address, gbx_dtype dtype, int64_t count);

/* A call of one kernel on AIV0 (or the AIC) with only tensors. */
gbx_call call_of(uint32_t func_id, gbx_core_type core, uint32_t block_num,
                 const gbx_tensor *tensors, uint32_t tensor_count);

/* The process id of the chip. */
int chip_pid(const gbx_chip *chip);

#endif
