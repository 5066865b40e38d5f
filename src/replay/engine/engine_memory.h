/*
 * Global memory of a call: a memfd of which only what is touched takes memory, and beside it a
 * mirror that holds what ought to be there, to find bytes that nobody was allowed to change.
 */
#ifndef GBX_REPLAY_ENGINE_ENGINE_MEMORY_H
#define GBX_REPLAY_ENGINE_ENGINE_MEMORY_H

#include "replay/engine/engine.h"
#include "replay/engine/engine_layout.h"

typedef struct gbx_replay_memory {
    int fd;
    uint64_t bytes;        /* of the file and of both mappings */
    unsigned char *gm;     /* where this process sees it */
    unsigned char *mirror; /* NULL where there is none */
    bool is_mirrored;      /* the mirror counts: the tensors are not too large */
    unsigned char *scratch;
    uint64_t scratch_bytes;
} gbx_replay_memory;

GBX_MUST_USE gbx_status gbx_replay_memory_open(gbx_replay_memory *memory);
void gbx_replay_memory_close(gbx_replay_memory *memory);

/* Everything as it was before the dispatch: zeros, then poison in outputs, then inputs and inouts,
 * which win where views overlap. */
GBX_MUST_USE gbx_status gbx_replay_memory_restore(gbx_replay_memory *memory,
                                                  const gbx_replay_layout *layout,
                                                  const gbx_replay_request *request);

/* Bytes that changed since, outside of all outputs and inouts; once after each restore. */
GBX_MUST_USE gbx_status gbx_replay_memory_find_strays(gbx_replay_memory *memory,
                                                      const gbx_replay_layout *layout,
                                                      gbx_replay_outcome *outcome);

/* What a tensor holds. */
void gbx_replay_memory_gather(const gbx_replay_memory *memory, const gbx_replay_layout *layout,
                              const gbx_tensor *tensor, void *out_payload);

/* The next part of the file that takes memory, from `offset` on; false where there is none. */
bool gbx_replay_memory_next(const gbx_replay_memory *memory, uint64_t offset, uint64_t *out_offset,
                            uint64_t *out_bytes);

#endif
