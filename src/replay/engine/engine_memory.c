#include "replay/engine/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "store/reader.h"

enum { PAGE_BYTES = 4096, MAX_KEPT_PARTS = 16, MAX_KEPT_BYTES = 16 * PAGE_BYTES };
#define MAX_MIRRORED_BYTES (UINT64_C(512) << 20)

/* --- opening --- */

gbx_status gbx_replay_memory_open(gbx_replay_memory *memory) {
    memory->fd = gbx_above_standard_streams(
        memfd_create("glassbox-replay", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (memory->fd < 0)
        return gbx_fail(GBX_IO, "creating the memory of a call: %s", strerror(errno));
    /* A kernel that got hold of the descriptor cannot shrink the file under our mapping. */
    if (fcntl(memory->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
        return gbx_fail(GBX_IO, "sealing the memory of a call: %s", strerror(errno));
    return NULL;
}

static void unmap(gbx_replay_memory *memory) {
    if (memory->gm)
        munmap(memory->gm, memory->bytes);
    if (memory->mirror)
        munmap(memory->mirror, memory->bytes);
    memory->gm = NULL;
    memory->mirror = NULL;
    memory->bytes = 0;
}

void gbx_replay_memory_close(gbx_replay_memory *memory) {
    unmap(memory);
    free(memory->scratch);
    if (memory->fd >= 0)
        close(memory->fd);
}

static gbx_status map(gbx_replay_memory *memory, uint64_t bytes) {
    unmap(memory);
    if (ftruncate(memory->fd, (off_t)bytes) != 0)
        return gbx_fail(GBX_IO, "sizing the memory of a call to %" PRIu64 " bytes: %s", bytes,
                        strerror(errno));
    int protection = PROT_READ | PROT_WRITE;
    void *gm = mmap(NULL, bytes, protection, MAP_SHARED | MAP_NORESERVE, memory->fd, 0);
    if (gm == MAP_FAILED)
        return gbx_fail(GBX_IO, "mapping %" PRIu64 " bytes of memory of a call: %s", bytes,
                        strerror(errno));
    memory->gm = gm;
    memory->bytes = bytes;
    /* A system that promises no more memory than it has may refuse this one: then there is none. */
    void *mirror =
        mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory->mirror = mirror == MAP_FAILED ? NULL : mirror;
    if (memory->mirror) /* a huge page for a few bytes is much to clear */
        madvise(memory->mirror, bytes, MADV_NOHUGEPAGE);
    return NULL;
}

bool gbx_replay_memory_next(const gbx_replay_memory *memory, uint64_t offset, uint64_t *out_offset,
                            uint64_t *out_bytes) {
    off_t start = lseek(memory->fd, (off_t)offset, SEEK_DATA);
    /* A kernel may have made the file longer than what is mapped. */
    if (start < 0 || (uint64_t)start >= memory->bytes)
        return false;
    off_t end = lseek(memory->fd, start, SEEK_HOLE);
    bool is_last = end < 0 || (uint64_t)end > memory->bytes;
    *out_offset = (uint64_t)start;
    *out_bytes = (is_last ? memory->bytes : (uint64_t)end) - (uint64_t)start;
    return true;
}

static gbx_status give_back(gbx_replay_memory *memory) {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    while (gbx_replay_memory_next(memory, offset + bytes, &offset, &bytes))
        if (fallocate(memory->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                      (off_t)bytes) != 0)
            return gbx_fail(GBX_IO, "clearing the memory of a call: %s", strerror(errno));
    if (memory->mirror)
        madvise(memory->mirror, memory->bytes, MADV_DONTNEED);
    return NULL;
}

/* Few pages are cleared and kept: to get new ones takes longer. */
static gbx_status clear(gbx_replay_memory *memory) {
    uint64_t offsets[MAX_KEPT_PARTS];
    uint64_t sizes[MAX_KEPT_PARTS];
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint64_t total = 0;
    size_t count = 0;
    for (; gbx_replay_memory_next(memory, offset + bytes, &offset, &bytes); ++count) {
        total += bytes;
        if (count == MAX_KEPT_PARTS || total > MAX_KEPT_BYTES)
            return give_back(memory);
        offsets[count] = offset;
        sizes[count] = bytes;
    }
    for (size_t i = 0; i < count; ++i) {
        memset(memory->gm + offsets[i], 0, sizes[i]);
        if (memory->mirror)
            memset(memory->mirror + offsets[i], 0, sizes[i]);
    }
    return NULL;
}

/* --- restoring --- */

static gbx_status reserve_scratch(gbx_replay_memory *memory, uint64_t bytes) {
    if (bytes <= memory->scratch_bytes)
        return NULL;
    free(memory->scratch);
    memory->scratch = malloc(bytes);
    memory->scratch_bytes = memory->scratch ? bytes : 0;
    if (!memory->scratch)
        return gbx_fail_memory("restoring a tensor of %" PRIu64 " bytes", bytes);
    return NULL;
}

/* Where tensor.data lies in a mapping; it may point beside it where no element does. */
static void *buffer_of(const gbx_replay_layout *layout, const gbx_tensor *tensor,
                       unsigned char *mapping) {
    return (void *)((uintptr_t)mapping + (uintptr_t)(tensor->data - layout->gm_base));
}

static void scatter(gbx_replay_memory *memory, const gbx_replay_layout *layout,
                    const gbx_tensor *tensor) {
    gbx_tensor_scatter(tensor, memory->scratch, buffer_of(layout, tensor, memory->gm));
    if (memory->is_mirrored)
        gbx_tensor_scatter(tensor, memory->scratch, buffer_of(layout, tensor, memory->mirror));
}

static gbx_status poison_outputs(gbx_replay_memory *memory, const gbx_replay_layout *layout,
                                 unsigned char poison) {
    for (uint32_t i = 0; i < layout->count; ++i) {
        if (!layout->is_tensor[i] || layout->roles[i] != GBX_ROLE_OUTPUT)
            continue;
        uint64_t bytes = gbx_tensor_payload_bytes(&layout->tensors[i]);
        GBX_TRY(reserve_scratch(memory, bytes));
        if (bytes > 0)
            memset(memory->scratch, poison, bytes);
        scatter(memory, layout, &layout->tensors[i]);
    }
    return NULL;
}

gbx_status gbx_replay_read_payload(gbx_entries *entries, uint64_t entry, const gbx_tensor *tensor,
                                   void *out_payload) {
    gbx_entry found;
    uint64_t bytes = gbx_tensor_payload_bytes(tensor);
    GBX_TRY(gbx_entries_at(entries, entry, &found));
    if (!found.tensor || gbx_entry_stored_bytes(&found) != bytes)
        return gbx_fail(GBX_BAD_FORMAT,
                        "reading entry %" PRIu64 " of the dump: its payload has not the %" PRIu64
                        " bytes of its tensor; glassbox verify tells more",
                        entry, bytes);
    return gbx_reader_read_payload(gbx_entries_reader(entries), found.tensor->bin_offset,
                                   out_payload, bytes);
}

static gbx_status restore_inputs(gbx_replay_memory *memory, const gbx_replay_layout *layout,
                                 const gbx_replay_request *request) {
    for (uint32_t i = 0; i < layout->count; ++i) {
        uint64_t bytes = gbx_tensor_payload_bytes(&layout->tensors[i]);
        if (!layout->is_tensor[i] || layout->roles[i] == GBX_ROLE_OUTPUT || bytes == 0)
            continue;
        GBX_TRY(reserve_scratch(memory, bytes));
        GBX_TRY(gbx_replay_read_payload(request->entries, request->task->arguments[i].before,
                                        &layout->tensors[i], memory->scratch));
        scatter(memory, layout, &layout->tensors[i]);
    }
    return NULL;
}

gbx_status gbx_replay_memory_restore(gbx_replay_memory *memory, const gbx_replay_layout *layout,
                                     const gbx_replay_request *request) {
    if (layout->gm_bytes > memory->bytes)
        GBX_TRY(map(memory, layout->gm_bytes));
    GBX_TRY(clear(memory));
    memory->is_mirrored = memory->mirror && layout->touch_bytes <= MAX_MIRRORED_BYTES;
    GBX_TRY(poison_outputs(memory, layout, request->poison));
    return restore_inputs(memory, layout, request);
}

/* --- looking --- */

void gbx_replay_memory_gather(const gbx_replay_memory *memory, const gbx_replay_layout *layout,
                              const gbx_tensor *tensor, void *out_payload) {
    gbx_tensor_gather(tensor, buffer_of(layout, tensor, memory->gm), out_payload);
}

/* Before anything else is done to the mirror, which still has what was there before. */
static void note_unchanged(const gbx_replay_memory *memory, const gbx_replay_layout *layout,
                           gbx_replay_outcome *outcome) {
    for (uint32_t i = 0; i < layout->count; ++i) {
        const gbx_tensor *tensor = &layout->tensors[i];
        int64_t first, end;
        if (!layout->is_tensor[i] || layout->roles[i] == GBX_ROLE_INPUT)
            continue;
        gbx_tensor_extent(tensor, &first, &end);
        uint64_t offset = tensor->data + (uint64_t)first - layout->gm_base;
        if (end > first &&
            memcmp(memory->gm + offset, memory->mirror + offset, (size_t)(end - first)) == 0)
            outcome->unchanged |= UINT64_C(1) << i;
    }
}

/* Rows of int4 that end in half a byte, with the other half, which is nobody's: a kernel writes
 * bytes. */
static gbx_tensor with_padding(const gbx_tensor *tensor) {
    gbx_tensor padded = *tensor;
    uint32_t last = tensor->ndims - 1;
    int64_t first, end, padded_end;
    if (tensor->dtype != GBX_INT4 || tensor->ndims == 0 || gbx_tensor_numel(tensor) == 0 ||
        tensor->strides[last] != 1 || tensor->shape[last] % 2 == 0)
        return padded;
    padded.shape[last]++;
    gbx_tensor_extent(tensor, &first, &end);
    gbx_tensor_extent(&padded, &first, &padded_end);
    bool is_filled = last == 0 || tensor->strides[last - 1] == padded.shape[last];
    return is_filled && padded_end == end ? padded : *tensor;
}

/* What outputs hold now is what they may hold: from here on the mirror says so. */
static gbx_status allow_outputs(gbx_replay_memory *memory, const gbx_replay_layout *layout) {
    for (uint32_t i = 0; i < layout->count; ++i) {
        if (!layout->is_tensor[i] || layout->roles[i] == GBX_ROLE_INPUT)
            continue;
        const gbx_tensor tensor = with_padding(&layout->tensors[i]);
        GBX_TRY(reserve_scratch(memory, gbx_tensor_payload_bytes(&tensor)));
        gbx_replay_memory_gather(memory, layout, &tensor, memory->scratch);
        gbx_tensor_scatter(&tensor, memory->scratch, buffer_of(layout, &tensor, memory->mirror));
    }
    return NULL;
}

static void compare_bytes(const gbx_replay_memory *memory, const gbx_replay_layout *layout,
                          uint64_t offset, uint64_t bytes, gbx_replay_outcome *outcome) {
    for (uint64_t i = offset; i < offset + bytes; ++i)
        if (memory->gm[i] != memory->mirror[i] && outcome->stray_bytes++ == 0)
            outcome->stray_address = layout->gm_base + i;
}

/* Memory that was never touched is zero here and there. */
gbx_status gbx_replay_memory_find_strays(gbx_replay_memory *memory, const gbx_replay_layout *layout,
                                         gbx_replay_outcome *outcome) {
    outcome->stray_is_unknown = !memory->is_mirrored;
    if (!memory->is_mirrored)
        return NULL;
    note_unchanged(memory, layout, outcome);
    GBX_TRY(allow_outputs(memory, layout));
    uint64_t offset = 0;
    uint64_t bytes = 0;
    while (gbx_replay_memory_next(memory, offset + bytes, &offset, &bytes))
        for (uint64_t at = offset; at < offset + bytes; at += PAGE_BYTES)
            if (memcmp(memory->gm + at, memory->mirror + at, PAGE_BYTES) != 0)
                compare_bytes(memory, layout, at, PAGE_BYTES, outcome);
    return NULL;
}
