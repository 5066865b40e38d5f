#include "base/staging.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"

enum { BUFFER_BYTES = 1 << 18, SUFFIX_LETTERS = 6, ATTEMPTS = 100, OPEN_FOLDERS = 16 };

/* --- a file being written --- */

/* For fopencookie: anything but `size` is a failure. */
static ssize_t write_stream(void *cookie, const char *bytes, size_t size) {
    gbx_output *output = cookie;
    size_t written = 0;
    if (output->error == 0 && output->signals && gbx_signals_have_come(output->signals))
        output->error = EINTR;
    if (output->error == 0)
        output->error = gbx_pwrite_all(output->fd, bytes, size, output->bytes, &written);
    output->bytes += written;
    errno = output->error;
    return output->error ? 0 : (ssize_t)size;
}

gbx_status gbx_output_open(gbx_output *output, int fd, const gbx_held_signals *signals) {
    *output = (gbx_output){.fd = fd, .signals = signals, .buffer = malloc(BUFFER_BYTES)};
    if (output->buffer)
        output->stream = fopencookie(output, "w", (cookie_io_functions_t){.write = write_stream});
    if (!output->stream) {
        free(output->buffer);
        close(fd);
        return gbx_fail_memory("writing a file");
    }
    setvbuf(output->stream, output->buffer, _IOFBF, BUFFER_BYTES);
    return NULL;
}

gbx_status gbx_output_fail(const char *name, int error) {
    const char *advice =
        error == ENOSPC || error == EDQUOT ? "; free some space and try again"
        : error == EFBIG
            ? "; raise the file size limit (ulimit -f), or use a file system that allows larger "
              "files"
            : "";
    return gbx_fail(GBX_LOST, "cannot write %s: %s%s", name, strerror(error), advice);
}

gbx_status gbx_output_close(gbx_output *output, const char *name, gbx_status status) {
    fclose(output->stream);
    free(output->buffer);
    if (close(output->fd) != 0 && output->error == 0)
        output->error = errno;
    *output = (gbx_output){.fd = -1, .bytes = output->bytes, .error = output->error};
    if (output->error == 0)
        return status;
    gbx_status_free(status);
    return gbx_output_fail(name, output->error);
}

/* --- making --- */

static const char has_files[] = "a directory with files is already there";

static bool is_own_link(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* `path`, or the target of the link there, without trailing slashes. */
static char *final_path(const char *path) {
    struct stat about;
    char *final = lstat(path, &about) == 0 && S_ISLNK(about.st_mode) ? realpath(path, NULL) : NULL;
    if (!final)
        final = strdup(path);
    for (size_t length = final ? strlen(final) : 0; length > 1 && final[length - 1] == '/';)
        final[--length] = '\0';
    return final;
}

static bool fill_suffix(char *at) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345"; /* 32: no bias */
    unsigned char random[SUFFIX_LETTERS];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    for (size_t i = 0; i < SUFFIX_LETTERS; ++i)
        at[i] = letters[random[i] % 32];
    return true;
}

static int open_file(const char *path) {
    return gbx_above_standard_streams(open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666));
}

static int make_directory(const char *path) {
    if (mkdir(path, 0777) != 0)
        return -1;
    int fd = gbx_above_standard_streams(open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC));
    if (fd < 0) {
        int error = errno;
        rmdir(path);
        errno = error;
    }
    return fd;
}

static void free_staging(gbx_staging *staging) {
    free(staging->path);
    free(staging->temporary);
    if (staging->directory >= 0)
        close(staging->directory);
    *staging = (gbx_staging){.directory = -1};
}

/* `make` gives a descriptor, or -1 and errno. */
static gbx_status create(const char *path, int (*make)(const char *path), gbx_staging *staging,
                         int *out_fd) {
    *staging = (gbx_staging){.path = final_path(path), .directory = -1};
    if (!staging->path || asprintf(&staging->temporary, "%s.partial-XXXXXX", staging->path) < 0) {
        staging->temporary = NULL;
        free_staging(staging);
        return gbx_fail_memory("creating %s", path);
    }
    char *suffix = staging->temporary + strlen(staging->temporary) - SUFFIX_LETTERS;
    *out_fd = -1;
    for (int i = 0; i < ATTEMPTS && *out_fd < 0; ++i) {
        if (!fill_suffix(suffix))
            break;
        *out_fd = make(staging->temporary);
        if (*out_fd < 0 && errno != EEXIST)
            break;
    }
    if (*out_fd >= 0)
        return NULL;
    int error = errno;
    free_staging(staging);
    return gbx_fail(GBX_IO, "cannot create %s: %s", path, strerror(error));
}

gbx_status gbx_staging_create_file(const char *path, gbx_staging *out_staging, int *out_fd) {
    struct stat about;
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        return gbx_fail(
            GBX_IO, "cannot create %s: %s already there; expected the name of a file", path,
            S_ISDIR(about.st_mode) ? "a directory is" : "something other than a file is");
    return create(path, open_file, out_staging, out_fd);
}

gbx_status gbx_staging_create_directory(const char *path, gbx_staging *out_staging) {
    struct stat about;
    int fd;
    bool is_there = stat(path, &about) == 0;
    if (is_there && !S_ISDIR(about.st_mode))
        return gbx_fail(GBX_IO, "cannot create the directory %s: something else has that name",
                        path);
    if (is_there && access(path, W_OK | X_OK) != 0)
        return gbx_fail(GBX_IO, "cannot write to the directory %s: %s", path, strerror(errno));
    GBX_TRY(create(path, make_directory, out_staging, &fd));
    out_staging->directory = fd;
    return NULL;
}

gbx_status gbx_staging_check_free(const char *path) {
    struct stat about;
    DIR *files = opendir(path);
    if (!files && stat(path, &about) == 0)
        return gbx_fail(GBX_IO, "cannot create %s: it exists and is not a readable directory",
                        path);
    bool is_empty = true;
    for (const struct dirent *file; files && is_empty && (file = readdir(files)) != NULL;)
        is_empty = is_own_link(file->d_name);
    if (files)
        closedir(files);
    if (is_empty)
        return NULL;
    return gbx_fail(GBX_IO, "cannot create %s: %s; name a new one, or remove it", path, has_files);
}

gbx_status gbx_staging_open(const gbx_staging *staging, const char *name, int *out_fd) {
    *out_fd = gbx_above_standard_streams(
        openat(staging->directory, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666));
    if (*out_fd >= 0)
        return NULL;
    return gbx_fail(GBX_LOST, "cannot create %s/%s: %s", staging->path, name, strerror(errno));
}

/* --- finishing --- */

/* Repeats until none is left: moving one while the directory is read may hide another. */
static int move_files(int directory, int to) {
    int fd = dup(directory);
    DIR *files = fd >= 0 ? fdopendir(fd) : NULL;
    if (!files) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return error;
    }
    bool is_any = true;
    int error = 0;
    while (is_any && error == 0) {
        is_any = false;
        rewinddir(files);
        const struct dirent *file;
        while (error == 0 && (file = readdir(files)) != NULL)
            if (!is_own_link(file->d_name)) {
                is_any = true;
                error = renameat(directory, file->d_name, to, file->d_name) == 0 ? 0 : errno;
            }
    }
    closedir(files);
    return error;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place) {
    (void)about;
    (void)place;
    (void)(kind == FTW_DP ? rmdir(path) : unlink(path));
    return 0;
}

/* With its folders. Repeats while something is left, for the same reason. */
static void remove_staging(const gbx_staging *staging) {
    struct stat about;
    for (int i = 0; i < ATTEMPTS && lstat(staging->temporary, &about) == 0; ++i)
        nftw(staging->temporary, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

static gbx_status publish(const gbx_staging *staging, gbx_publishing how) {
    if (rename(staging->temporary, staging->path) == 0)
        return NULL;
    if (how == GBX_PUBLISH_WHOLE && (errno == ENOTEMPTY || errno == EEXIST))
        return gbx_fail(GBX_IO, "cannot create %s: %s", staging->path, has_files);
    if (how == GBX_PUBLISH_WHOLE)
        return gbx_output_fail(staging->path, errno);
    /* Links were resolved at the start: a link there now is not what was checked. */
    int to = open(staging->path, O_DIRECTORY | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (to < 0)
        return gbx_fail(GBX_IO, "cannot open the directory %s: %s", staging->path, strerror(errno));
    int error = move_files(staging->directory, to);
    close(to);
    if (error)
        return gbx_fail(GBX_IO,
                        "cannot move all files into %s: %s; those already moved are complete",
                        staging->path, strerror(error));
    rmdir(staging->temporary);
    return NULL;
}

gbx_status gbx_staging_finish(gbx_staging *staging, gbx_publishing how, gbx_status status) {
    if (!status)
        status = publish(staging, how);
    if (status)
        remove_staging(staging);
    free_staging(staging);
    return status;
}

void gbx_staging_discard(gbx_staging *staging) {
    remove_staging(staging);
    free_staging(staging);
}
