/* Bytes that a disk changed since they were recorded say nothing of who wrote what. */
#include "analysis/audit/audit_state.h"
#include "base/hash.h"

/* Overwrites a window of the comparison. */
static gbx_status hash_payload(const gbx_audit_state *state, const gbx_access *access,
                               gbx_memory_comparison *comparison, gbx_hash128 *out_hash) {
    gbx_reader *reader = gbx_entries_reader(state->entries);
    gbx_hash_state hash;
    gbx_hash_begin(&hash);
    comparison->starts[0] = comparison->ends[0] = 0;
    for (uint64_t done = 0; done < access->stored; done += GBX_WINDOW_BYTES) {
        uint64_t left = access->stored - done;
        size_t count = left < GBX_WINDOW_BYTES ? (size_t)left : GBX_WINDOW_BYTES;
        GBX_TRY(
            gbx_reader_read_payload(reader, access->offset + done, comparison->windows[0], count));
        gbx_hash_update(&hash, comparison->windows[0], count);
    }
    *out_hash = gbx_hash_end(&hash);
    return NULL;
}

/* Once for each access, so that no more is read than the dump has. */
static gbx_status look_at(gbx_audit_state *state, uint64_t index, gbx_memory_comparison *comparison,
                          bool *out_is_damaged) {
    gbx_access *access = &state->accesses[index];
    gbx_hash128 hash;
    if (access->is_proven || !access->has_bytes || !access->has_hash)
        return NULL;
    access->is_proven = true;
    GBX_TRY(hash_payload(state, access, comparison, &hash));
    if (hash.low == access->hash_low && hash.high == access->hash_high)
        return NULL;
    access->has_bytes = false;
    ++state->audit->counts.damaged;
    *out_is_damaged = true;
    return NULL;
}

gbx_status gbx_memory_find_damage(gbx_audit_state *state, const gbx_access *access,
                                  gbx_memory_comparison *comparison, bool *out_is_damaged) {
    *out_is_damaged = false;
    for (size_t i = 0; i < comparison->count; ++i) {
        if (comparison->differences[i].is_by_hash)
            continue;
        uint64_t index = (uint64_t)(access - state->accesses);
        GBX_TRY(look_at(state, index, comparison, out_is_damaged));
        GBX_TRY(look_at(state, comparison->differences[i].owner, comparison, out_is_damaged));
    }
    return NULL;
}
