/* The texts of many elements of one dtype, those of gbx_element_format. */
#ifndef GBX_ANALYSIS_EXPORT_EXPORT_TEXTS_H
#define GBX_ANALYSIS_EXPORT_EXPORT_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/array_text.h"
#include "base/status.h"

typedef struct gbx_export_texts {
    uint32_t dtype;
    bool is_bool_number;                   /* 0 and 1, not False and True */
    struct gbx_export_cached_text *cached; /* by code, of dtypes with few codes; NULL for others */
} gbx_export_texts;

GBX_MUST_USE gbx_status gbx_export_texts_create(gbx_export_texts *texts, uint32_t dtype,
                                                bool is_bool_number);
void gbx_export_texts_destroy(gbx_export_texts *texts);

/* Returns the length; no zero ends the text. */
size_t gbx_export_texts_put(gbx_export_texts *texts, uint64_t bits,
                            char out_text[GBX_ELEMENT_TEXT_BYTES]);

#endif
