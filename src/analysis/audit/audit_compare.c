/* Compares an access with a map of memory: by hash if both have the same bytes in the same order,
 * else byte by byte. */
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/audit/internal.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/numbers.h"

enum { OWN = 0, OWNERS = 1 };

gbx_status gbx_memory_comparison_create(gbx_memory_comparison *comparison) {
    *comparison = (gbx_memory_comparison){0};
    comparison->windows[OWN] = malloc(GBX_WINDOW_BYTES);
    comparison->windows[OWNERS] = malloc(GBX_WINDOW_BYTES);
    if (comparison->windows[OWN] && comparison->windows[OWNERS])
        return NULL;
    gbx_memory_comparison_free(comparison);
    return gbx_fail_memory("comparing tensors of the dump");
}

void gbx_memory_comparison_free(gbx_memory_comparison *comparison) {
    free(comparison->windows[OWN]);
    free(comparison->windows[OWNERS]);
    free(comparison->differences);
    *comparison = (gbx_memory_comparison){0};
}

/* --- pieces: parts of a run with one owner --- */

typedef struct piece {
    uint64_t begin;
    uint64_t end;
    uint64_t owner;
    uint64_t owner_offset; /* in the payload of the owner */
    uint64_t offset;       /* in the payload of the access */
} piece;

typedef struct pieces {
    const gbx_memory_map *map;
    gbx_byte_runs runs;
    gbx_byte_run run;
    uint64_t at; /* in the run */
} pieces;

static gbx_status begin_pieces(gbx_audit_state *state, const gbx_access *access,
                               pieces *out_pieces) {
    *out_pieces = (pieces){.map = state->map};
    return gbx_access_runs(state, access, &out_pieces->runs);
}

/* Skips bytes without a known owner. */
static bool next_piece(pieces *p, piece *out_piece) {
    gbx_memory_range range;
    for (;;) {
        if (p->at >= p->run.end) {
            if (!gbx_byte_runs_next(&p->runs, &p->run))
                return false;
            p->at = p->run.begin;
        }
        if (gbx_memory_map_find(p->map, p->at, &range) && range.begin < p->run.end)
            break;
        p->at = p->run.end;
    }
    uint64_t begin = range.begin > p->at ? range.begin : p->at;
    *out_piece = (piece){.begin = begin,
                         .end = gbx_min_u64(range.end, p->run.end),
                         .owner = range.owner,
                         .owner_offset = range.offset + (begin - range.begin),
                         .offset = p->run.offset + (begin - p->run.begin)};
    p->at = out_piece->end;
    return true;
}

/* --- differences --- */

gbx_difference *gbx_memory_difference_of(const gbx_audit_state *state, uint64_t owner) {
    const gbx_memory_comparison *comparison = &state->comparison;
    uint64_t at = state->accesses[owner].difference;
    bool is_there = at < comparison->count && comparison->differences[at].owner == owner;
    return is_there ? &comparison->differences[at] : NULL;
}

static gbx_status add_difference(gbx_audit_state *state, const gbx_difference *difference) {
    gbx_memory_comparison *c = &state->comparison;
    gbx_difference *known = gbx_memory_difference_of(state, difference->owner);
    if (known) {
        if (difference->begin < known->begin)
            known->begin = difference->begin; /* a negative stride; the first element stays */
        if (difference->end > known->end)
            known->end = difference->end;
        return NULL;
    }
    GBX_TRY(gbx_array_reserve(&c->differences, &c->capacity, c->count + 1,
                              "comparing tensors of the dump"));
    state->accesses[difference->owner].difference = c->count;
    c->differences[c->count++] = *difference;
    return NULL;
}

/* Returns `bytes`, at most GBX_WINDOW_BYTES, from `offset` of the file on; reads ahead up to the
 * end of the payload. */
static gbx_status fetch(gbx_audit_state *state, int which, uint64_t offset, uint64_t bytes,
                        uint64_t payload_end, const unsigned char **out_bytes) {
    gbx_memory_comparison *c = &state->comparison;
    if (offset < c->starts[which] || offset + bytes > c->ends[which]) {
        uint64_t taken = gbx_min_u64(GBX_WINDOW_BYTES, payload_end - offset);
        c->starts[which] = c->ends[which] = 0;
        GBX_TRY(gbx_reader_read_payload(gbx_entries_reader(state->entries), offset,
                                        c->windows[which], (size_t)taken));
        c->starts[which] = offset;
        c->ends[which] = offset + taken;
    }
    *out_bytes = c->windows[which] + (offset - c->starts[which]);
    return NULL;
}

/* Compares `count` bytes of a piece from `done` on. */
static gbx_status compare_window(gbx_audit_state *state, const gbx_access *access, const piece *p,
                                 uint64_t done, uint64_t count) {
    const gbx_access *owner = &state->accesses[p->owner];
    const unsigned char *own = NULL;
    const unsigned char *owners = NULL;
    GBX_TRY(fetch(state, OWN, access->offset + p->offset + done, count,
                  access->offset + access->stored, &own));
    GBX_TRY(fetch(state, OWNERS, owner->offset + p->owner_offset + done, count,
                  owner->offset + owner->stored, &owners));
    if (!memcmp(own, owners, count))
        return NULL;
    uint64_t first = 0;
    while (own[first] == owners[first])
        ++first;
    uint64_t end = count;
    while (own[end - 1] == owners[end - 1])
        --end;
    gbx_difference difference = {.owner = p->owner,
                                 .begin = p->begin + done + first,
                                 .end = p->begin + done + end,
                                 .address = p->begin + done + first,
                                 .offset = p->offset + done + first};
    return add_difference(state, &difference);
}

static uint64_t left_of(const gbx_access *access, uint64_t offset) {
    return access->has_bytes && offset < access->stored ? access->stored - offset : 0;
}

/* --- damage: bytes that changed on disk prove nothing --- */

/* Checks the hash of an access, once: in all, no more is read than the payload. */
static gbx_status look_at(gbx_audit_state *state, uint64_t index, bool *out_is_damaged) {
    gbx_memory_comparison *comparison = &state->comparison;
    gbx_access *access = &state->accesses[index];
    if (access->is_proven || !access->has_bytes || !access->has_hash)
        return NULL;
    access->is_proven = true;
    gbx_hash_state hashing;
    gbx_hash_begin(&hashing);
    comparison->starts[0] = comparison->ends[0] = 0; /* its window is overwritten */
    for (uint64_t done = 0; done < access->stored; done += GBX_WINDOW_BYTES) {
        size_t count = (size_t)gbx_min_u64(access->stored - done, GBX_WINDOW_BYTES);
        GBX_TRY(gbx_reader_read_payload(gbx_entries_reader(state->entries), access->offset + done,
                                        comparison->windows[0], count));
        gbx_hash_update(&hashing, comparison->windows[0], count);
    }
    gbx_hash128 hash = gbx_hash_end(&hashing);
    if (hash.low == access->hash_low && hash.high == access->hash_high)
        return NULL;
    access->has_bytes = false;
    ++state->audit->counts.damaged;
    *out_is_damaged = true;
    return NULL;
}

/* --- comparing --- */

/* Without reading payload: how much is known, and whether it is one payload. */
static gbx_status survey(gbx_audit_state *state, const gbx_access *access) {
    gbx_memory_comparison *c = &state->comparison;
    pieces p;
    piece at;
    GBX_TRY(begin_pieces(state, access, &p));
    while (next_piece(&p, &at)) {
        if (c->known_bytes == 0)
            c->owner = at.owner;
        c->known_bytes += at.end - at.begin;
        state->accesses[at.owner].is_read = true;
        c->begin = gbx_min_u64(c->begin, at.begin);
        c->end = at.end > c->end ? at.end : c->end;
        c->is_same &= at.owner == c->owner && at.owner_offset == at.offset;
    }
    c->is_same &= c->known_bytes > 0 && c->known_bytes == access->whole &&
                  state->accesses[c->owner].whole == access->whole;
    return NULL;
}

static gbx_status compare_hashes(gbx_audit_state *state, const gbx_access *access,
                                 bool *out_is_decided) {
    const gbx_memory_comparison *c = &state->comparison;
    const gbx_access *owner = &state->accesses[c->owner];
    *out_is_decided = true;
    if (access->hash_low == owner->hash_low && access->hash_high == owner->hash_high)
        return NULL;
    if (access->has_bytes && owner->has_bytes) {
        *out_is_decided = false;
        return NULL;
    }
    gbx_difference difference = {
        .owner = c->owner, .begin = c->begin, .end = c->end, .is_by_hash = true};
    return add_difference(state, &difference);
}

static gbx_status compare_once(gbx_audit_state *state, const gbx_access *access) {
    gbx_memory_comparison *comparison = &state->comparison;
    comparison->count = 0;
    comparison->known_bytes = comparison->unknown_bytes = 0;
    comparison->begin = UINT64_MAX;
    comparison->end = 0;
    comparison->is_same = true;
    comparison->owner = UINT64_MAX;
    GBX_TRY(survey(state, access));
    bool is_decided = comparison->known_bytes == 0;
    if (comparison->is_same && access->has_hash && state->accesses[comparison->owner].has_hash)
        GBX_TRY(compare_hashes(state, access, &is_decided));
    if (is_decided)
        return NULL;
    pieces p;
    piece at;
    GBX_TRY(begin_pieces(state, access, &p));
    while (next_piece(&p, &at)) {
        uint64_t length = at.end - at.begin;
        uint64_t count = gbx_min_u64(left_of(access, at.offset),
                                     left_of(&state->accesses[at.owner], at.owner_offset));
        count = gbx_min_u64(count, length);
        comparison->unknown_bytes += length - count;
        for (uint64_t done = 0; done < count; done += GBX_WINDOW_BYTES)
            GBX_TRY(compare_window(state, access, &at, done,
                                   gbx_min_u64(count - done, GBX_WINDOW_BYTES)));
    }
    return NULL;
}

gbx_status gbx_memory_compare(gbx_audit_state *state, const gbx_access *access) {
    const gbx_memory_comparison *comparison = &state->comparison;
    bool is_damaged;
    do {
        GBX_TRY(compare_once(state, access));
        /* Payload that differs, and whose hash does not match, is treated as missing. */
        is_damaged = false;
        for (size_t i = 0; i < comparison->count; ++i) {
            if (comparison->differences[i].is_by_hash)
                continue;
            uint64_t index = (uint64_t)(access - state->accesses);
            GBX_TRY(look_at(state, index, &is_damaged));
            GBX_TRY(look_at(state, comparison->differences[i].owner, &is_damaged));
        }
    } while (is_damaged);
    return NULL;
}

/* --- one element --- */

/* Overwrites the `bytes` of `element`, at `address`, where the map knows them. */
static gbx_status read_expected(gbx_audit_state *state, uint64_t address, uint64_t bytes,
                                unsigned char *element) {
    for (uint64_t at = address; at < address + bytes;) {
        gbx_memory_range range;
        if (!gbx_memory_map_find(state->map, at, &range) || range.begin >= address + bytes)
            return NULL;
        uint64_t begin = range.begin > at ? range.begin : at;
        uint64_t offset = range.offset + (begin - range.begin);
        at = gbx_min_u64(range.end, address + bytes);
        const gbx_access *owner = &state->accesses[range.owner];
        uint64_t count = gbx_min_u64(at - begin, left_of(owner, offset));
        if (count > 0)
            GBX_TRY(gbx_reader_read_payload(gbx_entries_reader(state->entries),
                                            owner->offset + offset, element + (begin - address),
                                            (size_t)count));
    }
    return NULL;
}

gbx_status gbx_memory_compare_element(gbx_audit_state *state, const gbx_access *access,
                                      const gbx_difference *difference,
                                      gbx_audit_finding *finding) {
    finding->dtype = access->dtype;
    uint32_t bits = gbx_dtype_bits(access->dtype);
    uint64_t bytes = bits < 8 ? 1 : bits / 8;
    uint64_t number = (access->tensor_offset + difference->offset) / bytes;
    uint64_t offset = number * bytes - access->tensor_offset; /* in the payload of the access */
    bool is_cut = number * bytes < access->tensor_offset || offset + bytes > access->stored;
    if (difference->is_by_hash || is_cut)
        return NULL;
    unsigned char found[8] = {0}, expected[8];
    GBX_TRY(gbx_reader_read_payload(gbx_entries_reader(state->entries), access->offset + offset,
                                    found, (size_t)bytes));
    memcpy(expected, found, sizeof found);
    GBX_TRY(
        read_expected(state, difference->address - (difference->offset - offset), bytes, expected));
    memcpy(&finding->found, found, sizeof found);
    memcpy(&finding->expected, expected, sizeof expected);
    finding->element = number;
    finding->has_element = true;
    if (bits >= 8)
        return NULL;
    /* Two a byte, the first in the low half. */
    bool is_high = !((finding->found ^ finding->expected) & 0xfu);
    finding->element = number * 2 + is_high;
    finding->found = finding->found >> (is_high ? 4 : 0) & 0xfu;
    finding->expected = finding->expected >> (is_high ? 4 : 0) & 0xfu;
    return NULL;
}
