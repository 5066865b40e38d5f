#include "store/journal/record_index.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"

enum {
    SMALL_COUNT = 48, /* up to this many are sorted by insertion */
    NEAR_STEPS = 8,   /* so are more of them, if this near to their places on average */
    DIGIT_BITS = 8,
    DIGITS = 1 << DIGIT_BITS,
    LAST_SHIFT = 128 - DIGIT_BITS /* digits are numbered from the low end of {key, offset} */
};

static_assert(sizeof(gbx_index_entry) == 16, "16 bytes a record");
static_assert(((GBX_RECORD_BLOCK_END - 1) << 2 | (GBX_SUBTASK_COUNT - 1)) + 1 <
                  1 << GBX_CLASS_SHIFT,
              "the number of an execution does not reach into the class");

static uint64_t number_of(const gbx_record *record) {
    switch (record->type) {
    case GBX_RECORD_DISPATCH: {
        const gbx_record_dispatch *dispatch = (const gbx_record_dispatch *)record;
        return (uint64_t)dispatch->block_idx << 2 | dispatch->subtask;
    }
    case GBX_RECORD_EXECUTION: {
        const gbx_record_execution *execution = (const gbx_record_execution *)record;
        return ((uint64_t)execution->block_idx << 2 | execution->subtask) + 1;
    }
    case GBX_RECORD_SCALAR:
    case GBX_RECORD_TENSOR:
        return (uint64_t)record->stage << 8 | record->arg_index;
    case GBX_RECORD_EDGES:
        return 1;
    default:
        return 0;
    }
}

uint64_t gbx_record_key(const gbx_record *record) {
    static const uint8_t classes[256] = {
        [GBX_RECORD_SCALAR] = GBX_CLASS_ARGUMENT,   [GBX_RECORD_TENSOR] = GBX_CLASS_ARGUMENT,
        [GBX_RECORD_DISPATCH] = GBX_CLASS_DISPATCH, [GBX_RECORD_EDGES] = GBX_CLASS_GRAPH,
        [GBX_RECORD_DONE] = GBX_CLASS_GRAPH,
    };
    return record->task << GBX_TASK_SHIFT | (uint64_t)classes[record->type] << GBX_CLASS_SHIFT |
           number_of(record);
}

gbx_status gbx_record_index_reserve(gbx_record_index *index, size_t count) {
    return gbx_array_reserve(&index->entries, &index->capacity, (uint64_t)index->count + count,
                             "listing the records of a journal");
}

static inline bool is_below(const gbx_index_entry *a, const gbx_index_entry *b) {
    return a->key < b->key || (a->key == b->key && a->offset < b->offset);
}

static void sort_small(gbx_index_entry *entries, size_t count) {
    for (size_t i = 1; i < count; ++i) {
        gbx_index_entry moved = entries[i];
        size_t to = i;
        for (; to > 0 && is_below(&moved, &entries[to - 1]); --to)
            entries[to] = entries[to - 1];
        entries[to] = moved;
    }
}

/*
 * Journals are almost sorted: only the records of concurrent tasks alternate. Gives up, with the
 * entries in any order, when they are too far from their places.
 */
static bool sort_near(gbx_index_entry *entries, size_t count) {
    size_t steps_left = count * NEAR_STEPS;
    for (size_t i = 1; i < count; ++i) {
        gbx_index_entry moved = entries[i];
        size_t to = i;
        for (; to > 0 && steps_left > 0 && is_below(&moved, &entries[to - 1]); --to, --steps_left)
            entries[to] = entries[to - 1];
        entries[to] = moved;
        if (steps_left == 0)
            return false;
    }
    return true;
}

static inline unsigned digit_of(const gbx_index_entry *entry, int shift) {
    uint64_t word = shift >= 64 ? entry->key >> (shift - 64) : entry->offset >> shift;
    return (unsigned)(word & (DIGITS - 1));
}

/* The highest digit, not above `shift`, in which entries differ; -1 when they are sorted. */
static int differing_shift(const gbx_index_entry *entries, size_t count, int shift) {
    uint64_t keys = 0;
    uint64_t offsets = 0;
    bool is_sorted = true;
    for (size_t i = 1; i < count; ++i) {
        keys |= entries[i].key ^ entries[0].key;
        offsets |= entries[i].offset ^ entries[0].offset;
        is_sorted &= is_below(&entries[i - 1], &entries[i]);
    }
    if (is_sorted)
        return -1;
    for (; shift > 0; shift -= DIGIT_BITS) {
        uint64_t word = shift >= 64 ? keys >> (shift - 64) : offsets >> shift;
        if (word & (DIGITS - 1))
            break;
    }
    return shift;
}

/* Puts every entry into the range of its digit, by swapping; `ends` are the ends of the ranges. */
static void distribute(gbx_index_entry *entries, size_t count, int shift, size_t ends[DIGITS]) {
    size_t next[DIGITS];
    memset(ends, 0, DIGITS * sizeof *ends);
    for (size_t i = 0; i < count; ++i)
        ends[digit_of(&entries[i], shift)]++;
    size_t sum = 0;
    for (unsigned d = 0; d < DIGITS; ++d) {
        next[d] = sum;
        sum += ends[d];
        ends[d] = sum;
    }
    for (unsigned d = 0; d < DIGITS; ++d) {
        while (next[d] < ends[d]) {
            gbx_index_entry moved = entries[next[d]];
            unsigned digit = digit_of(&moved, shift);
            while (digit != d) {
                gbx_index_entry displaced = entries[next[digit]];
                entries[next[digit]++] = moved;
                moved = displaced;
                digit = digit_of(&moved, shift);
            }
            entries[next[d]++] = moved;
        }
    }
}

/* The depth is bounded: one digit per level, and there are 16. */
static void sort_from(gbx_index_entry *entries, size_t count, int shift) {
    if (count <= SMALL_COUNT) {
        sort_small(entries, count);
        return;
    }
    shift = differing_shift(entries, count, shift);
    if (shift < 0)
        return;
    size_t ends[DIGITS];
    distribute(entries, count, shift, ends);
    for (unsigned d = 0; d < DIGITS && shift > 0; ++d) {
        size_t begin = d ? ends[d - 1] : 0;
        sort_from(entries + begin, ends[d] - begin, shift - DIGIT_BITS);
    }
}

void gbx_record_index_sort(gbx_record_index *index) {
    if (!sort_near(index->entries, index->count))
        sort_from(index->entries, index->count, LAST_SHIFT);
}

size_t gbx_record_index_find(const gbx_record_index *index, uint64_t key) {
    return gbx_lower_bound_at(index->entries, index->count, sizeof *index->entries,
                              offsetof(gbx_index_entry, key), key);
}

void gbx_record_index_free(gbx_record_index *index) {
    free(index->entries);
    memset(index, 0, sizeof *index);
}
