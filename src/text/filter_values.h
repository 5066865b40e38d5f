/* Numbers in filters as a user writes them: in --dump-filter and in the options that select
 * entries. */
#ifndef GBX_TEXT_FILTER_VALUES_H
#define GBX_TEXT_FILTER_VALUES_H

#include <stdbool.h>
#include <stdint.h>

/* "7", "0x11", or a range "10..20" that includes both ends, not above `max`. False for anything
 * else. */
bool gbx_filter_read_range(const char *text, uint64_t max, uint64_t *out_first, uint64_t *out_last);

#endif
