/*
 * The offsets of a journal's records in the order of a manifest: 16 bytes per record, sorted in
 * place.
 */
#ifndef GBX_STORE_JOURNAL_RECORD_INDEX_H
#define GBX_STORE_JOURNAL_RECORD_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "store/journal/record.h"

/* Records of a task are ordered by class, then by a number within it. */
typedef enum gbx_record_class {
    GBX_CLASS_TASK = 0,     /* TASK, then EXECUTION by block_idx, subtask */
    GBX_CLASS_ARGUMENT = 1, /* stage, arg_index */
    GBX_CLASS_DISPATCH = 2, /* block_idx, subtask */
    GBX_CLASS_GRAPH = 3     /* DONE, EDGES */
} gbx_record_class;

enum { GBX_CLASS_SHIFT = 18, GBX_TASK_SHIFT = 20 };

typedef struct gbx_index_entry {
    uint64_t key;    /* task << 20 | class << 18 | number */
    uint64_t offset; /* in the journal */
} gbx_index_entry;

/* Zero before its first use. */
typedef struct gbx_record_index {
    gbx_index_entry *entries;
    size_t count;
    uint64_t capacity;
} gbx_record_index;

static inline gbx_record_class gbx_index_class(const gbx_index_entry *entry) {
    return (gbx_record_class)(entry->key >> GBX_CLASS_SHIFT & 3u);
}

/* An entry in the class of TASK; TASK itself has number 0. */
static inline bool gbx_index_is_execution(const gbx_index_entry *entry) {
    return gbx_index_class(entry) == GBX_CLASS_TASK &&
           (entry->key & ((UINT64_C(1) << GBX_CLASS_SHIFT) - 1)) != 0;
}

/* The key of the execution of a dispatch. */
static inline uint64_t gbx_index_execution_of(const gbx_index_entry *dispatch) {
    return (dispatch->key & ~(UINT64_C(3) << GBX_CLASS_SHIFT)) + 1;
}

/* The key of a checked record that is about a task; only for types with a class. */
uint64_t gbx_record_key(const gbx_record *record);

/* Room for `count` more entries. */
GBX_MUST_USE gbx_status gbx_record_index_reserve(gbx_record_index *index, size_t count);

/* The caller has reserved room. */
static inline void gbx_record_index_add(gbx_record_index *index, uint64_t key, uint64_t offset) {
    index->entries[index->count++] = (gbx_index_entry){key, offset};
}

/* Sorts by key, then by offset. Allocates nothing. */
void gbx_record_index_sort(gbx_record_index *index);

/* The first entry whose key is not below `key`; `count` when there is none. */
size_t gbx_record_index_find(const gbx_record_index *index, uint64_t key);

void gbx_record_index_free(gbx_record_index *index);

#endif
