#include "checks.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "hal/sim.h"

#define GRANULE UINT64_C(512)
#define BASE UINT64_C(0x7f0000000000)
#define KIB UINT64_C(1024)

static gbx_gm_allocator *create(uint64_t bytes) {
    gbx_gm_allocator *allocator = NULL;
    assert_ok(gbx_gm_allocator_create(BASE, bytes, bytes, &allocator));
    assert_non_null(allocator);
    return allocator;
}

static uint64_t alloc(gbx_gm_allocator *allocator, uint64_t bytes, uint64_t alignment) {
    uint64_t address = 0;
    assert_ok(gbx_gm_allocator_alloc(
        allocator, &(gbx_hal_memory){.bytes = bytes, .alignment = alignment}, &address));
    return address;
}

static uint64_t free_bytes_of(gbx_gm_allocator *allocator) {
    uint64_t free_bytes, largest;
    gbx_gm_allocator_room(allocator, &free_bytes, &largest);
    return free_bytes;
}

/* All of the memory is one free piece again. */
static void assert_whole(gbx_gm_allocator *allocator, uint64_t bytes) {
    assert_int_equal(free_bytes_of(allocator), bytes);
    assert_int_equal(alloc(allocator, bytes, 1), BASE);
    assert_int_equal(free_bytes_of(allocator), 0);
    assert_ok(gbx_gm_allocator_free(allocator, BASE));
}

/* ---- against a model: who owns each granule ---- */

enum { MODEL_GRANULES = 8192, MODEL_LIVE = 1024, MODEL_STEPS = 40000 };

typedef struct piece {
    uint64_t address;
    uint64_t wanted;
    uint64_t granules;
} piece;

typedef struct model {
    gbx_gm_allocator *allocator;
    uint64_t random;
    bool is_owned[MODEL_GRANULES];
    uint64_t free_granules;
    piece live[MODEL_LIVE];
    size_t live_count;
    size_t refused_count;
} model;

static uint64_t next_random(uint64_t *random) {
    *random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t mixed = (*random ^ (*random >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

static uint64_t random_below(model *m, uint64_t limit) {
    return next_random(&m->random) % limit;
}

/* Every power of two is equally likely, so that small, odd and huge sizes all occur. */
static uint64_t random_size(model *m) {
    uint64_t limit = UINT64_C(2) << random_below(m, 19);
    return 1 + random_below(m, limit);
}

static uint64_t largest_free_run(const model *m) {
    uint64_t largest = 0;
    uint64_t run = 0;
    for (size_t i = 0; i < MODEL_GRANULES; ++i) {
        run = m->is_owned[i] ? 0 : run + 1;
        if (run > largest)
            largest = run;
    }
    return largest;
}

static void model_own(model *m, const piece *added, bool is_owned) {
    uint64_t first = (added->address - BASE) / GRANULE;
    assert_true(first + added->granules <= MODEL_GRANULES);
    uint64_t wrong_count = 0;
    for (uint64_t i = 0; i < added->granules; ++i) {
        wrong_count += m->is_owned[first + i] == is_owned;
        m->is_owned[first + i] = is_owned;
    }
    assert_int_equal(wrong_count, 0);
    m->free_granules += is_owned ? -added->granules : added->granules;
}

/* A refusal is right only when no free run is long enough wherever the aligned address falls. */
static void model_refused(model *m, uint64_t granules, uint64_t alignment, gbx_status status) {
    uint64_t needed = granules * GRANULE + (alignment > GRANULE ? alignment - GRANULE : 0);
    assert_true(largest_free_run(m) * GRANULE < needed);
    assert_fails(status, GBX_EXHAUSTED, "global memory");
    ++m->refused_count;
}

static void model_alloc(model *m) {
    uint64_t bytes = random_size(m);
    uint64_t alignment = UINT64_C(1) << random_below(m, 17);
    piece added = {.wanted = bytes, .granules = (bytes + GRANULE - 1) / GRANULE};
    gbx_status status = gbx_gm_allocator_alloc(
        m->allocator, &(gbx_hal_memory){.bytes = bytes, .alignment = alignment}, &added.address);
    if (status) {
        assert_int_equal(added.address, 0);
        model_refused(m, added.granules, alignment, status);
        return;
    }
    assert_true(added.address >= BASE);
    assert_int_equal(added.address % alignment, 0);
    assert_int_equal(added.address % GRANULE, 0);
    model_own(m, &added, true);
    m->live[m->live_count++] = added;
}

static void model_free(model *m) {
    size_t at = random_below(m, m->live_count);
    piece removed = m->live[at];
    m->live[at] = m->live[--m->live_count];
    model_own(m, &removed, false);
    assert_ok(gbx_gm_allocator_free(m->allocator, removed.address));
}

/* A range that starts in a live allocation and may end after it. */
static void model_check_range(model *m) {
    const piece *any = &m->live[random_below(m, m->live_count)];
    uint64_t offset = random_below(m, any->wanted);
    uint64_t bytes = random_below(m, 2 * (any->wanted - offset) + 2);
    gbx_status status =
        gbx_gm_allocator_check(m->allocator, "reading", any->address + offset, bytes);
    if (offset + bytes <= any->wanted)
        assert_ok(status);
    else
        assert_fails(status, GBX_OUT_OF_RANGE, "reading 0x");
}

/* Grows until memory or the list is nearly full, then shrinks, in turns: both ends are reached. */
static void model_run(model *m) {
    for (size_t step = 0; step < MODEL_STEPS; ++step) {
        bool is_growing = step / 3000 % 2 == 0;
        bool wants_alloc = random_below(m, 10) < (is_growing ? 7 : 3);
        if (m->live_count == 0 || (wants_alloc && m->live_count < MODEL_LIVE))
            model_alloc(m);
        else
            model_free(m);
        if (m->live_count > 0)
            model_check_range(m);
        assert_int_equal(free_bytes_of(m->allocator), m->free_granules * GRANULE);
    }
}

static void random_calls_agree_with_a_model(void **state) {
    (void)state;
    model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->allocator = create(MODEL_GRANULES * GRANULE);
    m->free_granules = MODEL_GRANULES;
    m->random = 20240611;
    model_run(m);
    assert_true(m->refused_count > 100);
    while (m->live_count > 0)
        model_free(m);
    assert_whole(m->allocator, MODEL_GRANULES * GRANULE);
    gbx_gm_allocator_destroy(m->allocator);
    free(m);
}

/* ---- one case each ---- */

static void the_smallest_hole_that_holds_it_is_used(void **state) {
    (void)state;
    static const uint64_t kib[] = {64, 1, 8, 1, 4, 1, 16, 1};
    uint64_t at[8];
    gbx_gm_allocator *allocator = create(128 * KIB);
    for (size_t i = 0; i < 8; ++i)
        at[i] = alloc(allocator, kib[i] * KIB, 1);
    for (size_t i = 0; i < 8; i += 2)
        assert_ok(gbx_gm_allocator_free(allocator, at[i]));
    assert_int_equal(alloc(allocator, 5 * KIB, 1), at[2]);
    assert_int_equal(alloc(allocator, 4 * KIB, 1), at[4]);
    assert_int_equal(alloc(allocator, 9 * KIB, 1), at[6]);
    assert_int_equal(alloc(allocator, 60 * KIB, 1), at[0]);
    gbx_gm_allocator_destroy(allocator);
}

static void what_is_cut_off_for_alignment_stays_usable(void **state) {
    (void)state;
    gbx_gm_allocator *allocator = create(256 * KIB);
    uint64_t first = alloc(allocator, 1, 1);
    uint64_t aligned = alloc(allocator, 1, 64 * KIB);
    assert_int_equal(first, BASE);
    assert_int_equal(aligned, BASE + 64 * KIB);
    assert_int_equal(free_bytes_of(allocator), 256 * KIB - 2 * GRANULE);
    assert_int_equal(alloc(allocator, 64 * KIB - GRANULE, 1), BASE + GRANULE);
    assert_int_equal(alloc(allocator, 192 * KIB - GRANULE, 1), aligned + GRANULE);
    assert_int_equal(free_bytes_of(allocator), 0);
    gbx_gm_allocator_destroy(allocator);
}

static void size_below_a_granule_at_the_end_is_never_given_away(void **state) {
    (void)state;
    gbx_gm_allocator *allocator = create(4 * GRANULE + 511);
    assert_int_equal(free_bytes_of(allocator), 4 * GRANULE);
    assert_whole(allocator, 4 * GRANULE);
    uint64_t address = 1;
    assert_fails(gbx_gm_allocator_alloc(allocator,
                                        &(gbx_hal_memory){.bytes = 4 * GRANULE + 1, .alignment = 1},
                                        &address),
                 GBX_EXHAUSTED, "2048 of 2559 bytes are free, 2048 in one piece");
    assert_int_equal(address, 0);
    gbx_gm_allocator_destroy(allocator);
}

static void memory_of_no_granule_refuses_everything(void **state) {
    (void)state;
    gbx_gm_allocator *allocator = create(GRANULE - 1);
    uint64_t address = 1;
    assert_int_equal(free_bytes_of(allocator), 0);
    assert_fails(
        gbx_gm_allocator_alloc(allocator, &(gbx_hal_memory){.bytes = 1, .alignment = 1}, &address),
        GBX_EXHAUSTED, "0 of 511 bytes are free, 0 in one piece");
    assert_fails(gbx_gm_allocator_free(allocator, BASE), GBX_NOT_FOUND, "nothing is allocated");
    gbx_gm_allocator_destroy(allocator);
    gbx_gm_allocator_destroy(NULL);
}

static void exhaustion_says_asked_free_and_largest(void **state) {
    (void)state;
    gbx_gm_allocator *allocator = create(10 * KIB);
    uint64_t at[10];
    for (size_t i = 0; i < 10; ++i)
        at[i] = alloc(allocator, KIB, 1);
    for (size_t i = 0; i < 3; ++i)
        assert_ok(gbx_gm_allocator_free(allocator, at[5 + i]));
    assert_ok(gbx_gm_allocator_free(allocator, at[1]));
    uint64_t address = 1;
    gbx_status status = gbx_gm_allocator_alloc(
        allocator, &(gbx_hal_memory){.bytes = 3073, .alignment = 1024}, &address);
    assert_int_equal(address, 0);
    assert_fails(status, GBX_EXHAUSTED,
                 "allocating 3073 bytes (aligned to 1024) of global memory: 4096 of 10240 bytes "
                 "are free, 3072 in one piece");
    assert_int_equal(free_bytes_of(allocator), 4 * KIB);
    assert_int_equal(alloc(allocator, 3 * KIB, 1), at[5]);
    gbx_gm_allocator_destroy(allocator);
}

static void sizes_near_two_to_the_64_are_refused(void **state) {
    (void)state;
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 511, UINT64_MAX - 510,
                                     UINT64_MAX - 1023, UINT64_C(1) << 63};
    static const uint64_t alignments[] = {1, 4096, UINT64_C(1) << 63};
    gbx_gm_allocator *allocator = create(64 * KIB);
    for (size_t i = 0; i < 5; ++i) {
        for (size_t k = 0; k < 3; ++k) {
            uint64_t address = 1;
            assert_fails(gbx_gm_allocator_alloc(
                             allocator,
                             &(gbx_hal_memory){.bytes = sizes[i], .alignment = alignments[k]},
                             &address),
                         GBX_EXHAUSTED, "65536 in one piece");
            assert_int_equal(address, 0);
        }
    }
    assert_whole(allocator, 64 * KIB);
    gbx_gm_allocator_destroy(allocator);
}

static void odd_alignments_are_refused(void **state) {
    (void)state;
    static const uint64_t odd[] = {0, 3, 6, 513, 4096 + 512, UINT64_MAX};
    gbx_gm_allocator *allocator = create(64 * KIB);
    uint64_t address;
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; ++i)
        assert_fails(gbx_gm_allocator_alloc(
                         allocator, &(gbx_hal_memory){.bytes = 8, .alignment = odd[i]}, &address),
                     GBX_INVALID_ARGUMENT, "not a power of two");
    assert_fails(gbx_gm_allocator_alloc(allocator, &(gbx_hal_memory){.bytes = 8, .alignment = 4608},
                                        &address),
                 GBX_INVALID_ARGUMENT, "4608");
    assert_whole(allocator, 64 * KIB);
    gbx_gm_allocator_destroy(allocator);
}

/* Nothing to use, and an address of its own to free. */
static void zero_bytes_have_an_address(void **state) {
    (void)state;
    gbx_gm_allocator *allocator = create(64 * KIB);
    uint64_t first = alloc(allocator, 0, 64);
    uint64_t second = alloc(allocator, 0, 64);
    assert_int_not_equal(first, second);
    assert_ok(gbx_gm_allocator_check(allocator, "writing", first, 0));
    assert_fails(gbx_gm_allocator_check(allocator, "writing", first, 1), GBX_OUT_OF_RANGE,
                 "the 0 bytes");
    assert_ok(gbx_gm_allocator_free(allocator, first));
    assert_ok(gbx_gm_allocator_free(allocator, second));
    assert_whole(allocator, 64 * KIB);
    gbx_gm_allocator_destroy(allocator);
}

static void wrong_frees_are_named_and_change_nothing(void **state) {
    (void)state;
    gbx_gm_allocator *allocator = create(64 * KIB);
    uint64_t kept = alloc(allocator, 4 * KIB, 1);
    uint64_t freed = alloc(allocator, 4 * KIB, 1);
    assert_ok(gbx_gm_allocator_free(allocator, freed));
    assert_fails(gbx_gm_allocator_free(allocator, freed), GBX_NOT_FOUND, "freed already");
    assert_fails(gbx_gm_allocator_free(allocator, kept + 1), GBX_NOT_FOUND,
                 "1 bytes into the allocation at 0x7f0000000000, not its start");
    assert_fails(gbx_gm_allocator_free(allocator, kept + 4095), GBX_NOT_FOUND, "4095 bytes into");
    static const uint64_t outside[] = {0, BASE - 1, BASE + 64 * KIB, UINT64_MAX};
    for (size_t i = 0; i < 4; ++i)
        assert_fails(gbx_gm_allocator_free(allocator, outside[i]), GBX_OUT_OF_RANGE,
                     "outside of the chip's global memory (0x7f0000000000 to 0x7f0000010000)");
    assert_int_equal(free_bytes_of(allocator), 60 * KIB);
    assert_ok(gbx_gm_allocator_check(allocator, "reading", kept, 4 * KIB));
    assert_ok(gbx_gm_allocator_free(allocator, kept));
    assert_fails(gbx_gm_allocator_free(allocator, kept), GBX_NOT_FOUND, "freed already");
    assert_whole(allocator, 64 * KIB);
    gbx_gm_allocator_destroy(allocator);
}

/* Freed in every order of three neighbours: joined with the one before, after, both and neither. */
static void neighbours_join_in_every_order(void **state) {
    (void)state;
    static const size_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    gbx_gm_allocator *allocator = create(3 * KIB);
    for (size_t i = 0; i < 6; ++i) {
        uint64_t at[3];
        for (size_t k = 0; k < 3; ++k)
            at[k] = alloc(allocator, KIB, 1);
        for (size_t k = 0; k < 3; ++k)
            assert_ok(gbx_gm_allocator_free(allocator, at[orders[i][k]]));
        assert_whole(allocator, 3 * KIB);
    }
    gbx_gm_allocator_destroy(allocator);
}

static void ranges_end_with_what_was_asked_for(void **state) {
    (void)state;
    gbx_gm_allocator *allocator = create(64 * KIB);
    uint64_t at = alloc(allocator, 1000, 1);
    alloc(allocator, 1000, 1); /* the memory behind is allocated, too, but still outside */
    assert_ok(gbx_gm_allocator_check(allocator, "writing", at, 1000));
    assert_ok(gbx_gm_allocator_check(allocator, "writing", at, 0));
    assert_ok(gbx_gm_allocator_check(allocator, "writing", at + 999, 1));
    assert_ok(gbx_gm_allocator_check(allocator, "writing", at + 1000, 0));
    assert_fails(
        gbx_gm_allocator_check(allocator, "writing x to", at, 1001), GBX_OUT_OF_RANGE,
        "writing x to 0x7f0000000000: 1001 bytes from there go beyond the 1000 bytes allocated at "
        "0x7f0000000000");
    static const struct {
        uint64_t offset;
        uint64_t bytes;
    } outside[] = {{999, 2},        {1000, 1},       {1001, 0},         {1023, 1},
                   {0, UINT64_MAX}, {1, UINT64_MAX}, {999, UINT64_MAX}, {8, UINT64_MAX - 7}};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; ++i)
        assert_fails(
            gbx_gm_allocator_check(allocator, "writing", at + outside[i].offset, outside[i].bytes),
            GBX_OUT_OF_RANGE, "go beyond the 1000 bytes");
    gbx_gm_allocator_destroy(allocator);
}

static void ranges_outside_of_live_memory_are_refused(void **state) {
    (void)state;
    gbx_gm_allocator *allocator = create(64 * KIB);
    uint64_t at = alloc(allocator, KIB, 1);
    assert_fails(gbx_gm_allocator_check(allocator, "reading", at + KIB, 1), GBX_NOT_FOUND,
                 "reading 0x7f0000000400: nothing is allocated there");
    assert_ok(gbx_gm_allocator_free(allocator, at));
    assert_fails(gbx_gm_allocator_check(allocator, "reading", at, 1), GBX_NOT_FOUND,
                 "reading 0x7f0000000000: nothing is allocated there; was it freed already?");
    static const uint64_t outside[] = {0, BASE - 1, BASE + 64 * KIB, UINT64_MAX};
    for (size_t i = 0; i < 4; ++i)
        assert_fails(gbx_gm_allocator_check(allocator, "reading", outside[i], 1), GBX_OUT_OF_RANGE,
                     "outside of the chip's global memory");
    gbx_gm_allocator_destroy(allocator);
}

/* ---- many at once ---- */

enum { MANY = 200000 };

static uint64_t *alloc_many(gbx_gm_allocator *allocator) {
    uint64_t *addresses = malloc(MANY * sizeof *addresses);
    assert_non_null(addresses);
    for (size_t i = 0; i < MANY; ++i)
        assert_ok(gbx_gm_allocator_alloc(
            allocator, &(gbx_hal_memory){.bytes = GRANULE, .alignment = 1}, &addresses[i]));
    assert_int_equal(free_bytes_of(allocator), 0);
    return addresses;
}

/* Sorted input turns a tree that is not balanced into a list: minutes instead of a moment. */
static void many_are_freed_front_to_back(void **state) {
    (void)state;
    gbx_gm_allocator *allocator = create(MANY * GRANULE);
    uint64_t *addresses = alloc_many(allocator);
    for (size_t i = 0; i < MANY; ++i)
        assert_ok(gbx_gm_allocator_free(allocator, addresses[i]));
    assert_whole(allocator, MANY * GRANULE);
    free(addresses);
    gbx_gm_allocator_destroy(allocator);
}

/* Every other one first: half as many free spans of one size, none of which can be joined. */
static void many_holes_are_joined_at_last(void **state) {
    (void)state;
    gbx_gm_allocator *allocator = create(MANY * GRANULE);
    uint64_t *addresses = alloc_many(allocator);
    for (size_t i = 0; i < MANY; i += 2)
        assert_ok(gbx_gm_allocator_free(allocator, addresses[i]));
    uint64_t address = 0;
    assert_fails(gbx_gm_allocator_alloc(
                     allocator, &(gbx_hal_memory){.bytes = GRANULE + 1, .alignment = 1}, &address),
                 GBX_EXHAUSTED, "51200000 of 102400000 bytes are free, 512 in one piece");
    for (size_t i = 1; i < MANY; i += 2)
        assert_ok(gbx_gm_allocator_free(allocator, addresses[i]));
    assert_whole(allocator, MANY * GRANULE);
    free(addresses);
    gbx_gm_allocator_destroy(allocator);
}

static void live_allocations_are_given_back_by_destroy(void **state) {
    (void)state;
    gbx_gm_allocator *allocator = create(64 * KIB); /* the leak checker checks this */
    for (size_t i = 0; i < 10; ++i)
        alloc(allocator, KIB, 2 * KIB);
    gbx_gm_allocator_destroy(allocator);
}

/* ---- threads ---- */

enum { THREADS = 4, THREAD_ROUNDS = 3000, THREAD_SLOTS = 8 };

typedef struct worker {
    gbx_gm_allocator *allocator;
    uint64_t random;
    size_t wrong_count; /* assertions belong to the main thread */
} worker;

static bool is_ok(gbx_status status) {
    bool result = !status;
    gbx_status_free(status);
    return result;
}

static void *work(void *argument) {
    worker *me = argument;
    uint64_t slots[THREAD_SLOTS] = {0};
    for (size_t i = 0; i < THREAD_ROUNDS; ++i) {
        uint64_t *slot = &slots[next_random(&me->random) % THREAD_SLOTS];
        uint64_t bytes = 1 + next_random(&me->random) % 4096;
        if (*slot)
            me->wrong_count += !is_ok(gbx_gm_allocator_free(me->allocator, *slot));
        me->wrong_count += !is_ok(gbx_gm_allocator_alloc(
            me->allocator, &(gbx_hal_memory){.bytes = bytes, .alignment = 64}, slot));
        me->wrong_count += !is_ok(gbx_gm_allocator_check(me->allocator, "at", *slot, bytes));
    }
    for (size_t i = 0; i < THREAD_SLOTS; ++i)
        if (slots[i])
            me->wrong_count += !is_ok(gbx_gm_allocator_free(me->allocator, slots[i]));
    return NULL;
}

static void threads_share_one_allocator(void **state) {
    (void)state;
    gbx_gm_allocator *allocator = create(KIB * KIB);
    pthread_t threads[THREADS];
    worker workers[THREADS];
    for (size_t i = 0; i < THREADS; ++i) {
        workers[i] = (worker){.allocator = allocator, .random = i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; ++i)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < THREADS; ++i)
        assert_int_equal(workers[i].wrong_count, 0);
    assert_whole(allocator, KIB * KIB);
    gbx_gm_allocator_destroy(allocator);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_calls_agree_with_a_model),
        cmocka_unit_test(the_smallest_hole_that_holds_it_is_used),
        cmocka_unit_test(what_is_cut_off_for_alignment_stays_usable),
        cmocka_unit_test(size_below_a_granule_at_the_end_is_never_given_away),
        cmocka_unit_test(memory_of_no_granule_refuses_everything),
        cmocka_unit_test(exhaustion_says_asked_free_and_largest),
        cmocka_unit_test(sizes_near_two_to_the_64_are_refused),
        cmocka_unit_test(odd_alignments_are_refused),
        cmocka_unit_test(zero_bytes_have_an_address),
        cmocka_unit_test(wrong_frees_are_named_and_change_nothing),
        cmocka_unit_test(neighbours_join_in_every_order),
        cmocka_unit_test(ranges_end_with_what_was_asked_for),
        cmocka_unit_test(ranges_outside_of_live_memory_are_refused),
        cmocka_unit_test(many_are_freed_front_to_back),
        cmocka_unit_test(many_holes_are_joined_at_last),
        cmocka_unit_test(live_allocations_are_given_back_by_destroy),
        cmocka_unit_test(threads_share_one_allocator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
