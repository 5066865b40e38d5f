/* What the suites share: the variants of a chip, kernels of tests/kernels, checks of a status. */
#ifndef GBX_TESTS_CHIP_SUPPORT_H
#define GBX_TESTS_CHIP_SUPPORT_H

/* cmocka wants these before itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>

#include <glassbox/glassbox.h>

typedef struct chip_variant {
    const char *platform;
    gbx_device_mode device;
    const char *name;
} chip_variant;

/* Runs the same tests over variants; each test gets its `const chip_variant *` as *state. */
int run_over_all_variants(const struct CMUnitTest *tests, size_t count);
int run_over_process_variants(const struct CMUnitTest *tests, size_t count);
#define RUN_OVER_ALL_VARIANTS(tests) run_over_all_variants(tests, sizeof(tests) / sizeof(tests)[0])
#define RUN_OVER_PROCESS_VARIANTS(tests)                                                           \
    run_over_process_variants(tests, sizeof(tests) / sizeof(tests)[0])

/* The status must be a success; a failure is shown with its message. Consumes it. */
#define assert_ok(status) check_ok((status), __FILE__, __LINE__)
void check_ok(gbx_status status, const char *file, int line);

/* The status must fail with the code, and its message hold every one of the texts. Consumes it. */
#define assert_fails(status, code, ...)                                                            \
    check_fails((status), (code), (const char *const[]){__VA_ARGS__, NULL}, __FILE__, __LINE__)
void check_fails(gbx_status status, gbx_code code, const char *const *texts, const char *file,
                 int line);

/* A chip of the variant with little memory; `blocks` 0 for the default. */
gbx_chip *open_chip(const chip_variant *variant, uint32_t blocks);
gbx_kernel test_kernel(uint32_t func_id, gbx_core_type core, const char *file, char path[4096]);
void register_kernel(gbx_chip *chip, uint32_t func_id, gbx_core_type core, const char *file);

/* Memory on the chip with these bytes in it. */
uint64_t put(gbx_chip *chip, const void *bytes, size_t size);
gbx_tensor vector_at(uint64_t address, gbx_dtype dtype, int64_t count);

/* A call of one kernel on AIV0 (or the AIC) with tensors alone. */
gbx_call call_of(uint32_t func_id, gbx_core_type core, uint32_t block_num,
                 const gbx_tensor *tensors, uint32_t tensor_count);

/* The process id of the chip. */
int chip_pid(const gbx_chip *chip);

/* What the process holds, to see that nothing stays behind. */
size_t count_open_files(void);
size_t count_mappings_of(const char *name);
bool has_children(void);

#endif
