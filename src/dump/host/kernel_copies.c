#include "dump/host/kernel_copies.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dump/host/source_tree.h"

enum { PATH_BYTES = 4096, NAME_BYTES = 128 };

/* --- names --- */

/* What may stand in a file's name whatever the file system; the hash keeps names apart. */
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

/* ".so" of "a/b.so"; "" where there is none. */
static const char *suffix_of(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && !strchr(dot, '/') && strlen(dot) < 8 ? dot : "";
}

/* "softmax_1a2b3c4d.so" */
static void make_name(const gbx_dump_kernel *kernel, gbx_hash128 hash, const char *suffix,
                      char out_name[NAME_BYTES]) {
    char digits[16];
    snprintf(digits, sizeof digits, "_%08" PRIx32, (uint32_t)hash.low);
    out_name[0] = '\0';
    append_clean(out_name, kernel->name);
    append_clean(out_name, digits);
    append_clean(out_name, suffix);
}

/* --- files --- */

/* "FOLDER/NAME" */
static gbx_status join(const char *folder, const char *name, char out_path[PATH_BYTES]) {
    if (snprintf(out_path, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES)
        return NULL;
    return gbx_fail(GBX_OUT_OF_RANGE, "keeping %s with the dump: the path of its copy is too long",
                    name);
}

static gbx_status fail_copy(const gbx_dump_kernel *kernel, const char *path, int error) {
    return gbx_fail(GBX_IO, "keeping kernel %s with the dump: %s: %s", kernel->name, path,
                    strerror(error));
}

static gbx_status write_all(int fd, const char *bytes, size_t size, const char *path) {
    while (size > 0) {
        ssize_t written = write(fd, bytes, size);
        if (written < 0)
            return gbx_fail(GBX_IO, "writing %s: %s", path, strerror(errno));
        bytes += written;
        size -= (size_t)written;
    }
    return NULL;
}

static gbx_status write_file(const char *path, const char *bytes, size_t size) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return gbx_fail(GBX_IO, "making %s: %s", path, strerror(errno));
    gbx_status status = write_all(fd, bytes, size, path);
    close(fd);
    return status;
}

/* The folders of a path, from `from` on. */
static gbx_status make_folders(char *path, size_t from) {
    for (char *slash = path + from; (slash = strchr(slash, '/')); ++slash) {
        *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return gbx_fail(GBX_IO, "making %s: %s", path, strerror(errno));
        *slash = '/';
    }
    return NULL;
}

/* --- the shared object --- */

static gbx_status hash_file(const gbx_dump_kernel *kernel, int fd, gbx_hash128 *out_hash) {
    char bytes[65536];
    gbx_hash_state state;
    ssize_t count;
    gbx_hash_begin(&state);
    while ((count = read(fd, bytes, sizeof bytes)) > 0)
        gbx_hash_update(&state, bytes, (size_t)count);
    if (count < 0 || lseek(fd, 0, SEEK_SET) != 0)
        return fail_copy(kernel, kernel->object_path, errno);
    *out_hash = gbx_hash_end(&state);
    return NULL;
}

static gbx_status copy_bytes(const gbx_dump_kernel *kernel, int from, const char *to_path) {
    char bytes[65536];
    ssize_t count = 0;
    int to = open(to_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (to < 0)
        return gbx_fail(GBX_IO, "making %s: %s", to_path, strerror(errno));
    gbx_status status = NULL;
    while (!status && (count = read(from, bytes, sizeof bytes)) > 0)
        status = write_all(to, bytes, (size_t)count, to_path);
    if (count < 0)
        status = fail_copy(kernel, kernel->object_path, errno);
    close(to);
    return status;
}

static gbx_status copy_object(const gbx_dump_kernel *kernel, const char *folder,
                              gbx_kernel_copy *copy) {
    char name[NAME_BYTES];
    char path[PATH_BYTES];
    int fd = open(kernel->object_path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_copy(kernel, kernel->object_path, errno);
    gbx_status status = hash_file(kernel, fd, &copy->object_hash);
    if (!status) {
        make_name(kernel, copy->object_hash, suffix_of(kernel->object_path), name);
        snprintf(copy->object, sizeof copy->object, "%s", name);
        status = join(folder, name, path);
    }
    if (!status)
        status = copy_bytes(kernel, fd, path);
    close(fd);
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

/* Below a folder of their own, as they lay to each other. */
static gbx_status copy_tree(const gbx_source_tree *tree, const char *folder, const char *name,
                            gbx_kernel_copy *copy) {
    for (size_t i = 0; i < tree->count; ++i) {
        char inner[PATH_BYTES];
        char path[PATH_BYTES];
        GBX_TRY(join(name, tree->paths[i] + tree->root_length, inner));
        GBX_TRY(join(folder, inner, path));
        GBX_TRY(make_folders(path, strlen(folder) + 1));
        GBX_TRY(write_file(path, tree->texts[i], tree->sizes[i]));
    }
    snprintf(copy->source, sizeof copy->source, "%s/%s", name, tree->paths[0] + tree->root_length);
    return NULL;
}

static gbx_status copy_alone(const gbx_source_tree *tree, const char *folder, const char *name,
                             gbx_kernel_copy *copy) {
    char path[PATH_BYTES];
    GBX_TRY(join(folder, name, path));
    snprintf(copy->source, sizeof copy->source, "%s", name);
    return write_file(path, tree->texts[0], tree->sizes[0]);
}

static gbx_status copy_source(const gbx_dump_kernel *kernel, const char *folder,
                              gbx_kernel_copy *copy) {
    gbx_source_tree *tree;
    char name[NAME_BYTES];
    GBX_TRY(gbx_status_annotate(gbx_source_tree_read(kernel->origin, &tree),
                                "keeping kernel %s with the dump", kernel->name));
    /* With headers so far away that names get too long, the source is kept alone. */
    bool has_folder = tree->count > 1 && strlen(tree->paths[0] + tree->root_length) <
                                             GBX_KERNEL_COPY_BYTES - NAME_BYTES;
    make_name(kernel, hash_tree(tree), has_folder ? "" : suffix_of(kernel->origin), name);
    gbx_status status =
        has_folder ? copy_tree(tree, folder, name, copy) : copy_alone(tree, folder, name, copy);
    gbx_source_tree_free(tree);
    return status;
}

gbx_status gbx_kernel_copies_make(const gbx_dump_session_config *config,
                                  gbx_kernel_copy *out_copies) {
    const char *directory = config->options->directory;
    char folder[PATH_BYTES];
    if ((size_t)snprintf(folder, sizeof folder, "%s/kernels", directory) >=
        sizeof folder - GBX_KERNEL_COPY_BYTES)
        return gbx_fail(GBX_OUT_OF_RANGE, "dumping to %s: the path is too long", directory);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return gbx_fail(GBX_IO, "making %s: %s", folder, strerror(errno));
    for (size_t i = 0; i < config->kernel_count; ++i) {
        const gbx_dump_kernel *kernel = &config->kernels[i];
        out_copies[i] = (gbx_kernel_copy){.object = ""};
        if (kernel->object_path)
            GBX_TRY(copy_object(kernel, folder, &out_copies[i]));
        if (kernel->origin)
            GBX_TRY(copy_source(kernel, folder, &out_copies[i]));
    }
    return NULL;
}
