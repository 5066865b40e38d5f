#include "base/hash.h"

#include <stdio.h>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

_Static_assert(sizeof(gbx_hash_state) >= sizeof(XXH3_state_t), "room for the state of XXH3");
_Static_assert(_Alignof(gbx_hash_state) >= _Alignof(XXH3_state_t),
               "alignment of the state of XXH3");

static gbx_hash128 from_xxh(XXH128_hash_t hash) {
    gbx_hash128 result = {.low = hash.low64, .high = hash.high64};
    return result;
}

gbx_hash128 gbx_hash_bytes(const void *bytes, size_t size) {
    return from_xxh(XXH3_128bits(bytes, size));
}

void gbx_hash_begin(gbx_hash_state *state) {
    XXH3_128bits_reset((XXH3_state_t *)(void *)state);
}

void gbx_hash_update(gbx_hash_state *state, const void *bytes, size_t size) {
    XXH3_128bits_update((XXH3_state_t *)(void *)state, bytes, size);
}

gbx_hash128 gbx_hash_end(const gbx_hash_state *state) {
    return from_xxh(XXH3_128bits_digest((const XXH3_state_t *)(const void *)state));
}

void gbx_hash_format(gbx_hash128 hash, char out_text[GBX_HASH_TEXT_BYTES]) {
    snprintf(out_text, GBX_HASH_TEXT_BYTES, "%016llx%016llx", (unsigned long long)hash.high,
             (unsigned long long)hash.low);
}
