/* The results of the run: each piece of their memory is read once more, when all tasks are done. */
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/audit/internal.h"
#include "analysis/new_memory.h"
#include "base/memory.h"
#include "base/numbers.h"

/* --- gathering --- */

gbx_status gbx_audit_count_pieces(gbx_reader *reader, uint64_t *out_pieces) {
    uint64_t count = gbx_reader_result_count(reader);
    *out_pieces = 0;
    for (uint64_t i = 0; i < count; ++i) {
        gbx_result result;
        GBX_TRY(gbx_reader_result(reader, i, &result));
        *out_pieces += result.piece_count;
    }
    return NULL;
}

static gbx_access make_piece(const gbx_result *result, const gbx_record_piece *piece,
                             uint64_t position, uint64_t whole) {
    const gbx_record_tensor *record = result->record;
    uint32_t flags = record->head.flags;
    uint64_t kept = flags & GBX_FLAG_HAS_PAYLOAD ? record->bin_size : 0;
    bool is_whole = piece->offset == 0 && piece->bytes == whole;
    return (gbx_access){
        .entry = position,
        .task = UINT64_MAX,
        .begin = piece->address,
        .end = piece->address + piece->bytes,
        .buffer = piece->address - piece->offset,
        .offset = record->bin_offset + piece->offset,
        .stored = kept > piece->offset ? gbx_min_u64(kept - piece->offset, piece->bytes) : 0,
        .whole = piece->bytes,
        .hash_low = record->hash_low,
        .hash_high = record->hash_high,
        .time_ns = UINT64_MAX,
        .tensor_offset = piece->offset,
        .dtype = record->head.dtype,
        .is_result = true,
        .is_contiguous = true,
        .is_followed = true,
        .has_bytes = kept > piece->offset,
        .has_hash = is_whole && (flags & GBX_FLAG_HAS_HASH) && !(flags & GBX_FLAG_TRUNCATED) &&
                    (kept == whole || kept == 0)};
}

gbx_status gbx_audit_gather_results(gbx_audit_state *state, gbx_reader *reader) {
    gbx_audit_counts *counts = &state->audit->counts;
    counts->results = gbx_reader_result_count(reader);
    for (uint64_t i = 0; i < counts->results; ++i) {
        gbx_result result;
        gbx_tensor view;
        GBX_TRY(gbx_reader_result(reader, i, &result));
        gbx_record_view(result.record, &view);
        uint64_t whole = gbx_tensor_payload_bytes(&view);
        counts->result_bytes += whole;
        for (uint64_t k = 0; k < result.piece_count; ++k)
            state->accesses[state->access_count + state->piece_count++] =
                make_piece(&result, &result.pieces[k], i, whole);
    }
    return NULL;
}

/* --- bytes that no task declares to write --- */

/* Counts the bytes of [begin, end) of a piece that are not filled. */
static gbx_status count_unfilled(gbx_audit_state *state, const gbx_access *piece, uint64_t begin,
                                 uint64_t end) {
    unsigned char *window = state->comparison.windows[0];
    state->comparison.starts[0] = state->comparison.ends[0] = 0; /* it is overwritten */
    uint64_t stop = gbx_min_u64(end, piece->begin + (piece->has_bytes ? piece->stored : 0));
    while (begin < stop) {
        uint64_t first = begin - (begin - piece->buffer) % 2;
        first = first < piece->begin ? piece->begin : first;
        uint64_t count = gbx_min_u64(GBX_WINDOW_BYTES, piece->begin + piece->stored - first);
        GBX_TRY(gbx_reader_read_payload(gbx_entries_reader(state->entries),
                                        piece->offset + (first - piece->begin), window,
                                        (size_t)count));
        uint64_t until = gbx_min_u64(stop, first + count);
        for (; begin < until; ++begin)
            state->audit->counts.result_unfilled += !gbx_is_new_memory(
                window, (size_t)count, (size_t)(begin - first), first - piece->buffer);
    }
    return NULL;
}

/* Bytes of a piece that no task declares to write: known only if a task read them. */
static gbx_status look_at_gap(gbx_audit_state *state, const gbx_access *piece, uint64_t begin,
                              uint64_t end) {
    state->audit->counts.result_unwritten += end - begin;
    for (uint64_t at = begin; at < end;) {
        gbx_memory_range range;
        bool is_found = gbx_memory_map_find(state->map, at, &range) && range.begin < end;
        uint64_t known = !is_found ? end : range.begin > at ? range.begin : at;
        GBX_TRY(count_unfilled(state, piece, at, known));
        at = is_found ? range.end : end;
    }
    return NULL;
}

static gbx_status look_at_gaps(gbx_audit_state *state, const gbx_memory_map *written,
                               const gbx_access *piece) {
    for (uint64_t at = piece->begin; at < piece->end;) {
        gbx_memory_range range;
        bool is_found = gbx_memory_map_find(written, at, &range) && range.begin < piece->end;
        if (!is_found || range.begin > at)
            GBX_TRY(look_at_gap(state, piece, at, is_found ? range.begin : piece->end));
        at = is_found ? range.end : piece->end;
    }
    return NULL;
}

/* Adds the bytes that a task declares to write; all between its first and last one if these are in
 * too many pieces. */
static gbx_status add_written(gbx_audit_state *state, gbx_access *access, gbx_memory_map *written) {
    gbx_memory_range range = {access->begin, access->end, 0, 0};
    gbx_byte_runs runs;
    gbx_byte_run run;
    GBX_TRY(gbx_access_fit(state, written, access));
    if (access->is_contiguous || !access->is_followed)
        return gbx_memory_map_set(written, &range);
    GBX_TRY(gbx_access_runs(state, access, &runs));
    while (gbx_byte_runs_next(&runs, &run)) {
        range.begin = run.begin;
        range.end = run.end;
        GBX_TRY(gbx_memory_map_set(written, &range));
    }
    return NULL;
}

/* Owners in the state's map do not tell: it takes changed bytes from those who saw them. */
static gbx_status look_at_unwritten(gbx_audit_state *state, gbx_memory_map *written) {
    const gbx_access *pieces = state->accesses + state->access_count;
    uint64_t begin = UINT64_MAX, end = 0;
    for (uint64_t i = 0; i < state->piece_count; ++i) {
        begin = gbx_min_u64(begin, pieces[i].begin);
        end = pieces[i].end > end ? pieces[i].end : end;
    }
    for (uint64_t i = 0; i < state->access_count; ++i) {
        gbx_access *access = &state->accesses[i];
        if (access->is_write && access->begin < access->end && access->begin < end &&
            begin < access->end)
            GBX_TRY(add_written(state, access, written));
    }
    for (uint64_t i = 0; i < state->piece_count; ++i)
        GBX_TRY(look_at_gaps(state, written, &pieces[i]));
    return NULL;
}

/* --- comparing --- */

/* What a comparison of all pieces of a result came to. */
typedef struct outcome {
    bool is_raced;
    bool is_incomplete;
} outcome;

static gbx_status compare_piece(gbx_audit_state *state, const gbx_access *piece, outcome *out) {
    const gbx_memory_comparison *comparison = &state->comparison;
    GBX_TRY(gbx_memory_compare(state, piece));
    for (size_t i = 0; i < comparison->count; ++i) {
        const gbx_difference *difference = &comparison->differences[i];
        gbx_change change = gbx_audit_explain(state, difference->owner, piece, difference);
        out->is_raced |= change == GBX_CHANGE_RACED;
        out->is_incomplete |= change == GBX_CHANGE_MISSING;
        if (change == GBX_CHANGE_UNDECLARED)
            GBX_TRY(gbx_audit_report_change(state, piece, difference));
    }
    out->is_incomplete |= comparison->unknown_bytes > 0;
    return NULL;
}

gbx_status gbx_audit_compare_results(gbx_audit_state *state) {
    gbx_audit_counts *counts = &state->audit->counts;
    uint64_t at = state->access_count, end = at + state->piece_count;
    for (uint64_t result = 0; result < counts->results; ++result) {
        outcome out = {.is_incomplete = at == end || state->accesses[at].entry != result};
        for (; at < end && state->accesses[at].entry == result; ++at)
            GBX_TRY(compare_piece(state, &state->accesses[at], &out));
        counts->results_raced += out.is_raced;
        counts->results_incomplete += !out.is_raced && out.is_incomplete;
        counts->results_compared += !out.is_raced && !out.is_incomplete;
    }
    gbx_memory_map *written;
    GBX_TRY(gbx_memory_map_create(GBX_OFFSETS_STAY, &written));
    gbx_status status = look_at_unwritten(state, written);
    gbx_memory_map_destroy(written);
    return status;
}
