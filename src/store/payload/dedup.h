/*
 * Finds payload that was stored before, by hash and size. Bounded: when full, the least recently
 * used entry goes, so that a payload may be stored again but is never taken for another.
 */
#ifndef GBX_STORE_PAYLOAD_DEDUP_H
#define GBX_STORE_PAYLOAD_DEDUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"

/* A hash chooses a set of entries; a set is four cache lines. */
enum { GBX_DEDUP_WAYS = 8, GBX_DEDUP_SETS = 32768 };

typedef struct gbx_dedup_entry {
    gbx_hash128 hash;
    uint64_t bytes; /* 0: free */
    uint64_t offset;
} gbx_dedup_entry;

typedef struct gbx_dedup_set {
    gbx_dedup_entry entries[GBX_DEDUP_WAYS]; /* most recently used first */
} gbx_dedup_set;

typedef struct gbx_dedup {
    gbx_dedup_set *sets; /* NULL: finds and remembers nothing */
} gbx_dedup;

/* 8 MiB, of which only the used part becomes resident. Fails with GBX_EXHAUSTED. */
GBX_MUST_USE gbx_status gbx_dedup_open(gbx_dedup *dedup);
void gbx_dedup_close(gbx_dedup *dedup); /* may be all zero, never opened */

/* A find counts as use. Payloads of 0 bytes are never found or remembered. */
bool gbx_dedup_find(gbx_dedup *dedup, gbx_hash128 hash, uint64_t bytes, uint64_t *out_offset);
/* A payload that is already known moves to `offset`. */
void gbx_dedup_remember(gbx_dedup *dedup, gbx_hash128 hash, uint64_t bytes, uint64_t offset);

#endif
