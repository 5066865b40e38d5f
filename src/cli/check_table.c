#include "cli/check_table.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/terminal.h"

gbx_status gbx_check_table_add(gbx_check_table *table, const char *text) {
    if (table->cell_count == table->capacity) {
        size_t wanted = table->capacity ? table->capacity * 2 : 64;
        char **larger = realloc(table->cells, wanted * sizeof *larger);
        if (!larger)
            return gbx_fail(GBX_EXHAUSTED, "printing a table: the host is out of memory");
        table->cells = larger;
        table->capacity = wanted;
    }
    char *copy = strdup(text);
    if (!copy)
        return gbx_fail(GBX_EXHAUSTED, "printing a table: the host is out of memory");
    table->cells[table->cell_count++] = copy;
    return NULL;
}

void gbx_check_table_free(gbx_check_table *table) {
    for (size_t i = 0; i < table->cell_count; ++i)
        free(table->cells[i]);
    free(table->cells);
    table->cells = NULL;
    table->cell_count = 0;
}

/* --- widths; 0 of a column that is left out --- */

static void measure(const gbx_check_table *table, size_t *out_widths) {
    for (size_t c = 0; c < table->column_count; ++c) {
        out_widths[c] = strlen(table->columns[c].heading);
        for (size_t i = c; i < table->cell_count; i += table->column_count) {
            size_t width = gbx_terminal_text_width(table->cells[i]);
            out_widths[c] = width > out_widths[c] ? width : out_widths[c];
        }
    }
}

/* What a column can give, for its heading stays whole. */
static size_t spare(const gbx_check_column *column, size_t width) {
    size_t least = strlen(column->heading);
    least = column->narrowest > least ? column->narrowest : least;
    return column->narrowest > 0 && width > least ? width - least : 0;
}

static size_t total_width(const gbx_check_table *table, const size_t *widths, size_t *out_spare) {
    size_t total = 0;
    *out_spare = 0;
    for (size_t c = 0; c < table->column_count; ++c) {
        total += widths[c] > 0 ? widths[c] + (total > 0 ? 2 : 0) : 0;
        *out_spare += spare(&table->columns[c], widths[c]);
    }
    return total;
}

static void leave_out(const gbx_check_table *table, size_t *widths, size_t room) {
    size_t given;
    for (size_t turn = 1; turn <= table->column_count; ++turn)
        for (size_t c = 0; c < table->column_count; ++c)
            if (table->columns[c].leaves == turn &&
                total_width(table, widths, &given) - given > room)
                widths[c] = 0;
}

/* Takes from the widest that can give, a character at a time, until the line fits. */
static void fit(const gbx_check_table *table, size_t *widths, size_t room) {
    size_t given;
    leave_out(table, widths, room);
    while (total_width(table, widths, &given) > room && given > 0) {
        size_t widest = SIZE_MAX;
        for (size_t c = 0; c < table->column_count; ++c)
            if (spare(&table->columns[c], widths[c]) > 0 &&
                (widest == SIZE_MAX || widths[c] > widths[widest]))
                widest = c;
        --widths[widest];
    }
}

/* --- printing --- */

static void print_cell(const gbx_check_column *column, const char *text, size_t width,
                       bool is_last) {
    char cut[GBX_CHECK_CELL_BYTES];
    const char *shown = gbx_terminal_cut(text, width, cut, sizeof cut);
    size_t taken = gbx_terminal_text_width(shown);
    int blanks = taken < width ? (int)(width - taken) : 0;
    if (column->is_right)
        printf("%*s", blanks, "");
    gbx_terminal_put(shown);
    if (!column->is_right && !is_last)
        printf("%*s", blanks, "");
    fputs(is_last ? "\n" : "  ", stdout);
}

/* A row of cells; NULL for the headings. */
static void print_row(const gbx_check_table *table, const size_t *widths, char *const *cells) {
    size_t last = 0;
    for (size_t c = 0; c < table->column_count; ++c)
        last = widths[c] > 0 ? c : last;
    for (size_t c = 0; c <= last; ++c)
        if (widths[c] > 0)
            print_cell(&table->columns[c], cells ? cells[c] : table->columns[c].heading, widths[c],
                       c == last);
}

static void print_left_out(const gbx_check_table *table, const size_t *widths) {
    const char *before = "no room for: ";
    for (size_t c = 0; c < table->column_count; ++c) {
        if (widths[c] > 0)
            continue;
        printf("%s%s", before, table->columns[c].heading);
        before = ", ";
    }
    if (before[0] == ',')
        putchar('\n');
}

void gbx_check_table_print(const gbx_check_table *table) {
    size_t widths[GBX_CHECK_COLUMNS_MAX] = {0};
    measure(table, widths);
    fit(table, widths, gbx_terminal_width());
    print_row(table, widths, NULL);
    for (size_t i = 0; i < table->cell_count; i += table->column_count)
        print_row(table, widths, table->cells + i);
    print_left_out(table, widths);
}
