#include "toolchain/cache_directory.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"

enum { STALE_SECONDS = 24 * 60 * 60 };

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

/* "<hash>[.so].<six letters and digits>", as mkstemp makes them. */
static bool is_temporary(const char *name) {
    size_t hash = strspn(name, "0123456789abcdef");
    const char *rest = name + hash;
    if (hash != GBX_HASH_TEXT_BYTES - 1)
        return false;
    if (strncmp(rest, ".so.", 4) == 0)
        rest += 3;
    if (rest[0] != '.' || strlen(rest) != 7)
        return false;
    for (++rest; *rest; ++rest)
        if (!isalnum((unsigned char)*rest))
            return false;
    return true;
}

void gbx_cache_sweep(const char *directory) {
    const int64_t oldest = (int64_t)time(NULL) - STALE_SECONDS;
    DIR *files = opendir(directory);
    const struct dirent *entry;
    struct stat about;
    while (files && (entry = readdir(files)) != NULL)
        if (is_temporary(entry->d_name) &&
            fstatat(dirfd(files), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(about.st_mode) && about.st_mtime < oldest)
            unlinkat(dirfd(files), entry->d_name, 0);
    if (files)
        closedir(files);
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
