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

static size_t measure(const gbx_check_table *table, size_t *out_widths) {
    size_t total = 0;
    for (size_t c = 0; c < table->column_count; ++c) {
        out_widths[c] = strlen(table->columns[c].heading);
        for (size_t i = c; i < table->cell_count; i += table->column_count) {
            size_t width = gbx_terminal_text_width(table->cells[i]);
            out_widths[c] = width > out_widths[c] ? width : out_widths[c];
        }
        total += out_widths[c] + (c > 0 ? 2 : 0);
    }
    return total;
}

/* Takes from the widest that can give, a character at a time, until the line fits. */
static void fit(const gbx_check_table *table, size_t *widths, size_t total, size_t room) {
    for (; total > room; --total) {
        size_t widest = SIZE_MAX;
        for (size_t c = 0; c < table->column_count; ++c) {
            const gbx_check_column *column = &table->columns[c];
            bool can_give = column->narrowest > 0 && widths[c] > column->narrowest &&
                            widths[c] > strlen(column->heading);
            if (can_give && (widest == SIZE_MAX || widths[c] > widths[widest]))
                widest = c;
        }
        if (widest == SIZE_MAX)
            return;
        --widths[widest];
    }
}

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

void gbx_check_table_print(const gbx_check_table *table) {
    size_t widths[GBX_CHECK_COLUMNS_MAX];
    size_t count = table->column_count;
    if (count == 0)
        return;
    size_t total = measure(table, widths);
    fit(table, widths, total, gbx_terminal_width());
    for (size_t c = 0; c < count; ++c)
        print_cell(&table->columns[c], table->columns[c].heading, widths[c], c + 1 == count);
    for (size_t i = 0; i < table->cell_count; ++i)
        print_cell(&table->columns[i % count], table->cells[i], widths[i % count],
                   i % count + 1 == count);
}
