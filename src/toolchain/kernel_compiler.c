#include "toolchain/kernel_compiler.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "toolchain/cache_directory.h"
#include "toolchain/compiler_identity.h"

extern const char gbx_embedded_kernel_header[];
extern const char gbx_embedded_orchestration_header[];

/*
 * Optimised for this machine, with symbols for the debugger. No contraction: a * b + c gives the
 * same bits with every compiler and level. A kernel's own functions come before others of the same
 * name, such as select() of libc.
 */
static const char default_flags[] =
    "-std=gnu11 -O3 -march=native -ffp-contract=off -fPIC -fno-semantic-interposition -g -Wall "
    "-Werror=implicit-function-declaration -fstack-clash-protection";
static const char default_link_flags[] = "-shared -Wl,-Bsymbolic";
static const char program_link_flags[] = "-rdynamic -pthread";
static const char default_libraries[] = "-lm";
static const char blanks[] = " \t\n";

enum { MAX_RESPONSE_DEPTH = 8, MAX_NAMED_BYTES = 1 << 30 };

/* Words of a command line, and what they point into. */
typedef struct word_list {
    char *words[256];
    size_t count;
    char *storage[4];
    size_t storage_count;
} word_list;

/* The words before the source, and those after it. */
typedef struct command {
    word_list compiler;
    word_list linker;
    char include[PATH_MAX + 8];
    const char *directory; /* where it runs; NULL is the current one */
    char program[PATH_MAX];
} command;

static gbx_status add_word(word_list *list, const char *word) {
    if (list->count + 1 >= sizeof list->words / sizeof list->words[0])
        return gbx_fail(GBX_OUT_OF_RANGE, "compiling a kernel: too many compiler flags");
    list->words[list->count++] = (char *)(uintptr_t)word;
    list->words[list->count] = NULL;
    return NULL;
}

static gbx_status add_words(word_list *list, const char *text) {
    char *state = NULL;
    char *copy = strdup(text);
    if (!copy)
        return gbx_fail_memory("compiling a kernel");
    list->storage[list->storage_count++] = copy;
    for (char *word = strtok_r(copy, blanks, &state); word; word = strtok_r(NULL, blanks, &state))
        GBX_TRY(add_word(list, word));
    return NULL;
}

static void free_words(word_list *list) {
    for (size_t i = 0; i < list->storage_count; ++i)
        free(list->storage[i]);
}

/* The headers that kernels and orchestrations include, from the build of this library. */
static const struct {
    const char *name;
    const char *text;
} headers[] = {{"kernel.h", gbx_embedded_kernel_header},
               {"orchestration.h", gbx_embedded_orchestration_header}};

enum { HEADER_COUNT = sizeof headers / sizeof headers[0] };

/* Sources include the headers of this build, wherever the library is installed. */
static gbx_status provide_headers(command *line) {
    char text[GBX_HASH_TEXT_BYTES];
    char name[64 + GBX_HASH_TEXT_BYTES];
    char path[PATH_MAX];
    gbx_hash128 hashes[HEADER_COUNT];
    for (size_t i = 0; i < HEADER_COUNT; ++i)
        hashes[i] = gbx_hash_bytes(headers[i].text, strlen(headers[i].text));
    gbx_hash_format(gbx_hash_bytes(hashes, sizeof hashes), text);
    snprintf(name, sizeof name, "include/%s/glassbox", text);
    char *directory;
    GBX_TRY(gbx_cache_directory(name, &directory));
    gbx_status status = NULL;
    for (size_t i = 0; i < HEADER_COUNT && !status; ++i) {
        snprintf(path, sizeof path, "%s/%s", directory, headers[i].name);
        if (access(path, R_OK) != 0)
            status = gbx_cache_write(path, headers[i].text, strlen(headers[i].text));
    }
    snprintf(line->include, sizeof line->include, "-I%.*s",
             (int)(strlen(directory) - strlen("/glassbox")), directory);
    free(directory);
    GBX_TRY(status);
    return add_word(&line->compiler, line->include);
}

/* A compiler such as ./cc is found from any directory. Links stay: a name may mean something. */
static void fix_program(command *line) {
    const char *program = line->compiler.words[0];
    char here[PATH_MAX];
    if (!program || program[0] == '/' || !strchr(program, '/') || !getcwd(here, sizeof here))
        return;
    if (snprintf(line->program, sizeof line->program, "%s/%s", here, program) < PATH_MAX)
        line->compiler.words[0] = line->program;
}

static gbx_status build_command(const gbx_build *build, command *line) {
    const char *compiler = build->compiler ? build->compiler : getenv("CC");
    if (!compiler || !compiler[strspn(compiler, " \t")])
        compiler = "cc";
    GBX_TRY(add_words(&line->compiler, compiler));
    fix_program(line);
    GBX_TRY(add_words(&line->compiler, default_flags));
    GBX_TRY(provide_headers(line));
    if (build->first_header) {
        GBX_TRY(add_word(&line->compiler, (char *)(uintptr_t) "-include"));
        GBX_TRY(add_word(&line->compiler, (char *)(uintptr_t)build->first_header));
    }
    if (build->compile_flags)
        GBX_TRY(add_words(&line->compiler, build->compile_flags));
    GBX_TRY(add_words(&line->linker, build->is_program ? program_link_flags : default_link_flags));
    if (build->link_flags)
        GBX_TRY(add_words(&line->linker, build->link_flags));
    return add_words(&line->linker, default_libraries);
}

static gbx_status add_each(word_list *list, char *const *words) {
    for (; *words; ++words)
        GBX_TRY(add_word(list, *words));
    return NULL;
}

/*
 * Runs the compiler with its flags, `extra` words and, when linking, the words of the linker. Fails
 * with GBX_BAD_KERNEL when the compiler fails.
 */
static gbx_status run(const command *base, const char *source, const char *const *extra,
                      bool is_linking, gbx_process_result *out_result) {
    word_list line = base->compiler;
    GBX_TRY(add_each(&line, (char *const *)(uintptr_t)extra));
    if (is_linking)
        GBX_TRY(add_each(&line, base->linker.words));
    gbx_status status = gbx_process_run_in(base->directory, line.words, out_result);
    if (status)
        return gbx_status_annotate(status, "compiling %s", source);
    if (out_result->exit_code == 0)
        return NULL;
    if (out_result->signal)
        status = gbx_fail(GBX_BAD_KERNEL, "compiling %s: %s was killed by signal %d\n%s", source,
                          line.words[0], out_result->signal, out_result->err_text);
    else
        status = gbx_fail(GBX_BAD_KERNEL, "compiling %s: %s failed with code %d%s%s", source,
                          line.words[0], out_result->exit_code,
                          out_result->err_text[0] ? ":\n" : "", out_result->err_text);
    gbx_process_result_free(out_result);
    return status;
}

static gbx_status hash_output(const command *line, const char *source, const char *const *extra,
                              gbx_hash_state *state) {
    gbx_process_result result;
    GBX_TRY(run(line, source, extra, false, &result));
    gbx_hash_update(state, result.out_text, result.out_size);
    gbx_process_result_free(&result);
    return NULL;
}

/* --- files that flags name --- */

/* How a file counts: its bytes; a source with what it includes; or its bytes and the files that its
 * words name. */
typedef enum named_as { AS_BYTES, AS_SOURCE, AS_RESPONSE } named_as;

/* Files of a command line being hashed. */
typedef struct named_files {
    const command *line;
    const char *source;
    gbx_hash_state *state;
    int depth; /* of response files that name response files */
} named_files;

static gbx_status hash_flags(named_files *files, char *const *words, size_t count);

/* Whether the compiler preprocesses it. */
static bool is_source(const char *name) {
    static const char *const suffixes[] = {".c", ".cc", ".cpp", ".cxx", ".C", ".S"};
    const char *suffix = strrchr(name, '.');
    for (size_t i = 0; suffix && i < sizeof suffixes / sizeof suffixes[0]; ++i)
        if (strcmp(suffix, suffixes[i]) == 0)
            return true;
    return false;
}

/* The words of a response file may name further files. */
static gbx_status hash_response(named_files *files, char *text) {
    if (files->depth == MAX_RESPONSE_DEPTH)
        return gbx_fail(GBX_BAD_KERNEL, "compiling %s: response files (@FILE) are nested too deep",
                        files->source);
    char **words = calloc(strlen(text) / 2 + 1, sizeof *words);
    if (!words)
        return gbx_fail_memory("compiling %s", files->source);
    size_t count = 0;
    char *state = NULL;
    for (char *word = strtok_r(text, blanks, &state); word; word = strtok_r(NULL, blanks, &state))
        words[count++] = word;
    ++files->depth;
    gbx_status status = hash_flags(files, words, count);
    --files->depth;
    free(words);
    return status;
}

/* A name that is not that of a regular file adds nothing: the compiler will say if it must be one.
 */
static gbx_status hash_file(named_files *files, const char *name, named_as kind) {
    char path[PATH_MAX];
    struct stat about;
    const char *directory = name[0] != '/' ? files->line->directory : NULL;
    int length = snprintf(path, sizeof path, "%s%s%s", directory ? directory : "",
                          directory ? "/" : "", name);
    if (length >= PATH_MAX || stat(path, &about) != 0 || !S_ISREG(about.st_mode))
        return NULL;
    if (kind == AS_SOURCE) {
        const char *const preprocessed[] = {"-E", "-g0", name, NULL};
        return hash_output(files->line, files->source, preprocessed, files->state);
    }
    char *bytes;
    size_t size;
    gbx_status status = gbx_read_file(path, MAX_NAMED_BYTES, &bytes, &size);
    if (status)
        return gbx_status_annotate(status, "compiling %s", files->source);
    gbx_hash_update(files->state, &size, sizeof size);
    gbx_hash_update(files->state, bytes, size);
    if (kind == AS_RESPONSE)
        status = hash_response(files, bytes);
    free(bytes);
    return status;
}

/* libNAME of the directories that are named with -L. */
static gbx_status hash_library(named_files *files, char *const *words, size_t count,
                               const char *name) {
    static const char *const forms[] = {"%s/lib%s.so", "%s/lib%s.a"};
    char path[PATH_MAX];
    for (size_t i = 0; i < count; ++i) {
        if (strncmp(words[i], "-L", 2) != 0)
            continue;
        const char *folder = words[i][2] ? words[i] + 2 : i + 1 < count ? words[i + 1] : "";
        for (size_t k = 0; k < sizeof forms / sizeof forms[0]; ++k)
            if (snprintf(path, sizeof path, forms[k], folder, name) < PATH_MAX)
                GBX_TRY(hash_file(files, path, AS_BYTES));
    }
    return NULL;
}

/* A word that is a file, @FILE, -lNAME, and what follows an = or a comma: -Wl,-T,FILE. */
static gbx_status hash_flags(named_files *files, char *const *words, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        const char *word = words[i];
        gbx_hash_update(files->state, word, strlen(word) + 1);
        if (word[0] == '@')
            GBX_TRY(hash_file(files, word + 1, AS_RESPONSE));
        else if (strncmp(word, "-l", 2) == 0)
            GBX_TRY(hash_library(files, words, count, word + 2));
        else if (word[0] != '-')
            GBX_TRY(hash_file(files, word, is_source(word) ? AS_SOURCE : AS_BYTES));
        for (const char *at = word; (at = strpbrk(at, "=,")) != NULL;) {
            char part[PATH_MAX];
            size_t length = strcspn(++at, "=,");
            if (length > 0 &&
                (size_t)snprintf(part, sizeof part, "%.*s", (int)length, at) < sizeof part)
                GBX_TRY(hash_file(files, part, AS_BYTES));
        }
    }
    return NULL;
}

/* A hash of all that the shared object depends on: flags and the files that they name, compiler,
 * target, source. */
static gbx_status content_key(const command *line, const char *source,
                              char out_text[GBX_HASH_TEXT_BYTES]) {
    const char *const predefined[] = {"-E", "-dM", "-x", "c", "/dev/null", NULL};
    /* -g0: with debug information the output would contain the working directory. */
    const char *const preprocessed[] = {"-E", "-g0", "-x", "c", source, NULL};
    gbx_hash_state state;
    gbx_hash_begin(&state);
    named_files files = {.line = line, .source = source, .state = &state};
    GBX_TRY(hash_flags(&files, line->compiler.words, line->compiler.count));
    GBX_TRY(hash_flags(&files, line->linker.words, line->linker.count));
    GBX_TRY(hash_output(line, source, predefined, &state));
    GBX_TRY(hash_output(line, source, preprocessed, &state));
    gbx_hash_format(gbx_hash_end(&state), out_text);
    return NULL;
}

static void hash_words(gbx_hash_state *state, const word_list *list) {
    for (size_t i = 0; i < list->count; ++i)
        gbx_hash_update(state, list->words[i], strlen(list->words[i]) + 1);
}

/* Runs no compiler; false if it must be asked. */
static bool known_content_key(const command *line, const gbx_hash128 *content,
                              char out_text[GBX_HASH_TEXT_BYTES]) {
    gbx_hash_state state;
    gbx_hash_begin(&state);
    hash_words(&state, &line->compiler);
    hash_words(&state, &line->linker);
    gbx_hash_update(&state, content, sizeof *content);
    bool is_known = gbx_compiler_identify(line->compiler.words[0], &state);
    gbx_hash_format(gbx_hash_end(&state), out_text);
    return is_known;
}

static gbx_status compile_to(const command *line, const char *source, const char *target) {
    char *temporary;
    if (asprintf(&temporary, "%s.XXXXXX", target) < 0)
        return gbx_fail_memory("compiling %s", source);
    int fd = mkstemp(temporary);
    if (fd < 0) {
        gbx_status status =
            gbx_fail(GBX_IO, "compiling %s: creating %s: %s", source, temporary, strerror(errno));
        free(temporary);
        return status;
    }
    close(fd);
    const char *const extra[] = {"-o", temporary, "-x", "c", source, "-x", "none", NULL};
    gbx_process_result result = {0};
    gbx_status status = run(line, source, extra, true, &result);
    if (!status && result.err_text[0])
        gbx_log_warning("compiling %s:\n%s", source, result.err_text);
    gbx_process_result_free(&result);
    if (!status && rename(temporary, target) != 0)
        status = gbx_fail(GBX_IO, "compiling %s: keeping the result as %s: %s", source, target,
                          strerror(errno));
    if (status)
        unlink(temporary);
    free(temporary);
    return status;
}

static gbx_status compile_cached(const command *line, const char *source, const gbx_build *build,
                                 char **out_path) {
    char key[GBX_HASH_TEXT_BYTES];
    char *directory;
    const bool is_program = build->is_program;
    if (!build->content || !known_content_key(line, build->content, key))
        GBX_TRY(content_key(line, source, key));
    GBX_TRY(gbx_cache_directory(is_program ? "programs" : "kernels", &directory));
    int length = asprintf(out_path, "%s/%s%s", directory, key, is_program ? "" : ".so");
    if (length < 0) {
        free(directory);
        *out_path = NULL;
        return gbx_fail_memory("compiling %s", source);
    }
    gbx_status status = NULL;
    if (access(*out_path, R_OK) != 0) {
        gbx_cache_sweep(directory);
        status = compile_to(line, source, *out_path);
    }
    free(directory);
    if (status) {
        free(*out_path);
        *out_path = NULL;
    }
    return status;
}

gbx_status gbx_kernel_compile(const char *source, const char *compile_flags, const char *link_flags,
                              char **out_path) {
    return gbx_kernel_compile_in(NULL, source, compile_flags, link_flags, out_path);
}

gbx_status gbx_kernel_compile_in(const char *directory, const char *source,
                                 const char *compile_flags, const char *link_flags,
                                 char **out_path) {
    const gbx_build build = {.directory = directory,
                             .source = source,
                             .compile_flags = compile_flags,
                             .link_flags = link_flags};
    return gbx_build_make(&build, out_path);
}

gbx_status gbx_build_make(const gbx_build *build, char **out_path) {
    *out_path = NULL;
    char *absolute = realpath(build->source, NULL);
    if (!absolute)
        return gbx_fail(GBX_NOT_FOUND, "compiling %s: %s", build->source, strerror(errno));
    command line = {.directory = build->directory};
    gbx_status status = build_command(build, &line);
    if (!status)
        status = compile_cached(&line, absolute, build, out_path);
    free_words(&line.compiler);
    free_words(&line.linker);
    free(absolute);
    return status;
}
