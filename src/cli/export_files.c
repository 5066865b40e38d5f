#include "cli/export_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <glassbox/tensor.h>

#include "analysis/export/export_convert.h"
#include "analysis/export/export_csv.h"
#include "analysis/export/export_name.h"
#include "analysis/export/export_npy.h"
#include "analysis/export/export_txt.h"
#include "base/staging.h"
#include "cli/command.h"
#include "cli/dump_text.h"
#include "cli/export_notes.h"
#include "cli/progress.h"
#include "store/dump_path.h"

static const char *const extensions[] = {
    [GBX_EXPORT_TXT] = "txt", [GBX_EXPORT_NPY] = "npy", [GBX_EXPORT_CSV] = "csv"};

enum { FILE_NAME_BYTES = GBX_EXPORT_NAME_BYTES + 8, MESSAGE_PATH_BYTES = 4096 };

typedef struct file_export {
    const gbx_opened_dump *dump;
    const gbx_selected *selected; /* ascending */
    gbx_export_format format;
    uint32_t as;
    gbx_held_signals signals; /* while something is being made */
    gbx_export_namer namer;
    gbx_progress *progress;
    gbx_staging staging;
    gbx_export_notes notes;
} file_export;

static gbx_status write_entry(const file_export *export, const gbx_entry *entry,
                              const gbx_export_source *source, FILE *to) {
    switch (export->format) {
    case GBX_EXPORT_NPY:
        return gbx_export_npy(source, to);
    case GBX_EXPORT_CSV:
        return gbx_export_csv(source, to);
    default:
        return gbx_export_txt(entry, source, to);
    }
}

static gbx_status write_file(file_export *export, const gbx_entry *entry,
                             const gbx_export_source *source, const char *name) {
    char file_name[FILE_NAME_BYTES];
    char path[MESSAGE_PATH_BYTES];
    gbx_output output;
    int fd;
    snprintf(file_name, sizeof file_name, "%s.%s", name, extensions[export->format]);
    snprintf(path, sizeof path, "%s/%s", export->staging.path, file_name);
    GBX_TRY(gbx_staging_open(&export->staging, file_name, &fd));
    GBX_TRY(gbx_output_open(&output, fd, &export->signals));
    gbx_status status = write_entry(export, entry, source, output.stream);
    status = gbx_output_close(&output, path, status);
    export->notes.bytes += output.bytes;
    return status;
}

static gbx_status export_entry(file_export *export, uint64_t index) {
    char name[GBX_EXPORT_NAME_BYTES];
    gbx_entry entry;
    gbx_export_source source;
    GBX_TRY(gbx_export_name(&export->namer, index, name));
    GBX_TRY(gbx_entries_at(export->dump->entries, index, &entry));
    if (!gbx_entry_has_values(&entry)) {
        gbx_export_note_skipped(&export->notes, name, &entry);
        return NULL;
    }
    GBX_TRY(gbx_export_source_open(&entry, export->dump->reader, export->as, &export->signals,
                                   &source));
    GBX_TRY(write_file(export, &entry, &source, name));
    gbx_export_note_written(&export->notes, name, &entry, &source,
                            export->format == GBX_EXPORT_NPY);
    return NULL;
}

static void show_progress(const file_export *export, uint64_t done) {
    char text[80];
    if (!export->progress)
        return;
    snprintf(text, sizeof text, "exporting, %" PRIu64 " of %" PRIu64, done,
             export->selected->count);
    gbx_progress_phase(export->progress, NULL, text);
}

static gbx_status export_all(file_export *export) {
    export->namer =
        (gbx_export_namer){.entries = export->dump->entries, .signals = &export->signals};
    for (uint64_t i = 0; i < export->selected->count; ++i) {
        show_progress(export, i);
        GBX_TRY(gbx_signals_check(&export->signals));
        GBX_TRY(export_entry(export, export->selected->indices[i]));
    }
    return NULL;
}

static gbx_status export_to(file_export *export, const char *directory) {
    GBX_TRY(gbx_staging_create_directory(directory, &export->staging));
    gbx_status status = export_all(export);
    if (!status && export->notes.written == 0) {
        gbx_staging_discard(&export->staging);
        return NULL;
    }
    return gbx_staging_finish(&export->staging, GBX_PUBLISH_MERGED, status);
}

static void print_report(const file_export *export, const char *directory) {
    char count[GBX_COUNT_TEXT_BYTES], bytes[GBX_COUNT_TEXT_BYTES];
    if (export->notes.written == 0)
        printf("wrote nothing: %s\n", export->selected->count == 0
                                          ? "nothing is selected"
                                          : "nothing that is selected has values in this dump");
    else
        printf("wrote %s file%s, %s, to %s\n", gbx_text_count(export->notes.written, count),
               export->notes.written == 1 ? "" : "s", gbx_text_bytes(export->notes.bytes, bytes),
               directory);
    gbx_export_notes_print(&export->notes, export->format != GBX_EXPORT_TXT);
}

/* The dump may be a stranger's, and a link in it would have files written where it leads to. */
static gbx_status check_directory(const char *directory) {
    struct stat about;
    if (lstat(directory, &about) != 0 || !S_ISLNK(about.st_mode))
        return NULL;
    return gbx_fail(GBX_IO,
                    "cannot export to %s: it is a symbolic link, which is not followed out of a "
                    "dump; remove it, or put a directory in its place",
                    directory);
}

/* Until signals are held nothing is made, and they end the program at once. */
static gbx_status export_held(file_export *export, const char *directory) {
    GBX_TRY(check_directory(directory));
    GBX_TRY(gbx_export_check_names(export->dump->entries, export->selected->indices,
                                   export->selected->count));
    gbx_signals_hold(&export->signals); /* before the thread of the progress is there */
    export->progress = gbx_progress_start();
    gbx_status status = export_to(export, directory);
    gbx_progress_stop(export->progress);
    gbx_signals_release(&export->signals);
    return status;
}

static int compare_indices(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* NULL without memory. */
static uint64_t *sorted_copy(const gbx_selected *selected) {
    uint64_t *indices = malloc((selected->count + 1) * sizeof *indices);
    if (!indices || selected->count == 0)
        return indices;
    memcpy(indices, selected->indices, selected->count * sizeof *indices);
    qsort(indices, selected->count, sizeof *indices, compare_indices);
    return indices;
}

gbx_dtype gbx_export_parse_as(struct argp_state *state, const char *text) {
    gbx_dtype dtype = gbx_dtype_parse(text);
    if (!gbx_export_is_target(dtype))
        argp_error(state, "--as: \"%s\" is no dtype of numpy: " GBX_EXPORT_TARGETS " are expected",
                   text);
    return dtype;
}

gbx_status gbx_export_files(const gbx_opened_dump *dump, const gbx_selected *selected,
                            gbx_export_format format, gbx_dtype as, int *out_exit_code) {
    gbx_selected ascending = {0};
    file_export export = {.dump = dump, .selected = &ascending, .format = format, .as = as};
    char *directory = gbx_dump_path_join(dump->directory, extensions[format]);
    ascending.indices = sorted_copy(selected);
    ascending.count = selected->count;
    gbx_status status =
        directory && ascending.indices
            ? export_held(&export, directory)
            : gbx_fail(GBX_EXHAUSTED, "exporting %s: the host is out of memory", dump->directory);
    if (!status)
        print_report(&export, directory);
    *out_exit_code = export.notes.written > 0 ? GBX_EXIT_OK : GBX_EXIT_DIFFERS;
    free(ascending.indices);
    free(directory);
    return status;
}
