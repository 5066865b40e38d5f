/* A small table on stdout, as wide as its texts, or as the terminal. */
#ifndef GBX_CLI_TEXT_TABLE_H
#define GBX_CLI_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { GBX_TEXT_TABLE_COLUMNS_MAX = 16 };

typedef struct gbx_text_table_column {
    const char *heading;
    bool is_right;
    size_t narrowest; /* that its texts can be cut to, with a mark; 0: they cannot */
    size_t leaves; /* where cut texts do not fit either: 1 is left out first, then 2...; 0 never */
} gbx_text_table_column;

/* All zero but for the first three, which are borrowed. */
typedef struct gbx_text_table {
    const gbx_text_table_column *columns;
    size_t column_count; /* at most GBX_TEXT_TABLE_COLUMNS_MAX */
    size_t gap;          /* blanks between columns */
    char **cells;        /* row by row */
    size_t cell_count;
    uint64_t capacity;
} gbx_text_table;

/* A row: one text a column, of any bytes; copied. A NULL is an empty one. */
GBX_MUST_USE gbx_status gbx_text_table_add(gbx_text_table *table, const char *const *cells);

/* Columns that are empty in all rows are not shown; those that there is no room for are named
 * after the last row. */
void gbx_text_table_print(const gbx_text_table *table);

/* Frees the rows. */
void gbx_text_table_free(gbx_text_table *table);

/* Prints the table and frees its rows. `status` is what happened before: where it is a failure
 * nothing is printed, and it is returned. */
GBX_MUST_USE gbx_status gbx_text_table_finish(gbx_text_table *table, gbx_status status);

#endif
