#include "analysis/export/export_texts.h"

#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>


enum { CACHED_BITS_MAX = 16, CACHED_TEXT_BYTES = 15 };

struct gbx_export_cached_text {
    uint8_t length; /* 0: not known yet */
    char text[CACHED_TEXT_BYTES];
};

gbx_status gbx_export_texts_create(gbx_export_texts *texts, uint32_t dtype, bool is_bool_number) {
    *texts = (gbx_export_texts){.dtype = dtype, .is_bool_number = is_bool_number};
    uint32_t bits = gbx_dtype_bits(dtype);
    if (bits > CACHED_BITS_MAX)
        return NULL;
    texts->cached = calloc((size_t)1 << bits, sizeof *texts->cached);
    if (!texts->cached)
        return gbx_fail(GBX_EXHAUSTED, "writing numbers: the host is out of memory");
    return NULL;
}

void gbx_export_texts_destroy(gbx_export_texts *texts) {
    free(texts->cached);
    texts->cached = NULL;
}

static size_t put(const gbx_export_texts *texts, uint64_t bits, char *out_text) {
    if (texts->dtype == GBX_BOOL && texts->is_bool_number) {
        out_text[0] = bits & 0xff ? '1' : '0';
        return 1;
    }
    return gbx_element_format(texts->dtype, bits, out_text);
}

size_t gbx_export_texts_put(gbx_export_texts *texts, uint64_t bits,
                            char out_text[GBX_ELEMENT_TEXT_BYTES]) {
    if (!texts->cached)
        return put(texts, bits, out_text);
    struct gbx_export_cached_text *known =
        &texts->cached[bits & ((UINT64_C(1) << gbx_dtype_bits(texts->dtype)) - 1)];
    if (known->length == 0) {
        size_t length = put(texts, bits, out_text);
        if (length > CACHED_TEXT_BYTES)
            return length;
        memcpy(known->text, out_text, length);
        known->length = (uint8_t)length;
    }
    memcpy(out_text, known->text, CACHED_TEXT_BYTES);
    return known->length;
}
