#include "replay/engine/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <glassbox/chip.h>

#include "base/checked.h"
#include "base/io.h"
#include "base/memory.h"
#include "store/reader.h"

/* Address slots: each chip takes one. */
#define FIRST_SLOT UINT64_C(0x7e9000000000)
#define SLOT_BYTES GBX_MAX_GM_BYTES
enum { SLOT_COUNT = 13, PAGE_BYTES = 4096 };

/* The address range of a tensor. */
typedef struct hull {
    uint64_t start;
    uint64_t end; /* equal to start: no elements */
} hull;

/* False if the range overflows. */
static bool find_hull(const gbx_tensor *tensor, hull *out_hull) {
    int64_t first, end;
    gbx_tensor_extent(tensor, &first, &end);
    bool overflows = __builtin_add_overflow(tensor->data, first, &out_hull->start);
    overflows |= __builtin_add_overflow(tensor->data, end, &out_hull->end);
    return !overflows;
}

/* --- keeping addresses --- */

static bool fits_slot(const gbx_replay_layout *layout, const hull *hulls, uint64_t base,
                      uint64_t *out_end) {
    for (uint32_t i = 0; i < layout->count; ++i) {
        if (!layout->is_tensor[i] || hulls[i].start == hulls[i].end)
            continue;
        if (hulls[i].start < base || hulls[i].end > base + SLOT_BYTES)
            return false;
        if (hulls[i].end > *out_end)
            *out_end = hulls[i].end;
    }
    return true;
}

static void set_memory(gbx_replay_layout *layout, uint64_t base, uint64_t end, uint64_t gm_bytes) {
    uint64_t needed = end - base > gm_bytes ? end - base : gm_bytes;
    layout->gm_base = base;
    layout->gm_bytes = (needed + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static bool keep_addresses(gbx_replay_layout *layout, const hull *hulls, uint64_t gm_bytes) {
    for (uint64_t slot = 0; slot < SLOT_COUNT; ++slot) {
        uint64_t base = FIRST_SLOT + slot * SLOT_BYTES;
        uint64_t end = base;
        if (fits_slot(layout, hulls, base, &end)) {
            set_memory(layout, base, end, gm_bytes);
            return true;
        }
    }
    return false;
}

/* --- new addresses --- */

/* Groups of tensors that share a buffer, and move together. */
typedef struct grouping {
    hull hulls[GBX_REPLAY_MAX_ARGUMENTS];     /* of a group, at its first tensor */
    uint32_t group[GBX_REPLAY_MAX_ARGUMENTS]; /* the first tensor of each one's group */
} grouping;

static void join(grouping *g, const gbx_replay_layout *layout, uint32_t into, uint32_t from) {
    if (g->hulls[from].start < g->hulls[into].start)
        g->hulls[into].start = g->hulls[from].start;
    if (g->hulls[from].end > g->hulls[into].end)
        g->hulls[into].end = g->hulls[from].end;
    for (uint32_t i = 0; i < layout->count; ++i)
        if (g->group[i] == from)
            g->group[i] = into;
}

static bool has_elements(const grouping *g, const gbx_replay_layout *layout, uint32_t i) {
    return layout->is_tensor[i] && g->hulls[i].start < g->hulls[i].end;
}

/* Whether two tensors of different groups share a buffer, or their groups overlap. */
static bool belong_together(const grouping *g, const gbx_replay_layout *layout, uint32_t a,
                            uint32_t b) {
    if (g->group[a] == g->group[b] || !has_elements(g, layout, a) || !has_elements(g, layout, b))
        return false;
    const hull *of_a = &g->hulls[g->group[a]];
    const hull *of_b = &g->hulls[g->group[b]];
    return layout->tensors[a].data == layout->tensors[b].data ||
           (of_a->start < of_b->end && of_b->start < of_a->end);
}

/* Joins the first two groups that belong together; false if none do. */
static bool join_next(grouping *g, const gbx_replay_layout *layout) {
    for (uint32_t a = 0; a < layout->count; ++a)
        for (uint32_t b = a + 1; b < layout->count; ++b)
            if (belong_together(g, layout, a, b)) {
                uint32_t into = g->group[a] < g->group[b] ? g->group[a] : g->group[b];
                join(g, layout, into, g->group[a] + g->group[b] - into);
                return true;
            }
    return false;
}

/* A group keeps its offset in a page, and an empty page precedes it. */
static gbx_status place_groups(gbx_replay_layout *layout, const grouping *g, uint64_t gm_bytes) {
    uint64_t next = FIRST_SLOT + PAGE_BYTES;
    uint64_t end = next;
    for (uint32_t first = 0; first < layout->count; ++first) {
        const hull *old = &g->hulls[first];
        if (g->group[first] != first || !has_elements(g, layout, first))
            continue;
        if (old->end - old->start > FIRST_SLOT + SLOT_BYTES - next - 2 * (uint64_t)PAGE_BYTES)
            return gbx_fail(GBX_OUT_OF_RANGE,
                            "its tensors do not fit into %" PRIu64
                            " bytes, the most memory that a chip can have",
                            SLOT_BYTES);
        uint64_t move = next + old->start % PAGE_BYTES - old->start; /* may wrap around */
        for (uint32_t i = first; i < layout->count; ++i)
            if (g->group[i] == first)
                layout->tensors[i].data += move;
        end = old->end + move;
        next = (end + 2 * (uint64_t)PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
        if (next + 3 * (uint64_t)PAGE_BYTES > FIRST_SLOT + SLOT_BYTES)
            next = FIRST_SLOT + SLOT_BYTES - 2 * (uint64_t)PAGE_BYTES;
    }
    set_memory(layout, FIRST_SLOT, end, gm_bytes);
    return NULL;
}

/* --- memory needed --- */

/* In a view with large strides, each element takes a page. */
static uint64_t touched_bytes(const gbx_tensor *tensor) {
    int64_t first, end;
    gbx_tensor_extent(tensor, &first, &end);
    uint64_t whole = (uint64_t)(end - first);
    uint64_t apart;
    if (!gbx_checked_mul_u64((uint64_t)gbx_tensor_numel(tensor), PAGE_BYTES, &apart))
        apart = UINT64_MAX;
    uint64_t touched = whole < apart ? whole : apart;
    uint64_t payload = gbx_tensor_payload_bytes(tensor);
    return touched > payload ? touched : payload;
}

/* Global memory, one payload at a time, and three copies of each output: two runs and the dump. */
static gbx_status check_size(gbx_replay_layout *layout) {
    uint64_t there = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t left = there;
    uint64_t largest = 0;
    for (uint32_t i = 0; i < layout->count; ++i) {
        if (!layout->is_tensor[i])
            continue;
        uint64_t touched = touched_bytes(&layout->tensors[i]);
        uint64_t payload = gbx_tensor_payload_bytes(&layout->tensors[i]);
        uint64_t copies = layout->roles[i] == GBX_ROLE_INPUT ? 0 : 3;
        uint64_t kept;
        largest = payload > largest ? payload : largest;
        if (!gbx_checked_mul_u64(payload, copies, &kept) || touched > left || kept > left - touched)
            left = 0;
        else
            left -= touched + kept;
        if (left < largest)
            return gbx_fail(GBX_EXHAUSTED,
                            "its tensors and the copies to compare need more than the %" PRIu64
                            " bytes of memory of this machine",
                            there);
        layout->touch_bytes += touched;
    }
    return NULL;
}

gbx_status gbx_replay_layout_make(const gbx_replay_task *task, uint64_t gm_bytes,
                                  gbx_replay_layout *out_layout) {
    *out_layout = (gbx_replay_layout){.count = task->argument_count};
    for (uint32_t i = 0; i < task->argument_count; ++i) {
        out_layout->tensors[i] = task->arguments[i].tensor;
        out_layout->is_tensor[i] = task->arguments[i].is_tensor;
        out_layout->roles[i] = task->arguments[i].role;
    }
    GBX_TRY(check_size(out_layout));
    grouping groups = {0};
    bool has_addresses = task->has_addresses;
    for (uint32_t i = 0; i < out_layout->count; ++i) {
        groups.group[i] = i;
        if (out_layout->is_tensor[i])
            has_addresses &= find_hull(&out_layout->tensors[i], &groups.hulls[i]);
    }
    if (has_addresses && keep_addresses(out_layout, groups.hulls, gm_bytes))
        return NULL;
    out_layout->is_relocated = true;
    if (!has_addresses) {
        /* Each tensor has its own buffer, at an address where offsets of either sign fit. */
        for (uint32_t i = 0; i < out_layout->count; ++i) {
            out_layout->tensors[i].data = UINT64_C(1) << 63;
            if (out_layout->is_tensor[i])
                (void)find_hull(&out_layout->tensors[i], &groups.hulls[i]);
        }
    } else {
        while (join_next(&groups, out_layout))
            ;
    }
    return place_groups(out_layout, &groups, gm_bytes);
}

/* --- the memory itself --- */

enum { MAX_KEPT_PARTS = 16, MAX_KEPT_BYTES = 16 * PAGE_BYTES };
#define MAX_MIRRORED_BYTES (UINT64_C(512) << 20)

gbx_status gbx_replay_memory_open(gbx_replay_memory *memory) {
    memory->fd = gbx_above_standard_streams(
        memfd_create("glassbox-replay", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (memory->fd < 0)
        return gbx_fail(GBX_IO, "creating the memory of a call: %s", strerror(errno));
    /* A kernel with the descriptor must not shrink the file under our mapping. */
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
        return gbx_fail(GBX_IO, "mapping %" PRIu64 " bytes for the memory of a call: %s", bytes,
                        strerror(errno));
    memory->gm = gm;
    memory->bytes = bytes;
    /* A system without overcommit may refuse it: then there is no mirror. */
    void *mirror =
        mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory->mirror = mirror == MAP_FAILED ? NULL : mirror;
    if (memory->mirror) /* clearing a huge page for a few bytes is slow */
        madvise(memory->mirror, bytes, MADV_NOHUGEPAGE);
    return NULL;
}

bool gbx_replay_memory_next(const gbx_replay_memory *memory, uint64_t offset, uint64_t *out_offset,
                            uint64_t *out_bytes) {
    off_t start = lseek(memory->fd, (off_t)offset, SEEK_DATA);
    /* A kernel may have made the file longer than the mapping. */
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

/* Clears and keeps a few pages: new ones would take longer. */
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

/* The address of tensor.data in a mapping; it may lie outside if no element is there. */
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

gbx_status gbx_replay_read_payload(gbx_entries *entries, uint64_t entry, const gbx_tensor *tensor,
                                   void *out_payload) {
    gbx_entry found;
    uint64_t bytes = gbx_tensor_payload_bytes(tensor);
    GBX_TRY(gbx_entries_at(entries, entry, &found));
    if (!found.tensor || gbx_entry_stored_bytes(&found) != bytes)
        return gbx_fail(GBX_BAD_FORMAT,
                        "reading entry %" PRIu64 " of the dump: its payload does not have the "
                        "%" PRIu64 " bytes of its tensor; run glassbox verify",
                        entry, bytes);
    return gbx_reader_read_payload(gbx_entries_reader(entries), found.tensor->bin_offset,
                                   out_payload, bytes);
}

gbx_status gbx_replay_memory_restore(gbx_replay_memory *memory, const gbx_replay_layout *layout,
                                     const gbx_replay_request *request) {
    if (layout->gm_bytes > memory->bytes)
        GBX_TRY(map(memory, layout->gm_bytes));
    GBX_TRY(clear(memory));
    memory->is_mirrored = memory->mirror && layout->touch_bytes <= MAX_MIRRORED_BYTES;
    for (int is_output = 1; is_output >= 0; --is_output)
        for (uint32_t i = 0; i < layout->count; ++i) {
            const gbx_tensor *tensor = &layout->tensors[i];
            uint64_t bytes = gbx_tensor_payload_bytes(tensor);
            if (!layout->is_tensor[i] || (layout->roles[i] == GBX_ROLE_OUTPUT) != is_output ||
                bytes == 0)
                continue;
            GBX_TRY(reserve_scratch(memory, bytes));
            if (is_output)
                memset(memory->scratch, request->poison, bytes);
            else
                GBX_TRY(gbx_replay_read_payload(
                    request->entries, request->task->arguments[i].before, tensor, memory->scratch));
            scatter(memory, layout, tensor);
        }
    return NULL;
}

/* --- reading --- */

void gbx_replay_memory_gather(const gbx_replay_memory *memory, const gbx_replay_layout *layout,
                              const gbx_tensor *tensor, void *out_payload) {
    gbx_tensor_gather(tensor, buffer_of(layout, tensor, memory->gm), out_payload);
}

/* Adds the unused half byte at the end of packed rows: a kernel writes complete bytes. */
static gbx_tensor with_padding(const gbx_tensor *tensor) {
    gbx_tensor padded = *tensor;
    uint32_t last = tensor->ndims - 1;
    int64_t first, end, padded_end;
    if (!gbx_dtype_is_packed(tensor->dtype) || tensor->ndims == 0 ||
        gbx_tensor_numel(tensor) == 0 || tensor->strides[last] != 1 || tensor->shape[last] % 2 == 0)
        return padded;
    padded.shape[last]++;
    gbx_tensor_extent(tensor, &first, &end);
    gbx_tensor_extent(&padded, &first, &padded_end);
    bool is_filled = last == 0 || tensor->strides[last - 1] == padded.shape[last];
    return is_filled && padded_end == end ? padded : *tensor;
}

static void compare_bytes(const gbx_replay_memory *memory, const gbx_replay_layout *layout,
                          uint64_t offset, uint64_t bytes, gbx_replay_outcome *outcome) {
    for (uint64_t i = offset; i < offset + bytes; ++i)
        if (memory->gm[i] != memory->mirror[i] && outcome->stray_bytes++ == 0)
            outcome->stray_address = layout->gm_base + i;
}

/* Untouched memory is zero in both mappings. */
gbx_status gbx_replay_memory_find_strays(gbx_replay_memory *memory, const gbx_replay_layout *layout,
                                         gbx_replay_outcome *outcome) {
    outcome->stray_is_unknown = !memory->is_mirrored;
    if (!memory->is_mirrored)
        return NULL;
    /* First, while the mirror still has the content before the calls. */
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
    /* Outputs may have changed: copies them to the mirror. */
    for (uint32_t i = 0; i < layout->count; ++i) {
        if (!layout->is_tensor[i] || layout->roles[i] == GBX_ROLE_INPUT)
            continue;
        const gbx_tensor tensor = with_padding(&layout->tensors[i]);
        GBX_TRY(reserve_scratch(memory, gbx_tensor_payload_bytes(&tensor)));
        gbx_replay_memory_gather(memory, layout, &tensor, memory->scratch);
        gbx_tensor_scatter(&tensor, memory->scratch, buffer_of(layout, &tensor, memory->mirror));
    }
    uint64_t offset = 0;
    uint64_t bytes = 0;
    while (gbx_replay_memory_next(memory, offset + bytes, &offset, &bytes))
        for (uint64_t at = offset; at < offset + bytes; at += PAGE_BYTES)
            if (memcmp(memory->gm + at, memory->mirror + at, PAGE_BYTES) != 0)
                compare_bytes(memory, layout, at, PAGE_BYTES, outcome);
    return NULL;
}
