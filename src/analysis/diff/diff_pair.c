#include "analysis/diff/internal.h"

#include <string.h>

#include <glassbox/tensor.h>

#include "base/numbers.h"

/* Bytes of each payload mapped at a time; less than the second is read, because mapping would cost
 * more than copying. */
enum { MAPPED_BYTES = 2 << 20, LEAST_MAPPED_BYTES = 256 << 10 };

gbx_tolerance gbx_diff_tolerance(const gbx_diff_options *options, uint32_t dtype) {
    gbx_tolerance tolerance = options->tolerance;
    if (!options->has_tolerance)
        tolerance = gbx_tolerance_default(dtype);
    else if (!gbx_dtype_is_float(dtype))
        tolerance = (gbx_tolerance){.atol = dtype == GBX_BOOL ? 0.0 : tolerance.atol};
    tolerance.is_strict_nan = options->is_strict_nan;
    return tolerance;
}

static void decide(gbx_diff_record *record, gbx_diff_verdict verdict, gbx_diff_reason reason) {
    record->verdict = verdict;
    record->reason = reason;
}

/* --- without values --- */

static bool has_same_shape(const gbx_entry *a, const gbx_entry *b) {
    return a->head->ndims == b->head->ndims &&
           memcmp(gbx_record_shape(a->tensor), gbx_record_shape(b->tensor),
                  a->head->ndims * sizeof(int64_t)) == 0;
}

/* Such a scalar is compared as what it is in the other dump, or by its bits: older versions
 * recorded uint64 for it. */
static bool has_undeclared(const gbx_diff_pair *pair) {
    return pair->a->dtype == GBX_DTYPE_NONE || pair->b->dtype == GBX_DTYPE_NONE;
}

static uint32_t common_dtype(const gbx_diff_pair *pair) {
    return gbx_entry_element_dtype(pair->a->dtype == GBX_DTYPE_NONE ? pair->b : pair->a);
}

/* Whether the form decides. A task that did not complete was captured at an arbitrary moment: two
 * such records need not be alike. */
static bool judge_form(const gbx_diff_pair *pair, gbx_diff_record *record) {
    const gbx_entry *a = pair->a;
    const gbx_entry *b = pair->b;
    if ((a->head->flags | b->head->flags) & GBX_FLAG_IN_FLIGHT)
        decide(record, GBX_DIFF_NOT_COMPARED, GBX_DIFF_IN_FLIGHT);
    else if (!a->tensor != !b->tensor)
        decide(record, GBX_DIFF_DIFFERENT, GBX_DIFF_KIND);
    else if (a->dtype != b->dtype && !has_undeclared(pair))
        decide(record, GBX_DIFF_DIFFERENT, GBX_DIFF_DTYPE);
    else if (a->tensor && !has_same_shape(a, b))
        decide(record, GBX_DIFF_DIFFERENT, GBX_DIFF_SHAPE);
    else if (gbx_entry_is_overwritten(a) || gbx_entry_is_overwritten(b))
        decide(record, GBX_DIFF_NOT_COMPARED, GBX_DIFF_OVERWRITTEN);
    else
        return false;
    return true;
}

/* --- hashes --- */

static bool has_payload(const gbx_entry *entry) {
    return entry->head->flags & GBX_FLAG_HAS_PAYLOAD;
}

/* How many bytes the hash covers: those kept of a truncated tensor, else all, UINT64_MAX. */
static uint64_t hashed_bytes(const gbx_entry *entry) {
    return has_payload(entry) && (entry->head->flags & GBX_FLAG_TRUNCATED) ? entry->tensor->bin_size
                                                                           : UINT64_MAX;
}

/* A strict NaN is not equal to itself: equal bytes then prove nothing. */
static bool may_hold_strict_nan(const gbx_diff_pair *pair) {
    if (!pair->options->is_strict_nan || !gbx_dtype_is_float(pair->a->dtype))
        return false;
    const gbx_record_stats *stats = gbx_record_statistics(pair->a->tensor);
    return !stats || stats->nan_count > 0;
}

/* Whether hashes or missing payload decide. */
static bool judge_hashes(const gbx_diff_pair *pair, gbx_diff_record *record) {
    bool has_hashes = (pair->a->head->flags & pair->b->head->flags & GBX_FLAG_HAS_HASH) &&
                      hashed_bytes(pair->a) == hashed_bytes(pair->b);
    bool is_equal = has_hashes && (pair->a->tensor->hash_low == pair->b->tensor->hash_low &&
                                   pair->a->tensor->hash_high == pair->b->tensor->hash_high);
    bool is_readable = has_payload(pair->a) && has_payload(pair->b);
    if (gbx_entry_numel(pair->a) == 0) {
        decide(record, GBX_DIFF_EQUAL, GBX_DIFF_VALUES);
    } else if (is_equal && !may_hold_strict_nan(pair)) {
        decide(record, GBX_DIFF_EQUAL, GBX_DIFF_VALUES);
        record->is_truncated = hashed_bytes(pair->a) != UINT64_MAX;
        record->is_hashed = true;
    } else if (is_readable) {
        return false;
    } else if (is_equal) {
        decide(record, GBX_DIFF_NOT_COMPARED, GBX_DIFF_NAN_UNKNOWN);
    } else if (has_hashes) {
        decide(record, GBX_DIFF_DIFFERENT, GBX_DIFF_HASH);
    } else {
        decide(record, GBX_DIFF_NOT_COMPARED, GBX_DIFF_NO_PAYLOAD);
    }
    return true;
}

/* --- values --- */

static void judge_values(gbx_diff_record *record) {
    const gbx_comparison *c = &record->comparison;
    record->has_metrics = true;
    decide(record,
           c->mismatches > 0 ? GBX_DIFF_DIFFERENT
           : c->unequal > 0  ? GBX_DIFF_WITHIN
                             : GBX_DIFF_EQUAL,
           GBX_DIFF_VALUES);
}

/* How elements lie in the payload: rows of packed elements with odd length end with half an unused
 * byte, all else is one long row. */
typedef struct rows {
    uint64_t elements; /* of a row */
    uint64_t bytes;    /* of it */
    uint32_t bits;     /* of an element */
} rows;

static rows find_rows(const gbx_entry_values *values, uint64_t count) {
    uint32_t bits = gbx_dtype_bits(values->elements.dtype);
    uint32_t ndims = values->elements.ndims;
    uint64_t last = ndims > 0 ? (uint64_t)values->elements.shape[ndims - 1] : 1;
    if (gbx_dtype_is_packed(values->elements.dtype) && last % 2 == 1)
        return (rows){last, values->row_bytes, bits};
    return (rows){count, (count * bits + 7) / 8, bits};
}

/* Adds `bytes` of both payloads, from `offset` on. */
static void add_piece(gbx_comparison *comparison, const rows *r, uint64_t offset, uint64_t bytes,
                      const unsigned char *got, const unsigned char *want, uint64_t elements) {
    while (bytes > 0 && comparison->elements < elements) {
        uint64_t in_row = offset % r->bytes;
        uint64_t taken = gbx_min_u64(bytes, r->bytes - in_row);
        uint64_t column = in_row * 8 / r->bits;
        uint64_t count = gbx_min_u64(taken * 8 / r->bits, r->elements - column);
        count = gbx_min_u64(count, elements - comparison->elements);
        gbx_comparison_add(comparison, got, want, (size_t)count);
        got += taken;
        want += taken;
        offset += taken;
        bytes -= taken;
    }
}

/* The piece of both payloads that begins at `done`. */
typedef struct piece {
    const gbx_entry_values *a;
    const gbx_entry_values *b;
    const rows *r;
    uint64_t done;
    uint64_t count; /* of all elements */
    gbx_comparison *comparison;
} piece;

static bool compare_mapped(const piece *p, size_t bytes) {
    gbx_payload_map got, want;
    if (!gbx_reader_map_payload(p->a->reader, p->a->offset + p->done, bytes, &got))
        return false;
    bool is_mapped = gbx_reader_map_payload(p->b->reader, p->b->offset + p->done, bytes, &want);
    if (is_mapped) {
        add_piece(p->comparison, p->r, p->done, bytes, got.bytes, want.bytes, p->count);
        gbx_payload_map_release(&want);
    }
    gbx_payload_map_release(&got);
    return is_mapped;
}

static gbx_status compare_payload(gbx_diff_pair *pair, gbx_diff_record *record) {
    gbx_entry_values a, b;
    GBX_TRY(gbx_entry_values_open(pair->a, pair->reader_a, &a));
    GBX_TRY(gbx_entry_values_open(pair->b, pair->reader_b, &b));
    uint64_t count = gbx_min_u64(a.elements.stored, b.elements.stored);
    record->is_truncated = count < a.elements.count;
    if (count == 0) {
        decide(record, GBX_DIFF_NOT_COMPARED, GBX_DIFF_TRUNCATED);
        return NULL;
    }
    rows r = find_rows(&a, count);
    /* The bytes that the first `count` elements take. */
    uint64_t rest = (count % r.elements * r.bits + 7) / 8;
    uint64_t all = count / r.elements * r.bytes + rest;
    piece p = {.a = &a, .b = &b, .r = &r, .count = count, .comparison = &record->comparison};
    for (uint64_t done = 0; done < all;) {
        size_t bytes = (size_t)gbx_min_u64(all - done, MAPPED_BYTES);
        p.done = done;
        if (bytes < LEAST_MAPPED_BYTES || !compare_mapped(&p, bytes)) {
            bytes = (size_t)gbx_min_u64(bytes, GBX_DIFF_PIECE_BYTES);
            unsigned char *got = pair->pieces;
            unsigned char *want = pair->pieces + GBX_DIFF_PIECE_BYTES;
            GBX_TRY(gbx_reader_read_payload(p.a->reader, p.a->offset + p.done, got, bytes));
            GBX_TRY(gbx_reader_read_payload(p.b->reader, p.b->offset + p.done, want, bytes));
            add_piece(p.comparison, p.r, p.done, bytes, got, want, p.count);
        }
        done += bytes;
        pair->read_bytes += bytes;
        if (pair->on_read)
            pair->on_read(pair->context, bytes);
    }
    judge_values(record);
    return NULL;
}

gbx_status gbx_diff_pair_compare(gbx_diff_pair *pair, gbx_diff_record *record) {
    pair->read_bytes = 0;
    record->is_truncated = false;
    record->is_hashed = false;
    record->has_metrics = false;
    if (judge_form(pair, record))
        return NULL;
    uint32_t dtype = common_dtype(pair);
    gbx_tolerance tolerance = gbx_diff_tolerance(pair->options, dtype);
    if (pair->a->dtype == GBX_DTYPE_NONE && pair->b->dtype == GBX_DTYPE_NONE)
        tolerance = (gbx_tolerance){0};
    gbx_comparison_begin(&record->comparison, dtype, &tolerance);
    if (pair->a->scalar) {
        gbx_comparison_add(&record->comparison, &pair->a->scalar->bits, &pair->b->scalar->bits, 1);
        judge_values(record);
        return NULL;
    }
    return judge_hashes(pair, record) ? NULL : compare_payload(pair, record);
}
