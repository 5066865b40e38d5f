/* The kernels of a saved program: sources or, if these are incomplete, the compiled objects. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/process.h"
#include "replay/save/internal.h"
#include "store/run/source_tree.h"

enum { MAX_WORDS = 64, PIECE_BYTES = 65536 };

/* --- the shared object --- */

static gbx_status copy_bytes(int from, const char *name, FILE *to) {
    static char piece[PIECE_BYTES]; /* too large for a stack */
    ssize_t count;
    while ((count = gbx_read_some(from, piece, sizeof piece)) > 0)
        fwrite(piece, 1, (size_t)count, to);
    return count < 0 ? gbx_fail(GBX_IO, "reading %s: %s", name, strerror(errno)) : NULL;
}

static gbx_status save_object(const gbx_save_folder *folder, const gbx_saved_kernel *kernel) {
    char path[GBX_SAVE_PATH_BYTES];
    gbx_output output;
    GBX_TRY(gbx_kept_kernel_verify(kernel->kept));
    int from = open(kernel->kept->object, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (from < 0)
        return gbx_fail(GBX_IO, "reading %s: %s", kernel->kept->object, strerror(errno));
    snprintf(path, sizeof path, "kernels/%s.so", kernel->name);
    gbx_status status = gbx_save_open(folder, path, &output);
    if (!status)
        status =
            gbx_output_close(&output, path, copy_bytes(from, kernel->kept->object, output.stream));
    close(from);
    return status;
}

/* --- the source --- */

/* Whether a path needs no quotes in a Makefile and stays below the folder. */
static bool is_plain_path(const char *path) {
    for (const char *c = path; *c; ++c)
        if (!(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z') && !(*c >= '0' && *c <= '9') &&
            !strchr("_-+./", *c))
            return false;
    return path[0] && path[0] != '/' && path[0] != '-' && !strstr(path, "..");
}

/* Whether all files lie in the dump: a source may include any file. */
static bool is_of_dump(const gbx_source_tree *tree, const char *dump_directory) {
    char directory[PATH_MAX], file[PATH_MAX];
    if (!realpath(dump_directory, directory))
        return false;
    size_t length = strlen(directory);
    for (size_t i = 0; i < tree->count; ++i)
        if (!realpath(tree->paths[i], file) || strncmp(file, directory, length) != 0 ||
            file[length] != '/' || !is_plain_path(tree->paths[i] + tree->root_length))
            return false;
    return true;
}

static gbx_status save_tree(const gbx_save_folder *folder, const gbx_source_tree *tree,
                            gbx_saved_kernel *kernel) {
    for (size_t i = 0; i < tree->count; ++i) {
        char path[GBX_SAVE_PATH_BYTES];
        if ((size_t)snprintf(path, sizeof path, "kernels/%s/%s", kernel->name,
                             tree->paths[i] + tree->root_length) >= sizeof path)
            return gbx_fail(GBX_OUT_OF_RANGE, "saving %s: the path is too long", tree->paths[i]);
        GBX_TRY(gbx_save_text(folder, path, tree->texts[i], tree->sizes[i]));
        if (i == 0)
            snprintf(kernel->source, sizeof kernel->source, "%s", path);
    }
    return NULL;
}

/* Limits time and memory of the preprocessor: a source may include a pipe, a device, or itself. */
static const char limits[] = "ulimit -t 10; ulimit -v 4000000; exec timeout 10 \"$@\"";

/* Whether the saved source can be preprocessed: all that it includes exists. Runs none of its code,
 * and uses only macros among the flags of the dump. */
static bool is_whole(const gbx_save_folder *folder, const gbx_saved_kernel *kernel) {
    char include[PATH_MAX], source[PATH_MAX + GBX_SAVE_PATH_BYTES];
    char *words[MAX_WORDS] = {
        "sh", "-c", (char *)(uintptr_t)limits, "sh", "cc", "-E", "-o", "/dev/null", include};
    size_t count = 9;
    char *state = NULL;
    char *flags = strdup(kernel->kept->compile_flags ? kernel->kept->compile_flags : "");
    if (!flags)
        return false;
    snprintf(include, sizeof include, "-I%s", folder->staging.temporary);
    snprintf(source, sizeof source, "%s/%s", folder->staging.temporary, kernel->source);
    for (char *word = strtok_r(flags, " \t\n", &state); word;
         word = strtok_r(NULL, " \t\n", &state))
        if ((strncmp(word, "-D", 2) == 0 || strncmp(word, "-U", 2) == 0) && word[2] &&
            count + 2 < MAX_WORDS)
            words[count++] = word;
    words[count] = source;
    gbx_process_result result;
    gbx_status status = gbx_process_run(words, &result);
    bool is_good = !status && result.exit_code == 0;
    if (!status)
        gbx_process_result_free(&result);
    gbx_status_free(status);
    free(flags);
    return is_good;
}

/* Whether flags name files of the scene, which the folder does not have: words that are not flags,
 * and -L with a relative path. (-I shows when the source is preprocessed.) */
static bool names_files(const char *flags) {
    static const char blanks[] = " \t\n";
    for (const char *word = flags ? flags + strspn(flags, blanks) : ""; *word;) {
        bool is_library_path = strncmp(word, "-L", 2) == 0;
        if (is_library_path ? word[2] != '/' : !strchr("-/", word[0]))
            return true;
        word += strcspn(word, blanks);
        word += strspn(word, blanks);
    }
    return false;
}

/* If the source cannot be used, leaves kernel->source empty and sets why_object. */
static gbx_status save_source(const gbx_save_folder *folder, gbx_saved_kernel *kernel) {
    gbx_source_tree *tree;
    if (!kernel->kept->source) {
        snprintf(kernel->why_object, sizeof kernel->why_object, "the run did not keep its source");
        return NULL;
    }
    GBX_TRY(gbx_source_tree_read(kernel->kept->source, &tree));
    gbx_status status = NULL;
    bool is_inside = is_of_dump(tree, folder->saving->dump_directory);
    bool has_files =
        names_files(kernel->kept->compile_flags) || names_files(kernel->kept->link_flags);
    if (is_inside)
        status = save_tree(folder, tree, kernel);
    gbx_source_tree_free(tree);
    GBX_TRY(status);
    if (is_inside && !has_files && is_whole(folder, kernel))
        return NULL;
    kernel->source[0] = '\0';
    snprintf(kernel->why_object, sizeof kernel->why_object, "%s",
             is_inside && has_files ? "its flags name files that the run did not keep"
             : is_inside            ? "its source includes files that the run did not keep"
                         : "its source, or a file that it includes, lies outside the dump or has a "
                           "name that a Makefile cannot contain");
    return NULL;
}

gbx_status gbx_save_kernels(gbx_save_folder *folder) {
    for (size_t i = 0; i < folder->kernels->count; ++i) {
        gbx_saved_kernel *kernel = &folder->kernels->items[i];
        GBX_TRY(save_source(folder, kernel));
        if (!kernel->source[0])
            GBX_TRY(save_object(folder, kernel));
    }
    return NULL;
}

/* --- the Makefile --- */

/* Writes flags in shell quotes; false if one has characters special to make or the shell. */
static bool put_flags(FILE *to, const char *flags) {
    static const char blanks[] = " \t\n";
    for (const char *word = flags ? flags + strspn(flags, blanks) : ""; *word;) {
        size_t length = strcspn(word, blanks);
        for (size_t i = 0; i < length; ++i)
            if (word[i] < '!' || word[i] > '~' || strchr("'\\#$", word[i]))
                return false;
        fprintf(to, " '%.*s'", (int)length, word);
        word += length;
        word += strspn(word, blanks);
    }
    return true;
}

static gbx_status put_rule(FILE *to, const gbx_saved_kernel *kernel) {
    if (!kernel->source[0])
        return NULL;
    fprintf(to, "kernels/%s.so: %s\n\t$(CC) $(KERNEL_FLAGS) -I.", kernel->name, kernel->source);
    bool is_good = put_flags(to, kernel->kept->compile_flags);
    fprintf(to, " -o $@ %s $(KERNEL_LINK_FLAGS)", kernel->source);
    is_good = put_flags(to, kernel->kept->link_flags) && is_good;
    fprintf(to, " -lm\n\n");
    if (is_good)
        return NULL;
    return gbx_fail(GBX_BAD_FORMAT,
                    "saving kernel %s: its compiler flags in run.json have characters that a "
                    "Makefile cannot contain",
                    kernel->name);
}

gbx_status gbx_save_put_makefile(const gbx_save_folder *folder, FILE *to) {
    fprintf(to, "CFLAGS = -O2 -g -Wall\n"
                "# The flags that glassbox compiled the kernels with.\n"
                "KERNEL_FLAGS = -std=gnu11 -O3 -march=native -ffp-contract=off -fPIC \\\n"
                "  -fno-semantic-interposition -g -Wall -Werror=implicit-function-declaration \\\n"
                "  -fstack-clash-protection\n"
                "KERNEL_LINK_FLAGS = -shared -Wl,-Bsymbolic\n"
                "OBJECTS =");
    for (size_t i = 0; i < folder->kernels->count; ++i)
        fprintf(to, " kernels/%s.so", folder->kernels->items[i].name);
    fprintf(to, "\n\nall: replay_task $(OBJECTS)\n\n"
                "run: all\n\t./replay_task\n\n"
                "replay_task: main.c task.h replay/call.c replay/call.h glassbox/kernel.h\n"
                "\t$(CC) -std=c11 -D_GNU_SOURCE $(CFLAGS) -I. -o $@ main.c replay/call.c "
                "-pthread -ldl -lm\n\n");
    for (size_t i = 0; i < folder->kernels->count; ++i)
        GBX_TRY(put_rule(to, &folder->kernels->items[i]));
    fprintf(to, "clean:\n\trm -f replay_task");
    for (size_t i = 0; i < folder->kernels->count; ++i)
        if (folder->kernels->items[i].source[0])
            fprintf(to, " kernels/%s.so", folder->kernels->items[i].name);
    fprintf(to, "\n\n.PHONY: all run clean\n");
    return NULL;
}
