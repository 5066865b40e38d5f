#include "replay/engine/engine_call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replay/engine/call_file.h"

gbx_status gbx_replay_request_check(const gbx_replay_request *request) {
    const gbx_replay_task *task = request->task;
    if (request->dispatch >= (int64_t)task->dispatch_count || request->dispatch < -1)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "calling task %llu again: it has no dispatch %lld; they are 0 to %lld",
                        (unsigned long long)task->task, (long long)request->dispatch,
                        (long long)task->dispatch_count - 1);
    for (int i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        const char *object = request->objects[i];
        if (task->func_ids[i] == UINT32_MAX)
            continue;
        if (!object || object[0] != '/' || strlen(object) >= GBX_CALL_PATH_BYTES)
            return gbx_fail(GBX_INVALID_ARGUMENT,
                            "calling task %llu again: its kernel %s needs the absolute path of a "
                            "shared object",
                            (unsigned long long)task->task, task->kernel_names[i]);
    }
    return NULL;
}

uint32_t gbx_replay_request_count(const gbx_replay_request *request) {
    return request->dispatch < 0 ? request->task->dispatch_count : 1;
}

uint32_t gbx_replay_request_first(const gbx_replay_request *request) {
    return request->dispatch < 0 ? 0 : (uint32_t)request->dispatch;
}

/* --- the parts --- */

static void fill_slots(const gbx_replay_task *task, const gbx_replay_layout *layout,
                       gbx_call_file *file) {
    for (uint32_t i = 0; i < task->argument_count; ++i) {
        const gbx_replay_argument *argument = &task->arguments[i];
        gbx_call_slot *slot = &file->slots[argument->slot];
        slot->kind = argument->is_tensor ? GBX_CALL_TENSOR : GBX_CALL_SCALAR;
        slot->role = argument->role;
        slot->bits = argument->is_tensor ? 0 : argument->bits;
        if (argument->is_tensor)
            slot->tensor = layout->tensors[i];
    }
}

static void fill_header(const gbx_replay_request *request, const gbx_replay_layout *layout,
                        uint32_t chip_blocks, gbx_call_file *file) {
    memset(file, 0, sizeof *file);
    memcpy(file->magic, GBX_CALL_FILE_MAGIC, sizeof file->magic);
    file->version = GBX_CALL_FILE_VERSION;
    file->header_bytes = sizeof *file;
    file->gm_base = layout->gm_base;
    file->gm_bytes = layout->gm_bytes;
    file->chip_blocks = chip_blocks;
    file->block_num = request->task->block_num;
    file->dispatch_count = gbx_replay_request_count(request);
    file->dispatch_offset = sizeof *file;
    file->extent_offset =
        file->dispatch_offset + (uint64_t)file->dispatch_count * sizeof(gbx_call_dispatch);
    file->file_bytes = file->extent_offset;
    fill_slots(request->task, layout, file);
    for (int i = 0; i < GBX_SUBTASK_COUNT; ++i)
        if (request->task->func_ids[i] != UINT32_MAX)
            snprintf(file->objects[i], sizeof file->objects[i], "%s", request->objects[i]);
}

/* A core that the dump does not tell is the one of a chip that is idle otherwise. */
static gbx_call_dispatch *make_dispatches(const gbx_replay_request *request, uint32_t chip_blocks) {
    uint32_t count = gbx_replay_request_count(request);
    gbx_call_dispatch *dispatches = calloc(count, sizeof *dispatches);
    for (uint32_t i = 0; dispatches && i < count; ++i) {
        const gbx_replay_dispatch *from =
            &request->task->dispatches[gbx_replay_request_first(request) + i];
        dispatches[i] = (gbx_call_dispatch){
            .subtask = from->subtask, .block_idx = from->block_idx, .core_id = from->core_id};
        if (from->core_id == GBX_REPLAY_NO_CORE)
            dispatches[i].core_id =
                from->block_idx % chip_blocks * GBX_SUBTASK_COUNT + from->subtask;
    }
    return dispatches;
}

/* --- writing --- */

static gbx_status write_at(int fd, const void *bytes, uint64_t size, uint64_t offset) {
    const unsigned char *from = bytes;
    while (size > 0) {
        ssize_t count = pwrite(fd, from, size, (off_t)offset);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return gbx_fail(GBX_IO, "writing the file of a call: %s", strerror(errno));
        from += count;
        offset += (uint64_t)count;
        size -= (uint64_t)count;
    }
    return NULL;
}

static uint64_t count_extents(const gbx_replay_memory *memory) {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint64_t count = 0;
    while (memory && gbx_replay_memory_next(memory, offset + bytes, &offset, &bytes))
        ++count;
    return count;
}

/* All that memory holds, and where it lies. */
static gbx_status write_extents(const gbx_replay_memory *memory, int fd, gbx_call_file *file) {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    file->extent_count = count_extents(memory);
    file->file_bytes = file->extent_offset + file->extent_count * sizeof(gbx_call_extent);
    for (uint64_t i = 0; i < file->extent_count; ++i) {
        if (!gbx_replay_memory_next(memory, offset + bytes, &offset, &bytes))
            return gbx_fail(GBX_INTERNAL, "writing the file of a call: its memory has changed");
        gbx_call_extent extent = {
            .address = file->gm_base + offset, .bytes = bytes, .offset = file->file_bytes};
        GBX_TRY(write_at(fd, &extent, sizeof extent, file->extent_offset + i * sizeof extent));
        GBX_TRY(write_at(fd, memory->gm + offset, bytes, extent.offset));
        file->file_bytes += bytes;
    }
    return NULL;
}

static gbx_status write_parts(const gbx_replay_memory *memory, int fd, gbx_call_file *file,
                              const gbx_call_dispatch *dispatches) {
    GBX_TRY(write_extents(memory, fd, file));
    GBX_TRY(
        write_at(fd, dispatches, file->dispatch_count * sizeof *dispatches, file->dispatch_offset));
    GBX_TRY(write_at(fd, file, sizeof *file, 0));
    if (ftruncate(fd, (off_t)file->file_bytes) != 0)
        return gbx_fail(GBX_IO, "writing the file of a call: %s", strerror(errno));
    return NULL;
}

static gbx_status fail_memory(const gbx_replay_request *request) {
    return gbx_fail(GBX_EXHAUSTED, "no memory for a call of %u dispatches",
                    gbx_replay_request_count(request));
}

gbx_status gbx_replay_request_describe(const gbx_replay_request *request,
                                       const gbx_replay_layout *layout, uint32_t chip_blocks,
                                       gbx_call_file *out_file,
                                       gbx_call_dispatch **out_dispatches) {
    fill_header(request, layout, chip_blocks, out_file);
    *out_dispatches = make_dispatches(request, chip_blocks);
    return *out_dispatches ? NULL : fail_memory(request);
}

gbx_status gbx_replay_request_write(const gbx_replay_request *request,
                                    const gbx_replay_layout *layout, uint32_t chip_blocks,
                                    const gbx_replay_memory *memory, int fd) {
    gbx_call_file *file = malloc(sizeof *file);
    gbx_call_dispatch *dispatches = NULL;
    gbx_status status =
        file ? gbx_replay_request_describe(request, layout, chip_blocks, file, &dispatches)
             : fail_memory(request);
    if (!status)
        status = write_parts(memory, fd, file, dispatches);
    free(file);
    free(dispatches);
    return status;
}
