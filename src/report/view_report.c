#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>

#include "analysis/array_text.h"
#include "analysis/histogram.h"
#include "base/float_bits.h"
#include "base/hash.h"
#include "base/memory.h"
#include "report/reports.h"
#include "report/table.h"
#include "store/manifest/manifest.h"
#include "store/manifest/manifest_text.h"

/* --- texts --- */

static bool has_flag(const gbx_entry *entry, unsigned flag) {
    return entry->head->flags & flag;
}

static const char *note_text(gbx_texts *t, const gbx_entry *entry) {
    bool is_bare = entry->tensor && !has_flag(entry, GBX_FLAG_HAS_PAYLOAD);
    if (!is_bare &&
        !has_flag(entry, GBX_FLAG_TRUNCATED | GBX_FLAG_IN_FLIGHT | GBX_FLAG_OVERWRITTEN))
        return "";
    return gbx_text_format(t, "%s%s%s%s", has_flag(entry, GBX_FLAG_IN_FLIGHT) ? ", in flight" : "",
                           has_flag(entry, GBX_FLAG_TRUNCATED) ? ", truncated" : "",
                           has_flag(entry, GBX_FLAG_OVERWRITTEN) ? ", overwritten" : "",
                           is_bare ? ", no payload" : "") +
           strlen(", ");
}

/* min or max of statistics, in at most GBX_SHORT_WIDTH columns. */
static const char *extreme_text(gbx_texts *t, uint32_t dtype, uint64_t bits) {
    bool is_signed = gbx_dtype_is_signed(dtype);
    if (gbx_dtype_is_float(dtype))
        return gbx_text_short(t, gbx_f64_of_bits(bits));
    const char *text =
        is_signed ? gbx_text_format(t, "%" PRId64, (int64_t)bits) : gbx_text_number(t, bits);
    if (strlen(text) <= GBX_SHORT_WIDTH)
        return text;
    return gbx_text_short(t, is_signed ? (double)(int64_t)bits : (double)bits);
}

/* --- the list --- */

enum { BATCH_MAX = 4096, HASH_SHOWN = 8, STATISTICS_COUNT = 5 };

typedef struct list_row {
    gbx_entry entry;
    const char *task, *kernel, *stage, *role, *arg, *shape, *bytes, *note;
    const char *statistics[STATISTICS_COUNT]; /* min, max, mean, NaN, infinities */
    char hash[GBX_VALUE_TEXT_BYTES];
} list_row;

#define COLUMN(member, kind, heading, ...)                                                         \
    GBX_FIELD(list_row, member, kind, NULL, heading, __VA_ARGS__)
/* What tells entries apart leaves last; beside statistics a shape matters less. */
#define FORM_COLUMNS(shape_leaves)                                                                 \
    COLUMN(role, STRING, "ROLE", .leaves = 7),                                                     \
        COLUMN(arg, STRING, "ARG", .narrowest = 6, .leaves = 9),                                   \
        COLUMN(entry.dtype, DTYPE, "DTYPE", .leaves = 3),                                          \
        COLUMN(shape, STRING, "SHAPE", .narrowest = 8, .leaves = (shape_leaves)),                  \
        COLUMN(bytes, STRING, "BYTES", .is_right = true, .leaves = 2),                             \
        COLUMN(hash, TEXT, "HASH", .leaves = 1)
#define RESULT_COLUMNS(shape_leaves)                                                               \
    COLUMN(entry.index, NUMBER, "INDEX"), FORM_COLUMNS(shape_leaves)
#define FIRST_COLUMNS(shape_leaves)                                                                \
    COLUMN(entry.index, NUMBER, "INDEX"),                                                          \
        COLUMN(task, STRING, "TASK", .is_right = true, .leaves = 11),                              \
        COLUMN(kernel, STRING, "KERNEL", .narrowest = 8, .leaves = 10),                            \
        COLUMN(stage, STRING, "STAGE", .leaves = 8), FORM_COLUMNS(shape_leaves)
#define STATISTICS_COLUMNS                                                                         \
    COLUMN(statistics[0], STRING, "MIN", .is_right = true, .width = GBX_SHORT_WIDTH),              \
        COLUMN(statistics[1], STRING, "MAX", .is_right = true, .width = GBX_SHORT_WIDTH),          \
        COLUMN(statistics[2], STRING, "MEAN", .is_right = true, .leaves = 4,                       \
               .width = GBX_SHORT_WIDTH),                                                          \
        COLUMN(statistics[3], STRING, "NAN", .is_right = true),                                    \
        COLUMN(statistics[4], STRING, "INF", .is_right = true, .leaves = 6)
#define LAST_COLUMN COLUMN(note, STRING, "NOTE", .narrowest = 6, .leaves = 12)

static const gbx_field columns[] = {FIRST_COLUMNS(13), LAST_COLUMN};
static const gbx_field columns_with_statistics[] = {FIRST_COLUMNS(5), STATISTICS_COLUMNS,
                                                    LAST_COLUMN};

typedef struct listing {
    gbx_texts *texts;
    gbx_entries *entries;
    const uint64_t *indices;
    uint64_t count;
    gbx_entry_summary *summaries; /* of the rows from `begin` to `end`; NULL without statistics */
    uint64_t begin;
    uint64_t end;
    bool has_statistics;                  /* of results */
    uint32_t func_ids[GBX_SUBTASK_COUNT]; /* of `kernel` */
    char kernel[GBX_TEXT_BYTES_MAX];      /* "" before the first */
} listing;

/* Rows of one task follow each other: the last text is nearly always the next. */
static const char *kernel_text(listing *l, const gbx_record_task *task) {
    static const uint32_t none[GBX_SUBTASK_COUNT] = {GBX_NO_KERNEL, GBX_NO_KERNEL, GBX_NO_KERNEL};
    const uint32_t *func_ids = task ? task->func_ids : none;
    if (!l->kernel[0] || memcmp(l->func_ids, func_ids, sizeof l->func_ids) != 0) {
        memcpy(l->func_ids, func_ids, sizeof l->func_ids);
        const char *text = gbx_text_kernel(l->texts, gbx_entries_reader(l->entries), task);
        memccpy(l->kernel, text, '\0', sizeof l->kernel);
    }
    return l->kernel;
}

static gbx_status read_batch(listing *l, uint64_t row) {
    uint64_t left = l->count - row;
    size_t count = 0;
    GBX_TRY(gbx_entries_statistics(l->entries, l->indices + row,
                                   left < BATCH_MAX ? (size_t)left : BATCH_MAX, l->summaries,
                                   &count));
    l->begin = row;
    l->end = row + count;
    return NULL;
}

/* What does not depend on a task. */
static void fill_form(gbx_texts *t, list_row *row) {
    const gbx_entry *entry = &row->entry;
    bool has_payload = entry->tensor && has_flag(entry, GBX_FLAG_HAS_PAYLOAD);
    row->role = gbx_name_brief(&gbx_roles, entry->head->role);
    row->arg = gbx_text_arg(t, entry->head->arg_index, entry->arg_name);
    row->shape = gbx_text_shape(t, entry);
    row->bytes = has_payload ? gbx_text_number(t, entry->tensor->bin_size) : "-";
    row->note = note_text(t, entry);
    if (entry->tensor &&
        has_flag(entry, GBX_FLAG_HAS_HASH)) /* its text begins with the high word */
        gbx_put_hex_digits(row->hash, entry->tensor->hash_high);
    else
        memcpy(row->hash, "-", sizeof "-");
    row->hash[HASH_SHOWN] = '\0';
}

static void fill_statistics(gbx_texts *t, list_row *row, const gbx_statistics *s) {
    row->statistics[0] = s ? extreme_text(t, row->entry.dtype, s->min_bits) : "-";
    row->statistics[1] = s ? extreme_text(t, row->entry.dtype, s->max_bits) : "-";
    row->statistics[2] = s ? gbx_text_short(t, s->mean) : "-";
    row->statistics[3] = s ? gbx_text_number(t, s->nan_count) : "-";
    row->statistics[4] = s ? gbx_text_number(t, s->inf_count) : "-";
}

static gbx_status fill_row(listing *l, uint64_t number, list_row *row) {
    gbx_entry *entry = &row->entry;
    GBX_TRY(gbx_entries_at(l->entries, l->indices[number], entry));
    row->task = gbx_text_task_of(l->texts, gbx_entries_reader(l->entries), entry);
    row->kernel = kernel_text(l, entry->task);
    row->stage = gbx_name_brief(&gbx_stages, entry->head->stage);
    fill_form(l->texts, row);
    return NULL;
}

/* Nothing is known of a tensor but that no count is above that of its elements. */
static gbx_status measure_row(const void *context, uint64_t number, void *out_row) {
    listing *l = *(listing *const *)context;
    list_row *row = out_row;
    GBX_TRY(fill_row(l, number, row));
    const char *most = gbx_text_number(l->texts, gbx_entry_numel(&row->entry));
    for (size_t i = 0; i < STATISTICS_COUNT; ++i)
        row->statistics[i] = i < 3 ? "" : most;
    return NULL;
}

static gbx_status make_row(const void *context, uint64_t number, void *out_row) {
    listing *l = *(listing *const *)context;
    list_row *row = out_row;
    if (l->summaries && number >= l->end)
        GBX_TRY(read_batch(l, number));
    GBX_TRY(fill_row(l, number, row));
    if (!l->summaries)
        return NULL;
    const gbx_entry_summary *summary = &l->summaries[number - l->begin];
    fill_statistics(l->texts, row, summary->is_there ? &summary->statistics : NULL);
    return NULL;
}

static gbx_status print_table(gbx_sink *sink, const gbx_opened_dump *dump, const uint64_t *indices,
                              uint64_t count, bool has_statistics) {
    listing l = {
        .texts = &sink->texts, .entries = dump->entries, .indices = indices, .count = count};
    listing *const context = &l;
    list_row row;
    if (!has_statistics)
        return gbx_rows_print(sink, GBX_ROWS_MADE(columns, &context, count, make_row, &row), 1);
    if (!(l.summaries = malloc(BATCH_MAX * sizeof *l.summaries)))
        return gbx_fail_memory("printing the list");
    gbx_rows rows = *GBX_ROWS_MADE(columns_with_statistics, &context, count, make_row, &row);
    rows.measure = measure_row;
    gbx_status status = gbx_rows_print(sink, &rows, 1);
    free(l.summaries);
    return status;
}

/* --- results of the run --- */

static const gbx_field result_columns[] = {RESULT_COLUMNS(13), LAST_COLUMN};
static const gbx_field result_columns_with_statistics[] = {RESULT_COLUMNS(5), STATISTICS_COLUMNS,
                                                           LAST_COLUMN};

static gbx_status read_result(gbx_reader *reader, uint64_t number, gbx_entry *out_entry) {
    gbx_result result;
    GBX_TRY(gbx_reader_result(reader, number, &result));
    *out_entry = (gbx_entry){.index = number,
                             .head = &result.record->head,
                             .tensor = result.record,
                             .arg_name = result.name,
                             .dtype = result.record->head.dtype};
    return NULL;
}

static gbx_status make_result_row(const void *context, uint64_t number, void *out_row) {
    listing *l = *(listing *const *)context;
    gbx_reader *reader = gbx_entries_reader(l->entries);
    list_row *row = out_row;
    gbx_statistics statistics;
    bool is_there = false;
    GBX_TRY(read_result(reader, number, &row->entry));
    fill_form(l->texts, row);
    if (l->has_statistics)
        GBX_TRY(gbx_entry_statistics(&row->entry, reader, &statistics, &is_there));
    fill_statistics(l->texts, row, is_there ? &statistics : NULL);
    return NULL;
}

gbx_status gbx_view_print_results(gbx_sink *sink, const gbx_opened_dump *dump,
                                  bool has_statistics) {
    listing l = {.texts = &sink->texts, .entries = dump->entries, .has_statistics = has_statistics};
    listing *const context = &l;
    list_row row;
    uint64_t count = gbx_reader_result_count(dump->reader);
    gbx_dump_print_head(sink, dump);
    if (!has_statistics)
        return gbx_rows_print(
            sink, GBX_ROWS_MADE(result_columns, &context, count, make_result_row, &row), 1);
    return gbx_rows_print(
        sink, GBX_ROWS_MADE(result_columns_with_statistics, &context, count, make_result_row, &row),
        1);
}

gbx_status gbx_view_print_list(gbx_sink *sink, const gbx_opened_dump *dump,
                               const gbx_selected *selected, uint64_t limit, bool is_filtered,
                               bool has_statistics) {
    gbx_texts *t = &sink->texts;
    uint64_t shown = selected->count < limit ? selected->count : limit;
    gbx_dump_print_head(sink, dump);
    GBX_TRY(gbx_dump_print_run_findings(sink, dump));
    GBX_TRY(print_table(sink, dump, selected->indices, shown, has_statistics));
    if (is_filtered)
        gbx_sink_print(sink, "%s of %s match\n", gbx_text_count(t, selected->count),
                       gbx_text_counted(t, gbx_entries_count(dump->entries), "entry"));
    if (shown < selected->count)
        gbx_sink_print(sink, "%s more not shown (--limit %" PRIu64 ")\n",
                       gbx_text_count(t, selected->count - shown), shown);
    return NULL;
}

/* --- one entry --- */

enum {
    LINE_WIDTH = 75, /* numpy's; on a terminal its own, in these bounds: */
    LINE_WIDTH_MIN = 40,
    LINE_WIDTH_MAX = 120,
    BINS = 48,
    CHUNK = 1024
};

/* Elements of a truncated tensor that --full prints as ?. */
#define CUT_OFF_MAX (UINT64_C(1) << 32)

/* "result 0: out, arg 2 c of the run" */
static void print_result_place(gbx_sink *sink, const gbx_entry *entry) {
    gbx_texts *t = &sink->texts;
    gbx_sink_print(sink, "result %" PRIu64 ": %s, arg %s of the run\n", entry->index,
                   gbx_name_brief(&gbx_roles, entry->head->role),
                   gbx_text_shown(t, gbx_text_arg(t, entry->head->arg_index, entry->arg_name)));
}

/* "entry 17: task 3 (0x0000000000000003), kernel add, after_completion, out, arg 2 c" */
static void print_place(gbx_sink *sink, const gbx_reader *reader, const gbx_entry *entry) {
    gbx_texts *t = &sink->texts;
    gbx_sink_print(sink, "entry %" PRIu64 ": task %s", entry->index,
                   gbx_text_task_of(t, reader, entry));
    if (entry->task && (gbx_reader_get_origin(reader)->known & GBX_KNOWN_TASK_SEQ))
        gbx_sink_print(sink, " (0x%016" PRIx64 ")", entry->task->task_id);
    gbx_sink_print(sink, ", kernel %s, %s, %s, arg %s\n",
                   gbx_text_shown(t, gbx_text_kernel(t, reader, entry->task)),
                   gbx_name_of(&gbx_stages, entry->head->stage),
                   gbx_name_brief(&gbx_roles, entry->head->role),
                   gbx_text_shown(t, gbx_text_arg(t, entry->head->arg_index, entry->arg_name)));
}

/* "float32 [128, 128], 65536 bytes, hash 0123..." */
static void print_form(gbx_sink *sink, const gbx_entry *entry) {
    gbx_texts *t = &sink->texts;
    const gbx_record_tensor *tensor = entry->tensor;
    char hash[GBX_HASH_TEXT_BYTES];
    gbx_sink_print(sink, "%s", gbx_dtype_name(entry->dtype));
    if (!tensor) {
        gbx_sink_print(sink, " scalar, bits 0x%016" PRIx64 "\n", entry->scalar->bits);
        return;
    }
    gbx_sink_print(sink, " %s", gbx_text_shape(t, entry));
    if (!has_flag(entry, GBX_FLAG_CONTIGUOUS))
        gbx_sink_print(sink, ", strides %s from element %" PRId64,
                       gbx_text_numbers(t, gbx_record_strides(tensor), tensor->head.ndims),
                       tensor->start_offset);
    if (has_flag(entry, GBX_FLAG_HAS_PAYLOAD))
        gbx_sink_print(sink, ", %" PRIu64 " byte%s", tensor->bin_size,
                       gbx_text_verb(tensor->bin_size, "", "s"));
    if (has_flag(entry, GBX_FLAG_HAS_HASH)) {
        gbx_hash_format((gbx_hash128){tensor->hash_low, tensor->hash_high}, hash);
        gbx_sink_print(sink, ", hash %s", hash);
    }
    const char *note = note_text(t, entry);
    gbx_sink_print(sink, "%s%s\n", *note ? "; " : "", note);
}

static void print_statistics(gbx_sink *sink, uint32_t dtype, const gbx_statistics *s) {
    gbx_texts *t = &sink->texts;
    gbx_sink_print(sink, "min %s  max %s  mean %s  NaN %" PRIu64 "  Inf %" PRIu64 "  zero %" PRIu64,
                   extreme_text(t, dtype, s->min_bits), extreme_text(t, dtype, s->max_bits),
                   gbx_text_short(t, s->mean), s->nan_count, s->inf_count, s->zero_count);
    if (gbx_dtype_is_float(dtype))
        gbx_sink_print(sink, "  subnormal %" PRIu64, s->subnormal_count);
    gbx_sink_print(sink, "\n");
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

static gbx_status print_histogram(gbx_sink *sink, const gbx_elements *elements) {
    gbx_histogram histogram;
    char bars[GBX_HISTOGRAM_TEXT_BYTES];
    double low, high;
    GBX_TRY(find_range(elements, &low, &high));
    if (isnan(low) || elements->stored < 2)
        return NULL;
    GBX_TRY(gbx_histogram_count(elements, low, high, BINS, &histogram));
    gbx_sink_print(sink, "%s |%s| %s\n", gbx_text_short(&sink->texts, low),
                   gbx_histogram_format(&histogram, sink->is_unicode, bars),
                   gbx_text_short(&sink->texts, high));
    return NULL;
}

static gbx_status print_values(gbx_sink *sink, const gbx_elements *elements, bool is_full) {
    size_t width = sink->width;
    if (width == SIZE_MAX)
        width = LINE_WIDTH;
    else if (width > LINE_WIDTH_MAX || width < LINE_WIDTH_MIN)
        width = width > LINE_WIDTH_MAX ? LINE_WIDTH_MAX : LINE_WIDTH_MIN;
    gbx_array_text_options options = {.is_full = is_full, .line_width = width};
    gbx_status status = gbx_array_print(sink->out, elements, &options);
    if (ferror(sink->out)) { /* as after every print: who owns the stream reports it */
        gbx_status_free(status);
        return NULL;
    }
    GBX_TRY(status);
    fflush(sink->out); /* the rest of a large tensor takes a while */
    return print_histogram(sink, elements);
}

/* Opens the values before anything is printed: nothing is printed of an entry that fails. */
static gbx_status open_values(const gbx_entry *entry, const gbx_reader *reader, bool is_full,
                              gbx_entry_values *out_values) {
    GBX_TRY(gbx_entry_values_open(entry, reader, out_values));
    uint64_t cut_off = out_values->elements.count - out_values->elements.stored;
    if (!is_full || cut_off <= CUT_OFF_MAX)
        return NULL;
    return gbx_fail(GBX_OUT_OF_RANGE,
                    "--full: %" PRIu64 " elements of entry %" PRIu64
                    " were cut off, more than the %" PRIu64
                    " that it prints as ?; --export writes the elements that were kept",
                    cut_off, entry->index, CUT_OFF_MAX);
}

static const char *absence_text(const gbx_entry *entry) {
    if (gbx_entry_numel(entry) == 0)
        return "no elements";
    return gbx_entry_is_overwritten(entry) ? "the bytes were overwritten before they were captured"
                                           : "no payload was kept";
}

static gbx_status print_one(gbx_sink *sink, const gbx_opened_dump *dump, const gbx_entry *entry,
                            bool is_full) {
    gbx_entry_values values;
    gbx_statistics statistics;
    bool is_there = false;
    bool has_values = gbx_entry_has_values(entry);
    if (has_values)
        GBX_TRY(open_values(entry, dump->reader, is_full, &values));
    gbx_dump_print_head(sink, dump);
    if (entry->head->type == GBX_RECORD_RESULT)
        print_result_place(sink, entry);
    else
        print_place(sink, dump->reader, entry);
    print_form(sink, entry);
    if (entry->scalar && entry->dtype == GBX_DTYPE_NONE)
        gbx_sink_print(sink, "%s\n", gbx_text_readings(&sink->texts, entry->scalar->bits));
    else if (has_values)
        GBX_TRY(print_values(sink, &values.elements, is_full));
    else
        gbx_sink_print(sink, "%s\n", absence_text(entry));
    GBX_TRY(gbx_entry_statistics(entry, dump->reader, &statistics, &is_there));
    if (is_there && entry->tensor)
        print_statistics(sink, entry->dtype, &statistics);
    return NULL;
}

gbx_status gbx_view_print_entry(gbx_sink *sink, const gbx_opened_dump *dump, uint64_t index,
                                bool is_full) {
    gbx_entry entry;
    GBX_TRY(gbx_entries_at(dump->entries, index, &entry));
    return print_one(sink, dump, &entry, is_full);
}

gbx_status gbx_view_print_result(gbx_sink *sink, const gbx_opened_dump *dump, uint64_t number,
                                 bool is_full) {
    gbx_entry entry;
    GBX_TRY(read_result(dump->reader, number, &entry));
    return print_one(sink, dump, &entry, is_full);
}

/* --- JSON --- */

static gbx_status computed_statistics(void *context, uint64_t index, gbx_record_stats *out_stats,
                                      bool *out_is_there) {
    gbx_entries *entries = context;
    gbx_entry entry;
    gbx_statistics s;
    GBX_TRY(gbx_entries_at(entries, index, &entry));
    GBX_TRY(gbx_entry_statistics(&entry, gbx_entries_reader(entries), &s, out_is_there));
    if (*out_is_there)
        *out_stats = (gbx_record_stats){s.min_bits,  s.max_bits,   s.mean,           s.nan_count,
                                        s.inf_count, s.zero_count, s.subnormal_count};
    return NULL;
}

gbx_status gbx_view_print_json(gbx_sink *sink, const gbx_opened_dump *dump,
                               const gbx_selected *selected, uint64_t limit, bool has_statistics) {
    char real[PATH_MAX];
    const char *name = realpath(dump->directory, real) ? strrchr(real, '/') + 1 : dump->directory;
    uint64_t count = selected->count < limit ? selected->count : limit;
    gbx_manifest_choice *choices = malloc((count + 1) * sizeof *choices);
    if (!choices)
        return gbx_fail_memory("listing %" PRIu64 " entries", count);
    for (uint64_t i = 0; i < count; ++i)
        choices[i] = (gbx_manifest_choice){
            selected->indices[i], gbx_entries_position(dump->entries, selected->indices[i])};
    gbx_manifest_chosen chosen = {.run_directory = name,
                                  .choices = choices,
                                  .count = count,
                                  .statistics = has_statistics ? computed_statistics : NULL,
                                  .context = dump->entries};
    gbx_status status =
        gbx_manifest_print(dump->reader, GBX_MANIFEST_FILE_TENSORS, &chosen, gbx_sink_write, sink);
    free(choices);
    return status;
}
