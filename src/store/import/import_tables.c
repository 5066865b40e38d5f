#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/io.h"
#include "base/memory.h"
#include "store/import/internal.h"
#include "store/journal/journal_writer.h"

/* Blocks as large as the journal writer makes them. The first one has room for the largest. */
enum { FIRST_SLOTS = 1024, BLOCK_BYTES = 256 << 10, FIRST_BLOCK_AT = sizeof(gbx_journal_header) };

/* Random, so that the file's author cannot choose keys that all collide. */
static uint64_t draw_seed(void) {
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed = UINT64_C(0x9e3779b97f4a7c15);
    return seed;
}

static uint32_t *find_slot(const gbx_import_map *map, const struct gbx_import_key *key) {
    size_t place = (size_t)XXH3_64bits_withSeed(key, sizeof *key, map->seed);
    for (;; ++place) {
        uint32_t *slot = &map->slots[place & (map->slot_count - 1)];
        if (*slot == 0 || memcmp(&map->keys[*slot - 1], key, sizeof *key) == 0)
            return slot;
    }
}

/* Slots are a power of two and at most three quarters full. */
static bool grow_slots(gbx_import_map *map) {
    size_t slot_count = map->slot_count ? 2 * map->slot_count : FIRST_SLOTS;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        return false;
    if (map->slot_count == 0)
        map->seed = draw_seed();
    free(map->slots);
    map->slots = slots;
    map->slot_count = slot_count;
    for (size_t i = 0; i < map->count; ++i)
        *find_slot(map, &map->keys[i]) = (uint32_t)(i + 1);
    return true;
}

uint32_t gbx_import_map_get(gbx_import_map *map, uint64_t first, uint64_t second) {
    const struct gbx_import_key key = {{first, second}};
    if (map->count >= map->slot_count - map->slot_count / 4 && !grow_slots(map))
        return UINT32_MAX;
    uint32_t *slot = find_slot(map, &key);
    if (*slot)
        return *slot - 1;
    if (map->count == UINT32_MAX - 1 ||
        !gbx_array_grow(&map->keys, &map->capacity, map->count + 1, sizeof *map->keys))
        return UINT32_MAX;
    map->keys[map->count] = key;
    *slot = (uint32_t)++map->count;
    return *slot - 1;
}

void gbx_import_map_free(gbx_import_map *map) {
    free(map->keys);
    free(map->slots);
    *map = (gbx_import_map){0};
}

gbx_import_task *gbx_import_tasks_get(gbx_import_tasks *tasks, uint64_t key, bool *out_is_new) {
    size_t count = tasks->map.count;
    *out_is_new = false;
    if (count > 0 && tasks->items[tasks->last].key == key)
        return &tasks->items[tasks->last];
    if (!gbx_array_grow(&tasks->items, &tasks->capacity, count + 1, sizeof *tasks->items))
        return NULL;
    uint32_t number = gbx_import_map_get(&tasks->map, key, 0);
    if (number == UINT32_MAX)
        return NULL;
    *out_is_new = number == count;
    if (*out_is_new)
        tasks->items[number] =
            (gbx_import_task){.key = key, .func_ids = {UINT32_MAX, UINT32_MAX, UINT32_MAX}};
    tasks->last = number;
    return &tasks->items[number];
}

void gbx_import_tasks_free(gbx_import_tasks *tasks) {
    gbx_import_map_free(&tasks->map);
    free(tasks->items);
    *tasks = (gbx_import_tasks){0};
}

/* --- the journal --- */

/* Files in memory take memory, too. */
static gbx_status fail_records(int error) {
    return gbx_fail(GBX_EXHAUSTED, "reading a manifest: no room for its records: %s",
                    strerror(error));
}

gbx_status gbx_import_journal_open(gbx_import_journal *journal) {
    *journal = (gbx_import_journal){.fd = -1, .sequence = 1};
    journal->file_bytes = FIRST_BLOCK_AT + sizeof(gbx_block_header) + GBX_BLOCK_MAX_BYTES;
    journal->buffer = malloc(sizeof(gbx_block_header) + GBX_BLOCK_MAX_BYTES);
    if (!journal->buffer)
        return fail_records(ENOMEM);
    journal->fd = memfd_create("glassbox records", MFD_CLOEXEC);
    return journal->fd >= 0 ? NULL : fail_records(errno);
}

void gbx_import_journal_close(gbx_import_journal *journal) {
    if (journal->fd >= 0)
        close(journal->fd);
    free(journal->buffer);
    *journal = (gbx_import_journal){.fd = -1};
}

/* Writes the buffer as a block. */
static gbx_status write_block(gbx_import_journal *journal, uint32_t sequence, uint64_t offset) {
    gbx_block_header *header = (gbx_block_header *)(void *)journal->buffer;
    gbx_block_header_fill(header, header + 1, journal->used_bytes, journal->record_count, sequence);
    size_t written;
    int error = gbx_pwrite_all(journal->fd, journal->buffer, sizeof *header + journal->used_bytes,
                               offset, &written);
    return error ? fail_records(error) : NULL;
}

static gbx_status flush(gbx_import_journal *journal) {
    if (journal->used_bytes == 0)
        return NULL;
    GBX_TRY(write_block(journal, journal->sequence, journal->file_bytes));
    journal->file_bytes += sizeof(gbx_block_header) + journal->used_bytes;
    journal->sequence += 1;
    journal->used_bytes = 0;
    journal->record_count = 0;
    return NULL;
}

gbx_status gbx_import_journal_add(gbx_import_journal *journal, const gbx_record *record) {
    uint32_t bytes = record->words * 8;
    if (journal->used_bytes + bytes > BLOCK_BYTES)
        GBX_TRY(flush(journal));
    memcpy(journal->buffer + sizeof(gbx_block_header) + journal->used_bytes, record, bytes);
    journal->used_bytes += bytes;
    journal->record_count += 1;
    gbx_reader_totals_count(&journal->totals, record);
    return NULL;
}

static gbx_status write_header(const gbx_import_journal *journal) {
    gbx_journal_header header;
    size_t written;
    gbx_journal_header_fill(&header);
    int error = gbx_pwrite_all(journal->fd, &header, sizeof header, 0, &written);
    return error ? fail_records(error) : NULL;
}

gbx_status gbx_import_journal_finish(gbx_import_journal *journal, const char *run_text,
                                     size_t size) {
    GBX_TRY(flush(journal));
    gbx_record_run run = {.head = {.type = GBX_RECORD_RUN,
                                   .stage = GBX_STAGE_NONE,
                                   .arg_index = GBX_ARG_NONE,
                                   .words = GBX_BLOCK_MAX_BYTES / 8},
                          .bytes = size};
    unsigned char *records = journal->buffer + sizeof(gbx_block_header);
    memset(records, 0, GBX_BLOCK_MAX_BYTES);
    memcpy(records, &run, sizeof run);
    memcpy(records + sizeof run, run_text, size);
    journal->used_bytes = GBX_BLOCK_MAX_BYTES;
    journal->record_count = 1;
    GBX_TRY(write_block(journal, 0, FIRST_BLOCK_AT));
    journal->used_bytes = 0;
    journal->record_count = 0;
    return write_header(journal);
}
