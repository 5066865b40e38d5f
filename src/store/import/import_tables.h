/* What is remembered of all entries of a manifest while it is read: tasks, and where payload lies.
 */
#ifndef GBX_STORE_IMPORT_IMPORT_TABLES_H
#define GBX_STORE_IMPORT_IMPORT_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gbx_import_task {
    uint64_t key; /* task_seq, or the id where there is none */
    uint64_t id;
    uint32_t func_ids[3]; /* UINT32_MAX for none */
    uint32_t block_num;
    bool has_id;
    bool has_subtasks; /* func_ids are AIC, AIV0, AIV1; otherwise the first that were told */
} gbx_import_task;

/* Zero before its first use. */
typedef struct gbx_import_tasks {
    gbx_import_task *items; /* as they first appeared */
    size_t count;
    size_t capacity;
    uint32_t *slots; /* index + 1; 0 for none */
    size_t slot_count;
    uint64_t seed; /* of the hash of keys */
    size_t last;   /* index of the one that was asked for last */
} gbx_import_tasks;

/* The task of a key, made where it is new: key set, the rest zero, no func_ids. NULL when memory is
 * out. */
gbx_import_task *gbx_import_tasks_get(gbx_import_tasks *tasks, uint64_t key, bool *out_is_new);
void gbx_import_tasks_free(gbx_import_tasks *tasks);

typedef struct gbx_import_extent {
    uint64_t offset;
    uint64_t bytes; /* 0: the slot is free */
} gbx_import_extent;

/* Zero before its first use. */
typedef struct gbx_import_extents {
    gbx_import_extent *slots;
    size_t slot_count;
    size_t count;
    uint64_t seed; /* of the hash of extents */
} gbx_import_extents;

/* Takes an extent that is not empty; *out_is_known where it was taken before. False when memory is
 * out. */
bool gbx_import_extents_add(gbx_import_extents *extents, gbx_import_extent extent,
                            bool *out_is_known);
void gbx_import_extents_free(gbx_import_extents *extents);

#endif
