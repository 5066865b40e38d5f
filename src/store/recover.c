#include "store/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/io.h"
#include "base/memory.h"
#include "store/dump_path.h"
#include "store/journal/journal_file.h"
#include "store/journal/journal_writer.h"
#include "store/manifest/manifest.h"
#include "store/payload/payload.h"
#include "store/run/kept_run.h"
#include "text/json_scan.h"

#define TAIL_NAME "tensor_dump.rec.broken"
#define TEXT_KILLED "killed before the dump was complete; recovered"
#define TEXT_DAMAGED "the end of the journal was damaged; recovered up to there"

enum { TAIL_FILES_MAX = 1000, COPY_BYTES = 1 << 16 };

typedef struct repair_work {
    const char *directory; /* of the dump */
    char *folder;          /* tensor_dump/ in it */
    int folder_fd;
    int journal; /* locked */
    gbx_reader *reader;
    gbx_recovery *out;
    uint64_t last_time_ns;
} repair_work;

static gbx_status fail_io(const repair_work *repair, const char *doing, const char *name,
                          int error) {
    return gbx_fail(GBX_IO, "%s %s/%s: %s; %s", doing, repair->folder, name, strerror(error),
                    gbx_disk_advice(error));
}

static bool is_there(const repair_work *repair, const char *name) {
    struct stat about;
    return fstatat(repair->folder_fd, name, &about, 0) == 0;
}

/* --- the broken end of the journal --- */

/* A file with a name that no earlier recovery used. */
static gbx_status create_tail(const repair_work *repair, char *name, size_t capacity, int *out_fd) {
    for (int i = 1; i <= TAIL_FILES_MAX; ++i) {
        if (i == 1)
            snprintf(name, capacity, TAIL_NAME);
        else
            snprintf(name, capacity, TAIL_NAME ".%d", i);
        int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
        *out_fd = gbx_above_standard_streams(openat(repair->folder_fd, name, flags, 0666));
        if (*out_fd >= 0)
            return NULL;
        if (errno != EEXIST)
            break;
    }
    return fail_io(repair, "making", name, errno);
}

static gbx_status copy_tail(const repair_work *repair, int to, const char *name) {
    const gbx_reader_extent *extent = gbx_reader_get_extent(repair->reader);
    int error = 0;
    for (uint64_t at = extent->good_bytes; at < extent->file_bytes && !error;) {
        char bytes[COPY_BYTES];
        uint64_t left = extent->file_bytes - at;
        size_t wanted = left < sizeof bytes ? (size_t)left : sizeof bytes, got, written;
        error = gbx_pread_all(repair->journal, bytes, wanted, at, &got);
        if (error || got < wanted)
            return fail_io(repair, "reading", "tensor_dump.rec", error ? error : EIO);
        error = gbx_pwrite_all(to, bytes, got, at - extent->good_bytes, &written);
        at += got;
    }
    if (!error)
        error = gbx_sync_data(to);
    return error ? fail_io(repair, "writing", name, error) : NULL;
}

/* The copy and its name are on disk before a byte is cut off. */
static gbx_status cut_tail(repair_work *repair) {
    const gbx_reader_extent *extent = gbx_reader_get_extent(repair->reader);
    if (extent->file_bytes <= extent->good_bytes)
        return NULL;
    char name[64];
    int fd;
    GBX_TRY(create_tail(repair, name, sizeof name, &fd));
    gbx_status status = copy_tail(repair, fd, name);
    close(fd);
    if (status) {
        (void)unlinkat(repair->folder_fd, name, 0);
        return status;
    }
    repair->out->tail_path = gbx_dump_path_join(repair->folder, name);
    if (!repair->out->tail_path)
        return gbx_fail_memory("recovering %s", repair->directory);
    if (fsync(repair->folder_fd) != 0 || ftruncate(repair->journal, (off_t)extent->good_bytes) != 0)
        return fail_io(repair, "cutting off the end of", "tensor_dump.rec", errno);
    repair->out->cut_bytes = extent->file_bytes - extent->good_bytes;
    snprintf(repair->out->stop_text, sizeof repair->out->stop_text, "%s", extent->stop_text);
    return NULL;
}

/* --- the END record --- */

enum { END_TEXT_BYTES = 64 };

/* Written only as long as the text needs: what follows the text would be the record's tail. */
typedef struct end_block {
    gbx_block_header header;
    gbx_record_end record;
    char text[END_TEXT_BYTES];
} end_block;
static_assert(sizeof(TEXT_KILLED) <= END_TEXT_BYTES, "room for the text");
static_assert(sizeof(TEXT_DAMAGED) <= END_TEXT_BYTES, "room for the text");
static_assert(offsetof(end_block, text) == sizeof(gbx_block_header) + sizeof(gbx_record_end),
              "no gap between the records");

static size_t fill_end(const repair_work *repair, const char *text, end_block *block) {
    size_t record_bytes = sizeof block->record + (strlen(text) + 7) / 8 * 8;
    const gbx_reader_totals *totals = gbx_reader_get_totals(repair->reader);
    *block = (end_block){.record = {.head = {.type = GBX_RECORD_END,
                                             .stage = GBX_STAGE_NONE,
                                             .arg_index = GBX_ARG_NONE,
                                             .words = (uint32_t)(record_bytes / 8),
                                             .time_ns = repair->last_time_ns},
                                    .record_count = repair->out->records,
                                    .task_count = totals->tasks,
                                    .dispatch_count = totals->dispatches,
                                    .payload_bytes = totals->payload_bytes,
                                    .stored_bytes = totals->stored_bytes,
                                    .deduplicated = totals->deduplicated,
                                    .dropped = totals->dropped,
                                    .bytes = strlen(text)}};
    memcpy(block->text, text, strlen(text));
    gbx_block_header_fill(&block->header, &block->record, (uint32_t)record_bytes, 1,
                          (uint32_t)gbx_reader_get_extent(repair->reader)->block_count);
    return sizeof block->header + record_bytes;
}

/* Records the counts of now, so that a later loss is noticed. */
static gbx_status append_end(repair_work *repair) {
    const gbx_reader_extent *extent = gbx_reader_get_extent(repair->reader);
    bool is_killed = extent->stop == GBX_STOP_END || extent->stop == GBX_STOP_CUT;
    if (!gbx_reader_end(repair->reader)) {
        end_block block;
        size_t written;
        size_t bytes = fill_end(repair, is_killed ? TEXT_KILLED : TEXT_DAMAGED, &block);
        int error = gbx_pwrite_all(repair->journal, &block, bytes, extent->good_bytes, &written);
        if (error)
            return fail_io(repair, "ending", "tensor_dump.rec", error);
        repair->out->has_ended = true;
    }
    int error = gbx_sync_data(repair->journal);
    return error ? fail_io(repair, "ending", "tensor_dump.rec", error) : NULL;
}

/* --- payload --- */

static gbx_status check_payload(repair_work *repair, const gbx_record_tensor *tensor,
                                uint64_t index, uint64_t file_bytes) {
    char expected[64], got[64];
    if (!(tensor->head.flags & GBX_FLAG_HAS_PAYLOAD) || tensor->bin_size == 0 ||
        gbx_range_is_inside(tensor->bin_offset, tensor->bin_size, file_bytes))
        return NULL;
    gbx_finding_place place = {index, tensor->head.task, tensor->head.arg_index,
                               tensor->head.stage};
    snprintf(expected, sizeof expected, "inside the %" PRIu64 " bytes of tensor_dump.bin",
             file_bytes);
    snprintf(got, sizeof got, "%" PRIu64 " bytes at byte %" PRIu64, tensor->bin_size,
             tensor->bin_offset);
    return gbx_findings_add_at(&repair->out->findings, GBX_FINDING_OFFSET, repair->reader, &place,
                               "payload", expected, got);
}

static gbx_status walk_records(repair_work *repair) {
    struct stat about;
    bool has_payload = fstatat(repair->folder_fd, "tensor_dump.bin", &about, 0) == 0;
    uint64_t file_bytes = has_payload ? (uint64_t)about.st_size : 0;
    uint64_t count = gbx_reader_count(repair->reader);
    for (uint64_t i = 0; i < count; ++i) {
        const gbx_record *record;
        gbx_record_tensor tensor;
        GBX_TRY(gbx_reader_at(repair->reader, i, &record));
        if (record->time_ns > repair->last_time_ns)
            repair->last_time_ns = record->time_ns;
        if (record->type != GBX_RECORD_TENSOR && record->type != GBX_RECORD_SCALAR)
            continue;
        uint64_t index = repair->out->records++;
        if (record->type != GBX_RECORD_TENSOR)
            continue;
        memcpy(&tensor, record, sizeof tensor);
        GBX_TRY(check_payload(repair, &tensor, index, file_bytes));
    }
    return NULL;
}

/* --- manifests and what was left behind --- */

/* Removes what gbx_manifest_write leaves behind when it is killed. */
static gbx_status remove_temporary(repair_work *repair) {
    static const char *const names[] = {"tensor_dump.json.tmp", "args_dump.json.tmp",
                                        "kernel_args_dump.json.tmp"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        if (unlinkat(repair->folder_fd, names[i], 0) == 0)
            ++repair->out->removed_files;
        else if (errno != ENOENT)
            return fail_io(repair, "removing", names[i], errno);
    }
    return NULL;
}

static gbx_status count_elements(gbx_json_file *file, const char *array, uint64_t *out_count) {
    char key[GBX_JSON_KEY_BYTES];
    bool has_key, has_element;
    gbx_scan_value ignored;
    GBX_TRY(gbx_json_file_begin(file, '{'));
    for (;;) {
        GBX_TRY(gbx_json_file_next_key(file, key, &has_key));
        if (!has_key)
            return gbx_json_file_end(file);
        if (strcmp(key, array) != 0) {
            GBX_TRY(gbx_json_file_take(file, &ignored));
            continue;
        }
        GBX_TRY(gbx_json_file_begin(file, '['));
        for (*out_count = 0;; ++*out_count) {
            GBX_TRY(gbx_json_file_next_element(file, &has_element));
            if (!has_element)
                break;
            GBX_TRY(gbx_json_file_take(file, &ignored));
        }
    }
}

/* Elements of `array` in a manifest; 0 when there is no manifest or it is not JSON. */
static gbx_status count_entries(const repair_work *repair, const char *name, const char *array,
                                uint64_t *out_count) {
    *out_count = 0;
    char *path = gbx_dump_path_join(repair->folder, name);
    if (!path)
        return gbx_fail_memory("recovering %s", repair->directory);
    gbx_json_file file;
    bool is_open = false;
    gbx_status status = gbx_json_file_open(&file, path, name, &is_open);
    if (is_open && !status) {
        status = count_elements(&file, array, out_count);
        gbx_json_file_close(&file);
    }
    free(path);
    if (!status || gbx_status_code(status) != GBX_BAD_FORMAT)
        return status;
    gbx_status_free(status);
    *out_count = 0;
    return NULL;
}

/* Whether a manifest has more entries than the journal, or its writer knew newer record types. */
static bool is_richer(const repair_work *repair, uint64_t entries, uint64_t in_journal) {
    return entries > in_journal || (entries > 0 && repair->out->newer_records > 0);
}

/*
 * Chooses the manifests that the run was asked for and that are missing, or out of date and not
 * richer than the journal. Called before anything is changed: what the journal will hold is known
 * by now.
 */
static gbx_status choose_manifests(repair_work *repair) {
    const gbx_run_info *run = gbx_reader_run(repair->reader);
    const gbx_reader_extent *extent = gbx_reader_get_extent(repair->reader);
    const gbx_reader_totals *totals = gbx_reader_get_totals(repair->reader);
    gbx_recovery *out = repair->out;
    bool will_change = !gbx_reader_end(repair->reader) || extent->stop != GBX_STOP_END;
    uint64_t entries = 0, arguments = 0, dispatches = 0;
    if (run->dump_level && will_change)
        GBX_TRY(count_entries(repair, "tensor_dump.json", "tensors", &entries));
    if (run->has_args && will_change) {
        GBX_TRY(count_entries(repair, "args_dump.json", "args", &arguments));
        GBX_TRY(count_entries(repair, "kernel_args_dump.json", "dispatches", &dispatches));
    }
    if (is_richer(repair, entries, out->records))
        out->kept_entries = entries;
    out->has_kept_args = is_richer(repair, arguments, totals->run_args) ||
                         is_richer(repair, dispatches, totals->dispatches);
    out->has_tensor_manifest = run->dump_level && out->kept_entries == 0 &&
                               (will_change || !is_there(repair, "tensor_dump.json"));
    out->has_args_manifests = run->has_args && !out->has_kept_args &&
                              (will_change || !is_there(repair, "args_dump.json") ||
                               !is_there(repair, "kernel_args_dump.json"));
    return NULL;
}

/* --- all of it --- */

/* Blocks whose checksums match are not damage: a newer version may read them. */
static gbx_status refuse_newer(const repair_work *repair) {
    const gbx_reader_extent *extent = gbx_reader_get_extent(repair->reader);
    if (extent->stop == GBX_STOP_END || gbx_reader_stop_is_damage(extent->stop))
        return NULL;
    return gbx_fail(
        GBX_UNSUPPORTED,
        "recovering %s: at offset %" PRIu64
        " of the journal, %s; the checksum of the block matches, so it was written like this: a "
        "newer glassbox may read it; nothing was changed",
        repair->directory, extent->stop_offset, extent->stop_text);
}

static gbx_status repair_journal(repair_work *repair) {
    gbx_recovery *out = repair->out;
    GBX_TRY(refuse_newer(repair));
    const gbx_reader_totals *totals = gbx_reader_get_totals(repair->reader);
    out->tasks = totals->tasks;
    out->dispatches = totals->dispatches;
    out->payload_bytes = totals->payload_bytes;
    out->newer_records = gbx_reader_get_extent(repair->reader)->newer_count;
    GBX_TRY(walk_records(repair));
    GBX_TRY(choose_manifests(repair));
    GBX_TRY(cut_tail(repair));
    GBX_TRY(append_end(repair));
    GBX_TRY(remove_temporary(repair));
    const gbx_record_end *end = gbx_reader_end(repair->reader);
    out->is_complete = end && (end->head.flags & GBX_FLAG_COMPLETE);
    if (out->has_tensor_manifest || out->has_args_manifests)
        GBX_TRY(gbx_manifest_write(repair->directory, out->has_tensor_manifest,
                                   out->has_args_manifests));
    bool has_run_changed;
    GBX_TRY(gbx_recover_run_file(repair->directory, &has_run_changed));
    out->was_whole = out->cut_bytes == 0 && !out->has_ended && !out->has_tensor_manifest &&
                     !out->has_args_manifests && out->removed_files == 0 && !has_run_changed;
    return NULL;
}

static gbx_status recover_locked(repair_work *repair) {
    repair->folder = gbx_dump_path_join(repair->directory, "tensor_dump");
    if (!repair->folder)
        return gbx_fail_memory("recovering %s", repair->directory);
    repair->folder_fd = open(repair->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (repair->folder_fd < 0)
        return gbx_fail(GBX_IO, "opening %s: %s", repair->folder, strerror(errno));
    gbx_status status = gbx_reader_open(repair->directory, GBX_INDEX_ARGUMENTS, &repair->reader);
    if (status && gbx_status_code(status) == GBX_UNSUPPORTED)
        return gbx_status_annotate(status, "recovering %s: nothing was changed", repair->directory);
    if (status)
        return gbx_status_annotate(status, "recovering %s: no record can be kept",
                                   repair->directory);
    status = repair_journal(repair);
    if (!status && repair->out->findings.has_failed)
        status = gbx_fail_memory("recovering %s", repair->directory);
    return status;
}

gbx_status gbx_dump_recover(const char *directory, gbx_recovery *out_recovery) {
    *out_recovery = (gbx_recovery){0};
    repair_work repair = {
        .directory = directory, .folder_fd = -1, .journal = -1, .out = out_recovery};
    gbx_status status = gbx_journal_lock(directory, GBX_JOURNAL_REPAIRS, &repair.journal);
    if (status)
        return gbx_status_code(status) == GBX_NOT_FOUND
                   ? gbx_status_annotate(status, "recovering %s: it has no journal to recover from",
                                         directory)
                   : status;
    status = recover_locked(&repair);
    gbx_reader_close(repair.reader);
    if (repair.folder_fd >= 0)
        close(repair.folder_fd);
    close(repair.journal);
    free(repair.folder);
    if (status)
        gbx_recovery_free(out_recovery);
    return status;
}

void gbx_recovery_free(gbx_recovery *recovery) {
    free(recovery->tail_path);
    gbx_findings_free(&recovery->findings);
    *recovery = (gbx_recovery){0};
}
