/* The words of diff: names of JSON, and sentences of causes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/array_text.h"
#include "cli/diff_report.h"
#include "cli/dump_text.h"

gbx_diff_shown gbx_diff_show(const gbx_diff_dumps *dumps, const gbx_diff_record *record) {
    bool is_b = record->b && (dumps->shows_b || !record->a);
    return (gbx_diff_shown){is_b ? dumps->b.reader : dumps->a.reader, is_b ? record->b : record->a};
}

gbx_status gbx_diff_show_first(const gbx_diff_dumps *dumps, const gbx_diff_record *first,
                               gbx_entry *out_entry, gbx_diff_shown *out_shown) {
    const gbx_opened_dump *dump = dumps->shows_b ? &dumps->b : &dumps->a;
    *out_shown = (gbx_diff_shown){dump->reader, out_entry};
    return gbx_entries_at(dump->entries, dumps->shows_b ? first->index_b : first->index_a,
                          out_entry);
}

const char *gbx_diff_verdict_name(gbx_diff_verdict verdict) {
    static const char *const names[GBX_DIFF_VERDICT_COUNT] = {
        [GBX_DIFF_EQUAL] = "equal",         [GBX_DIFF_WITHIN] = "within",
        [GBX_DIFF_DIFFERENT] = "different", [GBX_DIFF_ONLY_A] = "only_a",
        [GBX_DIFF_ONLY_B] = "only_b",       [GBX_DIFF_NOT_COMPARED] = "not_compared"};
    return names[verdict];
}

const char *gbx_diff_reason_name(gbx_diff_reason reason) {
    static const char *const names[GBX_DIFF_REASON_COUNT] = {[GBX_DIFF_VALUES] = "values",
                                                             [GBX_DIFF_KIND] = "kind",
                                                             [GBX_DIFF_DTYPE] = "dtype",
                                                             [GBX_DIFF_SHAPE] = "shape",
                                                             [GBX_DIFF_HASH] = "hash",
                                                             [GBX_DIFF_NO_PAYLOAD] = "no_payload",
                                                             [GBX_DIFF_OVERWRITTEN] = "overwritten",
                                                             [GBX_DIFF_IN_FLIGHT] = "in_flight",
                                                             [GBX_DIFF_TRUNCATED] = "truncated",
                                                             [GBX_DIFF_NAN_UNKNOWN] = "nan_unknown",
                                                             [GBX_DIFF_KERNELS] = "kernels",
                                                             [GBX_DIFF_TASK] = "task",
                                                             [GBX_DIFF_RECORD] = "record"};
    return names[reason];
}

const char *gbx_diff_cause_name(gbx_diff_cause cause) {
    return cause == GBX_DIFF_INTRODUCED  ? "introduced"
           : cause == GBX_DIFF_INHERITED ? "inherited"
                                         : NULL;
}

const char *gbx_diff_reason_sentence(gbx_diff_reason reason) {
    static const char *const sentences[GBX_DIFF_REASON_COUNT] = {
        [GBX_DIFF_NO_PAYLOAD] = "payload is missing, and there are no hashes of the same bytes",
        [GBX_DIFF_OVERWRITTEN] = "overwritten: the bytes are not those of the argument",
        [GBX_DIFF_IN_FLIGHT] = "in flight: the task did not complete",
        [GBX_DIFF_TRUNCATED] = "truncated before the first element",
        [GBX_DIFF_NAN_UNKNOWN] = "the same bytes, but no payload to look for NaN in"};
    return sentences[reason];
}

static void shape_text(const gbx_entry *entry, char out_text[GBX_VIEW_SHAPE_BYTES]) {
    const int64_t *shape = gbx_record_shape(entry->tensor);
    size_t used = (size_t)snprintf(out_text, GBX_VIEW_SHAPE_BYTES, "[");
    for (uint32_t i = 0; i < entry->head->ndims; ++i)
        used += (size_t)snprintf(out_text + used, GBX_VIEW_SHAPE_BYTES - used, "%s%" PRId64,
                                 i > 0 ? ", " : "", shape[i]);
    snprintf(out_text + used, GBX_VIEW_SHAPE_BYTES - used, "]");
}

static const char *where_missing(const gbx_diff_record *record) {
    bool has_a = record->a->head->flags & GBX_FLAG_HAS_PAYLOAD;
    bool has_b = record->b->head->flags & GBX_FLAG_HAS_PAYLOAD;
    return !has_a && !has_b ? "both" : has_a ? "B" : "A";
}

void gbx_diff_form_text(const gbx_diff_record *record, char out_text[GBX_DIFF_NOTE_BYTES]) {
    char shapes[2][GBX_VIEW_SHAPE_BYTES], values[2][GBX_ELEMENT_TEXT_BYTES];
    out_text[0] = '\0';
    if (record->reason == GBX_DIFF_KIND) {
        snprintf(out_text, GBX_DIFF_NOTE_BYTES, "a %s in A, a %s in B",
                 record->a->tensor ? "tensor" : "scalar", record->b->tensor ? "tensor" : "scalar");
    } else if (record->reason == GBX_DIFF_DTYPE) {
        snprintf(out_text, GBX_DIFF_NOTE_BYTES, "dtype %s in A, %s in B",
                 gbx_dtype_name(record->a->dtype), gbx_dtype_name(record->b->dtype));
    } else if (record->reason == GBX_DIFF_SHAPE) {
        shape_text(record->a, shapes[0]);
        shape_text(record->b, shapes[1]);
        snprintf(out_text, GBX_DIFF_NOTE_BYTES, "shape %s in A, %s in B", shapes[0], shapes[1]);
    } else if (record->reason == GBX_DIFF_HASH) {
        snprintf(out_text, GBX_DIFF_NOTE_BYTES, "hashes differ, payload is missing in %s",
                 where_missing(record));
    } else if (record->a->scalar) {
        gbx_element_format(record->a->dtype, record->comparison.first_bad.got_bits, values[0]);
        gbx_element_format(record->b->dtype, record->comparison.first_bad.want_bits, values[1]);
        snprintf(out_text, GBX_DIFF_NOTE_BYTES, "%s in A, %s in B", values[0], values[1]);
    }
}

void gbx_diff_index_text(const gbx_entry *entry, uint64_t number,
                         char out_text[GBX_VIEW_SHAPE_BYTES]) {
    int64_t index[GBX_MAX_DIMS];
    gbx_tensor view = {0};
    size_t used = (size_t)snprintf(out_text, GBX_VIEW_SHAPE_BYTES, "[");
    if (entry->tensor)
        gbx_record_view(entry->tensor, &view);
    gbx_compare_index(&view, number, index);
    for (uint32_t i = 0; i < view.ndims; ++i)
        used += (size_t)snprintf(out_text + used, GBX_VIEW_SHAPE_BYTES - used, "%s%" PRId64,
                                 i > 0 ? ", " : "", index[i]);
    snprintf(out_text + used, GBX_VIEW_SHAPE_BYTES - used, "]");
}

void gbx_diff_place_text(const gbx_reader *reader, const gbx_entry *entry,
                         char out_text[GBX_DIFF_PLACE_BYTES]) {
    static gbx_view_row row; /* too large for a stack */
    row = (gbx_view_row){0};
    gbx_view_row_fill(&row, reader, entry);
    snprintf(out_text, GBX_DIFF_PLACE_BYTES, "task %s, kernel %s, arg %s", row.task, row.kernel,
             row.arg);
}

/* --- why --- */

/* "arg 0 x" of an entry. */
static gbx_status arg_text(gbx_entries *entries, uint64_t index, char *out_text, size_t capacity) {
    gbx_entry entry;
    GBX_TRY(gbx_entries_at(entries, index, &entry));
    snprintf(out_text, capacity, "arg %u%s%s", entry.head->arg_index, entry.arg_name ? " " : "",
             entry.arg_name ? entry.arg_name : "");
    return NULL;
}

/* The format with a name in place of its %s, if it has one. */
static void fill_in(const char *format, const char *name, char out_text[GBX_DIFF_WHY_BYTES]) {
    const char *mark = strstr(format, "%s");
    int before = mark ? (int)(mark - format) : (int)strlen(format);
    snprintf(out_text, GBX_DIFF_WHY_BYTES, "%.*s%s%s", before, format, mark ? name : "",
             mark ? mark + 2 : "");
}

#define NOT_TOLD "introduced or inherited, which cannot be told: "

static gbx_status why_output(const gbx_diff_dumps *dumps, const gbx_diff_record *first,
                             char out_text[GBX_DIFF_WHY_BYTES]) {
    static const char *const formats[] = {
        [GBX_DIFF_INPUTS_EQUAL] = "introduced here (its inputs are equal)",
        [GBX_DIFF_INPUTS_WITHIN] = "introduced here (its inputs are equal within tolerance)",
        [GBX_DIFF_INPUTS_NONE] = "introduced here (the task has no inputs)",
        [GBX_DIFF_INPUT_DIFFERS] = "inherited (its input %s differs)",
        [GBX_DIFF_INPUTS_NOT_COMPARED] = NOT_TOLD "its input %s was not compared",
        [GBX_DIFF_INPUTS_TRUNCATED] = NOT_TOLD "of its input %s the beginning alone was compared",
        [GBX_DIFF_INPUTS_NOT_TOLD] =
            NOT_TOLD "the dumps do not tell whether they hold all its inputs"};
    char input[GBX_DIFF_NOTE_BYTES] = "";
    if (first->input != GBX_DIFF_NONE)
        GBX_TRY(arg_text(first->input_is_b ? dumps->b.entries : dumps->a.entries, first->input,
                         input, sizeof input));
    fill_in(formats[first->ground], input, out_text);
    return NULL;
}

static gbx_status writer_text(const gbx_opened_dump *dump, uint64_t index,
                              char out_text[GBX_DIFF_PLACE_BYTES]) {
    gbx_entry entry;
    snprintf(out_text, GBX_DIFF_PLACE_BYTES, "no task");
    if (index == GBX_DIFF_NONE)
        return NULL;
    GBX_TRY(gbx_entries_at(dump->entries, index, &entry));
    gbx_diff_place_text(dump->reader, &entry, out_text);
    return NULL;
}

static gbx_status why_apart(const gbx_diff_dumps *dumps, const gbx_diff_result *result,
                            char out_text[GBX_DIFF_WHY_BYTES]) {
    char writers[2][GBX_DIFF_PLACE_BYTES];
    GBX_TRY(writer_text(&dumps->a, result->writer_a, writers[0]));
    GBX_TRY(writer_text(&dumps->b, result->writer_b, writers[1]));
    snprintf(out_text, GBX_DIFF_WHY_BYTES,
             "inherited: it was written last by %s in A and by %s in B", writers[0], writers[1]);
    return NULL;
}

static gbx_status why_input(const gbx_diff_dumps *dumps, const gbx_diff_result *result,
                            char out_text[GBX_DIFF_WHY_BYTES]) {
    static const char *const formats[] = {
        [GBX_DIFF_ORIGIN_UNKNOWN] = "it came in so; the dumps do not tell who wrote it",
        [GBX_DIFF_ORIGIN_PASSED] = "the orchestration passed another value",
        [GBX_DIFF_ORIGIN_FORM] = "the orchestration passed something of another form",
        [GBX_DIFF_ORIGIN_ARGUMENT] =
            "no task of the dump wrote it: the arguments of the run differ",
        [GBX_DIFF_ORIGIN_WRITER_EQUAL] =
            "it came in so, though %s, which wrote it last, left it equal: see glassbox audit",
        [GBX_DIFF_ORIGIN_WRITER_PART] =
            "it came in so; %s wrote to it last, maybe to a part alone, and left that equal",
        [GBX_DIFF_ORIGIN_WRITER_DIFFERS] = "inherited from %s, which the filters leave out",
        [GBX_DIFF_ORIGIN_WRITER_UNKNOWN] =
            "it came in so; %s wrote it last, of which not all was compared"};
    char writer[GBX_DIFF_PLACE_BYTES];
    if (result->origin == GBX_DIFF_ORIGIN_WRITERS_APART)
        return why_apart(dumps, result, out_text);
    bool is_b = result->writer_a == GBX_DIFF_NONE;
    GBX_TRY(writer_text(is_b ? &dumps->b : &dumps->a, is_b ? result->writer_b : result->writer_a,
                        writer));
    fill_in(formats[result->origin], writer, out_text);
    return NULL;
}

gbx_status gbx_diff_why_text(const gbx_diff_dumps *dumps, const gbx_diff_result *result,
                             char out_text[GBX_DIFF_WHY_BYTES]) {
    if (result->first.ground == GBX_DIFF_IS_INPUT)
        return why_input(dumps, result, out_text);
    return why_output(dumps, &result->first, out_text);
}

/* --- graphs --- */

static gbx_status task_texts(const gbx_opened_dump *dump, uint64_t index,
                             char task[GBX_VIEW_NUMBER_BYTES], char kernel[GBX_VIEW_KERNEL_BYTES]) {
    gbx_entry entry;
    GBX_TRY(gbx_entries_at(dump->entries, index, &entry));
    gbx_view_task_text(dump->reader, &entry, task);
    gbx_view_kernel_text(dump->reader, entry.task, kernel);
    return NULL;
}

gbx_status gbx_diff_graph_text(const gbx_diff_dumps *dumps, const gbx_diff_result *result,
                               char out_text[GBX_DIFF_WHY_BYTES]) {
    char task[GBX_VIEW_NUMBER_BYTES], other[GBX_VIEW_NUMBER_BYTES];
    char kernel_a[GBX_VIEW_KERNEL_BYTES], kernel_b[GBX_VIEW_KERNEL_BYTES];
    bool has_a = result->graph_a != GBX_DIFF_NONE;
    bool has_b = result->graph_b != GBX_DIFF_NONE;
    if (has_b)
        GBX_TRY(task_texts(&dumps->b, result->graph_b, has_a ? other : task, kernel_b));
    if (has_a)
        GBX_TRY(task_texts(&dumps->a, result->graph_a, task, kernel_a));
    if (has_a && has_b)
        snprintf(out_text, GBX_DIFF_WHY_BYTES,
                 "the graphs differ from task %s on: it is kernel %s in A and %s in B", task,
                 kernel_a, kernel_b);
    else
        snprintf(out_text, GBX_DIFF_WHY_BYTES,
                 "the graphs differ from task %s on: it is only in %s, kernel %s", task,
                 has_a ? "A" : "B", has_a ? kernel_a : kernel_b);
    return NULL;
}
