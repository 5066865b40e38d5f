#include "analysis/export/export_txt.h"

#include <inttypes.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/array_text.h"
#include "analysis/export/export_texts.h"
#include "text/plain_text.h"

enum {
    PIECE_ELEMENTS = 2048,
    LINE_WIDTH = 100,    /* of one dimension */
    ROW_WIDTH = 1 << 24, /* of more: a row is never broken */
    NAME_BYTES = 512,
    INDEX_TEXT_BYTES = 24, /* of one dimension, with ", " */
    LINE_BYTES_MAX = GBX_MAX_DIMS * INDEX_TEXT_BYTES + GBX_ELEMENT_TEXT_BYTES
};

static const char *const role_names[] = {"input", "output", "inout"};

/* --- what it is --- */

static void write_numbers(FILE *to, const char *key, const int64_t *numbers, uint32_t count) {
    fprintf(to, "# %s: [", key);
    for (uint32_t i = 0; i < count; ++i)
        fprintf(to, i ? ", %" PRId64 : "%" PRId64, numbers[i]);
    fputs("]\n", to);
}

/* A name of a kernel or an argument, whatever is in it, stays on its line. */
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

static void write_task(FILE *to, const gbx_entry *entry, const gbx_run_info *run) {
    if (entry->task)
        fprintf(to, "# task_id: 0x%016" PRIx64 "\n", entry->task->task_id);
    fprintf(to, "# task_seq: %" PRIu64 "\n", entry->head->task);
    if (entry->task)
        write_kernels(to, entry->task, run);
    else
        fputs("# lost: the record of this task\n", to);
}

static void write_geometry(FILE *to, const gbx_entry *entry) {
    const gbx_record_tensor *tensor = entry->tensor;
    write_numbers(to, "shape", gbx_record_shape(tensor), entry->head->ndims);
    write_numbers(to, "strides", gbx_record_strides(tensor), entry->head->ndims);
    fprintf(to, "# start_offset: %" PRId64 "\n", tensor->start_offset);
    fprintf(to, "# is_contiguous: %s\n",
            entry->head->flags & GBX_FLAG_CONTIGUOUS ? "true" : "false");
    if (entry->head->flags & GBX_FLAG_HAS_HASH)
        fprintf(to, "# hash: %016" PRIx64 "%016" PRIx64 "\n", tensor->hash_high, tensor->hash_low);
}

static void write_head(FILE *to, const gbx_entry *entry, const gbx_export_source *source) {
    const gbx_elements *elements = &source->elements;
    fprintf(to, "# index: %" PRIu64 "\n", entry->index);
    write_task(to, entry, gbx_reader_run(source->values.reader));
    fprintf(to, "# arg_index: %u\n", entry->head->arg_index);
    if (entry->arg_name) {
        fputs("# arg_name: ", to);
        write_name(to, entry->arg_name);
        fputc('\n', to);
    }
    fprintf(to, "# role: %s\n", role_names[entry->head->role]);
    fprintf(to, "# stage: %s\n",
            entry->head->stage == GBX_STAGE_BEFORE ? "before_dispatch" : "after_completion");
    fprintf(to, "# kind: %s\n", entry->tensor ? "tensor" : "scalar");
    fprintf(to, "# dtype: %s\n", gbx_dtype_name(entry->dtype));
    if (elements->dtype != entry->dtype)
        fprintf(to, "# converted to: %s\n", gbx_dtype_name(elements->dtype));
    if (entry->tensor)
        write_geometry(to, entry);
    if (gbx_export_source_is_cut(source))
        fprintf(to, "# truncated: the first %" PRIu64 " of %" PRIu64 " elements were kept\n",
                elements->stored, elements->count);
    if (entry->head->flags & GBX_FLAG_IN_FLIGHT)
        fputs("# in_flight: the task did not complete\n", to);
}

/* --- its elements --- */

/* The indices of an element and their text, without the last one. */
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

static void start_place(const gbx_elements *elements, place *out_at) {
    *out_at = (place){.ndims = elements->ndims};
    for (uint32_t d = 0; d < elements->ndims; ++d)
        out_at->shape[d] = (uint64_t)elements->shape[d];
    write_prefix(out_at);
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

static char *put_number(char *at, uint64_t number) {
    char digits[INDEX_TEXT_BYTES];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0)
        *at++ = digits[--count];
    return at;
}

static char *put_line(char *end, const place *at, gbx_export_texts *texts, uint64_t bits) {
    memcpy(end, at->prefix, at->prefix_length);
    end += at->prefix_length;
    if (at->ndims > 0)
        end = put_number(end, at->index[at->ndims - 1]);
    *end++ = ']';
    *end++ = ' ';
    end += gbx_export_texts_put(texts, bits, end);
    *end++ = '\n';
    return end;
}

static gbx_status write_elements(FILE *to, const gbx_elements *elements, gbx_export_texts *texts) {
    uint64_t words[PIECE_ELEMENTS];
    char text[PIECE_ELEMENTS * LINE_BYTES_MAX];
    place place_now;
    start_place(elements, &place_now);
    for (uint64_t at = 0; at < elements->stored && !ferror(to);) {
        uint64_t left = elements->stored - at;
        size_t count = (size_t)(left < PIECE_ELEMENTS ? left : PIECE_ELEMENTS);
        GBX_TRY(gbx_elements_read(elements, at, count, words));
        char *end = text;
        for (size_t i = 0; i < count; ++i) {
            end = put_line(end, &place_now, texts, words[i]);
            step_place(&place_now);
        }
        fwrite(text, 1, (size_t)(end - text), to);
        at += count;
    }
    return NULL;
}

gbx_status gbx_export_txt(const gbx_entry *entry, const gbx_export_source *source, FILE *to) {
    gbx_export_texts texts;
    write_head(to, entry, source);
    fputs("\n# overview\n", to);
    const gbx_array_text_options options = {.line_width = source->elements.ndims < 2 ? LINE_WIDTH
                                                                                     : ROW_WIDTH};
    GBX_TRY(gbx_array_print(to, &source->elements, &options));
    fputs("\n# elements\n", to);
    GBX_TRY(gbx_export_texts_create(&texts, source->elements.dtype, false));
    gbx_status status = write_elements(to, &source->elements, &texts);
    gbx_export_texts_destroy(&texts);
    return status;
}
