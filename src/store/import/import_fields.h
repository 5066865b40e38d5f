/* The members of one entry of a manifest, by name, and getting them as what they have to be. */
#ifndef GBX_STORE_IMPORT_IMPORT_FIELDS_H
#define GBX_STORE_IMPORT_IMPORT_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/kernel.h>

#include "base/status.h"
#include "store/import/import_scan.h"

typedef enum gbx_import_field {
    GBX_FIELD_INDEX,
    GBX_FIELD_TASK_ID,
    GBX_FIELD_TASK_SEQ,
    GBX_FIELD_FUNC_ID,
    GBX_FIELD_KERNEL,
    GBX_FIELD_ARG_INDEX,
    GBX_FIELD_ARG_INDEX_AMBIGUOUS,
    GBX_FIELD_ARG_NAME,
    GBX_FIELD_ROLE,
    GBX_FIELD_STAGE,
    GBX_FIELD_KIND,
    GBX_FIELD_DTYPE,
    GBX_FIELD_VALUE,
    GBX_FIELD_SCALAR_VALUE,
    GBX_FIELD_BITS,
    GBX_FIELD_SHAPE,
    GBX_FIELD_STRIDES,
    GBX_FIELD_RAW_SHAPE,
    GBX_FIELD_OFFSETS,
    GBX_FIELD_START_OFFSET,
    GBX_FIELD_NUMEL,
    GBX_FIELD_IS_CONTIGUOUS,
    GBX_FIELD_BUFFER_ADDR,
    GBX_FIELD_BIN_OFFSET,
    GBX_FIELD_BIN_SIZE,
    GBX_FIELD_HASH,
    GBX_FIELD_TRUNCATED,
    GBX_FIELD_OVERWRITTEN,
    GBX_FIELD_IN_FLIGHT,
    GBX_FIELD_TIME_NS,
    GBX_FIELD_THREAD,
    GBX_FIELD_BLOCK_NUM,
    GBX_FIELD_SUBTASKS,
    GBX_FIELD_STATS,
    GBX_FIELD_COUNT
} gbx_import_field;

enum { GBX_IMPORT_ORDER_MAX = 64 };

typedef struct gbx_import_fields {
    const char *path;  /* of the manifest */
    const char *array; /* "tensors" or "args" */
    uint64_t position; /* of the entry in it */
    uint64_t seen;     /* a bit a field: it is there */
    bool is_json;      /* what was taken last */
    gbx_scan_value values[GBX_FIELD_COUNT];
    uint8_t order[GBX_IMPORT_ORDER_MAX]; /* of the entry before, as most have the same */
} gbx_import_fields;

/* Takes the text of an entry apart; members that are not known are left out. */
GBX_MUST_USE gbx_status gbx_import_fields_take(gbx_import_fields *fields, const char *text,
                                               size_t size);

/* There, and not null. */
static inline bool gbx_import_has(const gbx_import_fields *fields, gbx_import_field field) {
    return (fields->seen >> field & 1) != 0 && fields->values[field].kind != GBX_SCAN_NULL;
}

const char *gbx_import_field_name(gbx_import_field field);

/* GBX_BAD_FORMAT: "PATH: tensors[17].shape: ...". */
GBX_MUST_USE gbx_status gbx_import_fail(const gbx_import_fields *fields, gbx_import_field field,
                                        const char *format, ...) GBX_PRINTF(3, 4);
/* "...: expected X, got Y"; `element` of an array, -1 for none. */
GBX_MUST_USE gbx_status gbx_import_fail_expected(const gbx_import_fields *fields,
                                                 gbx_import_field field, int element,
                                                 const gbx_scan_value *got, const char *expected);

/* --- getting; what is there has to be right, what is not leaves *out_ as it is --- */

GBX_MUST_USE gbx_status gbx_import_require(const gbx_import_fields *fields, gbx_import_field field);
GBX_MUST_USE gbx_status gbx_import_get_integer(const gbx_import_fields *fields,
                                               gbx_import_field field, int64_t min, int64_t max,
                                               int64_t *out_value);
GBX_MUST_USE gbx_status gbx_import_get_hex(const gbx_import_fields *fields, gbx_import_field field,
                                           uint64_t *out_value);
GBX_MUST_USE gbx_status gbx_import_get_bool(const gbx_import_fields *fields, gbx_import_field field,
                                            bool *out_value);
/* A string that is one of `names`: its place. */
GBX_MUST_USE gbx_status gbx_import_get_choice(const gbx_import_fields *fields,
                                              gbx_import_field field, const char *const *names,
                                              size_t count, uint8_t *out_choice);
/* An array of integers, at most one a dimension; *out_count only where it is there. */
GBX_MUST_USE gbx_status gbx_import_get_integers(const gbx_import_fields *fields,
                                                gbx_import_field field, int64_t min, int64_t max,
                                                int64_t out_values[GBX_MAX_DIMS],
                                                uint32_t *out_count);

/* An array of at most `capacity` values of any kind. */
GBX_MUST_USE gbx_status gbx_import_get_array(const gbx_import_fields *fields,
                                             gbx_import_field field, gbx_scan_value *out_values,
                                             uint32_t capacity, uint32_t *out_count);

/* A value as text of a message, cut short: `"inn"`, `3.5`. */
enum { GBX_IMPORT_SHOWN_BYTES = 64 };
void gbx_import_show(const gbx_scan_value *value, char out_text[GBX_IMPORT_SHOWN_BYTES]);

/* Whether a number lies from `min` to `max`, and its value. */
bool gbx_import_is_integer(const gbx_scan_value *value, int64_t min, int64_t max,
                           int64_t *out_value);

#endif
