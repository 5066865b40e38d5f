#include "checks.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "store/payload/dedup.h"

typedef struct model_entry {
    gbx_hash128 hash;
    uint64_t bytes;
    uint64_t offset;
    uint64_t used_at;
} model_entry;

/* Holds everything, and removes the least recently used entry of a full set. */
typedef struct model {
    model_entry entries[4096];
    size_t count;
    uint64_t now;
} model;

static uint64_t random_state;

static uint64_t random_u64(void) {
    random_state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = random_state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static model_entry *model_find(model *known, gbx_hash128 hash, uint64_t bytes) {
    for (size_t i = 0; i < known->count; ++i) {
        model_entry *entry = &known->entries[i];
        if (entry->hash.low == hash.low && entry->hash.high == hash.high && entry->bytes == bytes) {
            entry->used_at = ++known->now;
            return entry;
        }
    }
    return NULL;
}

static bool is_same_set(gbx_hash128 a, gbx_hash128 b) {
    return a.low % GBX_DEDUP_SETS == b.low % GBX_DEDUP_SETS;
}

static void model_remember(model *known, gbx_hash128 hash, uint64_t bytes, uint64_t offset) {
    model_entry *place = model_find(known, hash, bytes);
    size_t in_set = 0;
    model_entry *oldest = NULL;
    for (size_t i = 0; i < known->count && !place; ++i) {
        model_entry *entry = &known->entries[i];
        if (!is_same_set(entry->hash, hash))
            continue;
        ++in_set;
        if (!oldest || entry->used_at < oldest->used_at)
            oldest = entry;
    }
    if (!place)
        place = in_set == GBX_DEDUP_WAYS ? oldest : &known->entries[known->count++];
    *place = (model_entry){hash, bytes, offset, ++known->now};
}

/* Few sets and few hashes, so that sets overflow, entries recur, and some differ only in the high
 * half or the size. */
static gbx_hash128 crowded_hash(void) {
    uint64_t choice = random_u64();
    uint64_t set = choice % 3 == 0 ? 0 : choice % 3 == 1 ? 17 : GBX_DEDUP_SETS - 1;
    return (gbx_hash128){.low = set + (choice >> 8) % 4 * GBX_DEDUP_SETS,
                         .high = (choice >> 16) % 3};
}

static void table_does_what_a_plain_model_does(void **state) {
    (void)state;
    gbx_dedup dedup;
    assert_ok(gbx_dedup_open(&dedup));
    model *known = calloc(1, sizeof *known);
    assert_non_null(known);
    size_t found_count = 0, missed_count = 0;
    random_state = 1;
    for (size_t step = 0; step < 200000; ++step) {
        gbx_hash128 hash = crowded_hash();
        uint64_t bytes = 4096 + 64 * (random_u64() % 2);
        if (random_u64() % 2) {
            uint64_t offset = random_u64() & ~UINT64_C(63);
            gbx_dedup_remember(&dedup, hash, bytes, offset);
            model_remember(known, hash, bytes, offset);
            continue;
        }
        uint64_t offset = 12345;
        model_entry *expected = model_find(known, hash, bytes);
        assert_int_equal(gbx_dedup_find(&dedup, hash, bytes, &offset), expected != NULL);
        assert_int_equal(offset, expected ? expected->offset : 12345);
        found_count += expected != NULL;
        missed_count += expected == NULL;
    }
    assert_true(found_count > 10000 && missed_count > 10000);
    free(known);
    gbx_dedup_close(&dedup);
}

static gbx_hash128 hash_of_number(uint64_t number) {
    random_state = number * 2;
    uint64_t low = random_u64();
    return (gbx_hash128){.low = low, .high = random_u64()};
}

/* Four times as many as fit: what is found is right, and nearly all of the last half table is
 * kept. */
static void overfull_table_keeps_the_last(void **state) {
    (void)state;
    gbx_dedup dedup;
    assert_ok(gbx_dedup_open(&dedup));
    const uint64_t capacity = (uint64_t)GBX_DEDUP_SETS * GBX_DEDUP_WAYS;
    const uint64_t count = 4 * capacity;
    for (uint64_t i = 0; i < count; ++i)
        gbx_dedup_remember(&dedup, hash_of_number(i), i + 1, i * 64);
    uint64_t found_count = 0, kept_count = 0;
    for (uint64_t i = count; i-- > 0;) {
        uint64_t offset;
        if (!gbx_dedup_find(&dedup, hash_of_number(i), i + 1, &offset))
            continue;
        assert_int_equal(offset, i * 64);
        ++found_count;
        kept_count += i >= count - capacity / 2;
    }
    assert_int_equal(found_count, capacity);
    assert_true(kept_count > capacity / 2 - capacity / 100);
    gbx_dedup_close(&dedup);
}

static void nothing_of_no_bytes_and_nothing_when_off(void **state) {
    (void)state;
    gbx_dedup dedup;
    uint64_t offset;
    gbx_hash128 zero = {0};
    assert_ok(gbx_dedup_open(&dedup));
    assert_false(gbx_dedup_find(&dedup, zero, 0, &offset));
    gbx_dedup_remember(&dedup, zero, 0, 64);
    assert_false(gbx_dedup_find(&dedup, zero, 0, &offset));
    gbx_dedup_remember(&dedup, zero, 1, 64);
    assert_true(gbx_dedup_find(&dedup, zero, 1, &offset));
    assert_int_equal(offset, 64);
    gbx_dedup_close(&dedup);
    gbx_dedup_remember(&dedup, zero, 1, 64);
    assert_false(gbx_dedup_find(&dedup, zero, 1, &offset));
    gbx_dedup_close(&dedup);
}

static size_t resident_pages(const gbx_dedup *dedup) {
    enum { TABLE_BYTES = 8 << 20 };
    static unsigned char pages[TABLE_BYTES / 4096];
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(mincore(dedup->sets, TABLE_BYTES, pages), 0);
    size_t count = 0;
    for (size_t i = 0; i < TABLE_BYTES / page_bytes; ++i)
        count += pages[i] & 1;
    return count;
}

static void memory_is_touched_by_use(void **state) {
    (void)state;
    gbx_dedup dedup;
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* a page is one page, whatever the system prefers */
    assert_ok(gbx_dedup_open(&dedup));
    assert_int_equal(resident_pages(&dedup), 0);
    gbx_dedup_remember(&dedup, hash_of_number(7), 64, 0);
    assert_int_equal(resident_pages(&dedup), 1);
    gbx_dedup_close(&dedup);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_does_what_a_plain_model_does),
        cmocka_unit_test(overfull_table_keeps_the_last),
        cmocka_unit_test(nothing_of_no_bytes_and_nothing_when_off),
        cmocka_unit_test(memory_is_touched_by_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
