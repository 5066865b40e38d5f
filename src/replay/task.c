#include "replay/task.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/chip.h>

#include "base/memory.h"
#include "replay/internal.h"
#include "store/reader.h"
#include "tensor/signature.h"

/* --- the task --- */

static uint32_t kernel_count(const gbx_replay_task *task) {
    uint32_t count = 0;
    for (int i = 0; i < GBX_SUBTASK_COUNT; ++i)
        count += task->func_ids[i] != UINT32_MAX;
    return count;
}

static gbx_status take_task(gbx_task_slots *slots, const gbx_record_task *record) {
    gbx_replay_task *task = slots->task;
    if (slots->has_task)
        return NULL;
    slots->has_task = true;
    task->task_id = record->task_id;
    task->block_num = record->block_num;
    memcpy(task->func_ids, record->func_ids, sizeof task->func_ids);
    const gbx_run_info *run = gbx_reader_run(slots->reader);
    for (int i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        uint32_t func_id = task->func_ids[i];
        if (func_id == UINT32_MAX)
            continue;
        const gbx_run_kernel *kernel = gbx_run_info_kernel(run, func_id);
        bool has_name = kernel && kernel->name && kernel->name[0];
        if (!has_name)
            snprintf(task->name_texts[i], sizeof task->name_texts[i], "func %" PRIu32, func_id);
        task->kernel_names[i] = has_name ? kernel->name : task->name_texts[i];
    }
    if (!(gbx_reader_get_origin(slots->reader)->known & GBX_KNOWN_SUBTASKS))
        return NULL; /* refused later, when its arguments are known */
    if (task->block_num == 0 || task->block_num > GBX_MAX_BLOCK_NUM || kernel_count(task) == 0)
        return gbx_fail(GBX_BAD_FORMAT,
                        "reading task %" PRIu64 " of the dump: it cannot have %" PRIu32
                        " kernels in %" PRIu32 " blocks; run glassbox verify",
                        task->task, kernel_count(task), task->block_num);
    task->dispatch_count = task->block_num * kernel_count(task);
    task->dispatches = calloc(task->dispatch_count, sizeof *task->dispatches);
    if (!task->dispatches)
        return gbx_fail_memory("reading the %" PRIu32 " dispatches of task %" PRIu64,
                               task->dispatch_count, task->task);
    gbx_replay_dispatch *next = task->dispatches;
    for (uint32_t block = 0; block < task->block_num; ++block)
        for (uint32_t subtask = 0; subtask < GBX_SUBTASK_COUNT; ++subtask)
            if (task->func_ids[subtask] != UINT32_MAX)
                *next++ = (gbx_replay_dispatch){subtask, block, GBX_REPLAY_NO_CORE};
    return NULL;
}

/* --- its arguments, from records --- */

static gbx_status fail_slot(const gbx_task_slots *slots, uint32_t slot, const char *what) {
    return gbx_fail(GBX_BAD_FORMAT,
                    "reading argument %" PRIu32 " of task %" PRIu64
                    " of the dump: %s; run glassbox verify",
                    slot, slots->task->task, what);
}

static gbx_status set_view(const gbx_task_slots *slots, uint32_t index, gbx_task_slot *slot,
                           const gbx_tensor *view) {
    if (slot->has_view && memcmp(&slot->view, view, sizeof slot->view) != 0)
        return fail_slot(slots, index, "two of its records have different tensors");
    gbx_status status = gbx_tensor_validate(view);
    if (status) {
        gbx_status failure = fail_slot(slots, index, gbx_status_message(status));
        gbx_status_free(status);
        return failure;
    }
    slot->view = *view;
    slot->has_view = true;
    return NULL;
}

/* Whether the record has every byte of the tensor. */
static bool is_complete(const gbx_record_tensor *record, const gbx_tensor *view) {
    uint64_t bytes = gbx_tensor_payload_bytes(view);
    if (record->head.flags & (GBX_FLAG_TRUNCATED | GBX_FLAG_OVERWRITTEN))
        return false;
    return bytes == 0 || ((record->head.flags & GBX_FLAG_HAS_PAYLOAD) && record->bin_size == bytes);
}

static gbx_status take_tensor(gbx_task_slots *slots, const gbx_record_tensor *record,
                              uint64_t entry) {
    gbx_task_slot *slot = &slots->slots[record->head.arg_index];
    bool is_in_flight = record->head.flags & GBX_FLAG_IN_FLIGHT;
    bool has_payload = record->head.flags & GBX_FLAG_HAS_PAYLOAD;
    gbx_tensor view;
    gbx_record_view(record, &view);
    GBX_TRY(set_view(slots, record->head.arg_index, slot, &view));
    slots->has_in_flight |= is_in_flight;
    if (is_in_flight)
        return NULL;
    if (record->head.stage == GBX_STAGE_BEFORE && !slot->is_before_complete) {
        slot->has_before = true;
        slot->before = entry;
        slot->before_flags = record->head.flags;
        slot->before_bytes = has_payload ? record->bin_size : 0;
        slot->before_offset = record->bin_offset;
        slot->is_before_complete = is_complete(record, &view);
    } else if (record->head.stage == GBX_STAGE_AFTER && is_complete(record, &view)) {
        slot->after = entry;
        slot->after_offset = record->bin_offset;
    }
    return NULL;
}

static gbx_status take_scalar(gbx_task_slots *slots, const gbx_record_scalar *record,
                              uint64_t entry) {
    gbx_task_slot *slot = &slots->slots[record->head.arg_index];
    if (slot->has_bits && slot->bits != record->bits)
        return fail_slot(slots, record->head.arg_index, "two of its records have different values");
    slot->has_bits = true;
    slot->bits = record->bits;
    slot->has_before = true;
    slot->before = entry;
    slots->has_in_flight |= (record->head.flags & GBX_FLAG_IN_FLIGHT) != 0;
    return NULL;
}

/* Slots beyond the count are not initialized. */
static gbx_task_slot *count_slot(gbx_task_slots *slots, uint32_t index) {
    for (; slots->count <= index; ++slots->count)
        slots->slots[slots->count] = (gbx_task_slot){.after = GBX_REPLAY_NO_ENTRY};
    return &slots->slots[index];
}

/* Sets what a slot is; false if that contradicts what is known. */
static bool know_slot(gbx_task_slots *slots, uint32_t index, bool is_tensor, uint32_t role,
                      uint32_t dtype) {
    gbx_task_slot *slot = count_slot(slots, index);
    if (slot->is_known)
        return slot->is_tensor == is_tensor && slot->role == role;
    slot->is_known = true;
    slot->is_tensor = is_tensor;
    slot->role = role;
    slot->dtype = dtype;
    return true;
}

static gbx_status take_argument(gbx_task_slots *slots, const gbx_record *record, uint64_t entry) {
    bool is_tensor = record->type == GBX_RECORD_TENSOR;
    if (!know_slot(slots, record->arg_index, is_tensor, record->role, record->dtype))
        return fail_slot(slots, record->arg_index,
                         "two of its records have different kinds or roles");
    return is_tensor ? take_tensor(slots, (const gbx_record_tensor *)record, entry)
                     : take_scalar(slots, (const gbx_record_scalar *)record, entry);
}

/* --- its arguments, from a dispatch --- */

static gbx_status take_slot(gbx_task_slots *slots, const gbx_slot_view *from) {
    uint32_t index = from->slot->arg_index;
    bool is_tensor = from->slot->is_tensor;
    if (from->slot->is_word) { /* what it is, if a record says it */
        (void)count_slot(slots, index);
        return NULL;
    }
    if (!know_slot(slots, index, is_tensor, from->slot->role, from->slot->dtype))
        return fail_slot(slots, index, "its record and its dispatch have different kinds or roles");
    gbx_task_slot *slot = &slots->slots[index];
    if (!is_tensor) {
        if (slot->has_bits && slot->bits != from->slot->bits)
            return fail_slot(slots, index, "its record and its dispatch have different values");
        slot->has_bits = true;
        slot->bits = from->slot->bits;
        return NULL;
    }
    gbx_tensor view = {.data = from->data,
                       .dtype = from->slot->dtype,
                       .ndims = from->slot->ndims,
                       .start_offset = from->start_offset};
    memcpy(view.shape, from->shape, view.ndims * sizeof view.shape[0]);
    memcpy(view.strides, from->strides, view.ndims * sizeof view.strides[0]);
    return set_view(slots, index, slot, &view);
}

/* NULL if the task does not have it. */
static gbx_replay_dispatch *find_dispatch(const gbx_replay_task *task, uint32_t block,
                                          uint32_t subtask) {
    if (block >= task->block_num || task->func_ids[subtask] == UINT32_MAX)
        return NULL;
    uint32_t place = block * kernel_count(task);
    for (uint32_t i = 0; i < subtask; ++i)
        place += task->func_ids[i] != UINT32_MAX;
    return &task->dispatches[place];
}

/* All dispatches of a task have the same arguments; only the core differs. */
static gbx_status take_dispatch(gbx_task_slots *slots, const gbx_record_dispatch *record) {
    gbx_replay_task *task = slots->task;
    gbx_replay_dispatch *dispatch = find_dispatch(task, record->block_idx, record->subtask);
    if (!dispatch)
        return gbx_fail(GBX_BAD_FORMAT,
                        "reading task %" PRIu64 " of the dump: it has no block %" PRIu32
                        " with subtask %" PRIu32 "; run glassbox verify",
                        task->task, record->block_idx, record->subtask);
    dispatch->core_id = record->core_id;
    if (slots->has_dispatches)
        return NULL;
    slots->has_dispatches = true;
    const void *at = record + 1;
    for (uint32_t i = 0; i < record->slot_count; ++i) {
        gbx_slot_view slot;
        at = gbx_record_next_slot(at, &slot);
        GBX_TRY(take_slot(slots, &slot));
    }
    return NULL;
}

/* --- its arguments, from signatures --- */

/* Whether a slot may be a tensor that was recorded as a word. */
static bool is_undeclared(const gbx_task_slot *slot) {
    return slot->is_known && !slot->is_tensor &&
           (slot->dtype == GBX_UINT64 || slot->dtype == GBX_DTYPE_NONE);
}

/* Older versions recorded a tensor that was never described as a uint64. */
static void refuse_words(gbx_task_slots *slots, const gbx_run_kernel *kernel) {
    uint32_t tensor_count = 0;
    bool is_any = false;
    for (uint32_t i = 0; i < slots->count && !is_any; ++i)
        is_any = is_undeclared(&slots->slots[i]);
    if (!is_any)
        return;
    for (size_t i = 0; i < kernel->signature_count; ++i)
        tensor_count += gbx_parameter_kind(kernel->signature[i]) < GBX_PARAMETER_SCALAR;
    for (uint32_t i = 0; i < tensor_count && i < slots->count; ++i) {
        gbx_task_slot *slot = &slots->slots[i];
        slot->is_undescribed |= is_undeclared(slot);
    }
}

/* Tensors first, then scalars. Records take precedence. */
static void expect_signature(gbx_task_slots *slots, const gbx_run_kernel *kernel) {
    uint32_t next = 0;
    uint32_t known = 0;
    slots->has_signature |= kernel->signature_count > 0;
    while (known < slots->count && slots->slots[known].is_known)
        ++known;
    if (known >= kernel->signature_count)
        return;
    for (int is_tensor = 1; is_tensor >= 0; --is_tensor)
        for (size_t i = 0; i < kernel->signature_count; ++i) {
            uint32_t parameter = gbx_parameter_kind(kernel->signature[i]);
            bool is_role = parameter == GBX_ROLE_OUTPUT || parameter == GBX_ROLE_INOUT;
            if ((parameter != GBX_PARAMETER_SCALAR) != is_tensor)
                continue;
            if (next < GBX_REPLAY_MAX_ARGUMENTS)
                (void)know_slot(slots, next, is_tensor, is_role ? parameter : GBX_ROLE_INPUT,
                                GBX_DTYPE_NONE);
            next++;
        }
}

/* --- reading --- */

static gbx_status take_record(gbx_task_slots *slots, const gbx_record *record, uint64_t *entry) {
    switch (record->type) {
    case GBX_RECORD_TASK:
        return take_task(slots, (const gbx_record_task *)record);
    case GBX_RECORD_DISPATCH:
        return slots->has_task ? take_dispatch(slots, (const gbx_record_dispatch *)record) : NULL;
    case GBX_RECORD_DONE:
        slots->has_done = true;
        return NULL;
    case GBX_RECORD_TENSOR:
    case GBX_RECORD_SCALAR:
        return take_argument(slots, record, (*entry)++);
    default:
        return NULL;
    }
}

static gbx_status read_losses(gbx_task_slots *slots) {
    uint64_t count = gbx_reader_list_count(slots->reader, GBX_LIST_LOSSES);
    for (uint64_t i = 0; i < count; ++i) {
        const gbx_record *record = NULL;
        GBX_TRY(gbx_reader_list_at(slots->reader, GBX_LIST_LOSSES, i, &record));
        const gbx_record_loss *loss = (const gbx_record_loss *)record;
        bool is_unnamed = loss->count > 1 || record->arg_index == GBX_ARG_NONE;
        slots->has_unnamed_losses |= is_unnamed;
        slots->has_early_losses |= is_unnamed && loss->cause != GBX_LOSS_DEVICE;
        if (record->task != slots->task->task || record->arg_index >= GBX_REPLAY_MAX_ARGUMENTS)
            continue;
        gbx_task_slot *slot = count_slot(slots, record->arg_index);
        slot->is_lost = true;
        slot->loss_cause = loss->cause;
    }
    return NULL;
}

static gbx_status read_skipped(gbx_task_slots *slots) {
    uint64_t count = gbx_reader_list_count(slots->reader, GBX_LIST_SKIPPED);
    for (uint64_t i = 0; i < count; ++i) {
        const gbx_record *record = NULL;
        GBX_TRY(gbx_reader_list_at(slots->reader, GBX_LIST_SKIPPED, i, &record));
        if (record->task != slots->task->task)
            continue;
        bool is_undescribed =
            gbx_record_skip_reason((const gbx_record_skipped *)record) != GBX_SKIP_MISMATCH;
        if (record->arg_index >= GBX_REPLAY_MAX_ARGUMENTS)
            slots->is_skipped = true;
        else if (is_undescribed)
            count_slot(slots, record->arg_index)->is_undescribed = true;
        else
            count_slot(slots, record->arg_index)->is_mismatched = true;
    }
    return NULL;
}

static gbx_status fill_arguments(const gbx_task_slots *slots) {
    gbx_replay_task *task = slots->task;
    task->arguments = calloc(slots->count + 1, sizeof *task->arguments);
    if (!task->arguments)
        return gbx_fail_memory("reading task %" PRIu64, task->task);
    const gbx_reader_origin *origin = gbx_reader_get_origin(slots->reader);
    task->argument_count = slots->count;
    task->has_addresses = origin->known & GBX_KNOWN_ADDRESSES;
    for (uint32_t i = 0; i < slots->count; ++i) {
        const gbx_task_slot *slot = &slots->slots[i];
        task->arguments[i] = (gbx_replay_argument){
            .slot = i,
            .role = slot->role,
            .is_tensor = slot->is_tensor,
            .tensor = slot->view,
            .bits = slot->bits,
            .dtype = slot->is_tensor ? slot->view.dtype : slot->dtype,
            .name = gbx_run_info_slot_name(gbx_reader_run(slots->reader), task->func_ids, i),
            .before = slot->has_before ? slot->before : GBX_REPLAY_NO_ENTRY,
            .after = slot->role == GBX_ROLE_INPUT ? GBX_REPLAY_NO_ENTRY : slot->after,
            .before_offset = slot->before_offset,
            .after_offset = slot->after_offset,
        };
    }
    return NULL;
}

static gbx_status read_task(gbx_task_slots *slots) {
    bool is_there = false;
    GBX_TRY(read_skipped(slots));
    GBX_TRY(read_losses(slots));
    uint64_t entry = gbx_entries_find(slots->entries, slots->task->task);
    uint64_t count = gbx_reader_count(slots->reader);
    for (uint64_t i = gbx_reader_find(slots->reader, slots->task->task); i < count; ++i) {
        const gbx_record *record = NULL;
        GBX_TRY(gbx_reader_at(slots->reader, i, &record));
        if (record->task != slots->task->task)
            break;
        is_there = true;
        GBX_TRY(take_record(slots, record, &entry));
    }
    if (!is_there && !slots->is_skipped && slots->count == 0) {
        slots->task->lack = GBX_REPLAY_LACKS_TASK;
        return gbx_fail(GBX_OUT_OF_RANGE, "the dump has no such task; see glassbox view");
    }
    const gbx_run_info *run = gbx_reader_run(slots->reader);
    for (int i = 0; slots->has_task && i < GBX_SUBTASK_COUNT; ++i) {
        const gbx_run_kernel *kernel = gbx_run_info_kernel(run, slots->task->func_ids[i]);
        if (slots->task->func_ids[i] == UINT32_MAX || !kernel)
            continue;
        refuse_words(slots, kernel);
        if (!slots->has_dispatches)
            expect_signature(slots, kernel);
    }
    bool is_journal = gbx_reader_get_origin(slots->reader)->is_journal;
    slots->task->did_complete = !slots->has_in_flight && (slots->has_done || !is_journal);
    GBX_TRY(fill_arguments(slots));
    return gbx_task_slots_check(slots);
}

gbx_status gbx_replay_task_read(gbx_entries *entries, uint64_t task, gbx_replay_task *out_task) {
    memset(out_task, 0, sizeof *out_task);
    out_task->task = task;
    for (int i = 0; i < GBX_SUBTASK_COUNT; ++i)
        out_task->func_ids[i] = UINT32_MAX;
    gbx_task_slots *slots = malloc(sizeof *slots);
    if (!slots)
        return gbx_fail_memory("reading task %" PRIu64, task);
    memset(slots, 0, offsetof(gbx_task_slots, slots));
    slots->entries = entries;
    slots->reader = gbx_entries_reader(entries);
    slots->task = out_task;
    gbx_status status = read_task(slots);
    free(slots);
    if (status)
        gbx_replay_task_free(out_task);
    return status;
}

void gbx_replay_task_free(gbx_replay_task *task) {
    free(task->arguments);
    task->arguments = NULL;
    task->argument_count = 0;
    free(task->dispatches);
    task->dispatches = NULL;
    task->dispatch_count = 0;
}

const char *gbx_replay_task_title(const gbx_replay_task *task,
                                  char out_text[GBX_REPLAY_TITLE_BYTES]) {
    int used = snprintf(out_text, GBX_REPLAY_TITLE_BYTES, "task %" PRIu64, task->task);
    const char *separator = kernel_count(task) > 1 ? ", kernels " : ", kernel ";
    for (int i = 0; i < GBX_SUBTASK_COUNT && used < GBX_REPLAY_TITLE_BYTES; ++i) {
        if (!task->kernel_names[i])
            continue;
        used += snprintf(out_text + used, (size_t)(GBX_REPLAY_TITLE_BYTES - used), "%s%.80s",
                         separator, task->kernel_names[i]);
        separator = ", ";
    }
    return out_text;
}
