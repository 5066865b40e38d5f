/* Records that differ as a table that fits the terminal. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/diff_report.h"
#include "cli/dump_text.h"

typedef enum place {
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
} place;

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
enum { NUMBER_BYTES = 64 };

/* The texts of a row that are made here. */
typedef struct row_texts {
    char numbers[COLUMN_COUNT][NUMBER_BYTES];
    char first[GBX_VIEW_SHAPE_BYTES];
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
    static const place shown[] = {MAX_ABS, MAX_REL, RMSE, COSINE};
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
        gbx_diff_index_text(record->a, c->first_bad.index, texts->first);
        cells[FIRST] = texts->first;
    }
}

/* The cause first: the end is what is cut. */
static void cause_text(const gbx_diff_record *record, char out_text[2 * GBX_DIFF_NOTE_BYTES]) {
    const char *cause = gbx_name_of(&gbx_diff_causes, record->cause);
    char form[GBX_DIFF_NOTE_BYTES];
    gbx_diff_form_text(record, form);
    snprintf(out_text, (size_t)2 * GBX_DIFF_NOTE_BYTES, "%s%s%s%s",
             record->ground == GBX_DIFF_IS_INPUT ? "input"
             : cause                             ? cause
                                                 : "cause unknown",
             form[0] ? ", " : "", form, record->is_truncated ? ", truncated" : "");
}

static void note_text(const gbx_diff_record *record, char out_text[2 * GBX_DIFF_NOTE_BYTES]) {
    if (record->verdict == GBX_DIFF_DIFFERENT)
        cause_text(record, out_text);
    else if (record->verdict == GBX_DIFF_WITHIN)
        snprintf(out_text, GBX_DIFF_NOTE_BYTES, "%" PRIu64 " near%s", record->comparison.unequal,
                 record->is_truncated ? ", truncated" : "");
    else
        snprintf(out_text, GBX_DIFF_NOTE_BYTES, "only in %s",
                 record->verdict == GBX_DIFF_ONLY_A ? "A" : "B");
}

gbx_status gbx_diff_table_add(gbx_diff_table *table, const gbx_diff_dumps *dumps,
                              const gbx_diff_record *record) {
    static const struct {
        place to;
        gbx_view_column from;
    } taken[] = {{TASK, GBX_VIEW_TASK}, {KERNEL, GBX_VIEW_KERNEL}, {STAGE, GBX_VIEW_STAGE},
                 {ARG, GBX_VIEW_ARG},   {DTYPE, GBX_VIEW_DTYPE},   {SHAPE, GBX_VIEW_SHAPE}};
    static gbx_view_row row; /* too large for a stack */
    row_texts texts;
    const char *cells[COLUMN_COUNT] = {[NOTE] = texts.note};
    gbx_diff_shown shown = gbx_diff_show(dumps, record);
    if (table->all++ >= GBX_DIFF_LINES_MAX)
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

/* --- printing --- */

static void print_rest(uint64_t more, uint64_t others) {
    char counts[2][GBX_COUNT_TEXT_BYTES];
    if (more > 0)
        printf("and %s more", gbx_text_count(more, counts[0]));
    if (others > 0)
        printf("%s %s in one dump alone", more > 0 ? "," : "and",
               gbx_text_count(others, counts[1]));
    if (more + others > 0)
        printf("; --json has all\n");
}

void gbx_diff_table_print(const gbx_diff_table *table, const gbx_diff_table *others) {
    uint64_t more = table->all > GBX_DIFF_LINES_MAX ? table->all - GBX_DIFF_LINES_MAX : 0;
    gbx_text_table_print(&table->table);
    print_rest(more, others ? others->all : 0);
}
