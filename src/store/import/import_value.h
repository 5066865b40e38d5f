/* Values of a dtype as a manifest has them, made into raw bits. */
#ifndef GBX_STORE_IMPORT_IMPORT_VALUE_H
#define GBX_STORE_IMPORT_IMPORT_VALUE_H

#include "store/import/import_fields.h"
#include "store/journal/format.h"

/*
 * The raw word of a scalar: `bits` where it is there, which then has to be what `value` (or
 * `scalar_value`) says, else the bits of that value. Integers are numbers or strings of digits,
 * floats numbers or "nan", "inf", "-inf", bool is true or false, 1 or 0; what the dtype does not
 * hold is refused.
 */
GBX_MUST_USE gbx_status gbx_import_get_scalar(const gbx_import_fields *fields, uint32_t dtype,
                                              uint64_t *out_bits);

/* Statistics of a tensor, as `stats` has them; all but `subnormal` have to be there. */
GBX_MUST_USE gbx_status gbx_import_get_stats(const gbx_import_fields *fields, uint32_t dtype,
                                             gbx_record_stats *out_stats);

#endif
