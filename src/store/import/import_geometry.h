/* Shape, strides and start_offset of an entry of a manifest. */
#ifndef GBX_STORE_IMPORT_IMPORT_GEOMETRY_H
#define GBX_STORE_IMPORT_IMPORT_GEOMETRY_H

#include <glassbox/kernel.h>

#include "store/import/import_fields.h"

/*
 * The view that an entry describes: `shape`, with `strides` and `start_offset`, which are those of
 * a row-major tensor at 0 where they are missing, or with `raw_shape` and `offsets`; with both
 * where they agree. `numel`, where it is there, has to be that of the view, and `is_contiguous` is
 * not true of one with gaps; sizes and reach fit in 64 bits.
 */
GBX_MUST_USE gbx_status gbx_import_get_geometry(const gbx_import_fields *fields, uint8_t dtype,
                                                gbx_tensor *out_view);

#endif
