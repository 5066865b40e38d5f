/* Records that differ as a table that fits the terminal. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/diff_report.h"
#include "cli/dump_text.h"
#include "cli/terminal.h"

enum { CELL_BYTES = 4096 };

typedef struct column {
    const char *heading;
    bool is_right;
    size_t narrowest; /* that its texts can be cut to; 0: they cannot */
} column;

static const column columns[GBX_DIFF_COLUMN_COUNT] = {
    [GBX_DIFF_COLUMN_TASK] = {"TASK", true, 0},
    [GBX_DIFF_COLUMN_KERNEL] = {"KERNEL", false, 8},
    [GBX_DIFF_COLUMN_STAGE] = {"STAGE", false, 0},
    [GBX_DIFF_COLUMN_ARG] = {"ARG", false, 6},
    [GBX_DIFF_COLUMN_DTYPE] = {"DTYPE", false, 0},
    [GBX_DIFF_COLUMN_SHAPE] = {"SHAPE", false, 8},
    [GBX_DIFF_COLUMN_BAD] = {"BAD", true, 0},
    [GBX_DIFF_COLUMN_MAX_ABS] = {"MAX_ABS", true, 0},
    [GBX_DIFF_COLUMN_MAX_REL] = {"MAX_REL", true, 0},
    [GBX_DIFF_COLUMN_MAX_ULP] = {"MAX_ULP", true, 0},
    [GBX_DIFF_COLUMN_RMSE] = {"RMSE", true, 0},
    [GBX_DIFF_COLUMN_COSINE] = {"COSINE", true, 0},
    [GBX_DIFF_COLUMN_FIRST] = {"FIRST_BAD", false, 0},
    [GBX_DIFF_COLUMN_NOTE] = {"NOTE", false, 10}, /* "introduced" */
};

/* What is given up first where there is no room. */
static const gbx_diff_column dispensable[] = {
    GBX_DIFF_COLUMN_RMSE,    GBX_DIFF_COLUMN_SHAPE, GBX_DIFF_COLUMN_COSINE,  GBX_DIFF_COLUMN_DTYPE,
    GBX_DIFF_COLUMN_MAX_ULP, GBX_DIFF_COLUMN_FIRST, GBX_DIFF_COLUMN_MAX_REL, GBX_DIFF_COLUMN_STAGE,
    GBX_DIFF_COLUMN_NOTE,    GBX_DIFF_COLUMN_ARG,   GBX_DIFF_COLUMN_BAD};

/* --- cells --- */

static void fill_metrics(const gbx_diff_record *record, gbx_diff_line *line, bool *is_good) {
    const gbx_comparison *c = &record->comparison;
    const double numbers[] = {c->max_abs, c->max_rel, gbx_comparison_rmse(c),
                              gbx_comparison_cosine(c)};
    static const gbx_diff_column places[] = {GBX_DIFF_COLUMN_MAX_ABS, GBX_DIFF_COLUMN_MAX_REL,
                                             GBX_DIFF_COLUMN_RMSE, GBX_DIFF_COLUMN_COSINE};
    char text[GBX_VIEW_SHAPE_BYTES];
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {
        snprintf(text, sizeof text, "%.5g", numbers[i]);
        *is_good &= (line->cells[places[i]] = strdup(text)) != NULL;
    }
    snprintf(text, sizeof text, "%" PRIu64 "/%" PRIu64,
             c->mismatches > 0 ? c->mismatches : c->unequal, c->elements);
    *is_good &= (line->cells[GBX_DIFF_COLUMN_BAD] = strdup(text)) != NULL;
    if (c->max_ulp < UINT64_MAX) {
        snprintf(text, sizeof text, "%" PRIu64, c->max_ulp);
        *is_good &= (line->cells[GBX_DIFF_COLUMN_MAX_ULP] = strdup(text)) != NULL;
    }
    if (c->mismatches > 0) {
        gbx_diff_index_text(record->a, c->first_bad.index, text);
        *is_good &= (line->cells[GBX_DIFF_COLUMN_FIRST] = strdup(text)) != NULL;
    }
}

/* The cause first: the end is what is cut. */
static void note_text(const gbx_diff_record *record, char out_text[2 * GBX_DIFF_NOTE_BYTES]) {
    const char *cause = gbx_diff_cause_name(record->cause);
    char form[GBX_DIFF_NOTE_BYTES];
    gbx_diff_form_text(record, form);
    out_text[0] = '\0';
    if (record->verdict == GBX_DIFF_ONLY_A || record->verdict == GBX_DIFF_ONLY_B)
        snprintf(out_text, GBX_DIFF_NOTE_BYTES, "only in %s",
                 record->verdict == GBX_DIFF_ONLY_A ? "A" : "B");
    else if (record->verdict == GBX_DIFF_DIFFERENT)
        snprintf(out_text, (size_t)2 * GBX_DIFF_NOTE_BYTES, "%s%s%s%s",
                 record->ground == GBX_DIFF_IS_INPUT ? "input"
                 : cause                             ? cause
                                                     : "cause unknown",
                 form[0] ? ", " : "", form, record->is_truncated ? ", truncated" : "");
    else if (record->is_truncated)
        snprintf(out_text, GBX_DIFF_NOTE_BYTES, "truncated");
}

static bool fill_line(const gbx_diff_dumps *dumps, const gbx_diff_record *record,
                      gbx_diff_line *line) {
    static const struct {
        gbx_diff_column to;
        gbx_view_column from;
    } taken[] = {{GBX_DIFF_COLUMN_TASK, GBX_VIEW_TASK},   {GBX_DIFF_COLUMN_KERNEL, GBX_VIEW_KERNEL},
                 {GBX_DIFF_COLUMN_STAGE, GBX_VIEW_STAGE}, {GBX_DIFF_COLUMN_ARG, GBX_VIEW_ARG},
                 {GBX_DIFF_COLUMN_DTYPE, GBX_VIEW_DTYPE}, {GBX_DIFF_COLUMN_SHAPE, GBX_VIEW_SHAPE}};
    static gbx_view_row row; /* too large for a stack */
    char note[2 * GBX_DIFF_NOTE_BYTES];
    gbx_diff_shown shown = gbx_diff_show(dumps, record);
    bool is_good = true;
    row = (gbx_view_row){0};
    gbx_view_row_fill(&row, shown.reader, shown.entry);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; ++i)
        is_good &= (line->cells[taken[i].to] = strdup(row.cells[taken[i].from])) != NULL;
    if (record->has_metrics)
        fill_metrics(record, line, &is_good);
    note_text(record, note);
    is_good &= (line->cells[GBX_DIFF_COLUMN_NOTE] = strdup(note)) != NULL;
    return is_good;
}

gbx_status gbx_diff_table_add(gbx_diff_table *table, const gbx_diff_dumps *dumps,
                              const gbx_diff_record *record) {
    table->all++;
    if (table->count == GBX_DIFF_LINES_MAX)
        return NULL;
    if (!fill_line(dumps, record, &table->lines[table->count++]))
        return gbx_fail(GBX_EXHAUSTED, "comparing dumps: no memory for a table");
    return NULL;
}

void gbx_diff_table_free(gbx_diff_table *table) {
    for (size_t i = 0; i < table->count; ++i)
        for (size_t k = 0; k < GBX_DIFF_COLUMN_COUNT; ++k)
            free(table->lines[i].cells[k]);
    table->count = 0;
}

/* --- widths --- */

static const char *cell(const gbx_diff_line *line, size_t i) {
    return line->cells[i] ? line->cells[i] : "";
}

static void measure(const gbx_diff_table *table, size_t widths[GBX_DIFF_COLUMN_COUNT]) {
    for (size_t k = 0; k < GBX_DIFF_COLUMN_COUNT; ++k) {
        widths[k] = 0;
        for (size_t i = 0; i < table->count; ++i) {
            size_t width = gbx_terminal_text_width(cell(&table->lines[i], k));
            widths[k] = width > widths[k] ? width : widths[k];
        }
        if (widths[k] > 0 && widths[k] < strlen(columns[k].heading))
            widths[k] = strlen(columns[k].heading);
    }
}

static size_t total_width(const size_t widths[GBX_DIFF_COLUMN_COUNT]) {
    size_t total = 0;
    for (size_t k = 0; k < GBX_DIFF_COLUMN_COUNT; ++k)
        total += widths[k] > 0 ? widths[k] + 1 : 0;
    return total > 0 ? total - 1 : 0;
}

/* Takes a character of the widest column that can give one; false where none can. */
static bool narrow(size_t widths[GBX_DIFF_COLUMN_COUNT]) {
    size_t found = GBX_DIFF_COLUMN_COUNT;
    for (size_t k = 0; k < GBX_DIFF_COLUMN_COUNT; ++k) {
        bool can_give = columns[k].narrowest > 0 && widths[k] > columns[k].narrowest;
        if (can_give && (found == GBX_DIFF_COLUMN_COUNT || widths[k] > widths[found]))
            found = k;
    }
    if (found == GBX_DIFF_COLUMN_COUNT)
        return false;
    widths[found]--;
    return true;
}

/* The width that is needed where all that can be cut is cut. */
static size_t least_width(const size_t widths[GBX_DIFF_COLUMN_COUNT]) {
    size_t least[GBX_DIFF_COLUMN_COUNT];
    memcpy(least, widths, sizeof least);
    for (size_t k = 0; k < GBX_DIFF_COLUMN_COUNT; ++k)
        if (columns[k].narrowest > 0 && least[k] > columns[k].narrowest)
            least[k] = columns[k].narrowest;
    return total_width(least);
}

static size_t fit(size_t widths[GBX_DIFF_COLUMN_COUNT], size_t width,
                  bool is_hidden[GBX_DIFF_COLUMN_COUNT]) {
    size_t hidden = 0;
    for (size_t i = 0; least_width(widths) > width && i < sizeof dispensable / sizeof *dispensable;
         ++i) {
        is_hidden[dispensable[i]] = widths[dispensable[i]] > 0;
        hidden += is_hidden[dispensable[i]];
        widths[dispensable[i]] = 0;
    }
    while (total_width(widths) > width && narrow(widths))
        continue;
    return hidden;
}

/* --- printing --- */

static void put_spaces(size_t count) {
    printf("%*s", (int)count, "");
}

static void print_cell(const char *text, size_t width, bool is_right, bool is_last) {
    char cut[CELL_BYTES], escaped[CELL_BYTES];
    const char *shown = gbx_terminal_cut(text, width, cut, sizeof cut);
    size_t taken = gbx_terminal_text_width(shown);
    size_t space = taken < width ? width - taken : 0;
    gbx_terminal_escape(shown, escaped, sizeof escaped);
    if (is_right)
        put_spaces(space);
    fputs(escaped, stdout);
    if (!is_right && !is_last)
        put_spaces(space);
}

static void print_line(const gbx_diff_line *line, const size_t widths[GBX_DIFF_COLUMN_COUNT]) {
    size_t last = 0;
    bool is_first = true;
    for (size_t k = 0; k < GBX_DIFF_COLUMN_COUNT; ++k)
        last = widths[k] > 0 && *(line ? cell(line, k) : columns[k].heading) ? k : last;
    for (size_t k = 0; k <= last; ++k) {
        if (widths[k] == 0)
            continue;
        if (!is_first)
            putchar(' ');
        is_first = false;
        print_cell(line ? cell(line, k) : columns[k].heading, widths[k], columns[k].is_right,
                   k == last);
    }
    putchar('\n');
}

static void print_hidden(const bool is_hidden[GBX_DIFF_COLUMN_COUNT], size_t count, size_t width) {
    size_t used = (size_t)printf("no room for:");
    for (size_t k = 0; k < GBX_DIFF_COLUMN_COUNT; ++k) {
        if (!is_hidden[k])
            continue;
        const char *comma = --count > 0 ? "," : "";
        size_t length = 1 + strlen(columns[k].heading) + strlen(comma);
        bool is_fitting = used + length <= width;
        printf("%s%s%s", is_fitting ? " " : "\n", columns[k].heading, comma);
        used = is_fitting ? used + length : length - 1;
    }
    putchar('\n');
}

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
    size_t widths[GBX_DIFF_COLUMN_COUNT];
    bool is_hidden[GBX_DIFF_COLUMN_COUNT] = {false};
    size_t width = gbx_terminal_width();
    measure(table, widths);
    size_t hidden = fit(widths, width, is_hidden);
    print_line(NULL, widths);
    for (size_t i = 0; i < table->count; ++i)
        print_line(&table->lines[i], widths);
    print_rest(table->all - table->count, others ? others->all : 0);
    if (hidden > 0)
        print_hidden(is_hidden, hidden, width);
}
