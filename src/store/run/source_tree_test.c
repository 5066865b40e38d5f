#include "scratch.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "store/run/source_tree.h"

static int enter_directory(void **state) {
    (void)state;
    return !scratch_enter(NULL) || mkdir("kernels", 0700) || mkdir("shared", 0700);
}

static int leave_directory(void **state) {
    (void)state;
    return !scratch_leave();
}

static void write_file(const char *path, const char *text) {
    scratch_write(path, text, strlen(text));
}

/* The tree has exactly these files, as "NAME=TEXT" relative to its root, the source first. */
static void check_tree(const char *source, const char *const *expected, size_t count) {
    gbx_source_tree *tree;
    assert_ok(gbx_source_tree_read(source, &tree));
    assert_int_equal(tree->count, count);
    for (size_t i = 0; i < count; ++i) {
        char found[256];
        snprintf(found, sizeof found, "%s=%s", tree->paths[i] + tree->root_length, tree->texts[i]);
        assert_string_equal(found, expected[i]);
        assert_int_equal(tree->sizes[i], strlen(tree->texts[i]));
    }
    gbx_source_tree_free(tree);
}

static void test_alone(void **state) {
    (void)state;
    write_file("kernels/alone.c", "#include <glassbox/kernel.h>\nint a;\n");
    const char *expected[] = {"alone.c=#include <glassbox/kernel.h>\nint a;\n"};
    check_tree("kernels/alone.c", expected, 1);
    check_tree("kernels/../kernels/./alone.c", expected, 1);
}

static void test_includes_of_includes(void **state) {
    (void)state;
    write_file("kernels/a.c", "#include \"rows.h\"\n  # include\t\"rows.h\" /* again */\nint a;");
    write_file("kernels/rows.h", "#include \"../shared/layer.h\"\n#include \"a.c\"\n");
    write_file("shared/layer.h", "#include \"deep.h\"");
    write_file("shared/deep.h", "int deep;");
    const char *expected[] = {
        "kernels/a.c=#include \"rows.h\"\n  # include\t\"rows.h\" /* again */\nint a;",
        "kernels/rows.h=#include \"../shared/layer.h\"\n#include \"a.c\"\n",
        "shared/layer.h=#include \"deep.h\"", "shared/deep.h=int deep;"};
    check_tree("kernels/a.c", expected, 4);
}

static void test_lines_that_are_not_includes(void **state) {
    (void)state;
    write_file("kernels/b.h", "int b;");
    write_file("kernels/a.c", "#include \"missing.h\"\n#include \"\"\n#include \"b.h\n"
                              "// #include \"b.h\"\n#includes\n#\n#define X \"b.h\"\n"
                              "#include \"../shared\"\n");
    gbx_source_tree *tree;
    assert_ok(gbx_source_tree_read("kernels/a.c", &tree));
    assert_int_equal(tree->count, 1);
    gbx_source_tree_free(tree);
}

static void test_no_source(void **state) {
    (void)state;
    gbx_source_tree *tree;
    assert_fails(gbx_source_tree_read("kernels/none.c", &tree), GBX_NOT_FOUND,
                 "kernels/none.c: No such file");
    assert_null(tree);
    assert_fails(gbx_source_tree_read("shared", &tree), GBX_IO, "shared: it is a directory");
}

static void test_many_files(void **state) {
    (void)state;
    for (int i = 0; i < GBX_SOURCE_TREE_FILES + 20; ++i) {
        char path[64];
        char text[64];
        snprintf(path, sizeof path, "kernels/h%d.h", i);
        snprintf(text, sizeof text, "#include \"h%d.h\"\n", i + 1);
        write_file(path, text);
    }
    gbx_source_tree *tree;
    assert_ok(gbx_source_tree_read("kernels/h0.h", &tree));
    assert_int_equal(tree->count, GBX_SOURCE_TREE_FILES);
    gbx_source_tree_free(tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_alone, enter_directory, leave_directory),
        cmocka_unit_test_setup_teardown(test_includes_of_includes, enter_directory,
                                        leave_directory),
        cmocka_unit_test_setup_teardown(test_lines_that_are_not_includes, enter_directory,
                                        leave_directory),
        cmocka_unit_test_setup_teardown(test_no_source, enter_directory, leave_directory),
        cmocka_unit_test_setup_teardown(test_many_files, enter_directory, leave_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
