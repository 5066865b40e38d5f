/* XXH3-128 of bytes, written as xxh128sum prints it. */
#ifndef GBX_BASE_HASH_H
#define GBX_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define GBX_HASH_TEXT_BYTES 33 /* 32 hexadecimal digits and the end */

typedef struct gbx_hash128 {
    uint64_t low;
    uint64_t high;
} gbx_hash128;

gbx_hash128 gbx_hash_bytes(const void *bytes, size_t size);

/* Hashing in pieces gives the hash of the whole. The state needs no cleaning up. */
typedef struct gbx_hash_state {
    _Alignas(64) unsigned char opaque[576];
} gbx_hash_state;

void gbx_hash_begin(gbx_hash_state *state);
void gbx_hash_update(gbx_hash_state *state, const void *bytes, size_t size);
gbx_hash128 gbx_hash_end(const gbx_hash_state *state);

void gbx_hash_format(gbx_hash128 hash, char out_text[GBX_HASH_TEXT_BYTES]);

#endif
