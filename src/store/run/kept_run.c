#include "store/run/kept_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glassbox/chip.h>

#include "text/json_reader.h"

enum { MAX_FILE_BYTES = 16 << 20 };

/* What is read, and where to. */
typedef struct reading {
    const char *directory;
    gbx_kept_run *run;
} reading;

/* --- fields --- */

static gbx_status fail_memory(const gbx_cursor *cursor) {
    return gbx_cursor_fail(cursor, "the host is out of memory");
}

/* A copy of a member that may be absent or null. */
static gbx_status copy_optional(const gbx_cursor *object, const char *name, char **out_text) {
    gbx_cursor member;
    const char *text;
    *out_text = NULL;
    GBX_TRY(gbx_cursor_optional(object, name, &member));
    if (!member.value)
        return NULL;
    GBX_TRY(gbx_cursor_string(&member, &text));
    *out_text = strdup(text);
    return *out_text ? NULL : fail_memory(&member);
}

static bool leaves_directory(const char *path) {
    for (const char *part = path; *part;) {
        size_t length = strcspn(part, "/");
        if (length == 2 && part[0] == '.' && part[1] == '.')
            return true;
        part += length + (part[length] == '/');
    }
    return path[0] == '/';
}

/* A file of the dump: the path of it, where it is named. */
static gbx_status read_path(const reading *r, const gbx_cursor *kernel, const char *name,
                            char **out_path) {
    gbx_cursor member;
    const char *text;
    *out_path = NULL;
    GBX_TRY(gbx_cursor_optional(kernel, name, &member));
    if (!member.value)
        return NULL;
    GBX_TRY(gbx_cursor_string(&member, &text));
    if (!text[0] || leaves_directory(text))
        return gbx_cursor_fail(&member, "\"%s\" is no path of a file inside of the dump", text);
    if (asprintf(out_path, "%s/%s", r->directory, text) < 0) {
        *out_path = NULL;
        return fail_memory(&member);
    }
    return NULL;
}

static bool parse_half(const char *digits, uint64_t *out_half) {
    char text[17];
    memcpy(text, digits, 16);
    text[16] = '\0';
    char *end;
    *out_half = strtoull(text, &end, 16);
    return *end == '\0';
}

/* 32 hexadecimal digits, the high half first. */
static gbx_status read_hash(const gbx_cursor *kernel, gbx_hash128 *out_hash) {
    static const char hexadecimal[] = "0123456789abcdef";
    gbx_cursor member;
    const char *text;
    GBX_TRY(gbx_cursor_member(kernel, "object_hash", &member));
    GBX_TRY(gbx_cursor_string(&member, &text));
    if (strlen(text) != 32 || strspn(text, hexadecimal) != 32 ||
        !parse_half(text, &out_hash->high) || !parse_half(text + 16, &out_hash->low))
        return gbx_cursor_fail(&member, "\"%s\" is no hash of 32 hexadecimal digits", text);
    return NULL;
}

static gbx_status read_number(const gbx_cursor *object, const char *name, int64_t max,
                              uint64_t *out_value) {
    gbx_cursor member;
    int64_t value = 0;
    GBX_TRY(gbx_cursor_optional(object, name, &member));
    if (member.value)
        GBX_TRY(gbx_cursor_integer(&member, 1, max, &value));
    *out_value = (uint64_t)value;
    return NULL;
}

/* --- kernels --- */

static gbx_status read_identity(const reading *r, const gbx_cursor *kernel,
                                gbx_kept_kernel *out_kernel) {
    gbx_cursor member;
    int64_t func_id;
    const char *name;
    GBX_TRY(gbx_cursor_member(kernel, "func_id", &member));
    GBX_TRY(gbx_cursor_integer(&member, 0, GBX_MAX_KERNELS - 1, &func_id));
    if (gbx_kept_run_kernel(r->run, (uint32_t)func_id))
        return gbx_cursor_fail(&member, "%d is the func_id of an earlier kernel, too",
                               (int)func_id);
    out_kernel->func_id = (uint32_t)func_id;
    GBX_TRY(gbx_cursor_member(kernel, "name", &member));
    GBX_TRY(gbx_cursor_string(&member, &name));
    out_kernel->name = strdup(name);
    return out_kernel->name ? NULL : fail_memory(&member);
}

static gbx_status read_kernel(const reading *r, const gbx_cursor *kernel,
                              gbx_kept_kernel *out_kernel) {
    GBX_TRY(read_identity(r, kernel, out_kernel));
    GBX_TRY(read_path(r, kernel, "object", &out_kernel->object));
    GBX_TRY(read_path(r, kernel, "source", &out_kernel->source));
    GBX_TRY(copy_optional(kernel, "origin", &out_kernel->origin));
    GBX_TRY(copy_optional(kernel, "compile_flags", &out_kernel->compile_flags));
    GBX_TRY(copy_optional(kernel, "link_flags", &out_kernel->link_flags));
    return out_kernel->object ? read_hash(kernel, &out_kernel->object_hash) : NULL;
}

static gbx_status read_kernels(const reading *r, const gbx_cursor *root) {
    gbx_cursor kernels;
    size_t count;
    GBX_TRY(gbx_cursor_member(root, "kernels", &kernels));
    GBX_TRY(gbx_cursor_count(&kernels, &count));
    if (count > GBX_MAX_KERNELS)
        return gbx_cursor_fail(&kernels, "%zu kernels are more than the %d that a chip has", count,
                               GBX_MAX_KERNELS);
    r->run->kernels = calloc(count + 1, sizeof *r->run->kernels);
    if (!r->run->kernels)
        return fail_memory(&kernels);
    for (size_t i = 0; i < count; ++i) {
        gbx_cursor kernel;
        GBX_TRY(gbx_cursor_element(&kernels, i, &kernel));
        gbx_status status = read_kernel(r, &kernel, &r->run->kernels[i]);
        r->run->kernel_count = i + 1; /* what is there of it is freed */
        GBX_TRY(status);
    }
    return NULL;
}

/* --- the file --- */

static gbx_status read_document(const reading *r, json_t *document) {
    gbx_cursor root = gbx_cursor_root(document, r->run->path);
    gbx_cursor version;
    int64_t number;
    uint64_t blocks;
    GBX_TRY(gbx_cursor_member(&root, "schema_version", &version));
    GBX_TRY(gbx_cursor_integer(&version, 1, 1, &number));
    GBX_TRY(copy_optional(&root, "scene_path", &r->run->scene_path));
    GBX_TRY(read_number(&root, "blocks", GBX_MAX_BLOCKS, &blocks));
    r->run->blocks = (uint32_t)blocks;
    GBX_TRY(read_number(&root, "gm_bytes", (int64_t)GBX_MAX_GM_BYTES, &r->run->gm_bytes));
    return read_kernels(r, &root);
}

gbx_status gbx_kept_run_read(const char *directory, gbx_kept_run **out_run) {
    gbx_kept_run *run = calloc(1, sizeof *run);
    json_t *document = NULL;
    *out_run = NULL;
    if (!run || asprintf(&run->path, "%s/run.json", directory) < 0) {
        free(run);
        return gbx_fail(GBX_EXHAUSTED, "reading run.json of %s: the host is out of memory",
                        directory);
    }
    gbx_status status = gbx_json_load(run->path, MAX_FILE_BYTES, &document);
    if (!status)
        status = read_document(&(reading){directory, run}, document);
    json_decref(document);
    if (status)
        gbx_kept_run_free(run);
    else
        *out_run = run;
    return status;
}

void gbx_kept_run_free(gbx_kept_run *run) {
    if (!run)
        return;
    for (size_t i = 0; i < run->kernel_count; ++i) {
        gbx_kept_kernel *kernel = &run->kernels[i];
        free(kernel->name);
        free(kernel->object);
        free(kernel->source);
        free(kernel->origin);
        free(kernel->compile_flags);
        free(kernel->link_flags);
    }
    free(run->kernels);
    free(run->scene_path);
    free(run->path);
    free(run);
}

const gbx_kept_kernel *gbx_kept_run_kernel(const gbx_kept_run *run, uint32_t func_id) {
    for (size_t i = 0; i < run->kernel_count; ++i)
        if (run->kernels[i].func_id == func_id)
            return &run->kernels[i];
    return NULL;
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
    return gbx_fail(GBX_BAD_FORMAT, "reading %s: it is no file", path);
}

static gbx_status hash_file(const char *path, gbx_hash128 *out_hash) {
    char bytes[65536];
    gbx_hash_state state;
    ssize_t count;
    int fd;
    GBX_TRY(open_regular(path, &fd));
    gbx_hash_begin(&state);
    while ((count = read(fd, bytes, sizeof bytes)) > 0)
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
        return gbx_fail(GBX_NOT_FOUND,
                        "kernel %s: the run kept no shared object of it: it was a function of the "
                        "program",
                        kernel->name);
    GBX_TRY(gbx_status_annotate(hash_file(kernel->object, &hash), "kernel %s", kernel->name));
    if (hash.low != kernel->object_hash.low || hash.high != kernel->object_hash.high)
        return gbx_fail(GBX_BAD_FORMAT,
                        "kernel %s: %s is not the shared object that ran: its hash is not the one "
                        "in run.json",
                        kernel->name, kernel->object);
    return NULL;
}
