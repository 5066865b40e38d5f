#include "store/manifest/manifest.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/manifest/manifest_parts.h"

typedef gbx_status (*put_function)(gbx_manifest *manifest, gbx_manifest_file *file);

static gbx_status write_file(gbx_manifest *manifest, const char *directory, const char *name,
                             put_function put) {
    gbx_manifest_file file;
    GBX_TRY(gbx_manifest_file_create(directory, name, &file));
    gbx_status status = put(manifest, &file);
    return gbx_manifest_file_finish(&file, status);
}

static gbx_status write_files(gbx_manifest *manifest, const char *directory, bool has_tensors,
                              bool has_args) {
    GBX_TRY(gbx_manifest_names_fill(&manifest->names, gbx_reader_run(manifest->reader)));
    if (has_tensors)
        GBX_TRY(write_file(manifest, directory, "tensor_dump.json", gbx_manifest_put_tensors));
    if (!has_args)
        return NULL;
    GBX_TRY(write_file(manifest, directory, "args_dump.json", gbx_manifest_put_arguments));
    return write_file(manifest, directory, "kernel_args_dump.json", gbx_manifest_put_dispatches);
}

static gbx_status write_dump(gbx_manifest *manifest, const char *directory, bool has_tensors,
                             bool has_args) {
    char real[PATH_MAX];
    char files[PATH_MAX + sizeof "/tensor_dump"];
    if (!realpath(directory, real))
        return gbx_fail(errno == ENOENT ? GBX_NOT_FOUND : GBX_IO, "cannot open the dump %s: %s",
                        directory, strerror(errno));
    snprintf(files, sizeof files, "%s/tensor_dump", real);
    manifest->run_directory = strrchr(real, '/') + 1;
    unsigned indexed = (has_tensors ? GBX_INDEX_ARGUMENTS : GBX_INDEX_NOTHING) |
                       (has_args ? GBX_INDEX_DISPATCHES : GBX_INDEX_NOTHING);
    GBX_TRY(gbx_reader_open(real, indexed, &manifest->reader));
    gbx_status status = write_files(manifest, files, has_tensors, has_args);
    gbx_manifest_names_free(&manifest->names);
    gbx_reader_close(manifest->reader);
    return status;
}

static gbx_status print_entries(gbx_manifest *manifest, int fd, const char *name) {
    gbx_manifest_file file;
    GBX_TRY(gbx_manifest_names_fill(&manifest->names, gbx_reader_run(manifest->reader)));
    GBX_TRY(gbx_manifest_file_stream(fd, name, &file));
    gbx_status status = gbx_manifest_put_tensors(manifest, &file);
    return gbx_manifest_file_finish(&file, status);
}

gbx_status gbx_manifest_print(gbx_reader *reader, const gbx_manifest_chosen *chosen, int fd,
                              const char *name) {
    gbx_manifest *manifest = calloc(1, sizeof *manifest);
    if (!manifest)
        return gbx_fail(GBX_EXHAUSTED, "no memory for writing %s", name);
    manifest->run_directory = chosen->run_directory;
    manifest->reader = reader;
    manifest->chosen = chosen;
    gbx_status status = print_entries(manifest, fd, name);
    gbx_manifest_names_free(&manifest->names);
    free(manifest);
    return status;
}

gbx_status gbx_manifest_write(const char *directory, bool has_tensors, bool has_args) {
    gbx_manifest *manifest = calloc(1, sizeof *manifest);
    if (!manifest)
        return gbx_fail(GBX_EXHAUSTED, "no memory for writing the manifest of %s", directory);
    gbx_status status = write_dump(manifest, directory, has_tensors, has_args);
    free(manifest);
    return status;
}
