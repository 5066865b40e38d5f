#include <string.h>

#include <glassbox/tensor.h>

#include "base/log.h"
#include "dump/host/internal.h"
#include "tensor/statistics/statistics.h"
#include "tensor/view.h"

static_assert(sizeof(gbx_record_piece) == sizeof(gbx_tensor_piece), "copied to the journal as is");

/* One tensor being kept. */
typedef struct result {
    const gbx_final_tensor *final;
    gbx_record_tensor record; /* without what follows it */
    uint64_t bytes;           /* all, or those that are kept */
    bool has_statistics;
    gbx_hash128 hash;
    gbx_statistics statistics;
} result;

/* --- reading --- */

/* Bytes `first` to `end`, from the host's memory where they lie in no piece. */
static gbx_status read_bytes(const gbx_collector *c, const gbx_final_tensor *final, uint64_t first,
                             uint64_t end, unsigned char *to) {
    size_t low = 0;
    size_t high = final->piece_count;
    while (low < high) { /* the first piece that ends after `first` */
        size_t middle = low + (high - low) / 2;
        const gbx_tensor_piece *piece = &final->pieces[middle];
        if (piece->offset + piece->bytes <= first)
            low = middle + 1;
        else
            high = middle;
    }
    for (uint64_t at = first; at < end; ++low) {
        const gbx_tensor_piece *piece = low < final->piece_count ? &final->pieces[low] : NULL;
        uint64_t begin = piece && piece->offset < end ? piece->offset : end;
        if (begin > at) {
            const unsigned char *host = (const unsigned char *)(uintptr_t) final->tensor.data;
            memcpy(to + (at - first), host + at, begin - at);
            at = begin;
        }
        if (at == end)
            break;
        uint64_t piece_end =
            piece->offset + piece->bytes < end ? piece->offset + piece->bytes : end;
        GBX_TRY(c->hal->ops->copy_out(c->hal, to + (at - first),
                                      piece->address + (at - piece->offset), piece_end - at));
        at = piece_end;
    }
    return NULL;
}

/* The half byte that pads an odd row of packed elements is 0 in a payload. */
static void clear_padding(const gbx_tensor *tensor, uint64_t first, uint64_t end,
                          unsigned char *bytes) {
    uint64_t elements = tensor->ndims ? (uint64_t)tensor->shape[tensor->ndims - 1] : 1;
    if (!gbx_dtype_is_packed(tensor->dtype) || elements % 2 == 0)
        return;
    uint64_t row = elements / 2 + 1;
    for (uint64_t at = first / row * row + row - 1; at < end; at += row)
        bytes[at - first] &= 0x0f;
}

/* Hashes and counts all bytes, and writes them to the payload if `bin_offset` is a place. */
static gbx_status sweep(gbx_collector *c, result *r, uint64_t bin_offset) {
    const gbx_tensor *tensor = &r->final->tensor;
    uint64_t page = GBX_DUMP_PAGE_BYTES;
    gbx_hash_state hashing;
    gbx_statistics_state counting;
    gbx_hash_begin(&hashing);
    gbx_statistics_begin(&counting, tensor->dtype);
    for (uint64_t at = 0; at < r->bytes; at += GBX_PACK_BYTES) {
        uint64_t count = r->bytes - at < GBX_PACK_BYTES ? r->bytes - at : GBX_PACK_BYTES;
        unsigned char *bytes = c->pack.bytes;
        GBX_TRY(read_bytes(c, r->final, at, at + count, bytes));
        clear_padding(tensor, at, at + count, bytes);
        gbx_hash_update(&hashing, bytes, count);
        if (r->has_statistics)
            gbx_statistics_update(&counting, bytes, count,
                                  tensor->ndims ? (uint64_t)tensor->shape[tensor->ndims - 1] : 1);
        uint64_t pages = (count + page - 1) / page * page;
        memset(bytes + count, 0, pages - count);
        if (bin_offset != GBX_NOT_PLACED)
            gbx_collector_write(c, bin_offset + at, bytes, pages);
    }
    r->hash = gbx_hash_end(&hashing);
    gbx_statistics_end(&counting, &r->statistics);
    return NULL;
}

/* --- writing --- */

static void lose(gbx_collector *c, const result *r, uint32_t cause) {
    uint32_t words = sizeof(gbx_record_loss) / sizeof(uint64_t) + 1;
    gbx_record_loss *to = gbx_store_append(c->store, GBX_RECORD_LOSS, words);
    ++c->totals.dump.dropped;
    if (!to)
        return;
    to->head.stage = GBX_STAGE_NONE;
    to->head.arg_index = GBX_ARG_NONE;
    to->cause = cause;
    to->count = 1;
    *(uint64_t *)(void *)(to + 1) = UINT64_C(1) + r->final->arg_index;
}

static void journal(gbx_collector *c, const result *r) {
    const gbx_final_tensor *final = r->final;
    uint32_t ndims = final->tensor.ndims;
    size_t statistics_bytes = r->has_statistics ? sizeof r->statistics : 0;
    size_t pieces = final->piece_count <= GBX_RECORD_MAX_PIECES ? final->piece_count : 0;
    size_t bytes = sizeof r->record + 2 * ndims * sizeof(uint64_t) + statistics_bytes +
                   sizeof(uint64_t) + pieces * sizeof(gbx_record_piece);
    gbx_store_announce_dtype(c->store, final->tensor.dtype);
    gbx_record_tensor *to =
        gbx_store_append(c->store, GBX_RECORD_RESULT, (uint32_t)(bytes / sizeof(uint64_t)));
    if (!to)
        return;
    uint32_t words = to->head.words;
    *to = r->record;
    to->head.words = words;
    uint64_t *at = (uint64_t *)(void *)(to + 1);
    memcpy(at, final->tensor.shape, ndims * sizeof *at);
    memcpy(at + ndims, final->tensor.strides, ndims * sizeof *at);
    at += 2 * (size_t)ndims;
    memcpy(at, &r->statistics, statistics_bytes);
    at += statistics_bytes / sizeof *at;
    *at++ = pieces;
    if (pieces)
        memcpy(at, final->pieces, pieces * sizeof(gbx_record_piece));
    gbx_dump_totals *totals = &c->totals.dump;
    ++totals->results;
    totals->result_payload_bytes += to->bin_size;
    totals->result_stored_bytes += to->head.flags & GBX_FLAG_DUPLICATE ? 0 : to->bin_size;
}

/* Finds or writes the payload. What came through an arena in pieces is not in the table: larger
 * tensors are not looked for, which saves hashing them first. */
static gbx_status store(gbx_collector *c, result *r) {
    bool is_shareable = gbx_collector_is_shareable(c, r->record.head.flags & GBX_FLAG_IN_FLIGHT) &&
                        r->bytes <= gbx_dump_piece_bytes(c->setup->arena_bytes);
    uint64_t offset;
    r->record.head.flags |= GBX_FLAG_HAS_PAYLOAD;
    r->record.bin_size = r->bytes;
    if (is_shareable) {
        GBX_TRY(sweep(c, r, GBX_NOT_PLACED));
        if (gbx_store_find(c->store, r->hash, r->bytes, &r->record.bin_offset)) {
            r->record.head.flags |= GBX_FLAG_DUPLICATE;
            return NULL;
        }
    }
    offset = r->record.bin_offset = gbx_store_reserve(c->store, r->bytes);
    /* Hashed again as it is written: a kernel that hangs may still write. */
    GBX_TRY(sweep(c, r, offset));
    if (is_shareable)
        gbx_store_remember(c->store, r->hash, r->bytes, offset);
    return NULL;
}

static uint64_t address_of(const gbx_final_tensor *final) {
    bool is_whole = final->piece_count == 1 &&
                    final->pieces[0].bytes == gbx_tensor_payload_bytes(&final->tensor);
    return is_whole ? final->pieces[0].address : 0;
}

static void keep(gbx_collector *c, const gbx_final_tensor *final, gbx_result_wish wish) {
    uint64_t all_bytes = gbx_tensor_payload_bytes(&final->tensor);
    result r = {.final = final, .bytes = all_bytes, .has_statistics = wish.has_statistics};
    if (wish.has_payload)
        r.bytes = gbx_dump_kept_bytes(all_bytes, c->setup->max_tensor_bytes);
    unsigned flags = GBX_FLAG_HAS_HASH | GBX_FLAG_CONTIGUOUS |
                     (wish.has_statistics ? GBX_FLAG_HAS_STATS : 0u) |
                     (r.bytes < all_bytes ? GBX_FLAG_TRUNCATED : 0u) |
                     (wish.is_in_flight ? GBX_FLAG_IN_FLIGHT : 0u);
    r.record = (gbx_record_tensor){.head = {.type = GBX_RECORD_RESULT,
                                            .stage = GBX_STAGE_NONE,
                                            .role = (uint8_t) final->role,
                                            .arg_index = (uint8_t) final->arg_index,
                                            .dtype = (uint8_t) final->tensor.dtype,
                                            .ndims = (uint8_t) final->tensor.ndims,
                                            .flags = (uint16_t)flags},
                                   .buffer_addr = address_of(final)};
    gbx_status status = wish.has_payload && r.bytes ? store(c, &r) : sweep(c, &r, GBX_NOT_PLACED);
    if (status)
        gbx_log_error("dumping tensor %u of the run: %s", (unsigned) final->arg_index,
                      gbx_status_message(status));
    r.record.hash_low = r.hash.low;
    r.record.hash_high = r.hash.high;
    if (status)
        lose(c, &r, GBX_LOSS_DEVICE);
    else if (gbx_collector_has_failed(c, r.record.bin_offset, r.record.bin_size))
        lose(c, &r, GBX_LOSS_DISK);
    else
        journal(c, &r);
    gbx_status_free(status);
}

void gbx_collector_keep_results(gbx_collector *c, const gbx_final_tensor *tensors, size_t count,
                                gbx_result_wish wish) {
    for (size_t i = 0; i < count; ++i)
        keep(c, &tensors[i], wish);
}
