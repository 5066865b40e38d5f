#include "cli/replay_table.h"

#include <libsmartcols/libsmartcols.h>
#include <stdint.h>
#include <stdlib.h>

#include "cli/terminal.h"

enum { CELL_BYTES = 4096 };

struct gbx_replay_table {
    struct libscols_table *lines;
    const gbx_replay_column *columns;
    size_t count;
    bool *is_used; /* for each column */
};

static gbx_status fail_memory(void) {
    return gbx_fail(GBX_EXHAUSTED, "printing a table: the host is out of memory");
}

static void fit_terminal(struct libscols_table *lines) {
    size_t width = gbx_terminal_width();
    scols_table_enable_noencoding(lines, 1); /* texts are escaped here */
    scols_table_set_termforce(lines,
                              width == SIZE_MAX ? SCOLS_TERMFORCE_NEVER : SCOLS_TERMFORCE_ALWAYS);
    if (width != SIZE_MAX)
        scols_table_set_termwidth(lines, width);
}

static bool add_columns(gbx_replay_table *table) {
    bool is_good = table->lines && table->is_used;
    for (size_t i = 0; is_good && i < table->count; ++i) {
        const gbx_replay_column *column = &table->columns[i];
        int flags =
            (column->is_right ? SCOLS_FL_RIGHT : 0) | (column->can_be_cut ? SCOLS_FL_TRUNC : 0);
        is_good = scols_table_new_column(table->lines, column->heading, 0, flags) != NULL;
    }
    return is_good;
}

gbx_status gbx_replay_table_create(const gbx_replay_column *columns, size_t count,
                                   gbx_replay_table **out_table) {
    gbx_replay_table *table = calloc(1, sizeof *table);
    *out_table = NULL;
    if (!table)
        return fail_memory();
    *table = (gbx_replay_table){scols_new_table(), columns, count, calloc(count, sizeof(bool))};
    if (!add_columns(table)) {
        gbx_replay_table_destroy(table);
        return fail_memory();
    }
    fit_terminal(table->lines);
    *out_table = table;
    return NULL;
}

void gbx_replay_table_destroy(gbx_replay_table *table) {
    if (!table)
        return;
    scols_unref_table(table->lines);
    free(table->is_used);
    free(table);
}

gbx_status gbx_replay_table_add(gbx_replay_table *table, const char *const *cells) {
    struct libscols_line *line = scols_table_new_line(table->lines, NULL);
    char escaped[CELL_BYTES];
    for (size_t i = 0; line && i < table->count; ++i) {
        const char *text = cells[i] ? cells[i] : "";
        table->is_used[i] = table->is_used[i] || *text;
        gbx_terminal_escape(text, escaped, sizeof escaped);
        if (scols_line_set_data(line, i, escaped) != 0)
            return fail_memory();
    }
    return line ? NULL : fail_memory();
}

gbx_status gbx_replay_table_print(gbx_replay_table *table) {
    for (size_t i = 0; i < table->count; ++i) {
        struct libscols_column *column = scols_table_get_column(table->lines, i);
        if (!table->is_used[i])
            scols_column_set_flags(column, scols_column_get_flags(column) | SCOLS_FL_HIDDEN);
    }
    if (scols_print_table(table->lines) != 0)
        return fail_memory();
    return NULL;
}
