/*
 * Reads a dump without src/store: JSON files with jansson, payload by its offsets, hashes with
 * libxxhash. Asking for a field that is missing, or has another type than DESIGN.md 7.5 and 7.6
 * say, fails the test and prints the field's name.
 */
#ifndef GBX_TESTS_DUMP_FILES_H
#define GBX_TESTS_DUMP_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "checks.h"

enum { DUMP_PATH_BYTES = 512, DUMP_HASH_BYTES = 33 };

typedef struct dump_files {
    char directory[DUMP_PATH_BYTES];
    json_t *tensors;        /* tensor_dump.json; NULL if the file is missing, like the others */
    json_t *args;           /* args_dump.json */
    json_t *kernel_args;    /* kernel_args_dump.json */
    const uint8_t *payload; /* tensor_dump.bin */
    size_t payload_bytes;
    bool has_payload; /* the file exists; it may be empty */
} dump_files;

/* Reads DIRECTORY/tensor_dump. */
void dump_files_open(const char *directory, dump_files *out_files);
void dump_files_close(dump_files *files);

/* --- fields --- */

const json_t *dump_field(const json_t *object, const char *field);
uint64_t dump_number(const json_t *object, const char *field);
int64_t dump_signed(const json_t *object, const char *field);
bool dump_bool(const json_t *object, const char *field);
const char *dump_text(const json_t *object, const char *field);
uint64_t dump_hex(const json_t *object, const char *field); /* from a string "0x..." */
const json_t *dump_array(const json_t *object, const char *field);
bool dump_array_is(const json_t *object, const char *field, const int64_t *numbers, size_t count);
bool dump_texts_are(const json_t *object, const char *field, const char *const *texts,
                    size_t count);

/* --- entries of tensor_dump.json --- */

size_t dump_entry_count(const dump_files *files);
const json_t *dump_entry(const dump_files *files, size_t index);

/* The entry of an argument; NULL if there is none. */
const json_t *dump_find(const dump_files *files, uint64_t task_seq, uint32_t arg_index,
                        bool is_after);

/* The bin_size bytes of an entry; they must be inside the file. */
const uint8_t *dump_payload(const dump_files *files, const json_t *entry);

/* XXH3-128 as xxh128sum prints it. */
void dump_hash(const void *bytes, size_t size, char out_text[DUMP_HASH_BYTES]);

/*
 * Checks tensor_dump.json by itself: entries are sorted and unique, payloads are aligned, inside
 * the file and do not overlap, hashes match their bytes, and totals match the entries.
 */
void dump_check_itself(const dump_files *files);

/* Fails unless two dumps of one graph are equal, except for what the platform may change: times,
 * thread, buffer_addr, bin_offset and the name of the run. */
void dump_assert_equal(const dump_files *a, const dump_files *b);

/* Python's json loads every JSON file of the dump, and finds no literal that is not JSON. */
void dump_assert_python_reads(const dump_files *files);

/* --- around a run --- */

/* A path that does not exist yet, inside a directory of the test. */
void dump_directory_make(char out_directory[DUMP_PATH_BYTES]);
void dump_directory_remove(const char *directory);

/* Captures stderr of this process and of the chips it starts until the end, which returns the text
 * (the caller frees it). */
typedef struct dump_log {
    int old_stderr;
    int file;
} dump_log;

dump_log dump_log_begin(void);
char *dump_log_end(dump_log *log);

#endif
