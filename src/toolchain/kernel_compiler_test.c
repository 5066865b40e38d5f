#include "checks.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <glassbox/kernel.h>

#include "toolchain/kernel_compiler.h"

enum { PATH_BYTES = 512, AT_ONCE = 4 };

extern const char gbx_embedded_kernel_header[];

/* The directory of one test: sources are here, the cache is in <root>/cache. */
typedef struct workshop {
    char root[64];
    char source[PATH_BYTES]; /* <root>/kernel.c */
} workshop;

static void assert_message_holds(gbx_status status, const char *text) {
    if (!strstr(gbx_status_message(status), text))
        fail_msg("\"%s\" does not hold \"%s\"", gbx_status_message(status), text);
}

static void join(char out_path[PATH_BYTES], const char *root, const char *rest) {
    snprintf(out_path, PATH_BYTES, "%s/%s", root, rest);
}

/* The system's compiler, in English, with only the glassbox of this build. */
static int set_up(void **state) {
    char cache[PATH_BYTES];
    workshop *shop = calloc(1, sizeof *shop);
    *state = shop;
    if (!shop)
        return -1;
    strcpy(shop->root, "/tmp/gbx-compiler-test-XXXXXX");
    if (!mkdtemp(shop->root))
        return -1;
    join(shop->source, shop->root, "kernel.c");
    join(cache, shop->root, "cache");
    unsetenv("CC");
    unsetenv("CPATH");
    unsetenv("C_INCLUDE_PATH");
    return setenv("GLASSBOX_CACHE", cache, 1) || setenv("LC_ALL", "C", 1);
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

static int tear_down(void **state) {
    workshop *shop = *state;
    int result = nftw(shop->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(shop);
    return result;
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void write_beside(const workshop *shop, const char *name, const char *text) {
    char path[PATH_BYTES];
    join(path, shop->root, name);
    write_text(path, text);
}

/* A kernel that stores the value of an expression to the address in args[0]. */
static void write_answer(const workshop *shop, const char *before, const char *expression) {
    char text[1024];
    snprintf(text, sizeof text,
             "#include <stdint.h>\n%s\n"
             "void kernel_entry(const uint64_t *args) { *(int64_t *)args[0] = %s; }\n",
             before, expression);
    write_text(shop->source, text);
}

static char *compile(const workshop *shop, const char *flags) {
    char *path = NULL;
    assert_ok(gbx_kernel_compile(shop->source, flags, NULL, &path));
    assert_non_null(path);
    return path;
}

/* Compiles again; the path must be the same, or another, as asked. */
static void assert_compiles_to(const workshop *shop, const char *flags, const char *path,
                               bool is_same) {
    char *again = compile(shop, flags);
    assert_int_equal(strcmp(again, path) == 0, is_same);
    free(again);
}

/* Loads a shared object and runs its entry; false if it cannot be loaded. */
static bool run_kernel(const char *path, const uint64_t *args) {
    void (*entry)(const uint64_t *) = NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    *(void **)&entry = dlsym(library, "kernel_entry");
    if (entry)
        entry(args);
    dlclose(library);
    return entry != NULL;
}

/* What a kernel of write_answer stores; -1 if it cannot be run. */
static int64_t answer_of(const char *path) {
    int64_t answer = -1;
    const uint64_t args[GBX_ARG_SLOTS] = {(uintptr_t)&answer};
    return run_kernel(path, args) ? answer : -1;
}

static void assert_answer(const workshop *shop, const char *flags, int64_t answer) {
    char *path = compile(shop, flags);
    assert_int_equal(answer_of(path), answer);
    free(path);
}

/* How many files of the workshop match; all must end in `suffix`. */
static size_t count_files(const workshop *shop, const char *pattern, const char *suffix) {
    char full[PATH_BYTES];
    glob_t found = {0};
    join(full, shop->root, pattern);
    int result = glob(full, 0, NULL, &found);
    assert_true(result == 0 || result == GLOB_NOMATCH);
    size_t count = found.gl_pathc;
    for (size_t i = 0; i < count; ++i) {
        size_t length = strlen(found.gl_pathv[i]);
        assert_true(length > strlen(suffix));
        assert_string_equal(found.gl_pathv[i] + length - strlen(suffix), suffix);
    }
    globfree(&found);
    return count;
}

/* Compiled kernels, the two headers, and no temporary files. */
static void assert_cache_holds(const workshop *shop, size_t kernel_count) {
    assert_int_equal(count_files(shop, "cache/kernels/*", ".so"), kernel_count);
    assert_int_equal(count_files(shop, "cache/include/*/glassbox/kernel*", "/kernel.h"), 1);
    assert_int_equal(count_files(shop, "cache/include/*/glassbox/*", ".h"), 2);
}

/* Compiling the source must fail with this code; returns the status, which the caller frees. */
static gbx_status assert_refused(const char *source, gbx_code code) {
    char *path = "untouched";
    gbx_status status = gbx_kernel_compile(source, NULL, NULL, &path);
    if (gbx_status_code(status) != code)
        fail_msg("%s: \"%s\"", gbx_code_name(gbx_status_code(status)), gbx_status_message(status));
    assert_null(path);
    return status;
}

/* ---- results ---- */

static const char scale_source[] =
    "#include <glassbox/kernel.h>\n"
    "void kernel_entry(const uint64_t *args) {\n"
    "    const gbx_tensor *x = gbx_arg_tensor(args, 0);\n"
    "    const gbx_tensor *y = gbx_arg_tensor(args, 1);\n"
    "    float scale = gbx_arg_f32(args, 2);\n"
    "    int64_t added = gbx_arg_i64(args, 3) + gbx_local(args)->block_idx;\n"
    "    for (int64_t i = 0; i < gbx_tensor_numel(x); ++i)\n"
    "        gbx_tensor_f32(y)[i] = gbx_tensor_f32(x)[i * x->strides[0]] * scale + (float)added;\n"
    "}\n";

static void a_kernel_runs_with_its_arguments(void **state) {
    const workshop *shop = *state;
    const float in[8] = {9, 1, 9, 2, 9, 3, 9, 4};
    float out[4] = {0};
    const gbx_tensor x = {.data = (uintptr_t)in,
                          .dtype = GBX_FLOAT32,
                          .ndims = 1,
                          .start_offset = 1,
                          .shape = {4},
                          .strides = {2}};
    const gbx_tensor y = {
        .data = (uintptr_t)out, .dtype = GBX_FLOAT32, .ndims = 1, .shape = {4}, .strides = {1}};
    const gbx_local_context local = {.block_idx = 5, .block_num = 6};
    const float scale = 2.5F;
    uint64_t args[GBX_ARG_SLOTS] = {(uintptr_t)&x, (uintptr_t)&y, 0, (uint64_t)INT64_C(-7)};
    args[GBX_ARG_LOCAL_CONTEXT] = (uintptr_t)&local;
    memcpy(&args[2], &scale, sizeof scale);
    write_text(shop->source, scale_source);
    char *path = compile(shop, NULL);
    assert_int_equal(path[0], '/');
    assert_true(run_kernel(path, args));
    const float expected[4] = {0.5F, 3.0F, 5.5F, 8.0F};
    assert_memory_equal(out, expected, sizeof expected);
    assert_cache_holds(shop, 1);
    free(path);
}

static void assert_content(const char *path, const char *text) {
    size_t size = strlen(text);
    char *content = malloc(size + 2); /* room for one byte too many, which would be seen */
    FILE *file = fopen(path, "r");
    assert_non_null(content);
    assert_non_null(file);
    assert_int_equal(fread(content, 1, size + 1, file), size);
    fclose(file);
    assert_memory_equal(content, text, size);
    free(content);
}

/* A conflict with the header makes the compiler print which header it has read. */
static void the_header_of_this_build_is_the_one_that_is_included(void **state) {
    const workshop *shop = *state;
    char pattern[PATH_BYTES];
    glob_t found = {0};
    write_text(shop->source, "#include <glassbox/kernel.h>\ntypedef void gbx_tensor;\n");
    gbx_status status = assert_refused(shop->source, GBX_BAD_KERNEL);
    join(pattern, shop->root, "cache/include/*/glassbox/kernel.h");
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    assert_message_holds(status, found.gl_pathv[0]);
    assert_content(found.gl_pathv[0], gbx_embedded_kernel_header);
    globfree(&found);
    gbx_status_free(status);
}

/* A fused operation would keep the low bits of the product, and give other bits. */
static void products_and_sums_are_not_contracted(void **state) {
    const workshop *shop = *state;
    const float a = 1.0F + 0x1p-12F;
    const float c = -(1.0F + 0x1p-11F);
    float values[3] = {a, c, 9.0F};
    const uint64_t args[GBX_ARG_SLOTS] = {(uintptr_t)values};
    write_text(shop->source, "#include <stdint.h>\n"
                             "void kernel_entry(const uint64_t *args) {\n"
                             "    float *v = (float *)args[0];\n"
                             "    v[2] = v[0] * v[0] + v[1];\n"
                             "}\n");
    char *path = compile(shop, NULL);
    assert_true(run_kernel(path, args));
    assert_true(values[2] == 0.0F);
    free(path);
}

/* ---- the cache ---- */

static void the_second_compile_does_not_touch_the_file(void **state) {
    const workshop *shop = *state;
    struct stat before;
    struct stat after;
    write_answer(shop, "", "41");
    char *path = compile(shop, NULL);
    assert_int_equal(stat(path, &before), 0);
    assert_compiles_to(shop, NULL, path, true);
    assert_compiles_to(shop, NULL, path, true);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    assert_int_equal(after.st_size, before.st_size);
    assert_memory_equal(&after.st_mtim, &before.st_mtim, sizeof before.st_mtim);
    assert_memory_equal(&after.st_ctim, &before.st_ctim, sizeof before.st_ctim);
    assert_cache_holds(shop, 1);
    free(path);
}

/* An interrupted compiler leaves its file; the next one that runs removes it after a day. */
static void what_a_compiler_left_long_ago_is_removed(void **state) {
    static const char left[] = "cache/kernels/0123456789abcdef0123456789abcdef.so.aB3dEf";
    const workshop *shop = *state;
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    char path[PATH_BYTES];
    write_answer(shop, "", "41");
    free(compile(shop, NULL));
    join(path, shop->root, left);
    write_text(path, "");
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    free(compile(shop, NULL)); /* runs none */
    assert_int_equal(access(path, F_OK), 0);
    free(compile(shop, "-O1"));
    assert_int_equal(access(path, F_OK), -1);
    assert_cache_holds(shop, 2);
}

static void another_working_directory_gives_the_same_path(void **state) {
    const workshop *shop = *state;
    char *here = getcwd(NULL, 0);
    assert_non_null(here);
    write_answer(shop, "", "43");
    char *path = compile(shop, NULL);
    assert_int_equal(chdir("/"), 0);
    assert_compiles_to(shop, NULL, path, true);
    assert_int_equal(chdir(here), 0);
    assert_cache_holds(shop, 1);
    free(path);
    free(here);
}

static void a_change_in_the_source_gives_another_path(void **state) {
    const workshop *shop = *state;
    write_answer(shop, "", "1");
    char *path = compile(shop, NULL);
    write_answer(shop, "", "2");
    assert_compiles_to(shop, NULL, path, false);
    assert_answer(shop, NULL, 2);
    write_answer(shop, "", "1");
    assert_compiles_to(shop, NULL, path, true);
    assert_int_equal(answer_of(path), 1);
    assert_cache_holds(shop, 2);
    free(path);
}

static void a_change_in_an_included_file_gives_another_path(void **state) {
    const workshop *shop = *state;
    write_answer(shop, "#include \"outer.h\"", "ANSWER");
    write_beside(shop, "outer.h", "#include \"inner.h\"\n");
    write_beside(shop, "inner.h", "#define ANSWER 10\n");
    char *path = compile(shop, NULL);
    assert_int_equal(answer_of(path), 10);
    write_beside(shop, "inner.h", "#define ANSWER 20\n");
    assert_compiles_to(shop, NULL, path, false);
    assert_answer(shop, NULL, 20);
    assert_cache_holds(shop, 2);
    free(path);
}

/* Compiles with the flags in the workshop's directory, from another one, and returns the answer. */
static int64_t answer_with(const workshop *shop, const char *compile_flags,
                           const char *link_flags) {
    char *path;
    assert_ok(gbx_kernel_compile_in(shop->root, shop->source, compile_flags, link_flags, &path));
    int64_t answer = answer_of(path);
    free(path);
    return answer;
}

static void run_in(const workshop *shop, const char *command) {
    char text[2 * PATH_BYTES];
    snprintf(text, sizeof text, "cd %s && %s", shop->root, command);
    assert_int_equal(system(text), 0); // NOLINT(cert-env33-c,concurrency-mt-unsafe)
}

/* Files that flags name count like the source, and are relative to the directory. */
static void a_change_in_a_file_of_the_flags_is_seen(void **state) {
    const workshop *shop = *state;
    write_answer(shop, "int help(void);", "help()");
    write_beside(shop, "number.h", "#define NUMBER 1\n");
    write_beside(shop, "helper.c", "#include \"number.h\"\nint help(void) { return NUMBER; }\n");
    assert_int_equal(answer_with(shop, NULL, "helper.c"), 1);
    write_beside(shop, "number.h", "#define NUMBER 2\n");
    assert_int_equal(answer_with(shop, NULL, "helper.c"), 2);
    write_beside(shop, "helper.c", "int help(void) { return 3; }\n");
    assert_int_equal(answer_with(shop, NULL, "helper.c"), 3);

    static const char *const link_flags[] = {"helper.o", "-L. -lhelper", "-Wl,helper.o",
                                             "@words.txt", "-L . -lhelper"};
    write_beside(shop, "words.txt", "@inner.txt");
    write_beside(shop, "inner.txt", "-g\n  helper.o\n");
    for (int answer = 4; answer < 6; ++answer) {
        char text[64];
        snprintf(text, sizeof text, "int help(void) { return %d; }\n", answer);
        write_beside(shop, "helper.c", text);
        run_in(shop, "cc -c -fPIC helper.c && rm -f libhelper.a && ar rc libhelper.a helper.o");
        for (size_t i = 0; i < sizeof link_flags / sizeof link_flags[0]; ++i)
            assert_int_equal(answer_with(shop, NULL, link_flags[i]), answer);
    }
}

static void a_change_in_a_file_of_the_compile_flags_is_seen(void **state) {
    const workshop *shop = *state;
    write_answer(shop, "", "NUMBER");
    run_in(shop, "mkdir inc");
    write_beside(shop, "flags.txt", "-DNUMBER=1");
    assert_int_equal(answer_with(shop, "@flags.txt", NULL), 1);
    write_beside(shop, "flags.txt", "-DNUMBER=2");
    assert_int_equal(answer_with(shop, "@flags.txt", NULL), 2);
    for (int answer = 3; answer < 5; ++answer) {
        char text[64];
        snprintf(text, sizeof text, "#define NUMBER %d\n", answer);
        write_beside(shop, "inc/number.h", text);
        assert_int_equal(answer_with(shop, "-include inc/number.h", NULL), answer);
        assert_int_equal(answer_with(shop, "-Iinc -include number.h", NULL), answer);
    }
}

static void response_files_that_never_end_are_refused(void **state) {
    const workshop *shop = *state;
    char *path;
    write_answer(shop, "", "1");
    write_beside(shop, "again.txt", "@again.txt");
    gbx_status status = gbx_kernel_compile_in(shop->root, shop->source, NULL, "@again.txt", &path);
    assert_int_equal(gbx_status_code(status), GBX_BAD_KERNEL);
    assert_message_holds(status, "nested too deep");
    gbx_status_free(status);
}

/* A directory may have blanks, and a compiler may be named relative to the working directory. */
static void the_directory_of_flags_may_have_any_name(void **state) {
    const workshop *shop = *state;
    char directory[PATH_BYTES];
    char *path;
    char *here = getcwd(NULL, 0);
    write_answer(shop, "#include <number.h>", "NUMBER");
    run_in(shop, "mkdir -p 'two words/inc' && echo '#define NUMBER 5' > 'two words/inc/number.h'"
                 " && ln -s \"$(command -v cc)\" mycc");
    join(directory, shop->root, "two words");
    assert_int_equal(chdir(shop->root), 0);
    assert_int_equal(setenv("CC", "./mycc", 1), 0);
    assert_ok(gbx_kernel_compile_in(directory, shop->source, "-Iinc", NULL, &path));
    assert_int_equal(chdir(here), 0);
    assert_int_equal(answer_of(path), 5);
    free(path);
    free(here);
}

static void a_change_in_the_flags_gives_another_path(void **state) {
    const workshop *shop = *state;
    write_answer(shop, "#ifndef N\n#define N 0\n#endif", "N");
    char *path = compile(shop, NULL);
    assert_compiles_to(shop, "", path, true);
    assert_compiles_to(shop, " \t\n", path, true);
    assert_compiles_to(shop, "-O1", path, false);
    assert_answer(shop, "-DN=3", 3);
    assert_answer(shop, " -DN=3\t-UN \n -DN=4 ", 4); /* in order, separated by any blanks */
    assert_answer(shop, NULL, 0);
    assert_cache_holds(shop, 4);
    free(path);
}

/* ---- failures ---- */

static void a_compile_error_carries_what_the_compiler_said(void **state) {
    const workshop *shop = *state;
    char place[PATH_BYTES + 8];
    write_answer(shop, "", "undeclared_name"); /* in line 3 */
    snprintf(place, sizeof place, "%s:3:", shop->source);
    gbx_status status = assert_refused(shop->source, GBX_BAD_KERNEL);
    assert_message_holds(status, "compiling ");
    assert_message_holds(status, place);
    assert_message_holds(status, "error:");
    assert_message_holds(status, "undeclared_name");
    gbx_status_free(status);
    assert_cache_holds(shop, 0);
}

static void a_compiler_that_says_nothing_gives_one_line(void **state) {
    const workshop *shop = *state;
    char expected[PATH_BYTES + 64];
    write_answer(shop, "", "41");
    assert_int_equal(setenv("CC", "false", 1), 0);
    gbx_status status = assert_refused(shop->source, GBX_BAD_KERNEL);
    unsetenv("CC");
    snprintf(expected, sizeof expected, "compiling %s: false failed with code 1", shop->source);
    assert_string_equal(gbx_status_message(status), expected);
    gbx_status_free(status);
}

static void a_missing_include_carries_what_the_compiler_said(void **state) {
    const workshop *shop = *state;
    char place[PATH_BYTES + 8];
    write_answer(shop, "#include \"not_there.h\"", "1");
    snprintf(place, sizeof place, "%s:2:", shop->source);
    gbx_status status = assert_refused(shop->source, GBX_BAD_KERNEL);
    assert_message_holds(status, place);
    assert_message_holds(status, "error:");
    assert_message_holds(status, "not_there.h");
    gbx_status_free(status);
    assert_cache_holds(shop, 0);
}

/* More than a page or a pipe holds. Warnings, since some compilers stop after a few errors. */
static void a_long_compile_error_is_kept_completely(void **state) {
    const workshop *shop = *state;
    FILE *file = fopen(shop->source, "w");
    assert_non_null(file);
    for (int i = 0; i < 1000; ++i)
        fprintf(file, "#warning \"number %d of so many that none would ever read them\"\n", i);
    fputs("#error \"and the last\"\n", file);
    assert_int_equal(fclose(file), 0);
    gbx_status status = assert_refused(shop->source, GBX_BAD_KERNEL);
    assert_true(strlen(gbx_status_message(status)) > 100000);
    assert_message_holds(status, "number 0 of");
    assert_message_holds(status, "number 999 of");
    assert_message_holds(status, "and the last");
    gbx_status_free(status);
    assert_cache_holds(shop, 0);
}

static void an_undefined_symbol_is_found_when_it_is_forbidden(void **state) {
    const workshop *shop = *state;
    char *path = NULL;
    write_answer(shop, "int64_t not_defined(void);", "not_defined()");
    gbx_status status = gbx_kernel_compile(shop->source, "-Wl,--no-undefined", NULL, &path);
    assert_int_equal(gbx_status_code(status),
                     GBX_BAD_KERNEL); /* the linker's message is there, too */
    assert_message_holds(status, "not_defined");
    assert_null(path);
    gbx_status_free(status);
    assert_cache_holds(shop, 0);
}

static void a_missing_source_is_named(void **state) {
    const workshop *shop = *state;
    gbx_status status = assert_refused(shop->source, GBX_NOT_FOUND);
    assert_message_holds(status, shop->source);
    assert_message_holds(status, "No such file or directory");
    gbx_status_free(status);
}

static void too_many_flags_are_refused(void **state) {
    const workshop *shop = *state;
    char flags[2 * 300 + 1] = "";
    char *path = NULL;
    for (size_t i = 0; i < 300; ++i)
        memcpy(flags + 2 * i, "x ", 3);
    write_answer(shop, "", "1");
    gbx_status status = gbx_kernel_compile(shop->source, flags, NULL, &path);
    assert_int_equal(gbx_status_code(status), GBX_OUT_OF_RANGE);
    assert_null(path);
    gbx_status_free(status);
}

/* A path below a file: not even root can make a directory there. */
static void a_cache_that_cannot_be_made_is_named(void **state) {
    const workshop *shop = *state;
    write_answer(shop, "", "1");
    assert_int_equal(setenv("GLASSBOX_CACHE", "/dev/null/x", 1), 0);
    gbx_status status = assert_refused(shop->source, GBX_IO);
    assert_message_holds(status, "/dev/null/x");
    assert_message_holds(status, "Not a directory");
    gbx_status_free(status);
}

static void a_cache_that_cannot_be_written_is_named(void **state) {
    const workshop *shop = *state;
    char cache[PATH_BYTES];
    if (geteuid() == 0)
        skip(); /* root may write anywhere */
    join(cache, shop->root, "cache");
    assert_int_equal(mkdir(cache, 0500), 0);
    write_answer(shop, "", "1");
    gbx_status status = assert_refused(shop->source, GBX_IO);
    assert_message_holds(status, cache);
    assert_message_holds(status, "Permission denied");
    gbx_status_free(status);
    assert_int_equal(chmod(cache, 0700), 0);
}

static void a_place_for_kernels_that_is_a_file_is_named(void **state) {
    const workshop *shop = *state;
    char kernels[PATH_BYTES];
    write_answer(shop, "", "1");
    free(compile(shop,
                 NULL)); /* now the header exists, and only the kernel's directory is missing */
    join(kernels, shop->root, "cache/kernels");
    assert_int_equal(nftw(kernels, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
    write_text(kernels, "");
    gbx_status status = assert_refused(shop->source, GBX_IO);
    assert_message_holds(status, kernels);
    gbx_status_free(status);
}

/* ---- the compiler ---- */

static void a_missing_compiler_is_named(void **state) {
    const workshop *shop = *state;
    char missing[PATH_BYTES];
    write_answer(shop, "", "1");
    join(missing, shop->root, "no-compiler");
    assert_int_equal(setenv("CC", missing, 1), 0);
    gbx_status status = assert_refused(shop->source, GBX_NOT_FOUND);
    assert_message_holds(status, shop->source);
    assert_message_holds(status, "/no-compiler: No such file or directory");
    gbx_status_free(status);
    assert_cache_holds(shop, 0);
}

static void a_compiler_that_dies_is_said_with_its_signal(void **state) {
    const workshop *shop = *state;
    char script[PATH_BYTES];
    write_answer(shop, "", "1");
    join(script, shop->root, "dying-cc");
    write_text(script, "#!/bin/sh\necho last words >&2\nkill -SEGV $$\n");
    assert_int_equal(chmod(script, 0700), 0);
    assert_int_equal(setenv("CC", script, 1), 0);
    gbx_status status = assert_refused(shop->source, GBX_BAD_KERNEL);
    assert_message_holds(status, "dying-cc was killed by signal 11");
    assert_message_holds(status, "last words");
    gbx_status_free(status);
}

static void a_compiler_of_two_words_works(void **state) {
    const workshop *shop = *state;
    write_answer(shop, "#ifndef X\n#define X 0\n#endif", "X");
    char *path = compile(shop, NULL);
    assert_int_equal(answer_of(path), 0);
    assert_int_equal(setenv("CC", "cc -DX=1", 1), 0);
    assert_compiles_to(shop, NULL, path, false);
    assert_answer(shop, NULL, 1);
    assert_int_equal(setenv("CC", "  ", 1), 0); /* the same as unset */
    assert_compiles_to(shop, NULL, path, true);
    free(path);
}

/* The same command, another compiler behind it: as after an upgrade. */
static void another_compiler_under_the_same_name_gives_another_path(void **state) {
    const workshop *shop = *state;
    char script[PATH_BYTES];
    write_answer(shop, "", "1");
    join(script, shop->root, "some-cc");
    write_text(script, "#!/bin/sh\nexec cc \"$@\"\n");
    assert_int_equal(chmod(script, 0700), 0);
    assert_int_equal(setenv("CC", script, 1), 0);
    char *path = compile(shop, NULL);
    assert_compiles_to(shop, NULL, path, true);
    write_text(script, "#!/bin/sh\nexec cc -U__VERSION__ -D__VERSION__='\"99\"' \"$@\"\n");
    assert_compiles_to(shop, NULL, path, false);
    free(path);
}

/* ---- at the same time ---- */

typedef char path_text[PATH_BYTES];

/* Compiles, runs the result and writes its path; exit code 0 on success. */
static int compile_in_child(const workshop *shop, int start, path_text out_path) {
    char byte;
    char *path = NULL;
    if (read(start, &byte, 1) != 0) /* the pipe ends when all have been started */
        return 1;
    if (gbx_kernel_compile(shop->source, NULL, NULL, &path))
        return 2;
    snprintf(out_path, PATH_BYTES, "%s", path);
    return answer_of(path) == 77 ? 0 : 3;
}

static void start_children(const workshop *shop, path_text *paths, pid_t *children) {
    int start[2];
    assert_int_equal(pipe(start), 0);
    for (size_t i = 0; i < AT_ONCE; ++i) {
        children[i] = fork();
        if (children[i] == 0) {
            close(start[1]);
            _exit(compile_in_child(shop, start[0], paths[i]));
        }
    }
    close(start[0]);
    close(start[1]);
}

static char *compile_known(const workshop *shop, const char *compiler, const char *content) {
    const gbx_hash128 hash = gbx_hash_bytes(content, strlen(content));
    const gbx_build build = {.compiler = compiler, .source = shop->source, .content = &hash};
    char *path = NULL;
    assert_ok(gbx_build_make(&build, &path));
    return path;
}

/* The source is not read to find the result: whoever names the content answers for it. */
static void known_content_and_compiler_name_the_result(void **state) {
    const workshop *shop = *state;
    char *paths[4];
    write_answer(shop, "", "1");
    paths[0] = compile_known(shop, NULL, "one");
    paths[1] = compile_known(shop, NULL, "two");
    write_answer(shop, "", "2");
    paths[2] = compile_known(shop, NULL, "one");
    paths[3] = compile_known(shop, "gcc -O0", "one");
    assert_string_not_equal(paths[0], paths[1]);
    assert_string_equal(paths[0], paths[2]);
    assert_string_not_equal(paths[0], paths[3]);
    for (int i = 0; i < 4; ++i)
        free(paths[i]);
}

/* A script may run any compiler: the source is preprocessed. */
static void behind_a_script_the_source_counts(void **state) {
    const workshop *shop = *state;
    char script[PATH_BYTES];
    join(script, shop->root, "gcc-script");
    write_beside(shop, "gcc-script", "#!/bin/sh\nexec cc \"$@\"\n");
    assert_int_equal(chmod(script, 0755), 0);
    write_answer(shop, "", "1");
    char *before = compile_known(shop, script, "one");
    write_answer(shop, "", "2");
    char *after = compile_known(shop, script, "one");
    assert_string_not_equal(before, after);
    free(before);
    free(after);
}

static void processes_compile_the_same_source_at_once(void **state) {
    const workshop *shop = *state;
    if (is_thread_sanitized())
        skip(); /* it does not support forks */
    pid_t children[AT_ONCE];
    path_text *paths = mmap(NULL, AT_ONCE * sizeof *paths, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(paths != MAP_FAILED);
    write_answer(shop, "", "77");
    start_children(shop, paths, children);
    for (size_t i = 0; i < AT_ONCE; ++i) {
        int ended = -1;
        assert_true(children[i] > 0);
        assert_int_equal(waitpid(children[i], &ended, 0), children[i]);
        assert_int_equal(ended, 0);
    }
    for (size_t i = 0; i < AT_ONCE; ++i)
        assert_string_equal(paths[i], paths[0]);
    assert_int_equal(answer_of(paths[0]), 77);
    assert_compiles_to(shop, NULL, paths[0], true);
    assert_cache_holds(shop, 1);
    munmap(paths, AT_ONCE * sizeof *paths);
}

typedef struct compile_job {
    const workshop *shop;
    char *path;
    gbx_status status;
} compile_job;

static void *compile_in_thread(void *argument) {
    compile_job *job = argument;
    job->status = gbx_kernel_compile(job->shop->source, NULL, NULL, &job->path);
    return NULL;
}

/* Must be last: no test that forks may come after the first thread. */
static void threads_compile_the_same_source_at_once(void **state) {
    const workshop *shop = *state;
    pthread_t threads[AT_ONCE];
    compile_job jobs[AT_ONCE];
    write_answer(shop, "", "78");
    for (size_t i = 0; i < AT_ONCE; ++i) {
        jobs[i] = (compile_job){.shop = shop};
        assert_int_equal(pthread_create(&threads[i], NULL, compile_in_thread, &jobs[i]), 0);
    }
    for (size_t i = 0; i < AT_ONCE; ++i)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < AT_ONCE; ++i) {
        assert_ok(jobs[i].status);
        assert_string_equal(jobs[i].path, jobs[0].path);
    }
    assert_int_equal(answer_of(jobs[0].path), 78);
    assert_cache_holds(shop, 1);
    for (size_t i = 0; i < AT_ONCE; ++i)
        free(jobs[i].path);
}

#define compiler_test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        compiler_test(a_kernel_runs_with_its_arguments),
        compiler_test(the_header_of_this_build_is_the_one_that_is_included),
        compiler_test(products_and_sums_are_not_contracted),
        compiler_test(the_second_compile_does_not_touch_the_file),
        compiler_test(what_a_compiler_left_long_ago_is_removed),
        compiler_test(another_working_directory_gives_the_same_path),
        compiler_test(a_change_in_the_source_gives_another_path),
        compiler_test(a_change_in_an_included_file_gives_another_path),
        compiler_test(a_change_in_a_file_of_the_flags_is_seen),
        compiler_test(a_change_in_a_file_of_the_compile_flags_is_seen),
        compiler_test(response_files_that_never_end_are_refused),
        compiler_test(the_directory_of_flags_may_have_any_name),
        compiler_test(a_change_in_the_flags_gives_another_path),
        compiler_test(a_compile_error_carries_what_the_compiler_said),
        compiler_test(a_compiler_that_says_nothing_gives_one_line),
        compiler_test(a_missing_include_carries_what_the_compiler_said),
        compiler_test(a_long_compile_error_is_kept_completely),
        compiler_test(an_undefined_symbol_is_found_when_it_is_forbidden),
        compiler_test(a_missing_source_is_named),
        compiler_test(too_many_flags_are_refused),
        compiler_test(a_cache_that_cannot_be_made_is_named),
        compiler_test(a_cache_that_cannot_be_written_is_named),
        compiler_test(a_place_for_kernels_that_is_a_file_is_named),
        compiler_test(a_missing_compiler_is_named),
        compiler_test(a_compiler_that_dies_is_said_with_its_signal),
        compiler_test(a_compiler_of_two_words_works),
        compiler_test(another_compiler_under_the_same_name_gives_another_path),
        compiler_test(known_content_and_compiler_name_the_result),
        compiler_test(behind_a_script_the_source_counts),
        compiler_test(processes_compile_the_same_source_at_once),
        compiler_test(threads_compile_the_same_source_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
