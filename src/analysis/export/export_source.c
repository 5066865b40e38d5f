#include "analysis/export/export_source.h"

#include <glassbox/tensor.h>

#include "analysis/export/export_convert.h"

static gbx_status read_converted(const void *context, uint64_t first, size_t count,
                                 uint64_t *out_bits) {
    const gbx_export_source *source = context;
    GBX_TRY(gbx_signals_check(source->signals));
    GBX_TRY(gbx_elements_read(&source->values.elements, first, count, out_bits));
    gbx_export_convert(source->values.elements.dtype, source->elements.dtype, out_bits, count);
    return NULL;
}

gbx_status gbx_export_source_open(const gbx_entry *entry, const gbx_reader *reader, uint32_t as,
                                  const gbx_held_signals *signals, gbx_export_source *out_source) {
    GBX_TRY(gbx_entry_values_open(entry, reader, &out_source->values));
    out_source->signals = signals;
    out_source->elements = out_source->values.elements;
    out_source->elements.read = read_converted;
    out_source->elements.context = out_source;
    if (as != GBX_DTYPE_NONE)
        out_source->elements.dtype = as;
    /* Of a scalar's word only the bits of its dtype count. */
    if (out_source->values.is_scalar)
        out_source->values.scalar_bits &=
            UINT64_MAX >> (64 - gbx_dtype_bits(out_source->values.elements.dtype));
    return NULL;
}
