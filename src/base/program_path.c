#include "base/program_path.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_program(const char *path) {
    return access(path, X_OK) == 0;
}

/* The directory of the library or program that holds this code, with the slash. */
static bool own_directory(char out_path[PATH_MAX]) {
    Dl_info info;
    char file[PATH_MAX];
    bool is_known = dladdr((const void *)(uintptr_t)&own_directory, &info) && info.dli_fname;
    /* For the program itself the name is argv[0], which may be relative to an earlier working
     * directory. */
    if (!(is_known && strchr(info.dli_fname, '/') && realpath(info.dli_fname, file)) &&
        !realpath("/proc/self/exe", file))
        return false;
    *(strrchr(file, '/') + 1) = '\0';
    memcpy(out_path, file, strlen(file) + 1);
    return true;
}

/* False, with the path unspecified, when it is too long or not a program. */
static bool is_program_at(const char *directory, const char *place, const char *program,
                          char out_path[PATH_MAX]) {
    int length = snprintf(out_path, PATH_MAX, "%s%s%s", directory, place, program);
    return length < PATH_MAX && is_program(out_path);
}

gbx_status gbx_program_path_find(const gbx_program_path_query *name, char out_path[PATH_MAX]) {
    static const char *const places[] = {"", "../libexec/glassbox/", "../../libexec/glassbox/"};
    const char *chosen = name->configured ? name->configured : getenv(name->variable);
    if (chosen && !is_program(chosen))
        return gbx_fail(GBX_NOT_FOUND, "%s: %s, named by %s, cannot be run: %s", name->doing,
                        chosen, name->configured ? "the configuration" : name->variable,
                        strerror(errno));
    if (chosen) {
        snprintf(out_path, PATH_MAX, "%s", chosen);
        return NULL;
    }
    char directory[PATH_MAX] = "this program";
    if (own_directory(directory))
        for (size_t i = 0; i < sizeof places / sizeof places[0]; ++i)
            if (is_program_at(directory, places[i], name->program, out_path))
                return NULL;
    if (is_program_at(GBX_LIBEXEC_DIR, "/", name->program, out_path))
        return NULL;
    return gbx_fail(GBX_NOT_FOUND, "%s: no %s beside %s or in %s; set %s to its path", name->doing,
                    name->program, directory, GBX_LIBEXEC_DIR, name->variable);
}
