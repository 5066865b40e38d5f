/* The parts of reading a manifest. */
#ifndef GBX_STORE_IMPORT_INTERNAL_H
#define GBX_STORE_IMPORT_INTERNAL_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <glassbox/chip.h>
#include <glassbox/kernel.h>

#include "base/status.h"
#include "store/import/import.h"
#include "store/journal/format.h"
#include "store/manifest/manifest_fields.h"
#include "store/reader.h"
#include "text/json_scan.h"
#include "text/names.h"

/* --- import_fields.c: the members of one entry by name, and typed getters --- */

#define GBX_FIELD_ROW(name, ...) GBX_FIELD_##name,
typedef enum gbx_import_field {
    GBX_TENSOR_FIELDS(GBX_FIELD_ROW) GBX_FOREIGN_TENSOR_FIELDS(GBX_FIELD_ROW)
        GBX_RESULT_ONLY_FIELDS(GBX_FIELD_ROW) GBX_FIELD_COUNT
} gbx_import_field;
static_assert(GBX_FIELD_COUNT <= 64, "a bit of a word for each");

enum { GBX_IMPORT_ORDER_MAX = 64 };

typedef struct gbx_import_fields {
    const char *path;  /* of the manifest */
    const char *array; /* "tensors", "args" or "results" */
    uint64_t position; /* of the entry in it */
    uint64_t seen;     /* a bit per field: it is present */
    gbx_scan_value values[GBX_FIELD_COUNT];
    uint8_t order[GBX_IMPORT_ORDER_MAX]; /* of the previous entry: most have the same order */
} gbx_import_fields;

/* Splits an entry into its members; ignores unknown ones. */
GBX_MUST_USE gbx_status gbx_import_fields_take(gbx_import_fields *fields,
                                               const gbx_scan_value *entry);

/* Present and not null. */
static inline bool gbx_import_has(const gbx_import_fields *fields, gbx_import_field field) {
    return (fields->seen >> field & 1) != 0 && fields->values[field].kind != GBX_SCAN_NULL;
}

/* GBX_BAD_FORMAT: "PATH: tensors[17].shape: ...". */
GBX_MUST_USE gbx_status gbx_import_fail(const gbx_import_fields *fields, gbx_import_field field,
                                        const char *format, ...) GBX_PRINTF(3, 4);
/* "...: expected X, got Y"; `element` is an index in an array, -1 for none. */
GBX_MUST_USE gbx_status gbx_import_fail_expected(const gbx_import_fields *fields,
                                                 gbx_import_field field, int element,
                                                 const gbx_scan_value *got, const char *expected);

/* --- getters: a present member must be valid; an absent one leaves *out_ unchanged --- */

GBX_MUST_USE gbx_status gbx_import_require(const gbx_import_fields *fields, gbx_import_field field);
GBX_MUST_USE gbx_status gbx_import_get_integer(const gbx_import_fields *fields,
                                               gbx_import_field field, int64_t min, int64_t max,
                                               int64_t *out_value);
GBX_MUST_USE gbx_status gbx_import_get_hex(const gbx_import_fields *fields, gbx_import_field field,
                                           uint64_t *out_value);
GBX_MUST_USE gbx_status gbx_import_get_bool(const gbx_import_fields *fields, gbx_import_field field,
                                            bool *out_value);
/* A string that is a name in a set; gives its number. */
GBX_MUST_USE gbx_status gbx_import_get_name(const gbx_import_fields *fields, gbx_import_field field,
                                            const gbx_name_set *set, uint8_t *out_number);
/* Its number; the count of the set when it is not in it. */
uint32_t gbx_import_find_name(const gbx_scan_value *value, const gbx_name_set *set);
/* An array of integers, at most one per dimension; sets *out_count only when present. */
GBX_MUST_USE gbx_status gbx_import_get_integers(const gbx_import_fields *fields,
                                                gbx_import_field field, int64_t min, int64_t max,
                                                int64_t out_values[GBX_MAX_DIMS],
                                                uint32_t *out_count);

/* An array of at most `capacity` values of any kind. */
GBX_MUST_USE gbx_status gbx_import_get_array(const gbx_import_fields *fields,
                                             gbx_import_field field, gbx_scan_value *out_values,
                                             uint32_t capacity, uint32_t *out_count);

/* A value as text for a message, cut short: `"inn"`, `3.5`. */
enum { GBX_IMPORT_SHOWN_BYTES = 64 };
void gbx_import_show(const gbx_scan_value *value, char out_text[GBX_IMPORT_SHOWN_BYTES]);

/* Whether a value is an integer from `min` to `max`; gives the integer. */
bool gbx_import_is_integer(const gbx_scan_value *value, int64_t min, int64_t max,
                           int64_t *out_value);

/* --- import_value.c: values of a dtype, shape and strides --- */

/*
 * The raw word of a scalar: `bits` if present, which must then match `value` (or `scalar_value`),
 * else the bits of that value. Integers are numbers or strings of digits, floats are numbers or
 * "nan", "inf", "-inf", bool is true or false, 1 or 0; what the dtype cannot hold is refused.
 */
GBX_MUST_USE gbx_status gbx_import_get_scalar(const gbx_import_fields *fields, uint32_t dtype,
                                              uint64_t *out_bits);

/* Statistics of a tensor from `stats`; all but `subnormal` must be present. */
GBX_MUST_USE gbx_status gbx_import_get_stats(const gbx_import_fields *fields, uint32_t dtype,
                                             gbx_record_stats *out_stats);

/*
 * The view that an entry describes: `shape`, with `strides` and `start_offset` (row-major at 0 when
 * missing) or with `raw_shape` and `offsets`; both may be given if they agree. `numel`, if present,
 * must match the view, and `is_contiguous` must not be true for a view with gaps; sizes and reach
 * must fit in 64 bits.
 */
GBX_MUST_USE gbx_status gbx_import_get_geometry(const gbx_import_fields *fields, uint8_t dtype,
                                                gbx_tensor *out_view);

/* --- import_entry.c: one entry as a record of a journal --- */

enum { GBX_IMPORT_KERNELS_MAX = 3, GBX_IMPORT_CORES_MAX = 128 };

/* Where and when a task ran. */
typedef struct gbx_import_span {
    bool has_start; /* if not, unknown */
    uint64_t start_ns;
    uint64_t end_ns;                          /* GBX_NO_END_NS when one of its kernels has no end */
    uint64_t cores[GBX_RECORD_CORE_END / 64]; /* a bit for each */
} gbx_import_span;

typedef struct gbx_import_entry {
    bool has_task_id;
    bool has_task_seq;
    bool has_block_num;
    bool has_subtasks; /* func_ids are at the index of their subtask */
    bool is_ambiguous; /* it says that arg_index may be wrong */
    uint64_t task_id;
    uint64_t task_seq;
    uint32_t block_num;
    uint32_t func_ids[GBX_IMPORT_KERNELS_MAX];      /* UINT32_MAX for none */
    gbx_scan_value kernels[GBX_IMPORT_KERNELS_MAX]; /* their names; null when unknown */
    gbx_scan_value arg_name;                        /* null when unknown */
    unsigned known;                                 /* GBX_KNOWN_... */
    gbx_import_span span;                           /* of the task */

    /* SCALAR or TENSOR, complete except for head.task and GBX_FLAG_DUPLICATE. */
    union {
        gbx_record head;
        gbx_record_scalar scalar;
        gbx_record_tensor tensor;
        uint64_t
            words[sizeof(gbx_record_tensor) / 8 + 2 * GBX_MAX_DIMS + sizeof(gbx_record_stats) / 8];
    } record;
} gbx_import_entry;

/* Fails with GBX_BAD_FORMAT, naming entry and field, when anything is wrong. Text in *out_entry
 * points into that of `fields`. */
GBX_MUST_USE gbx_status gbx_import_entry_read(const gbx_import_fields *fields,
                                              gbx_import_entry *out_entry);

/*
 * An element of `results`: a RESULT, which the caller frees, complete except for
 * GBX_FLAG_DUPLICATE, and the name of its argument, a new reference; null when there is none.
 */
GBX_MUST_USE gbx_status gbx_import_result_read(const gbx_import_fields *fields,
                                               gbx_record_tensor **out_record, json_t **out_name);

/* --- import_tables.c: what is kept about all entries, and the journal they become --- */

/* Numbers keys in the order of their first use. Zero before its first use. */
typedef struct gbx_import_map {
    struct gbx_import_key {
        uint64_t words[2];
    } * keys;
    uint64_t capacity;
    size_t count;
    uint32_t *slots; /* number + 1; 0 for none */
    size_t slot_count;
    uint64_t seed; /* of the hash of keys */
} gbx_import_map;

/* The number of a key; a new one gets the next. UINT32_MAX when out of memory. */
uint32_t gbx_import_map_get(gbx_import_map *map, uint64_t first, uint64_t second);
void gbx_import_map_free(gbx_import_map *map);

typedef struct gbx_import_task {
    uint64_t key; /* task_seq, or the id when there is none */
    uint64_t id;
    uint32_t func_ids[3]; /* UINT32_MAX for none */
    uint32_t block_num;
    bool has_id;
    bool has_subtasks; /* func_ids are AIC, AIV0, AIV1; otherwise the first ones given */
} gbx_import_task;

/* Zero before its first use. */
typedef struct gbx_import_tasks {
    gbx_import_map map;
    gbx_import_task *items; /* in the order of their first appearance */
    uint64_t capacity;
    size_t last; /* index of the last one asked for */
} gbx_import_tasks;

/* The task of a key; a new one has its key set, no func_ids, the rest zero. NULL when out of
 * memory. */
gbx_import_task *gbx_import_tasks_get(gbx_import_tasks *tasks, uint64_t key, bool *out_is_new);
void gbx_import_tasks_free(gbx_import_tasks *tasks);

/*
 * A journal in memory, written record by record. Its first record, RUN, is written last: its
 * contents may be at the end of a manifest.
 *
 * Private to the functions, except the fields that say otherwise.
 */
typedef struct gbx_import_journal {
    int fd;              /* of the file in memory; -1 for none */
    uint64_t file_bytes; /* of complete blocks; may be read */
    unsigned char *buffer;
    uint32_t used_bytes;
    uint32_t record_count;
    uint32_t sequence;
    gbx_reader_totals totals; /* of all added records; may be read */
} gbx_import_journal;

GBX_MUST_USE gbx_status gbx_import_journal_open(gbx_import_journal *journal);
void gbx_import_journal_close(gbx_import_journal *journal);

/* Copies a record of head.words words. */
GBX_MUST_USE gbx_status gbx_import_journal_add(gbx_import_journal *journal,
                                               const gbx_record *record);

/* Writes what is left and the RUN record, whose text has at most GBX_IMPORT_RUN_MAX_BYTES. */
enum { GBX_IMPORT_RUN_MAX_BYTES = GBX_BLOCK_MAX_BYTES - sizeof(gbx_record_run) };
GBX_MUST_USE gbx_status gbx_import_journal_finish(gbx_import_journal *journal, const char *run_text,
                                                  size_t size);

/* --- import_kernels.c: names of kernels and of their arguments, gathered from entries --- */

struct gbx_import_kernel;

/* Zero before its first use. */
typedef struct gbx_import_kernels {
    struct gbx_import_kernel *by_func_id[GBX_MAX_KERNELS];
} gbx_import_kernels;

/* Remembers the names of an entry; fails when another entry gave a kernel a different name. An
 * arg_name that differs between tasks of one kernel is dropped. */
GBX_MUST_USE gbx_status gbx_import_kernels_learn(gbx_import_kernels *kernels,
                                                 const gbx_import_fields *fields,
                                                 const gbx_import_entry *entry);

/*
 * Replaces "kernels" of a manifest's members by the kernels for the RUN record: its own table, if
 * it has one, and other kernels that entries name. Fails when the table is invalid, has more than
 * GBX_MAX_KERNELS, or has two names for one func_id, and when entries disagree; `path` is for
 * messages.
 */
GBX_MUST_USE gbx_status gbx_import_kernels_merge(const gbx_import_kernels *kernels,
                                                 const char *path, json_t *members);

void gbx_import_kernels_free(gbx_import_kernels *kernels);

/* --- import_head.c: the members beside the entries: what was run, totals, what is missing --- */

typedef struct gbx_import_head {
    const char *path; /* of the manifest */
    json_t *members;  /* the known ones, by name */
} gbx_import_head;

/* Takes the value of a member from the file; an unknown one is only checked to be JSON. */
GBX_MUST_USE gbx_status gbx_import_head_take(gbx_import_head *head, const char *key,
                                             gbx_json_file *file);

/* Checks the members that define the format, and gives the name of the payload file; NULL when
 * there is none. It lives as long as the head. */
GBX_MUST_USE gbx_status gbx_import_head_check(const gbx_import_head *head,
                                              const char **out_bin_file);

/* The totals that the manifest states. */
GBX_MUST_USE gbx_status gbx_import_head_get_totals(const gbx_import_head *head,
                                                   gbx_import_totals *out_totals);

/* Whether it says how the run ended. */
bool gbx_import_head_has_status(const gbx_import_head *head);
/* Whether it lists the findings of the run. */
bool gbx_import_head_has_findings(const gbx_import_head *head);

/* LOSS, SKIPPED and END records, after all others, and after gbx_import_kernels_merge. */
GBX_MUST_USE gbx_status gbx_import_head_add_rest(const gbx_import_head *head,
                                                 const gbx_import_totals *totals,
                                                 gbx_import_journal *journal);

/* The text of the RUN record, after gbx_import_kernels_merge; the caller frees it. `run_args` is
 * borrowed. */
GBX_MUST_USE gbx_status gbx_import_head_run(const gbx_import_head *head, json_t *run_args,
                                            char **out_text);

#endif
