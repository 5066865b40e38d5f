#include "replay/worker/pattern.h"

#include <stdbool.h>
#include <string.h>

/* A multiple of 8, so that elements stay aligned, and of no higher power of 2, as strides are. */
enum { PERIOD = 65544, PIECE = 65536, SALT_BYTES = 7720 };

static unsigned char tables[GBX_FLAVOURS][GBX_PATTERNS][PERIOD + PIECE];
static bool is_made[GBX_FLAVOURS];

static uint32_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* Where the highest byte of an element may lie. */
static int is_top(uint32_t place, gbx_pattern_flavour flavour) {
    static const uint32_t widths[GBX_FLAVOURS] = {0, 2, 4, 8};
    return widths[flavour] > 0 && place % widths[flavour] == widths[flavour] - 1;
}

/* What is special about 8 bytes: small and large values show what a kernel only compares. */
typedef struct group {
    bool is_zero;   /* in the other pattern */
    bool is_large;  /* in the first one, as floats */
    uint32_t signs; /* a bit a byte */
} group;

/* No half byte of the first pattern is zero or even, and all of the other are even. */
static unsigned char byte_at(int pattern, gbx_pattern_flavour flavour, const group *g,
                             uint32_t place, uint32_t random) {
    uint32_t sign = (g->signs >> place % 8 & 1) ^ (uint32_t)pattern;
    if (pattern == GBX_PATTERN_OTHER && g->is_zero)
        return 0;
    if (!is_top(place, flavour))
        return (unsigned char)(pattern == GBX_PATTERN_OTHER ? random & 0xee : random | 0x11);
    if (pattern == GBX_PATTERN_FIRST && g->is_large)
        return (unsigned char)(0x7b | sign << 7);
    static const unsigned char exponents[GBX_PATTERNS][2] = {{0x3f, 0x41}, {0x40, 0x42}};
    return (unsigned char)(exponents[pattern][random & 1] | sign << 7);
}

/* Most memories need one flavour, and a table takes as long as a small task. */
static void make_table(gbx_pattern_flavour flavour) {
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15) * (flavour + 1);
    group g = {0};
    for (uint32_t i = 0; i < PERIOD; ++i) {
        if (i % 8 == 0)
            g = (group){.is_zero = next_random(&state) % 2 == 0,
                        .is_large = next_random(&state) % 8 == 0,
                        .signs = next_random(&state)};
        for (int p = 0; p < GBX_PATTERNS; ++p)
            tables[flavour][p][i] = byte_at(p, flavour, &g, i, next_random(&state));
    }
    for (int p = 0; p < GBX_PATTERNS; ++p)
        memcpy(tables[flavour][p] + PERIOD, tables[flavour][p], PIECE);
    is_made[flavour] = true;
}

gbx_pattern_flavour gbx_pattern_flavour_of(uint32_t widths) {
    if (widths & 1u << 2)
        return GBX_FLAVOUR_2;
    if (widths & 1u << 4)
        return GBX_FLAVOUR_4;
    return widths & 1u << 8 ? GBX_FLAVOUR_8 : GBX_FLAVOUR_BYTES;
}

void gbx_pattern_fill(int pattern, gbx_pattern_flavour flavour, uint32_t salt, void *out_bytes,
                      uint64_t bytes) {
    char *to = out_bytes;
    uint64_t place = (uint64_t)salt * SALT_BYTES % PERIOD;
    if (!is_made[flavour])
        make_table(flavour);
    while (bytes > 0) {
        uint64_t piece = bytes < PIECE ? bytes : PIECE;
        memcpy(to, tables[flavour][pattern] + place, piece);
        to += piece;
        bytes -= piece;
        place = (place + piece) % PERIOD;
    }
}
