#include "analysis/entries.h"

#include <inttypes.h>
#include <stdlib.h>

#include <glassbox/tensor.h>

#include "base/checked.h"
#include "base/memory.h"

struct gbx_entries {
    gbx_reader *reader;
    uint64_t *positions; /* in the index of the reader, by index of the entry */
    uint64_t count;
    uint64_t task_number; /* the task that is kept; UINT64_MAX for none */
    bool has_task;        /* it has a record: */
    gbx_record_task task;
};

static gbx_status fill_positions(gbx_entries *entries) {
    uint64_t record_count = gbx_reader_count(entries->reader);
    entries->positions = malloc((record_count + 1) * sizeof *entries->positions);
    if (!entries->positions)
        return gbx_fail_memory("listing %" PRIu64 " records", record_count);
    for (uint64_t i = 0; i < record_count; ++i)
        if (gbx_reader_kind(entries->reader, i) == GBX_INDEX_ARGUMENTS)
            entries->positions[entries->count++] = i;
    return NULL;
}

gbx_status gbx_entries_create(gbx_reader *reader, gbx_entries **out_entries) {
    gbx_entries *entries = calloc(1, sizeof *entries);
    if (!entries)
        return gbx_fail_memory("listing the entries of a dump");
    entries->reader = reader;
    entries->task_number = UINT64_MAX;
    gbx_status status = fill_positions(entries);
    if (status)
        gbx_entries_destroy(entries);
    else
        *out_entries = entries;
    return status;
}

void gbx_entries_destroy(gbx_entries *entries) {
    if (!entries)
        return;
    free(entries->positions);
    free(entries);
}

gbx_reader *gbx_entries_reader(const gbx_entries *entries) {
    return entries->reader;
}

uint64_t gbx_entries_count(const gbx_entries *entries) {
    return entries->count;
}

uint64_t gbx_entries_find(const gbx_entries *entries, uint64_t task) {
    uint64_t position = gbx_reader_find(entries->reader, task);
    uint64_t low = 0;
    uint64_t high = entries->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (entries->positions[middle] < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t gbx_entries_position(const gbx_entries *entries, uint64_t index) {
    return entries->positions[index];
}

static bool is_task(const gbx_entries *entries, uint64_t position) {
    return gbx_reader_kind(entries->reader, position) == 0;
}

/* The record of a task lies before its first argument; else, and where there may be two of them, it
 * is looked up. */
static gbx_status read_task(gbx_entries *entries, uint64_t task, uint64_t position) {
    const gbx_record *before = NULL;
    entries->task_number = UINT64_MAX;
    entries->has_task = false;
    if (position > 0 && is_task(entries, position - 1) &&
        (position == 1 || !is_task(entries, position - 2)))
        GBX_TRY(gbx_reader_at(entries->reader, position - 1, &before));
    if (before && before->type == GBX_RECORD_TASK && before->task == task) {
        entries->task = *(const gbx_record_task *)before;
        entries->has_task = true;
    } else {
        GBX_TRY(gbx_reader_find_task(entries->reader, task, &entries->task, &entries->has_task));
    }
    entries->task_number = task;
    return NULL;
}

/* Reads the record and, where it is of another task than the one before, that task. */
static gbx_status read_record(gbx_entries *entries, uint64_t position,
                              const gbx_record **out_record) {
    GBX_TRY(gbx_reader_at(entries->reader, position, out_record));
    uint64_t task = (*out_record)->task;
    if (task == entries->task_number)
        return NULL;
    GBX_TRY(read_task(entries, task, position));
    return gbx_reader_at(entries->reader, position, out_record);
}

gbx_status gbx_entries_at(gbx_entries *entries, uint64_t index, gbx_entry *out_entry) {
    const gbx_record *record = NULL;
    GBX_TRY(read_record(entries, entries->positions[index], &record));
    bool is_tensor = record->type == GBX_RECORD_TENSOR;
    const gbx_record_task *task = entries->has_task ? &entries->task : NULL;
    *out_entry = (gbx_entry){
        .index = index,
        .head = record,
        .tensor = is_tensor ? (const gbx_record_tensor *)record : NULL,
        .scalar = is_tensor ? NULL : (const gbx_record_scalar *)record,
        .task = task,
        .arg_name = task ? gbx_run_info_slot_name(gbx_reader_run(entries->reader), task->func_ids,
                                                  record->arg_index)
                         : NULL,
        .dtype = is_tensor ? record->dtype : gbx_record_scalar_dtype(record->dtype),
    };
    return NULL;
}

uint64_t gbx_entry_numel(const gbx_entry *entry) {
    if (!entry->tensor)
        return 1;
    const int64_t *shape = gbx_record_shape(entry->tensor);
    uint64_t count = 1;
    bool is_exact = true;
    for (uint32_t i = 0; i < entry->head->ndims; ++i) {
        if (shape[i] == 0)
            return 0;
        is_exact &= gbx_checked_mul_u64(count, (uint64_t)shape[i], &count);
    }
    return is_exact ? count : UINT64_MAX;
}

uint64_t gbx_entry_stored_bytes(const gbx_entry *entry) {
    bool has_payload = entry->tensor && (entry->head->flags & GBX_FLAG_HAS_PAYLOAD);
    return has_payload ? entry->tensor->bin_size : 0;
}

bool gbx_entry_is_overwritten(const gbx_entry *entry) {
    return entry->tensor && (entry->head->flags & GBX_FLAG_OVERWRITTEN);
}

bool gbx_entry_has_values(const gbx_entry *entry) {
    return entry->scalar ||
           (!gbx_entry_is_overwritten(entry) && (entry->head->flags & GBX_FLAG_HAS_PAYLOAD));
}
