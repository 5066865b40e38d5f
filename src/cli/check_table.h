/* A small table on stdout, as wide as its texts, or as the terminal. Columns that there is no room
 * for are named. */
#ifndef GBX_CLI_CHECK_TABLE_H
#define GBX_CLI_CHECK_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

enum { GBX_CHECK_COLUMNS_MAX = 8, GBX_CHECK_CELL_BYTES = 1024 };

typedef struct gbx_check_column {
    const char *heading;
    bool is_right;
    size_t narrowest; /* that its texts can be cut to; 0: they cannot */
    size_t leaves; /* where cut texts do not fit either: 1 is left out first, then 2...; 0 never */
} gbx_check_column;

typedef struct gbx_check_table {
    const gbx_check_column *columns;
    size_t column_count;
    char **cells; /* row by row */
    size_t cell_count;
    size_t capacity;
} gbx_check_table;

/* Cells come row by row, from left to right; the text is copied, and may hold anything. */
GBX_MUST_USE gbx_status gbx_check_table_add(gbx_check_table *table, const char *text);
void gbx_check_table_print(const gbx_check_table *table);
void gbx_check_table_free(gbx_check_table *table);

#endif
