#include "replay/engine/call_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"

enum { PAGE_BYTES = 4096 };

static int fail(gbx_loaded_call *loaded, const char *what) {
    snprintf(loaded->call.error, sizeof loaded->call.error, "reading a call file: %s", what);
    return -1;
}

static int read_at(gbx_loaded_call *loaded, int fd, void *bytes, uint64_t size, uint64_t offset) {
    char *to = bytes;
    while (size > 0) {
        ssize_t count = pread(fd, to, size, (off_t)offset);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return fail(loaded, count < 0 ? strerror(errno) : "unexpected end of file");
        to += count;
        offset += (uint64_t)count;
        size -= (uint64_t)count;
    }
    return 0;
}

/* --- checking --- */

static bool is_memory(const gbx_call_file *file) {
    return file->gm_base >= PAGE_BYTES && file->gm_base % PAGE_BYTES == 0 && file->gm_bytes > 0 &&
           file->gm_bytes % PAGE_BYTES == 0 && file->gm_bytes <= GBX_CALL_MAX_GM_BYTES &&
           file->gm_base <= UINT64_MAX - GBX_CALL_MAX_GM_BYTES;
}

static const char *check_header(const gbx_call_file *file, uint64_t file_bytes) {
    if (memcmp(file->magic, GBX_CALL_FILE_MAGIC, sizeof file->magic) != 0 ||
        file->version != GBX_CALL_FILE_VERSION || file->header_bytes != sizeof *file)
        return "it is not a call file of this version";
    if (file->file_bytes != file_bytes)
        return "its length differs from that in its header";
    if (!is_memory(file) || file->chip_blocks == 0 || file->chip_blocks > GBX_CALL_MAX_BLOCKS)
        return "its chip is invalid";
    uint64_t dispatch_bytes = (uint64_t)file->dispatch_count * sizeof(gbx_call_dispatch);
    if (file->dispatch_count == 0 || file->dispatch_count > GBX_CALL_MAX_DISPATCHES ||
        !gbx_range_is_inside(file->dispatch_offset, dispatch_bytes, file->file_bytes) ||
        file->extent_count > file->file_bytes / sizeof(gbx_call_extent) ||
        !gbx_range_is_inside(file->extent_offset, file->extent_count * sizeof(gbx_call_extent),
                             file->file_bytes))
        return "a table lies outside the file";
    for (int i = 0; i < GBX_CALL_SLOTS; ++i) {
        const gbx_call_slot *slot = &file->slots[i];
        if (slot->kind > GBX_CALL_TENSOR || slot->role > 2 ||
            (slot->kind == GBX_CALL_TENSOR && slot->tensor.ndims > GBX_MAX_DIMS))
            return "an argument is neither tensor nor scalar";
    }
    for (int i = 0; i < GBX_SUBTASK_COUNT; ++i)
        if (!memchr(file->objects[i], 0, sizeof file->objects[i]))
            return "the path of a kernel is not terminated";
    return NULL;
}

/* --- reading --- */

static int read_header(gbx_loaded_call *loaded, int fd) {
    struct stat about;
    loaded->file = malloc(sizeof *loaded->file);
    if (!loaded->file)
        return fail(loaded, "out of memory");
    if (fstat(fd, &about) != 0)
        return fail(loaded, strerror(errno));
    if (read_at(loaded, fd, loaded->file, sizeof *loaded->file, 0))
        return -1;
    const char *wrong = check_header(loaded->file, (uint64_t)about.st_size);
    return wrong ? fail(loaded, wrong) : 0;
}

static int read_tables(gbx_loaded_call *loaded, int fd) {
    const gbx_call_file *file = loaded->file;
    uint64_t dispatch_bytes = (uint64_t)file->dispatch_count * sizeof *loaded->dispatches;
    uint64_t extent_bytes = file->extent_count * sizeof *loaded->extents;
    loaded->dispatches = malloc(dispatch_bytes);
    loaded->extents = malloc(extent_bytes + 1);
    if (!loaded->dispatches || !loaded->extents)
        return fail(loaded, "out of memory");
    if (read_at(loaded, fd, loaded->dispatches, dispatch_bytes, file->dispatch_offset) ||
        read_at(loaded, fd, loaded->extents, extent_bytes, file->extent_offset))
        return -1;
    for (uint32_t i = 0; i < file->dispatch_count; ++i) {
        const gbx_call_dispatch *dispatch = &loaded->dispatches[i];
        if (dispatch->subtask >= GBX_SUBTASK_COUNT || !file->objects[dispatch->subtask][0] ||
            dispatch->block_idx >= file->block_num)
            return fail(loaded, "a dispatch has no kernel or no block");
    }
    for (uint64_t i = 0; i < file->extent_count; ++i) {
        const gbx_call_extent *extent = &loaded->extents[i];
        if (extent->address < file->gm_base ||
            !gbx_range_is_inside(extent->address - file->gm_base, extent->bytes, file->gm_bytes) ||
            !gbx_range_is_inside(extent->offset, extent->bytes, file->file_bytes))
            return fail(loaded, "bytes lie outside the memory or the file");
    }
    return 0;
}

int gbx_loaded_call_read(int fd, gbx_loaded_call *out_loaded) {
    memset(out_loaded, 0, sizeof *out_loaded);
    if (read_header(out_loaded, fd) || read_tables(out_loaded, fd))
        return -1;
    const gbx_call_file *file = out_loaded->file;
    gbx_kernel_call *call = &out_loaded->call;
    call->gm_base = file->gm_base;
    call->gm_bytes = file->gm_bytes;
    call->chip_blocks = file->chip_blocks;
    call->block_num = file->block_num;
    memcpy(call->slots, file->slots, sizeof call->slots);
    for (int i = 0; i < GBX_SUBTASK_COUNT; ++i)
        call->kernels[i].object = file->objects[i][0] ? file->objects[i] : NULL;
    call->dispatches = out_loaded->dispatches;
    call->dispatch_count = file->dispatch_count;
    return 0;
}

void gbx_loaded_call_free(gbx_loaded_call *loaded) {
    free(loaded->file);
    free(loaded->dispatches);
    free(loaded->extents);
}

int gbx_loaded_call_fill(gbx_loaded_call *loaded, int fd) {
    for (uint64_t i = 0; i < loaded->file->extent_count; ++i) {
        const gbx_call_extent *extent = &loaded->extents[i];
        if (read_at(loaded, fd, (void *)(uintptr_t)extent->address, extent->bytes, extent->offset))
            return -1;
    }
    return 0;
}
