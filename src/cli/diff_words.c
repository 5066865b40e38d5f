/* The words of diff: sentences of forms, places and causes. */
#include <inttypes.h>
#include <stdio.h>

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

/* "[4, 128]" */
static void numbers_text(const int64_t *numbers, uint32_t count,
                         char out_text[GBX_VIEW_SHAPE_BYTES]) {
    size_t used = (size_t)snprintf(out_text, GBX_VIEW_SHAPE_BYTES, "[");
    for (uint32_t i = 0; i < count; ++i)
        used += (size_t)snprintf(out_text + used, GBX_VIEW_SHAPE_BYTES - used, "%s%" PRId64,
                                 i > 0 ? ", " : "", numbers[i]);
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
                 gbx_name_of(&gbx_kinds, record->a->tensor ? GBX_KIND_TENSOR : GBX_KIND_SCALAR),
                 gbx_name_of(&gbx_kinds, record->b->tensor ? GBX_KIND_TENSOR : GBX_KIND_SCALAR));
    } else if (record->reason == GBX_DIFF_DTYPE) {
        snprintf(out_text, GBX_DIFF_NOTE_BYTES, "dtype %s in A, %s in B",
                 gbx_dtype_name(record->a->dtype), gbx_dtype_name(record->b->dtype));
    } else if (record->reason == GBX_DIFF_SHAPE) {
        numbers_text(gbx_record_shape(record->a->tensor), record->a->head->ndims, shapes[0]);
        numbers_text(gbx_record_shape(record->b->tensor), record->b->head->ndims, shapes[1]);
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
    gbx_entry_index(entry, number, index);
    numbers_text(index, entry->tensor ? entry->head->ndims : 0, out_text);
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

/* A sentence about something: its name goes between the two halves. Without a second half it names
 * nothing. */
typedef struct sentence {
    const char *before;
    const char *after;
} sentence;

static void say(const sentence *what, const char *name, char out_text[GBX_DIFF_WHY_BYTES]) {
    snprintf(out_text, GBX_DIFF_WHY_BYTES, "%s%s%s", what->before, what->after ? name : "",
             what->after ? what->after : "");
}

#define NOT_TOLD "introduced or inherited, which cannot be told: "

static gbx_status why_output(const gbx_diff_dumps *dumps, const gbx_diff_record *first,
                             char out_text[GBX_DIFF_WHY_BYTES]) {
    static const sentence sentences[] = {
        [GBX_DIFF_INPUTS_EQUAL] = {"introduced here (its inputs are equal)", NULL},
        [GBX_DIFF_INPUTS_WITHIN] = {"introduced here (its inputs are equal within tolerance)",
                                    NULL},
        [GBX_DIFF_INPUTS_NONE] = {"introduced here (the task has no inputs)", NULL},
        [GBX_DIFF_INPUT_DIFFERS] = {"inherited (its input ", " differs)"},
        [GBX_DIFF_INPUTS_NOT_COMPARED] = {NOT_TOLD "its input ", " was not compared"},
        [GBX_DIFF_INPUTS_TRUNCATED] = {NOT_TOLD "of its input ",
                                       " the beginning alone was compared"},
        [GBX_DIFF_INPUTS_NOT_TOLD] = {
            NOT_TOLD "the dumps do not tell whether they hold all its inputs", NULL}};
    char input[GBX_DIFF_NOTE_BYTES] = "";
    if (first->input != GBX_DIFF_NONE)
        GBX_TRY(arg_text(first->input_is_b ? dumps->b.entries : dumps->a.entries, first->input,
                         input, sizeof input));
    say(&sentences[first->ground], input, out_text);
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
    static const sentence sentences[] = {
        [GBX_DIFF_ORIGIN_UNKNOWN] = {"it came in so; the dumps do not tell who wrote it", NULL},
        [GBX_DIFF_ORIGIN_PASSED] = {"the orchestration passed another value", NULL},
        [GBX_DIFF_ORIGIN_FORM] = {"the orchestration passed something of another form", NULL},
        [GBX_DIFF_ORIGIN_ARGUMENT] =
            {"no task of the dump wrote it: the arguments of the run differ", NULL},
        [GBX_DIFF_ORIGIN_WRITER_EQUAL] =
            {"it came in so, though ", ", which wrote it last, left it equal: see glassbox audit"},
        [GBX_DIFF_ORIGIN_WRITER_PART] =
            {"it came in so; ", " wrote to it last, maybe to a part alone, and left that equal"},
        [GBX_DIFF_ORIGIN_WRITER_DIFFERS] = {"inherited from ", ", which the filters leave out"},
        [GBX_DIFF_ORIGIN_WRITER_UNKNOWN] = {"it came in so; ",
                                            " wrote it last, of which not all was compared"}};
    char writer[GBX_DIFF_PLACE_BYTES];
    if (result->origin == GBX_DIFF_ORIGIN_WRITERS_APART)
        return why_apart(dumps, result, out_text);
    bool is_b = result->writer_a == GBX_DIFF_NONE;
    GBX_TRY(writer_text(is_b ? &dumps->b : &dumps->a, is_b ? result->writer_b : result->writer_a,
                        writer));
    say(&sentences[result->origin], writer, out_text);
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
