#include "replay/check/check_payload.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/hash.h"

gbx_status gbx_check_missing_reason(gbx_entries *entries, uint64_t task, uint32_t slot,
                                    const char **out_reason) {
    uint64_t count = gbx_entries_count(entries);
    *out_reason = "is not in the dump";
    for (uint64_t i = gbx_entries_find(entries, task); i < count; ++i) {
        gbx_entry entry;
        GBX_TRY(gbx_entries_at(entries, i, &entry));
        if (entry.head->task != task)
            break;
        if (entry.head->arg_index != slot || entry.head->stage != GBX_STAGE_AFTER)
            continue;
        if (entry.head->flags & GBX_FLAG_IN_FLIGHT)
            *out_reason = "was recorded before the task had completed";
        else if (entry.head->flags & GBX_FLAG_TRUNCATED)
            *out_reason = "is truncated in the dump (--dump-max-tensor)";
        else if (entry.head->flags & GBX_FLAG_OVERWRITTEN)
            *out_reason = "was overwritten before it was recorded";
        else
            *out_reason = "has no payload in the dump";
    }
    return NULL;
}

static gbx_status compare_hash(gbx_entries *entries, const gbx_record_tensor *record,
                               bool *out_is_damaged) {
    gbx_hash128 told = {.low = record->hash_low, .high = record->hash_high};
    uint64_t bytes = record->bin_size;
    void *payload = malloc(bytes);
    if (!payload)
        return gbx_fail(GBX_EXHAUSTED, "no memory for a tensor of %" PRIu64 " bytes", bytes);
    gbx_status status =
        gbx_reader_read_payload(gbx_entries_reader(entries), record->bin_offset, payload, bytes);
    if (!status) {
        gbx_hash128 hash = gbx_hash_bytes(payload, bytes);
        *out_is_damaged = hash.low != told.low || hash.high != told.high;
    }
    free(payload);
    return status;
}

static gbx_status look_at(gbx_entries *entries, uint64_t index, bool *out_is_damaged) {
    gbx_entry entry;
    *out_is_damaged = false;
    if (index == GBX_REPLAY_NO_ENTRY)
        return NULL;
    GBX_TRY(gbx_entries_at(entries, index, &entry));
    bool has_hash = entry.tensor && entry.head->flags & GBX_FLAG_HAS_HASH;
    if (!has_hash || gbx_entry_stored_bytes(&entry) == 0)
        return NULL;
    gbx_record_tensor record = *entry.tensor;
    return compare_hash(entries, &record, out_is_damaged);
}

gbx_status gbx_check_find_damage(gbx_entries *entries, const gbx_replay_task *task,
                                 bool has_outputs, const gbx_replay_argument **out_argument) {
    *out_argument = NULL;
    for (uint32_t i = 0; i < task->argument_count; ++i) {
        bool is_damaged;
        GBX_TRY(look_at(entries, task->arguments[i].before, &is_damaged));
        if (!is_damaged && has_outputs)
            GBX_TRY(look_at(entries, task->arguments[i].after, &is_damaged));
        if (is_damaged) {
            *out_argument = &task->arguments[i];
            return NULL;
        }
    }
    return NULL;
}
