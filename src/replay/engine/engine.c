#include "replay/engine/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glassbox/chip.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/memory.h"
#include "replay/engine/internal.h"

enum { DEFAULT_TIMEOUT_MS = 10000, DEFAULT_BLOCKS = 8 };
#define DEFAULT_GM_BYTES (UINT64_C(8) << 30)

struct gbx_replay_engine {
    int64_t timeout_ns;
    uint32_t chip_blocks;
    uint64_t gm_bytes;
    char *child_program; /* may be NULL */
    gbx_replay_memory memory;
    gbx_replay_child child;
    gbx_replay_layout layout;   /* of the last request */
    gbx_replay_request request; /* that is running */
};

static gbx_status configure(gbx_replay_engine *engine, const gbx_replay_engine_config *config) {
    engine->timeout_ns =
        (config->timeout_ms ? config->timeout_ms : DEFAULT_TIMEOUT_MS) * GBX_NS_PER_MS;
    engine->chip_blocks = config->chip_blocks ? config->chip_blocks : DEFAULT_BLOCKS;
    engine->gm_bytes = config->gm_bytes ? config->gm_bytes : DEFAULT_GM_BYTES;
    if (engine->chip_blocks > GBX_MAX_BLOCKS || engine->gm_bytes > GBX_MAX_GM_BYTES)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "calling kernels again: a chip cannot have %" PRIu32 " blocks and %" PRIu64
                        " bytes of memory; the maximum is %d and %" PRIu64,
                        engine->chip_blocks, engine->gm_bytes, GBX_MAX_BLOCKS, GBX_MAX_GM_BYTES);
    if (!config->child_program)
        return NULL;
    engine->child_program = strdup(config->child_program);
    return engine->child_program ? NULL : gbx_fail_memory("calling kernels again");
}

gbx_status gbx_replay_engine_open(const gbx_replay_engine_config *config,
                                  gbx_replay_engine **out_engine) {
    gbx_replay_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return gbx_fail_memory("calling kernels again");
    engine->memory.fd = -1;
    engine->child = (gbx_replay_child){.pid_fd = -1, .socket = -1, .file_fd = -1, .board_fd = -1};
    gbx_status status = configure(engine, config);
    if (!status)
        status = gbx_replay_memory_open(&engine->memory);
    if (!status)
        status = gbx_replay_child_open(&engine->child);
    if (status)
        gbx_replay_engine_close(engine);
    else
        *out_engine = engine;
    return status;
}

void gbx_replay_engine_close(gbx_replay_engine *engine) {
    if (!engine)
        return;
    gbx_replay_child_close(&engine->child);
    gbx_replay_memory_close(&engine->memory);
    free(engine->child_program);
    free(engine);
}

/* --- call files --- */

/* GBX_INVALID_ARGUMENT if the request does not fit the task. */
static gbx_status check_request(const gbx_replay_request *request) {
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
    for (uint32_t i = 0; i < request->task->argument_count; ++i) {
        const gbx_replay_argument *argument = &request->task->arguments[i];
        gbx_call_slot *slot = &file->slots[argument->slot];
        slot->kind = argument->is_tensor ? GBX_CALL_TENSOR : GBX_CALL_SCALAR;
        slot->role = argument->role;
        slot->bits = argument->is_tensor ? 0 : argument->bits;
        if (argument->is_tensor)
            slot->tensor = layout->tensors[i];
    }
    for (int i = 0; i < GBX_SUBTASK_COUNT; ++i)
        if (request->task->func_ids[i] != UINT32_MAX)
            snprintf(file->objects[i], sizeof file->objects[i], "%s", request->objects[i]);
}

static gbx_status write_at(int fd, const void *bytes, uint64_t size, uint64_t offset) {
    size_t written;
    int error = gbx_pwrite_all(fd, bytes, size, offset, &written);
    return error ? gbx_fail(GBX_IO, "writing a call file: %s", strerror(error)) : NULL;
}

static gbx_status write_parts(const gbx_replay_memory *memory, int fd, gbx_call_file *file,
                              const gbx_call_dispatch *dispatches) {
    /* The content of memory, with its addresses. */
    uint64_t offset = 0;
    uint64_t bytes = 0;
    file->extent_count = 0;
    while (memory && gbx_replay_memory_next(memory, offset + bytes, &offset, &bytes))
        ++file->extent_count;
    offset = bytes = 0;
    file->file_bytes = file->extent_offset + file->extent_count * sizeof(gbx_call_extent);
    for (uint64_t i = 0; i < file->extent_count; ++i) {
        if (!gbx_replay_memory_next(memory, offset + bytes, &offset, &bytes))
            return gbx_fail(GBX_INTERNAL, "writing a call file: its memory has changed");
        gbx_call_extent extent = {
            .address = file->gm_base + offset, .bytes = bytes, .offset = file->file_bytes};
        GBX_TRY(write_at(fd, &extent, sizeof extent, file->extent_offset + i * sizeof extent));
        GBX_TRY(write_at(fd, memory->gm + offset, bytes, extent.offset));
        file->file_bytes += bytes;
    }
    GBX_TRY(
        write_at(fd, dispatches, file->dispatch_count * sizeof *dispatches, file->dispatch_offset));
    GBX_TRY(write_at(fd, file, sizeof *file, 0));
    if (ftruncate(fd, (off_t)file->file_bytes) != 0)
        return gbx_fail(GBX_IO, "writing a call file: %s", strerror(errno));
    return NULL;
}

/* The header and the dispatches, which the caller frees, without the content of memory. */
static gbx_status describe_request(const gbx_replay_request *request,
                                   const gbx_replay_layout *layout, uint32_t chip_blocks,
                                   gbx_call_file *out_file, gbx_call_dispatch **out_dispatches) {
    fill_header(request, layout, chip_blocks, out_file);
    /* A core that the dump does not record is the one that an idle chip would use. */
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
    *out_dispatches = dispatches;
    return *out_dispatches ? NULL : gbx_fail_memory("writing a call file");
}

/* Writes a call file and truncates `fd` to its length. `memory` is the content before the call;
 * NULL if the child has it already. */
static gbx_status write_request(const gbx_replay_request *request, const gbx_replay_layout *layout,
                                uint32_t chip_blocks, const gbx_replay_memory *memory, int fd) {
    gbx_call_file *file = malloc(sizeof *file);
    gbx_call_dispatch *dispatches = NULL;
    gbx_status status = file ? describe_request(request, layout, chip_blocks, file, &dispatches)
                             : gbx_fail_memory("writing a call file");
    if (!status)
        status = write_parts(memory, fd, file, dispatches);
    free(file);
    free(dispatches);
    return status;
}

/* --- running --- */

static gbx_status prepare(gbx_replay_engine *engine, const gbx_replay_request *request) {
    gbx_replay_layout layout;
    engine->layout.count = 0; /* no outputs can be read until all succeeds */
    GBX_TRY(check_request(request));
    GBX_TRY(gbx_replay_layout_make(request->task, engine->gm_bytes, &layout));
    GBX_TRY(gbx_replay_memory_restore(&engine->memory, &layout, request));
    engine->layout = layout;
    return NULL;
}

gbx_status gbx_replay_begin(gbx_replay_engine *engine, const gbx_replay_request *request) {
    GBX_TRY(prepare(engine, request));
    GBX_TRY(
        write_request(request, &engine->layout, engine->chip_blocks, NULL, engine->child.file_fd));
    engine->request = *request;
    return gbx_replay_child_order(&engine->child, engine->child_program, engine->memory.fd,
                                  gbx_replay_request_count(request));
}

gbx_status gbx_replay_end(gbx_replay_engine *engine, gbx_replay_outcome *out_outcome) {
    gbx_replay_reply reply;
    GBX_TRY(gbx_replay_child_wait(&engine->child, engine->timeout_ns, &reply));
    *out_outcome = (gbx_replay_outcome){.is_relocated = engine->layout.is_relocated};
    if (reply.ending == GBX_REPLAY_ANSWERED) {
        if (reply.answer.code != GBX_CALL_DONE)
            return gbx_fail(reply.answer.code == GBX_CALL_NOT_LOADED ? GBX_BAD_KERNEL : GBX_IO,
                            "calling kernels again: %s", reply.answer.error);
        out_outcome->ns = reply.answer.ns;
    } else {
        GBX_TRY(gbx_replay_fault_describe(&engine->request, &engine->child, &reply,
                                          engine->timeout_ns, &out_outcome->fault));
    }
    return gbx_replay_memory_find_strays(&engine->memory, &engine->layout, out_outcome);
}

/* Completes the sentence of a refusal by gbx_replay_layout_make. */
static gbx_status with_title(gbx_status status) {
    gbx_code code = gbx_status_code(status);
    bool is_refusal = code == GBX_OUT_OF_RANGE || code == GBX_EXHAUSTED;
    return is_refusal ? gbx_status_annotate(status, "calling the task again") : status;
}

gbx_status gbx_replay_run(gbx_replay_engine *engine, const gbx_replay_request *request,
                          gbx_replay_outcome *out_outcome) {
    GBX_TRY(with_title(gbx_replay_begin(engine, request)));
    return gbx_replay_end(engine, out_outcome);
}

const gbx_tensor *gbx_replay_placed_tensor(const gbx_replay_engine *engine, uint32_t argument) {
    const gbx_replay_layout *layout = &engine->layout;
    bool is_there = argument < layout->count && layout->is_tensor[argument];
    return is_there ? &layout->tensors[argument] : NULL;
}

gbx_status gbx_replay_output(const gbx_replay_engine *engine, uint32_t argument,
                             void *out_payload) {
    const gbx_tensor *tensor = gbx_replay_placed_tensor(engine, argument);
    if (!tensor)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "reading argument %" PRIu32 " of a call: it is not a tensor", argument);
    gbx_replay_memory_gather(&engine->memory, &engine->layout, tensor, out_payload);
    return NULL;
}

/* --- for other programs --- */

gbx_status gbx_replay_describe_call(const gbx_replay_engine *engine,
                                    const gbx_replay_request *request, gbx_call_file *out_file,
                                    gbx_call_dispatch **out_dispatches) {
    gbx_replay_layout layout;
    GBX_TRY(check_request(request));
    GBX_TRY(with_title(gbx_replay_layout_make(request->task, engine->gm_bytes, &layout)));
    return describe_request(request, &layout, engine->chip_blocks, out_file, out_dispatches);
}

gbx_status gbx_replay_write_call(gbx_replay_engine *engine, const gbx_replay_request *request,
                                 const char *path) {
    GBX_TRY(with_title(prepare(engine, request)));
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return gbx_fail(GBX_IO, "writing %s: %s", path, strerror(errno));
    gbx_status status =
        write_request(request, &engine->layout, engine->chip_blocks, &engine->memory, fd);
    if (close(fd) != 0 && !status)
        status = gbx_fail(GBX_IO, "writing %s: %s", path, strerror(errno));
    if (status)
        unlink(path);
    return status;
}
