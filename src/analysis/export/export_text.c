/* Entries as text: csv, and txt for reading and comparing. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/array_text.h"
#include "analysis/export/internal.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "text/decimal.h"
#include "text/names.h"
#include "text/plain_text.h"

enum {
    CACHED_BITS_MAX = 16,
    CACHED_TEXT_BYTES = 15,
    CELLS_AT_A_TIME = 4096,
    CELL_BYTES_MAX = GBX_ELEMENT_TEXT_BYTES + 1,
    LINES_AT_A_TIME = 2048,
    LINE_WIDTH = 100,    /* of one dimension */
    ROW_WIDTH = 1 << 24, /* of more dimensions: a row is never wrapped */
    NAME_BYTES = 512,
    INDEX_TEXT_BYTES = 24, /* per dimension, with ", " */
    LINE_BYTES_MAX = GBX_MAX_DIMS * INDEX_TEXT_BYTES + GBX_ELEMENT_TEXT_BYTES
};

/* --- texts of elements --- */

typedef struct cached_text {
    uint8_t length; /* 0: not cached yet */
    char text[CACHED_TEXT_BYTES];
} cached_text;

/* The texts of many elements of one dtype, those of gbx_element_format. */
typedef struct element_texts {
    uint32_t dtype;
    bool is_bool_number; /* 0 and 1, not False and True */
    cached_text *cached; /* by raw bits, for dtypes with few bits; NULL for others */
} element_texts;

static gbx_status texts_create(element_texts *texts, uint32_t dtype, bool is_bool_number) {
    *texts = (element_texts){.dtype = dtype, .is_bool_number = is_bool_number};
    uint32_t bits = gbx_dtype_bits(dtype);
    if (bits > CACHED_BITS_MAX)
        return NULL;
    texts->cached = calloc((size_t)1 << bits, sizeof *texts->cached);
    if (!texts->cached)
        return gbx_fail_memory("writing numbers");
    return NULL;
}

static void texts_destroy(element_texts *texts) {
    free(texts->cached);
    texts->cached = NULL;
}

static size_t put(const element_texts *texts, uint64_t bits, char *out_text) {
    if (texts->dtype == GBX_BOOL && texts->is_bool_number) {
        out_text[0] = bits & 0xff ? '1' : '0';
        return 1;
    }
    return gbx_element_format(texts->dtype, bits, out_text);
}

/* Returns the length; the text is not zero terminated. */
static size_t texts_put(element_texts *texts, uint64_t bits,
                        char out_text[GBX_ELEMENT_TEXT_BYTES]) {
    if (!texts->cached)
        return put(texts, bits, out_text);
    cached_text *known = &texts->cached[bits & ((UINT64_C(1) << gbx_dtype_bits(texts->dtype)) - 1)];
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

/* --- csv --- */

/* Elements per line. */
static uint64_t columns_of(const gbx_export_source *source) {
    const gbx_elements *elements = &source->elements;
    if (elements->ndims < 2 || gbx_export_source_is_cut(source))
        return 1;
    return (uint64_t)elements->shape[elements->ndims - 1];
}

static gbx_status write_cells(const gbx_export_source *source, element_texts *texts, FILE *to) {
    const gbx_elements *elements = &source->elements;
    uint64_t words[CELLS_AT_A_TIME];
    char text[CELLS_AT_A_TIME * CELL_BYTES_MAX];
    const uint64_t columns = columns_of(source);
    uint64_t column = 0;
    for (uint64_t at = 0; at < elements->stored && !ferror(to); at += CELLS_AT_A_TIME) {
        size_t count = (size_t)gbx_min_u64(elements->stored - at, CELLS_AT_A_TIME);
        GBX_TRY(gbx_elements_read(elements, at, count, words));
        char *end = text;
        for (size_t i = 0; i < count; ++i) {
            end += texts_put(texts, words[i], end);
            bool is_last = ++column == columns;
            *end++ = is_last ? '\n' : ',';
            column = is_last ? 0 : column;
        }
        fwrite(text, 1, (size_t)(end - text), to);
    }
    return NULL;
}

gbx_status gbx_export_csv(const gbx_export_source *source, FILE *to) {
    element_texts texts;
    GBX_TRY(texts_create(&texts, source->elements.dtype, true));
    const gbx_elements *elements = &source->elements;
    fputs("# shape (", to);
    gbx_export_numbers(to, elements->shape, elements->ndims);
    fprintf(to, "%s), %s", elements->ndims == 1 ? "," : "", gbx_dtype_name(elements->dtype));
    if (gbx_export_source_is_cut(source))
        fprintf(to, "; truncated: the first %" PRIu64 " of %" PRIu64 " elements", elements->stored,
                elements->count);
    fputc('\n', to);
    gbx_status status = write_cells(source, &texts, to);
    texts_destroy(&texts);
    return status;
}

/* --- txt: metadata --- */

void gbx_export_numbers(FILE *to, const int64_t *numbers, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
        fprintf(to, i ? ", %" PRId64 : "%" PRId64, numbers[i]);
}

static void write_numbers(FILE *to, const char *key, const int64_t *numbers, uint32_t count) {
    fprintf(to, "# %s: [", key);
    gbx_export_numbers(to, numbers, count);
    fputs("]\n", to);
}

/* Whatever a name contains, it stays on its line. */
static void write_name(FILE *to, const char *name) {
    char plain[NAME_BYTES];
    snprintf(plain, sizeof plain, "%s", name);
    gbx_text_make_plain(plain);
    fputs(plain, to);
}

static void write_kernels(FILE *to, const gbx_record_task *task, const gbx_run_info *run) {
    fputs("# kernel:", to);
    const char *separator = " ";
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        if (task->func_ids[i] == UINT32_MAX)
            continue;
        const gbx_run_kernel *kernel = gbx_run_info_kernel(run, task->func_ids[i]);
        fputs(separator, to);
        write_name(to, kernel ? kernel->name : "unknown");
        fprintf(to, " (func_id %" PRIu32 ")", task->func_ids[i]);
        separator = ", ";
    }
    fputc('\n', to);
}

static void write_about(FILE *to, const gbx_entry *entry, const gbx_export_source *source) {
    const gbx_elements *elements = &source->elements;
    fprintf(to, "# index: %" PRIu64 "\n", entry->index);
    const gbx_run_info *run = gbx_reader_run(source->values.reader);
    if (entry->task)
        fprintf(to, "# task_id: 0x%016" PRIx64 "\n", entry->task->task_id);
    fprintf(to, "# task_seq: %" PRIu64 "\n", entry->head->task);
    if (entry->task)
        write_kernels(to, entry->task, run);
    else
        fputs("# lost: the record of this task\n", to);
    fprintf(to, "# arg_index: %u\n", entry->head->arg_index);
    if (entry->arg_name) {
        fputs("# arg_name: ", to);
        write_name(to, entry->arg_name);
        fputc('\n', to);
    }
    fprintf(to, "# role: %s\n", gbx_name_of(&gbx_roles, entry->head->role));
    fprintf(to, "# stage: %s\n", gbx_name_of(&gbx_stages, entry->head->stage));
    fprintf(to, "# kind: %s\n", entry->tensor ? "tensor" : "scalar");
    fprintf(to, "# dtype: %s\n", gbx_dtype_name(entry->dtype));
    if (entry->dtype == GBX_DTYPE_NONE)
        fprintf(to, "# bits: 0x%016" PRIx64 "\n", entry->scalar->bits);
    else if (elements->dtype != entry->dtype)
        fprintf(to, "# converted to: %s\n", gbx_dtype_name(elements->dtype));
    if (entry->tensor) {
        const gbx_record_tensor *tensor = entry->tensor;
        write_numbers(to, "shape", gbx_record_shape(tensor), entry->head->ndims);
        write_numbers(to, "strides", gbx_record_strides(tensor), entry->head->ndims);
        fprintf(to, "# start_offset: %" PRId64 "\n", tensor->start_offset);
        fprintf(to, "# is_contiguous: %s\n",
                entry->head->flags & GBX_FLAG_CONTIGUOUS ? "true" : "false");
        if (entry->head->flags & GBX_FLAG_HAS_HASH)
            fprintf(to, "# hash: %016" PRIx64 "%016" PRIx64 "\n", tensor->hash_high,
                    tensor->hash_low);
    }
    if (gbx_export_source_is_cut(source))
        fprintf(to, "# truncated: the first %" PRIu64 " of %" PRIu64 " elements were kept\n",
                elements->stored, elements->count);
    if (entry->head->flags & GBX_FLAG_IN_FLIGHT)
        fputs("# in_flight: the task did not complete\n", to);
}

/* --- txt: elements --- */

/* The indices of an element, and the text of all but the last. */
typedef struct place {
    uint32_t ndims;
    uint64_t index[GBX_MAX_DIMS];
    uint64_t shape[GBX_MAX_DIMS];
    char prefix[GBX_MAX_DIMS * INDEX_TEXT_BYTES]; /* "[0, 3, " */
    size_t prefix_length;
} place;

static void write_prefix(place *at) {
    at->prefix[0] = '[';
    at->prefix_length = 1;
    for (uint32_t d = 0; d + 1 < at->ndims; ++d)
        at->prefix_length += (size_t)snprintf(at->prefix + at->prefix_length, INDEX_TEXT_BYTES,
                                              "%" PRIu64 ", ", at->index[d]);
}

static void step_place(place *at) {
    if (at->ndims == 0 || ++at->index[at->ndims - 1] < at->shape[at->ndims - 1])
        return;
    for (uint32_t d = at->ndims; d-- > 0;) {
        if (d + 1 < at->ndims && ++at->index[d] < at->shape[d])
            break;
        at->index[d] = 0;
    }
    write_prefix(at);
}

static char *put_line(char *end, const place *at, element_texts *texts, uint64_t bits) {
    memcpy(end, at->prefix, at->prefix_length);
    end += at->prefix_length;
    if (at->ndims > 0) {
        end += gbx_digits_count(at->index[at->ndims - 1]);
        gbx_digits_before(end, at->index[at->ndims - 1]);
    }
    *end++ = ']';
    *end++ = ' ';
    end += texts_put(texts, bits, end);
    *end++ = '\n';
    return end;
}

static gbx_status write_lines(FILE *to, const gbx_elements *elements, element_texts *texts) {
    uint64_t words[LINES_AT_A_TIME];
    char text[LINES_AT_A_TIME * LINE_BYTES_MAX];
    place place_now = {.ndims = elements->ndims};
    for (uint32_t d = 0; d < elements->ndims; ++d)
        place_now.shape[d] = (uint64_t)elements->shape[d];
    write_prefix(&place_now);
    for (uint64_t at = 0; at < elements->stored && !ferror(to); at += LINES_AT_A_TIME) {
        size_t count = (size_t)gbx_min_u64(elements->stored - at, LINES_AT_A_TIME);
        GBX_TRY(gbx_elements_read(elements, at, count, words));
        char *end = text;
        for (size_t i = 0; i < count; ++i) {
            end = put_line(end, &place_now, texts, words[i]);
            step_place(&place_now);
        }
        fwrite(text, 1, (size_t)(end - text), to);
    }
    return NULL;
}

gbx_status gbx_export_txt(const gbx_entry *entry, const gbx_export_source *source, FILE *to) {
    element_texts texts;
    write_about(to, entry, source);
    fputs("\n# overview\n", to);
    const gbx_array_text_options options = {.line_width = source->elements.ndims < 2 ? LINE_WIDTH
                                                                                     : ROW_WIDTH};
    GBX_TRY(gbx_array_print(to, &source->elements, &options));
    fputs("\n# elements\n", to);
    GBX_TRY(texts_create(&texts, source->elements.dtype, false));
    gbx_status status = write_lines(to, &source->elements, &texts);
    texts_destroy(&texts);
    return status;
}
