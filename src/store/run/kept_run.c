#include "store/run/kept_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "store/dump_path.h"

gbx_status gbx_kept_run_read(const char *directory, gbx_kept_run **out_run) {
    gbx_kept_run *run = calloc(1, sizeof *run);
    gbx_status status = run ? gbx_run_info_load(directory, run)
                            : gbx_fail_memory("reading run.json of %s", directory);
    if (status) {
        free(run);
        run = NULL;
    }
    *out_run = run;
    return status;
}

void gbx_kept_run_free(gbx_kept_run *run) {
    if (run)
        gbx_run_info_free(run);
    free(run);
}

/* --- the copy of a shared object --- */

/* Devices and pipes have no end. */
static gbx_status open_regular(const char *path, int *out_fd) {
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return gbx_fail(errno == ENOENT ? GBX_NOT_FOUND : GBX_IO, "reading %s: %s", path,
                        strerror(errno));
    *out_fd = fd;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode))
        return NULL;
    close(fd);
    return gbx_fail(GBX_BAD_FORMAT, "reading %s: it is not a regular file", path);
}

static gbx_status hash_file(const char *path, gbx_hash128 *out_hash) {
    char bytes[65536];
    gbx_hash_state state;
    ssize_t count;
    int fd;
    GBX_TRY(open_regular(path, &fd));
    gbx_hash_begin(&state);
    while ((count = gbx_read_some(fd, bytes, sizeof bytes)) > 0)
        gbx_hash_update(&state, bytes, (size_t)count);
    gbx_status status =
        count < 0 ? gbx_fail(GBX_IO, "reading %s: %s", path, strerror(errno)) : NULL;
    close(fd);
    *out_hash = gbx_hash_end(&state);
    return status;
}

gbx_status gbx_kept_kernel_verify(const gbx_kept_kernel *kernel) {
    gbx_hash128 hash = {0, 0};
    if (!kernel->object)
        return gbx_fail(
            GBX_NOT_FOUND,
            "kernel %s: the dump holds no shared object of it: it was a function of the program",
            kernel->name);
    GBX_TRY(gbx_status_annotate(hash_file(kernel->object, &hash), "kernel %s", kernel->name));
    if (hash.low != kernel->object_hash.low || hash.high != kernel->object_hash.high)
        return gbx_fail(
            GBX_BAD_FORMAT,
            "kernel %s: %s is not the shared object that ran: its hash differs from the one in "
            "run.json",
            kernel->name, kernel->object);
    return NULL;
}

/* --- the run that was killed --- */

static bool says_running(const json_t *document) {
    const char *status =
        json_string_value(json_object_get(json_object_get(document, "result"), "status"));
    return status && strcmp(status, "running") == 0;
}

static gbx_status replace(json_t *document, const char *temporary, const char *path) {
    json_t *killed = json_string("killed");
    if (!killed || json_object_set_new(json_object_get(document, "result"), "status", killed) != 0)
        return gbx_fail_memory("recovering %s", path);
    if (json_dump_file(document, temporary, JSON_INDENT(2)) != 0 || rename(temporary, path) != 0) {
        gbx_status status = gbx_fail(GBX_IO, "rewriting %s: %s", path, strerror(errno));
        unlink(temporary);
        return status;
    }
    return NULL;
}

gbx_status gbx_recover_run_file(const char *directory, bool *out_has_changed) {
    char *temporary = gbx_dump_path_join(directory, "run.json.tmp");
    char *path = gbx_dump_path_join(directory, "run.json");
    gbx_status status = NULL;
    *out_has_changed = false;
    if (temporary && path) {
        json_t *document = json_load_file(path, 0, NULL);
        *out_has_changed = unlink(temporary) == 0;
        if (says_running(document)) {
            *out_has_changed = true;
            status = replace(document, temporary, path);
        }
        json_decref(document);
    } else {
        status = gbx_fail_memory("recovering %s", directory);
    }
    free(temporary);
    free(path);
    return status;
}
