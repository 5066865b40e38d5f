/* A reader of some tasks against a reader of all, record by record. */
#include "checks.h"

#include "journal_test_builder.h"

#include "scratch.h"
#include "store/reader.h"
#include "store_sample.h"

enum { TASKS = 160, BLOCKS_MAX = 1024, ALL_INDEXED = 0x1f };

static const char run_json[] =
    "{\"generator\": \"glassbox\", \"run\": {\"run_id\": \"r\"}, \"dump_level\": \"full\", "
    "\"kernels\": [{\"func_id\": 7, \"name\": \"add\", \"core_type\": \"aiv\"}]}";

/* --- a journal of many blocks --- */

typedef struct made {
    dump dump;
    builder b;
    size_t blocks[BLOCKS_MAX]; /* where each begins */
    size_t count;
    unsigned seed;
} made;

static unsigned below(made *m, unsigned limit) {
    return (unsigned)rand_r(&m->seed) % limit;
}

static void add_execution(builder *b, uint64_t task) {
    begin_record(b, (head){.type = 12, .task = task, .time_ns = 5});
    put_u64(b, 9);
    put_u64(b, 0);
    put_u64(b, (uint64_t)7 << 32);
}

static void add_dispatch(builder *b, uint64_t task) {
    begin_record(b, (head){.type = 8, .task = task});
    put_u64(b, task);
    for (int i = 0; i < 5; ++i)
        put_u64(b, 0);
}

static void add_view(builder *b, uint64_t task, unsigned stage, unsigned flags) {
    static const int64_t shape[] = {4};
    static const int64_t strides[] = {1};
    add_tensor(b,
               (head){.stage = stage,
                      .role = 2,
                      .arg_index = 1,
                      .dtype = 1,
                      .ndims = 1,
                      .flags = flags,
                      .task = task},
               (tensor_fields){.buffer_addr = 64 * task, .shape = shape, .strides = strides});
}

/* The record of a task in the order of its life. */
static void add_step(made *m, uint64_t task, unsigned step) {
    static const uint32_t kernels[3] = {UINT32_MAX, 7, UINT32_MAX};
    builder *b = &m->b;
    switch (step) {
    case 0:
        add_task(b, task, 0x100 + task, kernels, 1);
        return;
    case 1:
        begin_record(b, (head){.type = 4, .task = task});
        put_u64(b, task / 2);
        return;
    case 2:
        add_scalar(b, (head){.arg_index = 3, .dtype = 9, .task = task}, task);
        return;
    case 3:
        add_view(b, task, 0, 0);
        return;
    case 4:
        add_dispatch(b, task);
        return;
    case 5:
        add_execution(b, task);
        return;
    case 6: /* every ninth task did not complete */
        add_view(b, task, 1, task % 9 == 0 ? 16 : 0);
        return;
    default:
        begin_record(b, (head){.type = 5, .task = task});
    }
}

/* Records that are not about the arguments of a task. */
static void add_other(made *m, unsigned kind) {
    static const int64_t shape[] = {4};
    builder *b = &m->b;
    uint64_t task = below(m, TASKS);
    switch (kind) {
    case 0:
        add_loss(b, (head){.stage = 1, .arg_index = 3, .task = task}, 0, 11);
        return;
    case 1:
        add_skipped(b, (head){.stage = 255, .arg_index = 255, .task = task}, 0, 7);
        return;
    case 2: /* SAMPLE */
        begin_record(b, (head){.type = 13, .task = task});
        for (int i = 0; i < 4; ++i)
            put_u64(b, 0);
        return;
    case 3:
        begin_record(b, (head){.type = 2, .arg_index = below(m, 9), .dtype = 1});
        put_u64(b, 0);
        put_u64(b, task);
        return;
    case 4:
        add_result(b, (head){.role = 1, .arg_index = below(m, 9), .dtype = 1, .ndims = 1},
                   (tensor_fields){.shape = shape, .strides = shape}, NULL, NULL, 0);
        return;
    case 5: /* of a newer version */
        begin_record(b, (head){.type = 99, .task = task});
        return;
    default: /* announces a dtype */
        begin_record(b, (head){.type = 145});
    }
}

/* A new block; a few have no RANGE, as in journals of older versions. */
static void begin_block(made *m) {
    end_block(&m->b);
    m->blocks[m->count++] = m->b.size;
    if (below(m, 8) > 0)
        add_range(&m->b);
}

/* Tasks run a few at a time, and one of them as long as all others together. */
static void add_tasks(made *m) {
    unsigned steps[TASKS] = {0};
    for (uint64_t first = 0; first < TASKS;) {
        uint64_t task = first + below(m, 7);
        if (below(m, 12) == 0)
            begin_block(m);
        if (below(m, 60) == 0)
            add_other(m, below(m, 7));
        if (task < TASKS && steps[task] < 8 && !(task == 3 && steps[3] == 7))
            add_step(m, task, steps[task]++);
        while (first < TASKS && (steps[first] == 8 || (first == 3 && steps[3] == 7)))
            ++first;
    }
    begin_block(m);
    add_step(m, 3, 7);
}

static void build(made *m, unsigned seed, bool has_end) {
    static const uint64_t counts[8];
    free(m->b.bytes);
    m->seed = seed;
    m->count = 0;
    begin_journal(&m->b);
    m->blocks[m->count++] = m->b.size;
    add_run(&m->b, run_json);
    begin_block(m);
    add_tasks(m);
    if (has_end) {
        begin_block(m);
        add_end(&m->b, 1u << 8, counts, "ok");
    }
    end_block(&m->b);
    write_journal(&m->dump, m->b.bytes, m->b.size);
}

static int make(void **state) {
    made *m = calloc(1, sizeof *m);
    *state = m;
    if (!m)
        return -1;
    make_dump(&m->dump);
    return 0;
}

static int discard(void **state) {
    made *m = *state;
    free(m->b.bytes);
    remove_dump(&m->dump);
    free(m);
    return 0;
}

/* --- comparing --- */

static gbx_reader *open_tasks(const char *directory, unsigned indexed, uint64_t first,
                              uint64_t last) {
    gbx_reader *reader = NULL;
    assert_ok(gbx_reader_open_tasks(directory, indexed, first, last, &reader));
    assert_false(gbx_reader_has_all_tasks(reader));
    assert_null(gbx_reader_get_totals(reader));
    return reader;
}

static gbx_reader *open_all(const char *directory, unsigned indexed) {
    gbx_reader *reader = NULL;
    assert_ok(gbx_reader_open(directory, indexed, &reader));
    assert_true(gbx_reader_has_all_tasks(reader));
    assert_int_equal(gbx_reader_get_extent(reader)->skipped_blocks, 0);
    return reader;
}

static void compare_records(const gbx_record *one, const gbx_record *other) {
    assert_int_equal(one->words, other->words);
    assert_memory_equal(one, other, (size_t)one->words * 8);
}

static void compare_index(gbx_reader *all, gbx_reader *some, uint64_t first, uint64_t last) {
    uint64_t begin = gbx_reader_find(all, first), end = gbx_reader_find(all, last + 1);
    assert_int_equal(gbx_reader_count(some), end - begin);
    for (uint64_t i = begin; i < end; ++i) {
        const gbx_record *one, *other;
        assert_ok(gbx_reader_at(all, i, &one));
        assert_ok(gbx_reader_at(some, i - begin, &other));
        compare_records(one, other);
        assert_int_equal(gbx_reader_kind(all, i), gbx_reader_kind(some, i - begin));
    }
}

static void compare_lists(gbx_reader *all, gbx_reader *some) {
    for (gbx_reader_list list = 0; list < GBX_LIST_COUNT; ++list) {
        assert_int_equal(gbx_reader_list_count(some, list), gbx_reader_list_count(all, list));
        for (uint64_t i = 0; i < gbx_reader_list_count(all, list); ++i) {
            const gbx_record *one, *other;
            assert_ok(gbx_reader_list_at(all, list, i, &one));
            assert_ok(gbx_reader_list_at(some, list, i, &other));
            compare_records(one, other);
        }
    }
}

static void compare_extents(const gbx_reader *all, const gbx_reader *some) {
    gbx_reader_extent one = *gbx_reader_get_extent(all), other = *gbx_reader_get_extent(some);
    assert_int_equal(other.block_count, one.block_count);
    assert_int_equal(other.record_count, one.record_count);
    assert_int_equal(other.newer_count, one.newer_count);
    assert_int_equal(other.good_bytes, one.good_bytes);
    assert_int_equal(other.file_bytes, one.file_bytes);
    assert_int_equal(other.stop, one.stop);
    assert_int_equal(other.stop_offset, one.stop_offset);
    assert_string_equal(other.stop_text, one.stop_text);
    assert_string_equal(gbx_reader_end_text(some), gbx_reader_end_text(all));
    assert_int_equal(gbx_reader_is_complete(some), gbx_reader_is_complete(all));
    assert_int_equal(gbx_reader_ending(some), gbx_reader_ending(all));
    assert_int_equal(gbx_reader_dropped(some), gbx_reader_get_totals(all)->dropped);
    assert_string_equal(gbx_reader_run(some)->run_id, gbx_reader_run(all)->run_id);
}

/* Returns how many blocks were skipped. */
static uint64_t compare_tasks(const char *directory, unsigned indexed, uint64_t first,
                              uint64_t last) {
    gbx_reader *all = open_all(directory, indexed);
    gbx_reader *some = open_tasks(directory, indexed, first, last);
    compare_index(all, some, first, last);
    compare_lists(all, some);
    compare_extents(all, some);
    uint64_t skipped = gbx_reader_get_extent(some)->skipped_blocks;
    gbx_reader_close(all);
    gbx_reader_close(some);
    return skipped;
}

/* --- tests --- */

static void every_task_is_read_as_by_a_reader_of_all(void **state) {
    made *m = *state;
    static const unsigned indexed[] = {1, ALL_INDEXED, 1 | 2 | 4};
    for (unsigned seed = 1; seed <= 3; ++seed) {
        uint64_t skipped = 0;
        build(m, seed, seed != 2);
        for (uint64_t task = 0; task < TASKS + 3; ++task)
            skipped += compare_tasks(m->dump.directory, indexed[seed - 1], task, task);
        /* Most of the blocks of most tasks, although some blocks must always be read. */
        assert_true(skipped > TASKS * m->count / 4);
    }
}

static void so_are_ranges_of_tasks(void **state) {
    made *m = *state;
    build(m, 4, true);
    compare_tasks(m->dump.directory, ALL_INDEXED, 0, TASKS);
    compare_tasks(m->dump.directory, ALL_INDEXED, 0, UINT64_MAX - 1);
    for (uint64_t first = 0; first < TASKS; first += 5)
        compare_tasks(m->dump.directory, 1, first, first + 11);
    assert_true(compare_tasks(m->dump.directory, 1, TASKS, UINT64_MAX - 1) > 0);
}

/* Samples are in a list only if they are asked for. */
static void block_of_samples_is_skipped_unless_they_are_wanted(void **state) {
    made *m = *state;
    begin_journal(&m->b);
    add_run(&m->b, run_json);
    add_range(&m->b);
    add_other(m, 2);
    finish_journal(&m->b, &m->dump);
    assert_int_equal(compare_tasks(m->dump.directory, 1, 0, 5), 1);
    assert_int_equal(compare_tasks(m->dump.directory, 1 | GBX_INDEX_SAMPLES, 0, 5), 0);
}

/* Cut here and there, and around the heads of blocks. */
static void torn_tail_is_noticed(void **state) {
    made *m = *state;
    build(m, 5, true);
    size_t block = 1;
    for (size_t size = m->blocks[1]; size < m->b.size; ++size) {
        while (block < m->count && m->blocks[block] + 120 < size)
            ++block;
        bool is_near = block < m->count && m->blocks[block] <= size + 2;
        if (size % 97 != 0 && !(is_near && size % 8 < 2))
            continue;
        write_journal(&m->dump, m->b.bytes, size);
        compare_tasks(m->dump.directory, 1, 70, 70);
    }
}

/* The first block that a reader of `task` skips: all of it is about other tasks, or a sample. */
static size_t find_skipped(const made *m, uint64_t task) {
    for (size_t i = 1; i < m->count; ++i) {
        size_t range = m->blocks[i] + 32;
        uint64_t others = get_number(&m->b, range + 40, 8) & ~UINT64_C(0x31f8);
        bool is_away =
            get_number(&m->b, range + 16, 8) > task || get_number(&m->b, range + 32, 8) < task;
        if (m->b.bytes[range] == 16 && !others && is_away)
            return i;
    }
    fail();
    return 0;
}

static void seal(builder *b, size_t block) {
    uint64_t bytes = get_number(b, block + 4, 4);
    set_number(b, block + 16, XXH3_64bits(b->bytes + block + 32, bytes), 8);
    set_number(b, block + 24, XXH3_64bits(b->bytes + block, 24), 8);
}

static void broken_head_of_a_skipped_block_is_noticed(void **state) {
    made *m = *state;
    build(m, 6, true);
    size_t block = m->blocks[find_skipped(m, 70)];
    for (size_t i = 0; i < 32; ++i) {
        m->b.bytes[block + i] ^= 0x10;
        write_journal(&m->dump, m->b.bytes, m->b.size);
        compare_tasks(m->dump.directory, 1, 70, 70);
        m->b.bytes[block + i] ^= 0x10;
    }
}

/* The block is then read whole: its own checksum counts. */
static void broken_range_is_not_trusted(void **state) {
    made *m = *state;
    build(m, 7, true);
    uint64_t before = compare_tasks(m->dump.directory, 1, 70, 70);
    size_t block = m->blocks[find_skipped(m, 70)];
    for (size_t i = 16; i < 56; ++i) {
        if (i >= 22 && i < 24)
            continue; /* the task number would be too large for a valid record */
        m->b.bytes[block + 32 + i] ^= 0x01;
        write_journal(&m->dump, m->b.bytes, m->b.size);
        compare_tasks(m->dump.directory, 1, 70, 70);
        seal(&m->b, block);
        write_journal(&m->dump, m->b.bytes, m->b.size);
        assert_int_equal(compare_tasks(m->dump.directory, 1, 70, 70), before - 1);
        m->b.bytes[block + 32 + i] ^= 0x01;
        seal(&m->b, block);
    }
}

/* What reader.h says that it does not notice. */
static void damage_inside_a_skipped_block_is_not_noticed(void **state) {
    made *m = *state;
    build(m, 8, true);
    size_t number = find_skipped(m, 70), block = m->blocks[number];
    uint64_t other = get_number(&m->b, block + 32 + 16, 8);
    gbx_reader *good = open_all(m->dump.directory, 1);
    m->b.bytes[block + 32 + 56 + 8] ^= 0x01;
    write_journal(&m->dump, m->b.bytes, m->b.size);
    gbx_reader *some = open_tasks(m->dump.directory, 1, 70, 70);
    compare_extents(good, some);
    gbx_reader_close(some);
    gbx_reader_close(good);
    compare_tasks(m->dump.directory, 1, other, other);
    some = open_tasks(m->dump.directory, 1, other, other);
    assert_int_equal(gbx_reader_get_extent(some)->stop, GBX_STOP_BAD_CHECKSUM);
    assert_int_equal(gbx_reader_get_extent(some)->stop_offset, block);
    assert_int_equal(gbx_reader_get_extent(some)->block_count, number);
    gbx_reader_close(some);
}

static void block_after_the_end_is_not_skipped(void **state) {
    made *m = *state;
    static const uint64_t counts[8];
    begin_journal(&m->b);
    add_run(&m->b, run_json);
    add_range(&m->b);
    add_end(&m->b, 1u << 8, counts, "ok");
    add_range(&m->b);
    add_step(m, 9, 2);
    finish_journal(&m->b, &m->dump);
    compare_tasks(m->dump.directory, 1, 5, 5);
    gbx_reader *some = open_tasks(m->dump.directory, 1, 5, 5);
    assert_int_equal(gbx_reader_get_extent(some)->stop, GBX_STOP_AFTER_END);
    gbx_reader_close(some);
}

/* RUN is first: a journal that begins with a RANGE is not one. */
static void first_block_is_not_skipped(void **state) {
    made *m = *state;
    gbx_reader *some = NULL;
    begin_journal(&m->b);
    add_range(&m->b);
    add_step(m, 9, 2);
    finish_journal(&m->b, &m->dump);
    assert_fails(gbx_reader_open_tasks(m->dump.directory, 1, 5, 5, &some), GBX_BAD_FORMAT,
                 "the first record is not RUN");
}

/* Counts, lists and walks leave RANGE out, wherever it is. */
static void no_reader_shows_a_range(void **state) {
    made *m = *state;
    begin_journal(&m->b);
    add_run(&m->b, run_json);
    begin_record(&m->b, (head){.type = 16}); /* says nothing there */
    for (int i = 0; i < 3; ++i)
        put_u64(&m->b, UINT64_MAX);
    add_range(&m->b);
    add_step(m, 9, 2);
    finish_journal(&m->b, &m->dump);
    compare_tasks(m->dump.directory, ALL_INDEXED, 9, 9);
    gbx_reader *readers[] = {open_all(m->dump.directory, 1),
                             open_tasks(m->dump.directory, 1, 5, 5)};
    for (size_t i = 0; i < 2; ++i) {
        static const uint8_t types[] = {GBX_RECORD_RUN, GBX_RECORD_SCALAR};
        const gbx_record *record;
        uint64_t offset;
        assert_int_equal(gbx_reader_get_extent(readers[i])->record_count, 2);
        assert_int_equal(gbx_reader_get_extent(readers[i])->newer_count, 0);
        for (size_t at = 0; at < 2; ++at) {
            assert_ok(gbx_reader_next(readers[i], &record, &offset));
            assert_int_equal(record->type, types[at]);
        }
        assert_ok(gbx_reader_next(readers[i], &record, &offset));
        assert_null(record);
        gbx_reader_close(readers[i]);
    }
}

/* A dump of the writer, with payload: 3000 tasks are several blocks. */
static void what_the_writer_writes_is_read(void **state) {
    (void)state;
    enum { SAMPLES = 3000 };
    const gbx_store_config config = {
        .directory = "dump", .run_json = sample_run_json, .has_tensors = true};
    const gbx_record_end end = {.head = {.flags = GBX_FLAG_COMPLETE}};
    gbx_store *store = NULL;
    assert_true(scratch_enter(NULL));
    assert_ok(gbx_store_create(&config, &store));
    for (uint64_t i = 0; i < SAMPLES; ++i)
        assert_true(sample_write_task(store, i));
    assert_ok(gbx_store_finish(store, &end, "ok", NULL));
    gbx_store_destroy(store);
    for (uint64_t task = 0; task < SAMPLES; task += 371) {
        assert_true(compare_tasks("dump", ALL_INDEXED, task, task) > 1);
        gbx_reader *some = open_tasks("dump", ALL_INDEXED, task, task);
        assert_int_equal(gbx_reader_count(some), SAMPLE_RECORDS_PER_TASK);
        assert_true(gbx_reader_is_complete(some));
        assert_ok(gbx_reader_open_payload(some));
        gbx_reader_close(some);
    }
    assert_true(scratch_leave());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_task_is_read_as_by_a_reader_of_all, make, discard),
        cmocka_unit_test_setup_teardown(so_are_ranges_of_tasks, make, discard),
        cmocka_unit_test_setup_teardown(block_of_samples_is_skipped_unless_they_are_wanted, make,
                                        discard),
        cmocka_unit_test_setup_teardown(torn_tail_is_noticed, make, discard),
        cmocka_unit_test_setup_teardown(broken_head_of_a_skipped_block_is_noticed, make, discard),
        cmocka_unit_test_setup_teardown(broken_range_is_not_trusted, make, discard),
        cmocka_unit_test_setup_teardown(damage_inside_a_skipped_block_is_not_noticed, make,
                                        discard),
        cmocka_unit_test_setup_teardown(block_after_the_end_is_not_skipped, make, discard),
        cmocka_unit_test_setup_teardown(first_block_is_not_skipped, make, discard),
        cmocka_unit_test_setup_teardown(no_reader_shows_a_range, make, discard),
        cmocka_unit_test(what_the_writer_writes_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
