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

/* The words of a line, a multiple of 64. */
static inline void gbx_pattern_line(uint64_t address, uint64_t out_words[8]) {
    static const uint64_t keys[8] = {
        UINT64_C(0x0000000000000000), UINT64_C(0x58c2a4164e8c5a12), UINT64_C(0x14964c5a06dc9248),
        UINT64_C(0xce5e12448a1c5cd6), UINT64_C(0x46085a9c1ec4d05e), UINT64_C(0x9a1c5e46d24c0a84),
        UINT64_C(0x0c5ad4921a46c85e), UINT64_C(0xd44c861e5c12904a)};
    uint64_t mixed = (address >> 6) * UINT64_C(0x9e3779b97f4a7c15);
    mixed ^= mixed >> 29;
    for (int i = 0; i < 8; ++i)
        out_words[i] = ((mixed ^ keys[i]) & UINT64_C(0x4e4e4e4e4e4e4e4e)) |
                       UINT64_C(0x9191919191919191);
}

/* Both take any range of bytes. */
void gbx_pattern_write(uint64_t first, uint64_t end);
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
