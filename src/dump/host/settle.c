#include <string.h>

#include <glassbox/tensor.h>

#include "base/log.h"
#include "dump/host/internal.h"
#include "tensor/view.h"

static_assert(GBX_DUMP_NO_END == GBX_NO_END_NS, "one number on the device and in the journal");

enum { WORD = sizeof(uint64_t) };

const gbx_dump_record gbx_no_record = {.stage = GBX_STAGE_NONE, .arg_index = GBX_ARG_NONE};

/* --- payload --- */

void gbx_collector_note_failure(gbx_collector *c, uint64_t first, uint64_t end) {
    if (c->failed_count < GBX_FAILED_RANGES) {
        c->failed[c->failed_count].first = first;
        c->failed[c->failed_count++].end = end;
        return;
    }
    uint32_t last = GBX_FAILED_RANGES - 1;
    if (first < c->failed[last].first)
        c->failed[last].first = first;
    if (end > c->failed[last].end)
        c->failed[last].end = end;
}

void gbx_collector_write(gbx_collector *c, uint64_t offset, const void *pages, uint64_t bytes) {
    gbx_status status = gbx_store_write(c->store, offset, pages, bytes);
    if (!status)
        return;
    if (!c->has_disk_failed)
        gbx_log_error("%s; what cannot be written is counted as lost", gbx_status_message(status));
    c->has_disk_failed = true;
    gbx_collector_note_failure(c, offset, offset + bytes);
    gbx_status_free(status);
}

/* The last page is written again when more payload goes into it. */
static void write_pack(gbx_collector *c) {
    gbx_pack *pack = &c->pack;
    uint64_t page = GBX_DUMP_PAGE_BYTES;
    uint64_t first = pack->written / page * page;
    if (pack->end > pack->written)
        gbx_collector_write(c, first, pack->bytes + (first - pack->base),
                            (pack->end + page - 1) / page * page - first);
    pack->written = pack->end;
}

static void pack_payload(gbx_collector *c, const gbx_plan *plan, const gbx_plan_entry *entry) {
    gbx_pack *pack = &c->pack;
    const gbx_dump_tensor *record =
        (const gbx_dump_tensor *)(plan->copy + (size_t)entry->line * GBX_DUMP_LINE_BYTES);
    if (entry->bin_offset < pack->end || entry->bin_offset >= pack->base + GBX_PACK_BYTES ||
        entry->bin_offset + entry->bytes > pack->base + GBX_PACK_BYTES) {
        write_pack(c);
        /* A new region of the pack begins there; what comes before it in the page was lost. */
        pack->base = entry->bin_offset / GBX_DUMP_PAGE_BYTES * GBX_DUMP_PAGE_BYTES;
        pack->written = pack->end = entry->bin_offset;
        memset(pack->bytes, 0, GBX_PACK_BYTES);
    }
    memcpy(pack->bytes + (entry->bin_offset - pack->base),
           plan->lane->payload + record->position % c->setup->arena_bytes, entry->bytes);
    pack->end = entry->bin_offset + entry->bytes;
}

static void write_payload(gbx_collector *c, const gbx_plan *plan) {
    uint64_t page = GBX_DUMP_PAGE_BYTES;
    for (uint32_t i = 0; i < plan->run_count; ++i) {
        const gbx_plan_run *run = &plan->runs[i];
        uint64_t first = run->first / page * page;
        if (run->file_offset != GBX_NOT_PLACED)
            gbx_collector_write(c, run->file_offset,
                                plan->lane->payload + first % c->setup->arena_bytes,
                                (run->end + page - 1) / page * page - first);
    }
    for (uint32_t i = 0; i < plan->entry_count; ++i) {
        const gbx_plan_entry *entry = &plan->entries[i];
        if (entry->fate == GBX_FATE_STORE && plan->runs[entry->run].file_offset == GBX_NOT_PLACED)
            pack_payload(c, plan, entry);
    }
    write_pack(c);
}

/* --- records --- */

void gbx_collector_note_written(gbx_collector *c) {
    uint32_t blocks = gbx_store_block_count(c->store);
    if (blocks == c->written_blocks)
        return;
    c->written_blocks = blocks;
    c->written = c->totals;
}

/* A record with its head; NULL when the journal has failed. The caller counts it after that. */
static void *append(gbx_collector *c, gbx_record_type type, size_t bytes, uint32_t thread,
                    const gbx_dump_record *from) {
    gbx_collector_note_written(c);
    gbx_record *head = gbx_store_append(c->store, type, (uint32_t)(bytes / WORD));
    gbx_collector_note_written(c);
    if (!head) {
        c->refused +=
            type == GBX_RECORD_TENSOR || type == GBX_RECORD_SCALAR || type == GBX_RECORD_DISPATCH;
        return NULL;
    }
    head->stage = from->stage;
    head->role = from->role;
    head->arg_index = from->arg_index;
    head->dtype = from->dtype;
    head->ndims = 0;
    head->flags = from->flags & GBX_DUMP_IN_FLIGHT ? GBX_FLAG_IN_FLIGHT : 0;
    head->thread = (uint16_t)thread;
    head->tail_words = 0;
    head->task = from->task;
    head->time_ns = from->time_ns;
    return head;
}

void gbx_collector_lose(gbx_collector *c, const gbx_dump_record *first, uint32_t thread,
                        const gbx_collector_loss *loss) {
    bool is_known = !(first->task >> GBX_COLLECTED_TASK_BITS) && first->stage <= GBX_STAGE_AFTER &&
                    first->role <= GBX_ROLE_INOUT && !(first->time_ns >> GBX_EXACT_BITS) &&
                    (first->arg_index < GBX_MAX_ARGS || first->arg_index == GBX_ARG_NONE);
    gbx_record_loss *to = append(c, GBX_RECORD_LOSS, sizeof *to + sizeof(gbx_record_lost), thread,
                                 is_known ? first : &gbx_no_record);
    c->totals.dump.dropped += loss->count;
    c->totals.sums.lost_arguments += loss->argument_count;
    if (!to)
        return;
    to->head.flags = 0;
    to->head.dtype = 0;
    to->cause = loss->cause;
    to->is_least = loss->is_least;
    to->count = loss->count;
    *(gbx_record_lost *)(void *)(to + 1) =
        (gbx_record_lost){.argument_count = loss->argument_count};
}

static void journal_task(gbx_collector *c, uint32_t thread, const gbx_dump_task *from) {
    gbx_record_task *to =
        append(c, GBX_RECORD_TASK, sizeof *to + sizeof(gbx_record_announced), thread, &from->head);
    if (!to)
        return;
    to->head.stage = GBX_STAGE_NONE;
    to->task_id = from->head.task;
    memcpy(to->func_ids, from->func_ids, sizeof to->func_ids);
    to->block_num = from->block_num;
    to->predecessor_count = (uint32_t)from->predecessor_count;
    to->reserved = 0;
    *(gbx_record_announced *)(void *)(to + 1) =
        (gbx_record_announced){.before = from->announced_before, .after = from->announced_after};
    ++c->totals.tasks;
}

static void journal_edges(gbx_collector *c, uint32_t thread, const gbx_dump_edges *from) {
    size_t bytes = from->head.arg_index * sizeof from->predecessors[0];
    gbx_record *to = append(c, GBX_RECORD_EDGES, sizeof *to + bytes, thread, &from->head);
    if (!to)
        return;
    to->stage = GBX_STAGE_NONE;
    to->arg_index = GBX_ARG_NONE;
    memcpy(to + 1, from->predecessors, bytes);
}

static void journal_scalar(gbx_collector *c, uint32_t thread, const gbx_dump_scalar *from) {
    gbx_store_announce_dtype(c->store, from->head.dtype);
    gbx_record_scalar *to = append(c, GBX_RECORD_SCALAR, sizeof *to, thread, &from->head);
    if (!to)
        return;
    to->bits = from->bits;
    ++c->totals.dump.records;
}

static uint16_t tensor_flags(const gbx_dump_tensor *from, const gbx_plan_entry *entry) {
    gbx_tensor tensor = {
        .dtype = from->head.dtype, .ndims = from->head.ndims, .start_offset = from->start_offset};
    memcpy(tensor.shape, from->words, from->head.ndims * sizeof(uint64_t));
    memcpy(tensor.strides, from->words + from->head.ndims, from->head.ndims * sizeof(uint64_t));
    bool is_duplicate = entry->fate == GBX_FATE_DUPLICATE || entry->fate == GBX_FATE_REPEATED;
    return (uint16_t)((gbx_tensor_is_contiguous(&tensor) ? GBX_FLAG_CONTIGUOUS : 0u) |
                      (from->head.flags & GBX_DUMP_PAYLOAD ? GBX_FLAG_HAS_PAYLOAD : 0u) |
                      (from->head.flags & GBX_DUMP_HASH ? GBX_FLAG_HAS_HASH : 0u) |
                      (from->head.flags & GBX_DUMP_STATISTICS ? GBX_FLAG_HAS_STATS : 0u) |
                      (from->head.flags & GBX_DUMP_TRUNCATED ? GBX_FLAG_TRUNCATED : 0u) |
                      (from->head.flags & GBX_DUMP_IN_FLIGHT ? GBX_FLAG_IN_FLIGHT : 0u) |
                      (entry->fate == GBX_FATE_PIECED ? GBX_FLAG_PIECES : 0u) |
                      (is_duplicate ? GBX_FLAG_DUPLICATE : 0u));
}

static void journal_tensor(gbx_collector *c, uint32_t thread, const gbx_dump_tensor *from,
                           const gbx_plan_entry *entry) {
    size_t words = gbx_dump_tensor_words(from->head.ndims, from->head.flags);
    gbx_store_announce_dtype(c->store, from->head.dtype);
    gbx_record_tensor *to =
        append(c, GBX_RECORD_TENSOR, sizeof *to + words * WORD, thread, &from->head);
    if (!to)
        return;
    bool has_payload = from->head.flags & GBX_DUMP_PAYLOAD;
    uint16_t flags = tensor_flags(from, entry);
    to->head.ndims = from->head.ndims;
    to->head.flags = flags;
    to->buffer_addr = from->data;
    to->bin_offset = has_payload ? entry->bin_offset : 0;
    to->bin_size = has_payload ? entry->bytes : 0;
    to->hash_low = from->hash_low;
    to->hash_high = from->hash_high;
    to->start_offset = from->start_offset;
    uint64_t *kept = (uint64_t *)(to + 1);
    memcpy(kept, from->words, words * WORD);
    gbx_keep_strides(from->head.ndims, kept, kept + from->head.ndims);
    gbx_dump_totals *totals = &c->totals.dump;
    if (flags & GBX_FLAG_IN_FLIGHT) {
        ++totals->in_flight;
    } else {
        ++totals->records;
        ++totals->tensors;
    }
    totals->payload_bytes += to->bin_size;
    totals->stored_bytes += flags & GBX_FLAG_DUPLICATE ? 0 : to->bin_size;
    totals->deduplicated += (flags & GBX_FLAG_DUPLICATE) != 0;
    totals->truncated += (flags & GBX_FLAG_TRUNCATED) != 0;
}

static void announce_slots(gbx_collector *c, const gbx_dump_dispatch *from) {
    for (uint32_t i = 0, at = 0; i < from->head.arg_index; ++i) {
        gbx_dump_slot slot;
        memcpy(&slot, from->words + at, sizeof slot);
        gbx_store_announce_dtype(c->store, slot.dtype);
        at += gbx_dump_slot_words(slot.is_tensor, slot.ndims);
    }
}

static void journal_dispatch(gbx_collector *c, uint32_t thread, const gbx_dump_dispatch *from) {
    announce_slots(c, from);
    gbx_record_dispatch *to = append(
        c, GBX_RECORD_DISPATCH, sizeof *to + from->word_count * (size_t)WORD, thread, &from->head);
    if (!to)
        return;
    to->head.arg_index = GBX_ARG_NONE;
    to->task_id = from->head.task;
    to->func_id = from->func_id;
    to->core_id = from->core_id;
    to->block_idx = from->block_idx;
    to->block_num = from->block_num;
    to->subtask = from->subtask;
    to->slot_count = from->head.arg_index;
    to->local_context = from->local_context;
    to->global_context = from->global_context;
    uint64_t *words = (uint64_t *)(to + 1);
    memcpy(words, from->words, from->word_count * (size_t)WORD);
    /* The heads of slots have one field more in the journal. */
    for (uint32_t i = 0, at = 0; i < to->slot_count; ++i) {
        gbx_dump_slot slot;
        memcpy(&slot, words + at, sizeof slot);
        gbx_record_slot kept = {.arg_index = (uint8_t)i,
                                .is_tensor = slot.is_tensor,
                                .role = slot.role,
                                .dtype = slot.dtype,
                                .ndims = slot.ndims,
                                .is_word = slot.is_word,
                                .bits = slot.bits};
        memcpy(words + at, &kept, sizeof kept);
        uint64_t *shape = words + at + GBX_DUMP_SLOT_WORDS + 2; /* after address and offset */
        if (slot.is_tensor)
            gbx_keep_strides(slot.ndims, shape, shape + slot.ndims);
        at += gbx_dump_slot_words(slot.is_tensor, slot.ndims);
    }
    ++c->totals.dump.dispatches;
}

static void journal_skipped(gbx_collector *c, uint32_t thread, const gbx_dump_skipped *from) {
    gbx_record_skipped *to = append(c, GBX_RECORD_SKIPPED, sizeof *to, thread, &from->head);
    if (c->totals.dump.skipped++ == 0)
        c->totals.first_skipped = *from;
    c->totals.skipped_arguments += from->head.arg_index != GBX_ARG_NONE;
    if (!to)
        return;
    to->head.stage = GBX_STAGE_NONE;
    to->reason = (uint32_t)from->reason;
    to->func_id = (uint32_t)from->func_id;
}

static void journal_execution(gbx_collector *c, uint32_t thread, const gbx_dump_execution *from) {
    gbx_record_execution *to = append(c, GBX_RECORD_EXECUTION, sizeof *to, thread, &from->head);
    if (!to)
        return;
    to->head.stage = GBX_STAGE_NONE;
    to->end_ns = from->end_ns;
    to->core_id = from->core_id;
    to->block_idx = from->block_idx;
    to->subtask = from->subtask;
    to->func_id = from->func_id;
}

static void journal_sample(gbx_collector *c, uint32_t thread, const gbx_dump_sample *from) {
    gbx_record_sample *to = append(c, GBX_RECORD_SAMPLE, sizeof *to, thread, &from->head);
    if (!to)
        return;
    to->head.stage = GBX_STAGE_NONE;
    to->waited_ns = from->waited_ns;
    to->used_bytes = from->used;
    to->arena_bytes = c->setup->arena_bytes;
    to->wait_count = from->wait_count;
    to->causes = from->causes;
}

static void journal(gbx_collector *c, gbx_plan *plan, const gbx_plan_entry *entry) {
    const void *at = plan->copy + (size_t)entry->line * GBX_DUMP_LINE_BYTES;
    uint32_t thread = plan->lane->index;
    switch (((const gbx_dump_record *)at)->kind) {
    case GBX_DUMP_TASK:
        journal_task(c, thread, at);
        break;
    case GBX_DUMP_EDGES:
        journal_edges(c, thread, at);
        break;
    case GBX_DUMP_DONE: {
        gbx_record *to = append(c, GBX_RECORD_DONE, sizeof *to, thread, at);
        if (to)
            to->stage = GBX_STAGE_NONE;
        break;
    }
    case GBX_DUMP_SCALAR:
        journal_scalar(c, thread, at);
        break;
    case GBX_DUMP_TENSOR:
        journal_tensor(c, thread, at, entry);
        break;
    case GBX_DUMP_DISPATCH:
        journal_dispatch(c, thread, at);
        break;
    case GBX_DUMP_EXECUTION:
        journal_execution(c, thread, at);
        break;
    case GBX_DUMP_SAMPLE:
        journal_sample(c, thread, at);
        break;
    case GBX_DUMP_LOSS: {
        const gbx_dump_loss *loss = at;
        gbx_collector_loss lost = {.cause = (uint32_t)loss->cause,
                                   .count = loss->count,
                                   .argument_count = loss->argument_count};
        plan->lane->recorded_losses[loss->cause] += loss->count;
        plan->lane->recorded_argument_losses[loss->cause] += loss->argument_count;
        gbx_collector_lose(c, &loss->head, thread, &lost);
        break;
    }
    default:
        journal_skipped(c, thread, at);
    }
}

bool gbx_collector_has_failed(const gbx_collector *c, uint64_t offset, uint64_t bytes) {
    for (uint32_t i = 0; i < c->failed_count; ++i)
        if (offset < c->failed[i].end && offset + bytes > c->failed[i].first)
            return true;
    return false;
}

static bool is_unwritten(const gbx_collector *c, const gbx_plan_entry *entry) {
    return entry->fate != GBX_FATE_JOURNAL &&
           gbx_collector_has_failed(c, entry->bin_offset, entry->bytes);
}

void gbx_plan_settle(gbx_collector *c, gbx_plan *plan) {
    write_payload(c, plan);
    for (uint32_t i = 0; i < plan->entry_count; ++i) {
        gbx_plan_entry *entry = &plan->entries[i];
        gbx_dump_record head = gbx_plan_record(plan, entry->line);
        if (entry->fate == GBX_FATE_PIECE)
            continue;
        bool is_lost = entry->fate == GBX_FATE_LOST;
        gbx_collector_loss loss = {.cause = is_lost ? GBX_LOSS_CORRUPT : GBX_LOSS_DISK,
                                   .count = 1,
                                   .argument_count =
                                       gbx_dump_is_argument(head.kind, head.arg_index)};
        if (is_lost || is_unwritten(c, entry))
            gbx_collector_lose(c, &head, plan->lane->index, &loss);
        else
            journal(c, plan, entry);
    }
}
