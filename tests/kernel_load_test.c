/* Registering kernels from source, from a shared object and as a function; and every error. */
#include "chip_support.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"
#include "toolchain/kernel_compiler.h"

enum { KERNEL = 5 };

static void triple_in_place(const uint64_t *args) {
    const gbx_tensor *tensor = gbx_arg_tensor(args, 0);
    for (int64_t i = 0; i < tensor->shape[0]; ++i)
        gbx_tensor_f32(tensor)[i] *= 3.0f;
}

static void assert_add_works(gbx_chip *chip, uint32_t func_id) {
    const float a[3] = {1, 2, 3};
    const float b[3] = {10, 20, 30};
    float c[3] = {0};
    gbx_tensor tensors[] = {vector_at(put(chip, a, sizeof a), GBX_FLOAT32, 3),
                            vector_at(put(chip, b, sizeof b), GBX_FLOAT32, 3),
                            vector_at(put(chip, c, sizeof c), GBX_FLOAT32, 3)};
    gbx_call call = call_of(func_id, GBX_CORE_AIV, 1, tensors, 3);
    assert_ok(gbx_chip_call(chip, &call, NULL, NULL));
    assert_ok(gbx_gm_copy_out(chip, c, tensors[2].data, sizeof c));
    const float expected[3] = {11, 22, 33};
    assert_memory_equal(c, expected, sizeof c);
}

static void test_function_pointer(void **state) {
    const chip_variant *variant = *state;
    gbx_chip *chip = open_chip(variant, 1);
    gbx_kernel kernel = {
        .func_id = KERNEL, .name = "triple", .core = GBX_CORE_AIV, .function = triple_in_place};
    if (variant->device == GBX_DEVICE_PROCESS) {
        assert_fails(gbx_kernel_register(chip, &kernel), GBX_UNSUPPORTED, "triple",
                     "function pointer", "GBX_DEVICE_THREAD");
        gbx_chip_close(chip);
        return;
    }
    assert_ok(gbx_kernel_register(chip, &kernel));
    float values[3] = {1, -2, 0.5f};
    gbx_tensor tensor = vector_at(put(chip, values, sizeof values), GBX_FLOAT32, 3);
    gbx_call call = call_of(KERNEL, GBX_CORE_AIV, 1, &tensor, 1);
    assert_ok(gbx_chip_call(chip, &call, NULL, NULL));
    assert_ok(gbx_gm_copy_out(chip, values, tensor.data, sizeof values));
    const float expected[3] = {3, -6, 1.5f};
    assert_memory_equal(values, expected, sizeof values);
    gbx_chip_close(chip);
}

/* An existing .so, given as a relative path without a slash, is loaded and not changed. */
static void test_shared_object(void **state) {
    char source[4096];
    char directory[] = "/tmp/glassbox-test-XXXXXX";
    char before_directory[PATH_MAX];
    char *compiled;
    gbx_kernel kernel = test_kernel(KERNEL, GBX_CORE_AIV, "add.c", source);
    assert_ok(gbx_kernel_compile(kernel.source, NULL, NULL, &compiled));
    assert_non_null(mkdtemp(directory));
    assert_non_null(getcwd(before_directory, sizeof before_directory));
    assert_int_equal(chdir(directory), 0);
    gbx_process_result result;
    char *const copy[] = {"cp", compiled, "ready.so", NULL};
    assert_ok(gbx_process_run(copy, &result));
    gbx_process_result_free(&result);
    struct stat before;
    struct stat after;
    assert_int_equal(stat("ready.so", &before), 0);
    gbx_chip *chip = open_chip(*state, 1);
    kernel.source = NULL;
    kernel.shared_object = "ready.so";
    assert_ok(gbx_kernel_register(chip, &kernel));
    assert_add_works(chip, KERNEL);
    gbx_chip_close(chip);
    assert_int_equal(stat("ready.so", &after), 0);
    assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    assert_int_equal(before.st_ino, after.st_ino);
    unlink("ready.so");
    assert_int_equal(chdir(before_directory), 0);
    rmdir(directory);
    free(compiled);
}

static void check_own_names(const chip_variant *variant, const char *compile_flags) {
    gbx_chip *chip = open_chip(variant, 1);
    char path[4096];
    float values[4] = {0.0f, 1.0f, -2.0f, 3.5f};
    gbx_kernel kernel = test_kernel(KERNEL, GBX_CORE_AIV, "own_names.c", path);
    kernel.compile_flags = compile_flags;
    kernel.link_flags = "-lpthread";
    assert_ok(gbx_kernel_register(chip, &kernel));
    gbx_tensor tensor = vector_at(put(chip, values, sizeof values), GBX_FLOAT32, 4);
    gbx_call call = call_of(KERNEL, GBX_CORE_AIV, 1, &tensor, 1);
    assert_ok(gbx_chip_call(chip, &call, NULL, NULL));
    float got[4];
    assert_ok(gbx_gm_copy_out(chip, got, tensor.data, sizeof got));
    for (int i = 0; i < 4; ++i)
        assert_true(got[i] == (values[i] > 0.0f ? tanhf(values[i]) : -1.0f));
    gbx_chip_close(chip);
}

/* libm is available, a kernel may define its own select(), and hidden visibility does not hide the
 * entry. */
static void test_kernel_with_libm_and_names_of_libc(void **state) {
    check_own_names(*state, NULL);
    check_own_names(*state, "-O0 -fsemantic-interposition");
    check_own_names(*state, "-fvisibility=hidden");
}

/* The chip stays usable after each refusal. */
static void test_bad_kernels_say_why(void **state) {
    gbx_chip *chip = open_chip(*state, 1);
    char path[4096];
    gbx_kernel kernel = test_kernel(KERNEL, GBX_CORE_AIV, "does_not_compile.c", path);
    assert_fails(gbx_kernel_register(chip, &kernel), GBX_BAD_KERNEL,
                 "does_not_compile.c:5:", "error:", "no_such_field");
    kernel = test_kernel(KERNEL, GBX_CORE_AIV, "no_entry.c", path);
    assert_fails(gbx_kernel_register(chip, &kernel), GBX_BAD_KERNEL,
                 "registering kernel no_entry.c", "has no kernel_entry",
                 "void kernel_entry(const uint64_t *args)");
    kernel = test_kernel(KERNEL, GBX_CORE_AIV, "undefined_symbol.c", path);
    assert_fails(gbx_kernel_register(chip, &kernel), GBX_BAD_KERNEL, "undefined symbol",
                 "function_without_definition");
    kernel = test_kernel(KERNEL, GBX_CORE_AIV, "nowhere.c", path);
    assert_fails(gbx_kernel_register(chip, &kernel), GBX_NOT_FOUND, "nowhere.c", "No such file");
    kernel = test_kernel(KERNEL, GBX_CORE_AIV, "add.c", path);
    kernel.shared_object = kernel.source;
    assert_fails(gbx_kernel_register(chip, &kernel), GBX_INVALID_ARGUMENT, "exactly one");
    kernel.source = NULL;
    assert_fails(gbx_kernel_register(chip, &kernel), GBX_BAD_KERNEL, "add.c", "invalid ELF header");
    kernel.shared_object = "/nonexistent/kernel.so";
    assert_fails(gbx_kernel_register(chip, &kernel), GBX_NOT_FOUND, "/nonexistent/kernel.so");
    /* A program is not a shared object: the loader says so. */
    kernel.shared_object = "/proc/self/exe";
    assert_fails(gbx_kernel_register(chip, &kernel), GBX_BAD_KERNEL, "registering kernel add.c");
    register_kernel(chip, KERNEL, GBX_CORE_AIV, "add.c");
    assert_add_works(chip, KERNEL);
    gbx_chip_close(chip);
}

static void test_bad_registrations_say_why(void **state) {
    gbx_chip *chip = open_chip(*state, 1);
    char path[4096];
    char long_name[80];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    gbx_kernel kernel = test_kernel(KERNEL, GBX_CORE_AIV, "add.c", path);
    assert_ok(gbx_kernel_register(chip, &kernel));
    kernel.name = "again";
    assert_fails(gbx_kernel_register(chip, &kernel), GBX_INVALID_ARGUMENT, "again", "func_id 5",
                 "taken by kernel add.c");
    kernel.func_id = GBX_MAX_KERNELS;
    assert_fails(gbx_kernel_register(chip, &kernel), GBX_OUT_OF_RANGE, "func_id 1024");
    kernel.func_id = 6;
    kernel.name = long_name;
    assert_fails(gbx_kernel_register(chip, &kernel), GBX_INVALID_ARGUMENT, "1 to 63 bytes");
    kernel.name = NULL;
    assert_fails(gbx_kernel_register(chip, &kernel), GBX_INVALID_ARGUMENT, "func 6", "name");
    kernel.name = "odd";
    kernel.core = (gbx_core_type)5;
    assert_fails(gbx_kernel_register(chip, &kernel), GBX_INVALID_ARGUMENT, "odd", "core type 5");
    kernel.core = GBX_CORE_AIV;
    kernel.source = NULL;
    assert_fails(gbx_kernel_register(chip, &kernel), GBX_INVALID_ARGUMENT, "odd", "0 of source");
    gbx_chip_close(chip);
}

/* The maximum number of kernels, all from one file: the last works like the first. */
static void test_as_many_kernels_as_fit(void **state) {
    gbx_chip *chip = open_chip(*state, 1);
    char source[4096];
    char *compiled;
    gbx_kernel kernel = test_kernel(0, GBX_CORE_AIV, "add.c", source);
    assert_ok(gbx_kernel_compile(kernel.source, NULL, NULL, &compiled));
    kernel.source = NULL;
    kernel.shared_object = compiled;
    for (kernel.func_id = 0; kernel.func_id < GBX_MAX_KERNELS; ++kernel.func_id)
        assert_ok(gbx_kernel_register(chip, &kernel));
    assert_add_works(chip, 0);
    assert_add_works(chip, GBX_MAX_KERNELS - 1);
    gbx_chip_close(chip);
    free(compiled);
}

/* Opening reports a missing or wrong chip program. */
static void test_wrong_chip_program(void **state) {
    const chip_variant *variant = *state;
    if (variant->device == GBX_DEVICE_THREAD)
        return;
    gbx_chip_config config = {.platform = variant->platform, .chip_program = "/nonexistent/chip"};
    gbx_chip *chip;
    assert_fails(gbx_chip_open(&config, &chip), GBX_NOT_FOUND, "/nonexistent/chip");
    config.chip_program = "/bin/false";
    assert_fails(gbx_chip_open(&config, &chip), GBX_DEVICE_LOST, "code 1",
                 "is GLASSBOX_CHIP a glassbox-chip?");
    config.chip_program = "/etc/passwd";
    assert_fails(gbx_chip_open(&config, &chip), GBX_NOT_FOUND, "/etc/passwd", "cannot be run");
    assert_false(has_children());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_function_pointer),
        cmocka_unit_test(test_shared_object),
        cmocka_unit_test(test_kernel_with_libm_and_names_of_libc),
        cmocka_unit_test(test_bad_kernels_say_why),
        cmocka_unit_test(test_bad_registrations_say_why),
        cmocka_unit_test(test_as_many_kernels_as_fit),
        cmocka_unit_test(test_wrong_chip_program),
    };
    return RUN_OVER_ALL_VARIANTS(tests);
}
