#include "cli/view_tensor.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include <glassbox/tensor.h>

#include "analysis/array_text.h"
#include "analysis/histogram.h"
#include "base/float_bits.h"
#include "base/hash.h"
#include "cli/dump_text.h"
#include "cli/terminal.h"
#include "cli/view_row.h"
#include "text/names.h"

enum {
    LINE_WIDTH = 75, /* numpy's; on a terminal its own, in these bounds: */
    LINE_WIDTH_MIN = 40,
    LINE_WIDTH_MAX = 120,
    BINS = 48,
    CHUNK = 1024
};

/* Elements of a truncated tensor that --full prints as ?. */
#define CUT_OFF_MAX (UINT64_C(1) << 32)

/* --- what it is --- */

static void print_numbers(const char *what, const int64_t *numbers, uint32_t count) {
    printf("%s[", what);
    for (uint32_t i = 0; i < count; ++i)
        printf("%s%" PRId64, i ? ", " : "", numbers[i]);
    printf("]");
}

/* "entry 17: task 3 (0x0000000000000003), kernel add, after_completion, output, arg 2 c" */
static void print_place(const gbx_reader *reader, const gbx_entry *entry, const gbx_view_row *row) {
    printf("entry %" PRIu64 ": task %s", entry->index, row->cells[GBX_VIEW_TASK]);
    if (entry->task && (gbx_reader_get_origin(reader)->told & GBX_TOLD_TASK_SEQ))
        printf(" (0x%016" PRIx64 ")", entry->task->task_id);
    printf(", kernel ");
    gbx_terminal_put(row->cells[GBX_VIEW_KERNEL]);
    printf(", %s, %s, arg ", gbx_name_of(&gbx_stages, entry->head->stage),
           row->cells[GBX_VIEW_ROLE]);
    gbx_terminal_put(row->cells[GBX_VIEW_ARG]);
    printf("\n");
}

static void print_view(const gbx_record_tensor *tensor) {
    if (tensor->head.flags & GBX_FLAG_CONTIGUOUS)
        return;
    print_numbers(", strides ", gbx_record_strides(tensor), tensor->head.ndims);
    printf(" from element %" PRId64, tensor->start_offset);
}

/* "float32 [128, 128], 65536 bytes, hash 0123..." */
static void print_form(const gbx_entry *entry, const gbx_view_row *row) {
    char hash[GBX_HASH_TEXT_BYTES];
    const gbx_record_tensor *tensor = entry->tensor;
    printf("%s", gbx_dtype_name(entry->dtype));
    if (!tensor) {
        printf(" scalar, bits 0x%016" PRIx64 "\n", entry->scalar->bits);
        return;
    }
    print_numbers(" ", gbx_record_shape(tensor), tensor->head.ndims);
    print_view(tensor);
    if (tensor->head.flags & GBX_FLAG_HAS_PAYLOAD)
        printf(", %" PRIu64 " byte%s", tensor->bin_size, tensor->bin_size == 1 ? "" : "s");
    if (tensor->head.flags & GBX_FLAG_HAS_HASH) {
        gbx_hash_format((gbx_hash128){tensor->hash_low, tensor->hash_high}, hash);
        printf(", hash %s", hash);
    }
    printf("%s%s\n", *row->cells[GBX_VIEW_NOTE] ? "; " : "", row->cells[GBX_VIEW_NOTE]);
}

/* --- values --- */

static void print_statistics(uint32_t dtype, const gbx_statistics *s) {
    char min[GBX_VIEW_NUMBER_BYTES], max[GBX_VIEW_NUMBER_BYTES], mean[GBX_VIEW_NUMBER_BYTES];
    gbx_view_extreme_text(dtype, s->min_bits, min);
    gbx_view_extreme_text(dtype, s->max_bits, max);
    gbx_view_mean_text(s->mean, mean);
    printf("min %s  max %s  mean %s  NaN %" PRIu64 "  Inf %" PRIu64 "  zero %" PRIu64, min, max,
           mean, s->nan_count, s->inf_count, s->zero_count);
    if (gbx_dtype_is_float(dtype))
        printf("  subnormal %" PRIu64, s->subnormal_count);
    printf("\n");
}

/* The smallest and the largest finite element; NaN where there is none. */
static gbx_status find_range(const gbx_elements *elements, double *out_low, double *out_high) {
    uint64_t bits[CHUNK];
    *out_low = *out_high = (double)NAN;
    for (uint64_t first = 0; first < elements->stored; first += CHUNK) {
        uint64_t left = elements->stored - first;
        size_t count = left < CHUNK ? (size_t)left : CHUNK;
        GBX_TRY(gbx_elements_read(elements, first, count, bits));
        for (size_t i = 0; i < count; ++i) {
            double value = gbx_dtype_to_f64(elements->dtype, bits[i]);
            if (!isfinite(value))
                continue;
            *out_low = isnan(*out_low) ? value : fmin(*out_low, value);
            *out_high = isnan(*out_high) ? value : fmax(*out_high, value);
        }
    }
    return NULL;
}

static gbx_status print_histogram(const gbx_elements *elements) {
    gbx_histogram histogram;
    char bars[GBX_HISTOGRAM_TEXT_BYTES], low_text[GBX_VIEW_NUMBER_BYTES],
        high_text[GBX_VIEW_NUMBER_BYTES];
    double low, high;
    GBX_TRY(find_range(elements, &low, &high));
    if (isnan(low) || elements->stored < 2)
        return NULL;
    GBX_TRY(gbx_histogram_count(elements, low, high, BINS, &histogram));
    gbx_view_mean_text(low, low_text);
    gbx_view_mean_text(high, high_text);
    printf("%s |%s| %s\n", low_text,
           gbx_histogram_format(&histogram, gbx_terminal_is_unicode(), bars), high_text);
    return NULL;
}

static size_t line_width(void) {
    size_t width = gbx_terminal_width();
    if (width == SIZE_MAX)
        return LINE_WIDTH;
    width = width < LINE_WIDTH_MAX ? width : LINE_WIDTH_MAX;
    return width > LINE_WIDTH_MIN ? width : LINE_WIDTH_MIN;
}

static gbx_status print_values(const gbx_entry *entry, const gbx_reader *reader, bool is_full) {
    gbx_entry_values values;
    gbx_array_text_options options = {.is_full = is_full, .line_width = line_width()};
    GBX_TRY(gbx_entry_values_open(entry, reader, &values));
    GBX_TRY(gbx_array_print(stdout, &values.elements, &options));
    /* The rest of a large tensor takes a while. */
    fflush(stdout);
    return print_histogram(&values.elements);
}

static const char *why_no_values(const gbx_entry *entry) {
    if (gbx_entry_numel(entry) == 0)
        return "it has no elements";
    return gbx_entry_is_overwritten(entry) ? "its bytes were overwritten before they were taken"
                                           : "no payload was kept of it";
}

gbx_status gbx_view_tensor_check(gbx_entries *entries, uint64_t index, bool is_full) {
    gbx_entry entry;
    gbx_entry_values values;
    GBX_TRY(gbx_entries_at(entries, index, &entry));
    if (!gbx_entry_has_values(&entry))
        return NULL;
    GBX_TRY(gbx_entry_values_open(&entry, gbx_entries_reader(entries), &values));
    uint64_t cut_off = values.elements.count - values.elements.stored;
    if (!is_full || cut_off <= CUT_OFF_MAX)
        return NULL;
    return gbx_fail(GBX_OUT_OF_RANGE,
                    "--full: %" PRIu64 " elements of entry %" PRIu64
                    " were cut off, and at most %" PRIu64
                    " are printed as ?; --export writes those that were kept",
                    cut_off, index, CUT_OFF_MAX);
}

gbx_status gbx_view_tensor_print(gbx_entries *entries, uint64_t index, bool is_full) {
    const gbx_reader *reader = gbx_entries_reader(entries);
    gbx_view_row row = {0};
    gbx_entry entry;
    gbx_statistics statistics;
    bool is_there = false;
    GBX_TRY(gbx_entries_at(entries, index, &entry));
    gbx_view_row_fill(&row, reader, &entry);
    print_place(reader, &entry, &row);
    print_form(&entry, &row);
    if (gbx_entry_has_values(&entry))
        GBX_TRY(print_values(&entry, reader, is_full));
    else
        puts(why_no_values(&entry));
    GBX_TRY(gbx_entry_statistics(&entry, reader, &statistics, &is_there));
    if (is_there && entry.tensor)
        print_statistics(entry.dtype, &statistics);
    return NULL;
}
