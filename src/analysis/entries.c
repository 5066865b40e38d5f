#include "analysis/entries.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/dump.h>
#include <glassbox/tensor.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "tensor/compare/compare.h"
#include "text/names.h"

enum { READ_BYTES = 4096, COPY_BYTES = 1 << 18 }; /* at a time */

struct gbx_entries {
    gbx_reader *reader;
    uint64_t *positions; /* of each entry, in the reader's index */
    uint64_t count;
    uint64_t task_number; /* the task read last; UINT64_MAX for none */
    bool has_task;        /* that task has a record: */
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
    return gbx_lower_bound_u64(entries->positions, entries->count,
                               gbx_reader_find(entries->reader, task));
}

uint64_t gbx_entries_position(const gbx_entries *entries, uint64_t index) {
    return entries->positions[index];
}

static bool is_task(const gbx_entries *entries, uint64_t position) {
    return gbx_reader_kind(entries->reader, position) == 0;
}

/* Reads the record and, if it is of another task than the last one, the record of its task. */
static gbx_status read_record(gbx_entries *entries, uint64_t position,
                              const gbx_record **out_record) {
    GBX_TRY(gbx_reader_at(entries->reader, position, out_record));
    uint64_t task = (*out_record)->task;
    if (task == entries->task_number)
        return NULL;
    /* The record of a task comes right before its first argument. If it does not, or if there may
     * be two, it is looked up. */
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
        .dtype = record->dtype,
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

/* --- the values of an entry: its elements out of the payload --- */

static uint64_t row_elements(const gbx_elements *elements) {
    return elements->ndims ? (uint64_t)elements->shape[elements->ndims - 1] : 1;
}

static gbx_status read_whole(const gbx_entry_values *values, uint64_t first, size_t count,
                             uint64_t *out_bits) {
    unsigned char bytes[READ_BYTES];
    uint32_t size = gbx_dtype_bits(values->elements.dtype) / 8;
    while (count > 0) {
        size_t taken = (size_t)gbx_min_u64(count, READ_BYTES / size);
        GBX_TRY(gbx_reader_read_payload(values->reader, values->offset + first * size, bytes,
                                        taken * size));
        memset(out_bits, 0, taken * sizeof *out_bits);
        for (size_t i = 0; i < taken; ++i)
            memcpy(&out_bits[i], bytes + i * size, size); /* little-endian */
        out_bits += taken;
        first += taken;
        count -= taken;
    }
    return NULL;
}

/* Two elements a byte, the first in the low half; every row begins with a byte. */
static gbx_status read_halves(const gbx_entry_values *values, uint64_t first, size_t count,
                              uint64_t *out_bits) {
    unsigned char bytes[READ_BYTES];
    uint64_t length = row_elements(&values->elements);
    while (count > 0) {
        uint64_t column = first % length;
        size_t taken = (size_t)gbx_min_u64(gbx_min_u64(count, length - column), READ_BYTES);
        uint64_t byte = first / length * values->row_bytes + column / 2;
        GBX_TRY(gbx_reader_read_payload(values->reader, values->offset + byte, bytes,
                                        (size_t)((column % 2 + taken + 1) / 2)));
        for (size_t i = 0; i < taken; ++i) {
            uint64_t half = column % 2 + i;
            out_bits[i] = (uint64_t)bytes[half / 2] >> half % 2 * 4 & 0xfu;
        }
        out_bits += taken;
        first += taken;
        count -= taken;
    }
    return NULL;
}

static gbx_status read_elements(const void *context, uint64_t first, size_t count,
                                uint64_t *out_bits) {
    const gbx_entry_values *values = context;
    if (values->is_scalar) {
        if (count > 0)
            out_bits[0] = values->scalar_bits;
        return NULL;
    }
    return gbx_dtype_is_packed(values->elements.dtype) ? read_halves(values, first, count, out_bits)
                                                       : read_whole(values, first, count, out_bits);
}

/* --- opening --- */

uint32_t gbx_entry_element_dtype(const gbx_entry *entry) {
    return entry->dtype == GBX_DTYPE_NONE ? GBX_UINT64 : entry->dtype;
}

static gbx_status open_tensor(const gbx_entry *entry, gbx_entry_values *values) {
    gbx_elements *elements = &values->elements;
    gbx_tensor view;
    gbx_record_view(entry->tensor, &view);
    gbx_status status = gbx_tensor_contiguous(0, view.dtype, view.ndims, view.shape, &view);
    if (status) {
        gbx_status failure = gbx_fail(GBX_BAD_FORMAT, "reading entry %" PRIu64 " of the dump: %s",
                                      entry->index, gbx_status_message(status));
        gbx_status_free(status);
        return failure;
    }
    uint64_t whole = gbx_tensor_payload_bytes(&view);
    values->offset = entry->tensor->bin_offset;
    values->bytes = gbx_entry_stored_bytes(entry);
    bool is_truncated = entry->head->flags & GBX_FLAG_TRUNCATED;
    if (is_truncated ? values->bytes > whole : values->bytes != whole)
        return gbx_fail(GBX_BAD_FORMAT,
                        "reading entry %" PRIu64 " of the dump: it has %" PRIu64
                        " bytes of payload, but its shape and dtype need %s%" PRIu64
                        "; run glassbox verify",
                        entry->index, entry->tensor->bin_size,
                        entry->head->flags & GBX_FLAG_TRUNCATED ? "at most " : "", whole);
    elements->ndims = view.ndims;
    memcpy(elements->shape, view.shape, sizeof view.shape);
    elements->count = gbx_entry_numel(entry);
    values->row_bytes = (row_elements(elements) * gbx_dtype_bits(view.dtype) + 7) / 8;
    uint32_t bits = gbx_dtype_bits(elements->dtype);
    uint64_t stored = values->bytes / (bits < 8 ? 1 : bits / 8);
    if (gbx_dtype_is_packed(elements->dtype) && values->row_bytes > 0)
        stored = values->bytes / values->row_bytes * row_elements(elements) +
                 gbx_min_u64(values->bytes % values->row_bytes * 2, row_elements(elements));
    elements->stored = gbx_min_u64(stored, elements->count);
    return NULL;
}

gbx_status gbx_entry_values_open(const gbx_entry *entry, const gbx_reader *reader,
                                 gbx_entry_values *out_values) {
    *out_values = (gbx_entry_values){
        .elements = {.dtype = gbx_entry_element_dtype(entry),
                     .read = read_elements,
                     .context = out_values},
        .reader = reader,
        .is_scalar = entry->scalar != NULL,
    };
    if (!entry->scalar)
        return open_tensor(entry, out_values);
    out_values->elements.count = 1;
    out_values->elements.stored = 1;
    out_values->scalar_bits = entry->scalar->bits;
    return NULL;
}

gbx_status gbx_payload_copy(const gbx_reader *reader, uint64_t offset, uint64_t bytes,
                            const gbx_held_signals *signals,
                            void (*change)(unsigned char *piece, size_t size), FILE *to) {
    unsigned char piece[COPY_BYTES];
    for (uint64_t at = 0; at < bytes && !ferror(to); at += COPY_BYTES) {
        size_t size = (size_t)gbx_min_u64(bytes - at, COPY_BYTES);
        GBX_TRY(gbx_signals_check(signals));
        GBX_TRY(gbx_reader_read_payload(reader, offset + at, piece, size));
        if (change)
            change(piece, size);
        fwrite(piece, 1, size, to);
    }
    return NULL;
}

/* --- what a dump is sure to hold --- */

/* Whether a filter, such as "kernel=softmax*,stage=after", selects only complete tasks. */
static bool picks_tasks(const char *filter) {
    static const char *const keys[] = {"kernel=", "func=", "task="};
    for (const char *at = filter; at; at = strchr(at, ',')) {
        bool is_of_tasks = false;
        at += *at == ',';
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; ++i)
            is_of_tasks |= strncmp(at, keys[i], strlen(keys[i])) == 0;
        if (!is_of_tasks)
            return false;
    }
    return true;
}

static bool has_skipped_arguments(gbx_reader *reader) {
    uint64_t count = gbx_reader_list_count(reader, GBX_LIST_SKIPPED);
    bool is_found = false;
    for (uint64_t i = 0; i < count && !is_found; ++i) {
        const gbx_record *record;
        gbx_status status = gbx_reader_list_at(reader, GBX_LIST_SKIPPED, i, &record);
        is_found = status || record->arg_index != GBX_ARG_NONE;
        gbx_status_free(status);
    }
    return is_found;
}

bool gbx_run_has_all_metadata(const gbx_run_info *run) {
    uint32_t level;
    if (!run->dump_level || !gbx_name_find(&gbx_dump_levels, run->dump_level, &level))
        return false;
    return level == GBX_DUMP_HYBRID || level == GBX_DUMP_STATS ||
           (level == GBX_DUMP_FULL && run->filter_count == 0);
}

bool gbx_dump_has_whole_tasks(gbx_reader *reader) {
    const gbx_run_info *run = gbx_reader_run(reader);
    if (!run->dump_level || !gbx_reader_is_complete(reader) || has_skipped_arguments(reader) ||
        gbx_reader_dropped(reader) > 0)
        return false;
    if (gbx_run_has_all_metadata(run))
        return true;
    bool is_whole = run->filter_count > 0;
    for (size_t i = 0; i < run->filter_count; ++i)
        is_whole &= picks_tasks(run->filters[i]);
    return is_whole;
}

bool gbx_dump_has_whole_graph(gbx_reader *reader) {
    return gbx_dump_has_whole_tasks(reader) && gbx_run_has_all_metadata(gbx_reader_run(reader)) &&
           gbx_reader_list_count(reader, GBX_LIST_SKIPPED) == 0;
}
