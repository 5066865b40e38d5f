/*
 * bench_view: how fast `glassbox view` is. The program makes dumps whose every value it can compute
 * again, runs the command on them, checks the output, and measures what Python and the memory do
 * with the same bytes.
 */
#ifndef GBX_BENCH_VIEW_H
#define GBX_BENCH_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"

enum { PATH_BYTES = 4096, MAX_REPEATS = 9, MAX_OPTIONS = 8 };

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)

/* Settings of the program. */
typedef struct setting {
    char work[PATH_BYTES];    /* a temporary directory, removed at the end */
    char command[PATH_BYTES]; /* glassbox, beside this program */
    uint64_t record_count;    /* of the dump of many records, at least */
    uint64_t sparse_count;    /* tensors of 1 MiB of the sparse dump */
    uint64_t payload_bytes;   /* of each dump for statistics */
    uint64_t memory_bytes;    /* of buffers that measure the memory */
    unsigned repeats;         /* how many runs a median is of */
} setting;

/* --- records.c: a dump of many small records --- */

/* The kernel of few tasks, and how many of its arguments are outputs. */
#define RARE_KERNEL "argmax"
enum { RARE_OUTPUTS = 2 };

/* What the dump holds; a task's entries follow from its number. */
typedef struct record_totals {
    uint64_t entries;
    uint64_t tasks;
    uint64_t rare_tasks;
} record_totals;

GBX_MUST_USE gbx_status make_record_dump(const setting *how, const char *directory,
                                         record_totals *out_totals);

/* The entries of the outputs of the rare kernel, in order: index and hash, as the list has them. */
typedef struct rare_entry {
    uint64_t task;
    uint64_t index;
    char hash[GBX_HASH_TEXT_BYTES];
} rare_entry;

/* Room for rare_tasks times RARE_OUTPUTS. */
void list_rare_entries(const record_totals *totals, rare_entry *out_entries);

/* Entries of one task, and the index of the first of them. */
uint64_t count_task_entries(uint64_t task, uint64_t *out_first);

/* --- payload.c: dumps of large tensors --- */

enum { SPARSE_ROWS = 512, SPARSE_COLUMNS = 512 };

/* float32 of 1 MiB each; all but the named ones are holes. */
GBX_MUST_USE gbx_status make_sparse_dump(const setting *how, const char *directory);
bool is_sparse_written(const setting *how, uint64_t tensor);
float sparse_value(uint64_t tensor, uint64_t element);

/* The bytes of all dumps for statistics, as a file `path`. Read as float32 or as bfloat16 they are
 * numbers from 0.5 to 2, of both signs. */
GBX_MUST_USE gbx_status write_payload(const setting *how, const char *path);
uint32_t payload_word(uint64_t at); /* of 32 bits, by its place in the file */

/* Tensors one after the other over all of `payload`, which is linked into the dump. */
GBX_MUST_USE gbx_status make_payload_dump(const setting *how, const char *directory,
                                          const char *payload, uint32_t dtype,
                                          uint64_t tensor_bytes);

/* --- command.c: other programs; false after a message on stderr --- */

typedef struct outcome {
    double seconds;     /* from the fork to the end */
    double processor_s; /* of all its threads and children, in user and system */
    double peak_mib;
} outcome;

/* Runs a program, the first of `arguments`, which end with NULL; its output goes to a file, or
 * nowhere for NULL. It must exit with 0. */
bool run_program(const char *const *arguments, const char *output, outcome *out_outcome);

/* Runs it `repeats` times; medians. */
bool measure_program(const setting *how, const char *const *arguments, const char *output,
                     outcome *out_outcome);

/* `glassbox view DIRECTORY OPTIONS`, the options up to NULL, MAX_OPTIONS at most. */
bool measure_view(const setting *how, const char *directory, const char *const *options,
                  const char *output, outcome *out_outcome);

/* All of a file, zero terminated, freed by the caller; NULL after a message. */
char *read_file(const char *path);

/* The time of Python's json.load for a manifest, without the start of the interpreter; no memory.
 * The median of three. */
bool measure_json_load(const setting *how, const char *path, outcome *out_outcome);

/* --- memory.c: GB/s, 0 after a message --- */

double measure_copy(const setting *how);
double measure_reading(const setting *how);

/* --- record_table.c, tensor_tables.c: false when something failed or was wrong --- */

bool print_records(const setting *how);
bool print_sparse(const setting *how);
bool print_statistics(const setting *how);

/* --- main.c --- */

/* Prints a goal, what was reached and whether the goal is met. */
void print_goal(const char *name, double reached, bool is_at_least, double goal, const char *unit);

/* Prints a claim that does not hold, on stderr; returns whether it holds. */
bool expect(bool is_true, const char *what);

/* "DIR/NAME" in the work directory. */
void set_path(const setting *how, const char *name, char out_path[PATH_BYTES]);

/* Prints a failure and frees it; true when there is none. */
bool succeeded(gbx_status status);

#endif
