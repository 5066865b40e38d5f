/*
 * The JSON files of a dump, written from its journal: tensor_dump.json, args_dump.json,
 * kernel_args_dump.json. docs/format.md has every field.
 */
#ifndef GBX_STORE_MANIFEST_MANIFEST_H
#define GBX_STORE_MANIFEST_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "store/reader.h"
#include "text/finding_text.h"

/*
 * Reads the good part of the journal of the dump in `directory` and writes tensor_dump.json
 * (has_tensors), args_dump.json and kernel_args_dump.json (has_args) beside it. Each is written to
 * a temporary file, synced and renamed, so that an existing file is always complete. Takes 16 bytes
 * of memory for each task, argument, dispatch and execution, and about 15 MiB besides. Fails like
 * gbx_reader_open, with GBX_IO, and with GBX_OUT_OF_RANGE when a number reaches 2^53, the limit for
 * exact JSON readers. May start a thread, which ends before it returns.
 */
GBX_MUST_USE gbx_status gbx_manifest_write(const char *directory, bool has_tensors, bool has_args);

/* One entry of tensor_dump.json. */
typedef struct gbx_manifest_choice {
    uint64_t index;    /* in the manifest */
    uint64_t position; /* in the index of the reader */
} gbx_manifest_choice;

/* Which entries are printed. Everything is borrowed. */
typedef struct gbx_manifest_chosen {
    const char *run_directory;          /* as `run_dir` */
    const gbx_manifest_choice *choices; /* in printing order */
    uint64_t count;

    /* Computes statistics for an entry that has none recorded; NULL: no. May use the reader. */
    gbx_status (*statistics)(void *context, uint64_t index, gbx_record_stats *out_stats,
                             bool *out_is_there);
    void *context;
} gbx_manifest_chosen;

/* Takes all of `bytes`, one or more, before it returns, or fails. */
typedef gbx_status (*gbx_manifest_sink)(void *to, const void *bytes, size_t size);

/*
 * Hands the text of tensor_dump.json to `write`, with only the chosen entries; leaves out what is
 * unknown (gbx_reader_get_origin). The reader must have GBX_INDEX_ARGUMENTS and
 * GBX_INDEX_EXECUTIONS.
 */
GBX_MUST_USE gbx_status gbx_manifest_print(gbx_reader *reader, const gbx_manifest_chosen *chosen,
                                           gbx_manifest_sink write, void *to);

/* --- one by one --- */

typedef enum gbx_manifest_kind {
    GBX_MANIFEST_FILE_TENSORS = 0,   /* tensor_dump.json */
    GBX_MANIFEST_FILE_ARGS = 1,      /* args_dump.json */
    GBX_MANIFEST_FILE_DISPATCHES = 2 /* kernel_args_dump.json */
} gbx_manifest_kind;

/* The sentence of a finding of a run. */
void gbx_manifest_finding_text(const gbx_run_info *run, const gbx_run_finding *finding,
                               char out_text[GBX_FINDING_TEXT_BYTES]);

/* "tensor_dump.json"... */
const char *gbx_manifest_name(gbx_manifest_kind kind);

/* The lists of the three files. */
typedef enum gbx_manifest_list {
    GBX_MANIFEST_KERNELS = 0,
    GBX_MANIFEST_LOSSES = 1,
    GBX_MANIFEST_SKIPPED = 2,
    GBX_MANIFEST_TENSORS = 3,
    GBX_MANIFEST_ARGS = 4,
    GBX_MANIFEST_DISPATCHES = 5,
    GBX_MANIFEST_FINDINGS = 6,
    GBX_MANIFEST_LIST_COUNT = 7
} gbx_manifest_list;

/* The argument of an entry of `tensors`. */
typedef struct gbx_manifest_place {
    uint64_t index;
    uint64_t task;
    uint8_t arg_index;
    uint8_t stage;
} gbx_manifest_place;

/* The text of a manifest as gbx_manifest_write writes it, piece by piece. */
typedef struct gbx_manifest_pieces gbx_manifest_pieces;

/* The reader is borrowed; its index must have arguments, dispatches and executions. */
GBX_MUST_USE gbx_status gbx_manifest_pieces_open(gbx_reader *reader,
                                                 gbx_manifest_pieces **out_pieces);
void gbx_manifest_pieces_close(gbx_manifest_pieces *pieces); /* takes NULL */

/* The object at the top of a file, without its lists except `kernels`. Here and below, the text
 * lives until the next call. */
GBX_MUST_USE gbx_status gbx_manifest_pieces_head(gbx_manifest_pieces *pieces,
                                                 gbx_manifest_kind kind, const char **out_text,
                                                 size_t *out_size);

/* The next entry of a list; NULL after the last. *out_place is set for those of `tensors`. */
GBX_MUST_USE gbx_status gbx_manifest_pieces_next(gbx_manifest_pieces *pieces,
                                                 gbx_manifest_list list, const char **out_text,
                                                 size_t *out_size, gbx_manifest_place *out_place);

/* Whether a file must have a field, depending on the version that wrote it: see
 * manifest_fields.h. */
typedef enum gbx_field_rule {
    GBX_RULE_ALWAYS = 0,
    GBX_RULE_LATER = 1,
    GBX_RULE_ENDED = 2,
    GBX_RULE_NEVER = 3
} gbx_field_rule;

typedef struct gbx_manifest_field {
    const char *name;
    gbx_field_rule rule;
    gbx_manifest_list list; /* the list it holds; GBX_MANIFEST_LIST_COUNT for none */
} gbx_manifest_field;

/* The fields of an entry of a list, in their order. */
const gbx_manifest_field *gbx_manifest_list_fields(gbx_manifest_list list, size_t *out_count);
const gbx_manifest_field *gbx_manifest_head_fields(gbx_manifest_kind kind, size_t *out_count);

#endif
