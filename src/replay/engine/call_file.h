/*
 * A call file: all that glassbox-call needs to make a call. Little-endian, in this order:
 *
 *     gbx_call_file                      the header
 *     gbx_call_dispatch x dispatch_count at dispatch_offset
 *     gbx_call_extent x extent_count     at extent_offset
 *     bytes                              at the offsets in the extents
 *
 * An extent is a part of global memory with content before the call: inputs and poison. The rest of
 * global memory is zero.
 */
#ifndef GBX_REPLAY_ENGINE_CALL_FILE_H
#define GBX_REPLAY_ENGINE_CALL_FILE_H

#include <assert.h>
#include <stddef.h>

#include "replay/call.h"

#define GBX_CALL_FILE_MAGIC "GBXCALL1"
#define GBX_CALL_FILE_VERSION 1u
#define GBX_CALL_MAX_GM_BYTES (UINT64_C(32) << 30)
enum { GBX_CALL_PATH_BYTES = 4096, GBX_CALL_MAX_DISPATCHES = 65536 * GBX_SUBTASK_COUNT };

typedef struct gbx_call_file {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes; /* of this struct */
    uint64_t file_bytes;
    uint64_t gm_base;
    uint64_t gm_bytes;
    uint32_t chip_blocks;
    uint32_t block_num;
    uint32_t dispatch_count;
    uint32_t reserved;
    uint64_t dispatch_offset; /* in the file, like the next */
    uint64_t extent_offset;
    uint64_t extent_count;
    gbx_call_slot slots[GBX_CALL_SLOTS];
    char objects[GBX_SUBTASK_COUNT][GBX_CALL_PATH_BYTES]; /* zero terminated; "" for none */
} gbx_call_file;
static_assert(sizeof(gbx_call_slot) == 208, "layout of a call file");
static_assert(sizeof(gbx_call_dispatch) == 16, "layout of a call file");
static_assert(offsetof(gbx_call_file, slots) == 80, "layout of a call file");
static_assert(sizeof(gbx_call_file) == 80 + 64 * 208 + 3 * 4096, "layout of a call file");

typedef struct gbx_call_extent {
    uint64_t address;
    uint64_t bytes;
    uint64_t offset; /* in the file */
} gbx_call_extent;

/* A call file in memory. */
typedef struct gbx_loaded_call {
    gbx_kernel_call call;
    gbx_call_file *file;
    gbx_call_dispatch *dispatches;
    gbx_call_extent *extents;
} gbx_loaded_call;

/* Reads and checks all but the bytes of extents; 0, or -1 with call.error. The caller frees it in
 * either case. */
int gbx_loaded_call_read(int fd, gbx_loaded_call *out_loaded);
void gbx_loaded_call_free(gbx_loaded_call *loaded);

/* Reads the bytes of all extents into global memory, which must be mapped. */
int gbx_loaded_call_fill(gbx_loaded_call *loaded, int fd);

#endif
