/* One entry of a dump as the cells of a table. */
#ifndef GBX_CLI_VIEW_ROW_H
#define GBX_CLI_VIEW_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/chip.h>
#include <glassbox/orchestration.h>

#include "analysis/entries.h"

typedef enum gbx_view_column {
    GBX_VIEW_INDEX,
    GBX_VIEW_TASK,
    GBX_VIEW_KERNEL,
    GBX_VIEW_STAGE,
    GBX_VIEW_ROLE,
    GBX_VIEW_ARG,
    GBX_VIEW_DTYPE,
    GBX_VIEW_SHAPE,
    GBX_VIEW_BYTES,
    GBX_VIEW_HASH,
    GBX_VIEW_MIN, /* from here on with statistics */
    GBX_VIEW_MAX,
    GBX_VIEW_MEAN,
    GBX_VIEW_NAN,
    GBX_VIEW_INF,
    GBX_VIEW_NOTE,
    GBX_VIEW_COLUMN_COUNT
} gbx_view_column;

enum {
    GBX_VIEW_NUMBER_BYTES = 40,
    GBX_VIEW_NUMBER_WIDTH = 12,                /* of min, max and mean */
    GBX_VIEW_NAME_WIDTH = GBX_MAX_KERNEL_NAME, /* of a name of the dump: longer ones are cut */
    GBX_VIEW_NAME_BYTES = GBX_VIEW_NAME_WIDTH * 4 + 8,
    GBX_VIEW_KERNEL_BYTES = GBX_SUBTASK_COUNT * GBX_VIEW_NAME_BYTES,
    GBX_VIEW_ARG_BYTES = GBX_VIEW_NAME_BYTES + 8,
    GBX_VIEW_SHAPE_BYTES = GBX_MAX_DIMS * 22 + 8,
    GBX_VIEW_NOTE_BYTES = 64
};

/* Zero before its first use. Texts that the cells point at. */
typedef struct gbx_view_row {
    const char *cells[GBX_VIEW_COLUMN_COUNT]; /* NULL for one that is not filled */
    char index[GBX_VIEW_NUMBER_BYTES];
    char task[GBX_VIEW_NUMBER_BYTES];
    char arg[GBX_VIEW_ARG_BYTES];
    char shape[GBX_VIEW_SHAPE_BYTES];
    char bytes[GBX_VIEW_NUMBER_BYTES];
    char hash[GBX_VIEW_NUMBER_BYTES];
    char numbers[GBX_VIEW_NOTE - GBX_VIEW_MIN][GBX_VIEW_NUMBER_BYTES];
    char note[GBX_VIEW_NOTE_BYTES];
    char kernel[GBX_VIEW_KERNEL_BYTES]; /* of these: */
    uint32_t func_ids[GBX_SUBTASK_COUNT];
    bool has_kernel;
} gbx_view_row;

/* All columns but those of statistics. */
void gbx_view_row_fill(gbx_view_row *row, const gbx_reader *reader, const gbx_entry *entry);

/* Those of statistics; NULL for none. */
void gbx_view_row_fill_statistics(gbx_view_row *row, const gbx_entry *entry,
                                  const gbx_statistics *statistics);

/* "softmax", of a mix "matmul+add", "func 3" where the dump tells no names. */
void gbx_view_kernel_text(const gbx_reader *reader, const gbx_record_task *task,
                          char out_text[GBX_VIEW_KERNEL_BYTES]);

/* "0x2a" or, where the dump numbers its tasks, "42". */
void gbx_view_task_text(const gbx_reader *reader, const gbx_entry *entry,
                        char out_text[GBX_VIEW_NUMBER_BYTES]);

/* An extreme or a mean in at most GBX_VIEW_NUMBER_WIDTH characters. */
void gbx_view_extreme_text(uint32_t dtype, uint64_t bits, char out_text[GBX_VIEW_NUMBER_BYTES]);
void gbx_view_mean_text(double mean, char out_text[GBX_VIEW_NUMBER_BYTES]);

#endif
