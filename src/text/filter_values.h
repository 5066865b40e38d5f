/* Numbers that filters take, as a user writes them: of --dump-filter, and of the options with which
 * dumps are looked at. */
#ifndef GBX_TEXT_FILTER_VALUES_H
#define GBX_TEXT_FILTER_VALUES_H

#include <stdbool.h>
#include <stdint.h>

/* "7", "0x11", or a range "10..20" with both ends, not above `max`. False where it is neither. */
bool gbx_filter_read_range(const char *text, uint64_t max, uint64_t *out_first, uint64_t *out_last);

#endif
