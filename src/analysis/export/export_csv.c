#include "analysis/export/export_csv.h"

#include <inttypes.h>

#include <glassbox/tensor.h>

#include "analysis/export/export_texts.h"

enum { PIECE_ELEMENTS = 4096, TEXT_BYTES_MAX = GBX_ELEMENT_TEXT_BYTES + 1 };

static void write_head(const gbx_export_source *source, FILE *to) {
    const gbx_elements *elements = &source->elements;
    fputs("# shape (", to);
    for (uint32_t d = 0; d < elements->ndims; ++d)
        fprintf(to, d ? ", %" PRId64 : "%" PRId64, elements->shape[d]);
    fprintf(to, "%s), %s", elements->ndims == 1 ? "," : "", gbx_dtype_name(elements->dtype));
    if (gbx_export_source_is_cut(source))
        fprintf(to, "; truncated: the first %" PRIu64 " of %" PRIu64 " elements", elements->stored,
                elements->count);
    fputc('\n', to);
}

/* The row that an element of `at` ends, or goes on. */
static uint64_t columns_of(const gbx_export_source *source) {
    const gbx_elements *elements = &source->elements;
    if (elements->ndims < 2 || gbx_export_source_is_cut(source))
        return 1;
    return (uint64_t)elements->shape[elements->ndims - 1];
}

static gbx_status write_elements(const gbx_export_source *source, gbx_export_texts *texts,
                                 FILE *to) {
    const gbx_elements *elements = &source->elements;
    uint64_t words[PIECE_ELEMENTS];
    char text[PIECE_ELEMENTS * TEXT_BYTES_MAX];
    const uint64_t columns = columns_of(source);
    uint64_t column = 0;
    for (uint64_t at = 0; at < elements->stored && !ferror(to);) {
        uint64_t left = elements->stored - at;
        size_t count = (size_t)(left < PIECE_ELEMENTS ? left : PIECE_ELEMENTS);
        GBX_TRY(gbx_elements_read(elements, at, count, words));
        char *end = text;
        for (size_t i = 0; i < count; ++i) {
            end += gbx_export_texts_put(texts, words[i], end);
            bool is_last = ++column == columns;
            *end++ = is_last ? '\n' : ',';
            column = is_last ? 0 : column;
        }
        fwrite(text, 1, (size_t)(end - text), to);
        at += count;
    }
    return NULL;
}

gbx_status gbx_export_csv(const gbx_export_source *source, FILE *to) {
    gbx_export_texts texts;
    GBX_TRY(gbx_export_texts_create(&texts, source->elements.dtype, true));
    write_head(source, to);
    gbx_status status = write_elements(source, &texts, to);
    gbx_export_texts_destroy(&texts);
    return status;
}
