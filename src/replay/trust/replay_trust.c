#include "replay/trust/replay_trust.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "scene/scene.h"
#include "text/plain_text.h"
#include "toolchain/cache_directory.h"
#include "toolchain/kernel_compiler.h"

enum { PIECE_BYTES = 65536 };

/* --- bytes --- */

static int open_regular(const char *path, off_t *out_size) {
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd >= 0 && (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))) {
        close(fd);
        fd = -1;
    }
    if (fd >= 0)
        *out_size = about.st_size;
    return fd;
}

static bool read_at(int fd, char *bytes, size_t size, off_t offset) {
    size_t count;
    return gbx_pread_all(fd, bytes, size, (uint64_t)offset, &count) == 0 && count == size;
}

static bool same_bytes(int a, int b, off_t size) {
    static char left[PIECE_BYTES], right[PIECE_BYTES]; /* too large for a stack */
    for (off_t offset = 0; offset < size; offset += PIECE_BYTES) {
        size_t count = size - offset < PIECE_BYTES ? (size_t)(size - offset) : PIECE_BYTES;
        if (!read_at(a, left, count, offset) || !read_at(b, right, count, offset) ||
            memcmp(left, right, count) != 0)
            return false;
    }
    return size > 0;
}

/* Whether a file has the same `size` bytes as `object`. */
static bool is_same_file(int object, off_t size, const char *path) {
    off_t other_size;
    int other = open_regular(path, &other_size);
    bool is_same = other >= 0 && other_size == size && same_bytes(object, other, size);
    if (other >= 0)
        close(other);
    return is_same;
}

/* --- ownership --- */

/* Whether a path is of `kind`, S_IFREG or S_IFDIR, and belongs to this user or root. */
static bool find_own(const char *path, mode_t kind, struct stat *out_about) {
    return stat(path, out_about) == 0 && (out_about->st_mode & S_IFMT) == kind &&
           (out_about->st_uid == geteuid() || out_about->st_uid == 0);
}

/* Whether not everyone can write a file or replace it in its directory. A file writable by everyone
 * is safe if not everyone may search its directory. Group access is fine: the owner granted it. */
static bool is_own_file(const char *path) {
    char name[PATH_MAX];
    struct stat file, directory;
    int length = (int)(strrchr(path, '/') - path);
    snprintf(name, sizeof name, "%.*s", length > 0 ? length : 1, path);
    return find_own(path, S_IFREG, &file) && find_own(name, S_IFDIR, &directory) &&
           !(directory.st_mode & S_IWOTH) &&
           !((file.st_mode & S_IWOTH) && (directory.st_mode & S_IXOTH));
}

/* --- the cache --- */

/* Whether an entry of a directory may have the same bytes as an object: a cache has many files, and
 * opening each takes time. */
static bool is_candidate(DIR *files, const char *name, off_t size) {
    const char *ending = strrchr(name, '.');
    struct stat about;
    return ending && ending != name && strcmp(ending, ".so") == 0 &&
           fstatat(dirfd(files), name, &about, AT_SYMLINK_NOFOLLOW) == 0 && about.st_size == size;
}

static gbx_status search_cache(int object, off_t size, char **out_path) {
    char *directory;
    GBX_TRY(gbx_cache_directory("kernels", &directory));
    DIR *files = opendir(directory);
    for (const struct dirent *file; files && !*out_path && (file = readdir(files)) != NULL;) {
        char path[PATH_MAX];
        if (is_candidate(files, file->d_name, size) &&
            (size_t)snprintf(path, sizeof path, "%s/%s", directory, file->d_name) < sizeof path &&
            is_same_file(object, size, path) && is_own_file(path))
            *out_path = strdup(path);
    }
    if (files)
        closedir(files);
    free(directory);
    return NULL;
}

/* --- the original source --- */

/* NULL if a file is this user's, else why not. The path must be free of links. */
static const char *file_objection(const gbx_trust *trust, const char *path) {
    char real[PATH_MAX];
    if (!realpath(trust->dump_directory, real))
        return "the directory of the dump cannot be found";
    size_t length = strlen(real); /* both are free of links */
    if (strncmp(path, real, length) == 0 && path[length] == '/')
        return "its source is inside the dump";
    return is_own_file(path) ? NULL : "its source is writable by everyone or another user";
}

static bool is_same_text(const char *a, const char *b) {
    return strcmp(a ? a : "", b ? b : "") == 0;
}

/* Accepts only absolute paths: others would depend on the current directory. */
static bool find_real(const char *named, char out_path[PATH_MAX]) {
    return named && named[0] == '/' && realpath(named, out_path);
}

/* Whether another user could change or replace a file, which may be a link. */
static bool is_foreign(const gbx_trust *trust, const char *path) {
    char real[PATH_MAX];
    return realpath(path, real) && file_objection(trust, real);
}

/* The scene named by run.json if its file is this user's, else NULL. Foreign references make it
 * foreign, too. */
static gbx_scene *load_scene(const gbx_trust *trust, bool *out_is_foreign) {
    char path[PATH_MAX];
    gbx_scene *scene = NULL;
    char directory[PATH_MAX]; /* free of links */
    bool is_there = find_real(trust->kept ? trust->kept->scene_path : NULL, directory) &&
                    (size_t)snprintf(path, PATH_MAX, "%s/scene.json", directory) < PATH_MAX &&
                    access(path, F_OK) == 0;
    *out_is_foreign = is_there && (file_objection(trust, path) || is_foreign(trust, path));
    if (!is_there || *out_is_foreign)
        return NULL;
    gbx_status_free(gbx_scene_load(path, &scene));
    for (size_t i = 0; scene && i < scene->kernel_count && !*out_is_foreign; ++i)
        *out_is_foreign =
            scene->kernels[i].reference && is_foreign(trust, scene->kernels[i].reference);
    return scene;
}

bool gbx_scene_is_foreign(const gbx_trust *trust) {
    bool is_foreign_scene;
    gbx_scene_free(load_scene(trust, &is_foreign_scene));
    return is_foreign_scene;
}

bool gbx_trusted_flags(const gbx_trust *trust, const gbx_kept_kernel *kernel) {
    if (gbx_flags_are_harmless(kernel->compile_flags, kernel->link_flags))
        return true;
    bool is_foreign_scene;
    gbx_scene *scene = load_scene(trust, &is_foreign_scene);
    bool is_same = false;
    for (size_t i = 0; scene && !is_foreign_scene && !is_same && i < scene->kernel_count; ++i)
        is_same = scene->kernels[i].func_id == kernel->func_id &&
                  is_same_text(scene->kernels[i].compile_flags, kernel->compile_flags) &&
                  is_same_text(scene->kernels[i].link_flags, kernel->link_flags);
    gbx_scene_free(scene);
    return is_same;
}

/* Whether a file is what ran: it has the bytes of `object` or, if that is -1, the recorded hash. */
static bool is_what_ran(const gbx_kept_kernel *kernel, int object, off_t size, const char *path) {
    gbx_kept_kernel made = *kernel;
    if (object >= 0)
        return is_same_file(object, size, path);
    made.object = (char *)path;
    gbx_status status = gbx_kept_kernel_verify(&made);
    bool is_same = !status;
    gbx_status_free(status);
    return is_same;
}

const char *gbx_flags_directory(const gbx_trust *trust) {
    struct stat about;
    const char *path = trust->kept ? trust->kept->scene_path : NULL;
    return path && path[0] == '/' && stat(path, &about) == 0 && S_ISDIR(about.st_mode) ? path
                                                                                       : NULL;
}

static gbx_status compile_origin(const gbx_trust *trust, const gbx_kept_kernel *kernel,
                                 const char *source, int object, off_t size, char **out_path,
                                 char *out_reason) {
    char *path;
    gbx_status status = gbx_kernel_compile_in(gbx_flags_directory(trust), source,
                                              kernel->compile_flags, kernel->link_flags, &path);
    if (status && gbx_status_code(status) != GBX_BAD_KERNEL)
        return status;
    if (status || !is_what_ran(kernel, object, size, path)) {
        snprintf(out_reason, GBX_TRUST_REASON_BYTES, "%.400s %s", source,
                 status ? "no longer compiles"
                        : "no longer compiles to the same code: source, compiler or cache path "
                          "changed");
        gbx_status_free(status);
        free(path);
        return NULL;
    }
    *out_path = path;
    return NULL;
}

static gbx_status try_origin(const gbx_trust *trust, const gbx_kept_kernel *kernel, int object,
                             off_t size, char **out_path, char *out_reason) {
    char source[PATH_MAX];
    if (!find_real(kernel->origin, source)) {
        snprintf(out_reason, GBX_TRUST_REASON_BYTES, "its source %s%s",
                 kernel->origin ? kernel->origin : "",
                 !kernel->origin            ? "is unknown"
                 : kernel->origin[0] == '/' ? " no longer exists"
                                            : " is not an absolute path");
        return NULL;
    }
    const char *why = file_objection(trust, source);
    if (!why && !gbx_trusted_flags(trust, kernel))
        why = "run.json has compiler flags that could do more than compile";
    if (!why)
        return compile_origin(trust, kernel, source, object, size, out_path, out_reason);
    snprintf(out_reason, GBX_TRUST_REASON_BYTES, "%s", why);
    return NULL;
}

gbx_status gbx_trusted_object_find(const gbx_trust *trust, const gbx_kept_kernel *kernel,
                                   char **out_path, char out_reason[GBX_TRUST_REASON_BYTES]) {
    off_t size = 0;
    *out_path = NULL;
    out_reason[0] = '\0';
    int object = open_regular(kernel->object, &size);
    if (object < 0 && access(kernel->object, F_OK) == 0)
        return gbx_fail(GBX_BAD_FORMAT,
                        "reading %s: it is not a regular file; give --trust to follow links",
                        kernel->object);
    gbx_status status = object < 0 ? NULL : search_cache(object, size, out_path);
    if (!status && !*out_path)
        status = try_origin(trust, kernel, object, size, out_path, out_reason);
    gbx_text_make_plain(out_reason);
    if (object >= 0)
        close(object);
    return status;
}

char *gbx_trusted_source_directory(const gbx_trust *trust, const gbx_kept_kernel *kernel) {
    char source[PATH_MAX];
    if (!find_real(kernel->origin, source) || file_objection(trust, source))
        return NULL;
    *strrchr(source, '/') = '\0';
    return source[0] && !strpbrk(source, " \t\n") ? strdup(source) : NULL;
}

/* Whether two regular files have the same bytes. */
static bool has_same_bytes(const char *one, const char *other) {
    off_t size;
    int fd = open_regular(one, &size);
    bool is_same = fd >= 0 && is_same_file(fd, size, other);
    if (fd >= 0)
        close(fd);
    return is_same;
}

gbx_status gbx_trusted_source_find(const gbx_trust *trust, const gbx_kept_kernel *kernel,
                                   char **out_path, char out_reason[GBX_TRUST_REASON_BYTES]) {
    char source[PATH_MAX];
    const char *why = NULL;
    *out_path = NULL;
    if (!find_real(kernel->origin, source))
        why = "its original source no longer exists";
    else
        why = file_objection(trust, source);
    if (!why && !has_same_bytes(source, kernel->source))
        why = "its original source, or the copy in the dump, has changed since the run";
    if (!why && !gbx_trusted_flags(trust, kernel))
        why = "run.json has compiler flags that could do more than compile";
    snprintf(out_reason, GBX_TRUST_REASON_BYTES, "%s", why ? why : "");
    if (why)
        return NULL;
    *out_path = strdup(source);
    return *out_path ? NULL : gbx_fail_memory("finding the source of a kernel");
}

/* --- flags --- */

/* Compiler flags, with a blank after each. */
static const char compile_prefixes[] =
    "-O -W -std= -march= -mtune= -mavx -msse -mfma -mf16c -mno- -mprefer- -fno- -ffast- -ffp- "
    "-ffinite- -ftree- -funroll- -fstrict- -fassociative- -freciprocal- -funsafe- -fomit- -fwrapv "
    "-finline -fopenmp-simd -fexcess-precision= ";
static const char compile_words[] = "-g -g0 -g1 -g2 -g3 -ggdb -w ";
static const char link_prefixes[] = "-l -O ";
static const char link_words[] = "-pthread -g ";

/* Whether a word is in the list, or begins with one of it. */
static bool is_listed(const char *word, size_t length, const char *list, bool is_prefix) {
    for (size_t bytes; *list; list += bytes + 1) {
        bytes = strcspn(list, " ");
        if ((is_prefix ? length >= bytes : length == bytes) && memcmp(word, list, bytes) == 0)
            return true;
    }
    return false;
}

static bool all_known(const char *flags, const char *prefixes, const char *words) {
    static const char blanks[] = " \t\n";
    for (const char *word = flags ? flags + strspn(flags, blanks) : ""; *word;) {
        size_t length = strcspn(word, blanks);
        if (!is_listed(word, length, prefixes, true) && !is_listed(word, length, words, false))
            return false;
        /* No flag that names a file or is passed to another program: -Wl,... -Wp,... */
        for (size_t i = 0; i < length; ++i) {
            char c = word[i];
            bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
            if (!is_letter && !(c >= '0' && c <= '9') && !strchr("-_=.+", c))
                return false;
        }
        word += length;
        word += strspn(word, blanks);
    }
    return true;
}

bool gbx_flags_are_harmless(const char *compile_flags, const char *link_flags) {
    return all_known(compile_flags, compile_prefixes, compile_words) &&
           all_known(link_flags, link_prefixes, link_words);
}
