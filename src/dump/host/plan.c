#include <string.h>

#include <glassbox/tensor.h>

#include "dump/host/internal.h"
#include "tensor/view.h"

/* Two payloads with a smaller gap of unstored bytes between them are written as one. */
enum { MERGED_GAP_BYTES = 512 };

/* --- is it what a device writer writes? --- */

static bool is_number(int64_t value) {
    return value > -(INT64_C(1) << GBX_EXACT_BITS) && value < INT64_C(1) << GBX_EXACT_BITS;
}

static bool is_empty(uint32_t ndims, const uint64_t *shape) {
    for (uint32_t d = 0; d < ndims; ++d)
        if (shape[d] == 0)
            return true;
    return false;
}

void gbx_keep_strides(uint32_t ndims, const uint64_t *shape, uint64_t *strides) {
    for (uint32_t d = 0; d < ndims; ++d)
        if (!is_number((int64_t)strides[d]) && (shape[d] == 1 || is_empty(ndims, shape)))
            strides[d] = 0;
}

/* `words` are ndims of shape, then ndims of strides. */
static bool is_geometry_sound(uint32_t dtype, uint32_t ndims, int64_t start_offset,
                              const uint64_t *words, gbx_tensor *out_tensor) {
    int64_t first;
    int64_t end;
    bool is_exact = is_number(start_offset);
    uint64_t strides[GBX_MAX_DIMS];
    memcpy(strides, words + ndims, ndims * sizeof *strides);
    gbx_keep_strides(ndims, words, strides);
    *out_tensor = (gbx_tensor){.dtype = dtype, .ndims = ndims, .start_offset = start_offset};
    for (uint32_t d = 0; d < ndims; ++d) {
        out_tensor->shape[d] = (int64_t)words[d];
        out_tensor->strides[d] = (int64_t)strides[d];
        is_exact &= is_number(out_tensor->shape[d]) && is_number(out_tensor->strides[d]);
    }
    return is_exact && gbx_tensor_is_valid(out_tensor, &first, &end);
}

/* The minimum or maximum of integers is one of their values. */
static bool is_extreme_sound(uint32_t dtype, uint64_t bits) {
    uint32_t width = gbx_dtype_bits(dtype);
    if (gbx_dtype_is_float(dtype) || width == 64)
        return true;
    if (!gbx_dtype_is_signed(dtype))
        return bits >> width == 0;
    int64_t limit = INT64_C(1) << (width - 1);
    return (int64_t)bits >= -limit && (int64_t)bits < limit;
}

static bool are_statistics_sound(const gbx_tensor *tensor, const uint64_t *words) {
    gbx_record_stats stats;
    uint64_t count = (uint64_t)gbx_tensor_numel(tensor);
    memcpy(&stats, words + 2 * (size_t)tensor->ndims, sizeof stats);
    return stats.nan_count <= count && stats.inf_count <= count && stats.zero_count <= count &&
           stats.subnormal_count <= count && is_extreme_sound(tensor->dtype, stats.min_bits) &&
           is_extreme_sound(tensor->dtype, stats.max_bits);
}

static bool is_tensor_sound(const gbx_dump_tensor *record) {
    const gbx_dump_record *head = &record->head;
    gbx_tensor tensor;
    return head->ndims <= GBX_MAX_DIMS &&
           head->lines == gbx_dump_lines_of(gbx_dump_tensor_words(head->ndims, head->flags)) &&
           is_geometry_sound(head->dtype, head->ndims, record->start_offset, record->words,
                             &tensor) &&
           (!(head->flags & GBX_DUMP_STATISTICS) || are_statistics_sound(&tensor, record->words));
}

/* The number of words of one slot; 0 when it is invalid. */
static uint32_t sound_slot_words(const uint64_t *words, uint64_t left) {
    gbx_dump_slot slot;
    gbx_tensor tensor;
    if (left < GBX_DUMP_SLOT_WORDS)
        return 0;
    memcpy(&slot, words, sizeof slot);
    uint32_t count = gbx_dump_slot_words(slot.is_tensor, slot.ndims);
    if (slot.ndims > GBX_MAX_DIMS || slot.is_tensor > 1 || slot.is_word > !slot.is_tensor ||
        slot.role > GBX_ROLE_INOUT || slot.dtype >= GBX_DTYPE_COUNT || count > left)
        return 0;
    const uint64_t *geometry = words + GBX_DUMP_SLOT_WORDS + 1; /* after the address */
    if (slot.is_tensor &&
        !is_geometry_sound(slot.dtype, slot.ndims, (int64_t)geometry[0], geometry + 1, &tensor))
        return 0;
    return count;
}

static bool is_dispatch_sound(const gbx_dump_dispatch *record) {
    uint64_t at = 0;
    if (record->word_count > GBX_DUMP_BUFFER_LINES * GBX_DUMP_LINE_WORDS ||
        record->head.lines != gbx_dump_lines_of(record->word_count) ||
        record->head.arg_index > GBX_MAX_TENSOR_ARGS + GBX_MAX_SCALAR_ARGS ||
        record->subtask >= GBX_SUBTASK_COUNT || record->block_idx >= GBX_MAX_BLOCK_NUM)
        return false;
    for (uint32_t i = 0; i < record->head.arg_index; ++i) {
        uint32_t words = sound_slot_words(record->words + at, record->word_count - at);
        if (words == 0)
            return false;
        at += words;
    }
    return at == record->word_count;
}

static bool is_execution_sound(const gbx_dump_execution *record) {
    bool has_end = record->end_ns != GBX_DUMP_NO_END;
    return record->subtask < GBX_SUBTASK_COUNT && record->block_idx < GBX_MAX_BLOCK_NUM &&
           record->core_id < GBX_MAX_BLOCKS * GBX_SUBTASK_COUNT &&
           (!has_end ||
            (record->end_ns >= record->head.time_ns && !(record->end_ns >> GBX_EXACT_BITS)));
}

static bool are_edges_sound(const gbx_dump_edges *record) {
    if (record->head.arg_index > GBX_DUMP_EDGES_MAX)
        return false;
    for (uint32_t i = 0; i < record->head.arg_index; ++i)
        if (record->predecessors[i] >> GBX_COLLECTED_TASK_BITS)
            return false;
    return true;
}

static bool is_record_sound(const gbx_collector *c, const gbx_plan *plan, uint32_t line) {
    const void *at = plan->copy + (size_t)line * GBX_DUMP_LINE_BYTES;
    const gbx_dump_record *head = at;
    if (head->task >> GBX_COLLECTED_TASK_BITS || head->stage > GBX_STAGE_AFTER ||
        head->role > GBX_ROLE_INOUT || head->time_ns >> GBX_EXACT_BITS)
        return false;
    switch (head->kind) {
    case GBX_DUMP_TENSOR:
        return head->arg_index < GBX_MAX_ARGS && is_tensor_sound(at);
    case GBX_DUMP_DISPATCH:
        return is_dispatch_sound(at);
    case GBX_DUMP_EDGES:
        return head->lines == 1 && are_edges_sound(at);
    case GBX_DUMP_SCALAR:
        return head->lines == 1 && head->arg_index < GBX_MAX_ARGS && head->dtype < GBX_DTYPE_COUNT;
    case GBX_DUMP_LOSS: {
        const gbx_dump_loss *loss = at;
        return head->lines == 1 && loss->cause < GBX_DUMP_CAUSES && loss->count <= UINT32_MAX &&
               loss->argument_count <= loss->count;
    }
    case GBX_DUMP_SKIPPED:
        return head->lines == 1 && ((const gbx_dump_skipped *)at)->reason <= GBX_SKIP_MISMATCH &&
               (head->arg_index < GBX_MAX_ARGS || head->arg_index == GBX_ARG_NONE);
    case GBX_DUMP_TASK:
        return head->lines == 1 && ((const gbx_dump_task *)at)->predecessor_count <= UINT32_MAX;
    case GBX_DUMP_EXECUTION:
        return head->lines == 1 && is_execution_sound(at);
    case GBX_DUMP_SAMPLE: {
        const gbx_dump_sample *sample = at;
        return head->lines == 1 && sample->used <= c->setup->arena_bytes &&
               !(sample->waited_ns >> GBX_EXACT_BITS) && sample->causes <= GBX_WAITED_ALL;
    }
    case GBX_DUMP_DONE:
    case GBX_DUMP_PIECE:
        return head->lines == 1;
    default:
        return false;
    }
}

/* --- where its payload goes --- */

/* Positions only grow, and stay within the arena. */
static bool is_place_sound(const gbx_collector *c, const gbx_lane_source *lane, uint64_t position,
                           uint64_t bytes) {
    uint64_t arena_bytes = c->setup->arena_bytes;
    return position >= lane->position && position - lane->given <= arena_bytes &&
           bytes <= gbx_dump_piece_bytes(arena_bytes) &&
           position + bytes - lane->given <= arena_bytes &&
           position % arena_bytes + bytes <= arena_bytes;
}

/* Extends the last run when the payload follows closely in the arena and does not wrap at its
 * end. */
static gbx_plan_run *run_for(const gbx_collector *c, gbx_plan *plan, uint64_t position,
                             uint64_t bytes) {
    gbx_plan_run *last = plan->run_count ? &plan->runs[plan->run_count - 1] : NULL;
    uint64_t arena_bytes = c->setup->arena_bytes;
    if (last && last->file_offset == GBX_NOT_PLACED && position - last->end <= MERGED_GAP_BYTES &&
        position / arena_bytes == last->first / arena_bytes) {
        last->end = position + bytes;
        return last;
    }
    last = &plan->runs[plan->run_count++];
    *last =
        (gbx_plan_run){.first = position, .end = position + bytes, .file_offset = GBX_NOT_PLACED};
    return last;
}

static const gbx_dump_tensor *tensor_at(const gbx_plan *plan, uint32_t line) {
    return (const gbx_dump_tensor *)(plan->copy + (size_t)line * GBX_DUMP_LINE_BYTES);
}

/* The cell of an entry of this buffer with the same payload, or the free one for it. */
static uint16_t *find_in_plan(gbx_plan *plan, gbx_hash128 hash, uint64_t bytes) {
    uint32_t mask = sizeof plan->by_hash / sizeof plan->by_hash[0] - 1;
    for (uint32_t at = (uint32_t)hash.low & mask;; at = (at + 1) & mask) {
        if (plan->by_hash[at] == 0)
            return &plan->by_hash[at];
        const gbx_plan_entry *entry = &plan->entries[plan->by_hash[at] - 1];
        const gbx_dump_tensor *record = tensor_at(plan, entry->line);
        if (record->hash_low == hash.low && record->hash_high == hash.high && entry->bytes == bytes)
            return &plan->by_hash[at];
    }
}

static bool is_shareable(const gbx_collector *c, const gbx_dump_record *head) {
    return gbx_collector_is_shareable(c, head->flags & GBX_DUMP_IN_FLIGHT);
}

static void plan_whole(gbx_collector *c, gbx_plan *plan, gbx_plan_entry *entry,
                       const gbx_dump_tensor *record) {
    gbx_hash128 hash = {.low = record->hash_low, .high = record->hash_high};
    bool is_shared = is_shareable(c, &record->head);
    if (!is_place_sound(c, plan->lane, record->position, entry->bytes) ||
        record->position % GBX_DUMP_LINE_BYTES) {
        entry->fate = GBX_FATE_LOST;
        return;
    }
    plan->lane->position = record->position + entry->bytes;
    if (is_shared && gbx_store_find(c->store, hash, entry->bytes, &entry->bin_offset)) {
        entry->fate = GBX_FATE_DUPLICATE;
        return;
    }
    uint16_t *cell = is_shared ? find_in_plan(plan, hash, entry->bytes) : NULL;
    if (cell && *cell) {
        entry->fate = GBX_FATE_REPEATED;
        entry->original = (uint16_t)(*cell - 1);
        return;
    }
    if (cell)
        *cell = (uint16_t)(entry - plan->entries + 1);
    /* Its place in the file is known when the run is complete. */
    gbx_plan_run *run = run_for(c, plan, record->position, entry->bytes);
    entry->fate = GBX_FATE_STORE;
    entry->run = (uint16_t)(run - plan->runs);
}

static bool is_of_series(const gbx_piece_series *pieces, const gbx_dump_record *head) {
    return pieces->is_open && pieces->first.task == head->task &&
           pieces->first.stage == head->stage && pieces->first.arg_index == head->arg_index;
}

static void plan_tensor_of_pieces(gbx_plan *plan, gbx_plan_entry *entry,
                                  const gbx_dump_tensor *record) {
    gbx_piece_series *pieces = &plan->lane->pieces;
    bool is_whole = is_of_series(pieces, &record->head) && pieces->next == entry->bytes &&
                    pieces->total_bytes == entry->bytes;
    entry->fate = is_whole ? GBX_FATE_PIECED : GBX_FATE_LOST;
    entry->bin_offset = pieces->file_offset;
    pieces->is_open = false;
}

static bool is_piece_sound(const gbx_collector *c, const gbx_plan *plan,
                           const gbx_dump_piece *piece) {
    return piece->total_bytes <= c->gm_bytes && piece->offset < piece->total_bytes &&
           piece->bytes <= piece->total_bytes - piece->offset &&
           piece->position % GBX_DUMP_PAGE_BYTES == 0 && piece->offset % GBX_DUMP_PAGE_BYTES == 0 &&
           is_place_sound(c, plan->lane, piece->position, piece->bytes);
}

static void plan_piece(gbx_collector *c, gbx_plan *plan, gbx_plan_entry *entry,
                       const gbx_dump_piece *piece) {
    gbx_piece_series *pieces = &plan->lane->pieces;
    entry->fate = GBX_FATE_PIECE;
    bool is_sound = is_piece_sound(c, plan, piece);
    if (is_sound && piece->offset == 0)
        *pieces = (gbx_piece_series){.is_open = true,
                                     .first = piece->head,
                                     .file_offset = gbx_store_reserve(c->store, piece->total_bytes),
                                     .total_bytes = piece->total_bytes};
    if (!is_sound || !is_of_series(pieces, &piece->head) || pieces->next != piece->offset ||
        pieces->total_bytes != piece->total_bytes) {
        pieces->is_open = false; /* its tensor is then lost */
        return;
    }
    gbx_plan_run *run = &plan->runs[plan->run_count];
    *run = (gbx_plan_run){.first = piece->position,
                          .end = piece->position + piece->bytes,
                          .file_offset = pieces->file_offset + piece->offset};
    entry->run = (uint16_t)plan->run_count++;
    entry->bytes = piece->bytes;
    pieces->next += piece->bytes;
    plan->lane->position = piece->position + piece->bytes;
}

static void plan_record(gbx_collector *c, gbx_plan *plan, uint32_t line) {
    const void *at = plan->copy + (size_t)line * GBX_DUMP_LINE_BYTES;
    const gbx_dump_record *head = at;
    gbx_plan_entry *entry = &plan->entries[plan->entry_count++];
    *entry = (gbx_plan_entry){.line = (uint16_t)line, .fate = GBX_FATE_JOURNAL};
    if (head->kind == GBX_DUMP_PIECE) {
        plan_piece(c, plan, entry, at);
        return;
    }
    if (head->kind != GBX_DUMP_TENSOR)
        return;
    gbx_tensor tensor = {.dtype = head->dtype, .ndims = head->ndims};
    memcpy(tensor.shape, ((const gbx_dump_tensor *)at)->words, head->ndims * sizeof(uint64_t));
    entry->bytes =
        gbx_dump_kept_bytes(gbx_tensor_payload_bytes(&tensor), c->setup->max_tensor_bytes);
    if (!(head->flags & GBX_DUMP_PAYLOAD))
        return;
    if (head->flags & GBX_DUMP_PIECES)
        plan_tensor_of_pieces(plan, entry, at);
    else
        plan_whole(c, plan, entry, at);
}

static uint64_t place_in_pack(gbx_collector *c, uint64_t bytes) {
    gbx_pack *pack = &c->pack;
    uint64_t align = GBX_PAYLOAD_ALIGNMENT;
    uint64_t at = (pack->cursor + align - 1) / align * align;
    if (at + bytes > pack->limit) {
        at = gbx_store_reserve(c->store, GBX_PACK_BYTES);
        pack->limit = at + GBX_PACK_BYTES;
    }
    pack->cursor = at + bytes;
    return at;
}

static void place_entry(gbx_collector *c, gbx_plan *plan, gbx_plan_entry *entry) {
    const gbx_dump_tensor *record = tensor_at(plan, entry->line);
    const gbx_plan_run *run = &plan->runs[entry->run];
    uint64_t page = GBX_DUMP_PAGE_BYTES;
    if (run->file_offset == GBX_NOT_PLACED)
        entry->bin_offset = place_in_pack(c, entry->bytes);
    else
        entry->bin_offset = run->file_offset + (record->position - run->first / page * page);
    if (is_shareable(c, &record->head))
        gbx_store_remember(c->store,
                           (gbx_hash128){.low = record->hash_low, .high = record->hash_high},
                           entry->bytes, entry->bin_offset);
}

static void place_payload(gbx_collector *c, gbx_plan *plan) {
    uint64_t page = GBX_DUMP_PAGE_BYTES;
    for (uint32_t i = 0; i < plan->run_count; ++i) {
        gbx_plan_run *run = &plan->runs[i];
        /* Congruent with the arena, so that pages are written unchanged. */
        if (run->file_offset == GBX_NOT_PLACED && run->end - run->first >= GBX_PACKED_BELOW_BYTES)
            run->file_offset = gbx_store_reserve(c->store, run->end - run->first / page * page);
    }
    for (uint32_t i = 0; i < plan->entry_count; ++i) {
        gbx_plan_entry *entry = &plan->entries[i];
        if (entry->fate == GBX_FATE_STORE)
            place_entry(c, plan, entry);
        else if (entry->fate == GBX_FATE_REPEATED)
            entry->bin_offset = plan->entries[entry->original].bin_offset;
    }
}

void gbx_plan_make(gbx_collector *c, gbx_plan *plan) {
    plan->entry_count = plan->run_count = 0;
    memset(plan->by_hash, 0, sizeof plan->by_hash);
    for (uint32_t line = plan->first_line; line < plan->lines;) {
        gbx_dump_record head = gbx_plan_record(plan, line);
        /* The lines are those that the device wrote; one that is not a record ends them all the
         * same. It reports at its end how many records there were. */
        if (head.lines == 0 || head.lines > plan->lines - line)
            break;
        ++plan->lane->taken;
        plan->lane->taken_arguments += gbx_dump_is_argument(head.kind, head.arg_index);
        if (is_record_sound(c, plan, line))
            plan_record(c, plan, line);
        else
            plan->entries[plan->entry_count++] =
                (gbx_plan_entry){.line = (uint16_t)line, .fate = GBX_FATE_LOST};
        line += head.lines;
    }
    place_payload(c, plan);
    plan->position = plan->lane->position;
}
