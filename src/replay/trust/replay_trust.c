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

/* Whether a file has the `size` bytes that `object` has. */
static bool is_same_file(int object, off_t size, const char *path) {
    off_t other_size;
    int other = open_regular(path, &other_size);
    bool is_same = other >= 0 && other_size == size && same_bytes(object, other, size);
    if (other >= 0)
        close(other);
    return is_same;
}

/* --- whose it is --- */

/* Whether it is a file or a directory, S_IFREG or S_IFDIR, of this user or of root. */
static bool find_own(const char *path, mode_t kind, struct stat *out_about) {
    return stat(path, out_about) == 0 && (out_about->st_mode & S_IFMT) == kind &&
           (out_about->st_uid == geteuid() || out_about->st_uid == 0);
}

/* A file that not everybody can write, and neither the directory that has its name: who can write
 * that can put another one there, and who may not search it does not reach the file. A group may:
 * the owner let it in. */
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

static bool is_object_name(const char *name) {
    size_t length = strlen(name);
    return length > 3 && strcmp(name + length - 3, ".so") == 0;
}

static gbx_status search_cache(int object, off_t size, char **out_path) {
    char *directory;
    GBX_TRY(gbx_cache_directory("kernels", &directory));
    DIR *files = opendir(directory);
    for (const struct dirent *file; files && !*out_path && (file = readdir(files)) != NULL;) {
        char path[PATH_MAX];
        bool fits =
            (size_t)snprintf(path, sizeof path, "%s/%s", directory, file->d_name) < sizeof path;
        if (fits && is_object_name(file->d_name) && is_same_file(object, size, path) &&
            is_own_file(path))
            *out_path = strdup(path);
    }
    if (files)
        closedir(files);
    free(directory);
    return NULL;
}

/* --- the source that it was made of --- */

/* NULL where a file is this user's, or why not. The path is without links. */
static const char *file_objection(const gbx_trust *trust, const char *path) {
    char real[PATH_MAX];
    if (!realpath(trust->dump_directory, real))
        return "the dump's directory cannot be found";
    size_t length = strlen(real); /* both are without links */
    if (strncmp(path, real, length) == 0 && path[length] == '/')
        return "its source lies in the dump";
    return is_own_file(path) ? NULL : "everybody, or another user, can write its source";
}

static bool is_same_text(const char *a, const char *b) {
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool has_flags(const gbx_scene *scene, const gbx_kept_kernel *kernel) {
    for (size_t i = 0; i < scene->kernel_count; ++i)
        if (scene->kernels[i].func_id == kernel->func_id)
            return is_same_text(scene->kernels[i].compile_flags, kernel->compile_flags) &&
                   is_same_text(scene->kernels[i].link_flags, kernel->link_flags);
    return false;
}

/* Paths that a dump names do not depend on where this program is started. */
static bool find_real(const char *named, char out_path[PATH_MAX]) {
    return named && named[0] == '/' && realpath(named, out_path);
}

/* Whether somebody else could change a file that may be a link, or put another in its place. */
static bool is_foreign(const gbx_trust *trust, const char *path) {
    char real[PATH_MAX];
    return realpath(path, real) && file_objection(trust, real);
}

static bool has_foreign_reference(const gbx_trust *trust, const gbx_scene *scene) {
    for (size_t i = 0; i < scene->kernel_count; ++i)
        if (scene->kernels[i].reference && is_foreign(trust, scene->kernels[i].reference))
            return true;
    return false;
}

/* The scene that run.json names, where its file is this user's; NULL. A reference of others makes
 * it foreign, too. */
static gbx_scene *load_scene(const gbx_trust *trust, bool *out_is_foreign) {
    char path[PATH_MAX];
    gbx_scene *scene = NULL;
    /* The file of the scene, where it is there: its directory is without links. */
    char directory[PATH_MAX];
    bool is_there = find_real(trust->kept ? trust->kept->scene_path : NULL, directory) &&
                    (size_t)snprintf(path, PATH_MAX, "%s/scene.json", directory) < PATH_MAX &&
                    access(path, F_OK) == 0;
    *out_is_foreign = is_there && (file_objection(trust, path) || is_foreign(trust, path));
    if (!is_there || *out_is_foreign)
        return NULL;
    gbx_status_free(gbx_scene_load(path, &scene));
    *out_is_foreign = scene && has_foreign_reference(trust, scene);
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
    bool is_same = scene && !is_foreign_scene && has_flags(scene, kernel);
    gbx_scene_free(scene);
    return is_same;
}

/* NULL where the source may be compiled, or why not. */
static const char *objection(const gbx_trust *trust, const gbx_kept_kernel *kernel,
                             const char *source) {
    const char *why = file_objection(trust, source);
    if (why)
        return why;
    if (!gbx_trusted_flags(trust, kernel))
        return "run.json has compiler flags that could do more than compile";
    return NULL;
}

/* Whether a file is what ran: it has the bytes of `object`, or, where that is -1, its hash. */
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

static gbx_status compile_origin(const gbx_kept_kernel *kernel, const char *source, int object,
                                 off_t size, char **out_path, char *out_reason) {
    char *path;
    gbx_status status =
        gbx_kernel_compile(source, kernel->compile_flags, kernel->link_flags, &path);
    if (status && gbx_status_code(status) != GBX_BAD_KERNEL)
        return status;
    if (status || !is_what_ran(kernel, object, size, path)) {
        snprintf(out_reason, GBX_TRUST_REASON_BYTES, "%.400s %s", source,
                 status ? "does not compile any more"
                        : "gives other code now: it, the compiler or the place of the cache is "
                          "another");
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
        snprintf(out_reason, GBX_TRUST_REASON_BYTES, "its source %s %s",
                 kernel->origin ? kernel->origin : "",
                 !kernel->origin            ? "is not known"
                 : kernel->origin[0] == '/' ? "is gone"
                                            : "is not named by its whole path");
        return NULL;
    }
    const char *why = objection(trust, kernel, source);
    if (!why)
        return compile_origin(kernel, source, object, size, out_path, out_reason);
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
        return gbx_fail(
            GBX_BAD_FORMAT,
            "reading %s: it is no plain file, such as runs keep; give --trust to follow "
            "links",
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

/* --- flags --- */

/* Words of compilers, with a blank after each. */
static const char compile_prefixes[] =
    "-O -W -std= -march= -mtune= -mavx -msse -mfma -mf16c -mno- -mprefer- -fno- -ffast- -ffp- "
    "-ffinite- -ftree- -funroll- -fstrict- -fassociative- -freciprocal- -funsafe- -fomit- -fwrapv "
    "-finline -fopenmp-simd -fexcess-precision= ";
static const char compile_words[] = "-g -g0 -g1 -g2 -g3 -ggdb -w ";
static const char link_prefixes[] = "-l -O ";
static const char link_words[] = "-pthread -g ";

/* Whether a word is one of the list, or begins with one. */
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
        /* Nothing that names a file or goes on to another program: -Wl,... -Wp,... */
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
