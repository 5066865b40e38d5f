#include "checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/process.h"
#include "diagnose/statics.h"

static char directory[] = "/tmp/glassbox-statics-XXXXXX";

static void put(const char *path, const void *bytes, size_t size) {
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    assert_int_equal(fwrite(bytes, 1, size, to), size);
    assert_int_equal(fclose(to), 0);
}

static char source[64], object[64];

static void compile(const char *text) {
    char *words[] = {(char *)(uintptr_t) "cc",
                     (char *)(uintptr_t) "-shared",
                     (char *)(uintptr_t) "-fPIC",
                     (char *)(uintptr_t) "-O1",
                     (char *)(uintptr_t) "-o",
                     object,
                     source,
                     NULL};
    gbx_process_result result;
    put(source, text, strlen(text));
    assert_null(gbx_process_run(words, &result));
    assert_int_equal(result.exit_code, 0);
    gbx_process_result_free(&result);
}

static void check(const char *text, const char *name, uint32_t line) {
    gbx_static found;
    compile(text);
    assert_null(gbx_static_find(object, source, &found));
    assert_string_equal(found.name, name);
    assert_int_equal(found.line, line);
}

static const char counting[] = "#include <stdint.h>\n"
                               "static const int table[] = {1, 2, 3};\n"
                               "void kernel_entry(const uint64_t *args) {\n"
                               "    static int calls;\n"
                               "    *(int *)(uintptr_t)args[0] = table[++calls % 3];\n"
                               "}\n";

static void test_static_of_function(void **state) {
    (void)state;
    check(counting, "calls", 4);
}

static void test_global(void **state) {
    (void)state;
    check("#include <stdint.h>\n\nint total = 7;\n"
          "void kernel_entry(const uint64_t *args) { total += (int)args[0]; }\n",
          "total", 3);
}

static void test_constants(void **state) {
    (void)state;
    check("#include <stdint.h>\nstatic const char *const names[] = {\"a\", \"b\"};\n"
          "void kernel_entry(const uint64_t *args) {\n"
          "    *(const char **)(uintptr_t)args[0] = names[args[1] & 1];\n}\n",
          "", 0);
}

static void test_none(void **state) {
    (void)state;
    check("#include <stdint.h>\nvoid kernel_entry(const uint64_t *args) { (void)args; }\n", "", 0);
}

/* An object may come from anybody. */
static void test_damaged(void **state) {
    char damaged[64], *bytes;
    size_t size;
    gbx_static found;
    (void)state;
    compile(counting);
    assert_null(gbx_read_file(object, 1 << 20, &bytes, &size));
    snprintf(damaged, sizeof damaged, "%s/damaged.so", directory);
    for (size_t length = 0; length < size; length += 97) {
        put(damaged, bytes, length);
        assert_null(gbx_static_find(damaged, source, &found));
    }
    for (size_t at = 0; at < 64; ++at) { /* of the header */
        char before = bytes[at];
        bytes[at] = (char)0xff;
        put(damaged, bytes, size);
        assert_null(gbx_static_find(damaged, source, &found));
        bytes[at] = before;
    }
    unlink(damaged);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_static_of_function),
                                       cmocka_unit_test(test_global),
                                       cmocka_unit_test(test_constants),
                                       cmocka_unit_test(test_none), cmocka_unit_test(test_damaged)};
    if (!mkdtemp(directory))
        return 1;
    snprintf(source, sizeof source, "%s/kernel.c", directory);
    snprintf(object, sizeof object, "%s/kernel.so", directory);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(source);
    unlink(object);
    rmdir(directory);
    return failed;
}
