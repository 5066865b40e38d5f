/* What reaches the results of the run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diagnose/follow.h"
#include "diagnose/taint.h"

/* Whether all are NaN: a golden that accepts one does not look at the element. */
static gbx_status are_nan(const gbx_follow *f, const gbx_record_tensor *record, uint64_t offset,
                          uint64_t bytes, bool *out_are) {
    uint32_t dtype = record->head.dtype;
    uint64_t width = gbx_dtype_bits(dtype) / 8;
    *out_are = gbx_dtype_is_float(dtype) && width > 0 && bytes % width == 0 &&
               offset <= record->bin_size && bytes <= record->bin_size - offset;
    for (uint64_t at = 0; at < bytes && *out_are; at += width) {
        uint64_t bits = 0;
        GBX_TRY(
            gbx_reader_read_payload(f->q->reader, record->bin_offset + offset + at, &bits, width));
        *out_are = isnan(gbx_dtype_to_f64(dtype, bits));
    }
    return NULL;
}

static gbx_status look_at_piece(gbx_follow *f, const gbx_record_tensor *record,
                                const gbx_record_piece *piece) {
    uint64_t end = piece->address + piece->bytes;
    gbx_memory_range found;
    for (uint64_t at = piece->address;
         at < end && gbx_memory_map_find(f->taint, at, &found) && found.begin < end;
         at = found.end) {
        uint64_t begin = found.begin > at ? found.begin : at;
        uint64_t stop = found.end < end ? found.end : end;
        uint64_t computed = found.owner >> GBX_COMPUTED_SHIFT & ~f->reached;
        bool is_accepted = false;
        if (!f->has_passed)
            f->reached |= found.owner & GBX_DIRECT_MASK;
        if (computed != 0 && f->has_passed)
            GBX_TRY(are_nan(f, record, piece->offset + (begin - piece->address), stop - begin,
                            &is_accepted));
        if (!is_accepted)
            f->reached |= computed;
    }
    return NULL;
}

static gbx_status look_at_result(gbx_follow *f, uint64_t position) {
    gbx_result result;
    GBX_TRY(gbx_reader_result(f->q->reader, position, &result));
    gbx_record_tensor record = *result.record;
    uint64_t count = result.piece_count;
    gbx_record_piece *pieces = malloc((count + 1) * sizeof *pieces);
    if (!pieces)
        return gbx_fail_memory("%s", GBX_FOLLOWING);
    if (count > 0)
        memcpy(pieces, result.pieces, count * sizeof *pieces);
    gbx_status status = NULL;
    for (uint64_t i = 0; i < count && !status; ++i)
        status = look_at_piece(f, &record, &pieces[i]);
    free(pieces);
    return status;
}

/* Whether the dump knows where all results of the run lie. */
static gbx_status has_results(const gbx_follow *f, bool *out_has) {
    uint64_t count = gbx_reader_result_count(f->q->reader);
    *out_has = count > 0 && gbx_reader_has_ended_well(f->q->reader);
    for (uint64_t i = 0; i < count && *out_has; ++i) {
        gbx_result result;
        GBX_TRY(gbx_reader_result(f->q->reader, i, &result));
        *out_has = result.piece_count > 0;
    }
    return NULL;
}

gbx_status gbx_follow_look_at_results(gbx_follow *f) {
    const gbx_blame_element *wrong = &f->q->d->blamed;
    bool is_known;
    gbx_memory_range found;
    if (f->is_second) {
        uint64_t bytes = (gbx_dtype_bits(wrong->tensor.dtype) + 7) / 8;
        f->reached |= gbx_follow_sets_of(
            gbx_taint_of_range(f->taint, wrong->address, wrong->address + bytes));
        return NULL;
    }
    GBX_TRY(has_results(f, &is_known));
    for (uint64_t i = 0; is_known && i < gbx_reader_result_count(f->q->reader); ++i)
        GBX_TRY(look_at_result(f, i));
    for (uint64_t at = 0; !is_known && gbx_memory_map_find(f->taint, at, &found); at = found.end)
        gbx_follow_give_up(f, found.owner >> GBX_COMPUTED_SHIFT); /* it may be a result */
    return NULL;
}
