#include "cli/view_table.h"

#include <libsmartcols/libsmartcols.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/terminal.h"
#include "cli/view_row.h"

enum { LINES_AT_A_TIME = 4096, CUT_BYTES = 1024, LINE_BYTES = 4096, MEASURED_MAX = 65536 };

typedef struct column {
    const char *heading;
    int flags;
    size_t narrowest; /* that its texts can be cut to; 0: they cannot */
} column;

static const column columns[GBX_VIEW_COLUMN_COUNT] = {
    [GBX_VIEW_INDEX] = {"INDEX", SCOLS_FL_RIGHT, 0},
    [GBX_VIEW_TASK] = {"TASK", SCOLS_FL_RIGHT, 0},
    [GBX_VIEW_KERNEL] = {"KERNEL", 0, 8},
    [GBX_VIEW_STAGE] = {"STAGE", 0, 0},
    [GBX_VIEW_ROLE] = {"ROLE", 0, 0},
    [GBX_VIEW_ARG] = {"ARG", 0, 6},
    [GBX_VIEW_DTYPE] = {"DTYPE", 0, 0},
    [GBX_VIEW_SHAPE] = {"SHAPE", 0, 8},
    [GBX_VIEW_BYTES] = {"BYTES", SCOLS_FL_RIGHT, 0},
    [GBX_VIEW_HASH] = {"HASH", 0, 0},
    [GBX_VIEW_MIN] = {"MIN", SCOLS_FL_RIGHT, 0},
    [GBX_VIEW_MAX] = {"MAX", SCOLS_FL_RIGHT, 0},
    [GBX_VIEW_MEAN] = {"MEAN", SCOLS_FL_RIGHT, 0},
    [GBX_VIEW_NAN] = {"NAN", SCOLS_FL_RIGHT, 0},
    [GBX_VIEW_INF] = {"INF", SCOLS_FL_RIGHT, 0},
    [GBX_VIEW_NOTE] = {"NOTE", 0, 6},
};

/* What is given up first where there is no room. */
static const gbx_view_column dispensable[] = {
    GBX_VIEW_HASH,   GBX_VIEW_ROLE, GBX_VIEW_BYTES, GBX_VIEW_DTYPE, GBX_VIEW_STAGE, GBX_VIEW_ARG,
    GBX_VIEW_KERNEL, GBX_VIEW_TASK, GBX_VIEW_NOTE,  GBX_VIEW_SHAPE, GBX_VIEW_MEAN,  GBX_VIEW_INF};

/* Of the whole list. */
typedef struct layout {
    size_t widths[GBX_VIEW_COLUMN_COUNT]; /* 0: the column is not shown */
    bool is_hidden[GBX_VIEW_COLUMN_COUNT];
    bool is_cut; /* some are narrower than their texts */
    bool has_statistics;
} layout;

static bool is_statistic(size_t i) {
    return i >= GBX_VIEW_MIN && i < GBX_VIEW_NOTE;
}

/* --- widths --- */

static void widen(size_t *width, size_t to) {
    if (*width < to)
        *width = to;
}

/* Names may hold any bytes; all other texts are of ASCII. */
static void measure_row(layout *l, const gbx_view_row *row) {
    for (size_t i = 0; i < GBX_VIEW_COLUMN_COUNT; ++i) {
        bool is_name = i == GBX_VIEW_KERNEL || i == GBX_VIEW_ARG;
        if (!is_statistic(i))
            widen(&l->widths[i],
                  is_name ? gbx_terminal_text_width(row->cells[i]) : strlen(row->cells[i]));
    }
}

/* Numbers of statistics are not known yet; counts are at most those of the elements. */
static void measure_statistics(layout *l, uint64_t elements_max) {
    char digits[GBX_VIEW_NUMBER_BYTES];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%ju", (uintmax_t)elements_max);
    for (size_t i = GBX_VIEW_MIN; l->has_statistics && i < GBX_VIEW_NOTE; ++i)
        l->widths[i] = i < GBX_VIEW_NAN ? GBX_VIEW_NUMBER_WIDTH : length;
}

static gbx_status measure_entry(layout *l, gbx_view_row *row, gbx_entries *entries, uint64_t index,
                                uint64_t *elements_max) {
    gbx_entry entry;
    GBX_TRY(gbx_entries_at(entries, index, &entry));
    gbx_view_row_fill(row, gbx_entries_reader(entries), &entry);
    measure_row(l, row);
    uint64_t elements = gbx_entry_numel(&entry);
    *elements_max = elements > *elements_max ? elements : *elements_max;
    return NULL;
}

/* The first `measured` entries, and the last, whose numbers are the largest unless it is sorted. */
static gbx_status measure(layout *l, gbx_view_row *row, gbx_entries *entries,
                          const uint64_t *indices, uint64_t count, uint64_t measured) {
    uint64_t elements_max = 0;
    for (uint64_t i = 0; i < measured; ++i)
        GBX_TRY(measure_entry(l, row, entries, indices[i], &elements_max));
    if (measured < count)
        GBX_TRY(measure_entry(l, row, entries, indices[count - 1], &elements_max));
    measure_statistics(l, elements_max);
    if (measured < count)
        widen(&l->widths[GBX_VIEW_NOTE], 1); /* one may come yet */
    for (size_t i = 0; i < GBX_VIEW_COLUMN_COUNT; ++i)
        if (l->widths[i] > 0)
            widen(&l->widths[i], strlen(columns[i].heading));
    return NULL;
}

static size_t total_width(const layout *l) {
    size_t total = 0;
    for (size_t i = 0; i < GBX_VIEW_COLUMN_COUNT; ++i)
        if (l->widths[i] > 0)
            total += l->widths[i] + 1;
    return total > 0 ? total - 1 : 0;
}

/* The column that gives a character: the widest that can. COLUMN_COUNT where none can. */
static size_t widest(const layout *l) {
    size_t found = GBX_VIEW_COLUMN_COUNT;
    for (size_t i = 0; i < GBX_VIEW_COLUMN_COUNT; ++i) {
        bool can_give = columns[i].narrowest > 0 && l->widths[i] > columns[i].narrowest;
        if (can_give && (found == GBX_VIEW_COLUMN_COUNT || l->widths[i] > l->widths[found]))
            found = i;
    }
    return found;
}

/* What was given up may have left more room than was needed: the narrowest that are cut get it. */
static void give_back(layout *l, const layout *whole, size_t width) {
    while (total_width(l) < width) {
        size_t found = GBX_VIEW_COLUMN_COUNT;
        for (size_t i = 0; i < GBX_VIEW_COLUMN_COUNT; ++i) {
            bool is_cut = l->widths[i] > 0 && l->widths[i] < whole->widths[i];
            if (is_cut && (found == GBX_VIEW_COLUMN_COUNT || l->widths[i] < l->widths[found]))
                found = i;
        }
        if (found == GBX_VIEW_COLUMN_COUNT) {
            l->is_cut = false;
            return;
        }
        l->widths[found]++;
    }
}

static void fit(layout *l, size_t width) {
    const layout whole = *l;
    size_t given_up = 0;
    while (total_width(l) > width) {
        size_t i = widest(l);
        if (i < GBX_VIEW_COLUMN_COUNT) {
            l->widths[i]--;
            l->is_cut = true;
            continue;
        }
        if (given_up == sizeof dispensable / sizeof dispensable[0])
            return;
        gbx_view_column hidden = dispensable[given_up++];
        l->is_hidden[hidden] = l->widths[hidden] > 0;
        l->widths[hidden] = 0;
    }
    if (l->is_cut)
        give_back(l, &whole, width);
}

/* --- printing --- */

/* NULL where there is no memory for it. */
static struct libscols_table *make_table(const layout *l) {
    struct libscols_table *table = scols_new_table();
    bool is_good = table != NULL;
    for (size_t i = 0; is_good && i < GBX_VIEW_COLUMN_COUNT; ++i) {
        if (l->widths[i] == 0)
            continue;
        is_good = scols_table_new_column(table, "", (double)l->widths[i],
                                         columns[i].flags | SCOLS_FL_STRICTWIDTH) != NULL;
    }
    if (!is_good) {
        scols_unref_table(table);
        return NULL;
    }
    /* Widths are fixed, for parts of the list are printed as tables of their own; headings are a
     * line like others, so that they do not count in addition. */
    scols_table_enable_noheadings(table, 1);
    scols_table_enable_noencoding(table, 1); /* texts are escaped here */
    scols_table_set_termforce(table, SCOLS_TERMFORCE_ALWAYS);
    scols_table_set_termwidth(table, total_width(l) + GBX_VIEW_COLUMN_COUNT);
    return table;
}

static bool add_line(struct libscols_table *table, const layout *l, const gbx_view_row *row) {
    struct libscols_line *line = scols_table_new_line(table, NULL);
    char cut[CUT_BYTES];
    char escaped[4 * CUT_BYTES];
    size_t cell = 0;
    for (size_t i = 0; line && i < GBX_VIEW_COLUMN_COUNT; ++i) {
        if (l->widths[i] == 0)
            continue;
        const char *text = row->cells[i];
        if (l->is_cut)
            text = gbx_terminal_cut(text, l->widths[i], cut, sizeof cut);
        gbx_terminal_escape(text, escaped, sizeof escaped);
        if (scols_line_set_data(line, cell++, escaped) != 0)
            return false;
    }
    return line != NULL;
}

/* The length of a text that is printed as it is, a column a byte; SIZE_MAX of others. */
static size_t plain_length(const char *text) {
    size_t length = 0;
    for (; text[length]; ++length)
        if (text[length] < ' ' || text[length] > '~' || text[length] == '\\')
            return SIZE_MAX;
    return length;
}

/* Puts a text and blanks; returns where it ends, NULL where it is not plain or too long. */
static char *put_cell(char *at, const char *text, size_t width, bool is_right) {
    size_t length = plain_length(text);
    if (length > width)
        return NULL;
    memset(at, ' ', width);
    memcpy(is_right ? at + width - length : at, text, length);
    return at + width;
}

/*
 * Prints a line that needs nothing but blanks around its texts, as libsmartcols would, which takes
 * ten times as long. False, and nothing printed, for others.
 */
static bool print_plain(const layout *l, const gbx_view_row *row) {
    char line[LINE_BYTES];
    char *at = line;
    const char *last = NULL; /* the text at the end, which has no blanks after it */
    for (size_t i = 0; i < GBX_VIEW_COLUMN_COUNT; ++i) {
        if (l->widths[i] == 0)
            continue;
        if (l->widths[i] + 2 > sizeof line - (size_t)(at - line))
            return false;
        if (at > line)
            *at++ = ' ';
        last = columns[i].flags & SCOLS_FL_RIGHT ? NULL : row->cells[i];
        at = put_cell(at, row->cells[i], l->widths[i], columns[i].flags & SCOLS_FL_RIGHT);
        if (!at)
            return false;
        if (last)
            last = at - l->widths[i] + strlen(last);
    }
    if (last)
        at = line + (last - line);
    *at++ = '\n';
    fwrite(line, 1, (size_t)(at - line), stdout);
    return true;
}

static gbx_status print_line(struct libscols_table *table, const layout *l,
                             const gbx_view_row *row) {
    if (print_plain(l, row))
        return NULL;
    if (!add_line(table, l, row) || scols_print_table(table) != 0)
        return gbx_fail_memory("printing the list");
    scols_table_remove_lines(table);
    return NULL;
}

static gbx_status print_headings(struct libscols_table *table, const layout *l) {
    gbx_view_row row;
    for (size_t i = 0; i < GBX_VIEW_COLUMN_COUNT; ++i)
        row.cells[i] = columns[i].heading;
    return print_line(table, l, &row);
}

/* `summaries` are NULL without statistics. */
static gbx_status print_lines(struct libscols_table *table, const layout *l, gbx_view_row *row,
                              gbx_entries *entries, const uint64_t *indices, size_t count,
                              const gbx_entry_summary *summaries) {
    for (size_t i = 0; i < count && !ferror(stdout); ++i) {
        gbx_entry entry;
        GBX_TRY(gbx_entries_at(entries, indices[i], &entry));
        gbx_view_row_fill(row, gbx_entries_reader(entries), &entry);
        if (summaries)
            gbx_view_row_fill_statistics(row, &entry,
                                         summaries[i].is_there ? &summaries[i].statistics : NULL);
        GBX_TRY(print_line(table, l, row));
    }
    return NULL;
}

static gbx_status print_parts(struct libscols_table *table, const layout *l, gbx_view_row *row,
                              gbx_entries *entries, const uint64_t *indices, uint64_t count,
                              gbx_entry_summary *summaries) {
    GBX_TRY(print_headings(table, l));
    for (uint64_t done = 0; done < count && !ferror(stdout);) {
        uint64_t left = count - done;
        size_t lines = left < LINES_AT_A_TIME ? (size_t)left : LINES_AT_A_TIME;
        if (summaries)
            GBX_TRY(gbx_entries_statistics(entries, indices + done, lines, summaries, &lines));
        GBX_TRY(print_lines(table, l, row, entries, indices + done, lines, summaries));
        done += lines;
    }
    return NULL;
}

static gbx_status print_all(struct libscols_table *table, const layout *l, gbx_view_row *row,
                            gbx_entries *entries, const uint64_t *indices, uint64_t count) {
    gbx_entry_summary *summaries = NULL;
    if (l->has_statistics) {
        summaries = malloc(LINES_AT_A_TIME * sizeof *summaries);
        if (!summaries)
            return gbx_fail_memory("printing the list");
    }
    gbx_status status = print_parts(table, l, row, entries, indices, count, summaries);
    free(summaries);
    return status;
}

/* On a further line where the terminal ends. */
static void print_word(const char *word, size_t *used, size_t width) {
    size_t length = strlen(word);
    bool is_fitting = *used == 0 || *used + 1 + length <= width;
    printf("%s%s", *used == 0 ? "" : is_fitting ? " " : "\n", word);
    *used = *used > 0 && is_fitting ? *used + 1 + length : length;
}

static void print_hidden(const layout *l, size_t width) {
    size_t left = 0;
    size_t used = 0;
    for (size_t i = 0; i < GBX_VIEW_COLUMN_COUNT; ++i)
        left += l->is_hidden[i];
    if (left == 0)
        return;
    print_word("no room for:", &used, width);
    for (size_t i = 0; i < GBX_VIEW_COLUMN_COUNT; ++i) {
        char word[16];
        if (!l->is_hidden[i])
            continue;
        snprintf(word, sizeof word, "%s%s", columns[i].heading, --left > 0 ? "," : "");
        print_word(word, &used, width);
    }
    putchar('\n');
}

gbx_status gbx_view_table_print(gbx_entries *entries, const uint64_t *indices, uint64_t count,
                                bool has_statistics) {
    layout l = {.has_statistics = has_statistics};
    gbx_view_row row = {0};
    if (count == 0)
        return NULL;
    size_t width = gbx_terminal_width();
    uint64_t measured = width == SIZE_MAX && count > MEASURED_MAX ? MEASURED_MAX : count;
    GBX_TRY(measure(&l, &row, entries, indices, count, measured));
    fit(&l, width);
    struct libscols_table *table = make_table(&l);
    if (!table)
        return gbx_fail_memory("printing the list");
    gbx_status status = print_all(table, &l, &row, entries, indices, count);
    scols_unref_table(table);
    GBX_TRY(status);
    print_hidden(&l, width);
    return NULL;
}
