#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/internal.h"

enum { CELL_BYTES = 4096 };

/* --- rows --- */

gbx_status gbx_text_table_add(gbx_text_table *table, const char *const *cells) {
    for (size_t i = 0; i < table->column_count; ++i) {
        GBX_TRY(gbx_array_reserve(&table->cells, &table->capacity, table->cell_count + 1,
                                  "printing a table"));
        char *copy = strdup(cells[i] ? cells[i] : "");
        if (!copy)
            return gbx_fail_memory("printing a table");
        table->cells[table->cell_count++] = copy;
    }
    return NULL;
}

void gbx_text_table_free(gbx_text_table *table) {
    for (size_t i = 0; i < table->cell_count; ++i)
        free(table->cells[i]);
    free(table->cells);
    table->cells = NULL;
    table->cell_count = table->capacity = 0;
}

/* --- widths; 0 of a column that is not shown --- */

static void measure(const gbx_text_table *table, size_t *out_widths) {
    for (size_t c = 0; c < table->column_count; ++c) {
        size_t heading = strlen(table->columns[c].heading);
        out_widths[c] = 0;
        for (size_t i = c; i < table->cell_count; i += table->column_count) {
            size_t width = gbx_terminal_text_width(table->cells[i]);
            out_widths[c] = width > out_widths[c] ? width : out_widths[c];
        }
        if (out_widths[c] > 0 && out_widths[c] < heading)
            out_widths[c] = heading;
    }
}

/* What a column can give, for its heading stays whole. */
static size_t spare(const gbx_text_table_column *column, size_t width) {
    size_t least = strlen(column->heading);
    least = column->narrowest > least ? column->narrowest : least;
    return column->narrowest > 0 && width > least ? width - least : 0;
}

static size_t total_width(const gbx_text_table *table, const size_t *widths, size_t *out_spare) {
    size_t total = 0;
    *out_spare = 0;
    for (size_t c = 0; c < table->column_count; ++c) {
        total += widths[c] > 0 ? widths[c] + (total > 0 ? table->gap : 0) : 0;
        *out_spare += spare(&table->columns[c], widths[c]);
    }
    return total;
}

static void leave_out(const gbx_text_table *table, size_t *widths, bool *out_left, size_t room) {
    size_t given;
    for (size_t turn = 1; turn <= table->column_count; ++turn)
        for (size_t c = 0; c < table->column_count; ++c)
            if (table->columns[c].leaves == turn && widths[c] > 0 &&
                total_width(table, widths, &given) - given > room) {
                widths[c] = 0;
                out_left[c] = true;
            }
}

/* Takes from the widest that can give, a character at a time, until the line fits. */
static void cut(const gbx_text_table *table, size_t *widths, size_t room) {
    size_t given;
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

static void put_blanks(size_t count) {
    printf("%*s", (int)count, "");
}

/* A row of cells; NULL for the headings. Blanks come before a text, not after it, so that no line
 * ends with some. */
static void print_row(const gbx_text_table *table, const size_t *widths, char *const *cells) {
    char shortened[CELL_BYTES], escaped[4 * CELL_BYTES]; /* "\xNN" for every byte */
    size_t blanks = 0;
    for (size_t c = 0; c < table->column_count; ++c) {
        if (widths[c] == 0)
            continue;
        const char *text = cells ? cells[c] : table->columns[c].heading;
        text = gbx_terminal_cut(text, widths[c], shortened, sizeof shortened);
        size_t rest = widths[c] - gbx_terminal_text_width(text);
        bool is_right = table->columns[c].is_right;
        if (*text) {
            gbx_terminal_escape(text, escaped, sizeof escaped);
            put_blanks(blanks + (is_right ? rest : 0));
            fputs(escaped, stdout);
            blanks = is_right ? 0 : rest;
        } else {
            blanks += rest;
        }
        blanks += table->gap;
    }
    putchar('\n');
}

static void print_left(const gbx_text_table *table, const bool *is_left, size_t room) {
    size_t used = 0;
    const char *comma = "";
    for (size_t c = 0; c < table->column_count; ++c) {
        if (!is_left[c])
            continue;
        const char *heading = table->columns[c].heading;
        used += (size_t)printf("%s", used > 0 ? comma : "no room for:");
        bool has_room = used + strlen(heading) + 2 <= room; /* with a blank and a comma */
        used = has_room ? used : 0;
        used += (size_t)printf("%s%s", has_room ? " " : "\n", heading);
        comma = ",";
    }
    if (used > 0)
        putchar('\n');
}

void gbx_text_table_print(const gbx_text_table *table) {
    size_t widths[GBX_TEXT_TABLE_COLUMNS_MAX];
    bool is_left[GBX_TEXT_TABLE_COLUMNS_MAX] = {false};
    size_t room = gbx_terminal_width();
    measure(table, widths);
    leave_out(table, widths, is_left, room);
    cut(table, widths, room);
    print_row(table, widths, NULL);
    for (size_t i = 0; i < table->cell_count; i += table->column_count)
        print_row(table, widths, table->cells + i);
    print_left(table, is_left, room);
}

gbx_status gbx_text_table_finish(gbx_text_table *table, gbx_status status) {
    if (!status)
        gbx_text_table_print(table);
    gbx_text_table_free(table);
    return status;
}
