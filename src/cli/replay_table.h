/* A small table on stdout that fits the terminal. */
#ifndef GBX_CLI_REPLAY_TABLE_H
#define GBX_CLI_REPLAY_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

typedef struct gbx_replay_table gbx_replay_table;

typedef struct gbx_replay_column {
    const char *heading;
    bool is_right;
    bool can_be_cut; /* its texts are cut where there is no room */
} gbx_replay_column;

/* Columns are borrowed. */
GBX_MUST_USE gbx_status gbx_replay_table_create(const gbx_replay_column *columns, size_t count,
                                                gbx_replay_table **out_table);
void gbx_replay_table_destroy(gbx_replay_table *table); /* takes NULL */

/* One text a column, of any bytes; copied. A NULL is an empty one. */
GBX_MUST_USE gbx_status gbx_replay_table_add(gbx_replay_table *table, const char *const *cells);

/* Columns that are empty in all lines are left out. */
GBX_MUST_USE gbx_status gbx_replay_table_print(gbx_replay_table *table);

#endif
