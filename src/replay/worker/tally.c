#include "replay/worker/tally.h"

/* The finalizer of splitmix64. */
static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t hash(uint64_t number, uint64_t amount) {
    return mix(mix(number + UINT64_C(0x9e3779b97f4a7c15)) ^ amount);
}

gbx_tally gbx_tally_of(uint64_t at, uint32_t bits) {
    return (gbx_tally){.at = at,
                       .mask = bits == 32 ? UINT32_MAX : UINT64_MAX,
                       .alternates = true,
                       .is_level = true};
}

void gbx_tally_begin(gbx_tally *tally, bool is_backward, uint64_t value) {
    tally->is_backward = is_backward;
    tally->start = tally->value = value;
    tally->last_hash = 0;
}

static void see_forward(gbx_tally *tally, uint32_t dispatch, uint64_t amount, uint32_t turn) {
    uint64_t opposite = (0 - tally->firsts[0]) & tally->mask;
    if (turn < 2)
        tally->firsts[turn] = amount;
    if (turn == 1)
        tally->second = dispatch;
    if (turn > 0)
        tally->alternates &= amount == (turn % 2 ? opposite : tally->firsts[0]);
    if (turn > 1) /* this one may be a reset: the one before it is none */
        tally->is_level &= tally->last_amount == tally->firsts[1];
    tally->last_amount = amount;
}

void gbx_tally_see(gbx_tally *tally, uint32_t dispatch, uint64_t value) {
    uint64_t amount = (value - tally->value) & tally->mask;
    uint64_t sign = tally->is_backward ? UINT64_MAX : 1; /* -1 or 1 */
    tally->value = value;
    if (amount == 0)
        return;
    uint32_t turn = tally->counts[tally->is_backward]++;
    uint64_t by_dispatch = hash(dispatch, amount);
    tally->who += sign * hash(dispatch, 0);
    tally->amounts += sign * by_dispatch;
    tally->turns += sign * hash(turn, amount);
    if (turn == 0)
        tally->ends += sign * by_dispatch;
    if (!tally->is_backward)
        see_forward(tally, dispatch, amount, turn);
    tally->last_hash = by_dispatch;
    tally->last[tally->is_backward] = dispatch;
}

void gbx_tally_end(gbx_tally *tally) {
    bool has_changed = tally->counts[tally->is_backward] > 0;
    tally->ends += (tally->is_backward ? UINT64_MAX : 1) * tally->last_hash;
    tally->is_reset[tally->is_backward] = has_changed && tally->value == tally->start;
    if (!tally->is_backward && !tally->is_reset[0])
        tally->is_level &= tally->last_amount == tally->firsts[1];
}

/* As a signed number: its magnitude, and whether it is negative. */
static uint64_t magnitude(const gbx_tally *tally, uint64_t amount, bool *out_is_negative) {
    *out_is_negative = amount > tally->mask / 2;
    return *out_is_negative ? (0 - amount) & tally->mask : amount;
}

static bool takes_tiles(const gbx_tally *tally) {
    bool is_down, are_down;
    uint64_t first = magnitude(tally, tally->firsts[0], &is_down);
    uint64_t others = magnitude(tally, tally->firsts[1], &are_down);
    return tally->turns == 0 && tally->is_level && is_down == are_down && first % others == 0;
}

bool gbx_tally_is_counter(const gbx_tally *tally) {
    if (tally->who != 0 || tally->counts[0] < 2)
        return false;
    if (tally->amounts == 0)
        return true;
    if (tally->is_reset[0] != tally->is_reset[1])
        return false;
    if (tally->is_reset[0] && tally->amounts == tally->ends)
        return true;
    return takes_tiles(tally);
}

bool gbx_tally_is_doubtful(const gbx_tally *tally) {
    return tally->amounts == 0 && tally->alternates && tally->counts[0] % 2 == 1;
}
