#include "replay/trust/replay_trust.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void flags_that_only_translate_are_harmless(void **state) {
    (void)state;
    assert_true(gbx_flags_are_harmless(NULL, NULL));
    assert_true(gbx_flags_are_harmless("", " \t "));
    assert_true(gbx_flags_are_harmless("-ffp-contract=fast -Wno-psabi", NULL));
    assert_true(gbx_flags_are_harmless(" -O2\t-g -std=c11 -march=x86-64-v3 -fno-builtin ", "-lm"));
    assert_true(gbx_flags_are_harmless("-mavx512f -funroll-loops", "-lopenblas -pthread"));
}

static void others_are_not(void **state) {
    static const char *const compile[] = {"-fplugin=x.so",
                                          "-fpass-plugin=x",
                                          "-Xclang",
                                          "-load",
                                          "-mllvm",
                                          "-wrapper",
                                          "-B.",
                                          "-specs=x",
                                          "-include",
                                          "-Dx=system",
                                          "-Iinclude",
                                          "@file",
                                          "x.c",
                                          "-o",
                                          "-Wl,-rpath",
                                          "-Wp,-DX",
                                          "-Wa,--x",
                                          "-imacros",
                                          "-fprofile-use=x",
                                          "-fdump-tree-all",
                                          "-save-temps",
                                          "-O2/../x",
                                          "-gsplit-dwarf",
                                          "-fuse-ld=x",
                                          "--sysroot=x",
                                          "-std=c11 -fplugin=x"};
    static const char *const link[] = {"-Wl,x", "-L.", "x.o", "-T", "-fuse-ld=x", "-l/x", "-rpath"};
    (void)state;
    for (size_t i = 0; i < sizeof compile / sizeof compile[0]; ++i)
        if (gbx_flags_are_harmless(compile[i], NULL))
            fail_msg("\"%s\" is accepted as harmless", compile[i]);
    for (size_t i = 0; i < sizeof link / sizeof link[0]; ++i)
        if (gbx_flags_are_harmless(NULL, link[i]))
            fail_msg("\"%s\" is accepted as harmless", link[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_that_only_translate_are_harmless),
        cmocka_unit_test(others_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
