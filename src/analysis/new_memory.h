/* What memory holds that nobody wrote. */
#ifndef GBX_ANALYSIS_NEW_MEMORY_H
#define GBX_ANALYSIS_NEW_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Whether byte `at` of `bytes` holds what new memory, or an output of a scene, is filled with:
 * words of 16 bits that are NaN, or 0xabab. `offset` is where `bytes` begins in its buffer. Of a
 * word that is there only in part the half decides.
 */
static inline bool gbx_is_new_memory(const unsigned char *bytes, size_t count, size_t at,
                                     uint64_t offset) {
    size_t is_high = (size_t)((offset + at) % 2);
    uint16_t word;
    if (at < is_high || at - is_high + sizeof word > count)
        return bytes[at] == 0xff || bytes[at] == 0xab || (is_high && bytes[at] == 0x7f);
    memcpy(&word, bytes + at - is_high, sizeof word);
    return word == 0x7fff || word == 0xffff || word == 0xabab;
}

#endif
