/* The report of diff for people: the line that matters, what differs, and the counts; and the
 * sentences that the JSON has, too. */
#include <inttypes.h>
#include <stdio.h>

#include "analysis/array_text.h"
#include "cli/internal.h"

/* --- forms and places --- */

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

/* How a record that is different differs: "dtype float32 in A, float16 in B"; "" where it is by the
 * elements of a tensor. */
static void form_text(const gbx_diff_record *record, char out_text[GBX_DIFF_NOTE_BYTES]) {
    char shapes[2][GBX_NUMBERS_TEXT_BYTES], values[2][GBX_ELEMENT_TEXT_BYTES];
    bool has_a = record->a->head->flags & GBX_FLAG_HAS_PAYLOAD;
    bool has_b = record->b->head->flags & GBX_FLAG_HAS_PAYLOAD;
    out_text[0] = '\0';
    if (record->reason == GBX_DIFF_KIND) {
        snprintf(out_text, GBX_DIFF_NOTE_BYTES, "a %s in A, a %s in B",
                 gbx_name_of(&gbx_kinds, record->a->tensor ? GBX_KIND_TENSOR : GBX_KIND_SCALAR),
                 gbx_name_of(&gbx_kinds, record->b->tensor ? GBX_KIND_TENSOR : GBX_KIND_SCALAR));
    } else if (record->reason == GBX_DIFF_DTYPE) {
        snprintf(out_text, GBX_DIFF_NOTE_BYTES, "dtype %s in A, %s in B",
                 gbx_dtype_name(record->a->dtype), gbx_dtype_name(record->b->dtype));
    } else if (record->reason == GBX_DIFF_SHAPE) {
        gbx_text_numbers(gbx_record_shape(record->a->tensor), record->a->head->ndims, shapes[0]);
        gbx_text_numbers(gbx_record_shape(record->b->tensor), record->b->head->ndims, shapes[1]);
        snprintf(out_text, GBX_DIFF_NOTE_BYTES, "shape %s in A, %s in B", shapes[0], shapes[1]);
    } else if (record->reason == GBX_DIFF_HASH) {
        snprintf(out_text, GBX_DIFF_NOTE_BYTES, "hashes differ, payload is missing in %s",
                 !has_a && !has_b ? "both"
                 : has_a          ? "B"
                                  : "A");
    } else if (record->a->scalar) {
        gbx_element_format(record->a->dtype, record->comparison.first_bad.got_bits, values[0]);
        gbx_element_format(record->b->dtype, record->comparison.first_bad.want_bits, values[1]);
        snprintf(out_text, GBX_DIFF_NOTE_BYTES, "%s in A, %s in B", values[0], values[1]);
    }
}

/* "[0, 3]" of an element of the record's tensor; "[]" of a scalar. */
static void index_text(const gbx_entry *entry, uint64_t number,
                       char out_text[GBX_NUMBERS_TEXT_BYTES]) {
    int64_t index[GBX_MAX_DIMS];
    gbx_entry_index(entry, number, index);
    gbx_text_numbers(index, entry->tensor ? entry->head->ndims : 0, out_text);
}

/* "task 3, kernel add, arg 1 y". Names are as they are in the dump. */
static void place_text(const gbx_reader *reader, const gbx_entry *entry,
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
        [GBX_DIFF_INPUTS_UNKNOWN] = {
            NOT_TOLD "the dumps do not tell whether they hold all its inputs", NULL}};
    char input[GBX_DIFF_NOTE_BYTES] = "";
    if (first->input != GBX_DIFF_NONE)
        GBX_TRY(arg_text(first->input_is_b ? dumps->b.entries : dumps->a.entries, first->input,
                         input, sizeof input));
    const sentence *said = &sentences[first->ground];
    snprintf(out_text, GBX_DIFF_WHY_BYTES, "%s%s%s", said->before, said->after ? input : "",
             said->after ? said->after : "");
    return NULL;
}

static gbx_status writer_text(const gbx_opened_dump *dump, uint64_t index,
                              char out_text[GBX_DIFF_PLACE_BYTES]) {
    gbx_entry entry;
    snprintf(out_text, GBX_DIFF_PLACE_BYTES, "no task");
    if (index == GBX_DIFF_NONE)
        return NULL;
    GBX_TRY(gbx_entries_at(dump->entries, index, &entry));
    place_text(dump->reader, &entry, out_text);
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
    char writer[GBX_DIFF_PLACE_BYTES], other[GBX_DIFF_PLACE_BYTES];
    if (result->origin == GBX_DIFF_ORIGIN_WRITERS_APART) {
        GBX_TRY(writer_text(&dumps->a, result->writer_a, writer));
        GBX_TRY(writer_text(&dumps->b, result->writer_b, other));
        snprintf(out_text, GBX_DIFF_WHY_BYTES,
                 "inherited: it was written last by %s in A and by %s in B", writer, other);
        return NULL;
    }
    bool is_b = result->writer_a == GBX_DIFF_NONE;
    GBX_TRY(writer_text(is_b ? &dumps->b : &dumps->a, is_b ? result->writer_b : result->writer_a,
                        writer));
    const sentence *said = &sentences[result->origin];
    snprintf(out_text, GBX_DIFF_WHY_BYTES, "%s%s%s", said->before, said->after ? writer : "",
             said->after ? said->after : "");
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

typedef enum diff_column {
    TASK,
    KERNEL,
    STAGE,
    ARG,
    DTYPE,
    SHAPE,
    BAD,
    MAX_ABS,
    MAX_REL,
    MAX_ULP,
    RMSE,
    COSINE,
    FIRST,
    NOTE,
    COLUMN_COUNT
} diff_column;

static const gbx_text_table_column columns[COLUMN_COUNT] = {
    [TASK] = {"TASK", true, 0, 0},        [KERNEL] = {"KERNEL", false, 8, 0},
    [STAGE] = {"STAGE", false, 0, 8},     [ARG] = {"ARG", false, 6, 10},
    [DTYPE] = {"DTYPE", false, 0, 4},     [SHAPE] = {"SHAPE", false, 8, 2},
    [BAD] = {"BAD", true, 0, 11},         [MAX_ABS] = {"MAX_ABS", true, 0, 0},
    [MAX_REL] = {"MAX_REL", true, 0, 7},  [MAX_ULP] = {"MAX_ULP", true, 0, 5},
    [RMSE] = {"RMSE", true, 0, 1},        [COSINE] = {"COSINE", true, 0, 3},
    [FIRST] = {"FIRST_BAD", false, 0, 6}, [NOTE] = {"NOTE", false, 10, 9}, /* "introduced" */
};

/* Longer than every text of numbers. */
enum { NUMBER_BYTES = 64, LINES_MAX = 20 };

/* The texts of a row that are made here. */
typedef struct row_texts {
    char numbers[COLUMN_COUNT][NUMBER_BYTES];
    char first[GBX_NUMBERS_TEXT_BYTES];
    char note[2 * GBX_DIFF_NOTE_BYTES];
} row_texts;

/* --- cells --- */

static void fill_metrics(const gbx_diff_record *record, row_texts *texts,
                         const char *cells[COLUMN_COUNT]) {
    const gbx_comparison *c = &record->comparison;
    const double numbers[COLUMN_COUNT] = {[MAX_ABS] = c->max_abs,
                                          [MAX_REL] = c->max_rel,
                                          [RMSE] = gbx_comparison_rmse(c),
                                          [COSINE] = gbx_comparison_cosine(c)};
    static const diff_column shown[] = {MAX_ABS, MAX_REL, RMSE, COSINE};
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; ++i) {
        snprintf(texts->numbers[shown[i]], NUMBER_BYTES, "%.5g", numbers[shown[i]]);
        cells[shown[i]] = texts->numbers[shown[i]];
    }
    snprintf(texts->numbers[BAD], NUMBER_BYTES, "%" PRIu64 "/%" PRIu64, c->mismatches, c->elements);
    cells[BAD] = texts->numbers[BAD];
    if (c->max_ulp < UINT64_MAX) {
        snprintf(texts->numbers[MAX_ULP], NUMBER_BYTES, "%" PRIu64, c->max_ulp);
        cells[MAX_ULP] = texts->numbers[MAX_ULP];
    }
    if (c->mismatches > 0) {
        index_text(record->a, c->first_bad.index, texts->first);
        cells[FIRST] = texts->first;
    }
}

/* The cause first: the end is what is cut. */
static void note_text(const gbx_diff_record *record, char out_text[2 * GBX_DIFF_NOTE_BYTES]) {
    const char *cause = gbx_name_of(&gbx_diff_causes, record->cause);
    const char *cut = record->is_truncated ? ", truncated" : "";
    char form[GBX_DIFF_NOTE_BYTES];
    if (record->verdict == GBX_DIFF_DIFFERENT) {
        form_text(record, form);
        snprintf(out_text, (size_t)2 * GBX_DIFF_NOTE_BYTES, "%s%s%s%s",
                 record->ground == GBX_DIFF_IS_INPUT ? "input"
                 : cause                             ? cause
                                                     : "cause unknown",
                 form[0] ? ", " : "", form, cut);
    } else if (record->verdict == GBX_DIFF_WITHIN) {
        snprintf(out_text, GBX_DIFF_NOTE_BYTES, "%" PRIu64 " near%s", record->comparison.unequal,
                 cut);
    } else {
        snprintf(out_text, GBX_DIFF_NOTE_BYTES, "only in %s",
                 record->verdict == GBX_DIFF_ONLY_A ? "A" : "B");
    }
}

/* Takes what is needed of the record; it is counted where there is no room. */
static gbx_status add_to_table(gbx_diff_table *table, const gbx_diff_dumps *dumps,
                               const gbx_diff_record *record) {
    static const struct {
        diff_column to;
        gbx_view_column from;
    } taken[] = {{TASK, GBX_VIEW_TASK}, {KERNEL, GBX_VIEW_KERNEL}, {STAGE, GBX_VIEW_STAGE},
                 {ARG, GBX_VIEW_ARG},   {DTYPE, GBX_VIEW_DTYPE},   {SHAPE, GBX_VIEW_SHAPE}};
    static gbx_view_row row; /* too large for a stack */
    row_texts texts;
    const char *cells[COLUMN_COUNT] = {[NOTE] = texts.note};
    gbx_diff_shown shown = gbx_diff_show(dumps, record);
    if (table->all++ >= LINES_MAX)
        return NULL;
    row = (gbx_view_row){0};
    gbx_view_row_fill(&row, shown.reader, shown.entry);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; ++i)
        cells[taken[i].to] = row.cells[taken[i].from];
    if (record->has_metrics)
        fill_metrics(record, &texts, cells);
    note_text(record, texts.note);
    table->table.columns = columns;
    table->table.column_count = COLUMN_COUNT;
    table->table.gap = 1;
    return gbx_text_table_add(&table->table, cells);
}

/* `others` is a table that is not printed, whose records are counted at the end; may be NULL. */
static void print_table(const gbx_diff_table *table, const gbx_diff_table *others) {
    uint64_t more = table->all > LINES_MAX ? table->all - LINES_MAX : 0;
    uint64_t alone = others ? others->all : 0;
    char count[GBX_COUNT_TEXT_BYTES];
    gbx_text_table_print(&table->table);
    if (more > 0)
        printf("and %s more", gbx_text_count(more, count));
    if (alone > 0)
        printf("%s %s in one dump alone", more > 0 ? "," : "and", gbx_text_count(alone, count));
    if (more + alone > 0)
        printf("; --json has all\n");
}

/* --- while records come --- */

static void metrics_text(const gbx_diff_record *record, char out_text[GBX_DIFF_NOTE_BYTES]) {
    const gbx_comparison *c = &record->comparison;
    char index[GBX_NUMBERS_TEXT_BYTES], got[GBX_ELEMENT_TEXT_BYTES], want[GBX_ELEMENT_TEXT_BYTES];
    char bad[GBX_COUNT_TEXT_BYTES], all[GBX_COUNT_TEXT_BYTES], ulp[GBX_COUNT_TEXT_BYTES] = "";
    index_text(record->a, c->first_bad.index, index);
    gbx_element_format(c->dtype, c->first_bad.got_bits, got);
    gbx_element_format(c->dtype, c->first_bad.want_bits, want);
    if (c->max_ulp < UINT64_MAX)
        gbx_text_count(c->max_ulp, ulp);
    snprintf(out_text, GBX_DIFF_NOTE_BYTES,
             "%s of %s %selement%s differ%s, the first at %s: %s in A, %s in B; max abs %.5g, "
             "max rel %.5g%s%s",
             gbx_text_count(c->mismatches, bad), gbx_text_count(c->elements, all),
             record->is_truncated ? "kept " : "", gbx_text_plural(c->elements),
             c->mismatches == 1 ? "s" : "", index, got, want, c->max_abs, c->max_rel,
             ulp[0] ? ", max ulp " : "", ulp);
}

gbx_status gbx_diff_text_add(gbx_diff_text *text, const gbx_diff_dumps *dumps,
                             const gbx_diff_record *record) {
    gbx_diff_shown shown = gbx_diff_show(dumps, record);
    if (record->verdict == GBX_DIFF_NOT_COMPARED) {
        char *unknown = text->unknown[record->reason];
        if (!unknown[0])
            place_text(shown.reader, shown.entry, unknown);
        return NULL;
    }
    if (record->verdict == GBX_DIFF_WITHIN)
        return add_to_table(&text->within, dumps, record);
    if (record->verdict == GBX_DIFF_DIFFERENT && !text->has_form) {
        text->has_form = true;
        form_text(record, text->form);
        if (!text->form[0])
            metrics_text(record, text->form);
    }
    return add_to_table(record->verdict == GBX_DIFF_DIFFERENT ? &text->apart : &text->alone, dumps,
                        record);
}

void gbx_diff_text_free(gbx_diff_text *text) {
    gbx_text_table_free(&text->apart.table);
    gbx_text_table_free(&text->alone.table);
    gbx_text_table_free(&text->within.table);
}

/* --- the line that matters --- */

static gbx_status print_first(const gbx_diff_text *text, const gbx_diff_dumps *dumps,
                              const gbx_diff_result *result) {
    char place[GBX_DIFF_PLACE_BYTES];
    char words[GBX_DIFF_WHY_BYTES];
    gbx_diff_shown shown;
    gbx_entry entry;
    GBX_TRY(gbx_diff_show_first(dumps, &result->first, &entry, &shown));
    place_text(shown.reader, shown.entry, place);

    gbx_terminal_put_coloured(GBX_RED, "first difference", "");
    gbx_terminal_quote(": ", place, ", ");
    GBX_TRY(gbx_diff_why_text(dumps, result, words));
    printf("%s", gbx_name_of(&gbx_stages, entry.head->stage));
    gbx_terminal_quote(": ", words, "");
    printf("\n  %s%s\n", text->form,
           result->first.reason == GBX_DIFF_HASH
               ? ": by how much, or whether within tolerance, nobody can tell"
               : "");
    return NULL;
}

/* Ends a line that says that something is equal with what that is not known of. */
static void print_gaps(const gbx_diff_result *result) {
    char count[GBX_COUNT_TEXT_BYTES];
    if (result->truncated > 0)
        printf("; of %s the beginning alone", gbx_text_count(result->truncated, count));
    if (result->counts[GBX_DIFF_NOT_COMPARED] > 0)
        printf("; %s not compared", gbx_text_count(result->counts[GBX_DIFF_NOT_COMPARED], count));
    putchar('\n');
}

/* Why a dump may have less than the other. */
static void print_end(const char *name, const gbx_reader *reader) {
    if (!gbx_reader_is_complete(reader))
        printf("; %s is not complete", name);
    else if (!gbx_reader_has_ended_well(reader))
        printf("; the run of %s failed", name);
}

/* Where no record differs. */
static void print_alike(const gbx_diff_dumps *dumps, const gbx_diff_result *result) {
    char all[GBX_COUNT_TEXT_BYTES], equal[GBX_COUNT_TEXT_BYTES], near[GBX_COUNT_TEXT_BYTES];
    uint64_t within = result->counts[GBX_DIFF_WITHIN];
    uint64_t a = result->counts[GBX_DIFF_ONLY_A], b = result->counts[GBX_DIFF_ONLY_B];
    if (a + b > 0) {
        gbx_terminal_put_coloured(GBX_RED, "not the same records", "");
        printf(": %s only in A, %s only in B", gbx_text_count(a, equal), gbx_text_count(b, near));
        print_end("A", dumps->a.reader);
        print_end("B", dumps->b.reader);
        if (result->compared > 0)
            printf("; of %s compared none differs", gbx_text_count(result->compared, all));
        else
            printf("; nothing was compared");
        print_gaps(result);
        return;
    }
    if (result->compared == 0) {
        gbx_terminal_put_coloured(GBX_RED, "nothing was compared", "");
        putchar('\n');
        return;
    }
    gbx_terminal_put_coloured(GBX_GREEN, within > 0 ? "equal within tolerance" : "equal", "");
    printf(": %s record%s compared", gbx_text_count(result->compared, all),
           gbx_text_plural(result->compared));
    if (within > 0)
        printf(", %s equal, %s near", gbx_text_count(result->counts[GBX_DIFF_EQUAL], equal),
               gbx_text_count(within, near));
    else
        printf(", all the same");
    print_gaps(result);
}

/* --- the rest --- */

static void print_counts(const gbx_diff_text *text, const gbx_diff_result *result) {
    char count[GBX_COUNT_TEXT_BYTES], introduced[GBX_COUNT_TEXT_BYTES],
        unknown[GBX_COUNT_TEXT_BYTES];
    printf("compared %s: ", gbx_text_count(result->compared, count));
    for (uint32_t i = 0; i < GBX_DIFF_VERDICT_COUNT; ++i)
        printf("%s%s %s",
               i == 0                    ? ""
               : i <= GBX_DIFF_DIFFERENT ? ", "
                                         : "; ",
               gbx_text_count(result->counts[i], count), gbx_name_sentence(&gbx_diff_verdicts, i));
    putchar('\n');
    if (result->tasks_different > 1)
        printf("%s tasks differ, %s introduced a difference%s%s\n",
               gbx_text_count(result->tasks_different, count),
               gbx_text_count(result->tasks_introduced, introduced),
               result->tasks_unknown > 0 ? ", not known: " : "",
               result->tasks_unknown > 0 ? gbx_text_count(result->tasks_unknown, unknown) : "");
    for (uint32_t i = 0; i < GBX_DIFF_REASON_COUNT; ++i) {
        if (!text->unknown[i][0])
            continue;
        printf("not compared: %s, %s", gbx_text_count(result->reasons[i], count),
               gbx_name_sentence(&gbx_diff_reasons, i));
        gbx_terminal_quote("; the first: ", text->unknown[i], "\n");
    }
    if (result->truncated > 0)
        printf("truncated: of %s record%s the beginning alone was compared\n",
               gbx_text_count(result->truncated, count), gbx_text_plural(result->truncated));
    if (result->matching == GBX_DIFF_BY_TASK_ID)
        printf("tasks are matched by task_id, for a dump does not number them\n");
    if (result->matching == GBX_DIFF_BY_ORDER)
        printf("tasks are matched in the order in which they appear, for a dump does not number "
               "them, and their ids do not match\n");
    if (result->bad_edges > 0)
        printf("graph: %s edge%s no sense, and %s left out of its order\n",
               gbx_text_count(result->bad_edges, count),
               result->bad_edges == 1 ? " makes" : "s make", result->bad_edges == 1 ? "is" : "are");
}

gbx_status gbx_diff_text_print(const gbx_diff_text *text, const gbx_diff_dumps *dumps,
                               const gbx_diff_result *result) {
    char graph[GBX_DIFF_WHY_BYTES];
    bool is_graph_first = !result->has_first || result->is_graph_first;
    if (result->has_other_graph)
        GBX_TRY(gbx_diff_graph_text(dumps, result, graph));
    if (result->has_other_graph && is_graph_first)
        gbx_terminal_quote("", graph, "\n");
    if (result->has_first)
        GBX_TRY(print_first(text, dumps, result));
    else
        print_alike(dumps, result);
    if (result->has_other_graph && !is_graph_first)
        gbx_terminal_quote("", graph, "\n");
    if (text->apart.all > 0)
        print_table(&text->apart, &text->alone);
    else if (text->alone.all > 0)
        print_table(&text->alone, NULL);
    else if (text->within.all > 0)
        print_table(&text->within, NULL);
    print_counts(text, result);
    printf("A: ");
    gbx_view_head_print(&dumps->a);
    printf("B: ");
    gbx_view_head_print(&dumps->b);
    return NULL;
}
