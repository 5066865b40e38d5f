/* Records of a journal in memory: whether one is valid, and its parts of variable length. */
#ifndef GBX_STORE_JOURNAL_RECORD_H
#define GBX_STORE_JOURNAL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/kernel.h>

#include "store/journal/format.h"
#include "text/names.h"

#define GBX_RECORD_TASK_END (UINT64_C(1) << 44) /* task numbers in a journal are below it */
#define GBX_RECORD_BLOCK_END 65536u             /* so is block_idx */
#define GBX_RECORD_CORE_END 1024u               /* and core_id of an execution */

/* Words of the fixed part of records of each type; 0 for unknown types. */
extern const uint8_t gbx_record_fixed_words[256];

static inline bool gbx_record_is_known(uint8_t type) {
    return gbx_record_fixed_words[type] != 0;
}

/* Whether a journal with a record of this type must be refused: the type is unknown and must not be
 * skipped. */
static inline bool gbx_record_must_be_known(uint8_t type) {
    return !gbx_record_is_known(type) && (type & GBX_RECORD_MUST_UNDERSTAND);
}

/*
 * NULL if the record at `record` is valid, else what is wrong with it, such as "its shape has 9
 * dimensions". Never reads beyond words_left. `record` is aligned to words. For an unknown type,
 * only the length is checked.
 */
const char *gbx_record_check(const void *record, uint64_t words_left);

/* --- the parts that follow the fixed one; the record has been checked --- */

static inline const int64_t *gbx_record_shape(const gbx_record_tensor *record) {
    return (const int64_t *)(const void *)(record + 1);
}

static inline const int64_t *gbx_record_strides(const gbx_record_tensor *record) {
    return gbx_record_shape(record) + record->head.ndims;
}

/* NULL when there are none. */
static inline const gbx_record_stats *gbx_record_statistics(const gbx_record_tensor *record) {
    if (!(record->head.flags & GBX_FLAG_HAS_STATS))
        return NULL;
    return (const gbx_record_stats *)(const void *)(gbx_record_strides(record) +
                                                    record->head.ndims);
}

/* The pieces of a RESULT. */
static inline const gbx_record_piece *gbx_record_pieces(const gbx_record_tensor *result,
                                                        uint64_t *out_count) {
    const uint64_t *at = (const uint64_t *)(const void *)gbx_record_strides(result);
    at += result->head.ndims;
    if (result->head.flags & GBX_FLAG_HAS_STATS)
        at += sizeof(gbx_record_stats) / sizeof *at;
    *out_count = *at;
    return (const gbx_record_piece *)(const void *)(at + 1);
}

/* The view that a tensor's record describes; buffer_bytes is 0 (unknown). */
void gbx_record_view(const gbx_record_tensor *record, gbx_tensor *out_view);

static inline const int64_t *gbx_record_run_arg_shape(const gbx_record_run_arg *record) {
    return (const int64_t *)(const void *)(record + 1);
}

/* The JSON of RUN, the status of END: not zero terminated. */
static inline const char *gbx_record_run_text(const gbx_record_run *record) {
    return (const char *)(record + 1);
}

static inline const char *gbx_record_end_text(const gbx_record_end *record) {
    return (const char *)(record + 1);
}

static inline const uint64_t *gbx_record_edges(const gbx_record *record, uint64_t *out_count) {
    *out_count = record->words - sizeof *record / 8 - record->tail_words;
    return (const uint64_t *)(const void *)(record + 1);
}

/* One slot of a dispatch. Pointers point into the record; NULL and 0 for scalars. */
typedef struct gbx_slot_view {
    const gbx_record_slot *slot;
    uint64_t data;
    int64_t start_offset;
    const int64_t *shape;
    const int64_t *strides;
} gbx_slot_view;

/* Iterates over slots: `at` starts as record + 1; call it slot_count times. Returns where the next
 * one starts. */
const void *gbx_record_next_slot(const void *at, gbx_slot_view *out_view);

/*
 * The words after the parts of a record that this header knows: fields that newer versions append.
 * *out_words is 0 when there are none, as in records of older versions. A field is present only if
 * all of its words are: in a shorter record its value is unknown, not 0.
 *
 * Two types have padding that is not a field. RUN has no tail: its JSON grows instead. In an END
 * that glassbox 0.1.0 appended when it recovered a dump, up to two words of zero follow the text: 0
 * in a field of END's tail must mean unknown.
 */
const uint64_t *gbx_record_tail(const gbx_record *record, uint64_t *out_words);

/* The argument of the run whose RESULT a LOSS counts; GBX_ARG_NONE: it counts other records. */
uint32_t gbx_record_lost_result(const gbx_record_loss *record);

/* What a TASK announces; false when it does not say. */
bool gbx_record_get_announced(const gbx_record_task *record, gbx_record_announced *out_announced);

/* How many of the records of a LOSS are arguments that tasks announced; false when it does not
 * say. */
bool gbx_record_get_lost_arguments(const gbx_record_loss *record, uint64_t *out_count);

/* GBX_KIND_TENSOR, GBX_KIND_SCALAR or GBX_KIND_WORD. */
static inline uint32_t gbx_record_slot_kind(const gbx_record_slot *slot) {
    return slot->is_tensor ? GBX_KIND_TENSOR : slot->is_word ? GBX_KIND_WORD : GBX_KIND_SCALAR;
}

/* Why it was skipped, a gbx_skip_reason. Older readers know two reasons only, so an argument that
 * was never described has the reason of such a task. */
static inline uint32_t gbx_record_skip_reason(const gbx_record_skipped *record) {
    bool is_argument = record->head.arg_index != GBX_ARG_NONE;
    return record->reason == GBX_SKIP_NOT_DESCRIBED && is_argument
               ? (uint32_t)GBX_SKIP_TENSOR_NOT_DESCRIBED
               : record->reason;
}

#endif
