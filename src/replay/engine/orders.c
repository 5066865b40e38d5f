#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "replay/engine/internal.h"

/* GBX_INVALID_ARGUMENT if the request does not fit the task. */
gbx_status gbx_replay_check_request(const gbx_replay_request *request) {
    const gbx_replay_task *task = request->task;
    if (request->dispatch >= (int64_t)task->dispatch_count || request->dispatch < -1)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "calling task %" PRIu64 " again: it has no dispatch %" PRId64
                        "; its dispatches are 0 to %" PRId64,
                        task->task, request->dispatch, (int64_t)task->dispatch_count - 1);
    for (int i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        const char *object = request->objects[i];
        if (task->func_ids[i] == UINT32_MAX)
            continue;
        if (!object || object[0] != '/' || strlen(object) >= GBX_CALL_PATH_BYTES)
            return gbx_fail(GBX_INVALID_ARGUMENT,
                            "calling task %" PRIu64
                            " again: its kernel %s needs the absolute path of a "
                            "shared object",
                            task->task, task->kernel_names[i]);
    }
    return NULL;
}

/* --- kept payloads --- */

/* In whole cache lines, one argument after the other. */
static uint64_t kept_size(const gbx_replay_argument *argument) {
    if (!argument->is_tensor || argument->role == GBX_ROLE_INPUT)
        return 0;
    return (GBX_KEPT_COUNT * gbx_tensor_payload_bytes(&argument->tensor) + 63) / 64 * 64;
}

uint64_t gbx_replay_kept_offset(const gbx_replay_task *task, uint32_t argument) {
    uint64_t offset = 0;
    for (uint32_t i = 0; i < argument; ++i)
        offset += kept_size(&task->arguments[i]);
    return offset;
}

uint64_t gbx_replay_start_offset(const gbx_replay_request *request, uint32_t argument) {
    const gbx_replay_task *task = request->task;
    uint64_t offset = gbx_replay_kept_offset(task, task->argument_count);
    for (uint32_t i = 0; request->start && i < argument; ++i)
        if (request->start[i])
            offset += (gbx_tensor_payload_bytes(&task->arguments[i].tensor) + 63) / 64 * 64;
    return offset;
}

uint64_t gbx_replay_kept_bytes(const gbx_replay_request *request) {
    return gbx_replay_start_offset(request, request->task->argument_count);
}

/* --- orders --- */

void gbx_replay_begin_batch(gbx_batch *batch, gbx_replay_filling *out_filling) {
    out_filling->task_count = batch->task_count = 0;
    out_filling->object_count = batch->object_count = 0;
    out_filling->used_bytes = (sizeof *batch + 63) / 64 * 64;
}

static uint32_t find_object(gbx_batch *batch, gbx_replay_filling *filling, const char *path) {
    for (uint32_t i = 0; i < filling->object_count; ++i)
        if (strcmp(filling->objects[i], path) == 0)
            return i;
    uint32_t number = filling->object_count++;
    filling->objects[number] = path;
    snprintf(batch->objects[number], GBX_BATCH_PATH_BYTES, "%s", path);
    batch->object_count = filling->object_count;
    return number;
}

static void fill_argument(const gbx_replay_pending *pending, const gbx_replay_layout *layout,
                          uint32_t i, gbx_order_argument *to) {
    const gbx_replay_request *request = &pending->request;
    const gbx_replay_argument *from = &request->task->arguments[i];
    *to = (gbx_order_argument){.slot = from->slot,
                               .role = from->role,
                               .kind = from->is_tensor ? GBX_CALL_TENSOR : GBX_CALL_SCALAR,
                               .bits = from->is_tensor ? 0 : from->bits,
                               .before = GBX_NO_PAYLOAD,
                               .after = GBX_NO_PAYLOAD,
                               .kept = GBX_NO_PAYLOAD};
    if (!from->is_tensor)
        return;
    to->tensor = layout->tensors[i];
    if (from->before != GBX_REPLAY_NO_ENTRY)
        to->before = from->before_offset;
    if (request->start && request->start[i]) {
        to->before = gbx_replay_start_offset(request, i);
        to->is_before_kept = 1;
    }
    if (from->after != GBX_REPLAY_NO_ENTRY && request->task->did_complete && !request->got)
        to->after = from->after_offset;
    if (pending->keeps && from->role != GBX_ROLE_INPUT)
        to->kept = gbx_replay_kept_offset(request->task, i);
    if (request->got && request->got[i]) {
        /* The last of the kept payloads: references do not need it. */
        to->after = to->kept + GBX_KEPT_OTHER_START * gbx_tensor_payload_bytes(&to->tensor);
        to->is_after_kept = 1;
    }
    if (request->tolerances)
        to->tolerance = request->tolerances[i];
}

/* A core that the dump does not record is the one that an idle chip would use. */
void gbx_replay_fill_dispatches(const gbx_replay_request *request, uint32_t chip_blocks,
                                gbx_call_dispatch *to) {
    uint32_t count = gbx_replay_request_count(request);
    for (uint32_t i = 0; i < count; ++i) {
        const gbx_replay_dispatch *from =
            &request->task->dispatches[gbx_replay_request_first(request) + i];
        to[i] = (gbx_call_dispatch){
            .subtask = from->subtask, .block_idx = from->block_idx, .core_id = from->core_id};
        if (from->core_id == GBX_REPLAY_NO_CORE)
            to[i].core_id = from->block_idx % chip_blocks * GBX_SUBTASK_COUNT + from->subtask;
    }
}

gbx_status gbx_replay_add_order(gbx_batch *batch, gbx_replay_filling *filling,
                                const gbx_replay_pending *pending, const gbx_replay_layout *layout,
                                uint32_t chip_blocks, bool *out_is_added) {
    const gbx_replay_request *request = &pending->request;
    const gbx_replay_task *task = request->task;
    uint32_t dispatch_count = gbx_replay_request_count(request);
    uint64_t bytes = sizeof(gbx_order) + task->argument_count * sizeof(gbx_order_argument) +
                     dispatch_count * sizeof(gbx_call_dispatch);
    uint64_t used = filling->used_bytes;
    *out_is_added = false;
    if (filling->task_count == GBX_BATCH_TASKS || used + bytes > GBX_BATCH_ANSWERS ||
        filling->object_count + GBX_SUBTASK_COUNT > GBX_BATCH_OBJECTS)
        return filling->task_count == 0 ? gbx_fail(GBX_EXHAUSTED, "it has too many dispatches")
                                        : NULL;
    gbx_order *order = (gbx_order *)((char *)batch + used);
    *order = (gbx_order){.gm_base = layout->gm_base,
                         .gm_bytes = layout->gm_bytes,
                         .runs = request->runs,
                         .question = pending->question,
                         .argument_count = task->argument_count,
                         .dispatch_count = dispatch_count,
                         .block_num = task->block_num,
                         .chip_blocks = chip_blocks,
                         .is_one_dispatch = request->dispatch >= 0,
                         .is_in_flight = !task->did_complete && !request->tolerances,
                         .skips = pending->skips};
    for (int i = 0; i < GBX_SUBTASK_COUNT; ++i)
        order->objects[i] = task->func_ids[i] == UINT32_MAX
                                ? GBX_NO_OBJECT
                                : find_object(batch, filling, request->objects[i]);
    for (uint32_t i = 0; i < task->argument_count; ++i)
        fill_argument(pending, layout, i, &gbx_order_arguments(order)[i]);
    gbx_replay_fill_dispatches(request, chip_blocks, gbx_order_dispatches(order));
    memset(gbx_batch_answer(batch, filling->task_count), 0, offsetof(gbx_answer, outputs));
    batch->orders[filling->task_count] = filling->orders[filling->task_count] = used;
    batch->task_count = ++filling->task_count;
    filling->used_bytes = (used + bytes + 63) / 64 * 64;
    *out_is_added = true;
    return NULL;
}
