/* Values that filters take, as a user writes them: of --dump-filter, and of the options with which
 * dumps are looked at. */
#ifndef GBX_DUMP_FILTER_VALUES_H
#define GBX_DUMP_FILTER_VALUES_H

#include <stdbool.h>
#include <stdint.h>

/* "7", "0x11", or a range "10..20" with both ends, not above `max`. False where it is neither. */
bool gbx_filter_read_range(const char *text, uint64_t max, uint64_t *out_first, uint64_t *out_last);

/* Words with the number that each stands for; ends with a NULL word. */
typedef struct gbx_filter_word {
    const char *word;
    uint32_t number;
} gbx_filter_word;

extern const gbx_filter_word gbx_filter_roles[];  /* GBX_ROLE_... */
extern const gbx_filter_word gbx_filter_stages[]; /* 0 before, 1 after */
extern const gbx_filter_word gbx_filter_kinds[];  /* GBX_KIND_... */

enum { GBX_FILTER_WORDS_BYTES = 128 };

/* True, and the number, where `text` is one of the words; else all of them, "input, output...". */
bool gbx_filter_find_word(const gbx_filter_word *words, const char *text, uint32_t *out_number,
                          char out_known[GBX_FILTER_WORDS_BYTES]);

#endif
