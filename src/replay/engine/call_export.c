#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "replay/engine/internal.h"
#include "replay/worker/pattern.h"
#include "replay/worker/picture.h"

/* --- the header --- */

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

static gbx_status describe(const gbx_replay_engine *engine, const gbx_replay_request *request,
                           gbx_replay_layout *out_layout, gbx_call_file *out_file,
                           gbx_call_dispatch **out_dispatches) {
    const gbx_replay_settings *settings = gbx_replay_engine_settings(engine);
    GBX_TRY(gbx_replay_check_request(request));
    GBX_TRY(gbx_replay_with_title(
        gbx_replay_layout_make(request->task, settings->gm_bytes, out_layout)));
    fill_header(request, out_layout, settings->chip_blocks, out_file);
    *out_dispatches = calloc(out_file->dispatch_count, sizeof **out_dispatches);
    if (!*out_dispatches)
        return gbx_fail_memory("writing a call file");
    gbx_replay_fill_dispatches(request, settings->chip_blocks, *out_dispatches);
    return NULL;
}

gbx_status gbx_replay_describe_call(const gbx_replay_engine *engine,
                                    const gbx_replay_request *request, gbx_call_file *out_file,
                                    gbx_call_dispatch **out_dispatches) {
    gbx_replay_layout layout;
    return describe(engine, request, &layout, out_file, out_dispatches);
}

/* --- with the content of memory --- */

static gbx_status write_at(int fd, const void *bytes, uint64_t size, uint64_t offset) {
    size_t written;
    int error = gbx_pwrite_all(fd, bytes, size, offset, &written);
    return error ? gbx_fail(GBX_IO, "writing a call file: %s", strerror(error)) : NULL;
}

/* What memory holds before the call: the mirror of a picture that is never mapped. */
static gbx_status paint(gbx_replay_engine *engine, const gbx_order *order, gbx_picture *picture) {
    gbx_payloads payloads = {0};
    payloads.dump = gbx_replay_engine_payload(engine, &payloads.dump_bytes);
    gbx_picture_find_windows(picture, order);
    picture->mirror = malloc(picture->bytes + 1);
    if (!picture->mirror)
        return gbx_fail_memory("writing a call file");
    gbx_picture_paint(picture, order, &payloads, GBX_PATTERN_FIRST);
    return NULL;
}

static gbx_status write_parts(const gbx_picture *picture, int fd, gbx_call_file *file,
                              const gbx_call_dispatch *dispatches) {
    file->extent_count = picture->window_count;
    file->file_bytes = file->extent_offset + file->extent_count * sizeof(gbx_call_extent);
    for (uint32_t i = 0; i < picture->window_count; ++i) {
        /* The page before or after all others may not be part of global memory. */
        const gbx_window *window = &picture->windows[i];
        uint64_t before = window->start < file->gm_base ? file->gm_base - window->start : 0;
        uint64_t end = window->start + window->bytes, gm_end = file->gm_base + file->gm_bytes;
        gbx_call_extent extent = {.address = window->start + before,
                                  .bytes = (end < gm_end ? end : gm_end) - window->start - before,
                                  .offset = file->file_bytes};
        GBX_TRY(write_at(fd, &extent, sizeof extent, file->extent_offset + i * sizeof extent));
        GBX_TRY(
            write_at(fd, picture->mirror + window->offset + before, extent.bytes, extent.offset));
        file->file_bytes += extent.bytes;
    }
    GBX_TRY(
        write_at(fd, dispatches, file->dispatch_count * sizeof *dispatches, file->dispatch_offset));
    GBX_TRY(write_at(fd, file, sizeof *file, 0));
    if (ftruncate(fd, (off_t)file->file_bytes) != 0)
        return gbx_fail(GBX_IO, "writing a call file: %s", strerror(errno));
    return NULL;
}

/* All parts of a call file that is being written. */
typedef struct writing {
    gbx_replay_layout layout;
    gbx_call_file file;
    gbx_call_dispatch *dispatches;
    gbx_batch *batch; /* with one order: what a picture is made from */
    gbx_replay_filling filling;
    gbx_picture picture;
} writing;

static gbx_status prepare(gbx_replay_engine *engine, const gbx_replay_request *request,
                          writing *w) {
    bool is_added;
    GBX_TRY(describe(engine, request, &w->layout, &w->file, &w->dispatches));
    w->batch = calloc(1, GBX_BATCH_BYTES);
    if (!w->batch)
        return gbx_fail_memory("writing a call file");
    const gbx_replay_pending pending = {.request = *request};
    gbx_replay_begin_batch(w->batch, &w->filling);
    GBX_TRY(gbx_replay_add_order(w->batch, &w->filling, &pending, &w->layout,
                                 gbx_replay_engine_settings(engine)->chip_blocks, &is_added));
    return paint(engine, gbx_batch_order(w->batch, 0), &w->picture);
}

static gbx_status write_file(const writing *w, gbx_call_file *file, const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return gbx_fail(GBX_IO, "writing %s: %s", path, strerror(errno));
    gbx_status status = write_parts(&w->picture, fd, file, w->dispatches);
    if (close(fd) != 0 && !status)
        status = gbx_fail(GBX_IO, "writing %s: %s", path, strerror(errno));
    if (status)
        unlink(path);
    return status;
}

gbx_status gbx_replay_write_call(gbx_replay_engine *engine, const gbx_replay_request *request,
                                 const char *path) {
    writing *w = calloc(1, sizeof *w);
    if (!w)
        return gbx_fail_memory("writing a call file");
    gbx_status status = prepare(engine, request, w);
    if (!status)
        status = write_file(w, &w->file, path);
    free(w->picture.mirror);
    free(w->batch);
    free(w->dispatches);
    free(w);
    return status;
}
