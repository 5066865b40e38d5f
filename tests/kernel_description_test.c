/* What a registered kernel keeps for dumps, and which descriptions are refused. */
#include "chip_support.h"

#include <stdlib.h>
#include <string.h>

#include "chip/host/chip.h"
#include "toolchain/kernel_compiler.h"

static const chip_variant in_a_thread = {.platform = "a2a3sim", .device = GBX_DEVICE_THREAD};

static void do_nothing(const uint64_t *args) {
    (void)args;
}

static gbx_kernel described(const char *signature, const char *arg_names) {
    gbx_kernel kernel = {.func_id = 3,
                         .name = "nothing",
                         .core = GBX_CORE_AIV,
                         .function = do_nothing,
                         .signature = signature,
                         .arg_names = arg_names};
    return kernel;
}

static void test_descriptions_are_copied(void **state) {
    (void)state;
    char signature[] = "in,out,inout,scalar,scalar:float32,scalar:BF16";
    char names[] = "a,b,c,d,e,f";
    char origin[] = "somewhere/nothing.c";
    gbx_chip *chip = open_chip(&in_a_thread, 1);
    gbx_kernel kernel = described(signature, names);
    kernel.origin = origin;
    assert_ok(gbx_kernel_register(chip, &kernel));
    memset(signature, 'x', sizeof signature - 1);
    memset(names, 'x', sizeof names - 1);
    memset(origin, 'x', sizeof origin - 1);
    const gbx_kernel_entry *entry = &chip->kernels[3];
    assert_string_equal(entry->signature, "in,out,inout,scalar,scalar:float32,scalar:BF16");
    assert_string_equal(entry->arg_names, "a,b,c,d,e,f");
    assert_string_equal(entry->origin, "somewhere/nothing.c");
    assert_null(entry->object_path);
    gbx_chip_close(chip);
}

static void test_nothing_is_needed(void **state) {
    (void)state;
    gbx_chip *chip = open_chip(&in_a_thread, 1);
    gbx_kernel plain = described(NULL, NULL);
    gbx_kernel without_arguments = described("", "");
    without_arguments.func_id = 4;
    assert_ok(gbx_kernel_register(chip, &plain));
    assert_ok(gbx_kernel_register(chip, &without_arguments));
    assert_null(chip->kernels[3].signature);
    assert_null(chip->kernels[3].arg_names);
    assert_null(chip->kernels[3].origin);
    assert_string_equal(chip->kernels[4].signature, "");
    gbx_chip_close(chip);
}

static void test_wrong_descriptions(void **state) {
    (void)state;
    static char many[33 * 3 + 1];
    for (int i = 0; i < 33; ++i)
        memcpy(many + 3 * i, i < 32 ? "in," : "in", i < 32 ? 3 : 2);
    const struct {
        const char *signature;
        const char *arg_names;
        const char *says;
    } cases[] = {
        {"in,inn", NULL,
         "signature \"in,inn\": unknown word \"inn\"; expected in, out, inout or scalar, alone or as "
         "in in:float32, in:float32[2], in:[2] or scalar:float32"},
        {"in:", NULL, "unknown word \"in:\""},
        {"in:f33", NULL, "unknown word \"in:f33\""},
        {"in[2]", NULL, "unknown word \"in[2]\""},
        {"in:float32[9]", NULL, "unknown word \"in:float32[9]\""},
        {"in:float32[]", NULL, "unknown word \"in:float32[]\""},
        {"in:float32[2", NULL, "unknown word \"in:float32[2\""},
        {"in:float32[2]x", NULL, "unknown word \"in:float32[2]x\""},
        {"scalar:float32[2]", NULL, "unknown word \"scalar:float32[2]\""},
        {"scalar:[0]", NULL, "unknown word \"scalar:[0]\""},
        {"in,", NULL, "unknown word \"\""},
        {"in, out", NULL, "unknown word \" out\""},
        {"scalar:", NULL, "unknown word \"scalar:\""},
        {"scalar:f33", NULL, "unknown word \"scalar:f33\""},
        {"scalars", NULL, "unknown word \"scalars\""},
        {"scalar:float32float32float32float32float32", NULL,
         "unknown word \"scalar:float32float32float32float32float32\""},
        {"in,out", "a", "arg_names \"a\" has 1 names, the signature 2 words"},
        {"in,out", "a,b,c", "arg_names \"a,b,c\" has 3 names, the signature 2 words"},
        {"in", "", "has 0 names, the signature 1 words"},
        {"in,out", "a,", "arg_names \"a,\": a name is empty"},
        {NULL, "a", "arg_names is set without a signature"},
        {many, NULL, "33 tensors and 0 scalars, at most 32 and 32"},
    };
    gbx_chip *chip = open_chip(&in_a_thread, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        gbx_kernel kernel = described(cases[i].signature, cases[i].arg_names);
        assert_fails(gbx_kernel_register(chip, &kernel), GBX_INVALID_ARGUMENT,
                     "registering kernel nothing: ", cases[i].says);
        assert_int_equal(chip->kernels[3].name[0], 0);
    }
    gbx_kernel right = described("in,out", "a,b");
    assert_ok(gbx_kernel_register(chip, &right));
    gbx_chip_close(chip);
}

/* The origin of a source is the source itself; the object is in the cache. */
static void test_paths_of_sources_and_objects(void **state) {
    (void)state;
    char source[4096];
    char *compiled;
    gbx_chip *chip = open_chip(&in_a_thread, 1);
    gbx_kernel kernel = test_kernel(5, GBX_CORE_AIV, "add.c", source);
    kernel.origin = "not this";
    assert_ok(gbx_kernel_compile(kernel.source, NULL, NULL, &compiled));
    assert_ok(gbx_kernel_register(chip, &kernel));
    assert_string_equal(chip->kernels[5].origin, source);
    assert_string_equal(chip->kernels[5].object_path, compiled);
    assert_int_equal(compiled[0], '/');
    gbx_kernel object = {.func_id = 6,
                         .name = "object",
                         .core = GBX_CORE_AIV,
                         .shared_object = compiled,
                         .origin = "add.c"};
    assert_ok(gbx_kernel_register(chip, &object));
    assert_string_equal(chip->kernels[6].origin, "add.c");
    assert_string_equal(chip->kernels[6].object_path, compiled);
    free(compiled);
    gbx_chip_close(chip);
}

/* A kernel that did not load is not registered, and its number stays free. */
static void test_a_kernel_that_does_not_load_leaves_nothing(void **state) {
    (void)state;
    char source[4096];
    gbx_chip *chip = open_chip(&in_a_thread, 1);
    gbx_kernel kernel = test_kernel(3, GBX_CORE_AIV, "no_entry.c", source);
    kernel.signature = "in";
    assert_fails(gbx_kernel_register(chip, &kernel), GBX_BAD_KERNEL, "no_entry");
    assert_null(chip->kernels[3].signature);
    assert_null(chip->kernels[3].object_path);
    gbx_kernel right = described("out", NULL);
    assert_ok(gbx_kernel_register(chip, &right));
    assert_string_equal(chip->kernels[3].signature, "out");
    gbx_chip_close(chip);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptions_are_copied),
        cmocka_unit_test(test_nothing_is_needed),
        cmocka_unit_test(test_wrong_descriptions),
        cmocka_unit_test(test_paths_of_sources_and_objects),
        cmocka_unit_test(test_a_kernel_that_does_not_load_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
