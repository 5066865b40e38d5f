#include "store/run/kernel_copies.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "store/run/source_tree.h"

enum { PATH_BYTES = 4096, NAME_BYTES = 128, INNER_BYTES = 512 };

/* --- names --- */

/* Keeps only characters that any file system allows; the hash keeps names distinct. */
static void append_clean(char name[NAME_BYTES], const char *text) {
    size_t length = strlen(name);
    for (; *text && length + 1 < NAME_BYTES; ++text) {
        bool is_plain = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
                        (*text >= '0' && *text <= '9') || strchr("._-", *text);
        name[length] = is_plain && (length > 0 || *text != '.') ? *text : '_';
        ++length;
    }
    name[length] = '\0';
}

/* ".so" of "a/b.so"; "" when there is none. */
static const char *suffix_of(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && !strchr(dot, '/') && strlen(dot) < 8 ? dot : "";
}

/* "softmax_1a2b3c4d.so" */
static void make_name(const gbx_run_kernel *kernel, gbx_hash128 hash, const char *suffix,
                      char out_name[NAME_BYTES]) {
    char digits[16];
    snprintf(digits, sizeof digits, "_%08" PRIx32, (uint32_t)hash.low);
    out_name[0] = '\0';
    append_clean(out_name, kernel->name);
    append_clean(out_name, digits);
    append_clean(out_name, suffix);
}

/* --- files --- */

/* Writes DIRECTORY/kernels/NAME with the folders of NAME; *out_inner, if given, is its path
 * relative to the directory. */
static gbx_status write_copy(const char *directory, const char *name, const char *bytes,
                             size_t size, char **out_inner) {
    char path[PATH_BYTES];
    size_t inner = strlen(directory) + 1;
    if ((size_t)snprintf(path, sizeof path, "%s/kernels/%s", directory, name) >= sizeof path)
        return gbx_fail(GBX_OUT_OF_RANGE, "the path of the copy %s is too long", name);
    for (char *slash = path + inner; (slash = strchr(slash, '/')); ++slash) {
        *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return gbx_fail(GBX_IO, "creating %s: %s", path, strerror(errno));
        *slash = '/';
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return gbx_fail(GBX_IO, "creating %s: %s", path, strerror(errno));
    int error = gbx_write_all(fd, bytes, size);
    close(fd);
    if (error)
        return gbx_fail(GBX_IO, "writing %s: %s", path, strerror(error));
    if (!out_inner)
        return NULL;
    *out_inner = strdup(path + inner);
    return *out_inner ? NULL : gbx_fail_memory("writing %s", path);
}

static gbx_status copy_object(const char *directory, gbx_run_kernel *kernel) {
    char name[NAME_BYTES];
    char *bytes = NULL;
    size_t size = 0;
    GBX_TRY(gbx_read_file(kernel->object_path, SIZE_MAX - 1, &bytes, &size));
    kernel->object_hash = gbx_hash_bytes(bytes, size);
    make_name(kernel, kernel->object_hash, suffix_of(kernel->object_path), name);
    gbx_status status = write_copy(directory, name, bytes, size, &kernel->object);
    free(bytes);
    return status;
}

/* --- the source --- */

static gbx_hash128 hash_tree(const gbx_source_tree *tree) {
    gbx_hash_state state;
    gbx_hash_begin(&state);
    for (size_t i = 0; i < tree->count; ++i) {
        const char *name = tree->paths[i] + tree->root_length;
        if (tree->count > 1)
            gbx_hash_update(&state, name, strlen(name) + 1);
        gbx_hash_update(&state, tree->texts[i], tree->sizes[i]);
    }
    return gbx_hash_end(&state);
}

/* Into their own folder, with their relative places. */
static gbx_status copy_tree(const char *directory, const char *folder, const gbx_source_tree *tree,
                            gbx_run_kernel *kernel) {
    for (size_t i = 0; i < tree->count; ++i) {
        char name[PATH_BYTES];
        if ((size_t)snprintf(name, sizeof name, "%s/%s", folder,
                             tree->paths[i] + tree->root_length) >= sizeof name)
            return gbx_fail(GBX_OUT_OF_RANGE, "the path of the copy of %s is too long",
                            tree->paths[i]);
        GBX_TRY(write_copy(directory, name, tree->texts[i], tree->sizes[i],
                           i == 0 ? &kernel->source : NULL));
    }
    return NULL;
}

static gbx_status copy_source(const char *directory, gbx_run_kernel *kernel) {
    gbx_source_tree *tree;
    char name[NAME_BYTES];
    GBX_TRY(gbx_source_tree_read(kernel->origin, &tree));
    /* If headers are so far away that names get too long, only the source is kept. */
    bool has_folder =
        tree->count > 1 && strlen(tree->paths[0] + tree->root_length) < INNER_BYTES - NAME_BYTES;
    make_name(kernel, hash_tree(tree), has_folder ? "" : suffix_of(kernel->origin), name);
    gbx_status status =
        has_folder ? copy_tree(directory, name, tree, kernel)
                   : write_copy(directory, name, tree->texts[0], tree->sizes[0], &kernel->source);
    gbx_source_tree_free(tree);
    return status;
}

gbx_status gbx_kernel_copies_make(const char *directory, gbx_run_info *info) {
    char folder[PATH_BYTES];
    if ((size_t)snprintf(folder, sizeof folder, "%s/kernels", directory) >= sizeof folder)
        return gbx_fail(GBX_OUT_OF_RANGE, "dumping to %s: the path is too long", directory);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return gbx_fail(GBX_IO, "creating %s: %s", folder, strerror(errno));
    for (size_t i = 0; i < info->kernel_count; ++i) {
        gbx_run_kernel *kernel = &info->kernels[i];
        gbx_status status = kernel->object_path ? copy_object(directory, kernel) : NULL;
        if (!status && kernel->origin)
            status = copy_source(directory, kernel);
        if (status)
            return gbx_status_annotate(status, "keeping kernel %s with the dump", kernel->name);
    }
    return NULL;
}
