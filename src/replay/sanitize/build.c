#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/process.h"
#include "replay/sanitize/internal.h"
#include "text/plain_text.h"
#include "toolchain/cache_directory.h"
#include "toolchain/compiler_identity.h"
#include "toolchain/kernel_compiler.h"

extern const char gbx_embedded_call_header[];
extern const char gbx_embedded_call_source[];
extern const char gbx_embedded_call_file_header[];
extern const char gbx_embedded_call_file_source[];
extern const char gbx_embedded_checked_header[];
extern const char gbx_embedded_sanitize_plan[];
extern const char gbx_embedded_sanitize_main[];
extern const char gbx_embedded_atomics_header[];
extern const char gbx_embedded_hold_header[];
extern const char gbx_embedded_hold_source[];
extern const char gbx_embedded_watch_header[];
extern const char gbx_embedded_watch_source[];
extern const char gbx_embedded_watch_calls[];
extern const char gbx_embedded_foreign_header[];
extern const char gbx_embedded_foreign_source[];

/*
 * Memory is not optimised at all: an optimiser may remove what depends on a local variable that was
 * never set. Kernels of other flags keep them, but for the level, which comes last. What
 * object-size sees, address says better. Warnings were shown when the kernel was compiled for its
 * run.
 */
#define ALWAYS " -w -g -fno-omit-frame-pointer -U_FORTIFY_SOURCE "

/*
 * Access: each load and store calls a function of watch_calls.c. gcc has such calls for address,
 * too, but none for a store behind a load of the same bytes; those for threads are complete. clang
 * has none for threads where a vector has more than 16 bytes. No runtime is linked.
 */
#define ACCESS                                                                                     \
    "-O1 -fno-tree-vectorize -fno-builtin-memcpy -fno-builtin-memmove "                            \
    "-fno-builtin-memset "
#define WRAPPED "-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset"

/* Atomic operations, for hold.c. */
#define UPDATES(bits)                                                                              \
    HELD(bits, "load")                                                                             \
    HELD(bits, "store")                                                                            \
    HELD(bits, "exchange")                                                                         \
    HELD(bits, "fetch_add")                                                                        \
    HELD(bits, "fetch_sub")                                                                        \
    HELD(bits, "fetch_and")                                                                        \
    HELD(bits, "fetch_or")                                                                         \
    HELD(bits, "fetch_xor")                                                                        \
    HELD(bits, "fetch_nand")                                                                       \
    HELD(bits, "compare_exchange_strong")                                                          \
    HELD(bits, "compare_exchange_weak")                                                            \
    HELD(bits, "compare_exchange_val")
#define HELD(bits, name) " -Wl,--wrap=__tsan_atomic" bits "_" name

typedef struct recipe {
    const char *flags;
    const char *link_flags; /* of kernels */
} recipe;
static const recipe recipes[GBX_SANITIZER_COUNT] = {
    [GBX_SANITIZE_ACCESS] = {ACCESS "-fsanitize=thread", WRAPPED " -nodefaultlibs -lc -lgcc"},
    [GBX_SANITIZE_ADDRESS] = {"-O1 -fsanitize=address,undefined -fno-sanitize=object-size "
                              "-fsanitize=float-cast-overflow -fsanitize-recover=all",
                              ""},
    [GBX_SANITIZE_MEMORY] =
        /* Thread local variables of an object that is loaded later would be new memory. Eager: a
         * value that is passed to a function is used; what one of a library makes of it would look
         * initialised. */
    {"-O0 -fsanitize=memory -fsanitize-memory-track-origins=2 -fsanitize-recover=memory "
     "-mllvm -msan-eager-checks=1 -ftls-model=initial-exec",
     "-Wl,--wrap=__msan_warning_with_origin,--wrap=qsort"},
    [GBX_SANITIZE_THREAD] = {"-O1 -fsanitize=thread",
                             UPDATES("8") UPDATES("16") UPDATES("32") UPDATES("64")}};
static const recipe access_of_clang = {
    ACCESS "-fsanitize=kernel-address -mllvm -asan-instrumentation-with-call-threshold=0 "
           "-mllvm -asan-stack=0 -mllvm -asan-globals=0 -mllvm -asan-opt-same-temp=0",
    WRAPPED};

/*
 * The thread sanitizer does not understand fences. What they order begins and ends with atomic
 * operations, as a rule relaxed ones: each of these orders as much as a fence here. That never
 * shows a race that is none; it hides those between relaxed operations where a fence is missing.
 */
#define ORDER(name) " -U__ATOMIC_" name " -D__ATOMIC_" name "=__ATOMIC_SEQ_CST"
#define STRONG ORDER("RELAXED") ORDER("CONSUME") ORDER("ACQUIRE") ORDER("RELEASE") ORDER("ACQ_REL")

static const recipe *recipe_of(const gbx_sanitize_compiler *with, gbx_sanitizer sanitizer) {
    return with->is_clang && sanitizer == GBX_SANITIZE_ACCESS ? &access_of_clang
                                                              : &recipes[sanitizer];
}

/* --- the compiler --- */

static bool is_on_path(const char *program) {
    char real[PATH_MAX];
    return gbx_find_program(program, real);
}

gbx_status gbx_sanitize_choose_compiler(gbx_sanitizer sanitizer,
                                        gbx_sanitize_compiler *out_compiler) {
    const char *usual = getenv("CC");
    bool is_clang = usual && strstr(usual, "clang");
    if (!usual || !usual[strspn(usual, " \t")])
        usual = "cc";
    if (!is_clang && sanitizer == GBX_SANITIZE_MEMORY && !is_on_path("clang"))
        return gbx_fail(GBX_NOT_FOUND, "clang is not on PATH; install it (apt install clang "
                                       "libclang-rt-dev llvm)");
    *out_compiler = is_clang || sanitizer != GBX_SANITIZE_MEMORY
                        ? (gbx_sanitize_compiler){usual, is_clang}
                        : (gbx_sanitize_compiler){"clang", true};
    return NULL;
}

char *gbx_sanitize_find_symbolizer(const char *clang) {
    char command[PATH_MAX];
    char *words[] = {command, (char *)(uintptr_t) "-print-prog-name=llvm-symbolizer", NULL};
    gbx_process_result result;
    if (is_on_path("llvm-symbolizer")) /* the runtimes find it themselves */
        return NULL;
    snprintf(command, sizeof command, "%.*s", (int)strcspn(clang, " \t"), clang);
    gbx_status status = gbx_process_run(words, &result);
    char *path = NULL;
    if (!status) {
        result.out_text[strcspn(result.out_text, "\n")] = '\0';
        if (result.out_text[0] == '/' && access(result.out_text, X_OK) == 0)
            path = strdup(result.out_text);
        gbx_process_result_free(&result);
    }
    gbx_status_free(status);
    return path;
}

/* The line of a compiler's output that says what is wrong. */
static const char *error_line(const char *output, char *out_text, size_t capacity) {
    const char *best = strstr(output, "error");
    const char *missing = strstr(output, "cannot find");
    best = missing ? missing : best ? best : output;
    while (best > output && best[-1] != '\n')
        --best;
    snprintf(out_text, capacity, "%.*s", (int)strcspn(best, "\n"), best);
    gbx_text_make_plain(out_text);
    return out_text;
}

/* Consumes the failure of a compiler; others stay as they are. */
static gbx_status explain(gbx_status status, const gbx_sanitize_compiler *with, const char *what,
                          const char *advice) {
    char line[256], name[64];
    if (gbx_status_code(status) != GBX_BAD_KERNEL)
        return status;
    snprintf(name, sizeof name, "%s", with->words);
    gbx_text_make_plain(name);
    gbx_status explained =
        gbx_fail(GBX_BAD_KERNEL, "%s does not compile with the sanitizer of %s (%s)%s", what, name,
                 error_line(gbx_status_message(status), line, sizeof line), advice);
    gbx_status_free(status);
    return explained;
}

/* --- the program --- */

/* Where its parts are, below a directory of the cache. */
static const struct {
    const char *path;
    const char *text;
} parts[] = {{"base/checked.h", gbx_embedded_checked_header},
             {"replay/call.h", gbx_embedded_call_header},
             {"replay/call.c", gbx_embedded_call_source},
             {"replay/engine/call_file.h", gbx_embedded_call_file_header},
             {"replay/engine/call_file.c", gbx_embedded_call_file_source},
             {"replay/sanitize/plan.h", gbx_embedded_sanitize_plan},
             {"replay/sanitize/atomics.h", gbx_embedded_atomics_header},
             {"replay/sanitize/hold.h", gbx_embedded_hold_header},
             {"replay/sanitize/hold.c", gbx_embedded_hold_source},
             {"replay/sanitize/watch.h", gbx_embedded_watch_header},
             {"replay/sanitize/watch.c", gbx_embedded_watch_source},
             {"replay/sanitize/watch_calls.c", gbx_embedded_watch_calls},
             {"replay/sanitize/foreign.h", gbx_embedded_foreign_header},
             {"replay/sanitize/foreign.c", gbx_embedded_foreign_source},
             {"replay/sanitize/sanitize_main.c", gbx_embedded_sanitize_main}};
enum { PART_COUNT = sizeof parts / sizeof parts[0] };

static gbx_status provide_part(const char *root, size_t part) {
    char name[PATH_MAX];
    char *directory;
    const char *slash = strrchr(parts[part].path, '/');
    snprintf(name, sizeof name, "%s/%.*s", root, (int)(slash - parts[part].path), parts[part].path);
    GBX_TRY(gbx_cache_directory(name, &directory));
    snprintf(name, sizeof name, "%s%s", directory, slash);
    free(directory);
    return access(name, R_OK) == 0
               ? NULL
               : gbx_cache_write(name, parts[part].text, strlen(parts[part].text));
}

/* The directory with all parts, which the caller frees, and a hash of them. */
static gbx_status provide_parts(char **out_directory, gbx_hash128 *out_content) {
    char text[GBX_HASH_TEXT_BYTES], root[64 + GBX_HASH_TEXT_BYTES];
    gbx_hash128 hashes[PART_COUNT];
    for (size_t i = 0; i < PART_COUNT; ++i)
        hashes[i] = gbx_hash_bytes(parts[i].text, strlen(parts[i].text));
    *out_content = gbx_hash_bytes(hashes, sizeof hashes);
    gbx_hash_format(*out_content, text);
    snprintf(root, sizeof root, "sanitize/%s", text);
    for (size_t i = 0; i < PART_COUNT; ++i)
        GBX_TRY(provide_part(root, i));
    return gbx_cache_directory(root, out_directory);
}

/* The sources beside sanitize_main.c. */
static const char *parts_of(gbx_sanitizer sanitizer) {
    switch (sanitizer) {
    case GBX_SANITIZE_ACCESS:
        return "replay/call.c replay/engine/call_file.c replay/sanitize/watch.c "
               "replay/sanitize/watch_calls.c -ldl";
    case GBX_SANITIZE_THREAD:
        return "replay/call.c replay/engine/call_file.c replay/sanitize/foreign.c "
               "replay/sanitize/hold.c -ldl";
    default:
        return "replay/call.c replay/engine/call_file.c replay/sanitize/foreign.c -ldl";
    }
}

gbx_status gbx_sanitize_build_program(const gbx_sanitize_compiler *with, gbx_sanitizer sanitizer,
                                      char **out_path) {
    const bool is_access = sanitizer == GBX_SANITIZE_ACCESS;
    char source[PATH_MAX], flags[512];
    gbx_hash128 content;
    char *directory;
    GBX_TRY(provide_parts(&directory, &content));
    snprintf(source, sizeof source, "%s/%s", directory, parts[PART_COUNT - 1].path);
    snprintf(flags, sizeof flags, "-I. -D_GNU_SOURCE%s%s", ALWAYS,
             is_access ? "-O2 -DGBX_WATCHES=1" : recipe_of(with, sanitizer)->flags);
    const gbx_build build = {.compiler = with->words,
                             .directory = directory,
                             .source = source,
                             .compile_flags = flags,
                             .link_flags = parts_of(sanitizer),
                             .is_program = true,
                             .content = &content};
    gbx_status status = gbx_build_make(&build, out_path);
    free(directory);
    return status ? explain(status, with, "the program that calls kernels",
                            with->is_clang ? "; is libclang-rt-dev installed?" : "")
                  : NULL;
}

/* --- kernels --- */

gbx_status gbx_sanitize_build_kernel(const gbx_sanitize_compiler *with, gbx_sanitizer sanitizer,
                                     const gbx_replay_source *source, const char *name,
                                     bool has_fences, char **out_path) {
    const recipe *how = recipe_of(with, sanitizer);
    char *flags = NULL, *link_flags = NULL, *directory = NULL, what[160], header[PATH_MAX];
    gbx_hash128 content;
    gbx_status status = NULL;
    *out_path = NULL;
    const bool is_strong = has_fences && sanitizer == GBX_SANITIZE_THREAD;
    if (asprintf(&flags, "%s%s%s%s", source->compile_flags, ALWAYS, how->flags,
                 is_strong ? STRONG : "") < 0 ||
        asprintf(&link_flags, "%s %s", source->link_flags ? source->link_flags : "",
                 how->link_flags) < 0)
        status = gbx_fail_memory("compiling kernel %s", name);
    if (!status && sanitizer == GBX_SANITIZE_MEMORY)
        status = provide_parts(&directory, &content);
    if (directory)
        snprintf(header, sizeof header, "%s/replay/sanitize/atomics.h", directory);
    const gbx_build build = {.compiler = with->words,
                             .directory = source->directory,
                             .source = source->path,
                             .compile_flags = flags,
                             .link_flags = link_flags,
                             .first_header = directory ? header : NULL};
    if (!status)
        status = gbx_build_make(&build, out_path);
    free(flags);
    free(link_flags);
    free(directory);
    snprintf(what, sizeof what, "kernel %s", name);
    return status ? explain(status, with, what, "") : NULL;
}
