#include <string.h>

#include "dump/device/writer.h"

/* What stands in a slot, as the kernel finds it. */
static gbx_dump_slot slot_of(const gbx_lane *lane, const gbx_sched_dispatch *dispatch, uint32_t i,
                             uint32_t *scalar) {
    const gbx_task_arguments *arguments = dispatch->task->arguments;
    uint32_t kind = arguments->is_described ? arguments->kinds[i] : GBX_UINT64;
    gbx_dump_slot slot = {.bits = dispatch->args[i], .role = GBX_ROLE_INPUT};
    if (kind & GBX_WORD_TENSOR) {
        const gbx_tensor *tensor = gbx_described_tensor(lane, slot.bits);
        slot.is_tensor = tensor && tensor->ndims <= GBX_MAX_DIMS;
        slot.role = kind & GBX_WORD_ROLE;
        slot.dtype = slot.is_tensor ? (uint8_t)tensor->dtype : GBX_UINT64;
        slot.ndims = slot.is_tensor ? (uint8_t)tensor->ndims : 0;
        return slot;
    }
    slot.dtype = gbx_scalar_dtype(lane, dispatch->task, kind & GBX_WORD_DTYPE, (*scalar)++);
    return slot;
}

static uint32_t put_slot(uint64_t *words, const gbx_dump_slot *slot) {
    uint32_t count = gbx_dump_slot_words(slot->is_tensor, slot->ndims);
    memcpy(words, slot, sizeof *slot);
    words += GBX_DUMP_SLOT_WORDS;
    if (slot->is_tensor) {
        const gbx_tensor *tensor = (const gbx_tensor *)(uintptr_t)slot->bits;
        *words++ = tensor->data;
        *words++ = (uint64_t)tensor->start_offset;
        memcpy(words, tensor->shape, slot->ndims * sizeof *words);
        memcpy(words + slot->ndims, tensor->strides, slot->ndims * sizeof *words);
    }
    return count;
}

void gbx_record_dispatch(gbx_lane *lane, const gbx_sched_dispatch *dispatch) {
    const gbx_sched_task *task = dispatch->task;
    gbx_dump_slot slots[GBX_MAX_WORDS];
    uint32_t words = 0;
    uint32_t scalar = 0;
    for (uint32_t i = 0; i < task->word_count; ++i) {
        slots[i] = slot_of(lane, dispatch, i, &scalar);
        words += gbx_dump_slot_words(slots[i].is_tensor, slots[i].ndims);
    }
    gbx_dump_record head = {.task = task->id, .arg_index = GBX_ARG_NONE};
    gbx_dump_dispatch *to = gbx_lane_begin(lane, GBX_DUMP_DISPATCH, words, &head);
    if (!to)
        return;
    to->head.arg_index = task->word_count;
    to->func_id = dispatch->func_id;
    to->core_id = dispatch->core_id;
    to->block_idx = dispatch->block_idx;
    to->block_num = task->block_num;
    to->subtask = dispatch->subtask;
    to->word_count = words;
    to->local_context = dispatch->args[GBX_ARG_LOCAL_CONTEXT];
    to->global_context = dispatch->args[GBX_ARG_GLOBAL_CONTEXT];
    uint64_t *at = to->words;
    for (uint32_t i = 0; i < task->word_count; ++i)
        at += put_slot(at, &slots[i]);
    gbx_lane_commit(lane);
}
