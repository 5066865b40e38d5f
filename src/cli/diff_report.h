/* What diff says of two dumps: as text, and as JSON. */
#ifndef GBX_CLI_DIFF_REPORT_H
#define GBX_CLI_DIFF_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/diff/diff.h"
#include "cli/open_dump.h"
#include "cli/text_table.h"
#include "cli/view_row.h"
#include "text/json_writer.h"

enum { GBX_DIFF_LINES_MAX = 20, GBX_DIFF_NOTE_BYTES = 512, GBX_DIFF_WHY_BYTES = 4096 };
enum { GBX_DIFF_PLACE_BYTES = GBX_VIEW_KERNEL_BYTES + GBX_VIEW_ARG_BYTES + 80 };

/* --- sentences and names --- */

/* The two dumps, and the one whose names and numbers are shown: A, unless B alone has names. */
typedef struct gbx_diff_dumps {
    gbx_opened_dump a;
    gbx_opened_dump b;
    bool shows_b;
} gbx_diff_dumps;

/* The entry of a record that is shown: of the dump that is shown where the record is there. */
typedef struct gbx_diff_shown {
    const gbx_reader *reader;
    const gbx_entry *entry;
} gbx_diff_shown;

gbx_diff_shown gbx_diff_show(const gbx_diff_dumps *dumps, const gbx_diff_record *record);

/* The same of the first difference, whose entry is read into `out_entry`. */
GBX_MUST_USE gbx_status gbx_diff_show_first(const gbx_diff_dumps *dumps,
                                            const gbx_diff_record *first, gbx_entry *out_entry,
                                            gbx_diff_shown *out_shown);

/* How a record that is different differs: "dtype float32 in A, float16 in B"; "" where it is by the
 * elements of a tensor. */
void gbx_diff_form_text(const gbx_diff_record *record, char out_text[GBX_DIFF_NOTE_BYTES]);

/* "[0, 3]" of an element of the record's tensor; "[]" of a scalar. */
void gbx_diff_index_text(const gbx_entry *entry, uint64_t number,
                         char out_text[GBX_VIEW_SHAPE_BYTES]);

/* "task 3, kernel add, arg 1 y". Names are as they are in the dump. */
void gbx_diff_place_text(const gbx_reader *reader, const gbx_entry *entry,
                         char out_text[GBX_DIFF_PLACE_BYTES]);

/* Why the first difference is there, in words: "introduced here (its inputs are equal)". */
GBX_MUST_USE gbx_status gbx_diff_why_text(const gbx_diff_dumps *dumps,
                                          const gbx_diff_result *result,
                                          char out_text[GBX_DIFF_WHY_BYTES]);

/* From which task on the graphs differ, where they do. */
GBX_MUST_USE gbx_status gbx_diff_graph_text(const gbx_diff_dumps *dumps,
                                            const gbx_diff_result *result,
                                            char out_text[GBX_DIFF_WHY_BYTES]);

/* --- text --- */

/* A table of at most GBX_DIFF_LINES_MAX lines, and how many there would be. Zero before its first
 * use. */
typedef struct gbx_diff_table {
    gbx_text_table table;
    uint64_t all;
} gbx_diff_table;

/* Takes what is needed of the record; it is counted where there is no room. */
GBX_MUST_USE gbx_status gbx_diff_table_add(gbx_diff_table *table, const gbx_diff_dumps *dumps,
                                           const gbx_diff_record *record);
/* `others` is a table that is not printed, whose records are counted at the end; may be NULL. */
void gbx_diff_table_print(const gbx_diff_table *table, const gbx_diff_table *others);

/* What is kept of the records for a text. Zero before its first use. */
typedef struct gbx_diff_text {
    gbx_diff_table apart;                                      /* different */
    gbx_diff_table alone;                                      /* in one dump */
    gbx_diff_table within;                                     /* near */
    char unknown[GBX_DIFF_REASON_COUNT][GBX_DIFF_PLACE_BYTES]; /* the first not compared of each */
    char form[GBX_DIFF_NOTE_BYTES]; /* how the first difference differs */
    bool has_form;
} gbx_diff_text;

GBX_MUST_USE gbx_status gbx_diff_text_add(gbx_diff_text *text, const gbx_diff_dumps *dumps,
                                          const gbx_diff_record *record);
GBX_MUST_USE gbx_status gbx_diff_text_print(const gbx_diff_text *text, const gbx_diff_dumps *dumps,
                                            const gbx_diff_result *result);
void gbx_diff_text_free(gbx_diff_text *text);

/* --- JSON: an object that is begun, records as they come, and the end --- */

void gbx_diff_json_begin(gbx_json_writer *json, const gbx_diff_dumps *dumps);
void gbx_diff_json_add(gbx_json_writer *json, const gbx_diff_dumps *dumps,
                       const gbx_diff_record *record);
GBX_MUST_USE gbx_status gbx_diff_json_end(gbx_json_writer *json, const gbx_diff_dumps *dumps,
                                          const gbx_diff_result *result);

#endif
