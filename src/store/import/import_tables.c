#include "store/import/import_tables.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <xxhash.h>

enum { FIRST_SLOTS = 1024 };

/* Whoever wrote the file cannot know it, and so not choose keys that all take the same place. */
static uint64_t draw_seed(void) {
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed = UINT64_C(0x9e3779b97f4a7c15);
    return seed;
}

/* Slots are a power of two and at most three quarters full. */
static inline size_t place_of(const void *key, size_t size, uint64_t seed, size_t slot_count) {
    return (size_t)XXH3_64bits_withSeed(key, size, seed) & (slot_count - 1);
}

static bool is_full(size_t count, size_t slot_count) {
    return count >= slot_count - slot_count / 4;
}

/* --- tasks --- */

static uint32_t *find_slot(const gbx_import_tasks *tasks, uint64_t key) {
    size_t place = place_of(&key, sizeof key, tasks->seed, tasks->slot_count);
    while (tasks->slots[place] && tasks->items[tasks->slots[place] - 1].key != key)
        place = (place + 1) & (tasks->slot_count - 1);
    return &tasks->slots[place];
}

static bool grow_slots(gbx_import_tasks *tasks) {
    size_t slot_count = tasks->slot_count ? 2 * tasks->slot_count : FIRST_SLOTS;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        return false;
    if (tasks->slot_count == 0)
        tasks->seed = draw_seed();
    free(tasks->slots);
    tasks->slots = slots;
    tasks->slot_count = slot_count;
    for (size_t i = 0; i < tasks->count; ++i)
        *find_slot(tasks, tasks->items[i].key) = (uint32_t)(i + 1);
    return true;
}

static bool grow_items(gbx_import_tasks *tasks) {
    size_t capacity = tasks->capacity ? tasks->capacity + tasks->capacity / 2 : FIRST_SLOTS;
    gbx_import_task *items =
        capacity < UINT32_MAX ? reallocarray(tasks->items, capacity, sizeof *items) : NULL;
    if (!items)
        return false;
    tasks->items = items;
    tasks->capacity = capacity;
    return true;
}

gbx_import_task *gbx_import_tasks_get(gbx_import_tasks *tasks, uint64_t key, bool *out_is_new) {
    *out_is_new = false;
    if (tasks->count > 0 && tasks->items[tasks->last].key == key)
        return &tasks->items[tasks->last];
    if (is_full(tasks->count, tasks->slot_count) && !grow_slots(tasks))
        return NULL;
    uint32_t *slot = find_slot(tasks, key);
    if (*slot == 0) {
        if (tasks->count == tasks->capacity && !grow_items(tasks))
            return NULL;
        tasks->items[tasks->count] =
            (gbx_import_task){.key = key, .func_ids = {UINT32_MAX, UINT32_MAX, UINT32_MAX}};
        *slot = (uint32_t)++tasks->count;
        *out_is_new = true;
    }
    tasks->last = *slot - 1;
    return &tasks->items[tasks->last];
}

void gbx_import_tasks_free(gbx_import_tasks *tasks) {
    free(tasks->items);
    free(tasks->slots);
    *tasks = (gbx_import_tasks){0};
}

/* --- payload --- */

/* Where an extent is, or would be. */
static gbx_import_extent *find_extent(gbx_import_extent *slots, size_t slot_count, uint64_t seed,
                                      gbx_import_extent extent) {
    size_t place = place_of(&extent, sizeof extent, seed, slot_count);
    while (slots[place].bytes &&
           (slots[place].offset != extent.offset || slots[place].bytes != extent.bytes))
        place = (place + 1) & (slot_count - 1);
    return &slots[place];
}

static bool grow_extents(gbx_import_extents *extents) {
    size_t slot_count = extents->slot_count ? 2 * extents->slot_count : FIRST_SLOTS;
    gbx_import_extent *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        return false;
    if (extents->slot_count == 0)
        extents->seed = draw_seed();
    for (size_t i = 0; i < extents->slot_count; ++i)
        if (extents->slots[i].bytes)
            *find_extent(slots, slot_count, extents->seed, extents->slots[i]) = extents->slots[i];
    free(extents->slots);
    extents->slots = slots;
    extents->slot_count = slot_count;
    return true;
}

bool gbx_import_extents_add(gbx_import_extents *extents, gbx_import_extent extent,
                            bool *out_is_known) {
    if (is_full(extents->count, extents->slot_count) && !grow_extents(extents))
        return false;
    gbx_import_extent *slot =
        find_extent(extents->slots, extents->slot_count, extents->seed, extent);
    *out_is_known = slot->bytes != 0;
    if (!*out_is_known) {
        *slot = extent;
        ++extents->count;
    }
    return true;
}

void gbx_import_extents_free(gbx_import_extents *extents) {
    free(extents->slots);
    *extents = (gbx_import_extents){0};
}
