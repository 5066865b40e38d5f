#include "store/payload/dedup.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

enum { TABLE_BYTES = 8 << 20 };
static_assert(sizeof(gbx_dedup_set) * GBX_DEDUP_SETS == TABLE_BYTES, "the size that is promised");

gbx_status gbx_dedup_open(gbx_dedup *dedup) {
    /* A fresh mapping is zero without being touched. */
    void *table =
        mmap(NULL, TABLE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED) {
        dedup->sets = NULL;
        return gbx_fail(GBX_EXHAUSTED, "making the table of stored payloads: the host is out of "
                                       "memory for its 8 MiB; free some, or turn it off with "
                                       "--no-dedup");
    }
    dedup->sets = table;
    return NULL;
}

void gbx_dedup_close(gbx_dedup *dedup) {
    if (dedup->sets)
        munmap(dedup->sets, TABLE_BYTES);
    dedup->sets = NULL;
}

static gbx_dedup_set *set_of(gbx_dedup *dedup, gbx_hash128 hash) {
    return &dedup->sets[hash.low % GBX_DEDUP_SETS];
}

/* GBX_DEDUP_WAYS when absent. */
static size_t way_of(const gbx_dedup_set *set, gbx_hash128 hash, uint64_t bytes) {
    size_t way = 0;
    for (; way < GBX_DEDUP_WAYS; ++way) {
        const gbx_dedup_entry *entry = &set->entries[way];
        if (entry->hash.low == hash.low && entry->hash.high == hash.high && entry->bytes == bytes)
            break;
    }
    return way;
}

/* Puts an entry first; those before `way` move up by one, replacing the one at `way`. */
static void put_first(gbx_dedup_set *set, size_t way, gbx_dedup_entry entry) {
    memmove(&set->entries[1], &set->entries[0], way * sizeof entry);
    set->entries[0] = entry;
}

bool gbx_dedup_find(gbx_dedup *dedup, gbx_hash128 hash, uint64_t bytes, uint64_t *out_offset) {
    if (!dedup->sets || bytes == 0)
        return false;
    gbx_dedup_set *set = set_of(dedup, hash);
    size_t way = way_of(set, hash, bytes);
    if (way == GBX_DEDUP_WAYS)
        return false;
    put_first(set, way, set->entries[way]);
    *out_offset = set->entries[0].offset;
    return true;
}

void gbx_dedup_remember(gbx_dedup *dedup, gbx_hash128 hash, uint64_t bytes, uint64_t offset) {
    if (!dedup->sets || bytes == 0)
        return;
    gbx_dedup_set *set = set_of(dedup, hash);
    size_t way = way_of(set, hash, bytes);
    gbx_dedup_entry entry = {.hash = hash, .bytes = bytes, .offset = offset};
    put_first(set, way == GBX_DEDUP_WAYS ? GBX_DEDUP_WAYS - 1 : way, entry);
}
