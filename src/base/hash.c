#include "base/hash.h"

#include <stdio.h>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
/* The shared library also has functions that choose the processor's widest vectors at run time:
 * three times as fast, and the same hash. The static one may be without them: hence weak. */
#    define HAS_DISPATCH
#    define XXH_DISPATCH_DISABLE_REPLACE
#    include <xxh_x86dispatch.h>
#    pragma weak XXH3_128bits_dispatch
#    pragma weak XXH3_128bits_update_dispatch
#endif

_Static_assert(sizeof(gbx_hash_state) >= sizeof(XXH3_state_t), "room for the state of XXH3");
_Static_assert(_Alignof(gbx_hash_state) >= _Alignof(XXH3_state_t),
               "alignment of the state of XXH3");

static gbx_hash128 from_xxh(XXH128_hash_t hash) {
    gbx_hash128 result = {.low = hash.low64, .high = hash.high64};
    return result;
}

gbx_hash128 gbx_hash_bytes(const void *bytes, size_t size) {
#if defined(HAS_DISPATCH)
    if (XXH3_128bits_dispatch)
        return from_xxh(XXH3_128bits_dispatch(bytes, size));
#endif
    return from_xxh(XXH3_128bits(bytes, size));
}

void gbx_hash_begin(gbx_hash_state *state) {
    XXH3_128bits_reset((XXH3_state_t *)(void *)state);
}

void gbx_hash_update(gbx_hash_state *state, const void *bytes, size_t size) {
#if defined(HAS_DISPATCH)
    if (XXH3_128bits_update_dispatch) {
        XXH3_128bits_update_dispatch((XXH3_state_t *)(void *)state, bytes, size);
        return;
    }
#endif
    XXH3_128bits_update((XXH3_state_t *)(void *)state, bytes, size);
}

gbx_hash128 gbx_hash_end(const gbx_hash_state *state) {
    return from_xxh(XXH3_128bits_digest((const XXH3_state_t *)(const void *)state));
}

void gbx_hash_format(gbx_hash128 hash, char out_text[GBX_HASH_TEXT_BYTES]) {
    snprintf(out_text, GBX_HASH_TEXT_BYTES, "%016llx%016llx", (unsigned long long)hash.high,
             (unsigned long long)hash.low);
}
