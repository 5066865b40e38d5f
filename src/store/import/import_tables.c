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

/* Blocks as large as the writer of runs makes them. The first one has the room of the largest. */
enum { FIRST_SLOTS = 1024, BLOCK_BYTES = 256 << 10, FIRST_BLOCK_AT = sizeof(gbx_journal_header) };

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

gbx_import_task *gbx_import_tasks_get(gbx_import_tasks *tasks, uint64_t key, bool *out_is_new) {
    *out_is_new = false;
    if (tasks->count > 0 && tasks->items[tasks->last].key == key)
        return &tasks->items[tasks->last];
    if (is_full(tasks->count, tasks->slot_count) && !grow_slots(tasks))
        return NULL;
    uint32_t *slot = find_slot(tasks, key);
    if (*slot == 0) {
        if (tasks->count == UINT32_MAX - 1 ||
            !gbx_array_grow(&tasks->items, &tasks->capacity, tasks->count + 1,
                            sizeof *tasks->items))
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

/* --- the journal --- */

/* Files in memory take room of their own. */
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

/* A block of what is in the buffer. */
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
