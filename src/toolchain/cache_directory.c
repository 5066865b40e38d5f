#include "toolchain/cache_directory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

/* Only absolute paths, as XDG demands: a relative cache would move with the working directory. */
static const char *absolute_variable(const char *name) {
    const char *value = getenv(name);
    return value && value[0] == '/' ? value : NULL;
}

static gbx_status format_path(const char *name, char **out_path) {
    const char *own = absolute_variable("GLASSBOX_CACHE");
    const char *xdg = absolute_variable("XDG_CACHE_HOME");
    const char *home = absolute_variable("HOME");
    int length = -1;
    *out_path = NULL;
    if (own)
        length = asprintf(out_path, "%s/%s", own, name);
    else if (xdg)
        length = asprintf(out_path, "%s/glassbox/%s", xdg, name);
    else if (home)
        length = asprintf(out_path, "%s/.cache/glassbox/%s", home, name);
    else
        return gbx_fail(GBX_NOT_FOUND,
                        "finding the cache of compiled kernels: none of GLASSBOX_CACHE, "
                        "XDG_CACHE_HOME and HOME is an absolute path; set one");
    if (length < 0) {
        *out_path = NULL;
        return gbx_fail_memory("finding the cache of compiled kernels");
    }
    return NULL;
}

static gbx_status make_directories(char *path) {
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        int result = mkdir(path, 0700);
        int error = errno;
        if (slash)
            *slash = '/';
        if (result != 0 && error != EEXIST)
            return gbx_fail(
                GBX_IO,
                "creating the cache directory %s: %s; set GLASSBOX_CACHE to a writable directory",
                path, strerror(error));
        if (!slash)
            return NULL;
    }
}

gbx_status gbx_cache_directory(const char *name, char **out_path) {
    GBX_TRY(format_path(name, out_path));
    gbx_status status = make_directories(*out_path);
    if (status) {
        free(*out_path);
        *out_path = NULL;
    }
    return status;
}

gbx_status gbx_cache_write(const char *path, const void *bytes, size_t size) {
    char *temporary;
    if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
        return gbx_fail_memory("writing %s", path);
    int fd = mkstemp(temporary);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool is_written = file && fwrite(bytes, 1, size, file) == size;
    is_written = file && fclose(file) == 0 && is_written;
    is_written = is_written && rename(temporary, path) == 0;
    gbx_status status = NULL;
    if (!is_written) {
        status = gbx_fail(GBX_IO, "writing %s: %s", path, strerror(errno));
        if (fd >= 0)
            unlink(temporary);
    }
    free(temporary);
    return status;
}
