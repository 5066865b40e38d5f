#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analysis/array_text.h"
#include "analysis/histogram.h"
#include "base/hash.h"
#include "cli/internal.h"

enum {
    LINE_WIDTH = 75, /* numpy's; on a terminal its own, in these bounds: */
    LINE_WIDTH_MIN = 40,
    LINE_WIDTH_MAX = 120,
    BINS = 48,
    CHUNK = 1024
};

/* Elements of a truncated tensor that --full prints as ?. */
#define CUT_OFF_MAX (UINT64_C(1) << 32)

/* --- the head --- */

static void print_count(const char *what, uint64_t count, const char *colour) {
    char text[GBX_COUNT_TEXT_BYTES];
    printf("; ");
    if (count > 0)
        gbx_terminal_put_coloured(colour, gbx_text_count(count, text), what);
    else
        printf("0%s", what);
}

void gbx_view_head_print(const gbx_opened_dump *dump) {
    const gbx_reader *reader = dump->reader;
    const gbx_run_info *run = gbx_reader_run(reader);
    const gbx_reader_totals *totals = gbx_reader_get_totals(reader);
    const char *const parts[] = {run->platform, run->runtime, run->dump_level};
    uint64_t records = totals->records + totals->in_flight;
    bool is_complete = gbx_reader_is_complete(reader);
    char text[GBX_COUNT_TEXT_BYTES];
    gbx_terminal_put(run->scene ? run->scene : dump->directory);
    if (run->scene && run->case_name)
        gbx_terminal_quote(" ", run->case_name, "");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; ++i)
        if (parts[i])
            gbx_terminal_quote(", ", parts[i], "");
    printf(": %s record%s", gbx_text_count(records, text), gbx_text_plural(records));
    printf(" of %s task%s", gbx_text_count(totals->tasks, text), gbx_text_plural(totals->tasks));
    printf(", %s", gbx_text_bytes(totals->payload_bytes, text));
    if (totals->stored_bytes != totals->payload_bytes)
        printf(" (%s stored)", gbx_text_bytes(totals->stored_bytes, text));
    print_count(" lost", totals->dropped, GBX_RED);
    print_count(" skipped", totals->skipped, GBX_YELLOW);
    if (totals->truncated > 0)
        print_count(" truncated", totals->truncated, GBX_YELLOW);
    if (totals->in_flight > 0)
        print_count(" in flight", totals->in_flight, GBX_RED);
    if ((gbx_reader_get_origin(reader)->known & GBX_KNOWN_STATUS) &&
        !(is_complete && gbx_reader_has_ended_well(reader))) {
        printf("; ");
        gbx_terminal_put_coloured(GBX_RED, is_complete ? "" : "not complete: ",
                                  gbx_reader_end(reader) ? gbx_reader_end_text(reader) : "killed");
    }
    putchar('\n');
}

/* --- what it is --- */

/* "entry 17: task 3 (0x0000000000000003), kernel add, after_completion, output, arg 2 c" */
static void print_place(const gbx_reader *reader, const gbx_entry *entry, const gbx_view_row *row) {
    printf("entry %" PRIu64 ": task %s", entry->index, row->cells[GBX_VIEW_TASK]);
    if (entry->task && (gbx_reader_get_origin(reader)->known & GBX_KNOWN_TASK_SEQ))
        printf(" (0x%016" PRIx64 ")", entry->task->task_id);
    gbx_terminal_quote(", kernel ", row->cells[GBX_VIEW_KERNEL], ", ");
    printf("%s, %s", gbx_name_of(&gbx_stages, entry->head->stage), row->cells[GBX_VIEW_ROLE]);
    gbx_terminal_quote(", arg ", row->cells[GBX_VIEW_ARG], "\n");
}

/* "float32 [128, 128], 65536 bytes, hash 0123..." */
static void print_form(const gbx_entry *entry, const gbx_view_row *row) {
    char hash[GBX_HASH_TEXT_BYTES], numbers[GBX_NUMBERS_TEXT_BYTES];
    const gbx_record_tensor *tensor = entry->tensor;
    printf("%s", gbx_dtype_name(entry->dtype));
    if (!tensor) {
        printf(" scalar, bits 0x%016" PRIx64 "\n", entry->scalar->bits);
        return;
    }
    printf(" %s", gbx_text_numbers(gbx_record_shape(tensor), tensor->head.ndims, numbers));
    if (!(tensor->head.flags & GBX_FLAG_CONTIGUOUS))
        printf(", strides %s from element %" PRId64,
               gbx_text_numbers(gbx_record_strides(tensor), tensor->head.ndims, numbers),
               tensor->start_offset);
    if (tensor->head.flags & GBX_FLAG_HAS_PAYLOAD)
        printf(", %" PRIu64 " byte%s", tensor->bin_size, gbx_text_plural(tensor->bin_size));
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

static gbx_status print_values(const gbx_entry *entry, const gbx_reader *reader, bool is_full) {
    gbx_entry_values values;
    size_t width = gbx_terminal_width();
    if (width == SIZE_MAX)
        width = LINE_WIDTH;
    else if (width > LINE_WIDTH_MAX || width < LINE_WIDTH_MIN)
        width = width > LINE_WIDTH_MAX ? LINE_WIDTH_MAX : LINE_WIDTH_MIN;
    gbx_array_text_options options = {.is_full = is_full, .line_width = width};
    GBX_TRY(gbx_entry_values_open(entry, reader, &values));
    GBX_TRY(gbx_array_print(stdout, &values.elements, &options));
    /* The rest of a large tensor takes a while. */
    fflush(stdout);
    return print_histogram(&values.elements);
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
        puts(gbx_entry_numel(&entry) == 0 ? "it has no elements"
             : gbx_entry_is_overwritten(&entry)
                 ? "its bytes were overwritten before they were taken"
                 : "no payload was kept of it");
    GBX_TRY(gbx_entry_statistics(&entry, reader, &statistics, &is_there));
    if (is_there && entry.tensor)
        print_statistics(entry.dtype, &statistics);
    return NULL;
}
