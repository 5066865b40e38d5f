#include "store/run/recover_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "store/dump_path.h"

static bool says_running(const json_t *document) {
    const char *status =
        json_string_value(json_object_get(json_object_get(document, "result"), "status"));
    return status && strcmp(status, "running") == 0;
}

static gbx_status replace(json_t *document, const char *temporary, const char *path) {
    json_t *killed = json_string("killed");
    if (!killed || json_object_set_new(json_object_get(document, "result"), "status", killed) != 0)
        return gbx_fail(GBX_EXHAUSTED, "recovering %s: the host is out of memory", path);
    if (json_dump_file(document, temporary, JSON_INDENT(2)) != 0 || rename(temporary, path) != 0) {
        gbx_status status = gbx_fail(GBX_IO, "writing %s anew: %s", path, strerror(errno));
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
        status = gbx_fail(GBX_EXHAUSTED, "recovering %s: the host is out of memory", directory);
    }
    free(temporary);
    free(path);
    return status;
}
