/* The parts of writing manifests: the file, quoted names, and a put function for each kind of
 * field. */
#ifndef GBX_STORE_MANIFEST_INTERNAL_H
#define GBX_STORE_MANIFEST_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <glassbox/chip.h>
#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "base/status.h"
#include "store/manifest/manifest.h"
#include "store/manifest/manifest_fields.h"
#include "store/manifest/manifest_text.h"
#include "store/reader.h"
#include "text/names.h"

/* --- manifest_file.c: where the text goes --- */

/* The most that may be put between two calls of gbx_manifest_file_room. */
#define GBX_MANIFEST_ROOM_BYTES 65536u

typedef struct gbx_manifest_writer gbx_manifest_writer;

/*
 * A file written from beginning to end, bypassing the page cache where the file system allows it,
 * that appears under its name only when it is durable. Its own thread writes full chunks while the
 * next one is filled. One thread fills a file. The same text can go to a stream instead, chunk by
 * chunk, or stay in memory.
 */
typedef struct gbx_manifest_file {
    char *at;    /* where the next byte goes; the caller advances it, within the room */
    char *limit; /* end of the chunk and start of the room */
    char *start; /* of the chunk; in memory, of the text */
    gbx_manifest_writer *writer;
    bool has_failed; /* a stream or memory: writing is pointless; gbx_manifest_file_finish returns
                        the failure */
} gbx_manifest_file;

/* Creates directory/name.tmp. */
GBX_MUST_USE gbx_status gbx_manifest_file_create(const char *directory, const char *name,
                                                 gbx_manifest_file *out_file);

/* Hands the text to `write` with `context`, or keeps it in memory when `write` is NULL; `name`
 * stands for it in messages. */
GBX_MUST_USE gbx_status gbx_manifest_file_stream(gbx_manifest_sink write, void *context,
                                                 const char *name, gbx_manifest_file *out_file);

/* In memory only: the text so far, valid until the next byte is put; empties the file. */
GBX_MUST_USE gbx_status gbx_manifest_file_take(gbx_manifest_file *file, const char **out_text,
                                               size_t *out_size);

/* Hands the chunk over and starts the next one with what exceeded the chunk. */
void gbx_manifest_file_turn(gbx_manifest_file *file);

/* Room for GBX_MANIFEST_ROOM_BYTES at `at`. */
static inline void gbx_manifest_file_room(gbx_manifest_file *file) {
    if (__builtin_expect(file->at >= file->limit, 0))
        gbx_manifest_file_turn(file);
}

/* Text of any length. Leaves the full room. */
void gbx_manifest_file_put(gbx_manifest_file *file, const char *text, size_t size);

/* Writes the rest, syncs and renames; or, when `status` or a write failed, removes the temporary
 * file. For a stream, only writes the rest. Frees the file either way, and returns the first
 * failure. */
GBX_MUST_USE gbx_status gbx_manifest_file_finish(gbx_manifest_file *file, gbx_status status);

/* --- names of a run in quotes, ready to be put into JSON --- */

typedef struct gbx_quoted {
    const char *text; /* not zero terminated */
    size_t size;
} gbx_quoted;

typedef struct gbx_manifest_names {
    size_t kernel_count;
    struct gbx_kernel_names {
        gbx_quoted name;
        gbx_quoted slots[GBX_RUN_KERNEL_SLOTS]; /* size 0 when a slot has no name */
    } * kernels;
    const struct gbx_kernel_names *by_func_id[GBX_MAX_KERNELS]; /* NULL when not registered */
} gbx_manifest_names;

/* `null` for a func_id that is not registered. */
gbx_quoted gbx_manifest_kernel_name(const gbx_manifest_names *names, uint32_t func_id);

/* --- one manifest --- */

/* Where and when dispatches ran, from the first start to the last end. */
typedef struct gbx_span_entry {
    bool has_start; /* if not, unknown */
    bool has_end;   /* all of them have one */
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t cores[GBX_RECORD_CORE_END / 64]; /* a bit for each */
} gbx_span_entry;

/* Adds a dispatch. */
GBX_MUST_USE gbx_status gbx_span_entry_add(gbx_span_entry *span, const gbx_record_execution *e);

/* The task of an entry, as far as known. */
typedef struct gbx_task_entry {
    uint64_t number;
    uint64_t id;
    uint32_t func_ids[GBX_SUBTASK_COUNT];
    uint32_t block_num;
    bool is_known;                               /* the entry is about a task */
    bool has_record;                             /* if not, id and block_num are unknown */
    gbx_span_entry span;                         /* of `tensors` */
    gbx_quoted slot_names[GBX_RUN_KERNEL_SLOTS]; /* of `tensors`; borrowed */
} gbx_task_entry;

/* The contents of an entry of `tensors`. */
typedef struct gbx_argument_entry {
    uint64_t index;
    const gbx_record *head;
    const gbx_record_tensor *tensor; /* NULL for a scalar */
    const gbx_record_stats *stats;   /* NULL for none */
    const int64_t *shape;
    const int64_t *strides;
    uint64_t numel; /* UINT64_MAX when it overflows */
    uint64_t bits;  /* of a scalar */
    unsigned flags;
    uint32_t ndims;
    uint32_t dtype;
    uint8_t role;
    uint8_t stage;
    bool has_payload;
} gbx_argument_entry;

typedef struct gbx_tensors_list gbx_tensors_list; /* manifest_tensors.c */

typedef struct gbx_manifest {
    gbx_reader *reader;
    gbx_manifest_file *file; /* that is being written */
    const char *run_directory;
    const gbx_manifest_chosen *chosen; /* NULL: all entries */
    const gbx_run_info *run;
    const gbx_reader_totals *totals;
    const gbx_record_end *end;                   /* NULL: the run was killed */
    const char *payload_name;                    /* NULL when there is none */
    unsigned known;                              /* GBX_KNOWN_... */
    bool has_kernels;                            /* their names are known */
    bool has_findings;                           /* the dump can have some: not an import */
    bool has_lists;                              /* the top has all lists, not only `kernels` */
    bool has_member;                             /* the top has one already */
    gbx_status failure;                          /* of a put; sticks */
    uint64_t positions[GBX_MANIFEST_LIST_COUNT]; /* of the next record of each list */
    uint64_t dispatch_index;                     /* of the next entry of `dispatches` */
    gbx_manifest_place place;                    /* of the last entry of `tensors` */
    gbx_tensors_list *tensors;
    gbx_manifest_names names;
} gbx_manifest;

/* State of `tensors`: made before the first entry; entries are then put in order. */
GBX_MUST_USE gbx_status gbx_tensors_list_make(gbx_manifest *m);
GBX_MUST_USE gbx_status gbx_tensors_list_next(gbx_manifest *m, bool *out_has_one);
void gbx_tensors_list_free(gbx_manifest *m);

/* GBX_OUT_OF_RANGE: JSON readers do not hold the number exactly. */
#define gbx_fail_inexact(field, ...)                                                               \
    gbx_status_never_null(gbx_manifest_make_inexact(field, __VA_ARGS__))
GBX_MUST_USE gbx_status gbx_manifest_make_inexact(const char *field, const char *format, ...)
    GBX_PRINTF(2, 3);

/* --- whether JSON readers hold the value of a kind exactly; kinds not here are always exact --- */

static inline bool is_exact_u64(uint64_t value) {
    return value >> 53 == 0;
}

static inline bool is_exact_i64(int64_t value) {
    return is_exact_u64(value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static inline bool is_exact_numbers(const int64_t *values, uint32_t count) {
    bool is_exact = true;
    for (uint32_t i = 0; i < count; ++i)
        is_exact &= is_exact_i64(values[i]);
    return is_exact;
}

static inline bool is_exact_extreme(uint32_t dtype, uint64_t bits) {
    return gbx_dtype_is_float(dtype) || gbx_dtype_bits(dtype) == 64 || is_exact_i64((int64_t)bits);
}

bool is_exact_stats(uint32_t dtype, const gbx_record_stats *stats);

#define is_exact_hex(...) true
#define is_exact_hash(...) true
#define is_exact_flag(...) true
#define is_exact_quoted(...) true
#define is_exact_string(...) true
#define is_exact_strings(...) true
#define is_exact_word(...) true
#define is_exact_value(...) true
#define is_exact_f64(...) true
#define is_exact_hex_or_null(...) true
#define is_exact_u64_or_null(...) true /* task and 32-bit numbers, times of a span */
#define is_exact_slots(...) true       /* checked one by one */
#define is_exact_contexts(...) true

/* --- puts: one for each kind of field --- */

#define put_u64(m, ...) ((void)(m), gbx_put_u64(__VA_ARGS__))
#define put_i64(m, ...) ((void)(m), gbx_put_i64(__VA_ARGS__))
#define put_hex(m, ...) ((void)(m), gbx_put_hex(__VA_ARGS__))
#define put_flag(m, ...) ((void)(m), gbx_put_bool(__VA_ARGS__))
#define put_numbers(m, ...) ((void)(m), gbx_put_numbers(__VA_ARGS__))
#define put_value(m, ...) ((void)(m), gbx_put_value(__VA_ARGS__))
#define put_extreme(m, ...) ((void)(m), gbx_put_extreme(__VA_ARGS__))
#define put_f64(m, ...) ((void)(m), gbx_put_f64(__VA_ARGS__))

static inline char *put_hex_or_null(gbx_manifest *m, char *at, bool is_there, uint64_t value) {
    return is_there ? put_hex(m, at, value) : GBX_PUT(at, "null");
}

static inline char *put_u64_or_null(gbx_manifest *m, char *at, bool is_there, uint64_t value) {
    return is_there ? put_u64(m, at, value) : GBX_PUT(at, "null");
}

static inline char *put_hash(gbx_manifest *m, char *at, uint64_t low, uint64_t high) {
    (void)m;
    *at++ = '"';
    at = gbx_put_hex_digits(at, high);
    at = gbx_put_hex_digits(at, low);
    *at++ = '"';
    return at;
}

/* One of our names, which needs no escapes; null for NULL. */
static inline char *put_word(gbx_manifest *m, char *at, const char *word) {
    (void)m;
    if (!word)
        return GBX_PUT(at, "null");
    size_t size = strlen(word);
    *at++ = '"';
    memcpy(at, word, size);
    at += size;
    *at++ = '"';
    return at;
}

/* Text that may be long: takes at most a quarter of the room. */
static inline char *put_quoted(gbx_manifest *m, char *at, gbx_quoted quoted) {
    if (__builtin_expect(quoted.size < GBX_MANIFEST_ROOM_BYTES / 4, 1)) {
        memcpy(at, quoted.text, quoted.size);
        return at + quoted.size;
    }
    m->file->at = at;
    gbx_manifest_file_put(m->file, quoted.text, quoted.size);
    return m->file->at;
}

/* Any text, made valid UTF-8; null for NULL. */
char *put_string(gbx_manifest *m, char *at, const char *text);
char *put_strings(gbx_manifest *m, char *at, const char *const *texts, size_t count);

/* Arrays with an element for each kernel of a task. */
char *put_func_ids(gbx_manifest *m, char *at, const uint32_t func_ids[GBX_SUBTASK_COUNT]);
char *put_kernels(gbx_manifest *m, char *at, const uint32_t func_ids[GBX_SUBTASK_COUNT]);
char *put_subtasks(gbx_manifest *m, char *at, const uint32_t func_ids[GBX_SUBTASK_COUNT]);

/* Numbers of cores; null when unknown. */
char *put_cores(gbx_manifest *m, char *at, const gbx_span_entry *span);

/* Objects. */
char *put_run(gbx_manifest *m, char *at, const gbx_run_info *run);
char *put_bin_format(gbx_manifest *m, char *at, const gbx_manifest *same);
char *put_stats(gbx_manifest *m, char *at, uint32_t dtype, const gbx_record_stats *stats);

/* --- rows --- */

/* An object: `bool is_first = true;`, rows, a bracket. The first row of a list is always
 * present. */
#define GBX_PUT_KEY(name)                                                                          \
    at = is_first ? GBX_PUT(at, "{\"" #name "\":") : GBX_PUT(at, ",\"" #name "\":");               \
    is_first = false;

#define GBX_PUT_ROW(name, rule, kind, present, ...)                                                \
    if (present) {                                                                                 \
        GBX_PUT_KEY(name)                                                                          \
        at = put_##kind(m, at, __VA_ARGS__);                                                       \
    }

/* Fails with the name of the first field that is not exact. */
#define GBX_CHECK_ROW(name, rule, kind, present, ...)                                              \
    if ((present) && !is_exact_##kind(__VA_ARGS__))                                                \
        return #name;

#endif
