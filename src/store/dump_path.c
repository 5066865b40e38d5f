#include "store/dump_path.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "store/import/import.h"

#define HOW_TO_MAKE "make one with: glassbox run SCENE --dump-tensor"

char *gbx_dump_path_join(const char *directory, const char *name) {
    char *path;
    size_t length = strlen(directory);
    while (length > 1 && directory[length - 1] == '/')
        --length;
    const char *slash = length == 1 && directory[0] == '/' ? "" : "/";
    return asprintf(&path, "%.*s%s%s", (int)length, directory, slash, name) < 0 ? NULL : path;
}

static gbx_status copy_path(const char *path, char **out_path) {
    *out_path = strdup(path);
    return *out_path ? NULL : gbx_fail_memory("looking for a dump");
}

/* Whether DIRECTORY/NAME exists and is of the kind (S_IFDIR, S_IFREG). */
static gbx_status look(const char *directory, const char *name, mode_t kind, bool *out_is_there) {
    struct stat about;
    char *path = gbx_dump_path_join(directory, name);
    *out_is_there = false;
    if (!path)
        return gbx_fail_memory("looking for a dump");
    gbx_status status = NULL;
    if (stat(path, &about) == 0)
        *out_is_there = (about.st_mode & S_IFMT) == kind;
    else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
        status = gbx_fail(GBX_IO, "looking for a dump at %s: %s", path, strerror(errno));
    free(path);
    return status;
}

/* With tensor_dump/ inside. */
static gbx_status is_outer(const char *directory, bool *out_is_outer) {
    return look(directory, "tensor_dump", S_IFDIR, out_is_outer);
}

/* The same, or with the manifest of another tool inside. */
static gbx_status is_dump(const char *directory, bool *out_is_dump) {
    GBX_TRY(is_outer(directory, out_is_dump));
    return *out_is_dump ? NULL : gbx_import_find_beside(directory, out_is_dump);
}

/* Whether a directory is the inner one: called tensor_dump, with one of its files inside. */
static gbx_status is_inner(const char *directory, const char *resolved, bool *out_is_inner) {
    static const char *const files[] = {"tensor_dump.rec", "tensor_dump.json", "args_dump.json"};
    const char *name = strrchr(resolved, '/');
    *out_is_inner = false;
    if (!name || strcmp(name + 1, "tensor_dump") != 0)
        return NULL;
    for (size_t i = 0; i < sizeof files / sizeof files[0] && !*out_is_inner; ++i)
        GBX_TRY(look(directory, files[i], S_IFREG, out_is_inner));
    return NULL;
}

/* The directory around tensor_dump/, when that is what was given. */
static gbx_status find_around(const char *given, char **out_directory) {
    bool is_there = false;
    char *resolved = realpath(given, NULL);
    if (!resolved)
        return gbx_fail(errno == ENOENT ? GBX_NOT_FOUND : GBX_IO, "looking for a dump at %s: %s",
                        given, strerror(errno));
    gbx_status status = is_inner(given, resolved, &is_there);
    if (!status && is_there) {
        char *end = strrchr(resolved, '/');
        end[end == resolved] = '\0';
        *out_directory = resolved;
        return NULL;
    }
    free(resolved);
    return status;
}

/* The dumps inside a directory: how many, and the first two by name, which are borrowed. */
typedef struct inside {
    size_t count;
    const char *names[2];
} inside;

static gbx_status look_inside(const char *given, struct dirent **entries, int entry_count,
                              inside *found) {
    for (int i = 0; i < entry_count; ++i) {
        const char *name = entries[i]->d_name;
        bool is_there = false;
        char *path = gbx_dump_path_join(given, name);
        if (!path)
            return gbx_fail_memory("looking for a dump");
        /* A directory that cannot be read does not count as a dump. */
        gbx_status_free(is_dump(path, &is_there));
        free(path);
        if (is_there && found->count < 2)
            found->names[found->count] = name;
        found->count += is_there;
    }
    return NULL;
}

static int is_no_dot(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static gbx_status choose_inside(const char *given, const inside *found, char **out_directory) {
    if (found->count == 0)
        return gbx_fail(
            GBX_NOT_FOUND,
            "%s: no dump found: it has no tensor_dump/, no latest, no directory with a "
            "tensor_dump/ and no manifest of another tool (tensor_dump.json, or args_dump.json "
            "with bin_file); " HOW_TO_MAKE,
            given);
    if (found->count > 1)
        return gbx_fail(
            GBX_INVALID_ARGUMENT, "%s holds %zu dumps (%s, %s%s) but no latest; name one of them",
            given, found->count, found->names[0], found->names[1], found->count > 2 ? "..." : "");
    *out_directory = gbx_dump_path_join(given, found->names[0]);
    return *out_directory ? NULL : gbx_fail_memory("looking for a dump");
}

static gbx_status find_inside(const char *given, char **out_directory) {
    char *latest = gbx_dump_path_join(given, "latest");
    bool is_there = false;
    gbx_status status = latest ? is_dump(latest, &is_there) : gbx_fail_memory("looking for a dump");
    if (!status && is_there) {
        *out_directory = latest;
        return NULL;
    }
    free(latest);
    GBX_TRY(status);
    struct dirent **entries;
    int entry_count = scandir(given, &entries, is_no_dot, alphasort);
    if (entry_count < 0)
        return gbx_fail(GBX_IO, "looking for a dump in %s: %s", given, strerror(errno));
    inside found = {0};
    status = look_inside(given, entries, entry_count, &found);
    if (!status)
        status = choose_inside(given, &found, out_directory);
    while (entry_count > 0)
        free(entries[--entry_count]);
    free(entries);
    return status;
}

gbx_status gbx_dump_path_find(const char *given, char **out_directory) {
    struct stat about;
    bool is_there;
    *out_directory = NULL;
    if (!given) {
        GBX_TRY(is_dump(GBX_DUMP_PATH_DEFAULT, &is_there));
        if (is_there)
            return copy_path(GBX_DUMP_PATH_DEFAULT, out_directory);
        return gbx_fail(GBX_NOT_FOUND, "no dump at " GBX_DUMP_PATH_DEFAULT
                                       " below the current directory; name one, or " HOW_TO_MAKE);
    }
    if (stat(given, &about) != 0)
        return gbx_fail(errno == ENOENT ? GBX_NOT_FOUND : GBX_IO,
                        "looking for a dump at %s: %s; " HOW_TO_MAKE, given, strerror(errno));
    if (!S_ISDIR(about.st_mode))
        return gbx_fail(
            GBX_INVALID_ARGUMENT,
            "looking for a dump at %s: it is not a directory; a dump is a directory that "
            "contains tensor_dump/ or a manifest",
            given);
    GBX_TRY(is_outer(given, &is_there));
    if (!is_there)
        GBX_TRY(find_around(given, out_directory));
    if (*out_directory)
        return NULL;
    if (!is_there)
        GBX_TRY(gbx_import_find_beside(given, &is_there));
    return is_there ? copy_path(given, out_directory) : find_inside(given, out_directory);
}
