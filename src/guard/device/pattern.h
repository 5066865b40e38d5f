/*
 * What red zones and new memory hold. The bytes of a zone follow from their addresses alone: they
 * are odd, from 0x91 to 0x9f or from 0xd1 to 0xdf. No zero, no poison and no first byte of a float
 * near 1 is among them, and no two lines are equal: a kernel that writes zeros, values or its own
 * rows past a buffer does not write them by chance.
 */
#ifndef GBX_GUARD_DEVICE_PATTERN_H
#define GBX_GUARD_DEVICE_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

enum { GBX_PATTERN_LINE = 64 };

/* Two words of a line, which compilers keep in a register. */
typedef uint64_t gbx_pattern_pair __attribute__((vector_size(16), aligned(8), may_alias));

/* The words of a line, a multiple of 64. Each byte has four bits that change. */
static inline void gbx_pattern_line(uint64_t address, gbx_pattern_pair out_pairs[4]) {
    static const gbx_pattern_pair keys[4] = {
        {UINT64_C(0x9191919191919191), UINT64_C(0xd9d395979fdddb93)},
        {UINT64_C(0x95979ddb97dd93d9), UINT64_C(0xdfdf93d59b9ddddf)},
        {UINT64_C(0xd799db9d9fd5d1df), UINT64_C(0x9b9ddfd7d3dd9b95)},
        {UINT64_C(0x9ddbd5939bd7d9df), UINT64_C(0xd5dd979fdd93919b)}};
    uint64_t mixed = (address >> 6) * UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 29) & UINT64_C(0x4e4e4e4e4e4e4e4e);
    for (int i = 0; i < 4; ++i)
        out_pairs[i] = keys[i] ^ mixed;
}

/* Any range of bytes. */
void gbx_pattern_write(uint64_t first, uint64_t end);

/* Up to the end of a line. */
bool gbx_pattern_is_whole(uint64_t first, uint64_t end);

/* Where [first, end) differs from the pattern; false where it does not. */
typedef struct gbx_pattern_damage {
    uint64_t first; /* address of the first wrong byte */
    uint64_t end;   /* behind the last one */
    uint64_t bytes; /* how many are wrong */
} gbx_pattern_damage;
bool gbx_pattern_find_damage(uint64_t first, uint64_t end, gbx_pattern_damage *out_damage);

/* New memory: 16-bit words 0x7fff or 0xffff, by the number of the allocation. NaN in every float
 * type that has one. */
void gbx_poison_write(uint64_t first, uint64_t end, uint32_t number);

#endif
