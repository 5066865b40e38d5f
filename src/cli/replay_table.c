#include "cli/replay_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/terminal.h"

enum { CELL_BYTES = 4096, NARROWEST = 6 };

gbx_status gbx_replay_table_add(gbx_replay_table *table, const char *const *cells) {
    for (size_t i = 0; i < table->column_count; ++i) {
        if (table->cell_count == table->capacity) {
            size_t capacity = table->capacity ? 2 * table->capacity : 64;
            char **larger = realloc(table->cells, capacity * sizeof *larger);
            if (!larger)
                return gbx_fail(GBX_EXHAUSTED, "printing a table: the host is out of memory");
            table->cells = larger;
            table->capacity = capacity;
        }
        char *copy = strdup(cells[i] ? cells[i] : "");
        if (!copy)
            return gbx_fail(GBX_EXHAUSTED, "printing a table: the host is out of memory");
        table->cells[table->cell_count++] = copy;
    }
    return NULL;
}

/* Widths by column; 0 for one that is not shown. */
static void measure(const gbx_replay_table *table, size_t *out_widths) {
    for (size_t c = 0; c < table->column_count; ++c) {
        out_widths[c] = 0;
        for (size_t i = c; i < table->cell_count; i += table->column_count) {
            size_t width = gbx_terminal_text_width(table->cells[i]);
            out_widths[c] = width > out_widths[c] ? width : out_widths[c];
        }
        size_t heading = strlen(table->columns[c].heading);
        if (out_widths[c] > 0 && out_widths[c] < heading)
            out_widths[c] = heading;
    }
}

static size_t line_width(const gbx_replay_table *table, const size_t *widths) {
    size_t total = 0;
    for (size_t c = 0; c < table->column_count; ++c)
        total += widths[c] > 0 ? widths[c] + (total > 0) : 0;
    return total;
}

/* The widest column that can be cut, or the one to drop next; NULL where there is none. */
static size_t *find_to_shrink(const gbx_replay_table *table, size_t *widths) {
    size_t *widest = NULL;
    size_t *dropped = NULL;
    unsigned most = 0;
    for (size_t c = 0; c < table->column_count; ++c) {
        const gbx_replay_column *column = &table->columns[c];
        if (column->can_be_cut && widths[c] > NARROWEST && (!widest || widths[c] > *widest))
            widest = &widths[c];
        if (widths[c] > 0 && column->dropped > most) {
            most = column->dropped;
            dropped = &widths[c];
        }
    }
    if (!widest && dropped)
        *dropped = 1;
    return widest ? widest : dropped;
}

static void fit(const gbx_replay_table *table, size_t *widths) {
    size_t room = gbx_terminal_width();
    size_t *next;
    while (line_width(table, widths) > room && (next = find_to_shrink(table, widths)) != NULL)
        --*next;
}

/* Blanks come before a text, not after it, so that no line ends with some. */
static void print_row(const gbx_replay_table *table, const size_t *widths, char *const *texts) {
    char cut[CELL_BYTES];
    size_t blanks = 0;
    const char *separator = "";
    for (size_t c = 0; c < table->column_count; ++c) {
        if (widths[c] == 0)
            continue;
        const char *text = texts ? texts[c] : table->columns[c].heading;
        const char *shown = gbx_terminal_cut(text, widths[c], cut, sizeof cut);
        size_t rest = widths[c] - gbx_terminal_text_width(shown);
        bool is_right = table->columns[c].is_right;
        blanks += (*separator ? 1 : 0) + (is_right ? rest : 0);
        separator = " ";
        if (*shown) {
            printf("%*s", (int)blanks, "");
            gbx_terminal_put(shown);
            blanks = 0;
        }
        blanks += is_right ? 0 : rest;
    }
    putchar('\n');
}

gbx_status gbx_replay_table_finish(gbx_replay_table *table, gbx_status status) {
    size_t widths[GBX_REPLAY_COLUMNS_MAX];
    if (!status) {
        measure(table, widths);
        fit(table, widths);
        print_row(table, widths, NULL);
        for (size_t i = 0; i < table->cell_count; i += table->column_count)
            print_row(table, widths, table->cells + i);
    }
    for (size_t i = 0; i < table->cell_count; ++i)
        free(table->cells[i]);
    free(table->cells);
    return status;
}
