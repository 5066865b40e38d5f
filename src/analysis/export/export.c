/* Names entries, writes them one by one, and notes what the user must know. */
#include "analysis/export/export.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/export/internal.h"
#include "analysis/internal.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/staging.h"
#include "tensor/npy.h"
#include "text/names.h"

enum {
    NAME_BYTES = 96,
    FILE_NAME_BYTES = NAME_BYTES + 8,
    MESSAGE_PATH_BYTES = 4096,
    ROLES = 3,
    CHECKED_EVERY = 1024 /* entries between two checks for signals */
};

/* --- names --- */

/* Starts with the first two set and the rest zero. */
typedef struct namer {
    gbx_entries *entries;
    const gbx_held_signals *signals;
    bool is_any;            /* an entry was named: */
    uint64_t last;          /* the last one */
    uint64_t counts[ROLES]; /* entries with its argument and stage, up to it */
} namer;

static gbx_status record_at(const gbx_entries *entries, uint64_t index,
                            const gbx_record **out_record) {
    return gbx_reader_at(gbx_entries_reader(entries), gbx_entries_position(entries, index),
                         out_record);
}

/*
 * Counts, by role, the entries with the same argument and stage up to `index`: they are adjacent,
 * and those up to the last named one are counted already.
 */
static gbx_status count_to(namer *names, uint64_t index) {
    const gbx_record *record;
    GBX_TRY(record_at(names->entries, index, &record));
    const gbx_record wanted = *record;
    uint64_t counts[ROLES] = {0};
    counts[wanted.role] = 1;
    for (uint64_t i = index; i-- > 0;) {
        if (i % CHECKED_EVERY == 0)
            GBX_TRY(gbx_signals_check(names->signals));
        GBX_TRY(record_at(names->entries, i, &record));
        if (record->task != wanted.task || record->stage != wanted.stage ||
            record->arg_index != wanted.arg_index)
            break;
        bool is_counted = names->is_any && i == names->last;
        for (size_t role = 0; is_counted && role < ROLES; ++role)
            counts[role] += names->counts[role];
        if (is_counted)
            break;
        counts[record->role] += 1;
    }
    memcpy(names->counts, counts, sizeof counts);
    names->last = index;
    names->is_any = true;
    return NULL;
}

/*
 * "task_0x0000000100000000_before_in0"; "task_seq17_..." if the record of the task was lost.
 * Further entries of the dump with the same name, selected or not, end in "_2", "_3" and so on.
 * Naming ascending indices takes one pass over the dump; any other index takes a pass over all
 * entries of its argument.
 */
static gbx_status name_entry(namer *names, uint64_t index, char out_name[NAME_BYTES]) {
    gbx_entry entry;
    GBX_TRY(count_to(names, index));
    GBX_TRY(gbx_entries_at(names->entries, index, &entry));
    char task[40];
    if (entry.task)
        snprintf(task, sizeof task, "0x%016" PRIx64, entry.task->task_id);
    else
        snprintf(task, sizeof task, "seq%" PRIu64, entry.head->task);
    int length = snprintf(out_name, NAME_BYTES, "task_%s_%s_%s%u", task,
                          gbx_name_brief(&gbx_stages, entry.head->stage),
                          gbx_name_brief(&gbx_roles, entry.head->role), entry.head->arg_index);
    uint64_t number = names->counts[entry.head->role];
    if (number > 1)
        snprintf(out_name + length, NAME_BYTES - (size_t)length, "_%" PRIu64, number);
    return NULL;
}

/* --- tasks of one id --- */

typedef struct identity {
    uint64_t task_id;
    uint64_t task;
} identity;

typedef struct identities {
    identity *items;
    uint64_t count;
    uint64_t capacity;
} identities;

static gbx_status collect(const gbx_export_job *job, identities *all) {
    for (uint64_t i = 0; i < job->count; ++i) {
        gbx_entry entry;
        if (i % CHECKED_EVERY == 0)
            GBX_TRY(gbx_signals_check(job->signals));
        GBX_TRY(gbx_entries_at(job->entries, job->indices[i], &entry));
        if (!entry.task ||
            (all->count > 0 && all->items[all->count - 1].task == entry.task->head.task))
            continue;
        GBX_TRY(gbx_array_reserve(&all->items, &all->capacity, all->count + 1,
                                  "checking the ids of tasks"));
        all->items[all->count++] = (identity){entry.task->task_id, entry.task->head.task};
    }
    return NULL;
}

/* Fails with GBX_BAD_FORMAT if two tasks have the same id: names would not be unique. */
static gbx_status check_names(const gbx_export_job *job) {
    identities all = {0};
    gbx_status status = collect(job, &all);
    if (!status && all.count > 1)
        qsort(all.items, all.count, sizeof *all.items, gbx_compare_pairs);
    for (size_t i = 1; !status && i < all.count; ++i) {
        const identity *one = &all.items[i - 1], *other = &all.items[i];
        if (one->task_id == other->task_id && one->task != other->task)
            status = gbx_fail(GBX_BAD_FORMAT,
                              "tasks %" PRIu64 " and %" PRIu64 " have the same id, 0x%016" PRIx64
                              ": their files would have the same names; select one with --task",
                              one->task, other->task, other->task_id);
    }
    free(all.items);
    return status;
}

static void add_name(gbx_export_names *names, const char *name) {
    if (names->count++ >= GBX_EXPORT_NAMES_SHOWN)
        return;
    int length = snprintf(names->text + names->used, sizeof names->text - names->used, "%s%s",
                          names->used ? ", " : "", name);
    if (length > 0 && (size_t)length < sizeof names->text - names->used)
        names->used += (size_t)length;
    else
        names->text[names->used] = '\0';
}

/* --- entries --- */

/* Where the files of one export go, or the members of one archive. */
typedef struct target {
    const gbx_export_job *job;
    gbx_export_format format;
    const gbx_staging *staging; /* of files */
    gbx_archive *archive;       /* of an archive */
    gbx_export_notes *notes;
} target;

static const char *const extensions[] = {
    [GBX_EXPORT_TXT] = "txt", [GBX_EXPORT_NPY] = "npy", [GBX_EXPORT_CSV] = "csv"};

static gbx_status write_file(const target *to, const gbx_entry *entry,
                             const gbx_export_source *source, const char *name) {
    char path[MESSAGE_PATH_BYTES];
    gbx_output output;
    int fd;
    snprintf(path, sizeof path, "%s/%s", to->staging->path, name);
    GBX_TRY(gbx_staging_open(to->staging, name, &fd));
    GBX_TRY(gbx_output_open(&output, fd, to->job->signals));
    gbx_status status = to->format == GBX_EXPORT_NPY ? gbx_export_npy(source, output.stream)
                        : to->format == GBX_EXPORT_CSV
                            ? gbx_export_csv(source, output.stream)
                            : gbx_export_txt(entry, source, output.stream);
    status = gbx_output_close(&output, path, status);
    to->notes->bytes += output.bytes;
    return status;
}

static gbx_status write_member(const target *to, const gbx_export_source *source,
                               const char *name) {
    FILE *stream;
    GBX_TRY(gbx_archive_begin(to->archive, name, gbx_export_npy_bytes(source), &stream));
    return gbx_archive_end(to->archive, gbx_export_npy(source, stream));
}

static gbx_status export_entry(const target *to, namer *names, uint64_t index) {
    char name[NAME_BYTES];
    char file_name[FILE_NAME_BYTES];
    gbx_entry entry;
    gbx_export_source source;
    GBX_TRY(name_entry(names, index, name));
    GBX_TRY(gbx_entries_at(to->job->entries, index, &entry));
    if (!gbx_entry_has_values(&entry)) {
        add_name(gbx_entry_is_overwritten(&entry) ? &to->notes->overwritten : &to->notes->skipped,
                 name);
        return NULL;
    }
    GBX_TRY(gbx_export_source_open(&entry, gbx_entries_reader(to->job->entries), to->job->as,
                                   to->job->signals, &source));
    snprintf(file_name, sizeof file_name, "%s.%s", name, extensions[to->format]);
    GBX_TRY(to->archive ? write_member(to, &source, file_name)
                        : write_file(to, &entry, &source, file_name));
    to->notes->written += 1;
    if (to->format == GBX_EXPORT_NPY && gbx_npy_is_raw(source.elements.dtype))
        to->notes->raw[source.elements.dtype] += 1;
    if (gbx_export_source_is_cut(&source))
        add_name(&to->notes->cut, name);
    if (entry.head->flags & GBX_FLAG_IN_FLIGHT)
        add_name(&to->notes->in_flight, name);
    return NULL;
}

static gbx_status export_all(const target *to) {
    const gbx_export_job *job = to->job;
    namer names = {.entries = job->entries, .signals = job->signals};
    for (uint64_t i = 0; i < job->count; ++i) {
        if (job->on_progress)
            job->on_progress(job->context, i, job->count);
        GBX_TRY(gbx_signals_check(job->signals));
        GBX_TRY(export_entry(to, &names, job->indices[i]));
    }
    return NULL;
}

/* --- files --- */

static gbx_status export_to(const gbx_export_job *job, gbx_export_format format,
                            const char *directory, gbx_export_notes *notes) {
    gbx_staging staging;
    struct stat about;
    /* The dump may come from a stranger, and a link in it could lead anywhere. */
    if (lstat(directory, &about) == 0 && S_ISLNK(about.st_mode))
        return gbx_fail(GBX_IO,
                        "cannot export to %s: it is a symbolic link, and links in a dump are not "
                        "followed; remove it or replace it with a directory",
                        directory);
    GBX_TRY(check_names(job));
    GBX_TRY(gbx_staging_create_directory(directory, &staging));
    const target to = {.job = job, .format = format, .staging = &staging, .notes = notes};
    gbx_status status = export_all(&to);
    if (!status && notes->written == 0) {
        gbx_staging_discard(&staging);
        return NULL;
    }
    return gbx_staging_finish(&staging, GBX_PUBLISH_MERGED, status);
}

const char *gbx_export_extension(gbx_export_format format) {
    return extensions[format];
}

gbx_status gbx_export_files(const gbx_export_job *job, gbx_export_format format,
                            const char *directory, gbx_export_notes *out_notes) {
    *out_notes = (gbx_export_notes){0};
    uint64_t *indices = malloc((job->count + 1) * sizeof *indices);
    if (!indices)
        return gbx_fail_memory("exporting to %s", directory);
    if (job->count > 0) {
        memcpy(indices, job->indices, job->count * sizeof *indices);
        qsort(indices, job->count, sizeof *indices, gbx_compare_u64);
    }
    gbx_export_job ascending = *job;
    ascending.indices = indices;
    gbx_status status = export_to(&ascending, format, directory, out_notes);
    free(indices);
    return status;
}

/* --- an archive --- */

gbx_status gbx_export_npz(const gbx_export_job *job, const char *path,
                          gbx_export_notes *out_notes) {
    gbx_staging staging;
    int fd;
    *out_notes = (gbx_export_notes){0};
    GBX_TRY(check_names(job));
    GBX_TRY(gbx_staging_create_file(path, &staging, &fd));
    target to = {.job = job, .format = GBX_EXPORT_NPY, .notes = out_notes};
    gbx_status status = gbx_archive_create(fd, path, job->signals, &to.archive);
    if (!status)
        status = gbx_archive_close(to.archive, export_all(&to), &out_notes->bytes);
    if (!status && out_notes->written == 0) {
        gbx_staging_discard(&staging);
        return NULL;
    }
    return gbx_staging_finish(&staging, GBX_PUBLISH_WHOLE, status);
}
