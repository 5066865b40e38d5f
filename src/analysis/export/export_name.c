#include "analysis/export/export_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHECKED_EVERY = 1024 }; /* entries, for signals */

static const char *const role_texts[GBX_EXPORT_ROLES] = {"in", "out", "inout"};

static int write_name(const gbx_entry *entry, char *out_name) {
    char task[40];
    if (entry->task)
        snprintf(task, sizeof task, "0x%016" PRIx64, entry->task->task_id);
    else
        snprintf(task, sizeof task, "seq%" PRIu64, entry->head->task);
    return snprintf(out_name, GBX_EXPORT_NAME_BYTES, "task_%s_%s_%s%u", task,
                    entry->head->stage == GBX_STAGE_BEFORE ? "before" : "after",
                    role_texts[entry->head->role], entry->head->arg_index);
}

static gbx_status record_at(const gbx_entries *entries, uint64_t index,
                            const gbx_record **out_record) {
    return gbx_reader_at(gbx_entries_reader(entries), gbx_entries_position(entries, index),
                         out_record);
}

/*
 * Counts, by role, the entries up to `index` that are of the same argument and stage: they lie back
 * to back. Those up to the last one that was named are counted already.
 */
static gbx_status count_to(gbx_export_namer *namer, uint64_t index) {
    const gbx_record *record;
    GBX_TRY(record_at(namer->entries, index, &record));
    const gbx_record wanted = *record;
    uint64_t counts[GBX_EXPORT_ROLES] = {0};
    counts[wanted.role] = 1;
    for (uint64_t i = index; i-- > 0;) {
        if (i % CHECKED_EVERY == 0)
            GBX_TRY(gbx_signals_check(namer->signals));
        GBX_TRY(record_at(namer->entries, i, &record));
        if (record->task != wanted.task || record->stage != wanted.stage ||
            record->arg_index != wanted.arg_index)
            break;
        bool is_counted = namer->is_any && i == namer->last;
        for (size_t role = 0; is_counted && role < GBX_EXPORT_ROLES; ++role)
            counts[role] += namer->counts[role];
        if (is_counted)
            break;
        counts[record->role] += 1;
    }
    memcpy(namer->counts, counts, sizeof counts);
    namer->last = index;
    namer->is_any = true;
    return NULL;
}

gbx_status gbx_export_name(gbx_export_namer *namer, uint64_t index,
                           char out_name[GBX_EXPORT_NAME_BYTES]) {
    gbx_entry entry;
    GBX_TRY(count_to(namer, index));
    GBX_TRY(gbx_entries_at(namer->entries, index, &entry));
    int length = write_name(&entry, out_name);
    uint64_t number = namer->counts[entry.head->role];
    if (number > 1)
        snprintf(out_name + length, GBX_EXPORT_NAME_BYTES - (size_t)length, "_%" PRIu64, number);
    return NULL;
}

/* --- tasks of one id --- */

typedef struct identity {
    uint64_t task_id;
    uint64_t task;
} identity;

static int compare(const void *a, const void *b) {
    const identity *left = a;
    const identity *right = b;
    if (left->task_id != right->task_id)
        return left->task_id < right->task_id ? -1 : 1;
    return (left->task > right->task) - (left->task < right->task);
}

typedef struct identities {
    identity *items;
    size_t count;
    size_t capacity;
} identities;

static gbx_status add(identities *all, const gbx_record_task *task) {
    if (all->count > 0 && all->items[all->count - 1].task == task->head.task)
        return NULL;
    if (all->count == all->capacity) {
        size_t capacity = all->capacity ? 2 * all->capacity : 64;
        identity *items = realloc(all->items, capacity * sizeof *items);
        if (!items)
            return gbx_fail(GBX_EXHAUSTED, "no memory for the ids of %zu tasks", capacity);
        all->items = items;
        all->capacity = capacity;
    }
    all->items[all->count++] = (identity){task->task_id, task->head.task};
    return NULL;
}

static gbx_status collect(gbx_entries *entries, const uint64_t *indices, uint64_t count,
                          identities *all) {
    for (uint64_t i = 0; i < count; ++i) {
        gbx_entry entry;
        GBX_TRY(gbx_entries_at(entries, indices[i], &entry));
        if (entry.task)
            GBX_TRY(add(all, entry.task));
    }
    return NULL;
}

static gbx_status find_equal(const identities *all) {
    for (size_t i = 1; i < all->count; ++i)
        if (all->items[i].task_id == all->items[i - 1].task_id &&
            all->items[i].task != all->items[i - 1].task)
            return gbx_fail(GBX_BAD_FORMAT,
                            "the tasks %" PRIu64 " and %" PRIu64 " have one id, 0x%016" PRIx64
                            ": their files would have the same names; choose one by --task",
                            all->items[i - 1].task, all->items[i].task, all->items[i].task_id);
    return NULL;
}

gbx_status gbx_export_check_names(gbx_entries *entries, const uint64_t *indices, uint64_t count) {
    identities all = {0};
    gbx_status status = collect(entries, indices, count, &all);
    if (!status) {
        if (all.count > 1)
            qsort(all.items, all.count, sizeof *all.items, compare);
        status = find_equal(&all);
    }
    free(all.items);
    return status;
}
