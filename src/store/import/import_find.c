/* Where the manifest of a dump lies. */
#include "store/import/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_BYTES = 64 << 10 };

/* "bin_file" as a key: a value of that text is followed by no colon. */
static bool has_key(const char *text, size_t size) {
    static const char key[] = "\"bin_file\"";
    const char *end = text + size;
    const char *at = text;
    while ((at = memmem(at, (size_t)(end - at), key, sizeof key - 1))) {
        at += sizeof key - 1;
        while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
            ++at;
        if (at < end && *at == ':')
            return true;
    }
    return false;
}

static bool has_key_at(int fd, off_t offset) {
    char text[LOOK_BYTES];
    ssize_t got = pread(fd, text, sizeof text, offset);
    return got > 0 && has_key(text, (size_t)got);
}

/* An args_dump.json of ours has no such member. It stands before the entries or after them. */
static gbx_status has_bin_file(const char *path, bool *out_has_it) {
    struct stat about;
    *out_has_it = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &about) != 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return gbx_fail(GBX_IO, "cannot open %s: %s", path, strerror(error));
    }
    off_t end = about.st_size > LOOK_BYTES ? about.st_size - LOOK_BYTES : 0;
    *out_has_it = has_key_at(fd, 0) || (end > 0 && has_key_at(fd, end));
    close(fd);
    return NULL;
}

static gbx_status look(const char *directory, const char *name, bool needs_bin_file,
                       char out_path[PATH_MAX], bool *out_is_there) {
    struct stat about;
    *out_is_there = false;
    int length = snprintf(out_path, PATH_MAX, "%s/%s", directory, name);
    if (length < 0 || length >= PATH_MAX)
        return gbx_fail(GBX_INVALID_ARGUMENT, "the path of the dump %.64s... is too long",
                        directory);
    if (stat(out_path, &about) != 0) {
        if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
            return NULL;
        return gbx_fail(GBX_IO, "looking for a dump at %s: %s", out_path, strerror(errno));
    }
    if (!S_ISREG(about.st_mode))
        return NULL;
    if (needs_bin_file)
        return has_bin_file(out_path, out_is_there);
    *out_is_there = true;
    return NULL;
}

gbx_status gbx_import_find(const char *directory, char out_path[PATH_MAX], bool *out_is_there) {
    static const struct {
        const char *name;
        bool needs_bin_file;
    } places[] = {{"tensor_dump/tensor_dump.json", false},
                  {"tensor_dump.json", false},
                  {"args_dump.json", true},
                  {"tensor_dump/args_dump.json", true}};
    *out_is_there = false;
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !*out_is_there; ++i)
        GBX_TRY(look(directory, places[i].name, places[i].needs_bin_file, out_path, out_is_there));
    return NULL;
}

gbx_status gbx_import_find_beside(const char *directory, bool *out_is_there) {
    char path[PATH_MAX];
    GBX_TRY(look(directory, "tensor_dump.json", false, path, out_is_there));
    return *out_is_there ? NULL : look(directory, "args_dump.json", true, path, out_is_there);
}
