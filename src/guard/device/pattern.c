#include "guard/device/pattern.h"

#include <assert.h>
#include <string.h>
#include <wchar.h>

static uint64_t line_of(uint64_t address) {
    return address & ~(uint64_t)(GBX_PATTERN_LINE - 1);
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

void gbx_pattern_write(uint64_t first, uint64_t end) {
    gbx_pattern_pair words[4];
    for (uint64_t stop; first < end; first = stop) {
        uint64_t line = line_of(first);
        stop = smaller(line + GBX_PATTERN_LINE, end);
        gbx_pattern_line(line, words);
        if (stop - first == GBX_PATTERN_LINE)
            memcpy((void *)(uintptr_t)first, words, GBX_PATTERN_LINE); /* in registers */
        else
            memcpy((void *)(uintptr_t)first, (const char *)words + (first - line), stop - first);
    }
}

/* Reads memory that may be given away meanwhile: who finds it changed looks again, with the claim
 * of the zone. */
#define RACY __attribute__((no_sanitize("thread")))

/* A whole line, in registers. */
static inline RACY gbx_pattern_pair line_difference(uint64_t line) {
    const gbx_pattern_pair *memory = (const gbx_pattern_pair *)(uintptr_t)line;
    gbx_pattern_pair words[4];
    gbx_pattern_line(line, words);
    gbx_pattern_pair difference = memory[0] ^ words[0];
    for (int i = 1; i < 4; ++i)
        difference |= memory[i] ^ words[i];
    return difference;
}

/* From `first` to the end of its line. */
static RACY uint64_t part_difference(uint64_t first) {
    union {
        gbx_pattern_pair pairs[4];
        uint64_t words[8];
    } wanted;
    typedef uint64_t __attribute__((may_alias)) word;
    const word *memory = (const word *)(uintptr_t)line_of(first);
    gbx_pattern_line(line_of(first), wanted.pairs);
    uint64_t skipped = first % GBX_PATTERN_LINE, i = skipped / 8;
    uint64_t difference = (memory[i] ^ wanted.words[i]) >> skipped % 8 * 8;
    while (++i < 8)
        difference |= memory[i] ^ wanted.words[i];
    return difference;
}

RACY bool gbx_pattern_is_whole(uint64_t first, uint64_t end) {
    gbx_pattern_pair difference = {0, 0};
    uint64_t line = line_of(first + GBX_PATTERN_LINE - 1);
    if (first < line && first < end && part_difference(first) != 0)
        return false;
    for (; line + GBX_PATTERN_LINE <= end; line += GBX_PATTERN_LINE)
        difference |= line_difference(line);
    return (difference[0] | difference[1]) == 0;
}

bool gbx_pattern_find_damage(uint64_t first, uint64_t end, gbx_pattern_damage *out_damage) {
    *out_damage = (gbx_pattern_damage){0};
    gbx_pattern_pair words[4];
    for (uint64_t at = first; at < end;) {
        uint64_t line = line_of(at);
        uint64_t stop = smaller(line + GBX_PATTERN_LINE, end);
        gbx_pattern_line(line, words);
        const unsigned char *wanted = (const unsigned char *)words + (at - line);
        const unsigned char *got = (const unsigned char *)(uintptr_t)at;
        if (memcmp(wanted, got, stop - at) != 0)
            for (uint64_t i = 0; i < stop - at; ++i) {
                if (wanted[i] == got[i])
                    continue;
                if (out_damage->bytes++ == 0)
                    out_damage->first = at + i;
                out_damage->end = at + i + 1;
            }
        at = stop;
    }
    return out_damage->bytes != 0;
}

void gbx_poison_write(uint64_t first, uint64_t end, uint32_t number) {
    const uint32_t word = number & 1 ? UINT32_MAX : UINT32_C(0x7fff7fff);
    char *at = (char *)(uintptr_t)first;
    uint64_t bytes = end - first;
    static_assert(sizeof(wchar_t) == sizeof word, "wmemset writes such words");
    /* Words count from the first byte, whatever its address. wmemset is as fast as memset. */
    if (first % sizeof word == 0) {
        wmemset((wchar_t *)(uintptr_t)first, (wchar_t)word, bytes / sizeof word);
        at += bytes - bytes % sizeof word;
        bytes %= sizeof word;
    }
    for (; bytes >= sizeof word; bytes -= sizeof word, at += sizeof word)
        memcpy(at, &word, sizeof word);
    memcpy(at, &word, bytes);
}
