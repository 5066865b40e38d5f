#include "store/import/import.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/import/internal.h"
#include "store/reader.h"

enum { LOOK_BYTES = 64 << 10 };

/* A manifest being read. */
typedef struct reading {
    gbx_import *import;
    gbx_json_file file;
    gbx_import_head head;
    gbx_import_fields fields;
    gbx_import_kernels kernels;
    gbx_import_tasks tasks;
    gbx_import_map extents; /* of payload: offset and bytes */
    gbx_import_journal journal;
    gbx_import_fields result_fields;
    gbx_record_tensor *results[GBX_MAX_RUN_TENSORS]; /* by arg_index; NULL for none */
    json_t *run_args;                                /* what results say of the run's arguments */
    bool has_results;
    bool has_array;
    bool has_task_seq;  /* in the first entry */
    uint64_t ambiguous; /* entries */
    unsigned known;
} reading;

static gbx_status fail_memory(const reading *all) {
    return gbx_fail_memory("reading %s", all->import->path);
}

/* --- tasks --- */

static gbx_status check_numbered(reading *all, const gbx_import_entry *entry) {
    if (all->fields.position == 0)
        all->has_task_seq = entry->has_task_seq;
    if (entry->has_task_seq == all->has_task_seq)
        return NULL;
    return gbx_import_fail(&all->fields, GBX_FIELD_task_seq, "is %s, unlike in earlier entries",
                           entry->has_task_seq ? "given" : "missing");
}

static bool has_kernels(const uint32_t func_ids[GBX_IMPORT_KERNELS_MAX]) {
    return func_ids[0] != UINT32_MAX || func_ids[1] != UINT32_MAX || func_ids[2] != UINT32_MAX;
}

/* Entries without subtasks may each name some of the kernels. */
static gbx_status add_kernel(const gbx_import_fields *fields, gbx_import_task *task,
                             uint32_t func_id) {
    for (size_t i = 0; i < GBX_IMPORT_KERNELS_MAX; ++i) {
        if (task->func_ids[i] == UINT32_MAX)
            task->func_ids[i] = func_id;
        if (task->func_ids[i] == func_id)
            return NULL;
    }
    return gbx_import_fail(fields, GBX_FIELD_func_id,
                           "%u is one too many: the entries of the task name more than %d kernels",
                           func_id, GBX_IMPORT_KERNELS_MAX);
}

static gbx_status join_kernels(const gbx_import_fields *fields, gbx_import_task *task,
                               const gbx_import_entry *entry) {
    if (!has_kernels(entry->func_ids))
        return NULL;
    if (!has_kernels(task->func_ids)) {
        memcpy(task->func_ids, entry->func_ids, sizeof task->func_ids);
        task->has_subtasks = entry->has_subtasks;
        return NULL;
    }
    if (memcmp(task->func_ids, entry->func_ids, sizeof task->func_ids) == 0)
        return NULL;
    if (task->has_subtasks || entry->has_subtasks)
        return gbx_import_fail(fields, GBX_FIELD_func_id,
                               "differs from an earlier entry of the same task");
    for (size_t i = 0; i < GBX_IMPORT_KERNELS_MAX; ++i)
        if (entry->func_ids[i] != UINT32_MAX)
            GBX_TRY(add_kernel(fields, task, entry->func_ids[i]));
    return NULL;
}

static gbx_status join_task(const gbx_import_fields *fields, gbx_import_task *task, bool is_new,
                            const gbx_import_entry *entry) {
    if (is_new) {
        task->has_id = entry->has_task_id;
        task->id = entry->task_id;
        task->block_num = entry->block_num;
    }
    if (task->has_id != entry->has_task_id || task->id != entry->task_id)
        return gbx_import_fail(fields, GBX_FIELD_task_id,
                               "differs from an earlier entry of task_seq %" PRIu64,
                               entry->task_seq);
    if (task->block_num != entry->block_num)
        return gbx_import_fail(fields, GBX_FIELD_block_num,
                               "%u differs from the %u of an earlier entry of the same task",
                               entry->block_num, task->block_num);
    return join_kernels(fields, task, entry);
}

static uint64_t number_of(const reading *all, const gbx_import_task *task) {
    return all->has_task_seq ? task->key : (uint64_t)(task - all->tasks.items);
}

/* A manifest has only what the dispatches of a task share, not which of them ran where. */
static gbx_status add_executions(reading *all, uint64_t task, const gbx_import_span *span) {
    uint32_t number = 0;
    for (uint32_t core = 0; span->has_start && core < GBX_RECORD_CORE_END; ++core) {
        if (!(span->cores[core / 64] >> core % 64 & 1))
            continue;
        gbx_record_execution record = {.head = {.type = GBX_RECORD_EXECUTION,
                                                .stage = GBX_STAGE_NONE,
                                                .arg_index = GBX_ARG_NONE,
                                                .words = sizeof record / 8,
                                                .task = task,
                                                .time_ns = span->start_ns},
                                       .end_ns = span->end_ns,
                                       .core_id = core,
                                       .block_idx = number++,
                                       .func_id = UINT32_MAX};
        GBX_TRY(gbx_import_journal_add(&all->journal, &record.head));
    }
    return NULL;
}

static gbx_status take_task(reading *all, gbx_import_entry *entry) {
    bool is_new = false;
    GBX_TRY(check_numbered(all, entry));
    gbx_import_task *task = gbx_import_tasks_get(
        &all->tasks, entry->has_task_seq ? entry->task_seq : entry->task_id, &is_new);
    if (!task)
        return fail_memory(all);
    GBX_TRY(join_task(&all->fields, task, is_new, entry));
    entry->record.head.task = number_of(all, task);
    return is_new ? add_executions(all, entry->record.head.task, &entry->span) : NULL;
}

static gbx_status add_tasks(reading *all) {
    for (size_t i = 0; i < all->tasks.map.count; ++i) {
        const gbx_import_task *task = &all->tasks.items[i];
        gbx_record_task record = {.head = {.type = GBX_RECORD_TASK,
                                           .stage = GBX_STAGE_NONE,
                                           .arg_index = GBX_ARG_NONE,
                                           .words = sizeof record / 8,
                                           .task = number_of(all, task)},
                                  .task_id = task->id,
                                  .block_num = task->block_num};
        memcpy(record.func_ids, task->func_ids, sizeof record.func_ids);
        if (task->has_id)
            GBX_TRY(gbx_import_journal_add(&all->journal, &record.head));
    }
    return NULL;
}

/* --- entries --- */

/* Bytes shared with an earlier entry are stored once. */
static gbx_status mark_duplicate(reading *all, gbx_record_tensor *record) {
    unsigned flags = record->head.flags;
    size_t count = all->extents.count;
    if (!(flags & GBX_FLAG_HAS_PAYLOAD) || (flags & GBX_FLAG_IN_FLIGHT) || record->bin_size == 0)
        return NULL;
    uint32_t number = gbx_import_map_get(&all->extents, record->bin_offset, record->bin_size);
    if (number == UINT32_MAX)
        return fail_memory(all);
    record->head.flags |= number < count ? GBX_FLAG_DUPLICATE : 0;
    return NULL;
}

static gbx_status take_entry(reading *all) {
    gbx_import_entry entry;
    gbx_scan_value text;
    GBX_TRY(gbx_json_file_take(&all->file, &text));
    GBX_TRY(gbx_import_fields_take(&all->fields, &text));
    GBX_TRY(gbx_import_entry_read(&all->fields, &entry));
    GBX_TRY(gbx_import_kernels_learn(&all->kernels, &all->fields, &entry));
    GBX_TRY(take_task(all, &entry));
    if (entry.record.head.type == GBX_RECORD_TENSOR)
        GBX_TRY(mark_duplicate(all, &entry.record.tensor));
    all->known &= entry.known | GBX_KNOWN_STATUS;
    all->ambiguous += entry.is_ambiguous;
    return gbx_import_journal_add(&all->journal, &entry.record.head);
}

static gbx_status take_entries(reading *all, const char *name) {
    if (all->has_array)
        return gbx_fail(GBX_BAD_FORMAT, "%s: %s: is a second array of entries", all->import->path,
                        name);
    all->has_array = true;
    all->fields.array = name;
    GBX_TRY(gbx_json_file_begin(&all->file, '['));
    for (;; ++all->fields.position) {
        bool has_one = false;
        GBX_TRY(gbx_json_file_next_element(&all->file, &has_one));
        if (!has_one)
            return NULL;
        GBX_TRY(take_entry(all));
    }
}

/* --- results of the run --- */

static gbx_status take_result(reading *all) {
    gbx_import_fields *fields = &all->result_fields;
    gbx_scan_value text;
    gbx_record_tensor *record = NULL;
    json_t *name = NULL;
    GBX_TRY(gbx_json_file_take(&all->file, &text));
    GBX_TRY(gbx_import_fields_take(fields, &text));
    GBX_TRY(gbx_import_result_read(fields, &record, &name));
    uint8_t arg_index = record->head.arg_index;
    bool is_second = all->results[arg_index] != NULL;
    if (is_second)
        free(record);
    else
        all->results[arg_index] = record;
    while (json_array_size(all->run_args) <= arg_index)
        if (json_array_append_new(all->run_args, json_pack("{s:n,s:s}", "name", "role", "unknown")))
            break;
    json_t *argument = json_array_get(all->run_args, arg_index);
    const char *role = gbx_name_of(&gbx_roles, is_second ? GBX_ROLE_INPUT : record->head.role);
    int failed = json_object_set_new(argument, "name", name);
    failed |= json_object_set_new(argument, "role", json_string(role));
    if (is_second)
        return gbx_import_fail(fields, GBX_FIELD_arg_index, "%u appears twice", arg_index);
    return failed ? fail_memory(all) : NULL;
}

/* They are added after all entries, which may come later in the file: shared bytes belong to an
 * entry. */
static gbx_status take_results(reading *all) {
    if (all->has_results)
        return gbx_fail(GBX_BAD_FORMAT, "%s: results: appears twice", all->import->path);
    all->has_results = true;
    GBX_TRY(gbx_json_file_begin(&all->file, '['));
    for (;; ++all->result_fields.position) {
        bool has_one = false;
        GBX_TRY(gbx_json_file_next_element(&all->file, &has_one));
        if (!has_one)
            return NULL;
        GBX_TRY(take_result(all));
    }
}

static gbx_status add_results(reading *all) {
    for (size_t i = 0; i < GBX_MAX_RUN_TENSORS; ++i) {
        gbx_record_tensor *record = all->results[i];
        if (!record)
            continue;
        GBX_TRY(mark_duplicate(all, record));
        GBX_TRY(gbx_import_journal_add(&all->journal, &record->head));
    }
    return NULL;
}

/* --- the manifest --- */

static gbx_status take_members(reading *all) {
    char key[GBX_JSON_KEY_BYTES];
    GBX_TRY(gbx_json_file_begin(&all->file, '{'));
    for (;;) {
        bool has_one = false;
        GBX_TRY(gbx_json_file_next_key(&all->file, key, &has_one));
        if (!has_one)
            return gbx_json_file_end(&all->file);
        if (strcmp(key, "tensors") == 0)
            GBX_TRY(take_entries(all, "tensors"));
        else if (strcmp(key, "args") == 0)
            GBX_TRY(take_entries(all, "args"));
        else if (strcmp(key, "results") == 0)
            GBX_TRY(take_results(all));
        else
            GBX_TRY(gbx_import_head_take(&all->head, key, &all->file));
    }
}

static gbx_status set_payload_path(gbx_import *import, const char *bin_file) {
    const char *slash = strrchr(import->path, '/');
    int folder = slash ? (int)(slash + 1 - import->path) : 0;
    int length = snprintf(import->payload_path, PATH_MAX, "%.*s%s", folder, import->path, bin_file);
    if (length < 0 || length >= PATH_MAX)
        return gbx_fail(GBX_BAD_FORMAT, "%s: bin_file: the name is too long", import->path);
    return NULL;
}

static gbx_status check_head(reading *all) {
    const char *bin_file = NULL;
    if (!all->has_array)
        return gbx_fail(GBX_BAD_FORMAT,
                        "%s: not the manifest of a dump: it has neither \"tensors\" nor \"args\"",
                        all->import->path);
    GBX_TRY(gbx_import_head_check(&all->head, &bin_file));
    if (bin_file)
        return set_payload_path(all->import, bin_file);
    if (all->journal.totals.payload_end > 0)
        return gbx_fail(GBX_BAD_FORMAT, "%s: \"bin_file\" is missing, but entries have payload",
                        all->import->path);
    return NULL;
}

static gbx_status finish(reading *all) {
    char *text = NULL;
    GBX_TRY(add_results(all));
    GBX_TRY(check_head(all));
    GBX_TRY(gbx_import_head_get_totals(&all->head, &all->import->totals));
    all->import->totals.ambiguous = all->ambiguous;
    GBX_TRY(gbx_import_kernels_merge(&all->kernels, all->head.path, all->head.members));
    GBX_TRY(add_tasks(all));
    GBX_TRY(gbx_import_head_add_rest(&all->head, &all->import->totals, &all->journal));
    GBX_TRY(gbx_import_head_run(&all->head, all->run_args, &text));
    gbx_status status = gbx_import_journal_finish(&all->journal, text, strlen(text));
    free(text);
    all->known &= gbx_import_head_has_status(&all->head) ? ~0u : ~(unsigned)GBX_KNOWN_STATUS;
    return status;
}

static gbx_status read_all(reading *all) {
    bool is_there = false;
    const char *path = all->import->path;
    all->head = (gbx_import_head){.path = path, .members = json_object()};
    all->fields.path = all->result_fields.path = path;
    all->result_fields.array = "results";
    all->run_args = json_array();
    if (!all->head.members || !all->run_args)
        return fail_memory(all);
    GBX_TRY(gbx_import_journal_open(&all->journal));
    GBX_TRY(gbx_json_file_open(&all->file, path, path, &is_there));
    if (!is_there)
        return gbx_fail(GBX_NOT_FOUND, "cannot open the manifest %s: it is gone", path);
    GBX_TRY(take_members(all));
    return finish(all);
}

gbx_status gbx_import_read(gbx_import *import) {
    reading *all = calloc(1, sizeof *all);
    if (!all)
        return gbx_fail_memory("reading %s", import->path);
    all->import = import;
    all->journal.fd = -1;
    all->known = GBX_KNOWN_ALL & ~(unsigned)GBX_KNOWN_EXECUTIONS;
    gbx_status status = read_all(all);
    import->fd = -1;
    if (!status) {
        import->fd = all->journal.fd;
        import->bytes = all->journal.file_bytes;
        import->known = all->known;
        import->has_findings = gbx_import_head_has_findings(&all->head);
        all->journal.fd = -1;
    }
    gbx_import_journal_close(&all->journal);
    gbx_import_tasks_free(&all->tasks);
    gbx_import_map_free(&all->extents);
    gbx_import_kernels_free(&all->kernels);
    for (size_t i = 0; i < GBX_MAX_RUN_TENSORS; ++i)
        free(all->results[i]);
    json_decref(all->run_args);
    json_decref(all->head.members);
    gbx_json_file_close(&all->file);
    free(all);
    return status;
}

/* --- finding it --- */

/* "bin_file" as a key: no colon follows it as a value. */
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

/* Our own args_dump.json has no such member. It is before the entries or after them. */
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
