#include "store/import/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/import/import_entry.h"
#include "store/import/import_head.h"
#include "store/import/import_journal.h"
#include "store/import/import_kernels.h"
#include "store/import/import_tables.h"
#include "store/import/json_pull.h"
#include "store/reader.h"

/* A manifest while it is read. */
typedef struct reading {
    gbx_import *import;
    gbx_json_pull pull;
    gbx_import_head head;
    gbx_import_fields fields;
    gbx_import_kernels kernels;
    gbx_import_tasks tasks;
    gbx_import_extents extents;
    gbx_import_journal journal;
    bool has_array;
    bool has_task_seq;  /* as the first entry has it */
    uint64_t ambiguous; /* entries */
    unsigned told;
} reading;

static gbx_status fail_memory(const reading *all) {
    return gbx_fail(GBX_EXHAUSTED, "reading %s: the host is out of memory", all->import->path);
}

/* --- tasks --- */

static gbx_status check_numbered(reading *all, const gbx_import_entry *entry) {
    if (all->fields.position == 0)
        all->has_task_seq = entry->has_task_seq;
    if (entry->has_task_seq == all->has_task_seq)
        return NULL;
    return gbx_import_fail(&all->fields, GBX_FIELD_TASK_SEQ, "is %s, unlike in entries before",
                           entry->has_task_seq ? "there" : "missing");
}

static bool has_kernels(const uint32_t func_ids[GBX_IMPORT_KERNELS_MAX]) {
    return func_ids[0] != UINT32_MAX || func_ids[1] != UINT32_MAX || func_ids[2] != UINT32_MAX;
}

/* Entries that do not tell subtasks may each name some of the kernels. */
static gbx_status add_kernel(const gbx_import_fields *fields, gbx_import_task *task,
                             uint32_t func_id) {
    for (size_t i = 0; i < GBX_IMPORT_KERNELS_MAX; ++i) {
        if (task->func_ids[i] == UINT32_MAX)
            task->func_ids[i] = func_id;
        if (task->func_ids[i] == func_id)
            return NULL;
    }
    return gbx_import_fail(fields, GBX_FIELD_FUNC_ID,
                           "with %u, the entries of the task have more than %d kernels", func_id,
                           GBX_IMPORT_KERNELS_MAX);
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
        return gbx_import_fail(fields, GBX_FIELD_FUNC_ID,
                               "is not what an earlier entry of the same task says");
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
        return gbx_import_fail(fields, GBX_FIELD_TASK_ID,
                               "is not what an earlier entry of task_seq %" PRIu64 " says",
                               entry->task_seq);
    if (task->block_num != entry->block_num)
        return gbx_import_fail(fields, GBX_FIELD_BLOCK_NUM,
                               "%u is not the %u of an earlier entry of the same task",
                               entry->block_num, task->block_num);
    return join_kernels(fields, task, entry);
}

static uint64_t number_of(const reading *all, const gbx_import_task *task) {
    return all->has_task_seq ? task->key : (uint64_t)(task - all->tasks.items);
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
    return NULL;
}

static gbx_status add_tasks(reading *all) {
    for (size_t i = 0; i < all->tasks.count; ++i) {
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

/* Bytes that an earlier entry has as well are stored once. */
static gbx_status mark_duplicate(reading *all, gbx_record_tensor *record) {
    bool is_known = false;
    unsigned flags = record->head.flags;
    if (!(flags & GBX_FLAG_HAS_PAYLOAD) || (flags & GBX_FLAG_IN_FLIGHT) || record->bin_size == 0)
        return NULL;
    gbx_import_extent extent = {record->bin_offset, record->bin_size};
    if (!gbx_import_extents_add(&all->extents, extent, &is_known))
        return fail_memory(all);
    record->head.flags |= is_known ? GBX_FLAG_DUPLICATE : 0;
    return NULL;
}

/* Where it is no JSON, the library says what is wrong, and where. */
static gbx_status take_fields(reading *all) {
    json_t *value = NULL;
    gbx_status status = gbx_import_fields_take(&all->fields, all->pull.text, all->pull.size);
    gbx_status parsed = all->fields.is_json ? NULL : gbx_json_pull_parse(&all->pull, &value);
    json_decref(value);
    if (!parsed)
        return status;
    gbx_status_free(status);
    return gbx_status_never_null(parsed);
}

static gbx_status take_entry(reading *all) {
    gbx_import_entry entry;
    GBX_TRY(gbx_json_pull_text(&all->pull));
    GBX_TRY(take_fields(all));
    GBX_TRY(gbx_import_entry_read(&all->fields, &entry));
    GBX_TRY(gbx_import_kernels_learn(&all->kernels, &all->fields, &entry));
    GBX_TRY(take_task(all, &entry));
    if (entry.record.head.type == GBX_RECORD_TENSOR)
        GBX_TRY(mark_duplicate(all, &entry.record.tensor));
    all->told &= entry.told | GBX_TOLD_STATUS;
    all->ambiguous += entry.is_ambiguous;
    return gbx_import_journal_add(&all->journal, &entry.record.head);
}

static gbx_status take_entries(reading *all, const char *name) {
    if (all->has_array)
        return gbx_fail(GBX_BAD_FORMAT, "%s: %s: is there beside another array of entries",
                        all->import->path, name);
    all->has_array = true;
    all->fields.array = name;
    GBX_TRY(gbx_json_pull_begin(&all->pull, '['));
    for (;; ++all->fields.position) {
        bool has_one = false;
        GBX_TRY(gbx_json_pull_next_element(&all->pull, &has_one));
        if (!has_one)
            return NULL;
        GBX_TRY(take_entry(all));
    }
}

/* --- the whole --- */

static gbx_status take_members(reading *all) {
    char key[GBX_JSON_PULL_KEY_BYTES];
    GBX_TRY(gbx_json_pull_begin(&all->pull, '{'));
    for (;;) {
        bool has_one = false;
        GBX_TRY(gbx_json_pull_next_key(&all->pull, key, &has_one));
        if (!has_one)
            return gbx_json_pull_end(&all->pull);
        if (strcmp(key, "tensors") == 0)
            GBX_TRY(take_entries(all, "tensors"));
        else if (strcmp(key, "args") == 0)
            GBX_TRY(take_entries(all, "args"));
        else
            GBX_TRY(gbx_import_head_take(&all->head, key, &all->pull));
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
                        "%s: is no manifest of a dump: it has neither \"tensors\" nor \"args\"",
                        all->import->path);
    GBX_TRY(gbx_import_head_check(&all->head, &bin_file));
    if (bin_file)
        return set_payload_path(all->import, bin_file);
    if (all->journal.totals.payload_end > 0)
        return gbx_fail(GBX_BAD_FORMAT, "%s: \"bin_file\" is missing: entries have payload",
                        all->import->path);
    return NULL;
}

static gbx_status finish(reading *all) {
    char *text = NULL;
    GBX_TRY(check_head(all));
    GBX_TRY(gbx_import_head_get_said(&all->head, &all->import->said));
    all->import->said.ambiguous = all->ambiguous;
    GBX_TRY(gbx_import_kernels_merge(&all->kernels, all->head.path, all->head.members));
    GBX_TRY(add_tasks(all));
    GBX_TRY(gbx_import_head_add_rest(&all->head, &all->import->said, &all->journal));
    GBX_TRY(gbx_import_head_run(&all->head, &text));
    gbx_status status = gbx_import_journal_finish(&all->journal, text, strlen(text));
    free(text);
    all->told &= gbx_import_head_has_status(&all->head) ? ~0u : ~(unsigned)GBX_TOLD_STATUS;
    return status;
}

static gbx_status read_all(reading *all) {
    bool is_there = false;
    const char *path = all->import->path;
    all->head = (gbx_import_head){.path = path, .members = json_object()};
    all->fields.path = path;
    if (!all->head.members)
        return fail_memory(all);
    GBX_TRY(gbx_import_journal_open(&all->journal));
    GBX_TRY(gbx_json_pull_open(&all->pull, path, path, &is_there));
    if (!is_there)
        return gbx_fail(GBX_NOT_FOUND, "cannot open the manifest %s: it is gone", path);
    GBX_TRY(take_members(all));
    return finish(all);
}

gbx_status gbx_import_read(gbx_import *import) {
    reading *all = calloc(1, sizeof *all);
    if (!all)
        return gbx_fail(GBX_EXHAUSTED, "reading %s: the host is out of memory", import->path);
    all->import = import;
    all->journal.fd = -1;
    all->told = GBX_TOLD_ALL & ~(unsigned)GBX_TOLD_EXECUTIONS;
    gbx_status status = read_all(all);
    import->fd = -1;
    if (!status) {
        import->fd = all->journal.fd;
        import->bytes = all->journal.file_bytes;
        import->told = all->told;
        all->journal.fd = -1;
    }
    gbx_import_journal_close(&all->journal);
    gbx_import_tasks_free(&all->tasks);
    gbx_import_extents_free(&all->extents);
    gbx_import_kernels_free(&all->kernels);
    json_decref(all->head.members);
    gbx_json_pull_close(&all->pull);
    free(all);
    return status;
}
