#include "store/run/output_directory.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "store/journal/journal_writer.h"

#define DEFAULT_PARENT "outputs"
#define LATEST DEFAULT_PARENT "/latest"

/* The size of a part of a name: the complete name fits any file system. */
enum { PART_BYTES = 81, NAME_BYTES = 2 * PART_BYTES + 64, TRIES_MAX = 1000000 };

/* --- names --- */

/* Keeps what is safe in any file name and letters beyond ASCII; makes no hidden names. */
static void clean_part(const char *text, char out_part[PART_BYTES]) {
    size_t used = 0;
    for (; text[used] && used + 1 < PART_BYTES; ++used) {
        unsigned char c = (unsigned char)text[used];
        bool is_kept = c >= 0x80 || isalnum(c) || strchr("_-+=@%,", c) || (c == '.' && used > 0);
        out_part[used] = is_kept ? (char)c : '_';
    }
    /* Does not cut a multi-byte letter. */
    while (text[used] && used > 0 && ((unsigned char)text[used] & 0xc0) == 0x80)
        --used;
    out_part[used] = '\0';
    if (used == 0)
        snprintf(out_part, PART_BYTES, "_");
}

static void format_name(const gbx_output_place *place, char out_name[NAME_BYTES]) {
    char scene[PART_BYTES];
    char of_case[PART_BYTES];
    char stamp[32] = "";
    char round[16] = "";
    struct tm local;
    clean_part(place->scene, scene);
    clean_part(place->case_name, of_case);
    if (localtime_r(&place->time, &local))
        strftime(stamp, sizeof stamp, "%Y%m%d_%H%M%S", &local);
    if (place->round)
        snprintf(round, sizeof round, "_r%" PRIu32, place->round);
    if (place->chosen)
        snprintf(out_name, NAME_BYTES, "%s%s", of_case, round);
    else
        snprintf(out_name, NAME_BYTES, "%s_%s_%s%s", scene, of_case, stamp, round);
}

/* --- directories --- */

static gbx_status fail_to_make(const char *path, int error) {
    return gbx_fail(GBX_IO,
                    "creating the directory %s for a dump: %s; choose a writable one with -o", path,
                    strerror(error));
}

/* An existing directory is fine. */
static gbx_status make_one(const char *path, bool *out_is_made) {
    struct stat info;
    *out_is_made = mkdir(path, 0777) == 0;
    if (*out_is_made)
        return NULL;
    int error = errno;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return NULL;
    return fail_to_make(path, error == EEXIST ? ENOTDIR : error);
}

/* With all parents; `path` is unchanged when it returns. */
static gbx_status make_all(char *path, bool *out_is_made) {
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        gbx_status status = make_one(path, out_is_made);
        *slash = '/';
        GBX_TRY(status);
    }
    return make_one(path, out_is_made);
}

/* mkdir decides who gets a name: of two processes that want it, one tries the next name. */
static gbx_status make_new(const char *parent, const char *name, char **out_path) {
    for (uint32_t i = 1; i < TRIES_MAX; ++i) {
        char suffix[16] = "";
        if (i > 1)
            snprintf(suffix, sizeof suffix, "_%" PRIu32, i);
        if (asprintf(out_path, "%s/%s%s", parent, name, suffix) < 0) {
            *out_path = NULL;
            return gbx_fail_memory("creating a directory for a dump");
        }
        if (mkdir(*out_path, 0777) == 0)
            return NULL;
        if (errno != EEXIST)
            return fail_to_make(*out_path, errno);
        free(*out_path);
        *out_path = NULL;
    }
    return gbx_fail(GBX_IO,
                    "creating a directory for a dump: %s/%s and all following names are taken",
                    parent, name);
}

/* --- outputs/latest --- */

/* A link under another name, then a rename: there is always a valid link. */
static bool set_latest(const char *target) {
    char temporary[sizeof LATEST + 48];
    for (int i = 0; i < TRIES_MAX; ++i) {
        snprintf(temporary, sizeof temporary, DEFAULT_PARENT "/.latest.%d.%d", (int)getpid(), i);
        if (symlink(target, temporary) == 0)
            break;
        if (errno != EEXIST)
            return false;
    }
    if (rename(temporary, LATEST) == 0)
        return true;
    int error = errno;
    unlink(temporary);
    errno = error;
    return false;
}

static char *read_latest(void) {
    char target[PATH_MAX];
    ssize_t length = readlink(LATEST, target, sizeof target - 1);
    return length > 0 ? strndup(target, (size_t)length) : NULL;
}

static void link_latest(gbx_output_directory *directory) {
    directory->previous = read_latest();
    directory->is_linked = set_latest(directory->path + sizeof DEFAULT_PARENT);
    if (!directory->is_linked)
        gbx_log_warning("pointing " LATEST " at %s: %s", directory->path, strerror(errno));
}

/* --- creating and discarding --- */

/* The journal is the first file that a dump writes. */
static bool holds_dump(const char *directory) {
    char journal[PATH_MAX];
    struct stat found;
    snprintf(journal, sizeof journal, "%s/tensor_dump/" GBX_JOURNAL_FILE, directory);
    return lstat(journal, &found) == 0;
}

static gbx_status create_by_default(const gbx_output_place *place, gbx_output_directory *out) {
    char parent[] = DEFAULT_PARENT;
    char name[NAME_BYTES];
    bool is_made;
    format_name(place, name);
    GBX_TRY(make_all(parent, &is_made));
    GBX_TRY(make_new(parent, name, &out->path));
    out->is_made = true;
    link_latest(out);
    return NULL;
}

static gbx_status create_chosen(const gbx_output_place *place, gbx_output_directory *out) {
    char name[NAME_BYTES];
    char *parent = strdup(place->chosen);
    size_t length = parent ? strlen(parent) : 0;
    if (!parent)
        return gbx_fail_memory("creating a directory for a dump");
    while (length > 1 && parent[length - 1] == '/')
        parent[--length] = '\0';
    gbx_status status = make_all(parent, &out->is_made);
    if (!status && place->is_only) {
        out->path = parent;
        out->is_taken = holds_dump(parent);
        return NULL;
    }
    format_name(place, name);
    if (!status) {
        status = make_new(parent, name, &out->path);
        out->is_made = true;
    }
    free(parent);
    return status;
}

gbx_status gbx_output_directory_create(const gbx_output_place *place, gbx_output_directory *out) {
    *out = (gbx_output_directory){0};
    gbx_status status = place->chosen ? create_chosen(place, out) : create_by_default(place, out);
    if (status)
        gbx_output_directory_free(out);
    return status;
}

/* The directory is gone: removes the link, or points it where it pointed before. */
static void unlink_latest(const gbx_output_directory *directory) {
    char *now = directory->is_linked ? read_latest() : NULL;
    bool is_ours = now && strcmp(now, directory->path + sizeof DEFAULT_PARENT) == 0;
    if (is_ours && !(directory->previous && set_latest(directory->previous)))
        unlink(LATEST);
    if (directory->is_linked)
        rmdir(DEFAULT_PARENT); /* if it is empty */
    free(now);
}

void gbx_output_directory_discard(gbx_output_directory *directory) {
    if (!directory->path)
        return;
    /* Fails if it is not empty, and it is kept. */
    bool is_gone = directory->is_made && rmdir(directory->path) == 0;
    if (is_gone)
        unlink_latest(directory);
    if (is_gone || directory->is_taken || !holds_dump(directory->path))
        gbx_output_directory_free(directory);
}

void gbx_output_directory_free(gbx_output_directory *directory) {
    free(directory->path);
    free(directory->previous);
    *directory = (gbx_output_directory){0};
}
