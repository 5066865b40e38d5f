/*
 * What the files of src/cli share among themselves. A command is an entry of the table in main.c
 * and a file of its own; what a large one prints is in NAME_text.c and NAME_json.c.
 */
#ifndef GBX_CLI_INTERNAL_H
#define GBX_CLI_INTERNAL_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/chip.h>
#include <glassbox/kernel.h>
#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "analysis/audit/audit.h"
#include "analysis/diff/diff.h"
#include "analysis/entries.h"
#include "analysis/export/export.h"
#include "analysis/selection.h"
#include "base/status.h"
#include "replay/check/check_report.h"
#include "replay/replay_result.h"
#include "replay/swap/swap.h"
#include "scene/runner.h"
#include "store/reader.h"
#include "store/verify/findings.h"
#include "text/json_writer.h"
#include "text/names.h"

/* --- command.c --- */

/* Exit codes that every command shares. */
enum { GBX_EXIT_OK = 0, GBX_EXIT_DIFFERS = 1, GBX_EXIT_USAGE = 2 };

/*
 * Parses the options of a command called "glassbox NAME"; exits with GBX_EXIT_USAGE and one
 * sentence when they are wrong. `input` goes to the parser's function.
 */
void gbx_command_parse(const struct argp *parser, const char *name, int argc, char **argv,
                       void *input);

/* A parser's function for a command without options or arguments, and the end of all others. */
error_t gbx_command_reject(int key, char *argument, struct argp_state *state);

/*
 * The end of a command: its exit code. A failure is printed to stderr as "glassbox NAME: SENTENCE"
 * and freed, and the exit code is that of its code. Sentences have texts of files in them, so they
 * are escaped as gbx_terminal_escape does it; lines of what a compiler said stay lines.
 */
int gbx_command_end(const char *name, gbx_status status, int exit_code);

/* The same print for what is no status, as printf has it; its lines stay lines. */
void gbx_command_say(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Each gets its own name as argv[0] and returns the exit code. */
int gbx_command_audit(int argc, char **argv);
int gbx_command_check(int argc, char **argv);
int gbx_command_diff(int argc, char **argv);
int gbx_command_export(int argc, char **argv);
int gbx_command_platforms(int argc, char **argv);
int gbx_command_recover(int argc, char **argv);
int gbx_command_replay(int argc, char **argv);
int gbx_command_run(int argc, char **argv);
int gbx_command_verify(int argc, char **argv);
int gbx_command_view(int argc, char **argv);

/* --- options.c --- */

/*
 * Values of options. Each ends the command with code 2 and one sentence (argp_error) when the text
 * is not what is expected; `option` is its name as the user writes it.
 */
uint64_t gbx_option_integer(struct argp_state *state, const char *option, const char *text,
                            uint64_t min, uint64_t max);

/* Bytes: "4096", "512M", "4G", "1GiB"; powers of 1024. */
uint64_t gbx_option_size(struct argp_state *state, const char *option, const char *text,
                         uint64_t min, uint64_t max);

/* Seconds, with a fraction, as milliseconds from 1 to UINT32_MAX. */
uint32_t gbx_option_seconds(struct argp_state *state, const char *option, const char *text);

/* The index of one of `names`, which ends with NULL. */
size_t gbx_option_choice(struct argp_state *state, const char *option, const char *text,
                         const char *const *names);

/* Of --task: "0x..." is an id, anything else the number. */
bool gbx_option_is_id(const char *text);

/* The dump that a command is about: `argument`, unless there is one already. `done` is what is done
 * with one at a time: "audited". */
void gbx_option_dump(struct argp_state *state, const char **dump, const char *argument,
                     const char *done);

/*
 * The filters of commands that read dumps: --kernel, --func, --task, --arg, --role, --stage,
 * --kind, --dtype. A child of a command's argp; its input is the gbx_selection, zero before
 * parsing.
 */
extern const struct argp gbx_selection_argp;

/* gbx_selection_apply; fails with GBX_INVALID_ARGUMENT, and says which option, where this dump does
 * not tell what is asked for. */
GBX_MUST_USE gbx_status gbx_selection_options_apply(const gbx_selection *selection,
                                                    gbx_entries *entries,
                                                    gbx_selected *out_selected);

/* --- progress.c --- */

/*
 * One line on stderr that tells what is going on, rewritten in place: only on a terminal, and only
 * from the third second on. A thread of its own draws it; all calls come from one other thread.
 */
typedef struct gbx_progress gbx_progress;

/* NULL where there is nothing to show it on; all of these take it. */
gbx_progress *gbx_progress_start(void);
void gbx_progress_stop(gbx_progress *progress);

/* What begins now; `of_case` may be NULL. Both are copied. */
void gbx_progress_phase(gbx_progress *progress, const char *of_case, const char *what);

void gbx_progress_tasks(gbx_progress *progress, uint64_t tasks);

/* Takes the line away, for something else to be printed; it comes back by itself. */
void gbx_progress_hide(gbx_progress *progress);

/* --- terminal.c: what stdout is able to show --- */

/* Columns of the terminal; SIZE_MAX where stdout is none. */
size_t gbx_terminal_width(void);

/* The locale's characters are UTF-8. After setlocale. */
bool gbx_terminal_is_unicode(void);

/* Columns that a text takes once it is escaped. */
size_t gbx_terminal_text_width(const char *text);

/*
 * The text with the bytes of some characters as \xNN: of those that the locale cannot show, of
 * controls, of those that turn the direction of what follows, and of a backslash before an x. Ends
 * where `capacity` does not hold more.
 */
void gbx_terminal_escape(const char *text, char *out_text, size_t capacity);

/* The text, or its beginning and a mark where it takes more than `width` columns, at least 1, or
 * `capacity` bytes, at least 8; `out_text` may be used for it. Always shorter than `capacity`. */
const char *gbx_terminal_cut(const char *text, size_t width, char *out_text, size_t capacity);

/* Prints text that a file gave to stdout: controls, and what turns the direction of what follows,
 * do not reach the terminal. */
void gbx_terminal_put(const char *text);

/* The same between two texts of the program's own. */
void gbx_terminal_quote(const char *before, const char *text, const char *after);

/* Both texts in a colour: on a terminal, and not with NO_COLOR. */
#define GBX_RED "\x1b[31m"
#define GBX_GREEN "\x1b[32m"
#define GBX_YELLOW "\x1b[33m"
void gbx_terminal_put_coloured(const char *colour, const char *text, const char *more);

/* A text as one word of a shell's command line, in quotes where it needs some; freed by the caller,
 * NULL where memory is out. With `is_shown` as $'...' where a terminal would not show it as it is.
 */
char *gbx_shell_quote(const char *text, bool is_shown);

/* --- text_table.c: a small table on stdout, as wide as its texts, or as the terminal --- */

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

/* --- dump_text.c: counts, sizes, values and what is wrong, as text and as JSON --- */

enum {
    GBX_COUNT_TEXT_BYTES = 32,
    GBX_TIME_TEXT_BYTES = 32,
    GBX_NUMBERS_TEXT_BYTES = GBX_MAX_DIMS * 22 + 8,
    GBX_TEXT_VALUE_BYTES = 72
};

/* "1,024"; the text is `out_text`. */
const char *gbx_text_count(uint64_t count, char out_text[GBX_COUNT_TEXT_BYTES]);

/* What a word ends with: "" of one, "s" of others. */
const char *gbx_text_plural(uint64_t count);

/* "17 bytes", "3.2 MiB"; the text is `out_text`. */
const char *gbx_text_bytes(uint64_t bytes, char out_text[GBX_COUNT_TEXT_BYTES]);

/* "412 ns", "1.25 ms", "83.20 s"; the text is `out_text`. */
const char *gbx_text_ns(uint64_t ns, char out_text[GBX_TIME_TEXT_BYTES]);

/* "[3, 17]" of a shape or an index, "[]" of no dimensions; the text is `out_text`. */
const char *gbx_text_numbers(const int64_t *numbers, uint32_t count,
                             char out_text[GBX_NUMBERS_TEXT_BYTES]);

/* The same of an element's row-major number. */
const char *gbx_text_index(const gbx_tensor *tensor, uint64_t number,
                           char out_text[GBX_NUMBERS_TEXT_BYTES]);

/* The value of an element, and its bits too where several have the same text: NaN and zero. */
const char *gbx_text_value(uint32_t dtype, uint64_t bits, char out_text[GBX_TEXT_VALUE_BYTES]);

/* One line each, indented; at most 20, then how many more there are and `more`, where they are. */
void gbx_text_findings(const gbx_findings *findings, const char *more);

/* Begins one JSON document on stdout, for --json: an object. */
void gbx_json_start_stdout(gbx_json_writer *json);

/* Ends the object and the document. `status` is what happened before: the first failure is
 * returned. */
GBX_MUST_USE gbx_status gbx_json_finish_stdout(gbx_json_writer *json, gbx_status status);

/* A key and an element, raw bits of `dtype`, as the manifest has values of scalars: integers of 64
 * bits as text. */
void gbx_json_put_value(gbx_json_writer *json, const char *key, uint32_t dtype, uint64_t bits);

/* A key and an array of numbers on one line. */
void gbx_json_put_numbers(gbx_json_writer *json, const char *key, const int64_t *numbers,
                          uint32_t count);

/* The same of an element's row-major number. */
void gbx_json_put_index(gbx_json_writer *json, const char *key, const gbx_tensor *tensor,
                        uint64_t number);

/* A key and a number, or null where it is not there. */
void gbx_json_put_known(gbx_json_writer *json, const char *key, bool is_there, uint64_t value);

/* A key and an array of objects. */
void gbx_json_put_findings(gbx_json_writer *json, const char *key, const gbx_findings *findings);

/* --- open_dump.c: the dump that a command is about --- */

typedef struct gbx_opened_dump {
    char *directory;
    gbx_reader *reader;
    gbx_entries *entries;
} gbx_opened_dump;

/*
 * `given` is what the user named, NULL for the latest; `indexed` is what the reader indexes beside
 * arguments, GBX_INDEX_... Records and payload are open and checked to
 * fit. A journal with a broken block fails with GBX_BAD_FORMAT: how many records are readable, and
 * that `glassbox recover` keeps them; one that this version does not understand fails, too, without
 * that advice. Records of newer types that were skipped are counted on stderr. Everything is NULL
 * on failure.
 */
GBX_MUST_USE gbx_status gbx_opened_dump_open(const char *given, unsigned indexed,
                                             gbx_opened_dump *out_dump);
void gbx_opened_dump_close(gbx_opened_dump *dump);

/*
 * The command that replays a task, quoted for a shell in this directory; freed by the caller.
 * `given` is how the user named the dump, NULL for the latest; `task` is what follows --task.
 */
GBX_MUST_USE gbx_status gbx_replay_line(const gbx_opened_dump *dump, const char *given,
                                        const char *task, char **out_text);

/* --- view_table.c: entries of a dump as rows of a table --- */

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
    GBX_VIEW_NOTE_BYTES = 64
};

/* Zero before its first use. Texts that the cells point at. */
typedef struct gbx_view_row {
    const char *cells[GBX_VIEW_COLUMN_COUNT]; /* NULL for one that is not filled */
    char index[GBX_VIEW_NUMBER_BYTES];
    char task[GBX_VIEW_NUMBER_BYTES];
    char arg[GBX_VIEW_ARG_BYTES];
    char shape[GBX_NUMBERS_TEXT_BYTES];
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

/* "softmax", of a mix "matmul+add", "func 3" where the dump tells no names. */
void gbx_view_kernel_text(const gbx_reader *reader, const gbx_record_task *task,
                          char out_text[GBX_VIEW_KERNEL_BYTES]);

/* "0x2a" or, where the dump numbers its tasks, "42". */
void gbx_view_task_text(const gbx_reader *reader, const gbx_entry *entry,
                        char out_text[GBX_VIEW_NUMBER_BYTES]);

/* An extreme or a mean in at most GBX_VIEW_NUMBER_WIDTH characters. */
void gbx_view_extreme_text(uint32_t dtype, uint64_t bits, char out_text[GBX_VIEW_NUMBER_BYTES]);
void gbx_view_mean_text(double mean, char out_text[GBX_VIEW_NUMBER_BYTES]);

/*
 * Prints the entries of `indices`, in this order, to stdout. Two passes: the first for the widths,
 * the second writes as it goes. On a terminal the first is over all; long names and shapes are cut,
 * and columns that have no room at all are left out, which is said below the table. Elsewhere it is
 * over the first 65536, so that a reader of the beginning does not wait; a text that is longer than
 * all of those moves the rest of its line.
 */
GBX_MUST_USE gbx_status gbx_view_table_print(gbx_entries *entries, const uint64_t *indices,
                                             uint64_t count, bool has_statistics);

/* --- view_tensor.c: what a dump is, and one entry of it --- */

/* One line: scene and case, platform, runtime, level, totals, and what was lost or skipped: in
 * colour where that is something. */
void gbx_view_head_print(const gbx_opened_dump *dump);

/* Whether its values can be read, so that nothing is printed of one that cannot be shown. With
 * `is_full` no more than 2^32 elements may have been cut off. */
GBX_MUST_USE gbx_status gbx_view_tensor_check(gbx_entries *entries, uint64_t index, bool is_full);

/* What it is, its values, statistics and their spread. `is_full`: all of its elements, however
 * many. */
GBX_MUST_USE gbx_status gbx_view_tensor_print(gbx_entries *entries, uint64_t index, bool is_full);

/* --- export.c --- */

/* The value of --as; ends the command with code 2 where numpy has no such dtype. */
gbx_dtype gbx_export_parse_as(struct argp_state *state, const char *text);

/*
 * glassbox view --export: writes the selected entries to the directory txt/, npy/ or csv/ of the
 * dump, and prints the report. *out_exit_code is 1 where there was nothing to write. Fails as
 * gbx_export_files does: gbx_code_exit tells the exit code. A signal ends the program here, with
 * nothing left behind.
 */
GBX_MUST_USE gbx_status gbx_view_export(const gbx_opened_dump *dump, const gbx_selected *selected,
                                        gbx_export_format format, gbx_dtype as, int *out_exit_code);

/* --- audit_text.c, audit_json.c --- */

/* `given` is how the user named the dump, NULL for the latest. */
GBX_MUST_USE gbx_status gbx_audit_print_text(const gbx_opened_dump *dump, const char *given,
                                             const gbx_audit *audit);
GBX_MUST_USE gbx_status gbx_audit_print_json(const gbx_opened_dump *dump, const char *given,
                                             const gbx_audit *audit);

/* The command that replays a task; freed by the caller. */
GBX_MUST_USE gbx_status gbx_audit_replay_line(const gbx_opened_dump *dump, const char *given,
                                              uint64_t task, char **out_text);

/* --- check_text.c, check_json.c --- */

/* "softmax_prepare", "multiply+finish"; GBX_VIEW_KERNEL_BYTES. */
const char *gbx_check_kernel_text(const gbx_check_report *report, const gbx_check_line *line,
                                  char *out_text);

/* "29"; its id where the dump does not tell numbers. What --task of replay takes. */
enum { GBX_CHECK_TASK_BYTES = 40 };
const char *gbx_check_task_text(const gbx_check_report *report, const gbx_check_line *line,
                                char out_text[GBX_CHECK_TASK_BYTES]);

/* `replay` is the command that replays the first task that is introduced; NULL for none. */
GBX_MUST_USE gbx_status gbx_check_print_text(const gbx_check_report *report, const char *replay);
GBX_MUST_USE gbx_status gbx_check_print_json(const gbx_check_report *report, const char *directory,
                                             const char *replay);

/* --- diff_text.c, diff_json.c --- */

enum { GBX_DIFF_NOTE_BYTES = 512, GBX_DIFF_WHY_BYTES = 4096 };
enum { GBX_DIFF_PLACE_BYTES = GBX_VIEW_KERNEL_BYTES + GBX_VIEW_ARG_BYTES + 80 };

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

/* Why the first difference is there, in words: "introduced here (its inputs are equal)". */
GBX_MUST_USE gbx_status gbx_diff_why_text(const gbx_diff_dumps *dumps,
                                          const gbx_diff_result *result,
                                          char out_text[GBX_DIFF_WHY_BYTES]);

/* From which task on the graphs differ, where they do. */
GBX_MUST_USE gbx_status gbx_diff_graph_text(const gbx_diff_dumps *dumps,
                                            const gbx_diff_result *result,
                                            char out_text[GBX_DIFF_WHY_BYTES]);

/* A table of the first lines, and how many there would be. Zero before its first use. */
typedef struct gbx_diff_table {
    gbx_text_table table;
    uint64_t all;
} gbx_diff_table;

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

/* JSON: an object that is begun, records as they come, and the end, `status` being what happened
 * before. */
void gbx_diff_json_begin(gbx_json_writer *json, const gbx_diff_dumps *dumps);
void gbx_diff_json_add(gbx_json_writer *json, const gbx_diff_dumps *dumps,
                       const gbx_diff_record *record);
GBX_MUST_USE gbx_status gbx_diff_json_end(gbx_json_writer *json, const gbx_diff_dumps *dumps,
                                          const gbx_diff_result *result, gbx_status status);

/* --- replay_text.c --- */

/* "bit_exact", "differs"..., for JSON. */
const char *gbx_replay_verdict_word(gbx_replay_verdict verdict);

/* 0 equal, 1 not, or not in all runs of several, 3 a fault, 2 refused. */
int gbx_replay_exit_code(const gbx_replay_result *result);
int gbx_replay_swap_exit_code(const gbx_replay_swap *swap);

/* The verdict first, then tables. `run_end` is what the dump says of the end of its run, "" for
 * nothing. */
GBX_MUST_USE gbx_status gbx_replay_report_print(const gbx_replay_result *result,
                                                const char *run_end);

/* Of several tasks: one line each. `count` is 1 and up. */
GBX_MUST_USE gbx_status gbx_replay_report_print_all(const gbx_replay_result *results, size_t count,
                                                    const char *run_end);

/* A task run with another kernel; `files` is what the user gave, for the title. */
GBX_MUST_USE gbx_status gbx_replay_swap_print(const gbx_replay_swap *swap, const char *files,
                                              const char *run_end);

/* --- replay_json.c: the form is in docs/replay.md --- */

/* One document on stdout: of one task its members, of several `tasks` and how many had which
 * verdict. */
GBX_MUST_USE gbx_status gbx_replay_json_print(const gbx_replay_result *results, size_t count,
                                              bool is_list);
GBX_MUST_USE gbx_status gbx_replay_swap_print_json(const gbx_replay_swap *swap);

/* --- run_report.c --- */

typedef struct gbx_run_report gbx_run_report;

/* How the lines of text look. */
typedef struct gbx_run_layout {
    int name_width;  /* of the longest case's name */
    uint32_t rounds; /* 1: rounds are not told */
    bool is_verbose; /* outputs that are right are told too */
} gbx_run_layout;

/* The sentence of a case that failed, on stderr; nothing for others. */
void gbx_run_print_error(const gbx_round_result *result);

/* A line on stdout, more for outputs that differ, and the sentence. */
void gbx_run_print_result(const gbx_run_layout *layout, const gbx_round_result *result);

/* Keeps copies of results for the document; NULL when memory is out. */
gbx_run_report *gbx_run_report_create(void);
void gbx_run_report_free(gbx_run_report *report);
GBX_MUST_USE gbx_status gbx_run_report_add(gbx_run_report *report, const gbx_round_result *result);

/* Prints the document; `options` have no defaults left open. */
GBX_MUST_USE gbx_status gbx_run_report_print(const gbx_run_report *report, const gbx_scene *scene,
                                             const gbx_scene_options *options);

#endif
