/* A small table on stdout that fits the terminal. */
#ifndef GBX_CLI_REPLAY_TABLE_H
#define GBX_CLI_REPLAY_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

enum { GBX_REPLAY_COLUMNS_MAX = 12 };

typedef struct gbx_replay_column {
    const char *heading;
    bool is_right;
    bool can_be_cut;  /* where there is no room, with a mark */
    unsigned dropped; /* those with the largest number go first where that is not enough; 0 stays */
} gbx_replay_column;

/* All zero but for the columns, which are borrowed. */
typedef struct gbx_replay_table {
    const gbx_replay_column *columns;
    size_t column_count; /* at most GBX_REPLAY_COLUMNS_MAX */
    char **cells;        /* row by row */
    size_t cell_count;
    size_t capacity;
} gbx_replay_table;

/* A row: one text a column, of any bytes; copied. A NULL is an empty one. */
GBX_MUST_USE gbx_status gbx_replay_table_add(gbx_replay_table *table, const char *const *cells);

/* Columns that are empty in all rows are left out. Frees the rows. `status` is what happened
 * before: where it is a failure nothing is printed, and it is returned. */
GBX_MUST_USE gbx_status gbx_replay_table_finish(gbx_replay_table *table, gbx_status status);

#endif
